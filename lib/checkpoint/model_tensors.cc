#include "checkpoint/model_tensors.h"

#include <string_view>

#include "model/build.h"
#include "model/family_design.h"

namespace qlp {
namespace {

std::string replaced(std::string name, std::string_view what, std::string_view by) {
  if (const auto at = name.find(what); at != std::string::npos) name.replace(at, what.size(), by);
  return name;
}

class Writer {
 public:
  Writer(const ModelSpec& spec, DType dtype)
      : names_(design_of(spec.family).experts), stacks_(design_of(spec.family).biased_stacks), dtype_(dtype) {}

  void add(const Parameter& parameter, bool mixture) {
    const std::string_view name = parameter.name;
    constexpr std::string_view kGateUp = ".experts.gate_up_proj", kDown = ".experts.down_proj";
    if (name.ends_with(kGateUp) && !stacks_) {
      add_experts(name.substr(0, name.size() - kGateUp.size()), parameter.shape);
    } else if (!name.ends_with(kDown) || stacks_) {
      const bool linear = parameter.role == ParamRole::base_weight;
      tensors_.push_back({mixture ? in_block(parameter.name) : parameter.name, dtype_, parameter.shape, linear, ""});
    }
  }
  std::vector<StoredTensor> take() { return std::move(tensors_); }

 private:
  std::string in_block(const std::string& name) const { return replaced(name, ".mlp.gate.", gate_of_block()); }
  std::string gate_of_block() const { return "." + std::string(names_.block) + ".gate."; }

  /// A stack of gate and up, [experts, 2 x width, hidden], and the one of down with it.
  void add_experts(std::string_view mlp, const Shape& gate_up) {
    const std::int64_t width = gate_up[1] / 2, hidden = gate_up[2];
    const std::string block = replaced(std::string(mlp), ".mlp", "." + std::string(names_.block)) + ".experts.";
    for (std::int64_t i = 0; i < gate_up[0]; ++i) {
      const std::string expert = block + std::to_string(i) + ".";
      const auto matrix = [&](std::string_view leaf, const Shape& shape) {
        tensors_.push_back({expert + std::string(leaf) + ".weight", dtype_, shape, true, ""});
      };
      matrix(names_.gate, {width, hidden});
      matrix(names_.up, {width, hidden});
      matrix(names_.down, {hidden, width});
    }
  }

  ExpertNames names_;
  bool stacks_;  ///< are in the files as they are
  DType dtype_;
  std::vector<StoredTensor> tensors_;
};

}  // namespace

std::vector<StoredTensor> model_tensors(const ModelSpec& spec, DType dtype) {
  const auto model = build_model(spec, {});
  Writer writer(spec, dtype);
  for (const Parameter* parameter : (*model)->parameters()) writer.add(*parameter, spec.experts.has_value());
  return writer.take();
}

}  // namespace qlp
