// What the implementations of optimizers share: a state for each parameter, and lists by dtype.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "autograd/node.h"
#include "optim/optimizer.h"
#include "tensor/compute.h"
#include "tensor/factories.h"

namespace qlp {

/// `State::tensors()` gives its tensors.
template <class State>
class StatefulOptimizer : public Optimizer {
 public:
  explicit StatefulOptimizer(std::vector<ParameterGroup> groups) : Optimizer(std::move(groups)) {
    for (const auto& group : this->groups()) states_.emplace_back(group.size());
  }

  void step(Context& ctx) final {
    const Scoped category(ctx.category, Category::workspace);
    for (std::size_t g = 0; g < groups().size(); ++g) {
      std::vector<Entry> entries;
      for (std::size_t i = 0; i < groups()[g].size(); ++i)
        if (grad_of(groups()[g][i]).defined()) entries.push_back({&groups()[g][i], &states_[g][i]});
      if (entries.empty()) continue;
      group_ = g;
      // What is offloaded is updated on the host, with all that it takes.
      const bool on_host = entries.front().parameter->on_host();
      const Scoped place(ctx.place, on_host ? Place::host : Place::device);
      step_group(ctx, entries);
    }
    end_step();
  }
  void step_alone(Context& ctx, const Tensor& parameter) final {
    const Scoped category(ctx.category, Category::workspace);
    for (std::size_t g = 0; g < groups().size(); ++g)
      for (std::size_t i = 0; i < groups()[g].size(); ++i)
        if (groups()[g][i].is(parameter)) {
          group_ = g;
          step_group(ctx, {{&groups()[g][i], &states_[g][i]}});
        }
    end_step();
  }

  std::vector<OptimizerEntry> state() const override {
    std::vector<OptimizerEntry> entries;
    for (std::size_t g = 0; g < groups().size(); ++g)
      for (std::size_t i = 0; i < groups()[g].size(); ++i) {
        OptimizerEntry entry{groups()[g][i], {}};
        for (const Tensor& tensor : states_[g][i].tensors())
          if (tensor.defined()) entry.state.push_back(tensor);
        if (!entry.state.empty()) entries.push_back(std::move(entry));
      }
    return entries;
  }

 protected:
  struct Entry {
    const Tensor* parameter;
    State* state;
  };
  static std::vector<Tensor> parameters_of(const std::vector<Entry>& entries) {
    std::vector<Tensor> parameters;
    for (const Entry& entry : entries) parameters.push_back(*entry.parameter);
    return parameters;
  }
  /// Of the group whose step is made.
  std::size_t group() const { return group_; }
  double weight_decay() const { return Optimizer::weight_decay(group_); }
  /// The parameters of one group that have a gradient.
  virtual void step_group(Context& ctx, const std::vector<Entry>& entries) = 0;
  /// The step function returns.
  virtual void end_step() {}
  /// Calls `f(state)` for what is projected: all parameters but those of the first group.
  template <class F>
  void for_projected(F&& f) {
    for (std::size_t g = 1; g < groups().size(); ++g)
      for (State& state : states_[g]) f(state);
  }
  /// Calls `f(parameter, state)` for all parameters.
  template <class F>
  void each(F&& f) {
    for (std::size_t g = 0; g < groups().size(); ++g)
      for (std::size_t i = 0; i < groups()[g].size(); ++i) f(groups()[g][i], states_[g][i]);
  }

 private:
  std::vector<std::vector<State>> states_;
  std::size_t group_ = 0;
};

/// torch.zeros_like(parameter), kept.
inline Tensor state_like(Context& ctx, const Tensor& parameter) {
  const Scoped category(ctx.category, Category::optimizer_state);
  Tensor state = empty_like(ctx, parameter, Op::optimizer_state);
  fill(ctx, state, 0);
  return state;
}
/// The same in another dtype.
inline Tensor state_like(Context& ctx, const Tensor& parameter, DType dtype) {
  const Scoped category(ctx.category, Category::optimizer_state);
  Tensor state = empty_like(ctx, parameter, dtype, Op::optimizer_state);
  fill(ctx, state, 0);
  return state;
}
/// A row-major tensor of zeros that is kept.
inline Tensor state_of(Context& ctx, const Shape& shape, DType dtype) {
  const Scoped category(ctx.category, Category::optimizer_state);
  Tensor state = empty(ctx, shape, dtype, Op::optimizer_state);
  fill(ctx, state, 0);
  return state;
}

/// Lists of items of one dtype each. The hash map that PyTorch groups in gives the dtype that it met last first
/// (_group_tensors_by_device_and_dtype).
template <class Item, class DTypeOf>
std::vector<std::vector<Item>> by_dtype(const std::vector<Item>& items, DTypeOf dtype_of) {
  std::vector<std::vector<Item>> lists;
  for (const Item& item : items) {
    auto list = std::find_if(lists.begin(), lists.end(),
                             [&](const auto& other) { return dtype_of(other.front()) == dtype_of(item); });
    if (list == lists.end()) list = lists.emplace(list);
    list->push_back(item);
  }
  std::reverse(lists.begin(), lists.end());
  return lists;
}
inline std::vector<std::vector<Tensor>> by_dtype(const std::vector<Tensor>& tensors) {
  return by_dtype(tensors, [](const Tensor& tensor) { return tensor.dtype(); });
}

}  // namespace qlp
