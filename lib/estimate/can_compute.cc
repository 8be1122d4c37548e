#include "estimate/can_compute.h"

#include <cstdint>
#include <variant>

#include "base/refusal.h"
#include "plan/loading.h"

namespace qlp {
namespace {

/// The pairs of token and expert of all ranks that share experts divide by the experts.
bool routes_evenly(const JobSpec& job) {
  if (!job.model.experts) return true;
  const Mesh& mesh = job.cluster.mesh;
  const std::int64_t tokens = job.training.micro_batch_size * job.training.seq_len;
  const std::int64_t pairs = tokens * job.model.experts->num_experts_per_tok * mesh.ep;
  return tokens % mesh.tp == 0 && pairs % (mesh.tp * job.model.experts->num_experts) == 0;
}

}  // namespace

Diagnostics check_can_compute(const JobSpec& job, const ShardingPlan& plan) {
  Diagnostics refusals;
  if (job.cluster.mesh.ep > 1 && !routes_evenly(job))
    refusals.push_back(refusal("uneven-experts",
                               "the tokens of a batch cannot go to all experts evenly, which is what is predicted of "
                               "experts that ranks share",
                               "training.micro_batch_size",
                               "let micro_batch_size x seq_len x experts of a token x ep / tp be a multiple of the "
                               "experts, and micro_batch_size x seq_len one of tp; or only estimate"));
  // fsdp_utils.py, fsdp2_prepare_model: model_has_params4bit
  if (std::holds_alternative<Fsdp2>(plan) && load_path(job, plan) == LoadPath::through_gpu)
    refusals.push_back(refusal("fsdp2-4bit-unsent",
                               "the first rank alone has read the weights, and accelerate sends none under FSDP2 where "
                               "some are in 4 bits: the other ranks would train on nothing",
                               "model.loading", "set loading to gpu, or only estimate"));
  const bool first_rank_reads =
      std::holds_alternative<Fsdp2>(plan) && loading_under(job, plan) == Loading::rank0 && job.cluster.world_size > 1;
  if (first_rank_reads && job.cluster.mesh.pp > 1)
    refusals.push_back(refusal("cannot-compute",
                               "one rank alone reads weights, and stages of which it is none would train on nothing",
                               "model.loading", "set loading to gpu or cpu, or only estimate"));
  return refusals;
}

}  // namespace qlp
