// The streams of one GPU under the allocator's numbers, and the events between them.
#pragma once

#include <array>
#include <functional>

#include <cuda_runtime_api.h>

#include "cuda/matrix_products.h"
#include "memory/block.h"
#include "tensor/streams.h"

namespace qlp {

/// Streams are made when they are first asked for; all end with this object. Functions throw CudaError.
class CudaStreams final : public Streams {
 public:
  CudaStreams() = default;
  ~CudaStreams() override;

  cudaStream_t operator[](StreamId stream);
  void wait(StreamId stream, StreamId other) override;
  void synchronize() override;
  void use_workspace(StreamId stream, void* data, std::uint64_t bytes) override;

  /// Waits for one stream.
  void finish(StreamId stream);
  /// Called again and again while something is waited for; may throw to end the wait.
  void set_watch(std::function<void()> watch) { watch_ = std::move(watch); }
  /// Who is told of workspaces.
  void set_products(MatrixProducts* products) { products_ = products; }

 private:
  struct Stream {
    cudaStream_t handle = nullptr;
    cudaEvent_t event = nullptr;  ///< recorded anew for each wait: a wait is for the state at its call
  };
  Stream& made(StreamId stream);

  std::array<Stream, kMaxStreams> streams_{};
  std::function<void()> watch_;
  MatrixProducts* products_ = nullptr;
};

}  // namespace qlp
