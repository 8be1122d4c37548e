// A tree of modules under FSDP1: which modules are units, and what their root does around a whole pass.
#pragma once

#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "shard/fsdp1_unit.h"
#include "shard/fsdp1_wrap.h"

namespace qlp {

class Fsdp1Tree {
 public:
  /// Wraps every module below `root` that is in `wrapped`, children first, then the root itself; hangs the hooks on
  /// the units, but not on the root. `buffers` are cast when the first pass begins.
  Fsdp1Tree(Context& ctx, Module& root, const WrappedModules& wrapped, const Fsdp1Options& options,
            std::vector<Tensor*> buffers);
  Fsdp1Tree(const Fsdp1Tree&) = delete;
  Fsdp1Tree& operator=(const Fsdp1Tree&) = delete;

  // Around the forward pass of the root. The first begins an iteration, and gives `input` in the dtype of the
  // computation if it is floating (cast_root_forward_inputs).
  Tensor cast_root_input(Context& ctx, const Tensor& input);
  void pre_forward(Context& ctx, Module& root, const Tensor& input);
  void post_forward(Context& ctx, const std::vector<Tensor>& outputs);
  /// no_sync() where `sync` is false.
  void set_sync_gradients(Context& ctx, bool sync);

  /// In the order of modules(): the root first, if anything was left for it.
  const std::vector<Fsdp1Unit*>& units() const { return units_; }
  struct StateRequest {
    bool keeps = true;                       ///< the first rank
    bool in_chunks = false;                  ///< SHARDED_STATE_DICT: every rank keeps its part
    const Parameter* named_twice = nullptr;  ///< a tied table
  };
  /// The parameters below `module`, unit by unit, as they come to the host: whole (FULL_STATE_DICT, offload_to_cpu,
  /// rank0_only) or in chunks.
  void gather_state(Context& ctx, Module& module, const StateRequest& request, StateDict& out);
  /// FullyShardedDataParallel.clip_grad_norm_.
  Tensor clip_grad_norm(Context& ctx, double max_norm);

 private:
  void wrap(Context& ctx, Module& module, const WrappedModules& wrapped);
  void sync_states(Context& ctx, Module& module, const std::vector<Parameter*>& parameters);
  void make_unit(Context& ctx, Module& module, bool is_root);
  void begin(Context& ctx);
  void begin_backward(Context& ctx);
  void begin_backward_at(const std::vector<Tensor>& outputs);
  void end_backward(Context& ctx);
  std::vector<Tensor> gradients() const;

  Fsdp1Shared shared_;
  std::unordered_map<const Module*, std::unique_ptr<Fsdp1Unit>> by_module_;
  std::unordered_set<const Parameter*> managed_;
  std::unordered_set<const Tensor*> synced_;  ///< buffers
  std::vector<Fsdp1Unit*> units_;
  Fsdp1Unit* root_ = nullptr;  ///< none: every parameter is in a unit below
  std::vector<Tensor*> buffers_;
  bool begun_ = false;
};

}  // namespace qlp
