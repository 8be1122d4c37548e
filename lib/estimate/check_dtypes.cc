#include "base/shape.h"
#include "estimate/check_fixes.h"
#include "estimate/check_rules.h"
#include "estimate/fsdp2_plan.h"
#include "estimate/weight_list.h"

namespace qlp {
namespace {

/// Elements of the weights that are counted, and what they take in float32 where they are whole.
template <class Counts>
Bytes in_float32(const CheckedPlan& checked, Counts&& counts) {
  Bytes sum;
  for (const ListedWeight& weight : list_weights(checked.job, checked.stack.load))
    if (counts(weight)) sum += bytes_of(weight.stored(), DType::float32);
  return sum;
}

bool is_frozen_float(const ListedWeight& weight) { return !weight.trained && weight.kind != WeightKind::packed; }

/// accelerate casts all parameters under FSDP2, frozen ones too.
bool casts_all(const CheckedPlan& checked) {
  const auto* fsdp2 = std::get_if<Fsdp2>(&checked.plan.plan);
  return fsdp2 && upcast_of(checked.job, *fsdp2, checked.stack) == Fsdp2Upcast::whole_model;
}

void check_frozen(const CheckedPlan& checked, std::vector<Suspicion>& out) {
  const JobSpec& job = checked.job;
  if (!job.adapter) return;
  Suspicion found;
  found.finding.code = "fp32-upcast-of-frozen-base";
  if (job.dtype == DType::float32) {
    found.finding.message = "the frozen base is loaded in float32, twice as wide as it needs to be";
    found.finding.key_path = "model.dtype";
    found.fixes.push_back(changed(checked, "set model.dtype to bfloat16", [](Fix& fix) {
      fix.job.dtype = DType::bfloat16;
      if (fix.job.quantization) fix.job.quantization->compute_dtype = DType::bfloat16;
    }));
  } else if (casts_all(checked)) {
    found.finding.severity = Severity::error;
    found.finding.message =
        "every parameter under FSDP2 is cast to float32, the frozen base too, as accelerate did until 1.12";
    found.finding.key_path = "stack.accelerate";
    add(found.fixes, {as_meant(checked)});
    found.fixes.push_back(changed(checked, "take accelerate 1.15.0",
                                  [](Fix& fix) { fix.job.stack.accelerate = StackVersions{}.accelerate; }));
  } else if (job.quantization && job.quantization->prepare_kbit) {
    found.finding.message = "prepare_model_for_kbit_training turns the embedding, the head and the norms into float32";
    found.finding.key_path = "quantization.prepare_kbit";
    found.fixes.push_back(changed(checked, "leave quantization.prepare_kbit out",
                                  [](Fix& fix) { fix.job.quantization->prepare_kbit = false; }));
  } else {
    return;
  }
  found.finding.evidence = in_float32(checked, is_frozen_float);
  out.push_back(std::move(found));
}

/// Copies of whole modules that are trained: 16 bytes an element with gradient and AdamW's moments.
void check_saved_copies(const CheckedPlan& checked, std::vector<Suspicion>& out) {
  const Bytes copies = in_float32(checked, [](const ListedWeight& weight) {
    return weight.kind == WeightKind::saved_copy && weight.dtype == DType::float32;
  });
  if (copies == Bytes{} || checked.job.dtype == DType::float32) return;
  Suspicion found;
  found.finding.code = "modules-to-save-in-float32";
  found.finding.message = "the copies of modules_to_save are trained in float32, with gradients and optimizer state";
  found.finding.evidence = copies;
  found.finding.key_path = "adapter.modules_to_save";
  add(found.fixes, {narrow_adapters(checked)});
  out.push_back(std::move(found));
}

}  // namespace

std::vector<Suspicion> dtype_rules(const CheckedPlan& checked) {
  std::vector<Suspicion> out;
  if (!checked.ran()) return out;
  check_frozen(checked, out);
  check_saved_copies(checked, out);
  return out;
}

}  // namespace qlp
