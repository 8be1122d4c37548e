#include "estimate/eight_bit_rules.h"

#include <variant>

#include "base/refusal.h"

namespace qlp {

Diagnostics check_eight_bit(const JobSpec& job, const ShardingPlan& plan) {
  Diagnostics refusals;
  if (!job.quantization || !job.quantization->eight_bit()) return refusals;
  const auto refuse = [&](const char* code, const char* message, const char* key_path, const char* hint) {
    refusals.push_back(refusal(code, message, key_path, hint));
  };
  if (std::holds_alternative<Fsdp1>(plan) || std::holds_alternative<Fsdp2>(plan))
    refuse("int8-sharded", "FSDP cannot cut 8-bit weights: they are integers, and their scales are no parameters",
           "quantization.quant_type", "plan ddp, or take nf4 with quant_storage bfloat16");
  if (!job.adapter)
    refuse("int8-without-adapter",
           "'You cannot perform fine-tuning on purely quantized models. Please attach trainable adapters'",
           "quantization.quant_type", "add an adapter section");
  if (job.adapter && job.adapter->use_dora && job.stack.peft < Version{0, 14, 0})
    refuse("int8-dora", "how PEFT before 0.14 makes whole weights of 8-bit ones for DoRA is not worked out",
           "adapter.use_dora", "take nf4, or a newer stack.peft");
  const auto* zero = std::get_if<Zero>(&plan);
  if (job.adapter && job.adapter->use_dora && zero && zero->stage == 3)
    refuse("int8-dora-zero3", "what DoRA makes of 8-bit weights that ZeRO-3 has cut is not worked out yet",
           "adapter.use_dora", "plan zero2, or take nf4");
  if (job.model.experts)
    refuse("int8-experts", "mixtures of experts with 8-bit weights are not worked out yet", "quantization.quant_type",
           "take nf4");
  return refusals;
}

Diagnostics eight_bit_notes(const JobSpec& job) {
  if (!job.quantization || !job.quantization->eight_bit() || job.quantization->llm_int8_threshold <= 0) return {};
  Diagnostic note = refusal("int8-outliers",
                            "columns of inputs with outliers are copied and multiplied in 16 bits, which depends on "
                            "values: none are planned",
                            "quantization.llm_int8_threshold", "");
  note.severity = Severity::note;
  return {std::move(note)};
}

}  // namespace qlp
