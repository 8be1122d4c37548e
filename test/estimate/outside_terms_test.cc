#include "estimate/outside_terms.h"

#include <doctest/doctest.h>

#include "estimate/nccl_memory.h"
#include "plan/gpu_catalogue.h"

namespace qlp {
namespace {

constexpr Version kNow{2, 8, 0};

std::uint64_t mib(const CommunicatorSpec& spec) { return communicator_memory(spec).bytes.count() >> 20; }

}  // namespace

TEST_CASE("estimate/outside_terms: one GPU has a context and libraries, more have a communicator") {
  JobSpec job;
  job.cluster.gpu = *find_gpu("H100 SXM5 80GB");
  job.cluster.world_size = 8;
  const auto single = outside_terms(job, {"single", Single{}});
  REQUIRE(single.size() == 2);
  CHECK(single[0].name == "cuda_context");
  CHECK(single[0].bytes == Bytes{528ULL << 20});
  CHECK(single[1].name == "library_overhead");

  const auto fsdp2 = outside_terms(job, {"fsdp2", Fsdp2{}});
  REQUIRE(fsdp2.size() == 3);
  CHECK(fsdp2[2].name == "nccl");
  CHECK(fsdp2[2].bytes == Bytes{806ULL << 20});
  CHECK(sum(fsdp2) == Bytes{(528ULL + 164 + 806) << 20});
  CHECK(outside_terms(job, {"ddp", Ddp{}})[2].bytes == Bytes{1094ULL << 20});
  for (const auto& term : fsdp2) CHECK_FALSE(term.source.empty());
}

TEST_CASE("estimate/outside_terms: singular vectors need cuSOLVER, whose handle has memory of its own") {
  JobSpec job;
  job.cluster.gpu = *find_gpu("H100 SXM5 80GB");
  job.training.optimizer = named_optimizer("galore_adamw");
  const auto terms = outside_terms(job, {"single", Single{}});
  REQUIRE(terms.size() == 3);
  CHECK(terms[2].name == "cusolver");
  CHECK(terms[2].bytes == Bytes{32ULL << 20});
  job.cluster.gpu = *find_gpu("A100 SXM4 80GB");
  CHECK(outside_terms(job, {"single", Single{}})[2].bytes == Bytes{4ULL << 20});
}

TEST_CASE("estimate/outside_terms: hybrid sharding has a communicator of all, one of the node, one of the replicas") {
  JobSpec job;
  job.stack.torch = kNow;
  job.cluster.gpu = *find_gpu("H100 SXM5 80GB");
  job.cluster.world_size = 16;
  const auto terms = outside_terms(job, {"", Fsdp1{.sharding_strategy = ShardingStrategy::hybrid_shard}});
  REQUIRE(terms.size() == 3);
  const CommunicatorSpec node{.torch = kNow, .ranks = 8, .ranks_per_node = 8, .compute_capability = 90};
  CommunicatorSpec all = node, replicas = node;
  all.ranks = 16;
  replicas.ranks = 2, replicas.ranks_per_node = 1, replicas.all_reduce = true;
  CHECK(terms[2].bytes == Bytes{(mib(all) + mib(node) + mib(replicas)) << 20});
}

TEST_CASE(
    "estimate/outside_terms: each dimension of a mesh has a communicator, and each unit that is resharded to a group") {
  JobSpec job;
  job.cluster.gpu = *find_gpu("A100 SXM4 80GB");
  job.cluster.world_size = 16;
  job.model.num_hidden_layers = 3;
  const auto nccl = [&](const Fsdp2& plan) { return outside_terms(job, {"plan", plan}).back().bytes.count() >> 20; };
  const std::uint64_t ring = mib({.torch = kNow, .ranks = 16, .ranks_per_node = 8});
  const std::uint64_t with_trees = mib({.torch = kNow, .ranks = 2, .ranks_per_node = 1, .all_reduce = true});
  CHECK(nccl({}) == ring);
  CHECK(nccl({.hybrid = true}) == 2 * ring + with_trees);
  CHECK(nccl({.reshard_after_forward = 8}) == (1 + 3 + 1) * ring);  // the layers, and the embedding
  CHECK(nccl({.reshard_after_forward = 1}) == ring);
  CHECK(nccl({.reshard_after_forward = 16}) == ring);
  job.model.tie_word_embeddings = true;
  CHECK(nccl({.reshard_after_forward = 8}) == (1 + 3) * ring);
}

TEST_CASE("estimate/outside_terms: graphics cards have smaller contexts") {
  JobSpec job;
  job.cluster.gpu = *find_gpu("RTX 4090");
  // 3.2 MiB x 128 multiprocessors
  CHECK(outside_terms(job, {"single", Single{}})[0].bytes == Bytes{410ULL << 20});
}

TEST_CASE("estimate/outside_terms: NCCL by link, ranks and release") {
  // Two or four GPUs over NVLink without NVLS.
  CHECK(mib({.torch = kNow, .ranks = 4, .ranks_per_node = 8}) == 484);
  // Eight with NVLS; across nodes a gather does not use it.
  CHECK(mib({.torch = kNow, .ranks = 8, .ranks_per_node = 8, .compute_capability = 90}) == 806);
  CHECK(mib({.torch = kNow, .ranks = 16, .ranks_per_node = 8, .compute_capability = 90}) == 548);
  // PCIe with peer access and without.
  CHECK(mib({.torch = kNow, .ranks = 2, .ranks_per_node = 2, .link = GpuLink::pcie}) == 76);
  CHECK(mib({.torch = kNow, .ranks = 2, .ranks_per_node = 2, .link = GpuLink::host_memory}) == 28);
  // The 2304 MiB of NVLS that vllm-project/vllm#9699 logs, within all that releases before 2.22 set up at once.
  CHECK(mib({.torch = {2, 4, 0}, .ranks = 8, .ranks_per_node = 8, .compute_capability = 90}) ==
        32 * 8 + 4 + 288 + 288 + 2304 + 256);
  CHECK(mib({.torch = kNow, .ranks = 1}) == 484);
}

TEST_CASE("estimate/outside_terms: links of GPUs") {
  CHECK(link_of(*find_gpu("H100 SXM5 80GB")) == GpuLink::nvlink);
  CHECK(link_of(*find_gpu("H100 PCIe")) == GpuLink::pcie);
  CHECK(link_of(*find_gpu("L40S")) == GpuLink::pcie);
  CHECK(link_of(*find_gpu("RTX 4090")) == GpuLink::host_memory);
  CHECK(link_of({.name = "mine", .capacity = {}, .capacity_source = "", .compute_capability = 90}) == GpuLink::nvlink);
  CHECK(link_of({.name = "mine", .capacity = {}, .capacity_source = "", .compute_capability = 120}) == GpuLink::pcie);
}

}  // namespace qlp
