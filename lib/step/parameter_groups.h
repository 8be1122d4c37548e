// The groups of parameters that the Trainer makes its optimizer of (transformers trainer.py, create_optimizer;
// trainer_optimizer.py, _setup_low_rank_optimizer, 5.24).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/optim_targets.h"
#include "optim/optimizer.h"
#include "shard/sharding_runtime.h"

namespace qlp {

struct GroupOptions {
  std::optional<OptimTargets> optim_targets;  ///< set: what they name is a group of its own, all else another
  std::string name_prefix;                    ///< of what wraps the model, as optim_targets see it
  bool one_group = false;                     ///< all decay alike
  bool norms_decay = false;                   ///< norm weights are in the group with weight decay
  double weight_decay = 0;                    ///< of the group that has any
};

/// First those with weight decay, or with optim_targets those that are not projected; then the others. Tensors that are
/// on different meshes are no group (trainer.py, has_mixed_dtensor, 5.24).
struct ParameterGroups {
  std::vector<ParameterGroup> groups;
  std::vector<double> weight_decays;  ///< of each
};

ParameterGroups group_parameters(const std::vector<TrainedTensor>& trained, const GroupOptions& options);

}  // namespace qlp
