// torch/optim/_muon.py, torch 2.9 to 2.14.
#include <algorithm>
#include <cmath>

#include "autograd/matmul.h"
#include "optim/clip_grad_norm.h"
#include "optim/implementations.h"
#include "optim/mesh_norm.h"
#include "optim/optimizer_state.h"
#include "tensor/reduction.h"

namespace qlp {
namespace {

struct MuonState {
  Tensor momentum_buffer;
  std::vector<Tensor> tensors() const { return {momentum_buffer}; }
};

constexpr int kIterations = 5;                            // DEFAULT_NS_STEPS
constexpr double kA = 3.4445, kB = -4.7750, kC = 2.0315;  // DEFAULT_A, _B, _C

/// ortho.div_(ortho.norm().clamp(min=eps)); of a DTensor the norm is that of all ranks.
void normalize(Context& ctx, const Tensor& ortho, const std::vector<RankGroup>& axes) {
  constexpr double kEps = 1e-7;
  const Tensor norm = empty(ctx, {}, ortho.dtype(), Op::linear_norm);
  full_reduction_scratch(ctx, ortho.numel(), Op::linear_norm);
  norm_into(ctx, norm, ortho);
  const Tensor total = summed_over_ranks(ctx, norm, axes);
  const Tensor clamped = empty(ctx, {}, ortho.dtype(), Op::clamp);
  compute(ctx, Unary::at_least, clamped, total, kEps);
  compute(ctx, Binary::div, ortho, ortho, clamped);
}

/// beta * start + alpha * a x b
Tensor addmm(Context& ctx, const Tensor& start, const Tensor& a, const Tensor& b, double beta, double alpha) {
  Tensor out = empty(ctx, start.shape(), start.dtype(), Op::addmm);
  copy_into(ctx, out, start);
  if (Kernels* kernels = ctx.kernels(out))
    kernels->gemm(ctx.stream, array_of(out), array_of(a), array_of(b), alpha, beta);
  return out;
}

/// A matrix whose rows are the shorter dimension. Names of a Python loop hold on to their tensors until they get the
/// next ones.
struct Orthogonal {
  Tensor matrix, gram, gram_update;
};

void iterate(Context& ctx, Orthogonal& ortho) {
  auto& [matrix, gram, gram_update] = ortho;
  gram = mm(ctx, matrix, matrix.transpose(0, 1));
  gram_update = addmm(ctx, gram, gram, gram, kB, kC);
  matrix = addmm(ctx, matrix, gram_update, matrix, kA, 1);
}

// What DTensor makes of these products (torch/distributed/tensor/_ops/_matrix_ops.py, placement_types.py; seen
// in 2.14).

/// matrix @ matrix.T: the second has its columns cut, which are laid out behind each other, gathered and joined.
Tensor gram_of_rows(Context& ctx, const Tensor& matrix, const CutRows& rows) {
  Tensor whole;
  {
    const bool lies_so = matrix.size(0) == rows.most() && rows.most() == 1;
    const Tensor columns = lies_so ? Tensor() : padded_rows(ctx, matrix, rows);
    Tensor joined;
    {
      const Tensor parts = gathered_rows(ctx, matrix, columns, rows);
      joined = empty_like(ctx, parts, Op::cat);
      copy_into(ctx, joined, parts);
    }
    whole = joined;
    if (!rows.even()) {
      whole = empty(ctx, {rows.whole, matrix.size(1)}, matrix.dtype(), Op::contiguous);
      copy_into(ctx, whole, joined.narrow(0, 0, rows.whole));
    }
  }
  return mm(ctx, matrix, whole.transpose(0, 1));
}

/// Of a second factor of which this rank has some rows, the others are gathered for the time of the product alone.
Tensor addmm_rows(Context& ctx, const Tensor& start, const Tensor& a, const Tensor& b, const CutRows& rows, double beta,
                  double alpha) {
  return addmm(ctx, start, a, all_rows(ctx, b, rows), beta, alpha);
}

/// With the shorter dimension cut.
void iterate_rows(Context& ctx, Orthogonal& ortho, const CutRows& rows) {
  auto& [matrix, gram, gram_update] = ortho;
  gram = gram_of_rows(ctx, matrix, rows);
  gram_update = addmm_rows(ctx, gram, gram, gram, rows, kB, kC);
  matrix = addmm_rows(ctx, matrix, gram_update, matrix, rows, kA, 1);
}

/// A first factor that is this rank's part of a sum is summed for the time of the product alone.
Tensor addmm_sum(Context& ctx, const Tensor& start, const Tensor& a, const Tensor& b, const RankGroup& group,
                 double beta, double alpha) {
  return addmm(ctx, start, summed(ctx, a, group), b, beta, alpha);
}

/// With the longer one cut: the small products are sums over the ranks.
void iterate_columns(Context& ctx, Orthogonal& ortho, const RankGroup& group) {
  auto& [matrix, gram, gram_update] = ortho;
  gram = mm(ctx, matrix, matrix.transpose(0, 1));
  gram_update = addmm_sum(ctx, gram, gram, gram, group, kB, kC);
  matrix = addmm_sum(ctx, matrix, gram_update, matrix, group, kA, 1);
}

/// _zeropower_via_newtonschulz: in bfloat16. `cut`: of the DTensor of which `update` has the rows of this rank, if it
/// is one.
Tensor orthogonalized(Context& ctx, const Tensor& update, const CutRows* cut) {
  const bool casts = update.dtype() != DType::bfloat16;
  Orthogonal ortho{casts ? empty_like(ctx, update, DType::bfloat16, Op::to_copy) : update, {}, {}};
  if (casts) copy_into(ctx, ortho.matrix, update);
  const bool turned = (cut ? cut->whole : update.size(0)) > update.size(1);
  if (turned) ortho.matrix = ortho.matrix.transpose(0, 1);
  normalize(ctx, ortho.matrix, cut ? std::vector{cut->group} : std::vector<RankGroup>{});
  for (int i = 0; i < kIterations; ++i) {
    if (!cut)
      iterate(ctx, ortho);
    else if (turned)
      iterate_columns(ctx, ortho, cut->group);
    else
      iterate_rows(ctx, ortho, *cut);
  }
  return turned ? ortho.matrix.transpose(0, 1) : ortho.matrix;
}

class MuonOptimizer final : public StatefulOptimizer<MuonState> {
 public:
  MuonOptimizer(std::vector<ParameterGroup> groups, const OptimizerSetup& setup)
      : StatefulOptimizer(std::move(groups)), cut_(setup.cut) {}

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
      const CutRows* const cut = cut_.rows_of(*parameter);
      update = orthogonalized(ctx, update, cut);
      // _adjust_lr, "original"
      const auto rows = static_cast<double>(cut ? cut->whole : grad.size(0));
      const auto columns = static_cast<double>(grad.size(1));
      compute(ctx, Unary::mul, *parameter, *parameter, 1 - lr() * weight_decay());
      compute(ctx, Binary::add, *parameter, *parameter, update, -lr() * std::sqrt(std::max(1.0, rows / columns)));
    }
  }

  /// out = a + weight * (b - a)
  static void interpolate(Context& ctx, const Tensor& out, const Tensor& a, const Tensor& b, double weight) {
    compute(ctx, Unary::mul, out, a, 1 - weight);
    compute(ctx, Binary::add, out, out, b, weight);
  }

  CutParameters cut_;
};

}  // namespace

std::unique_ptr<Optimizer> make_muon(std::vector<ParameterGroup> groups, const OptimizerSetup& setup) {
  return std::make_unique<MuonOptimizer>(std::move(groups), setup);
}

}  // namespace qlp
