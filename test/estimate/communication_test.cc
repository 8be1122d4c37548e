#include "estimate/communication.h"

#include <utility>

#include <doctest/doctest.h>

#include "estimate/estimate.h"
#include "estimate/small_jobs.h"
#include "plan/catalogue.h"

namespace qlp {
namespace {

/// A full fine-tune of a small Llama on two ranks, whose dimensions are even but for the vocabulary.
JobSpec two_ranks() {
  JobSpec job = small_job(small_model(Family::llama));
  job.cluster.world_size = 2;
  return job;
}

Communication sent_under(JobSpec job, NamedPlan plan) {
  job.plans = {std::move(plan)};
  const Report report = estimate(job);
  REQUIRE_MESSAGE(report.plans[0].applicable(), report.plans[0].reason());
  return report.plans[0].communication;
}

/// Bytes of the wholes of one kind of collective over an axis of the mesh.
std::uint64_t payload(const Communication& communication, Collective kind, MeshAxis axis) {
  std::uint64_t bytes = 0;
  for (const CollectiveTotal& total : communication.collectives)
    if (total.kind == kind && total.group.axis == axis) bytes += total.payload.count();
  return bytes;
}

// Elements of the parameters, where two ranks share the first dimension.
constexpr std::uint64_t kLayer =
    96 * 72 + 2 * 48 * 72 + 72 * 96 /* q, k, v, o */ + 3 * 100 * 72 /* mlp */ + 2 * 72 /* norms */;
constexpr std::uint64_t kTable = 131 * 72, kPaddedTable = 132 * 72, kNorm = 72;

}  // namespace

TEST_CASE("estimate/communication: what a ring sends") {
  CHECK(sent_bytes(Collective::all_gather, 4, 1000) == 750);
  CHECK(sent_bytes(Collective::reduce_scatter, 4, 1000) == 750);
  CHECK(sent_bytes(Collective::all_reduce, 4, 1000) == 1500);
  CHECK(sent_bytes(Collective::all_to_all, 8, 1000) == 875);
  CHECK(sent_bytes(Collective::broadcast, 8, 1000) == 1000);
  CHECK(sent_bytes(Collective::send, 8, 1000) == 1000);
  CHECK(sent_bytes(Collective::recv, 8, 1000) == 0);
  CHECK(sent_bytes(Collective::all_reduce, 3, 8) == 12);  // rounded up in each half
  for (std::size_t kind = 0; kind < kCollectiveNames.size(); ++kind)
    CHECK(sent_bytes(static_cast<Collective>(kind), 1, 1000) == 0);
}

TEST_CASE("estimate/communication: how groups lie on nodes of eight GPUs") {
  const auto layout = [](std::int64_t size, std::int64_t stride) {
    const GroupLayout l = layout_of({MeshAxis::dp_shard, size, stride}, 8);
    return std::pair{l.ranks_on_node, l.nodes};
  };
  CHECK(layout(8, 1) == std::pair<std::int64_t, std::int64_t>{8, 1});
  CHECK(layout(4, 2) == std::pair<std::int64_t, std::int64_t>{4, 1});
  CHECK(layout(64, 1) == std::pair<std::int64_t, std::int64_t>{8, 8});
  CHECK(layout(8, 8) == std::pair<std::int64_t, std::int64_t>{1, 8});
  CHECK(layout(16, 2) == std::pair<std::int64_t, std::int64_t>{4, 4});
  CHECK(layout(2, 100) == std::pair<std::int64_t, std::int64_t>{1, 2});
}

TEST_CASE("estimate/communication: one rank sends nothing, under no plan") {
  JobSpec job = two_ranks();
  job.cluster.world_size = 1;
  for (const char* name : {"single", "ddp", "fsdp1-full-shard", "fsdp2", "fsdp2-no-reshard"}) {
    CAPTURE(name);
    const Communication sent = sent_under(job, *find_plan(name));
    CHECK(sent.collectives.empty());
    CHECK(sent.sent == Bytes{});
  }
}

TEST_CASE("estimate/communication: a plan for one GPU sends nothing to those that the job leaves idle") {
  CHECK(sent_under(two_ranks(), {"single", Single{}}).collectives.empty());
}

TEST_CASE("estimate/communication: DDP sums its gradients once a step, however many micro steps there are") {
  for (const std::int64_t accumulation : {1, 3, 9}) {
    JobSpec job = two_ranks();
    job.dtype = DType::float32;
    job.training.gradient_accumulation_steps = accumulation;
    const Communication sent = sent_under(job, {"ddp", Ddp{}});
    const std::uint64_t gradients = 4 * (2 * kLayer + 2 * kTable + kNorm);
    CHECK(payload(sent, Collective::all_reduce, MeshAxis::dp_replicate) == gradients);
    for (const CollectiveTotal& total : sent.collectives)
      if (total.kind == Collective::all_reduce) CHECK(total.sent.count() == gradients);  // 2 (n - 1) / n
  }
}

TEST_CASE("estimate/communication: FSDP2 gathers every unit forward and backward, and reduces its gradients once") {
  JobSpec job = two_ranks();
  job.dtype = DType::float32;
  // Units that are not given up after the forward pass are gathered once: the final norm with the head.
  const std::uint64_t once = kNorm + kPaddedTable, whole = 2 * kLayer + kPaddedTable + once;
  const Communication full = sent_under(job, {"fsdp2", Fsdp2{}});
  CHECK(payload(full, Collective::all_gather, MeshAxis::dp_shard) == 2 * (2 * whole - once));  // in bfloat16
  const Communication kept = sent_under(job, {"fsdp2-no-reshard", Fsdp2{.reshard_after_forward = false}});
  CHECK(payload(kept, Collective::all_gather, MeshAxis::dp_shard) == 2 * whole);
  for (const Communication& sent : {full, kept}) {
    const std::uint64_t reduced = payload(sent, Collective::reduce_scatter, MeshAxis::dp_shard);
    CHECK(reduced == 2 * whole);
  }
}

TEST_CASE("estimate/communication: FSDP1 gathers units that it reshards twice, others once, and all of the root") {
  JobSpec job = two_ranks();
  job.dtype = DType::float32;
  const std::uint64_t root = 2 * kTable + kNorm, whole = 2 * kLayer + root;
  const Communication full = sent_under(job, *find_plan("fsdp1-full-shard"));
  CHECK(payload(full, Collective::all_gather, MeshAxis::dp_shard) == 2 * (2 * whole - root));  // in bfloat16
  const Communication kept = sent_under(job, *find_plan("fsdp1-shard-grad-op"));
  CHECK(payload(kept, Collective::all_gather, MeshAxis::dp_shard) == 2 * whole);
  for (const Communication& sent : {full, kept})
    CHECK(payload(sent, Collective::reduce_scatter, MeshAxis::dp_shard) == 2 * whole);
}

TEST_CASE("estimate/communication: hybrid sharding gathers within nodes and sums shards between them") {
  JobSpec job = two_ranks();
  job.dtype = DType::float32;
  job.cluster.world_size = 8;
  job.cluster.gpus_per_node = 2;
  const Communication sent = sent_under(job, *find_plan("fsdp1-hybrid-shard"));
  const std::uint64_t gathered = payload(sent, Collective::all_gather, MeshAxis::dp_shard);
  JobSpec alone = two_ranks();
  alone.dtype = DType::float32;
  const Communication node = sent_under(alone, *find_plan("fsdp1-full-shard"));
  CHECK(gathered == payload(node, Collective::all_gather, MeshAxis::dp_shard));
  const std::uint64_t reduced = payload(sent, Collective::reduce_scatter, MeshAxis::dp_shard);
  CHECK(payload(sent, Collective::all_reduce, MeshAxis::dp_replicate) == reduced / 2);
  for (const CollectiveTotal& total : sent.collectives) {
    const GroupLayout layout = layout_of(total.group, job.cluster.gpus_per_node);
    if (total.group.axis == MeshAxis::dp_shard) CHECK(layout.nodes == 1);
    if (total.group.axis == MeshAxis::dp_replicate) CHECK(layout.ranks_on_node == 1);
  }
}

TEST_CASE("estimate/communication: offloaded shards come over PCIe whenever they are gathered, gradients go back") {
  JobSpec job = two_ranks();
  job.dtype = DType::float32;
  NamedPlan plan = *find_plan("fsdp1-full-shard");
  const Communication kept = sent_under(job, plan);
  CHECK(kept.host_to_device == Bytes{2 * 16 * 8 + 8});  // the batch, and the number of items
  CHECK(kept.device_to_host == Bytes{});
  std::get<Fsdp1>(plan.plan).cpu_offload = true;
  const Communication offloaded = sent_under(job, plan);
  const std::uint64_t shard = (2 * kLayer + 2 * kTable + kNorm) / 2;
  CHECK(offloaded.host_to_device > kept.host_to_device + Bytes{2 * shard});
  CHECK(offloaded.device_to_host >= Bytes{2 * shard});
}

TEST_CASE("estimate/communication: sharded weights are gathered in every micro step, gradients reduced in the last") {
  for (const char* name : {"fsdp1-full-shard", "fsdp2", "fsdp2-no-reshard"}) {
    CAPTURE(name);
    JobSpec job = two_ranks();
    const Communication one = sent_under(job, *find_plan(name));
    for (const std::int64_t accumulation : {2, 4, 7}) {
      CAPTURE(accumulation);
      job.training.gradient_accumulation_steps = accumulation;
      const Communication many = sent_under(job, *find_plan(name));
      const auto times = static_cast<std::uint64_t>(accumulation);
      CHECK(payload(many, Collective::all_gather, MeshAxis::dp_shard) ==
            times * payload(one, Collective::all_gather, MeshAxis::dp_shard));
      CHECK(payload(many, Collective::reduce_scatter, MeshAxis::dp_shard) ==
            payload(one, Collective::reduce_scatter, MeshAxis::dp_shard));
    }
  }
}

TEST_CASE("estimate/communication: more ranks send more, up to the whole") {
  JobSpec job = two_ranks();
  Bytes before;
  for (const std::int64_t ranks : {2, 4, 8}) {
    job.cluster.world_size = ranks;
    const Communication sent = sent_under(job, {"fsdp2", Fsdp2{}});
    CHECK(sent.sent > before);
    before = sent.sent;
    for (const CollectiveTotal& total : sent.collectives) CHECK(total.sent <= total.payload * 2);
  }
}

// Two sums forward, of attention and MLP, as in Megatron-LM (Shoeybi et al. 2019, figure 4); backward Megatron-LM has
// two as well, and transformers one behind each of q, k, v, gate and up.
TEST_CASE("estimate/communication: a layer that ranks share sums its activations seven times") {
  const auto summed = [](std::int64_t layers) {
    JobSpec job = two_ranks();
    job.model.vocab_size = 132, job.model.num_hidden_layers = layers;
    job.training.max_grad_norm = 0, job.training.bf16 = false;
    job.cluster.mesh.tp = 2;
    return payload(sent_under(job, {"single", Single{}}), Collective::all_reduce, MeshAxis::tp);
  };
  const std::uint64_t activations = 16 * 72 * 2;  // tokens, hidden size, bfloat16
  const std::uint64_t norm = 2;                   // of the gradient of each weight
  CHECK(summed(3) - summed(2) == 7 * (activations + norm));
  CHECK(summed(2) == 2 * 7 * (activations + norm) + 2 * (activations + norm));  // of the tables too
}

// transformers distributed/tensor_parallel.py, ReplicatedWithGradAllReduce.
TEST_CASE("estimate/communication: ranks that norm different heads sum the gradients of the gains") {
  const auto summed = [](Family family) {
    JobSpec job = two_ranks();
    job.model = small_model(family);
    job.model.vocab_size = 132;
    job.cluster.mesh.tp = 2;
    return payload(sent_under(job, {"single", Single{}}), Collective::all_reduce, MeshAxis::tp);
  };
  const std::uint64_t gains = 2 * 2 * 24 * 2;  // of q and k in two layers, in bfloat16
  CHECK(summed(Family::qwen3) == summed(Family::llama) + gains);
}

}  // namespace qlp
