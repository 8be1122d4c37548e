// Primitives of mixtures of experts and of LLM.int8, which devices have beside those of tensor/kernels.h.
#pragma once

#include <cstdint>
#include <stdexcept>

#include "tensor/context.h"
#include "tensor/kernels.h"

namespace qlp {

class RoutingKernels {
 public:
  RoutingKernels() = default;
  RoutingKernels(const RoutingKernels&) = delete;
  RoutingKernels& operator=(const RoutingKernels&) = delete;
  virtual ~RoutingKernels() = default;

  /// values and indices [.., k] of int64: the greatest of each row of x [.., n], greatest first; of equal ones the
  /// first.
  virtual void topk(StreamId stream, const Array& values, const Array& indices, const Array& x) = 0;
  /// out [.., k] = x [.., n] at indices [.., k].
  virtual void gather_last(StreamId stream, const Array& out, const Array& x, const Array& indices) = 0;
  /// out [.., n] = 0, but values [.., k] at indices [.., k].
  virtual void scatter_last(StreamId stream, const Array& out, const Array& values, const Array& indices) = 0;
  /// out [m, 1] = x [t, k] at rows [m] and columns [m].
  virtual void gather_elements(StreamId stream, const Array& out, const Array& x, const Array& rows,
                               const Array& columns) = 0;
  /// out [t, k] = 0, but values [m, 1] at rows [m] and columns [m], of which no pair comes twice.
  virtual void put_elements(StreamId stream, const Array& out, const Array& values, const Array& rows,
                            const Array& columns) = 0;
  /// values [n] ascending, and where in x [n] they were; equal ones stay in their order. All of int64.
  virtual void sort(StreamId stream, const Array& values, const Array& order, const Array& x) = 0;
  /// out = x / divisor, without what is left over. Both of int64.
  virtual void divide(StreamId stream, const Array& out, const Array& x, std::int64_t divisor) = 0;
  /// counts and ends [e]: how many of the ascending keys [n] are 0, 1, ..., and where each kind ends. All of int32.
  virtual void count_groups(StreamId stream, const Array& counts, const Array& ends, const Array& keys) = 0;
  /// Rows of a [S, K], in groups that end at ends [e], each with its matrix of b [e, K, N]: out [S, N].
  virtual void grouped_gemm(StreamId stream, const Array& out, const Array& a, const Array& b, const Array& ends) = 0;
  /// out [e, M, N]: for each group the transpose of its rows of a [S, M] times those of b [S, N].
  virtual void grouped_outer(StreamId stream, const Array& out, const Array& a, const Array& b, const Array& ends) = 0;

  /// scales [n]: the greatest absolute value of each row of x [n, k]; out of int8 = round(127 x / scale)
  /// (bitsandbytes csrc/kernels.cu, kInt8VectorQuant).
  virtual void quantize_rows_8bit(StreamId stream, const Array& out, const Array& scales, const Array& x) = 0;
};

/// Those for tensors that are where this one is; none on the dry device.
inline RoutingKernels* routing_kernels(const Context& ctx, const Tensor& on) {
  Kernels* const kernels = ctx.kernels(on);
  if (!kernels) return nullptr;
  auto* const routing = dynamic_cast<RoutingKernels*>(kernels);
  if (!routing) throw std::logic_error("a primitive that this device does not have");
  return routing;
}

}  // namespace qlp
