// The gradients of whole models, against differences of their losses.
#include <cmath>

#include <doctest/doctest.h>

#include "estimate/model_options.h"
#include "estimate/small_jobs.h"
#include "model/build.h"
#include "plan/stack_profile.h"
#include "step/attach_adapter.h"
#include "step/load.h"
#include "step/sample_data.h"
#include "tensor/cpu_device.h"

namespace qlp {
namespace {

using test::CpuDevice;

/// A model in float32 with all its weights, and a batch.
class Subject {
 public:
  explicit Subject(const JobSpec& job) : stack_(job.stack), run_{.behaviour = model_behaviour(job, stack_)} {
    auto built = build_model(job.model, build_options(job, 0, stack_));
    REQUIRE(built);
    model_ = std::move(*built);
    load(cpu_.ctx, *model_, {.dtype = DType::float32, .behaviour = stack_.load}, nullptr, nullptr);
    if (job.adapter) attach(*job.adapter);
    for (Parameter* parameter : parameters()) set_requires_grad(parameter->tensor, true);
    const std::int64_t batch = 2, rows = job.training.seq_len;
    ids_ = cpu_.tensor({batch, rows}, sample_tokens({.seed = 5}, batch, rows, job.model.vocab_size), DType::int64);
    items_ = cpu_.tensor({}, {static_cast<double>(batch * (rows - 1))}, DType::int64);
    run_.item_count = static_cast<double>(batch * (rows - 1));
  }

  Tensor loss() { return model_->forward(cpu_.ctx, ids_, ids_, items_, run_).loss; }
  void backward() { cpu_.ctx.engine.backward(cpu_.ctx, {loss()}, {Tensor()}); }
  /// Those that are trained.
  std::vector<Parameter*> parameters() {
    std::vector<Parameter*> all = model_->parameters();
    std::erase_if(all, [](const Parameter* parameter) { return !parameter->trainable; });
    return all;
  }
  std::vector<double> gradient(const Parameter& parameter) { return cpu_.numbers(grad_of(parameter.tensor)); }
  /// (loss(w + step) - loss(w - step)) / (2 step) of one element.
  double difference(const Parameter& parameter, std::size_t element) {
    constexpr double kStep = 1e-2;
    const Scoped no_grad(cpu_.ctx.grad_enabled, false);
    const Tensor at = parameter.tensor.flat(static_cast<std::int64_t>(element), 1);
    const double value = item(cpu_.ctx, at);
    fill(cpu_.ctx, at, value + kStep);
    const double above = item(cpu_.ctx, loss());
    fill(cpu_.ctx, at, value - kStep);
    const double below = item(cpu_.ctx, loss());
    fill(cpu_.ctx, at, value);
    return (above - below) / (2 * kStep);
  }

 private:
  /// With B as it might be after some steps, so that gradients reach A.
  void attach(const AdapterSpec& adapter) {
    attach_adapter(cpu_.ctx, *model_, adapter, DType::float32, stack_.load);
    for (const Parameter* parameter : model_->parameters())
      if (parameter->role == ParamRole::lora_b) {
        fill_range(cpu_.ctx, parameter->tensor);
        compute(cpu_.ctx, Unary::mul, parameter->tensor, parameter->tensor,
                0.1 / static_cast<double>(parameter->numel()));
      }
  }

  CpuDevice cpu_;
  StackProfile stack_;
  RunOptions run_;
  std::unique_ptr<CausalLm> model_;
  Tensor ids_, items_;
};

/// The elements of each parameter whose gradients are greatest.
void check_gradients(const JobSpec& job) {
  Subject subject(job);
  subject.backward();
  for (const Parameter* parameter : subject.parameters()) {
    CAPTURE(parameter->name);
    const std::vector<double> gradient = subject.gradient(*parameter);
    const auto by_size = [](double a, double b) { return std::abs(a) < std::abs(b); };
    const auto greatest = std::max_element(gradient.begin(), gradient.end(), by_size);
    REQUIRE(*greatest != 0);
    const auto element = static_cast<std::size_t>(greatest - gradient.begin());
    CHECK(subject.difference(*parameter, element) == doctest::Approx(*greatest).epsilon(0.02));
  }
}

JobSpec float_job(Family family) {
  JobSpec job = small_job(small_model(family));
  job.dtype = DType::float32;
  job.training.bf16 = false;
  job.training.seq_len = 12;
  return job;
}

}  // namespace

TEST_CASE("estimate/model_gradients: every dense family") {
  for (const Family family : kAllFamilies) {
    CAPTURE(static_cast<int>(family));
    check_gradients(float_job(family));
  }
}

TEST_CASE("estimate/model_gradients: what adapters train beside linear layers and tables") {
  JobSpec job = float_job(Family::qwen2);
  job.adapter = AdapterSpec{.r = 3,
                            .target_modules = {"q_proj", "down_proj", "embed_tokens", "lm_head"},
                            .alpha_pattern = {{"q_proj", 2}},
                            .bias = AdapterBias::all,
                            .lora_bias = true};
  SUBCASE("matrices beside the embedding, and biases") { check_gradients(job); }
  SUBCASE("rows of single tokens") {
    job.adapter->target_modules = {"q_proj"}, job.adapter->lora_bias = false;
    for (std::int64_t token = 0; token < 100; ++token) job.adapter->trainable_token_indices.push_back(token);
    check_gradients(job);
    job.model.tie_word_embeddings = true;
    check_gradients(job);
  }
}

TEST_CASE("estimate/model_gradients: eager attention, and Liger's kernels") {
  JobSpec job = float_job(Family::qwen3);
  job.training.attention = Attention::eager;
  check_gradients(job);
  for (const Family family : {Family::llama, Family::gemma2, Family::phi3}) {
    JobSpec liger = float_job(family);
    liger.training.loss = Loss::liger;
    check_gradients(liger);
  }
}

}  // namespace qlp
