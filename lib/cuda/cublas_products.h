// Matrix products by cuBLASLt.
#pragma once

#include <array>
#include <cublasLt.h>
#include <map>
#include <string>

#include "cuda/matrix_products.h"
#include "cuda/streams.h"
#include "verify/gpu_failure.h"

namespace qlp {

struct CublasError : GpuFailure {
  CublasError(cublasStatus_t status, const char* what)
      : GpuFailure(std::string(what) + ": " + cublasLtGetStatusString(status)) {}
};

/// 16 and 32-bit floats with sums in float32; the workspace of each stream is the allocator's. Throws CublasError.
class CublasProducts final : public MatrixProducts {
 public:
  explicit CublasProducts(CudaStreams& streams);
  ~CublasProducts() override;

  bool gemm(StreamId stream, const Array& out, const Array& a, const Array& b, double alpha, double beta) override;
  void set_workspace(StreamId stream, void* data, std::uint64_t bytes) override {
    workspaces_.at(stream) = {data, bytes};
  }

 private:
  struct Workspace {
    void* data = nullptr;
    std::uint64_t bytes = 0;
  };
  /// What decides about the algorithm: sizes, layouts, dtypes, alignments, workspace.
  using Key = std::array<std::int64_t, 18>;

  CudaStreams& streams_;
  cublasLtHandle_t handle_ = nullptr;
  std::array<Workspace, kMaxStreams> workspaces_{};
  std::map<Key, cublasLtMatmulAlgo_t> algorithms_;
};

}  // namespace qlp
