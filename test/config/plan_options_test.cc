#include "config/plan_options.h"

#include <algorithm>
#include <string>

#include <doctest/doctest.h>

#include "config/job_reader.h"
#include "config/job_writer.h"

using namespace qlp;

namespace {

Result<JobDocument> read(const std::string& plans) {
  return read_job(
      "schema: 1\nmodel: {name: llama-3.1-8b}\ntraining: {seq_len: 8}\ncluster: {gpu: A100 SXM4 80GB}\nplans: " +
          plans + "\n",
      "job.yaml", DiskFiles());
}

Zero zero(const std::string& options) {
  const auto document = read("{zero2: " + options + "}");
  REQUIRE(document);
  const auto again = read_job(to_yaml(document->job), "again.yaml", DiskFiles());
  REQUIRE(again);
  CHECK(again->job.plans == document->job.plans);
  return std::get<Zero>(document->job.plans.front().plan);
}

/// "code key" of the only error.
std::string error(const std::string& plans) {
  const auto document = read(plans);
  REQUIRE_FALSE(document);
  CHECK(document.error().size() == 1);
  return document.error().front().code + " " + document.error().front().key_path;
}

}  // namespace

TEST_CASE("config/plan_options: what is not given is DeepSpeed's default") { CHECK(zero("{}") == Zero{.stage = 2}); }

TEST_CASE("config/plan_options: a number may be auto, and a section holds options of its own") {
  CHECK_FALSE(zero("{reduce_bucket_size: auto}").reduce_bucket_size);
  CHECK(zero("{reduce_bucket_size: 7}").reduce_bucket_size == 7);
  CHECK(zero("{gradient_clipping: auto}").gradient_clipping == Fillable<double>(Unsaid::automatic));
  CHECK(zero("{gradient_clipping: none}").gradient_clipping == Fillable<double>(Unsaid::left_out));
  CHECK(zero("{gradient_clipping: 0.5}").gradient_clipping == Fillable<double>(0.5));
  CHECK(zero("{bf16: {enabled: true}}").bf16.enabled == Fillable<bool>(true));
  CHECK(zero("{bf16: {check_grad_overflow: true}}").bf16.enabled == Fillable<bool>(Unsaid::automatic));
  CHECK(zero("{bf16: {enabled: none}}").bf16.enabled == Fillable<bool>(Unsaid::left_out));
  const Zero offload = zero("{offload_optimizer: {device: cpu, pin_memory: true}, overlap_comm: true}");
  CHECK(offload.offload_optimizer.device == OffloadDevice::cpu);
  CHECK(offload.offload_optimizer.pin_memory);
  CHECK(offload.overlap_comm);
}

TEST_CASE("config/plan_options: an option of another plan says what it needs; what the name says is not offered") {
  const auto message = [](const std::string& plans) {
    const auto document = read(plans);
    REQUIRE_FALSE(document);
    return document.error().front().message + document.error().front().hint;
  };
  CHECK(message("{fsdp2: {pin_memory: true}}").find("cpu_offload: true") != std::string::npos);
  CHECK(message("{fsdp2: {dp_shard_size: 2}}").find("fsdp2-hsdp") != std::string::npos);
  CHECK(message("{fsdp2: {hybrid: true}}").find("the name of the plan says it") != std::string::npos);
  const std::string offered = message("{fsdp2: {completely_other: 1}}");
  CHECK(offered.find("cpu_offload") != std::string::npos);
  CHECK(offered.find("hybrid") == std::string::npos);
}

TEST_CASE("config/plan_options: what no stage, or not this one, has is an error at its key") {
  CHECK(error("{zero2: {reduce_bucket_size: automatic}}") == "wrong-type plans.zero2.reduce_bucket_size");
  CHECK(error("{zero2: {reduce_bucket_size: -1}}") == "out-of-range plans.zero2.reduce_bucket_size");
  CHECK(error("{zero2: {offload_optimizer: {device: disk}}}") == "bad-value plans.zero2.offload_optimizer.device");
  CHECK(error("{zero2: {offload_optimizer: {devise: cpu}}}") == "unknown-key plans.zero2.offload_optimizer.devise");
  CHECK(error("{zero2: {offload_optimizer: cpu}}") == "wrong-type plans.zero2.offload_optimizer");
  CHECK(error("{zero1: {stage3_max_live_parameters: 1}}") == "not-supported plans.zero1.stage3_max_live_parameters");
  const auto hint = [](const std::string& plans) { return read(plans).error().front().hint; };
  CHECK(error("{zero2: {gradient_clipping: nnone}}") == "wrong-type plans.zero2.gradient_clipping");
  CHECK(hint("{zero2: {gradient_clipping: nnone}}") == "did you mean none?");
  CHECK(hint("{zero2: {bf16: {enabled: atuo}}}") == "did you mean auto?");
  const std::string words = read("{zero2: {bf16: {enabled: often}}}").error().front().message;
  CHECK(words.find("auto and none") != std::string::npos);
  CHECK(error("{zero1: {stage: 1}}") == "not-supported plans.zero1.stage");
}
