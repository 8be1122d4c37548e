// torch/optim/_muon.py, torch 2.9 to 2.14.
#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "autograd/matmul.h"
#include "base/rounding.h"
#include "optim/clip_grad_norm.h"
#include "optim/implementations.h"
#include "optim/mesh_norm.h"
#include "optim/optimizer_state.h"
#include "tensor/collective.h"
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

/// Of rows that ranks share, each as many but for the last ones.
struct Rows {
  const RankGroup& group;
  std::int64_t whole;
  std::int64_t most() const { return ceil_div(whole, group.size); }
  bool even() const { return whole % group.size == 0; }
};

/// The rows of all ranks; padded where this one has fewer.
Tensor gathered(Context& ctx, const Tensor& part, const Tensor& padded, const Rows& rows) {
  Tensor out = empty(ctx, {rows.most() * rows.group.size, part.size(1)}, part.dtype(), Op::all_gather);
  all_gather(ctx, rows.group, out, padded.defined() ? padded : part);
  return out;
}
Tensor padded(Context& ctx, const Tensor& part, const Rows& rows) {
  Tensor out = empty(ctx, {rows.most(), part.size(1)}, part.dtype(), Op::pad);
  if (!ctx.kernels(out)) return out;
  fill(ctx, out, 0);
  copy_into(ctx, out.narrow(0, 0, part.size(0)), part);
  return out;
}
Tensor all_rows(Context& ctx, const Tensor& part, const Rows& rows) {
  const bool pads = part.size(0) < rows.most();
  return gathered(ctx, part, pads ? padded(ctx, part, rows) : Tensor(), rows).narrow(0, 0, rows.whole);
}

/// matrix @ matrix.T: the second has its columns cut, which are laid out behind each other, gathered and joined.
Tensor gram_of_rows(Context& ctx, const Tensor& matrix, const Rows& rows) {
  Tensor whole;
  {
    const bool lies_so = matrix.size(0) == rows.most() && rows.most() == 1;
    const Tensor columns = lies_so ? Tensor() : padded(ctx, matrix, rows);
    Tensor joined;
    {
      const Tensor parts = gathered(ctx, matrix, columns, rows);
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

/// The same where this rank has some rows of `b`, whose others are gathered for the time of it.
Tensor addmm_rows(Context& ctx, const Tensor& start, const Tensor& a, const Tensor& b, const Rows& rows, double beta,
                  double alpha) {
  return addmm(ctx, start, a, all_rows(ctx, b, rows), beta, alpha);
}

/// With the shorter dimension cut.
void iterate_rows(Context& ctx, Orthogonal& ortho, const Rows& rows) {
  auto& [matrix, gram, gram_update] = ortho;
  gram = gram_of_rows(ctx, matrix, rows);
  gram_update = addmm_rows(ctx, gram, gram, gram, rows, kB, kC);
  matrix = addmm_rows(ctx, matrix, gram_update, matrix, rows, kA, 1);
}

/// The same where `a` is this rank's part of a sum, which is worked out for the time of it.
Tensor addmm_sum(Context& ctx, const Tensor& start, const Tensor& a, const Tensor& b, const RankGroup& group,
                 double beta, double alpha) {
  const Tensor sum = empty_like(ctx, a, Op::all_reduce);
  copy_into(ctx, sum, a);
  all_reduce(ctx, group, sum, ReduceOp::sum);
  return addmm(ctx, start, sum, b, beta, alpha);
}

/// With the longer one cut: the small products are sums over the ranks.
void iterate_columns(Context& ctx, Orthogonal& ortho, const RankGroup& group) {
  auto& [matrix, gram, gram_update] = ortho;
  gram = mm(ctx, matrix, matrix.transpose(0, 1));
  gram_update = addmm_sum(ctx, gram, gram, gram, group, kB, kC);
  matrix = addmm_sum(ctx, matrix, gram_update, matrix, group, kA, 1);
}

/// _zeropower_via_newtonschulz: in bfloat16. `whole`: of the DTensor of which `update` has the rows of this rank, if it
/// is one.
Tensor orthogonalized(Context& ctx, const Tensor& update, const Shape* whole, const RankGroup& group) {
  const bool casts = update.dtype() != DType::bfloat16;
  Orthogonal ortho{casts ? empty_like(ctx, update, DType::bfloat16, Op::to_copy) : update, {}, {}};
  if (casts) copy_into(ctx, ortho.matrix, update);
  const Shape& shape = whole ? *whole : update.shape();
  const bool turned = shape[0] > shape[1];
  if (turned) ortho.matrix = ortho.matrix.transpose(0, 1);
  normalize(ctx, ortho.matrix, whole ? std::vector{group} : std::vector<RankGroup>{});
  for (int i = 0; i < kIterations; ++i) {
    if (!whole)
      iterate(ctx, ortho);
    else if (turned)
      iterate_columns(ctx, ortho, group);
    else
      iterate_rows(ctx, ortho, {group, shape[0]});
  }
  return turned ? ortho.matrix.transpose(0, 1) : ortho.matrix;
}

class MuonOptimizer final : public StatefulOptimizer<MuonState> {
 public:
  MuonOptimizer(std::vector<ParameterGroup> groups, const OptimizerSetup& setup)
      : StatefulOptimizer(std::move(groups)), group_(setup.shard_group) {
    for (const CutParameter& cut : setup.cut) wholes_.emplace(cut.part.impl(), cut.whole);
  }

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
      const auto cut = wholes_.find(parameter->impl());
      const Shape* const whole = cut != wholes_.end() ? &cut->second : nullptr;
      update = orthogonalized(ctx, update, whole, group_);
      // _adjust_lr, "original"
      const Shape& shape = whole ? *whole : grad.shape();
      const auto rows = static_cast<double>(shape[0]), columns = static_cast<double>(shape[1]);
      compute(ctx, Unary::mul, *parameter, *parameter, 1 - lr() * weight_decay());
      compute(ctx, Binary::add, *parameter, *parameter, update, -lr() * std::sqrt(std::max(1.0, rows / columns)));
    }
  }

  /// out = a + weight * (b - a)
  static void interpolate(Context& ctx, const Tensor& out, const Tensor& a, const Tensor& b, double weight) {
    compute(ctx, Unary::mul, out, a, 1 - weight);
    compute(ctx, Binary::add, out, out, b, weight);
  }

  RankGroup group_;
  std::unordered_map<const TensorImpl*, Shape> wholes_;  ///< of DTensors
};

}  // namespace

std::unique_ptr<Optimizer> make_muon(std::vector<ParameterGroup> groups, const OptimizerSetup& setup) {
  return std::make_unique<MuonOptimizer>(std::move(groups), setup);
}

}  // namespace qlp
