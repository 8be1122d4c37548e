#include <array>
#include <string_view>

#include "estimate/adapter_names.h"
#include "estimate/check_fixes.h"
#include "estimate/check_rules.h"

namespace qlp {
namespace {

struct Mend {
  std::string_view refusal;  ///< code of a refusal
  std::string_view finding;  ///< that of the rule it breaks
  std::optional<Fix> (*fix)(const CheckedPlan& checked);
};

std::optional<Fix> store_as_floats(const CheckedPlan& checked) {
  const std::string text =
      "set quantization.quant_storage to " + std::string(name_of(checked.job.dtype)) + ", the dtype of the model";
  return changed(checked, text, [](Fix& fix) { fix.job.quantization->quant_storage = fix.job.dtype; });
}

std::optional<Fix> leave_kbit_out(const CheckedPlan& checked) {
  return changed(checked, "leave quantization.prepare_kbit out and store in the dtype of the model", [](Fix& fix) {
    fix.job.quantization->prepare_kbit = false;
    fix.job.quantization->quant_storage = fix.job.dtype;
  });
}

std::optional<Fix> train_mixed(const CheckedPlan& checked) {
  return changed(checked, "set training.mixed_precision to bf16", [](Fix& fix) { fix.job.training.bf16 = true; });
}

std::optional<Fix> take_torch_adamw(const CheckedPlan& checked) {
  return changed(checked, "set training.optimizer to adamw_torch",
                 [](Fix& fix) { fix.job.training.optimizer = named_optimizer("adamw_torch"); });
}

constexpr std::array kMends{
    Mend{"fsdp1-integer-storage", "quantized-base-sharded-without-float-storage", store_as_floats},
    Mend{"fsdp2-integer-storage", "quantized-base-sharded-without-float-storage", store_as_floats},
    Mend{"fsdp1-mixed-dtypes", "mixed-fsdp1-unit", leave_kbit_out},
    Mend{"fsdp1-mixed-unit", "mixed-fsdp1-unit", usual_wrapping},
    Mend{"fsdp1-adapter-dtype", "mixed-fsdp1-unit", train_mixed},
    Mend{"fsdp1-gradient-dtypes", "mixed-fsdp1-unit", train_mixed},
    Mend{"zero3-nonreentrant-checkpointing", "zero3-nonreentrant-checkpointing", reentrant_checkpointing},
    Mend{"bnb-optimizer-on-dtensor", "bnb-optimizer-on-dtensor", take_torch_adamw},
};

Finding finding_of(const Diagnostic& told) {
  return {.severity = told.severity,
          .code = told.code,
          .plan = {},
          .message = told.message,
          .evidence = std::nullopt,
          .hint = told.hint,
          .key_path = told.key_path,
          .fix = std::nullopt};
}

Suspicion suspicion_of(const Diagnostic& refusal, const CheckedPlan& checked) {
  Suspicion out;
  out.finding = finding_of(refusal);
  out.finding.severity = Severity::error;
  for (const Mend& mend : kMends) {
    if (mend.refusal != refusal.code) continue;
    out.finding.code = mend.finding;
    add(out.fixes, {mend.fix(checked)});
  }
  return out;
}

}  // namespace

std::vector<Suspicion> name_rules(const CheckedPlan& checked) {
  std::vector<Suspicion> out;
  for (const Diagnostic& warning : adapter_warnings(checked.job)) out.push_back({finding_of(warning), {}});
  return out;
}

std::vector<Suspicion> refusal_rules(const CheckedPlan& checked) {
  std::vector<Suspicion> out;
  for (const Diagnostic& refusal : checked.report.refusals) out.push_back(suspicion_of(refusal, checked));
  return out;
}

}  // namespace qlp
