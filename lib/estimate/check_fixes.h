// Changes to a job that `check` tries, each where there is something to change.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "estimate/check_rules.h"

namespace qlp {

/// The job with one thing changed.
template <class Change>
Fix changed(const CheckedPlan& checked, std::string text, Change&& change) {
  Fix fix{std::move(text), checked.job, checked.plan};
  change(fix);
  return fix;
}

/// Appends those that there are.
void add(std::vector<Fix>& fixes, std::initializer_list<std::optional<Fix>> more);

/// Of the kind that the plan runs with.
std::optional<Fix> checkpointing(const CheckedPlan& checked);
std::optional<Fix> reentrant_checkpointing(const CheckedPlan& checked);
std::optional<Fix> fused_loss(const CheckedPlan& checked);
/// Half the micro batch, twice the accumulation: the same step.
std::optional<Fix> smaller_batch(const CheckedPlan& checked);
/// Adapters, and copies of modules_to_save, in the dtype of the model.
std::optional<Fix> narrow_adapters(const CheckedPlan& checked);
std::optional<Fix> no_dropout(const CheckedPlan& checked);
/// The base in 4 bits.
std::optional<Fix> quantized_base(const CheckedPlan& checked);
/// The plan that was meant, where this one is a mistake.
std::optional<Fix> as_meant(const CheckedPlan& checked);
/// Units as the Trainer makes them.
std::optional<Fix> usual_wrapping(const CheckedPlan& checked);
/// A 4-bit base stored as floats and sharded.
std::optional<Fix> sharded_storage(const CheckedPlan& checked);
/// The same job under another plan, with its options at their defaults.
Fix under_plan(const CheckedPlan& checked, const std::string& plan);

}  // namespace qlp
