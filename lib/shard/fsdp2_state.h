// The hooks that fully_shard hangs on modules (torch/distributed/fsdp/_fully_shard/_fsdp_state.py).
#pragma once

#include <memory>
#include <set>
#include <vector>

#include "nn/module.h"
#include "shard/fsdp2_group.h"

namespace qlp {

class Fsdp2State;

/// FSDPStateContext and FSDPCommContext: what the states of a model share.
struct Fsdp2Shared {
  Fsdp2Options options;
  Fsdp2Options of_experts;  ///< that expert parallelism spreads
  Fsdp2Comm comm;
  std::vector<Fsdp2State*> states;  ///< the root first, then in the order of named_modules()
  Fsdp2State* forward_root = nullptr;
  bool final_callback_queued = false;
  bool is_last_backward = true;  ///< else what a backward pass leaves is kept for the next one
};

/// One call of fully_shard, on one module or on several that run one after the other.
class Fsdp2State final : public ForwardHooks {
 public:
  /// `group` may be null: no parameters are left for it.
  Fsdp2State(Fsdp2Shared& shared, std::vector<Module*> modules, std::unique_ptr<Fsdp2Group> group)
      : shared_(shared), modules_(std::move(modules)), group_(std::move(group)) {}

  Fsdp2Group* group() { return group_.get(); }
  const std::vector<Module*>& modules() const { return modules_; }
  /// set_modules_to_forward_prefetch
  void set_forward_prefetch(std::vector<Fsdp2State*> states) { forward_prefetch_ = std::move(states); }
  /// set_modules_to_backward_prefetch
  void set_backward_prefetch(std::vector<Fsdp2State*> states) { backward_prefetch_ = std::move(states); }

  Tensor pre_forward(Context& ctx, Module& module, Tensor input) override;
  Tensor further_input(Context& ctx, Module& module, Tensor input) override;
  Tensor post_forward(Context& ctx, Module& module, Tensor output) override;
  /// The same for all results of a module; those that want a gradient get a hook.
  void post_forward(Context& ctx, const std::vector<Tensor*>& outputs);
  /// _root_post_backward_final_callback
  static void end_backward(Context& ctx, Fsdp2Shared& shared);
  /// An input of a module in the dtype of its parameters; anything but floats, or nothing, as it is.
  Tensor cast_input(Context& ctx, Tensor input) const;

 private:
  Tensor begin_forward(Context& ctx, Tensor input);
  void cast_outputs(Context& ctx, const std::vector<Tensor*>& outputs);
  void pre_backward(Context& ctx);
  static void prefetch(Context& ctx, const std::vector<Fsdp2State*>& states, Fsdp2Phase phase);

  Fsdp2Shared& shared_;
  std::vector<Module*> modules_;
  std::unique_ptr<Fsdp2Group> group_;
  Fsdp2Phase phase_ = Fsdp2Phase::idle;
  std::vector<Fsdp2State*> forward_prefetch_, backward_prefetch_;  ///< told by the user
  std::set<const Module*> to_run_;                                 ///< of the modules in this forward pass
};

}  // namespace qlp
