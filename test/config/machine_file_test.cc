#include "config/machine_file.h"

#include <doctest/doctest.h>

#include "base/text.h"
#include "config/memory_files.h"
#include "estimate/outside_terms.h"

namespace qlp {
namespace {

using namespace literals;

MachineProfile sample_profile() {
  return {.gpu = "NVIDIA H100 80GB HBM3",
          .capacity = 81'082_MiB,
          .versions = {"driver 580.65.06", "NCCL 2.28.9"},
          .time = "2026-11-30T00:00:00Z",
          .host = "node \"1\"",
          .cuda_context = 521_MiB,
          .cublas = 34_MiB,
          .library_overhead = Bytes{130'000'001},
          .nccl = {{.ranks = 2, .ranks_per_node = 2, .all_reduce = true, .memory = 490_MiB},
                   {.ranks = 8, .ranks_per_node = 8, .all_reduce = false, .memory = 806_MiB}}};
}

JobDocument job(const std::string& cluster) {
  const std::string text =
      "schema: 1\nmodel: {name: llama-3.1-8b}\nadapter: {type: lora, r: 8, target_modules: all-linear}\n"
      "training: {seq_len: 128}\ncluster: {" +
      cluster + "}\n";
  auto document = read_job(text, "job.yaml", test::MemoryFiles{});
  REQUIRE(document);
  return *document;
}

/// "CODE KEY_PATH" of each error.
std::string errors(const std::string& text) {
  const auto profile = read_machine(text, "machine.yaml");
  REQUIRE_FALSE(profile);
  std::string out;
  for (const Diagnostic& d : profile.error()) {
    CHECK(d.position.line > 0);
    out += d.code + " " + d.key_path + "\n";
  }
  return out;
}

TEST_CASE("config/machine_file: a profile comes back as it was written") {
  MachineProfile profile = sample_profile();
  auto back = read_machine(to_yaml(profile), "machine.yaml");
  REQUIRE(back);
  CHECK(*back == profile);
  profile.time = profile.host = "";
  profile.nccl.clear();
  profile.versions.clear();
  back = read_machine(to_yaml(profile), "machine.yaml");
  REQUIRE(back);
  CHECK(*back == profile);
}

TEST_CASE("config/machine_file: all errors are told at once") {
  CHECK(errors("schema: 2\ncontext: 1GiB\n") ==
        "bad-value schema\nmissing-key gpu\nmissing-key capacity\nmissing-key cuda_context\nmissing-key cublas\n"
        "missing-key library_overhead\nunknown-key context\n");
  const std::string good = to_yaml(sample_profile());
  CHECK(errors(good + "cublas: 1MiB\n") == "duplicate-key cublas\n");
  CHECK(errors(good + "  - {ranks: 2, ranks_per_node: 2, collectives: all_reduce, memory: 1MiB}\n"
                      "  - {ranks: 0, ranks_per_node: 5, collectives: broadcast, memory: 80, size: 1}\n"
                      "  - 3\n") ==
        "duplicate-item nccl\nout-of-range nccl.ranks\nout-of-range nccl.ranks_per_node\nbad-value nccl.collectives\n"
        "bad-size nccl.memory\nunknown-key nccl.size\nwrong-type nccl\n");
  CHECK(errors("[]") == "wrong-type \n");
}

TEST_CASE("config/machine_file: a job on a calibrated machine takes its terms, each marked as measured") {
  JobDocument document = job("gpu: H100 SXM5 80GB, world_size: 8");
  REQUIRE(use_machine(document, sample_profile(), "machine.yaml").empty());
  const JobSpec& spec = document.job;
  CHECK(spec.cluster.gpu.capacity == 81'082_MiB);
  CHECK(spec.cluster.margin == 0);
  const auto terms = outside_terms(spec, {"fsdp2", Fsdp2{}});
  REQUIRE(terms.size() == 3);
  CHECK(terms[0].bytes == 521_MiB);
  CHECK(terms[1].bytes == 34_MiB + Bytes{130'000'001});
  CHECK(terms[2].bytes == 806_MiB);
  for (const OutsideTerm& term : terms) {
    CHECK(term.measured);
    CHECK(term.source.find("driver 580.65.06") != std::string::npos);
  }
}

TEST_CASE("config/machine_file: a communicator that was not measured stays a model") {
  JobDocument document = job("gpu: H100 SXM5 80GB, world_size: 8");
  const NamedPlan ddp{"ddp", Ddp{}};
  const Bytes model = outside_terms(document.job, ddp).back().bytes;
  REQUIRE(use_machine(document, sample_profile(), "machine.yaml").empty());
  const auto terms =
      outside_terms(document.job, ddp);  // its communicator of 8 reduces to all, which none measured does
  CHECK(terms.back().bytes == model);
  CHECK_FALSE(terms.back().measured);
}

TEST_CASE("config/machine_file: what the job says itself holds") {
  JobDocument document = job("gpu: H100 SXM5 80GB, memory: 40GiB, margin: 3%");
  REQUIRE(use_machine(document, sample_profile(), "machine.yaml").empty());
  CHECK(document.job.cluster.gpu.capacity == 40_GiB);
  CHECK(document.job.cluster.margin == 0.03);
}

TEST_CASE("config/machine_file: a profile of another GPU is refused") {
  JobDocument document = job("gpu: A100 SXM4 40GB");
  const auto errors = use_machine(document, sample_profile(), "machine.yaml");
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].code == "another-machine");
  CHECK_FALSE(document.job.cluster.machine);
}

}  // namespace
}  // namespace qlp
