// torch/optim/_muon.py, torch 2.9 to 2.14.
#include <algorithm>
#include <cmath>

#include "autograd/matmul.h"
#include "optim/clip_grad_norm.h"
#include "optim/implementations.h"
#include "optim/optimizer_state.h"
#include "tensor/reduction.h"

namespace qlp {
namespace {

struct MuonState {
  Tensor momentum_buffer;
  std::vector<Tensor> tensors() const { return {momentum_buffer}; }
};

constexpr int kIterations = 5;  // DEFAULT_NS_STEPS

/// ortho.div_(ortho.norm().clamp(min=eps))
void normalize(Context& ctx, const Tensor& ortho) {
  constexpr double kEps = 1e-7;
  const Tensor norm = empty(ctx, {}, ortho.dtype(), Op::linear_norm);
  full_reduction_scratch(ctx, ortho.numel(), Op::linear_norm);
  norm_into(ctx, norm, ortho);
  const Tensor clamped = empty(ctx, {}, ortho.dtype(), Op::clamp);
  compute(ctx, Unary::at_least, clamped, norm, kEps);
  compute(ctx, Binary::div, ortho, ortho, clamped);
}

/// With rows that are the shorter dimension.
Tensor upright(const Tensor& matrix) { return matrix.size(0) > matrix.size(1) ? matrix.transpose(0, 1) : matrix; }

/// out = beta * start + alpha * a x b
void add_product(Context& ctx, const Tensor& out, const Tensor& start, const Tensor& a, const Tensor& b, double beta,
                 double alpha) {
  copy_into(ctx, out, start);
  if (Kernels* kernels = ctx.kernels(out))
    kernels->gemm(ctx.stream, array_of(out), array_of(a), array_of(b), alpha, beta);
}

/// _zeropower_via_newtonschulz: in bfloat16, whose rows are the shorter dimension. Names of a Python loop hold on to
/// their tensors until they get the next ones.
Tensor orthogonalized(Context& ctx, const Tensor& update) {
  constexpr double kA = 3.4445, kB = -4.7750, kC = 2.0315;  // DEFAULT_A, _B, _C
  const bool casts = update.dtype() != DType::bfloat16;
  Tensor ortho = casts ? empty_like(ctx, update, DType::bfloat16, Op::to_copy) : update;
  if (casts) copy_into(ctx, ortho, update);
  const bool turned = update.size(0) > update.size(1);
  ortho = upright(ortho);
  normalize(ctx, ortho);
  Tensor gram, gram_update;
  for (int i = 0; i < kIterations; ++i) {
    gram = mm(ctx, ortho, ortho.transpose(0, 1));
    gram_update = empty_like(ctx, gram, Op::addmm);
    add_product(ctx, gram_update, gram, gram, gram, kB, kC);
    const Tensor next = empty(ctx, ortho.shape(), DType::bfloat16, Op::addmm);
    add_product(ctx, next, ortho, gram_update, ortho, kA, 1);
    ortho = next;
  }
  return turned ? ortho.transpose(0, 1) : ortho;
}

class MuonOptimizer final : public StatefulOptimizer<MuonState> {
 public:
  using StatefulOptimizer::StatefulOptimizer;

 private:
  void step_group(Context& ctx, const std::vector<Entry>& entries) override {
    for (const auto& [parameter, state] : entries)
      if (!state->momentum_buffer.defined()) state->momentum_buffer = state_like(ctx, grad_of(*parameter));
    Tensor update;
    for (const auto& [parameter, state] : entries) {
      constexpr double kMomentum = 0.95;
      const Tensor &grad = grad_of(*parameter), &buffer = state->momentum_buffer;
      interpolate(ctx, buffer, buffer, grad, 1 - kMomentum);
      update = empty_like(ctx, grad, Op::lerp);
      interpolate(ctx, update, grad, buffer, kMomentum);
      update = orthogonalized(ctx, update);
      // _adjust_lr, "original"
      const auto rows = static_cast<double>(grad.size(0)), columns = static_cast<double>(grad.size(1));
      compute(ctx, Unary::mul, *parameter, *parameter, 1 - lr() * weight_decay());
      compute(ctx, Binary::add, *parameter, *parameter, update, -lr() * std::sqrt(std::max(1.0, rows / columns)));
    }
  }

  /// out = a + weight * (b - a)
  static void interpolate(Context& ctx, const Tensor& out, const Tensor& a, const Tensor& b, double weight) {
    compute(ctx, Unary::mul, out, a, 1 - weight);
    compute(ctx, Binary::add, out, out, b, weight);
  }
};

}  // namespace

std::unique_ptr<Optimizer> make_muon(std::vector<ParameterGroup> groups) {
  return std::make_unique<MuonOptimizer>(std::move(groups));
}

}  // namespace qlp
