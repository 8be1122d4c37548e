// Optimizers: what they keep per parameter, and what a step takes for its time.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "optim/clip_grad_norm.h"
#include "optim/cut_rows.h"
#include "optim/optimizer_kind.h"
#include "tensor/context.h"

namespace qlp {

/// Parameters that share their settings; transformers makes two groups, with and without weight decay.
using ParameterGroup = std::vector<Tensor>;

/// What an optimizer keeps of one of its parameters, in the order of its names: those that are there.
struct OptimizerEntry {
  Tensor parameter;
  std::vector<Tensor> state;
};

/// Tensors of one dtype.
struct StatesAlike {
  std::size_t count = 0;
  DType dtype = DType::float32;
};

class Optimizer {
 public:
  explicit Optimizer(std::vector<ParameterGroup> groups) : groups_(std::move(groups)) {}
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;
  virtual ~Optimizer() = default;

  /// One step on the parameters that have a gradient.
  virtual void step(Context& ctx) = 0;
  /// The same for one of them, where each has an optimizer of its own (steps_by_layers).
  virtual void step_alone(Context& ctx, const Tensor& parameter) = 0;
  /// The backward pass is done, in which some update what they find.
  virtual void finish_backward(Context& /*ctx*/) {}
  /// State in memory that CUDA moves between GPU and host as it is used (cudaMallocManaged).
  virtual Bytes managed_state() const { return {}; }
  /// state_dict()["state"]: of the parameters that it keeps anything of, beside managed memory.
  virtual std::vector<OptimizerEntry> state() const { return {}; }
  /// What a slice of its state of `parameter` holds beside that state.
  virtual std::vector<Tensor> slice_state(Context& /*ctx*/, const Tensor& /*parameter*/) const { return {}; }
  /// What it keeps of every vector after a step, in the vector's shape, whose dtype is `parameter`: what ranks with
  /// different parts, or none, agree on. None too where it depends on how long the vector is.
  virtual StatesAlike states_alike(DType parameter) const;
  const std::vector<ParameterGroup>& groups() const { return groups_; }
  /// Of the steps to come; a run that does not compute needs none.
  void set_lr(double lr) { lr_ = lr; }
  double lr() const { return lr_; }
  /// Of each group, in their order; 0 where none is given.
  void set_weight_decays(std::vector<double> decays) { weight_decays_ = std::move(decays); }
  double weight_decay(std::size_t group) const { return group < weight_decays_.size() ? weight_decays_[group] : 0; }

 private:
  std::vector<ParameterGroup> groups_;
  double lr_ = 0;
  std::vector<double> weight_decays_;
};

/// torch.nn.utils.clip_grad_norm_ of parameters, which may be parts of DTensors.
using ClipGradNorm = std::function<Tensor(Context& ctx, const std::vector<Tensor>& parameters, double max_norm)>;

struct OptimizerSetup {
  OptimizerBehaviour behaviour{};
  std::vector<Tensor> embeddings{};  ///< weights of nn.Embedding modules, as far as the optimizer is given them
  AdagradStart adagrad_start = AdagradStart::moved;
  std::vector<Shape> frozen{};  ///< of the weights that it is not given, of which AdaLOMO makes sums too
  ClipGradNorm clip_grad_norm = qlp::clip_grad_norm;
  std::vector<CutParameter> cut{};  ///< of those that it is given
};

std::unique_ptr<Optimizer> make_optimizer(Context& ctx, const OptimizerKind& kind, std::vector<ParameterGroup> groups,
                                          const OptimizerSetup& setup = {});

}  // namespace qlp
