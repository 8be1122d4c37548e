#include "estimate/wrap_rules.h"

#include <string_view>

#include "base/refusal.h"
#include "base/text.h"
#include "model/class_names.h"
#include "plan/stack_profile.h"

namespace qlp {
namespace {

/// The modules of this class in the job's model, where they can be units.
std::optional<ModuleKind> kind_in(const JobSpec& job, std::string_view name) {
  const auto kind = kind_of_class(job.model.family, name);
  const bool by_kernel = StackProfile(job.stack).models.has_attention_classes(job.model.family) &&
                         job.training.attention != Attention::eager;
  return kind == ModuleKind::attention && by_kernel ? std::nullopt : kind;
}

std::string choice(const JobSpec& job, const std::string& name) {
  std::vector<std::string> names;
  for (const std::string_view what : {"DecoderLayer", "Attention", "MLP"})
    if (kind_in(job, class_name(job.model.family, what))) names.push_back(class_name(job.model.family, what));
  const std::vector<std::string_view> words(names.begin(), names.end());
  const auto meant = closest(name, words);
  return meant ? "did you mean " + std::string(*meant) + "?" : "name " + join(words);
}

}  // namespace

std::vector<ModuleKind> wrapped_kinds(const JobSpec& job, const WrappedClasses& classes) {
  if (!classes) return {ModuleKind::decoder_layer};
  std::vector<ModuleKind> kinds;
  for (const std::string& name : *classes)
    if (const auto kind = kind_in(job, name)) kinds.push_back(*kind);
  return kinds;
}

void check_wrapped_classes(const JobSpec& job, const WrappedClasses& classes, bool by_class,
                           const std::string& key_path, Diagnostics& refusals) {
  if (!classes) return;
  if (!by_class)
    refusals.push_back(refusal("wrap-classes-unused", "classes are named, and auto_wrap_policy does not ask for them",
                               key_path, "leave it out, or set auto_wrap_policy to transformer_based_wrap"));
  if (classes->empty())
    refusals.push_back(refusal("wrap-class", "no class is named", key_path, "leave it out, or " + choice(job, "")));
  for (const std::string& name : *classes)
    if (!kind_in(job, name))
      refusals.push_back(refusal("wrap-class",
                                 "units of the class " + name +
                                     " are not planned; of one that the model does not have accelerate says: 'Could "
                                     "not find the transformer layer class'",
                                 key_path, choice(job, name)));
}

}  // namespace qlp
