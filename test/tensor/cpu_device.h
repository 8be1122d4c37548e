// A device that computes on the CPU, as test cases need it.
#pragma once

#include <functional>
#include <vector>

#include "autograd/engine.h"
#include "memory/caching_allocator.h"
#include "memory/host_segments.h"
#include "tensor/compute.h"
#include "tensor/cpu_kernels.h"
#include "tensor/factories.h"
#include "tensor/random.h"

namespace qlp::test {

struct CpuDevice {
  HostSegments source;
  CachingAllocator allocator{AllocatorConfig{}, source};
  Timeline timeline;
  CpuKernels kernels;
  Device device{allocator, timeline, {}, {&kernels, &kernels, nullptr, true}};
  Engine engine;
  Context ctx{device, engine};

  CpuDevice() {
    timeline.begin_phase("test", allocator.stats());
    device.host().begin_phase("test");
  }
  CpuDevice(const CpuDevice&) = delete;
  CpuDevice& operator=(const CpuDevice&) = delete;

  Tensor tensor(const Shape& shape, const std::vector<double>& values, DType dtype = DType::float64) {
    Tensor out = empty(ctx, shape, dtype, Op::input);
    upload(ctx, out, values);
    return out;
  }
  /// Uniform between `low` and `high`; another one each time.
  Tensor random(const Shape& shape, double low = -1, double high = 1, DType dtype = DType::float64) {
    Tensor out = empty(ctx, shape, dtype, Op::input);
    kernels.random_uniform(0, array_of(out), random_key(7, ++made_), 0, low, high);
    return out;
  }
  std::vector<double> numbers(const Tensor& tensor) {
    std::vector<double> out(static_cast<std::size_t>(tensor.numel()));
    const Array into{reinterpret_cast<std::byte*>(out.data()), DType::float64, tensor.shape(),
                     contiguous_strides(tensor.shape())};
    kernels.unary(0, Unary::copy, into, array_of(tensor), 0, 0);
    return out;
  }

 private:
  std::uint64_t made_ = 0;
};

/// The greatest difference between the gradients that a backward pass gives for the weighted sum of what `function`
/// returns, and differences of that sum: both over the greatest gradient.
inline double gradient_error(CpuDevice& cpu, const std::function<Tensor(Context&)>& function,
                             const std::vector<Tensor>& leaves, double step = 1e-5) {
  Context& ctx = cpu.ctx;
  for (const Tensor& leaf : leaves) set_requires_grad(leaf, true);
  const auto evaluate = [&] {
    const Scoped calls(ctx.random.calls, std::uint64_t{0});
    return function(ctx);
  };
  std::vector<double> weights;
  {
    const Tensor out = evaluate();
    const Tensor grad = empty_like(ctx, out, Op::input);
    cpu.kernels.random_uniform(0, array_of(grad), 3, 0, 0.5, 1.5);
    weights = cpu.numbers(grad);
    const Scoped calls(ctx.random.calls, std::uint64_t{0});
    ctx.engine.backward(ctx, {out}, {grad});
  }
  const auto weighted = [&] {
    const Scoped no_grad(ctx.grad_enabled, false);
    const std::vector<double> out = cpu.numbers(evaluate());
    double sum = 0;
    for (std::size_t i = 0; i < out.size(); ++i) sum += out[i] * weights[i];
    return sum;
  };
  double error = 0, greatest = 0;
  for (const Tensor& leaf : leaves) {
    const std::vector<double> grad = cpu.numbers(grad_of(leaf)), values = cpu.numbers(leaf);
    const auto set = [&](std::size_t i, double value) {
      std::vector<double> moved = values;
      moved[i] = value;
      upload(ctx, leaf, moved);
    };
    for (std::size_t i = 0; i < values.size(); ++i) {
      set(i, values[i] + step);
      const double above = weighted();
      set(i, values[i] - step);
      const double below = weighted();
      set(i, values[i]);
      error = std::max(error, std::abs((above - below) / (2 * step) - grad[i]));
      greatest = std::max(greatest, std::abs(grad[i]));
    }
  }
  return error / greatest;
}

}  // namespace qlp::test
