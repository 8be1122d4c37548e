// Units of other classes than the decoder layer, as the real libraries ran them on a null GPU of four: three layers of
// Llama 3.2 1B, 512 tokens, three steps; torch 2.8.0 and 2.14.1, transformers 4.57.1 and 5.24.0, accelerate 1.15.0.
#include "estimate/wrap_rules.h"

#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "estimate/fsdp1_plan.h"
#include "estimate/fsdp2_plan.h"
#include "estimate/requested_peak.h"
#include "estimate/small_jobs.h"

namespace qlp {
namespace {

using test::figures;
using test::Figures;

JobSpec three_layers(const StackVersions& stack) {
  JobSpec job = small_job(llama_1b(3));
  job.model.tie_word_embeddings = true, job.model.checkpoint_dtype = DType::bfloat16;
  job.training.seq_len = 512, job.training.num_steps = 3;
  job.training.optimizer = named_optimizer("adamw_torch");
  job.loading = Loading::gpu;
  job.cluster.world_size = 4;
  job.stack = stack;
  return job;
}

std::string refused(const JobSpec& job, const Fsdp1& plan) {
  const auto options = fsdp1_options(job, plan, 0, StackProfile(job.stack));
  return options ? "" : options.error().front().code;
}
std::string refused(const JobSpec& job, const Fsdp2& plan) {
  const auto setup = fsdp2_setup(job, plan, 0, StackProfile(job.stack));
  return setup ? "" : setup.error().front().code;
}

}  // namespace

TEST_CASE("estimate/wrap_rules: FSDP1's units are the modules of the classes") {
  const auto with = [](const StackVersions& stack, std::vector<std::string> classes, bool original) {
    return figures(three_layers(stack),
                   Fsdp1{.use_orig_params = original, .transformer_cls_names_to_wrap = std::move(classes)});
  };
  CHECK(with(kOlder, {"LlamaMLP"}, true) == Figures{3730671716, 1797578840});
  CHECK(with(kOlder, {"LlamaAttention"}, true) == Figures{4089284708, 1797578840});
  CHECK(with(kOlder, {"LlamaAttention", "LlamaMLP"}, true) == Figures{3636299876, 1797578840});
  CHECK(with(kOlder, {"LlamaDecoderLayer", "LlamaMLP"}, true) == Figures{3636263012, 1797578840});
  CHECK(with(kNewer, {"LlamaMLP"}, false) == Figures{3730671776, 1352444052});
  CHECK(with(kNewer, {"LlamaAttention", "LlamaMLP"}, false) == Figures{3636299936, 1352444052});
}

TEST_CASE("estimate/wrap_rules: FSDP2's units are the modules of the classes, those below others first") {
  const Fsdp2 attention{.transformer_cls_names_to_wrap = std::vector<std::string>{"LlamaAttention"}};
  CHECK(figures(three_layers(kNewer), attention) == Figures{4110256404, 1352444174});
}

TEST_CASE("estimate/wrap_rules: names that cannot be units are refused") {
  const JobSpec job = small_job(small_model(Family::llama));
  const auto named = [](std::string name) { return WrappedClasses{std::vector{std::move(name)}}; };
  CHECK(refused(job, Fsdp1{.transformer_cls_names_to_wrap = named("LlamaMLP")}).empty());
  CHECK(refused(job, Fsdp2{.transformer_cls_names_to_wrap = named("LlamaMLP")}).empty());
  CHECK(refused(job, Fsdp1{.transformer_cls_names_to_wrap = named("Linear")}) == "wrap-class");
  CHECK(refused(job, Fsdp1{.transformer_cls_names_to_wrap = std::vector<std::string>{}}) == "wrap-class");
  CHECK(refused(job, Fsdp2{.transformer_cls_names_to_wrap = named("MistralMLP")}) == "wrap-class");
  CHECK(refused(job, Fsdp1{.auto_wrap_policy = WrapPolicy::no_wrap,
                           .transformer_cls_names_to_wrap = named("LlamaMLP")}) == "wrap-classes-unused");
  CHECK(refused(job, Fsdp2{.transformer_cls_names_to_wrap = named("LlamaMLP"), .forward_prefetch = 1}) ==
        "fsdp2-prefetch-units");
}

TEST_CASE("estimate/wrap_rules: before transformers 4.48 the class of attention has its kernel in its name") {
  JobSpec job = small_job(small_model(Family::llama));
  const Fsdp1 plan{.transformer_cls_names_to_wrap = std::vector<std::string>{"LlamaAttention"}};
  job.stack.transformers = {4, 47, 0};
  CHECK(refused(job, plan) == "wrap-class");
  job.training.attention = Attention::eager;
  CHECK(refused(job, plan).empty());
}

}  // namespace qlp
