// bitsandbytes/optim/optimizer.py, ademamix.py; bitsandbytes 0.43 to 0.50.
#include <algorithm>

#include "base/rounding.h"
#include "optim/optimizer_state.h"
#include "quant/codes.h"
#include "tensor/compute.h"

namespace qlp {
namespace {

constexpr std::int64_t kMin8BitSize = 4096;     // elements; min_8bit_size of all classes
constexpr std::int64_t kMinPagedSize = 100000;  // elements; get_state_buffer
constexpr std::int64_t kMapSize = 256;          // values of a byte; create_dynamic_map

struct BnbState {
  bool made = false;
  Tensor state1, state2;  ///< none where they are in managed memory
  Tensor absmax1, absmax2;
  std::int64_t steps = 0;
};

class BnbOptimizer final : public StatefulOptimizer<BnbState> {
 public:
  BnbOptimizer(const Bitsandbytes& kind, std::vector<ParameterGroup> groups, OptimizerSetup setup)
      : StatefulOptimizer(std::move(groups)), kind_(kind), setup_(std::move(setup)) {}

  Bytes managed_state() const override { return managed_; }

 private:
  void step_group(Context& ctx, const std::vector<Entry>& entries) override {
    for (const auto& [parameter, state] : entries) {
      if (!state->made) init_state(ctx, *parameter, *state);
      update(ctx, *parameter, *state);
      ctx.device.synchronize();
    }
  }

  /// AdamW, with its states in memory of the device.
  void update(Context& ctx, const Tensor& parameter, BnbState& state) const {
    ++state.steps;
    Kernels* const kernels = ctx.kernels(parameter);
    if (!kernels) return;
    const AdamWNumbers numbers{.lr = lr(), .step = state.steps};
    const Array weights = array_of(parameter), grad = array_of(grad_of(parameter));
    if (!in_8_bits(parameter)) {
      kernels->adamw(ctx.stream, weights, grad, array_of(state.state1), array_of(state.state2), numbers);
      return;
    }
    const std::int64_t block = setup_.behaviour.bnb_blocksize;
    kernels->adamw_8bit(ctx.stream, weights, grad, array_of(state.state1),
                        {array_of(state.absmax1), array_of(map1_), block}, array_of(state.state2),
                        {array_of(state.absmax2), array_of(map2_), block}, numbers);
  }

  bool in_8_bits(const Tensor& parameter) const {
    if (kind_.optim_bits != 8 || parameter.numel() < kMin8BitSize) return false;
    const auto& spared = setup_.embeddings;
    return !setup_.behaviour.bnb_spares_embeddings ||
           std::none_of(spared.begin(), spared.end(), [&](const Tensor& other) { return other.is(parameter); });
  }

  void init_state(Context& ctx, const Tensor& parameter, BnbState& state) {
    const bool mixes = kind_.algorithm == Bitsandbytes::Algorithm::ademamix;  // two averages in the first state
    const bool two = mixes || kind_.algorithm == Bitsandbytes::Algorithm::adamw;
    const bool in_8_bits = this->in_8_bits(parameter);
    const DType dtype = in_8_bits ? DType::uint8 : DType::float32;
    state.made = true;
    if (in_8_bits) {
      if (!map1_.defined()) {
        map1_ = state_of(ctx, {kMapSize}, DType::float32);
        upload(ctx, map1_, dynamic_values(true));
      }
      if (two && !map2_.defined()) {
        map2_ = state_of(ctx, {kMapSize}, DType::float32);
        upload(ctx, map2_, dynamic_values(false));
      }
    }
    const std::int64_t blocks = in_8_bits ? ceil_div(parameter.numel(), setup_.behaviour.bnb_blocksize) : 0;
    const auto make_absmax = [&] {
      if (!in_8_bits) return;
      state.absmax1 = state_of(ctx, mixes ? Shape{2, blocks} : Shape{blocks}, DType::float32);
      if (two) state.absmax2 = state_of(ctx, {blocks}, DType::float32);
    };
    if (mixes) make_absmax();
    state.state1 = buffer(ctx, parameter, dtype, mixes ? 2 : 1);
    if (two) state.state2 = buffer(ctx, parameter, dtype, 1);
    if (!mixes) make_absmax();
  }

  /// get_state_buffer, _get_state_double_buffer: where pages pay off they are in managed memory.
  Tensor buffer(Context& ctx, const Tensor& parameter, DType dtype, std::int64_t count) {
    if (kind_.is_paged && parameter.numel() >= kMinPagedSize) {
      managed_ += bytes_of(count * parameter.numel(), dtype);
      return {};
    }
    return count == 1 ? state_like(ctx, parameter, dtype) : state_of(ctx, {count, parameter.numel()}, dtype);
  }

  Bitsandbytes kind_;
  OptimizerSetup setup_;
  Tensor map1_, map2_;  ///< name2qmap: of signed and of unsigned values, for all parameters
  Bytes managed_;
};

}  // namespace

std::unique_ptr<Optimizer> make_bitsandbytes(const Bitsandbytes& kind, std::vector<ParameterGroup> groups,
                                             OptimizerSetup setup) {
  return std::make_unique<BnbOptimizer>(kind, std::move(groups), std::move(setup));
}

}  // namespace qlp
