// torch/optim/_muon.py, torch 2.9 to 2.14.
#include <algorithm>

#include "autograd/matmul.h"
#include "optim/optimizer_state.h"
#include "tensor/reduction.h"

namespace qlp {
namespace {

struct MuonState {
  Tensor momentum_buffer;
};

constexpr int kIterations = 5;  // DEFAULT_NS_STEPS

/// ortho.div_(ortho.norm().clamp(min=eps))
void normalize(Context& ctx, const Tensor& ortho) {
  const Tensor norm = empty(ctx, {}, ortho.dtype(), Op::linear_norm);
  full_reduction_scratch(ctx, ortho.numel(), Op::linear_norm);
  const Tensor clamped = empty(ctx, {}, ortho.dtype(), Op::clamp);
}

/// _zeropower_via_newtonschulz: in bfloat16, whose rows are the shorter dimension. Names of a Python loop hold on to
/// their tensors until they get the next ones.
Tensor orthogonalized(Context& ctx, const Tensor& update) {
  const std::int64_t rows = std::min(update.size(0), update.size(1)), columns = update.numel() / rows;
  Tensor ortho = update.dtype() == DType::bfloat16 ? update : empty_like(ctx, update, DType::bfloat16, Op::to_copy);
  normalize(ctx, ortho);
  Tensor gram, gram_update;
  for (int i = 0; i < kIterations; ++i) {
    const Tensor matrix = ortho.flat(0, ortho.numel()).view({rows, columns});
    const Tensor turned = ortho.flat(0, ortho.numel()).view({columns, rows});
    gram = mm(ctx, matrix, turned);
    gram_update = empty_like(ctx, gram, Op::addmm);
    ortho = empty(ctx, {rows, columns}, DType::bfloat16, Op::addmm);
  }
  return ortho;
}

class MuonOptimizer final : public StatefulOptimizer<MuonState> {
 public:
  using StatefulOptimizer::StatefulOptimizer;

 private:
  void step_group(Context& ctx, const std::vector<Entry>& entries) override {
    for (const auto& [parameter, state] : entries)
      if (!state->momentum_buffer.defined()) state->momentum_buffer = state_like(ctx, grad_of(*parameter));
    Tensor update;
    for (const auto& [parameter, state] : entries) {
      update = empty_like(ctx, grad_of(*parameter), Op::lerp);
      update = orthogonalized(ctx, update);
    }
  }
};

}  // namespace

std::unique_ptr<Optimizer> make_muon(std::vector<ParameterGroup> groups) {
  return std::make_unique<MuonOptimizer>(std::move(groups));
}

}  // namespace qlp
