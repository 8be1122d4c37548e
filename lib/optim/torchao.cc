// torchao/optim/adam.py, subclass_8bit.py, subclass_4bit.py, quant_utils.py; torchao 0.18 on torch 2.8 and 2.14.
#include "optim/implementations.h"
#include "optim/optimizer_state.h"
#include "quant/codes.h"
#include "tensor/compute.h"
#include "tensor/optimizer_kernels.h"

namespace qlp {
namespace {

constexpr std::int64_t kMinElements = 4096;  // _new_buffer

/// One average: in few bits, with a scale for each block and the values that codes stand for, or like the parameter.
struct Buffer {
  Tensor codes, scale, qmap;
};
struct TorchaoState {
  Buffer exp_avg, exp_avg_sq;
  std::int64_t steps = 0;
  std::vector<Tensor> tensors() const {
    return {exp_avg.codes, exp_avg.scale, exp_avg.qmap, exp_avg_sq.codes, exp_avg_sq.scale, exp_avg_sq.qmap};
  }
};

class TorchaoOptimizer final : public StatefulOptimizer<TorchaoState> {
 public:
  TorchaoOptimizer(const Torchao& kind, std::vector<ParameterGroup> groups, const OptimizerBehaviour& behaviour)
      : StatefulOptimizer(std::move(groups)), bits_(kind.bits), block_(torchao_block(kind, behaviour)) {}

  /// aten.slice, which clones what codes stand for.
  std::vector<Tensor> slice_state(Context& ctx, const Tensor& parameter) const override {
    std::vector<Tensor> clones;
    for (const OptimizerEntry& entry : state()) {
      if (!entry.parameter.is(parameter) || !is_quantized(parameter)) continue;
      for (const std::size_t qmap : {2U, 5U}) {  // TorchaoState::tensors
        clones.push_back(state_like(ctx, entry.state[qmap]));
        copy_into(ctx, clones.back(), entry.state[qmap]);
      }
    }
    return clones;
  }

 private:
  void step_group(Context& ctx, const std::vector<Entry>& entries) override {
    for (const auto& [parameter, state] : entries) {
      if (!state->exp_avg.codes.defined()) {
        state->exp_avg = new_buffer(ctx, *parameter, true);
        state->exp_avg_sq = new_buffer(ctx, *parameter, false);
      }
      update(ctx, *parameter, *state);
    }
  }

  bool is_quantized(const Tensor& parameter) const {
    return parameter.numel() >= kMinElements && parameter.numel() % block_ == 0;
  }

  Buffer new_buffer(Context& ctx, const Tensor& parameter, bool is_signed) const {
    if (!is_quantized(parameter)) return {.codes = state_like(ctx, parameter), .scale = {}, .qmap = {}};
    Buffer average;
    average.codes = bits_ == 8 ? state_of(ctx, parameter.shape(), DType::uint8)
                               : state_of(ctx, {parameter.numel() / 2}, DType::uint8);
    average.scale = state_of(ctx, {parameter.numel() / block_}, DType::float32);
    average.qmap = state_of(ctx, {std::int64_t{1} << bits_}, DType::float32);
    upload(ctx, average.qmap, bits_ == 8 ? dynamic_values(is_signed) : values_of_4_bits(is_signed));
    return average;
  }

  /// single_param_adam, compiled: one kernel, but that codes of 4 bits are packed two by two when all are there.
  /// (When it compiles kernels, Inductor also times some of them, and clears the cache of the GPU by a tensor of that
  /// size; not planned.)
  void update(Context& ctx, const Tensor& parameter, TorchaoState& state) const {
    ++state.steps;
    if (bits_ == 4 && is_quantized(parameter)) pack(ctx, parameter.numel());
    Kernels* const kernels = ctx.kernels(parameter);
    if (!kernels) return;
    const AdamWNumbers numbers{.lr = lr(), .weight_decay = weight_decay(), .step = state.steps};
    const Array weights = array_of(parameter), grad = array_of(grad_of(parameter));
    const auto &first = state.exp_avg, &second = state.exp_avg_sq;
    if (is_quantized(parameter) && bits_ == 4)
      optimizer_kernels(ctx, parameter)
          ->update(ctx.stream, UpdateRule::adamw, weights, grad, {packed(first), packed(second)},
                   {.lr = lr(), .weight_decay = weight_decay(), .step = state.steps});
    else if (is_quantized(parameter))
      kernels->adamw_8bit(ctx.stream, weights, grad, array_of(first.codes),
                          {array_of(first.scale), array_of(first.qmap), block_}, array_of(second.codes),
                          {array_of(second.scale), array_of(second.qmap), block_}, numbers);
    else
      kernels->adamw(ctx.stream, weights, grad, array_of(first.codes), array_of(second.codes), numbers);
  }

  Average packed(const Buffer& buffer) const {
    return {.values = array_of(buffer.codes), .codes = {array_of(buffer.scale), array_of(buffer.qmap), block_}};
  }

  /// get_qmap_signed, get_qmap_unsigned: of the latter no value is 0.
  static std::vector<double> values_of_4_bits(bool is_signed) {
    if (is_signed) return dynamic_values_of_4_bits();
    std::vector<double> values;
    for (int i = 1; i <= 16; ++i) values.push_back(i / 16.0);
    return values;
  }

  /// Of both averages the scales, the scaled values in float32, and the codes in int64.
  void pack(Context& ctx, std::int64_t numel) const {
    const auto buffer = [&](std::int64_t count, DType dtype) { return empty(ctx, {count}, dtype, Op::quantize_4bit); };
    Tensor scale1 = buffer(numel / block_, DType::float32), scale2 = buffer(numel / block_, DType::float32);
    Tensor values1 = buffer(numel, DType::float32), values2 = buffer(numel, DType::float32);
    Tensor codes1 = buffer(numel, DType::int64), codes2 = buffer(numel, DType::int64);
    for (Tensor* done : {&values1, &codes1, &scale1, &values2, &codes2, &scale2}) *done = {};
  }

  int bits_;
  std::int64_t block_;
};

}  // namespace

std::unique_ptr<Optimizer> make_torchao(const Torchao& kind, std::vector<ParameterGroup> groups,
                                        const OptimizerBehaviour& behaviour) {
  return std::make_unique<TorchaoOptimizer>(kind, std::move(groups), behaviour);
}

}  // namespace qlp
