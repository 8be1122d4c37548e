// bitsandbytes/optim/optimizer.py, ademamix.py; bitsandbytes 0.43 to 0.50. galore_torch 1.0, adamw8bit.py.
#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "base/rounding.h"
#include "optim/galore_projector.h"
#include "optim/implementations.h"
#include "optim/optimizer_state.h"
#include "quant/codes.h"
#include "tensor/compute.h"
#include "tensor/optimizer_kernels.h"

namespace qlp {
namespace {

constexpr std::int64_t kMin8BitSize = 4096;     // elements; min_8bit_size of all classes
constexpr std::int64_t kMinPagedSize = 100000;  // elements; get_state_buffer
constexpr double kGaLoreDecay = 0.01;           // AdamW8bit's own, as the Trainer gives none
constexpr std::int64_t kMapSize = 256;          // values of a byte; create_dynamic_map

struct State {
  bool made = false;
  Tensor state1, state2;                      ///< none where they are in managed memory
  std::shared_ptr<std::byte> paged1, paged2;  ///< of a run that computes
  Tensor absmax1, absmax2;
  Tensor map1, map2;
  Tensor unorm_vec;
  std::int64_t steps = 0;
  std::optional<GaLoreProjector> projector;
  std::vector<Tensor> tensors() const {
    std::vector<Tensor> all{state1, state2, absmax1, absmax2, unorm_vec};
    if (projector) projector->add_tensors(all);
    return all;
  }
};

class BnbOptimizer final : public StatefulOptimizer<State> {
 public:
  BnbOptimizer(const Bitsandbytes& kind, std::vector<ParameterGroup> groups, OptimizerSetup setup,
               const std::optional<Projection>& projection)
      : StatefulOptimizer(std::move(groups)), kind_(kind), setup_(std::move(setup)), projection_(projection) {
    if (projection) for_projected([](State& state) { state.projector.emplace(); });
  }

  Bytes managed_state() const override { return managed_; }
  StatesAlike states_alike(DType parameter) const override {
    const bool mixes = kind_.algorithm == Bitsandbytes::Algorithm::ademamix;
    if (kind_.optim_bits == 8 || kind_.is_paged || mixes) return Optimizer::states_alike(parameter);
    return {kind_.algorithm == Bitsandbytes::Algorithm::adamw ? std::size_t{2} : std::size_t{1}, DType::float32};
  }

 private:
  void step_group(Context& ctx, const std::vector<Entry>& entries) override {
    for (const auto& [parameter, state] : entries) {
      if (state->projector) {
        step_projected(ctx, *parameter, *state);
        continue;
      }
      if (!state->made) init_state(ctx, *parameter, *state);
      update(ctx, *parameter, *state);
      ctx.device.synchronize();
    }
  }

  /// The step function's name of the last gradient that was projected.
  void end_step() override { grad_ = {}; }

  /// The parameter's memory becomes that of an update of fewer elements, and then that of a copy of the parameter, to
  /// which what the update stands for is added. Its gradient stays projected.
  void step_projected(Context& ctx, const Tensor& parameter, State& state) {
    grad_ = state.projector->project(ctx, *projection_, grad_of(parameter), state.steps);
    Tensor low_rank;
    {
      const Scoped category(ctx.category, parameter.storage().label().category);
      const Tensor saved_data = empty_like(ctx, parameter, Op::clone);
      copy_into(ctx, saved_data, parameter);
      low_rank = empty_like(ctx, grad_, parameter.dtype(), Op::clone);
      fill(ctx, low_rank, 0);
      parameter.impl()->storage = saved_data.impl()->storage;
    }
    grad_.storage().set_label({Category::gradients, static_cast<std::uint32_t>(Op::mm), ctx.module});
    set_grad(parameter, grad_);
    set_grad(low_rank, grad_);
    if (!state.made) init_state(ctx, low_rank, state);
    update(ctx, low_rank, state, 0);
    ctx.device.synchronize();
    {
      const Tensor update = state.projector->project_back(ctx, *projection_, low_rank);
      compute(ctx, Binary::add, parameter, parameter, update);
    }
    compute(ctx, Unary::mul, parameter, parameter, 1 - lr() * kGaLoreDecay);
  }

  void update(Context& ctx, const Tensor& parameter, State& state) const {
    update(ctx, parameter, state, projection_ ? kGaLoreDecay : weight_decay());
  }
  void update(Context& ctx, const Tensor& parameter, State& state, double decay) const {
    ++state.steps;
    Kernels* const kernels = ctx.kernels(parameter);
    if (!kernels) return;
    const Array weights = array_of(parameter), grad = array_of(grad_of(parameter));
    const Average first = average(parameter, state.state1, state.paged1, state.absmax1, state.map1);
    const Average second = average(parameter, state.state2, state.paged2, state.absmax2, state.map2);
    if (kind_.algorithm == Bitsandbytes::Algorithm::adamw) {
      const AdamWNumbers adamw{.lr = lr(), .weight_decay = decay, .step = state.steps};
      if (in_8_bits(parameter))
        kernels->adamw_8bit(ctx.stream, weights, grad, first.values, first.codes, second.values, second.codes, adamw);
      else
        kernels->adamw(ctx.stream, weights, grad, first.values, second.values, adamw);
      return;
    }
    std::vector<Average> averages{first};
    if (kind_.algorithm == Bitsandbytes::Algorithm::ademamix) {
      averages.push_back(behind(first, parameter.numel()));
      averages.push_back(second), averages.back().is_signed = false;
    }
    optimizer_kernels(ctx, parameter)->update(ctx.stream, rule(), weights, grad, averages, numbers(state.steps));
  }

  /// The first average of a state, in memory of the device or in pages; not given where the algorithm has none.
  Average average(const Tensor& parameter, const Tensor& state, const std::shared_ptr<std::byte>& pages,
                  const Tensor& absmax, const Tensor& map) const {
    const bool codes = in_8_bits(parameter);
    Average out;
    std::byte* const data = state.defined() ? state.data() : pages.get();
    if (!data) return out;
    out.values = {data, codes ? DType::uint8 : DType::float32, parameter.shape(), parameter.strides()};
    if (codes) out.codes = {array_of(absmax), array_of(map), setup_.behaviour.bnb_blocksize};
    return out;
  }

  /// AdEMAMix's second average lies behind its first, and so do its maxima.
  static Average behind(const Average& first, std::int64_t numel) {
    Average out = first;
    out.values.data += bytes_of(numel, first.values.dtype).count();
    if (out.codes.code.given())
      out.codes.absmax.data += bytes_of(ceil_div(numel, out.codes.blocksize), DType::float32).count();
    return out;
  }

  UpdateRule rule() const {
    using Algorithm = Bitsandbytes::Algorithm;
    return kind_.algorithm == Algorithm::lion      ? UpdateRule::lion
           : kind_.algorithm == Algorithm::rmsprop ? UpdateRule::rmsprop
                                                   : UpdateRule::ademamix;
  }
  /// As the Trainer makes them (trainer_optimizer.py): Lion with its own betas, the others with the classes' defaults.
  UpdateNumbers numbers(std::int64_t step) const {
    UpdateNumbers numbers{.lr = lr(), .weight_decay = weight_decay(), .step = step};
    constexpr double kAlpha = 0.99;
    if (kind_.algorithm == Bitsandbytes::Algorithm::rmsprop) numbers.alpha = kAlpha;
    return numbers;
  }

  bool in_8_bits(const Tensor& parameter) const {
    if (kind_.optim_bits != 8 || parameter.numel() < kMin8BitSize) return false;
    const auto& spared = setup_.embeddings;
    return !setup_.behaviour.bnb_spares_embeddings ||
           std::none_of(spared.begin(), spared.end(), [&](const Tensor& other) { return other.is(parameter); });
  }

  void init_state(Context& ctx, const Tensor& parameter, State& state) {
    const bool mixes = kind_.algorithm == Bitsandbytes::Algorithm::ademamix;  // two averages in the first state
    const bool two = mixes || kind_.algorithm == Bitsandbytes::Algorithm::adamw;
    const bool in_8_bits = this->in_8_bits(parameter);
    const DType dtype = in_8_bits ? DType::uint8 : DType::float32;
    state.made = true;
    if (in_8_bits) {
      const bool alone = projection_ && projection_->layerwise;  // in an optimizer of its own
      if (alone) map1_ = {}, map2_ = {};
      if (!map1_.defined()) {
        map1_ = state_of(ctx, {kMapSize}, DType::float32);
        upload(ctx, map1_, dynamic_values(true));
      }
      if (two && !map2_.defined()) {
        map2_ = state_of(ctx, {kMapSize}, DType::float32);
        upload(ctx, map2_, dynamic_values(false));
      }
      state.map1 = map1_, state.map2 = map2_;
    }
    const std::int64_t blocks = in_8_bits ? ceil_div(parameter.numel(), setup_.behaviour.bnb_blocksize) : 0;
    const auto make_absmax = [&] {
      if (!in_8_bits) return;
      state.absmax1 = state_of(ctx, mixes ? Shape{2, blocks} : Shape{blocks}, DType::float32);
      if (two) state.absmax2 = state_of(ctx, {blocks}, DType::float32);
    };
    if (mixes) make_absmax();
    state.state1 = buffer(ctx, parameter, dtype, mixes ? 2 : 1, state.paged1);
    if (two) state.state2 = buffer(ctx, parameter, dtype, 1, state.paged2);
    if (!mixes) make_absmax();
    if (projection_ && setup_.behaviour.bnb_galore_norm) state.unorm_vec = state_of(ctx, {1}, DType::float32);
  }

  /// get_state_buffer: where pages pay off they are in managed memory, but for parameters on the host.
  Tensor buffer(Context& ctx, const Tensor& parameter, DType dtype, std::int64_t count,
                std::shared_ptr<std::byte>& pages) {
    if (kind_.is_paged && parameter.numel() >= kMinPagedSize && !parameter.on_host()) {
      const Bytes bytes = bytes_of(count * parameter.numel(), dtype);
      managed_ += bytes;
      if (auto* kernels = optimizer_kernels(ctx, parameter)) pages = kernels->managed_memory(bytes.count());
      return {};
    }
    return count == 1 ? state_like(ctx, parameter, dtype) : state_of(ctx, {count, parameter.numel()}, dtype);
  }

  Bitsandbytes kind_;
  OptimizerSetup setup_;
  std::optional<Projection> projection_;
  Tensor grad_;
  Tensor map1_, map2_;  ///< name2qmap: of signed and of unsigned values, for all parameters of an optimizer
  Bytes managed_;
};

}  // namespace

std::unique_ptr<Optimizer> make_bitsandbytes(const Bitsandbytes& kind, std::vector<ParameterGroup> groups,
                                             OptimizerSetup setup, const std::optional<Projection>& projection) {
  return std::make_unique<BnbOptimizer>(kind, std::move(groups), std::move(setup), projection);
}

}  // namespace qlp
