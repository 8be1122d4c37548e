// The optimizers that are planned, under the Trainer's names (transformers training_args.py, OptimizerNames).
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "optim/optimizer_kind.h"

namespace qlp {

/// An optimizer under the name that jobs and reports know it by: "paged_adamw_8bit".
struct NamedOptimizer {
  std::string name = "adamw_torch";
  OptimizerKind kind = AdamW{};
  friend bool operator==(const NamedOptimizer&, const NamedOptimizer&) = default;
};

struct OptimizerName {
  std::string_view name;
  OptimizerKind kind;
};

// clang-format off
inline constexpr std::array<OptimizerName, 39> kOptimizerNames{{
    {"adamw_torch", AdamW{}},
    {"adamw_torch_fused", AdamW{AdamW::Loop::fused}},
    {"adamw_torch_forloop", AdamW{AdamW::Loop::forloop}},  // ours: torch's AdamW(foreach=False)
    {"sgd", Sgd{}},
    {"adagrad", Adagrad{}},
    {"rmsprop", RmsProp{}},
    {"adafactor", Adafactor{}},
    {"adamw_bnb_8bit", Bitsandbytes{Bitsandbytes::Algorithm::adamw, 8, false}},
    {"adamw_8bit", Bitsandbytes{Bitsandbytes::Algorithm::adamw, 8, false}},
    {"paged_adamw_32bit", Bitsandbytes{Bitsandbytes::Algorithm::adamw, 32, true}},
    {"paged_adamw_8bit", Bitsandbytes{Bitsandbytes::Algorithm::adamw, 8, true}},
    {"lion_32bit", Bitsandbytes{Bitsandbytes::Algorithm::lion, 32, false}},
    {"lion_8bit", Bitsandbytes{Bitsandbytes::Algorithm::lion, 8, false}},
    {"paged_lion_32bit", Bitsandbytes{Bitsandbytes::Algorithm::lion, 32, true}},
    {"paged_lion_8bit", Bitsandbytes{Bitsandbytes::Algorithm::lion, 8, true}},
    {"rmsprop_bnb", Bitsandbytes{Bitsandbytes::Algorithm::rmsprop, 32, false}},
    {"rmsprop_bnb_8bit", Bitsandbytes{Bitsandbytes::Algorithm::rmsprop, 8, false}},
    {"rmsprop_bnb_32bit", Bitsandbytes{Bitsandbytes::Algorithm::rmsprop, 32, false}},
    {"ademamix", Bitsandbytes{Bitsandbytes::Algorithm::ademamix, 32, false}},
    {"ademamix_8bit", Bitsandbytes{Bitsandbytes::Algorithm::ademamix, 8, false}},
    {"paged_ademamix_32bit", Bitsandbytes{Bitsandbytes::Algorithm::ademamix, 32, true}},
    {"paged_ademamix_8bit", Bitsandbytes{Bitsandbytes::Algorithm::ademamix, 8, true}},
    {"schedule_free_adamw", ScheduleFree{ScheduleFree::Base::adamw}},
    {"schedule_free_radam", ScheduleFree{ScheduleFree::Base::radam}},
    {"schedule_free_sgd", ScheduleFree{ScheduleFree::Base::sgd}},
    {"stable_adamw", StableAdamW{}},
    {"grokadamw", GrokAdamW{}},
    {"adamw_torch_8bit", Torchao{8}},
    {"adamw_torch_4bit", Torchao{4}},
    {"apollo_adamw", Apollo{}},
    {"apollo_adamw_layerwise", Apollo{.layerwise = true}},
    {"galore_adamw", GaLore{}},
    {"galore_adamw_8bit", GaLore{.base = GaLore::Base::adamw_8bit}},
    {"galore_adafactor", GaLore{.base = GaLore::Base::adafactor}},
    {"galore_adamw_layerwise", GaLore{.layerwise = true}},
    {"galore_adamw_8bit_layerwise", GaLore{.base = GaLore::Base::adamw_8bit, .layerwise = true}},
    {"lomo", Lomo{}},
    {"adalomo", Lomo{true}},
    {"muon", Muon{}},  // ours: the Trainer takes it by optimizer_cls_and_kwargs
}};
// clang-format on

/// The optimizer of one of these names.
NamedOptimizer named_optimizer(std::string_view name);

}  // namespace qlp
