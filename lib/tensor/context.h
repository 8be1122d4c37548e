// The state under which operations run, which PyTorch keeps per thread: stream, grad mode, autocast, labels.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tensor/device.h"
#include "tensor/op.h"
#include "tensor/tensor.h"

namespace qlp {

class SavedTensorHooks;  // autograd/saved_tensor.h
class Engine;            // autograd/engine.h

/// torch.autocast: the mode, and the casts of trainable weights that it keeps until the outermost region ends.
struct Autocast {
  bool enabled = false;
  DType dtype = DType::bfloat16;
  int depth = 0;                                              ///< nested regions
  std::vector<Tensor> cache;                                  ///< the casts, oldest first
  std::unordered_map<const TensorImpl*, std::size_t> cached;  ///< where in it the cast of a weight is
};

/// Where numbers from a counter come from: the same on every rank and for every plan.
struct Randomness {
  std::uint64_t seed = 0;
  std::uint64_t calls = 0;   ///< of operations that draw, so far; a recomputation begins where the first run began
  std::int64_t replica = 0;  ///< this rank's place among those that have samples of their own
};

struct Context {
  Context(Device& on, Engine& backward) : device(on), engine(backward) {}

  Device& device;
  Engine& engine;
  StreamId stream = 0;
  Place place = Place::device;  ///< of new tensors
  LaunchThread thread = LaunchThread::main;
  bool grad_enabled = true;
  bool training = true;  ///< nn.Module.training of the whole model
  /// What runs is given up and only on its way out (checkpoint's early stop): it takes no memory, leaves no nodes and
  /// runs no hooks. An exception would do the same at a hundred times the cost of the few operations that are left.
  bool abandoned = false;
  Autocast autocast;
  Randomness random;
  std::vector<SavedTensorHooks*> saved_hooks;  ///< innermost last
  /// Numbers of the next autograd nodes: each thread counts for itself (ATen/SequenceNumber.cpp).
  std::array<std::uint64_t, 2> next_sequence{};
  Category category = Category::activations;  ///< of what is made now
  std::uint32_t module = 0;                   ///< index of the name of the module that runs, in the Timeline's names

  /// What computes on tensors that are where this one is; none on the dry device, and where nothing is to be made.
  Kernels* kernels(const Tensor& on) const {
    const Compute& compute = device.compute();
    if (!compute.kernels || abandoned || on.storage().place() == Place::meta) return nullptr;
    return on.on_host() ? compute.host_kernels : compute.kernels;
  }
  std::uint64_t take_sequence() { return next_sequence[static_cast<std::size_t>(thread)]++; }
  AllocationLabel label(Op op) const { return {category, static_cast<std::uint32_t>(op), module}; }
};

/// Sets a field of the context for a scope.
template <class T>
class Scoped {
 public:
  Scoped(T& field, T value) : field_(field), old_(std::exchange(field, std::move(value))) {}
  ~Scoped() { field_ = std::move(old_); }
  Scoped(const Scoped&) = delete;
  Scoped& operator=(const Scoped&) = delete;

 private:
  T& field_;
  T old_;
};

}  // namespace qlp
