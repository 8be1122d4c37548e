// One FSDP1 unit at run time: what happens before and after the forward and backward pass of a wrapped module
// (torch/distributed/fsdp/_runtime_utils.py, torch 2.4 to 2.14).
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "nn/module.h"
#include "shard/fsdp1_handle.h"

namespace qlp {

/// What all units of a model share through the root.
struct Fsdp1Shared {
  Fsdp1Options options;
  /// The order in which units began in the first iteration, and ended in this one, for prefetching (_ExecOrderData).
  std::vector<FlatParamHandle*> pre_forward_order, post_forward_order;
  bool first_iteration = true;
  /// Gathered parameters whose memory has been given up, not waited for yet (_FreeEventQueue).
  std::size_t pending_frees = 0;
  bool sync_gradients = true;
  bool final_callback_queued = false;
  /// Runs before the first backward hook of an iteration; queues the final callback.
  std::function<void(Context&)> begin_backward;
};

class Fsdp1Unit final : public ForwardHooks {
 public:
  Fsdp1Unit(std::unique_ptr<FlatParamHandle> handle, Fsdp1Shared& shared, bool is_root)
      : handle_(std::move(handle)), shared_(shared), is_root_(is_root) {}

  Tensor pre_forward(Context& ctx, Module& module, Tensor input) override;
  Tensor post_forward(Context& ctx, Module& module, Tensor output) override;

  // The halves of post_forward, for a root with several outputs.
  bool leaves_forward_alone() const { return handle_->state == FlatParamHandle::State::backward_pre; }
  void reshard_after_forward(Context& ctx);
  void begin_pre_backward_hooks(Context& ctx);
  void register_pre_backward_hook(Context& ctx, const Tensor& output);

  /// After the backward pass: reshards what is still gathered, and readies the gradient.
  void finish_backward(Context& ctx);
  FlatParamHandle& handle() { return *handle_; }

 private:
  void unshard(Context& ctx, FlatParamHandle& handle);
  void reshard(Context& ctx, bool frees);
  void reshard_in_backward(Context& ctx);
  void register_post_backward_hook(Context& ctx);
  void register_reshard_only_hook(Context& ctx, const Tensor& input);
  void pre_backward(Context& ctx);
  void prefetch(Context& ctx, FlatParamHandle* next, FlatParamHandle::State state);
  FlatParamHandle* next_in_forward() const;
  FlatParamHandle* next_in_backward() const;
  void post_backward(Context& ctx);
  void reduce_gradient(Context& ctx);
  void take_reduced(Context& ctx, Tensor sharded);
  void reduce_whole_gradient(Context& ctx);

  std::unique_ptr<FlatParamHandle> handle_;
  Fsdp1Shared& shared_;
  bool is_root_;
  bool hooked_ = false;  ///< _post_backward_hook_state is there
  /// The AccumulateGrad of the flat parameter, or, of a frozen one, the node whose gradient ends its use. Alive to the
  /// end of the backward pass, with all that they hold.
  Ref<Node> hook_node_;
};

}  // namespace qlp
