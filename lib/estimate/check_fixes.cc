#include "estimate/check_fixes.h"

#include "estimate/model_options.h"
#include "plan/catalogue.h"

namespace qlp {

void add(std::vector<Fix>& fixes, std::initializer_list<std::optional<Fix>> more) {
  for (const auto& fix : more)
    if (fix) fixes.push_back(*fix);
}

std::optional<Fix> checkpointing(const CheckedPlan& checked) {
  if (checked.job.training.gradient_checkpointing != GradientCheckpointing::none) return std::nullopt;
  const auto* zero = std::get_if<Zero>(&checked.plan.plan);
  if (zero && zero->stage == 3) return reentrant_checkpointing(checked);
  return changed(checked, "set training.gradient_checkpointing to {use_reentrant: false}",
                 [](Fix& fix) { fix.job.training.gradient_checkpointing = GradientCheckpointing::nonreentrant; });
}

std::optional<Fix> reentrant_checkpointing(const CheckedPlan& checked) {
  return changed(checked, "set training.gradient_checkpointing to {use_reentrant: true}",
                 [](Fix& fix) { fix.job.training.gradient_checkpointing = GradientCheckpointing::reentrant; });
}

std::optional<Fix> fused_loss(const CheckedPlan& checked) {
  const JobSpec& job = checked.job;
  if (job.training.loss == Loss::liger || !liger_knows(job.model.family, job.stack)) return std::nullopt;
  return changed(checked, "set training.loss to liger, which never holds all logits at once",
                 [](Fix& fix) { fix.job.training.loss = Loss::liger; });
}

std::optional<Fix> smaller_batch(const CheckedPlan& checked) {
  const std::int64_t batch = checked.job.training.micro_batch_size;
  if (batch < 2) return std::nullopt;
  const std::string text =
      "lower training.micro_batch_size to " + std::to_string(batch / 2) + " and double gradient_accumulation_steps";
  return changed(checked, text, [](Fix& fix) {
    fix.job.training.micro_batch_size /= 2;
    fix.job.training.gradient_accumulation_steps *= 2;
  });
}

std::optional<Fix> narrow_adapters(const CheckedPlan& checked) {
  const JobSpec& job = checked.job;
  if (!job.adapter || job.dtype == DType::float32 || job.adapter->dtype == job.dtype) return std::nullopt;
  return changed(checked, "set adapter.dtype to " + std::string(name_of(job.dtype)),
                 [](Fix& fix) { fix.job.adapter->dtype = fix.job.dtype; });
}

std::optional<Fix> no_dropout(const CheckedPlan& checked) {
  if (!checked.job.adapter || checked.job.adapter->lora_dropout == 0) return std::nullopt;
  return changed(checked, "set adapter.lora_dropout to 0", [](Fix& fix) { fix.job.adapter->lora_dropout = 0; });
}

std::optional<Fix> quantized_base(const CheckedPlan& checked) {
  if (!checked.job.adapter || checked.job.quantization) return std::nullopt;
  return changed(checked, "quantize the base (quantization: {quant_type: nf4, double_quant: true})", [](Fix& fix) {
    fix.job.quantization =
        QuantizationSpec{.double_quant = true, .quant_storage = fix.job.dtype, .compute_dtype = fix.job.dtype};
  });
}

std::optional<Fix> sharded_storage(const CheckedPlan& checked) {
  if (!checked.job.quantization || is_floating(checked.job.quantization->quant_storage)) return std::nullopt;
  Fix fix = under_plan(checked, "fsdp2");
  fix.text += ", and set quantization.quant_storage to " + std::string(name_of(checked.job.dtype));
  fix.job.quantization->quant_storage = fix.job.dtype;
  return fix;
}

std::optional<Fix> as_meant(const CheckedPlan& checked) {
  const Mistake* mistake = find_mistake(checked.plan.name);
  return mistake ? std::optional{under_plan(checked, std::string(mistake->right))} : std::nullopt;
}

std::optional<Fix> usual_wrapping(const CheckedPlan& checked) {
  return changed(checked, "leave auto_wrap_policy out", [](Fix& fix) {
    if (auto* fsdp1 = std::get_if<Fsdp1>(&fix.plan.plan)) fsdp1->auto_wrap_policy.reset();
    if (auto* fsdp2 = std::get_if<Fsdp2>(&fix.plan.plan)) fsdp2->auto_wrap_policy = Fsdp2Wrap::transformer_based_wrap;
  });
}

Fix under_plan(const CheckedPlan& checked, const std::string& plan) {
  return changed(checked, "take the plan " + plan, [&](Fix& fix) { fix.plan = *find_plan(plan); });
}

}  // namespace qlp
