#include "config/model_numbers.h"

#include <algorithm>

#include <doctest/doctest.h>

#include "config/job_reader.h"
#include "config/job_writer.h"
#include "config/json_parser.h"
#include "config/memory_files.h"
#include "config/model_reader.h"

using namespace qlp;
using qlp::test::MemoryFiles;

namespace {

Result<ModelDocument> read(const std::string& model_type, const std::string& more) {
  const std::string text = "{\"model_type\": \"" + model_type +
                           "\", \"hidden_size\": 64, \"num_hidden_layers\": 2, \"num_attention_heads\": 4, "
                           "\"num_key_value_heads\": 2, \"head_dim\": 16, \"intermediate_size\": 128, "
                           "\"vocab_size\": 100" +
                           more + "}";
  return model_from_config(**parse_json(text, "config.json"), "test");
}

ModelSpec model(const std::string& model_type, const std::string& more) {
  auto document = read(model_type, more);
  REQUIRE(document);
  return document->model;
}

constexpr const char* kLlama3 =
    ", \"rope_theta\": 500000.0, \"rms_norm_eps\": 1e-05, \"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 32.0, "
    "\"low_freq_factor\": 1.0, \"high_freq_factor\": 4.0, \"original_max_position_embeddings\": 8192}";

}  // namespace

TEST_CASE("config/model_numbers: a config.json says how norms and frequencies are scaled, else the class does") {
  const ModelSpec llama = model("llama", kLlama3);
  CHECK(llama.rms_norm_eps == 1e-5);
  CHECK(llama.rope_theta == 500000);
  CHECK(llama.rope_scaling.rope_type == RopeStretch::llama3);
  CHECK(llama.rope_scaling.factor == 32);
  CHECK(llama.rope_scaling.original_max_position_embeddings == 8192);
  CHECK(model("llama", "").rms_norm_eps == 1e-6);
  CHECK(model("phi3", "").rms_norm_eps == 1e-5);
  CHECK(model("mixtral", "").rope_theta == 1e6);
  CHECK(model("gemma2", "").query_pre_attn_scalar == 256);  // heads are 16 wide
  CHECK(model("gemma2", ", \"query_pre_attn_scalar\": 144").query_pre_attn_scalar == 144);
  // As transformers 5 writes it.
  const ModelSpec newer =
      model("llama", ", \"rope_parameters\": {\"rope_type\": \"default\", \"rope_theta\": 1000000.0}");
  CHECK(newer.rope_theta == 1e6);
  CHECK(newer.rope_scaling == RopeScaling{});
}

TEST_CASE("config/model_numbers: what is no number, or out of range, is said where it is") {
  CHECK_FALSE(read("llama", ", \"rope_theta\": -1"));
  CHECK_FALSE(read("llama", ", \"rms_norm_eps\": \"small\""));
  CHECK_FALSE(read("llama", ", \"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": 0}"));
  const auto phi = read("phi3",
                        ", \"rope_scaling\": {\"type\": \"longrope\", \"short_factor\": [1, 2], "
                        "\"long_factor\": [1, 1, 1, 1, 1, 1, 1, 1]}");
  REQUIRE_FALSE(phi);
  CHECK(phi.error().front().message == "expected a list of 8 numbers, one for each frequency");
  const auto unknown = read("llama", ", \"rope_scaling\": {\"rope_type\": \"spiral\", \"factor\": 2}");
  REQUIRE(unknown);
  CHECK(std::ranges::count(unknown->notes, "rope-type", &Diagnostic::code) == 1);
}

TEST_CASE("config/model_numbers: Cohere's norms have a key of their own") {
  CHECK(model("cohere", "").rms_norm_eps == 1e-5);
  CHECK(model("cohere2", ", \"layer_norm_eps\": 2e-5, \"rms_norm_eps\": 1").rms_norm_eps == 2e-5);
}

TEST_CASE("config/model_numbers: factors of Granite, Cohere and Gemma 3, with the defaults of their classes") {
  CHECK(model("granite", "").factors == ModelFactors{.attention_multiplier = 1});
  const ModelFactors granite =
      model("granite", ", \"embedding_multiplier\": 12, \"residual_multiplier\": 0.22, \"logits_scaling\": 8").factors;
  CHECK(granite.embedding_multiplier == 12);
  CHECK(granite.residual_multiplier == 0.22);
  CHECK(granite.logits_scaling == 8);
  CHECK(model("cohere", "").factors.logit_scale == 0.0625);
  CHECK(model("llama", "").factors == ModelFactors{});
  CHECK_FALSE(read("granite", ", \"logits_scaling\": 0"));
  CHECK_FALSE(read("granite", ", \"logits_scaling\": 1e13"));  // as in a job file
  CHECK(model("gemma3_text", "").factors.rope_local_base_freq == 10000);
  CHECK(model("gemma3_text", ", \"rope_local_base_freq\": 5000").factors.rope_local_base_freq == 5000);
  const ModelSpec newer = model("gemma3_text",
                                ", \"rope_parameters\": {\"full_attention\": {\"rope_theta\": 1e5}, "
                                "\"sliding_attention\": {\"rope_theta\": 2000}}");
  CHECK(newer.rope_theta == 1e5);
  CHECK(newer.factors.rope_local_base_freq == 2000);
}

TEST_CASE("config/model_numbers: what is turned of a head is an even number") {
  const auto message = [](const Result<ModelDocument>& read) {
    REQUIRE_FALSE(read);
    return read.error().front().message;
  };
  CHECK(message(read("glm", ", \"partial_rotary_factor\": 0.2")).find("turns 3 of the numbers") != std::string::npos);
  CHECK(message(read("glm", ", \"partial_rotary_factor\": 1e300")).find("at most 1") != std::string::npos);
  CHECK(message(read("gemma2", ", \"query_pre_attn_scalar\": 1e300")).find("from 0.001 to ") != std::string::npos);
  const auto job_of = [](const std::string& more) {
    return "schema: 1\nmodel: {hidden_size: 64, num_hidden_layers: 2, num_attention_heads: 4, intermediate_size: 128, "
           "vocab_size: 100, " +
           more + "}\ntraining: {seq_len: 8}\ncluster: {gpu: H100 SXM5 80GB}\n";
  };
  for (const std::string more : {"family: glm, head_dim: 16, partial_rotary_factor: 0", "family: llama, head_dim: 1",
                                 "family: cohere, head_dim: 15"}) {
    CAPTURE(more);
    const auto read = read_job(job_of(more), "job.yaml", MemoryFiles{});
    REQUIRE_FALSE(read);
    CHECK(read.error().front().message.find("expected an even number") != std::string::npos);
  }
  CHECK(read_job(job_of("family: glm, head_dim: 16, partial_rotary_factor: 0.25"), "job.yaml", MemoryFiles{}));
}

TEST_CASE("config/model_numbers: a job file that is written says the same") {
  const auto job_of = [](const std::string& more) {
    const std::string shapes =
        "hidden_size: 64\n  num_hidden_layers: 2\n  num_attention_heads: 4\n  num_key_value_heads: 2\n  head_dim: 16\n"
        "  intermediate_size: 128\n  vocab_size: 100\n  ";
    return "schema: 1\nmodel:\n  " + shapes + more + "\ntraining: {seq_len: 8}\ncluster: {gpu: H100 SXM5 80GB}\n";
  };
  MemoryFiles files;
  for (const std::string more :
       {"family: llama\n  rms_norm_eps: 1e-5\n  rope_theta: 500000\n  rope_scaling: {rope_type: llama3, factor: 8, "
        "original_max_position_embeddings: 8192}",
        "family: qwen2\n  rope_scaling: {rope_type: yarn, factor: 4, mscale: 0.5, mscale_all_dim: 1, truncate: false}",
        "family: gemma2\n  query_pre_attn_scalar: 144",
        "family: granite\n  embedding_multiplier: 12\n  attention_multiplier: 0.015625\n  logits_scaling: 8",
        "family: cohere2\n  logit_scale: 0.25", "family: gemma3_text\n  rope_local_base_freq: 5000",
        "family: phi3\n  rope_type: longrope\n  original_max_position_embeddings: 64\n  rope_scaling: {short_factor: "
        "[1, 1, 1, 1, 1, 1, 1, 1.5], long_factor: [1, 2, 3, 4, 5, 6, 7, 8]}"}) {
    CAPTURE(more);
    const auto job = read_job(job_of(more), "job.yaml", files);
    REQUIRE(job);
    const std::string written = to_yaml(job->job);
    CAPTURE(written);
    const auto again = read_job(written, "again.yaml", files);
    REQUIRE(again);
    CHECK(again->job.model == job->job.model);
    CHECK(job->job.model.rope_scaling.rope_type != RopeStretch::dynamic);
  }
  CHECK_FALSE(read_job(job_of("family: llama\n  rope_scaling: {rope_type: llama3, factr: 8}"), "job.yaml", files));
  CHECK_FALSE(read_job(job_of("family: llama\n  rope_scaling: {factor: 8}"), "job.yaml", files));
}
