#include <cmath>
#include <limits>

#include "autograd/attention.h"
#include "autograd/attention_options.h"
#include "autograd/matmul.h"
#include "autograd/pointwise.h"
#include "autograd/reduce.h"
#include "autograd/views.h"
#include "tensor/compute.h"
#include "tensor/factories.h"

namespace qlp {
namespace {

/// ones().tril(), made additive: 0 where attended to, -inf elsewhere.
Tensor causal_mask(Context& ctx, std::int64_t rows, std::int64_t columns, DType dtype) {
  Tensor ones = empty(ctx, {rows, columns}, DType::boolean, Op::zeros);
  const Tensor lower = empty(ctx, {rows, columns}, DType::boolean, Op::clone);
  fill_causal_band(ctx, lower, 0, 1, 0);
  ones.reset();
  const Tensor zero = empty(ctx, {}, dtype, Op::where);
  const Tensor infinity = empty(ctx, {}, dtype, Op::where);
  Tensor mask = empty(ctx, {rows, columns}, dtype, Op::where);
  compute(ctx, Unary::select, mask, lower, 0, -std::numeric_limits<double>::infinity());
  return mask;
}

/// _safe_softmax: rows that attend to nothing become zeros, in place.
Tensor safe_softmax(Context& ctx, const Tensor& scores) {
  Tensor out = softmax(ctx, scores, scores.dtype());
  const Tensor infinite = empty(ctx, scores.shape(), DType::boolean, Op::ne);
  const Tensor whole_rows = empty(ctx, scores.shape().with(-1, 1), DType::boolean, Op::max);
  const Tensor zero = empty(ctx, {}, scores.dtype(), Op::zeros);
  return out;
}

}  // namespace

// _scaled_dot_product_attention_math in ATen/native/transformers/attention.cpp, torch 2.5 to 2.8.
Tensor math_attention(Context& ctx, const Tensor& q, const Tensor& k, const Tensor& v, double scaling) {
  const double root = std::sqrt(attention_options(q, {}, scaling).scale);
  Tensor mask;
  const Tensor query = scale(ctx, q, root);
  mask = causal_mask(ctx, q.size(2), k.size(2), q.dtype());
  const std::int64_t groups = q.size(1) / k.size(1);
  const Tensor key = repeat_interleave(ctx, k, groups);
  const Tensor value = repeat_interleave(ctx, v, groups);
  Tensor weights = batched_matmul(ctx, query, scale(ctx, transpose(ctx, key, -2, -1), root));
  compute(ctx, Binary::add, weights, weights, mask);  // in place
  weights = safe_softmax(ctx, weights);
  return batched_matmul(ctx, weights, value);
}

}  // namespace qlp
