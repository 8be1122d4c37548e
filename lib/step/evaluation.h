// The evaluation loop of transformers' Trainer: what it keeps of every batch, on the GPU and then on the host
// (transformers/trainer.py, evaluation_loop; trainer_pt_utils.py, EvalLoopContainer).
#pragma once

#include <cstdint>
#include <functional>

#include "tensor/context.h"
#include "tensor/work.h"

namespace qlp {

struct EvaluationOptions {
  std::int64_t batch_size = 8;
  std::int64_t batches = 1;        ///< of each rank
  bool keeps_predictions = false;  ///< logits and labels, not only the loss
  std::int64_t accumulation = 0;   ///< batches after which what is kept goes to the host; 0: after the last
  RankGroup group;                 ///< over which results are gathered
};

/// What a batch gives. Logits and labels are left out where only the loss counts.
struct Prediction {
  Tensor loss, logits, labels;
};

/// Runs the model on a batch.
using Predict = std::function<Prediction(Context&)>;

/// From the third batch on each does what the one before did, so only what comes of it is made; the last one before
/// results go to the host is run again.
void evaluation_loop(Context& ctx, const EvaluationOptions& options, const Predict& predict);

}  // namespace qlp
