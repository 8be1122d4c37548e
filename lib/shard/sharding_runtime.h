// What a sharding runtime adds to a training run: set-up, and hooks in the step. The base class is one GPU: nothing.
#pragma once

#include <vector>

#include "base/diagnostic.h"
#include "nn/causal_lm.h"
#include "optim/clip_grad_norm.h"
#include "optim/optimizer.h"
#include "shard/state_dict.h"
#include "tensor/context.h"

namespace qlp {

/// A trained tensor under the name and role of the parameter it came from.
struct TrainedTensor {
  const Parameter* parameter = nullptr;
  Tensor tensor;
  bool flat = false;           ///< it stands for parameters, of which that one is the first
  Shape whole{};               ///< of a DTensor, cut by rows
  std::int64_t first_row = 0;  ///< of this rank
};

/// Puts the buffers of a module and of all below it on the GPU.
void move_buffers(Context& ctx, Module& module);

class ShardingRuntime {
 public:
  ShardingRuntime() = default;
  ShardingRuntime(const ShardingRuntime&) = delete;
  ShardingRuntime& operator=(const ShardingRuntime&) = delete;
  virtual ~ShardingRuntime() = default;

  /// What of this model the runtime stops at.
  virtual Diagnostics check(CausalLm&) const { return {}; }
  /// Trainer's constructor: the model goes to the GPU as a whole (model.to) unless the runtime moves it piece by piece.
  virtual void place_model(Context& ctx, CausalLm& model);
  /// accelerator.prepare(model): wraps modules, cuts parameters.
  virtual void prepare(Context&, CausalLm&) {}
  /// What the optimizer is given, in the order of named_parameters().
  virtual std::vector<TrainedTensor> trained(CausalLm& model);
  /// What named_parameters() has beside that.
  virtual std::vector<Shape> frozen(CausalLm& model);
  /// Once the optimizer is there: what makes its states before the first step.
  virtual void initialize_states(Context&, Optimizer&) {}
  /// Before a micro step; without `sync` gradients stay on the rank (no_sync).
  virtual void begin_micro_step(Context&, bool /*sync*/) {}
  // In a stage of a pipeline (torch/distributed/pipelining/stage.py, forward_maybe_with_nosync,
  // backward_maybe_with_nosync, perform_reduce_grad; 2.8 to 2.14): around the passes of its microbatches, of which the
  // last backward pass is the last of all.
  virtual void begin_stage_forward(Context&) {}
  virtual void begin_stage_backward(Context&, bool /*last*/) {}
  virtual void end_stage_passes(Context&) {}
  /// The forward pass of the wrapped model.
  virtual CausalLmOutput forward(Context& ctx, CausalLm& model, const Tensor& ids, const Tensor& labels,
                                 const Tensor& num_items, const RunOptions& options);
  /// True where backward() takes the Trainer's place: it works out gradients, reduces, clips and steps, as DeepSpeed's
  /// engine does.
  virtual bool steps_in_backward() const { return false; }
  virtual void backward(Context&, const Tensor& /*loss*/, Optimizer&) {}
  /// The norm of the gradients in the last step that backward() has made, before clipping; 0 on the dry device.
  virtual double grad_norm(Context&) const { return 0; }
  /// Whether that step was left out, as a gradient had overflowed.
  virtual bool skipped() const { return false; }
  /// Clips the gradients of `parameters` to `max_norm` and gives their norm.
  virtual Tensor clip_grad_norm(Context& ctx, const std::vector<Tensor>& parameters, double max_norm);
  /// The axes of the mesh of data parallelism over which each rank has a part of the gradients of parameters that are
  /// on `mesh` too.
  virtual std::vector<RankGroup> shard_axes(LayerMesh /*mesh*/) const { return {}; }
  /// Drops the gradients of `parameters`.
  virtual void zero_grad(Context&, const std::vector<Tensor>& parameters);
  /// The model as accelerator.get_state_dict() gives it for a FULL_STATE_DICT. Without `keeps` (ranks other than the
  /// first) the rank only takes part, and nothing is left of what was gathered.
  virtual StateDict state_dict(Context& ctx, CausalLm& model, bool keeps);
  /// What the Trainer writes beside that for training to go on: the optimizer's state, and under most runtimes the
  /// weights once more (transformers trainer.py, _save_optimizer_and_scheduler, 5.24).
  virtual void save_training_state(Context& ctx, CausalLm& model, Optimizer& optimizer,
                                   const TrainingStateRequest& request);
};

}  // namespace qlp
