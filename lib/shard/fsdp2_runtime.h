// FSDP2 as accelerate sets it up (accelerate/utils/fsdp_utils.py, fsdp2_prepare_model) on torch's fully_shard.
#pragma once

#include <cstdint>
#include <vector>

#include "shard/fully_shard.h"
#include "shard/sharding_runtime.h"

namespace qlp {

class Fsdp2Runtime final : public ShardingRuntime {
 public:
  /// `of_experts`: the mesh of those that expert parallelism spreads.
  Fsdp2Runtime(const Fsdp2Options& options, const Fsdp2Preparation& preparation, const Fsdp2Options& of_experts = {});

  /// The optimizer has made state for the parameters as they are before they are cut, by which it holds them for good.
  void keep_whole() { fully_shard_.keep_whole(); }
  void place_model(Context&, CausalLm&) override {}  ///< moved unit by unit in prepare()
  std::vector<TrainedTensor> trained(CausalLm& model) override;
  void prepare(Context& ctx, CausalLm& model) override;
  void begin_micro_step(Context& ctx, bool sync) override;
  void begin_stage_backward(Context&, bool /*last*/) override { fully_shard_.begin_stage_backward(); }
  void end_stage_passes(Context& ctx) override { fully_shard_.end_stage_passes(ctx); }
  CausalLmOutput forward(Context& ctx, CausalLm& model, const Tensor& ids, const Tensor& labels,
                         const Tensor& num_items, const RunOptions& options) override;
  std::vector<RankGroup> shard_axes(LayerMesh mesh) const override {
    return {(mesh == LayerMesh::ep ? fully_shard_.of_experts() : fully_shard_.options()).group()};
  }
  Tensor clip_grad_norm(Context& ctx, const std::vector<Tensor>& parameters, double max_norm) override;
  StateDict state_dict(Context& ctx, CausalLm& model, bool keeps) override;
  void save_training_state(Context& ctx, CausalLm& model, Optimizer& optimizer,
                           const TrainingStateRequest& request) override;

 private:
  void adopt_units(Context& ctx, CausalLm& model);
  bool ignores(const Parameter& parameter) const;
  void load_state_dict(Context& ctx, CausalLm& model);
  void upcast_trained(Context& ctx, CausalLm& model) const;
  void move_ignored(Context& ctx, CausalLm& model) const;
  Tensor shard_units(Context& ctx, CausalLm& model);
  void set_prefetch(CausalLm& model) const;
  void cast_shards(Context& ctx, Module& module);
  std::vector<Tensor> clones_of_whole(Context& ctx, CausalLm& model) const;
  Tensor whole_of(Context& ctx, const Parameter& parameter) const;
  void save_shards(Context& ctx, CausalLm& model, bool adapter_only) const;
  void save_trained(Context& ctx, CausalLm& model, bool keeps) const;
  void save_optimizer(Context& ctx, CausalLm& model, Optimizer& optimizer, const TrainingStateRequest& request) const;

  Fsdp2Preparation preparation_;
  FullyShard fully_shard_;
  bool initialized_ = false;
};

}  // namespace qlp
