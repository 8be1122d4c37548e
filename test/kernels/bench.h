// The same arrays on the host and on the device, the same operation on both, and how far the results are apart.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <cuda_runtime_api.h>
#include <doctest/doctest.h>

#include "cuda/kernels.h"
#include "cuda/streams.h"
#include "kernels/machine.h"
#include "tensor/cpu_kernels.h"

namespace qlp::test {

/// An array twice. Not copied: kernels look at its memory.
struct Twin {
  Twin(DType dtype, const Shape& shape) : Twin(dtype, shape, shape, contiguous_strides(shape)) {}
  /// A view of a dense array of `whole`.
  Twin(DType dtype, const Shape& whole, const Shape& shape, const Strides& strides);
  Twin(const Twin&) = delete;
  Twin& operator=(const Twin&) = delete;
  ~Twin();

  std::int64_t elements() const { return static_cast<std::int64_t>(memory.size() / size_of(cpu.dtype)); }

  std::vector<std::byte> memory;
  Array cpu, device;
};

class Bench {
 public:
  /// Uniform random numbers, from another sequence each time.
  void randomize(Twin& twin, double low = -1, double high = 1);
  void set(Twin& twin, const std::vector<double>& values);
  /// What the device has, as numbers, gaps included.
  std::vector<double> on_device(const Twin& twin);
  std::vector<double> on_host(const Twin& twin) const;

  /// Runs the operation on the host, and on the device in every order of threads; then every element of `results` is
  /// within `tolerance` times 1 + |reference| of the host's, and bit for bit the same in every order. Results are what
  /// the operation writes, and may also read.
  using Operation = std::function<void(Kernels&, const std::function<Array(const Twin&)>&)>;
  void compare(const Operation& operation, const std::vector<Twin*>& results, double tolerance);

  Kernels& device() { return device_; }
  Kernels& host() { return host_; }

 private:
  CpuKernels host_;
  CudaStreams streams_;
  std::unique_ptr<MatrixProducts> products_ = make_products(streams_);
  CudaKernels device_{streams_, products_.get(), host_};
  std::uint64_t sequence_ = 0;
};

/// Relative to 1 + |x|: the rounding of a result, and float32 sums of a few hundred terms.
inline double tolerance_of(DType dtype) {
  switch (dtype) {
    case DType::bfloat16:
      return 1.0 / 128;
    case DType::float16:
      return 1.0 / 1024;
    default:
      return 1e-5;
  }
}

inline constexpr DType kFloats[] = {DType::float32, DType::bfloat16, DType::float16};

}  // namespace qlp::test
