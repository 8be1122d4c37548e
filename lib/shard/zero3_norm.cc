#include "shard/zero3_norm.h"

#include <algorithm>

#include "optim/clip_grad_norm.h"
#include "shard/zero_norm.h"
#include "tensor/collective.h"
#include "tensor/compute.h"
#include "tensor/factories.h"

namespace qlp {
namespace {

constexpr std::int64_t kNormPiece = 250'000'000;  // buffer_size

Tensor scalar(Context& ctx, Op op, DType dtype = DType::float64) { return empty(ctx, {}, dtype, op); }

}  // namespace

Tensor direct_norm(Context& ctx, const std::vector<Tensor>& gradients, const RankGroup& group) {
  const Scoped category(ctx.category, Category::workspace);
  std::vector<Tensor> norms;
  for (const Tensor& gradient : gradients) norms.push_back(double_norm(ctx, gradient));
  const Shape all{static_cast<std::int64_t>(norms.size())};
  Tensor squares;
  {
    const Tensor stacked = empty(ctx, all, DType::float64, Op::stack);
    stack_into(ctx, stacked, norms);
    squares = empty(ctx, all, DType::float64, Op::pow);
    compute(ctx, Unary::square, squares, stacked);
  }
  const Tensor sum = scalar(ctx, Op::sum);
  reduce_all(ctx, Reduce::sum, sum, squares);
  squares.reset();
  all_reduce(ctx, group, sum, ReduceOp::sum);
  Tensor norm = scalar(ctx, Op::pow);
  compute(ctx, Unary::sqrt, norm, sum);
  Tensor is_inf;
  {
    const Tensor magnitude = scalar(ctx, Op::abs);
    is_inf = scalar(ctx, Op::eq, DType::boolean);
  }
  const Tensor is_nan = scalar(ctx, Op::ne, DType::boolean);
  const Tensor either = scalar(ctx, Op::add, DType::boolean);
  const Tensor err = scalar(ctx, Op::input, DType::float32);
  const Tensor masked = scalar(ctx, Op::where);
  copy_into(ctx, masked, norm);
  norm = masked;
  return norm;
}

Tensor buffered_norm(Context& ctx, const Tensor& gradient) {
  const std::int64_t numel = gradient.numel();
  const Scoped category(ctx.category, Category::workspace);
  Tensor squares;
  for (std::int64_t done = 0; done < numel; done += kNormPiece) {
    const Tensor piece = double_norm(ctx, gradient.flat(done, std::min(kNormPiece, numel - done)));
    const Tensor square = scalar(ctx, Op::pow);
    compute(ctx, Unary::square, square, piece);
    if (squares.defined())
      compute(ctx, Binary::add, squares, squares, square);
    else
      squares = square;
  }
  Tensor root = scalar(ctx, Op::pow);
  compute(ctx, Unary::sqrt, root, squares);
  return root;
}

double total_of_norms(Context& ctx, const std::vector<Tensor>& norms, const RankGroup& group) {
  const Scoped category(ctx.category, Category::workspace);
  Tensor total;
  for (const Tensor& norm : norms) {
    const Tensor square = scalar(ctx, Op::pow), sum = scalar(ctx, Op::add);
    compute(ctx, Unary::square, square, norm);
    if (total.defined())
      compute(ctx, Binary::add, sum, square, total);
    else
      copy_into(ctx, sum, square);
    total = sum;
  }
  const Tensor sum = empty(ctx, {1}, DType::float32, Op::input);
  fill(ctx, sum, total.defined() ? item(ctx, total) : 0);
  all_reduce(ctx, group, sum, ReduceOp::sum);
  const Tensor norm = scalar(ctx, Op::pow, DType::float32);
  compute(ctx, Unary::sqrt, norm, sum);
  return item(ctx, norm);
}

}  // namespace qlp
