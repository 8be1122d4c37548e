#include "optim/optimizer.h"

#include "base/overloaded.h"
#include "optim/implementations.h"

namespace qlp {

StatesAlike Optimizer::states_alike(DType /*parameter*/) const { return {}; }

std::unique_ptr<Optimizer> make_optimizer(Context& ctx, const OptimizerKind& kind, std::vector<ParameterGroup> groups,
                                          const OptimizerSetup& setup) {
  return std::visit(
      Overloaded{
          [&](const AdamW& adamw) { return make_adamw(adamw, std::move(groups)); },
          [&](const Sgd& sgd) { return make_sgd(sgd, std::move(groups)); },
          [&](const Lion&) { return make_lion(std::move(groups)); },
          [&](const Adagrad&) { return make_adagrad(ctx, std::move(groups), setup.adagrad_start); },
          [&](const RmsProp&) { return make_rmsprop(std::move(groups)); },
          [&](const Adafactor&) { return make_adafactor(std::move(groups)); },
          [&](const Bitsandbytes& bnb) { return make_bitsandbytes(bnb, std::move(groups), setup); },
          [&](const ScheduleFree& free) { return make_schedule_free(free, std::move(groups)); },
          [&](const StableAdamW&) { return make_stable_adamw(std::move(groups)); },
          [&](const GrokAdamW&) { return make_grokadamw(std::move(groups), setup.clip_grad_norm); },
          [&](const Muon&) { return make_muon(std::move(groups), setup); },
          [&](const Apollo& apollo) { return make_apollo(apollo, std::move(groups), setup.behaviour); },
          [&](const GaLore& galore) { return make_galore(galore, std::move(groups), setup); },
          [&](const Lomo& lomo) { return make_lomo(ctx, lomo, std::move(groups), setup.frozen); },
          [&](const Torchao& torchao) { return make_torchao(torchao, std::move(groups), setup.behaviour); },
      },
      kind);
}

}  // namespace qlp
