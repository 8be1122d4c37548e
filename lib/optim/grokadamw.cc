// grokadamw 0.1.2, grokadamw.py: the averages lie on the host and come to the GPU for the update of their parameter.
#include <cmath>
#include <utility>

#include "optim/implementations.h"
#include "optim/optimizer_state.h"

namespace qlp {
namespace {

/// It is kept in the group, not in the optimizer's state: state_dict() has none.
struct GrokAdamWState {
  Tensor exp_avg, exp_avg_sq, grok_ema;
  std::int64_t steps = 0;
  std::vector<Tensor> tensors() const { return {}; }
};

class GrokAdamWOptimizer final : public StatefulOptimizer<GrokAdamWState> {
 public:
  GrokAdamWOptimizer(std::vector<ParameterGroup> groups, ClipGradNorm clip)
      : StatefulOptimizer(std::move(groups)), clip_(std::move(clip)) {}

 private:
  /// The names of the loop, which hold on to what they were given for the last parameter.
  struct Names {
    Tensor exp_avg, exp_avg_sq, grok_ema, grok_grad;
  };

  void step_group(Context& ctx, const std::vector<Entry>& entries) override {
    Names names;
    for (std::size_t i = 0; i < entries.size(); ++i) update(ctx, entries[i], i, names);
  }

  void update(Context& ctx, const Entry& entry, std::size_t index, Names& names) const {
    constexpr double kBeta1 = 0.9, kBeta2 = 0.999, kEps = 1e-8;  // the class's defaults
    constexpr double kAlpha = 0.98, kGamma = 0.1, kMaxNorm = 1;  // the Trainer's, as kLamb
    const auto& [parameter, state] = entry;
    if (state->steps == 0) {
      const Scoped place(ctx.place, Place::host);
      for (Tensor* kept : {&state->exp_avg, &state->exp_avg_sq, &state->grok_ema})
        *kept = state_of(ctx, parameter->shape(), parameter->dtype());
    }
    const bool on_host = parameter->on_host();
    const auto brought = [&](const Tensor& kept) { return on_host ? kept : to_device(ctx, kept); };
    {
      Tensor exp_avg = brought(state->exp_avg), exp_avg_sq = brought(state->exp_avg_sq);  // one assignment of two names
      names.exp_avg = std::move(exp_avg), names.exp_avg_sq = std::move(exp_avg_sq);
    }
    names.grok_ema = brought(state->grok_ema);
    const auto steps = static_cast<double>(++state->steps);
    clip_(ctx, {*parameter}, kMaxNorm);

    const Tensor& grad = grad_of(*parameter);
    auto& [exp_avg, exp_avg_sq, grok_ema, grok_grad] = names;
    average(ctx, grok_ema, grad, kAlpha);
    grok_grad = amplified(ctx, grad, grok_ema);
    average(ctx, exp_avg, grok_grad, kBeta1 * std::pow(1 - kGamma, static_cast<double>(index)));
    {
      const Tensor denom = empty_like(ctx, exp_avg_sq, Op::foreach_sqrt);
      compute(ctx, Binary::mul, denom, grok_grad, grok_grad);  // addcmul_ needs no such place
      average(ctx, exp_avg_sq, denom, kBeta2);
      compute(ctx, Unary::mul, *parameter, *parameter, 1 - lr() * weight_decay());
      compute(ctx, Unary::sqrt, denom, exp_avg_sq);
      compute(ctx, Unary::add, denom, denom, kEps);
      compute(ctx, Binary::div, denom, exp_avg, denom);
      const double step_size = lr() * std::sqrt(1 - std::pow(kBeta2, steps)) / (1 - std::pow(kBeta1, steps));
      compute(ctx, Binary::add, *parameter, *parameter, denom, -step_size);
    }
    if (on_host) return;
    state->exp_avg = kept_on_host(ctx, exp_avg);
    state->exp_avg_sq = kept_on_host(ctx, exp_avg_sq);
    state->grok_ema = kept_on_host(ctx, grok_ema);
  }

  /// grad + lamb * grok_ema
  static Tensor amplified(Context& ctx, const Tensor& grad, const Tensor& grok_ema) {
    constexpr double kLamb = 2;
    const Tensor slow = empty_like(ctx, grok_ema, Op::mul);
    compute(ctx, Unary::mul, slow, grok_ema, kLamb);
    Tensor sum = empty_like(ctx, grad, Op::add);
    compute(ctx, Binary::add, sum, grad, slow);
    return sum;
  }

  static Tensor kept_on_host(Context& ctx, const Tensor& tensor) {
    const Scoped category(ctx.category, Category::optimizer_state);
    return to_host(ctx, tensor);
  }

  /// average = weight * average + (1 - weight) * value
  static void average(Context& ctx, const Tensor& average, const Tensor& value, double weight) {
    compute(ctx, Unary::mul, average, average, weight);
    compute(ctx, Binary::add, average, average, value, 1 - weight);
  }

  ClipGradNorm clip_;
};

}  // namespace

std::unique_ptr<Optimizer> make_grokadamw(std::vector<ParameterGroup> groups, ClipGradNorm clip) {
  return std::make_unique<GrokAdamWOptimizer>(std::move(groups), std::move(clip));
}

}  // namespace qlp
