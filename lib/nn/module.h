// The tree of modules that a model is, its parameters, and the hooks that sharding runtimes hang on it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nn/parameter.h"
#include "tensor/context.h"

namespace qlp {

class Module;

/// A buffer of a module: moved to the device when the model is.
struct ModuleBuffer {
  Tensor* tensor = nullptr;
  Shape shape;
  bool in_model_dtype = false;  ///< else float32
};

/// What a sharding runtime does around the forward pass of a module.
class ForwardHooks {
 public:
  virtual ~ForwardHooks() = default;
  /// Before: parameters are made whole. Gives the input to go on with.
  virtual Tensor pre_forward(Context& ctx, Module& module, Tensor input) = 0;
  /// Before that: another input of the module. Gives the one to go on with.
  virtual Tensor further_input(Context& /*ctx*/, Module& /*module*/, Tensor input) { return input; }
  /// After: parameters may be taken apart again. Gives the output to go on with.
  virtual Tensor post_forward(Context& ctx, Module& module, Tensor output) = 0;
};

/// Which class of the Python stack a module stands for, as far as wrap policies and hooks ask.
enum class ModuleKind : std::uint8_t {
  model,
  decoder,  ///< the model without its head
  decoder_layer,
  attention,
  mlp,
  mixture,  ///< a router beside a list of experts
  router,
  experts,
  linear,
  linear_4bit,
  linear_8bit,
  lora_linear,
  lora_matrix,
  param_lora,
  dora,
  dropout,
  norm,
  embedding,
  rotary,
  modules_to_save,
};

class Module {
 public:
  Module(ModuleKind kind, std::string name) : kind_(kind), name_(std::move(name)) {}
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  virtual ~Module() = default;

  ModuleKind kind() const { return kind_; }
  /// Fully qualified, as named_modules() gives it in the model as transformers loads it.
  const std::string& name() const { return name_; }
  std::string leaf_name() const { return name_.substr(name_.rfind('.') + 1); }

  std::vector<std::unique_ptr<Parameter>>& own_parameters() { return parameters_; }
  /// Parameters of other modules that this one uses as its own (tied weights).
  const std::vector<Parameter*>& shared_parameters() const { return shared_parameters_; }
  const std::vector<Module*>& children() const { return children_; }
  virtual std::vector<ModuleBuffer> own_buffers() { return {}; }
  /// Gives buffers that have been made the numbers that they start with.
  virtual void fill_buffers(Context& /*ctx*/) {}

  /// Called for this module and all below it, parents first, in the order of registration.
  template <class F>
  void visit(F&& f) {
    f(*this);
    for (Module* child : children_) child->visit(f);
  }
  /// All parameters in the order of named_parameters(); a tied one once.
  std::vector<Parameter*> parameters();

  void set_hooks(ForwardHooks* hooks) { hooks_ = hooks; }
  void set_label(std::uint32_t label) { label_ = label; }
  std::uint32_t label() const { return label_; }

  /// Runs `forward` on the input as nn.Module.__call__ does: hooks around it, its name on what it makes.
  template <class F>
  Tensor call(Context& ctx, const Tensor& input, F&& forward) {
    const Scoped name(ctx.module, label_);
    if (!hooks_ || ctx.abandoned) return forward(input);
    const Tensor prepared = hooks_->pre_forward(ctx, *this, input);
    Tensor output = forward(prepared);
    return ctx.abandoned ? output : hooks_->post_forward(ctx, *this, std::move(output));
  }
  /// An input beside that of `call`, as the hooks hand it on.
  Tensor further_input(Context& ctx, const Tensor& input) {
    return hooks_ && input.defined() && !ctx.abandoned ? hooks_->further_input(ctx, *this, input) : input;
  }

 protected:
  Parameter& add_parameter(std::string leaf, ParamRole role, Shape shape);
  void share_parameter(Parameter& parameter) { shared_parameters_.push_back(&parameter); }
  void drop_shared_parameters() { shared_parameters_.clear(); }
  void add_child(Module& child) { children_.push_back(&child); }

 private:
  ModuleKind kind_;
  std::string name_;
  std::vector<std::unique_ptr<Parameter>> parameters_;
  std::vector<Parameter*> shared_parameters_;
  std::vector<Module*> children_;
  ForwardHooks* hooks_ = nullptr;
  std::uint32_t label_ = 0;
};

}  // namespace qlp
