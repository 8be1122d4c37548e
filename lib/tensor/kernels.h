// What a device that computes can do with arrays. One virtual function for each primitive; no knowledge of autograd,
// models or the allocator. Numbers are worked out in float32 or better and rounded once, to the dtype of the result.
//
// Elementwise operands broadcast to the shape of the result, from the right. A result may be one of the operands where
// both have the same strides. Work is in the order of the calls on one stream; `stream` is that of the allocator.
#pragma once

#include <cstdint>

#include "memory/block.h"
#include "tensor/array.h"

namespace qlp {

/// y of an x, and of numbers p and q.
enum class Unary : std::uint8_t {
  copy,  ///< also from one dtype to another
  add,   ///< x + p
  mul,   ///< x * p
  neg,
  abs,
  square,
  cube,
  sqrt,
  rsqrt,
  reciprocal,
  cos,
  sin,
  tanh,
  silu,
  sigmoid,
  log_sigmoid,
  gelu_tanh,  ///< the approximation by tanh
  at_most,    ///< min(x, p)
  at_least,   ///< max(x, p)
  select,     ///< x != 0 ? p : q
  not_negative,
  is_nan,
  is_inf,
};

/// z of x and y, and of a number p.
enum class Binary : std::uint8_t {
  add,  ///< x + p * y
  mul,  ///< p * x * y
  div,
  logical_or,
  logical_and,
  less_equal,
  greater,
  equal,
  masked,              ///< y != 0 ? 0 : x, whatever x holds
  silu_backward,       ///< x: gradient of the result, y: operand
  gelu_tanh_backward,  ///< the same
  tanh_backward,       ///< x: gradient of the result, y: result
  sigmoid_backward,    ///< the same
  pass_at_most,        ///< y <= p ? x : 0
  pass_within,         ///< -p <= y <= p ? x : 0
};

/// Over the dimensions in which the result has size 1 (it has the rank of the operand), times a number.
enum class Reduce : std::uint8_t { sum, sum_of_squares, max, max_abs };

struct AttentionOptions {
  double scale = 1.0;
  bool causal = true;       ///< beside a mask
  std::int64_t window = 0;  ///< keys that a query sees, itself included; 0: all
};

/// torch.optim.AdamW and what bitsandbytes makes of it.
struct AdamWNumbers {
  double lr = 0, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  std::int64_t step = 1;  ///< of this parameter, from 1
};

/// The statistics of a blockwise quantization.
struct Blockwise {
  Array absmax;  ///< [blocks] float32
  Array code;    ///< [16 or 256] float32: the values of a code, ascending where there are 256
  std::int64_t blocksize = 64;
};

/// A packed weight with all its statistics; where absmax is in bytes: offset + nested code times nested absmax.
struct FourBitArrays {
  Array packed, absmax, code;
  Array offset, nested_absmax, nested_code;
  Shape shape;  ///< of the weight
};

class Kernels {
 public:
  Kernels() = default;
  Kernels(const Kernels&) = delete;
  Kernels& operator=(const Kernels&) = delete;
  virtual ~Kernels() = default;

  virtual void fill(StreamId stream, const Array& out, double value) = 0;
  /// start, start + 1, ...
  virtual void arange(StreamId stream, const Array& out, double start) = 0;
  /// Over the last two dimensions: `inside` where j <= i and, if there is a window, i - j < window; else `outside`.
  virtual void causal_band(StreamId stream, const Array& out, std::int64_t window, double inside, double outside) = 0;
  /// low + (high - low) * random_unit(key, first + i), i in row-major order.
  virtual void random_uniform(StreamId stream, const Array& out, std::uint64_t key, std::uint64_t first, double low,
                              double high) = 0;
  /// 1 where random_unit(key, first + i) < probability, else 0.
  virtual void bernoulli(StreamId stream, const Array& out, std::uint64_t key, std::uint64_t first,
                         double probability) = 0;
  /// Bytes that lie densely, from or to memory of the process. download() waits for the stream.
  virtual void upload(StreamId stream, void* to, const void* from, std::uint64_t bytes) = 0;
  virtual void download(StreamId stream, void* to, const void* from, std::uint64_t bytes) = 0;
  /// Memory that nobody may read before it is written: filled with bytes of 0xff, which is no number.
  virtual void poison(StreamId stream, void* data, std::uint64_t bytes) = 0;

  virtual void unary(StreamId stream, Unary op, const Array& out, const Array& x, double p, double q) = 0;
  virtual void binary(StreamId stream, Binary op, const Array& out, const Array& x, const Array& y, double p) = 0;
  virtual void reduce(StreamId stream, Reduce op, const Array& out, const Array& x, double factor) = 0;

  /// flag [] float32 becomes 1 if an element of x is not finite; else it stays what it is.
  virtual void flag_non_finite(StreamId stream, const Array& flag, const Array& x) = 0;

  /// out [.., M, N] = alpha * a [.., M, K] x b [.., K, N] + beta * out, of rank 2 or 3, any strides; float32 sums.
  virtual void gemm(StreamId stream, const Array& out, const Array& a, const Array& b, double alpha, double beta) = 0;

  /// out [n, ..] = table [index [n], ..]; index of int64.
  virtual void gather_rows(StreamId stream, const Array& out, const Array& table, const Array& index) = 0;
  /// out [index [n], ..] += rows [n, ..], summed in float32 in the order of n.
  virtual void scatter_add_rows(StreamId stream, const Array& out, const Array& rows, const Array& index) = 0;

  /// Over the last dimension.
  virtual void softmax(StreamId stream, const Array& out, const Array& x, bool log) = 0;
  virtual void softmax_backward(StreamId stream, const Array& out, const Array& grad, const Array& y, bool log) = 0;
  /// loss [] = -sum of log_probabilities [n, v] at labels, n that lie densely (negative ones are left out), over their
  /// number if `mean`; total_weight [] = that number.
  virtual void nll_loss(StreamId stream, const Array& loss, const Array& total_weight, const Array& log_probabilities,
                        const Array& labels, bool mean) = 0;
  virtual void nll_loss_backward(StreamId stream, const Array& out, const Array& grad, const Array& labels,
                                 const Array& total_weight, bool mean) = 0;
  /// losses [n] = cross entropy of logits [n, v] at labels [n]; the logits become its gradient.
  virtual void cross_entropy_in_place(StreamId stream, const Array& losses, const Array& logits,
                                      const Array& labels) = 0;

  /// x [rows, width] * rstd * (gain + offset), rstd [rows] = 1 / sqrt(mean(x^2) + eps).
  virtual void rms_norm(StreamId stream, const Array& out, const Array& rstd, const Array& x, const Array& gain,
                        double eps, double offset) = 0;
  /// dx may be `grad` itself; `dgain` [width] float32 may be missing.
  virtual void rms_norm_backward(StreamId stream, const Array& dx, const Array& dgain, const Array& grad,
                                 const Array& x, const Array& gain, const Array& rstd, double offset) = 0;
  /// out = silu(gate) * up, or gelu_tanh(gate) * up. Backward, gate and up become their gradients.
  virtual void gated_product(StreamId stream, const Array& out, const Array& gate, const Array& up, bool gelu) = 0;
  virtual void gated_product_backward(StreamId stream, const Array& gate, const Array& up, const Array& grad,
                                      bool gelu) = 0;
  /// x [B, heads, S, D] * cos + rotate_half(x) * sin, in place; cos and sin [.., S, D]. `inverse`: its gradient.
  virtual void rotate_in_place(StreamId stream, const Array& x, const Array& cos, const Array& sin, bool inverse) = 0;

  /// q, out [B, H, S, D]; k, v [B, Hkv, T, D], each for H / Hkv heads; mask [B, 1, S, T] additive, or boolean (true:
  /// seen), or missing; lse [B, H, >= S] float32, may have no elements.
  virtual void attention(StreamId stream, const Array& out, const Array& lse, const Array& q, const Array& k,
                         const Array& v, const Array& mask, const AttentionOptions& options) = 0;
  virtual void attention_backward(StreamId stream, const Array& dq, const Array& dk, const Array& dv, const Array& grad,
                                  const Array& out, const Array& lse, const Array& q, const Array& k, const Array& v,
                                  const Array& mask, const AttentionOptions& options) = 0;

  /// Two codes a byte, the first in the high half; each block of x over its greatest absolute value, which absmax gets.
  /// The nearest code of 16, by bitsandbytes' trees of comparisons (csrc/kernels.cu, dQuantizeNF4, dQuantizeFP4).
  virtual void quantize_4bit(StreamId stream, const Array& packed, const Blockwise& statistics, const Array& x,
                             bool nf4) = 0;
  virtual void dequantize_4bit(StreamId stream, const Array& out, const Array& packed, const Blockwise& statistics) = 0;
  /// out [M, N] = x [M, K] times the transpose of a packed weight [N, K], of which no dense copy is made.
  virtual void gemm_4bit(StreamId stream, const Array& out, const Array& x, const FourBitArrays& weight) = 0;
  /// One code of 256 a byte.
  virtual void quantize_8bit(StreamId stream, const Array& out, const Blockwise& statistics, const Array& x) = 0;
  virtual void dequantize_8bit(StreamId stream, const Array& out, const Array& codes, const Blockwise& statistics) = 0;

  virtual void adamw(StreamId stream, const Array& parameter, const Array& grad, const Array& exp_avg,
                     const Array& exp_avg_sq, const AdamWNumbers& numbers) = 0;
  /// The moments as codes (signed and unsigned), requantized block by block (csrc/kernels.cu,
  /// kOptimizerStatic8bit2StateBlockwise).
  virtual void adamw_8bit(StreamId stream, const Array& parameter, const Array& grad, const Array& exp_avg,
                          const Blockwise& first, const Array& exp_avg_sq, const Blockwise& second,
                          const AdamWNumbers& numbers) = 0;
};

}  // namespace qlp
