#include "estimate/wrap_rules.h"

#include "base/refusal.h"
#include "model/class_names.h"

namespace qlp {

std::vector<ModuleKind> wrapped_kinds(const JobSpec& job, const WrappedClasses& classes) {
  if (!classes) return {ModuleKind::decoder_layer};
  std::vector<ModuleKind> kinds;
  for (const std::string& name : *classes)
    if (const auto kind = kind_of_class(job.model.family, name)) kinds.push_back(*kind);
  return kinds;
}

void check_wrapped_classes(const JobSpec& job, const WrappedClasses& classes, bool by_class,
                           const std::string& key_path, Diagnostics& refusals) {
  if (!classes) return;
  const std::string usual = class_name(job.model.family, "DecoderLayer");
  if (!by_class)
    refusals.push_back(refusal("wrap-classes-unused", "classes are named, and auto_wrap_policy does not ask for them",
                               key_path, "leave it out, or set auto_wrap_policy to transformer_based_wrap"));
  for (const std::string& name : *classes)
    if (!kind_of_class(job.model.family, name))
      refusals.push_back(refusal("wrap-class",
                                 "units of the class " + name +
                                     " are not planned; of one that the model does not have accelerate says: 'Could "
                                     "not find the transformer layer class'",
                                 key_path,
                                 "name " + usual + ", " + class_name(job.model.family, "Attention") +
                                     (kind_of_class(job.model.family, class_name(job.model.family, "MLP"))
                                          ? " or " + class_name(job.model.family, "MLP")
                                          : "")));
}

}  // namespace qlp
