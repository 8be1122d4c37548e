// Matrix products of a library.
#pragma once

#include "memory/block.h"
#include "tensor/array.h"

namespace qlp {

class MatrixProducts {
 public:
  MatrixProducts() = default;
  MatrixProducts(const MatrixProducts&) = delete;
  MatrixProducts& operator=(const MatrixProducts&) = delete;
  virtual ~MatrixProducts() = default;

  /// out = alpha * a x b + beta * out, as Kernels::gemm. False if it does not take these layouts or dtypes: nothing was
  /// done.
  virtual bool gemm(StreamId stream, const Array& out, const Array& a, const Array& b, double alpha, double beta) = 0;
  /// Memory that products on this stream may use from now on.
  virtual void set_workspace(StreamId stream, void* data, std::uint64_t bytes) = 0;
};

}  // namespace qlp
