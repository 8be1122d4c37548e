// Every weight of a job as it lies on the GPU before a plan spreads it, from the formulas of the model families.
// Written without the module tree, so that closed forms and the dry run can be held against each other.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/dtype.h"
#include "nn/module.h"
#include "plan/job_spec.h"
#include "plan/load_behaviour.h"

namespace qlp {

/// What a weight is, as far as plans and libraries treat it by kind.
enum class WeightKind : std::uint8_t {
  table,   ///< embedding, and a head that is not tied to it
  norm,    ///< one row per element
  matrix,  ///< of a linear layer
  packed,  ///< the same in 4 bits: [n, 1] of the storage dtype
  bias,
  adapter,     ///< LoRA's matrices, DoRA's magnitudes, rows of single tokens
  saved_copy,  ///< of modules_to_save
};

/// One weight after load, k-bit preparation and adapter.
struct ListedWeight {
  static constexpr std::int64_t kOutsideLayers = -1;

  WeightKind kind = WeightKind::matrix;
  std::int64_t layer = kOutsideLayers;  ///< of the decoder
  std::optional<ModuleKind> block;      ///< of the layer, where it is in its attention or its dense MLP
  std::int64_t rows = 0, width = 1;     ///< as stored: the first dimension, and elements in each row
  bool vector = false;                  ///< of one dimension
  bool embedding = false;               ///< the weight of an nn.Embedding
  bool beside_embedding = false;        ///< what an adapter adds to it
  bool projected = false;               ///< of a linear layer that optim_target_modules names
  bool adapter_bias = false;            ///< of a matrix of an adapter
  bool experts = false;                 ///< of all experts of a layer
  DType dtype = DType::bfloat16;
  bool trained = true;
  std::int64_t elements = 0;      ///< of the weight itself; more than rows x width where it is packed
  DType input = DType::bfloat16;  ///< of a bias beside a 4-bit weight: what its layer reads while everything is whole

  std::int64_t stored() const { return rows * width; }
  bool has_weight_decay(bool norms_decay) const {
    return kind != WeightKind::bias && !adapter_bias && (!of_norm() || norms_decay);
  }
  /// Of a norm itself, or the copy of it that is trained.
  bool of_norm() const { return kind == WeightKind::norm || (kind == WeightKind::saved_copy && vector); }
  bool added() const { return kind == WeightKind::adapter || kind == WeightKind::saved_copy; }
};

using Weights = std::vector<ListedWeight>;

/// In the order of named_parameters(); a tied head is not listed. Of layers that tensor parallelism shares, the part of
/// one rank, with the elements of the whole. `behaviour`: StackProfile::load.
Weights list_weights(const JobSpec& job, const LoadBehaviour& behaviour);

}  // namespace qlp
