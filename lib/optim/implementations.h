// One factory for each implementation, between which make_optimizer chooses. The second group has what is projected.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "optim/galore_projector.h"
#include "optim/optimizer.h"

namespace qlp {

std::unique_ptr<Optimizer> make_apollo(const Apollo& kind, std::vector<ParameterGroup> groups,
                                       const OptimizerBehaviour& behaviour);
std::unique_ptr<Optimizer> make_galore(const GaLore& kind, std::vector<ParameterGroup> groups,
                                       const OptimizerSetup& setup);
std::unique_ptr<Optimizer> make_lomo(Context& ctx, const Lomo& kind, std::vector<ParameterGroup> groups,
                                     const std::vector<Shape>& frozen);
std::unique_ptr<Optimizer> make_adamw(const AdamW& kind, std::vector<ParameterGroup> groups);
std::unique_ptr<Optimizer> make_sgd(const Sgd& kind, std::vector<ParameterGroup> groups);
std::unique_ptr<Optimizer> make_lion(std::vector<ParameterGroup> groups);
std::unique_ptr<Optimizer> make_adagrad(Context& ctx, std::vector<ParameterGroup> groups, AdagradStart start);
std::unique_ptr<Optimizer> make_rmsprop(std::vector<ParameterGroup> groups);
std::unique_ptr<Optimizer> make_adafactor(std::vector<ParameterGroup> groups,
                                          const std::optional<Projection>& projection = {});
std::unique_ptr<Optimizer> make_bitsandbytes(const Bitsandbytes& kind, std::vector<ParameterGroup> groups,
                                             OptimizerSetup setup, const std::optional<Projection>& projection = {});
std::unique_ptr<Optimizer> make_schedule_free(const ScheduleFree& kind, std::vector<ParameterGroup> groups);
std::unique_ptr<Optimizer> make_stable_adamw(std::vector<ParameterGroup> groups);
std::unique_ptr<Optimizer> make_grokadamw(std::vector<ParameterGroup> groups, ClipGradNorm clip);
std::unique_ptr<Optimizer> make_muon(std::vector<ParameterGroup> groups, const OptimizerSetup& setup);
std::unique_ptr<Optimizer> make_torchao(const Torchao& kind, std::vector<ParameterGroup> groups,
                                        const OptimizerBehaviour& behaviour);

}  // namespace qlp
