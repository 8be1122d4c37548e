// What a rank holds after the last step, in closed form: the second answer beside the dry run, which must equal it to
// the byte. Worked out from job, plan and rank alone; no tensor is made and nothing is run.
//
// Counted, as bytes that tensors ask for (rounding to blocks is the allocator's), by category:
// - parameters: base weights as the plan leaves them on the rank, with their padding; buffers
// - quant_state: statistics of the 4-bit weights, which no plan shards
// - adapter: LoRA matrices, DoRA magnitudes and copies of modules_to_save, as the plan leaves them
// - optimizer_state: what the optimizer keeps of what is trained (optimizer_state.h), under FSDP2 without padding
// - gradients: what zero_grad leaves, the flat gradient that FSDP1 holds on to with use_orig_params
// - gathered_weights: biases of 4-bit layers, which FSDP1 without use_orig_params leaves as they were last cast
// - logits_and_loss: the running sum of the losses, which transformers 5 keeps
// - communication_buffers: the buckets of DDP
// - workspace: cuBLAS of the two threads that launch; the zero of FSDP1's clipping; the scale of a float16 loss
#pragma once

#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "estimate/report.h"
#include "plan/job_spec.h"

namespace qlp {

/// Requested bytes by category on `rank`, of a plan that the job's stack does not refuse.
CategoryBytes persistent_state(const JobSpec& job, const ShardingPlan& plan, std::int64_t rank);

/// What its optimizer keeps in memory that CUDA moves between GPU and host, beside all that.
Bytes managed_state(const JobSpec& job, const ShardingPlan& plan, std::int64_t rank);

/// Parameters of the job's model, adapters included.
ParameterCounts count_parameters(const JobSpec& job);

/// Weights that are kept alike, in the textbook's ledger, which knows no padding.
struct LedgerEntry {
  std::int64_t weights = 0;
  double bits = 16;          ///< of one weight
  std::int64_t moments = 0;  ///< that the optimizer keeps beside each, equally wide
  bool sharded = false;      ///< over all ranks, else whole on each
};

/// What one of `ranks` ranks keeps of them, in units of 2 bytes.
double ledger_units(std::span<const LedgerEntry> entries, std::int64_t ranks);

}  // namespace qlp
