// One stage of a pipeline: the order of its passes, and the buffers that its neighbours write to
// (torch.distributed.pipelining, stage.py and schedules.py of 2.14: PipelineStage, Schedule1F1B).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tensor/collective.h"
#include "tensor/context.h"

namespace qlp {

struct PipelineOptions {
  std::int64_t stages = 1;
  std::int64_t stage = 0;
  std::int64_t microbatches = 1;
  std::int64_t hidden_size = 0;
  DType dtype = DType::bfloat16;  ///< of hidden states between stages
  std::int64_t stride = 1;        ///< neighbours are so many ranks apart: those of a stage lie between

  RankGroup group() const { return {MeshAxis::pp, stages, stride}; }
  bool first() const { return stage == 0; }
  bool last() const { return stage == stages - 1; }
  /// Forward passes ahead of the first backward pass, and the most that are in flight: as many as there are stages from
  /// this one on.
  std::int64_t warmup() const { return std::min(microbatches, stages - stage); }
  /// How many of the microbatches are played: from the second one after the warm-up on, each does what that one did.
  std::int64_t played() const { return std::min(microbatches, stages + 2); }
};

/// A forward pass whose backward pass is to come.
struct StagePass {
  Tensor input;   ///< from the stage before
  Tensor output;  ///< hidden states, or on the last stage the loss
  Tensor logits;  ///< which the stage holds as its output beside the loss
};

/// What arrives from the stages before and after: a tensor for each microbatch, made once.
class PipelineBuffers {
 public:
  explicit PipelineBuffers(const PipelineOptions& options) : options_(options) {}

  /// Makes them on first use. `micro_batch_size` and `seq_len` of a microbatch.
  void make(Context& ctx, std::int64_t micro_batch_size, std::int64_t seq_len);
  /// Hidden states of microbatch `i` from the stage before: a leaf that wants a gradient.
  Tensor receive_input(Context& ctx, std::int64_t i);
  void send_output(Context& ctx, const Tensor& hidden) { send(ctx, hidden, options_.stage + 1); }
  /// Gradients of this stage's output, from the stage after.
  Tensor receive_gradient(Context& ctx, std::int64_t i);
  void send_gradient(Context& ctx, const Tensor& gradient) { send(ctx, gradient, options_.stage - 1); }
  /// Sends what is held back: a message waits for the next one that comes from where it goes, and both pass at once, as
  /// neighbours that both sent first would wait for each other (schedules.py, Schedule1F1B: _batch_p2p).
  void flush(Context& ctx);

 private:
  void send(Context& ctx, const Tensor& tensor, std::int64_t to);
  void receive(Context& ctx, const Tensor& tensor, std::int64_t from);

  PipelineOptions options_;
  Tensor held_;  ///< back, to be sent to
  std::int64_t held_for_ = 0;
  std::vector<Tensor> inputs_, gradients_;
};

}  // namespace qlp
