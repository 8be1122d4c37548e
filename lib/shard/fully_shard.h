// torch.distributed.fsdp.fully_shard: cuts the parameters below modules and hangs hooks on them
// (torch/distributed/fsdp/_fully_shard/_fully_shard.py, _fsdp_init.py).
#pragma once

#include <functional>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "shard/fsdp2_state.h"

namespace qlp {

class FullyShard {
 public:
  /// `of_experts`: of those that expert parallelism spreads.
  explicit FullyShard(const Fsdp2Options& options, const Fsdp2Options& of_experts = {}) {
    shared_.options = options, shared_.of_experts = of_experts;
  }
  FullyShard(const FullyShard&) = delete;
  FullyShard& operator=(const FullyShard&) = delete;

  const Fsdp2Options& options() const { return shared_.options; }
  const Fsdp2Options& of_experts() const { return shared_.of_experts; }

  /// Who holds the parameters of the root until end(), which lets go of them in this order.
  struct Holders {
    std::vector<Parameter*> state_dict;  ///< holds the tensors as they are now
    std::vector<Parameter*> variables;   ///< hold the parameters themselves, whose tensors may be moved to the GPU
  };
  /// Those that `ignored` says yes to are left alone.
  void begin(Holders holders, const std::function<bool(const Parameter&)>& ignored);
  /// Somebody goes on holding trained parameters as they are when they are cut.
  void keep_whole() { keeps_whole_ = true; }
  /// What is held of a parameter until end().
  const Tensor& whole(const Parameter& parameter) const { return whole_.at(&parameter); }
  /// One group of all parameters below `modules` that no earlier call has taken. A parameter that is shared with an
  /// earlier group is cut once more.
  void add(Context& ctx, const std::vector<Module*>& modules, const ReshardAfterForward& reshard);
  /// The same of parameters that are cut already; each belongs to the first group that takes it.
  void adopt(Context& ctx, const std::vector<Module*>& modules, const ReshardAfterForward& reshard,
             bool experts = false);
  /// lazy_init: shards that were made without padding get it.
  void pad_shards(Context& ctx);
  /// The whole parameters go, unless somebody else holds them. The last group added must be that of the root.
  void end(Module& root);

  /// Gathers, and runs the once-per-forward work of the root.
  Fsdp2State& root() { return *states_.back(); }
  /// What stands for a parameter on this rank; null for an ignored one.
  Fsdp2Param* shard_of(const Parameter& parameter) const;
  /// The hooks that stand on a module; null where there are none.
  Fsdp2State* state_of(const Module& module) const;
  /// Their group; null where there is none.
  Fsdp2Group* group_of(const Module& module) const;
  /// Every group drops what it has gathered.
  void reshard(Context& ctx);
  /// set_requires_gradient_sync
  void set_reduces(bool reduces);
  /// A backward pass in a stage of a pipeline: whatever it gathers stays, and nothing is reduced
  /// (set_is_last_backward, set_reshard_after_backward, set_requires_gradient_sync).
  void begin_stage_backward();
  /// After the last of them: everything is cut again, and reduced.
  void end_stage_passes(Context& ctx);

 private:
  void add_state(const std::vector<Module*>& modules, std::vector<Fsdp2Param> params,
                 const ReshardAfterForward& reshard, const Fsdp2Options& options);
  std::vector<Parameter*> managed_parameters(const std::vector<Module*>& modules) const;

  Fsdp2Shared shared_;
  std::vector<std::unique_ptr<Fsdp2State>> states_;
  std::unordered_map<const Module*, Fsdp2State*> state_of_;
  std::unordered_map<const Parameter*, Tensor> whole_;
  Holders holders_;
  bool keeps_whole_ = false;
  std::vector<Tensor> kept_;
  std::unordered_map<const Parameter*, Fsdp2Param*> shard_of_;  ///< of a parameter in two groups, that of the later
  std::unordered_set<const Parameter*> ignored_;
};

}  // namespace qlp
