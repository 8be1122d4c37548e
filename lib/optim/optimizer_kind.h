// Which optimizer trains, with its options that change memory: one plain struct for each implementation.
#pragma once

#include <cstdint>
#include <variant>

#include "optim/low_rank.h"
#include "tensor/cusolver.h"

namespace qlp {

/// torch.optim.AdamW, and DeepSpeed's FusedAdam, whose counts of steps are Python's
struct AdamW {
  enum class Loop : std::uint8_t { foreach, fused, forloop, deepspeed };
  Loop loop = Loop::foreach;
  friend bool operator==(const AdamW&, const AdamW&) = default;
};

/// torch.optim.SGD
struct Sgd {
  double momentum = 0;
  friend bool operator==(const Sgd&, const Sgd&) = default;
};

/// When torch's Adagrad gets its sums.
enum class AdagradStart : std::uint8_t {
  moved,    ///< at once, and accelerate moves them, with counts of steps, to the GPU
  unmoved,  ///< at once
  in_step,  ///< when it first meets a parameter: those that it was made for are others (torch 2.14)
};

/// torch.optim.Adagrad
struct Adagrad {
  friend bool operator==(const Adagrad&, const Adagrad&) = default;
};

/// torch.optim.RMSprop, without momentum
struct RmsProp {
  friend bool operator==(const RmsProp&, const RmsProp&) = default;
};

/// transformers.optimization.Adafactor, without a first moment
struct Adafactor {
  friend bool operator==(const Adafactor&, const Adafactor&) = default;
};

/// deepspeed.ops.lion's FusedLion and DeepSpeedCPULion, 0.18
struct Lion {
  friend bool operator==(const Lion&, const Lion&) = default;
};

/// bitsandbytes.optim.{AdamW, Lion, RMSprop, AdEMAMix}
struct Bitsandbytes {
  enum class Algorithm : std::uint8_t { adamw, lion, rmsprop, ademamix };
  Algorithm algorithm = Algorithm::adamw;
  int optim_bits = 32;
  bool is_paged = false;
  friend bool operator==(const Bitsandbytes&, const Bitsandbytes&) = default;
};

/// schedulefree.{AdamW, RAdam, SGD}ScheduleFree
struct ScheduleFree {
  enum class Base : std::uint8_t { adamw, radam, sgd };
  Base base = Base::adamw;
  friend bool operator==(const ScheduleFree&, const ScheduleFree&) = default;
};

/// optimi.StableAdamW of torch-optimi 0.3, whose kernels are Triton's
struct StableAdamW {
  friend bool operator==(const StableAdamW&, const StableAdamW&) = default;
};

/// grokadamw.GrokAdamW 0.1
struct GrokAdamW {
  friend bool operator==(const GrokAdamW&, const GrokAdamW&) = default;
};

/// torch.optim.Muon, with Nesterov's momentum
struct Muon {
  friend bool operator==(const Muon&, const Muon&) = default;
};

/// torchao.optim.{AdamW8bit, AdamW4bit}
struct Torchao {
  int bits = 8;
  friend bool operator==(const Torchao&, const Torchao&) = default;
};

/// apollo_torch.APOLLOAdamW; the options are keys of optim_args. Updates are multiplied by the root of the scale.
struct Apollo {
  enum class Projector : std::uint8_t { random, svd };
  enum class Scale : std::uint8_t { channel, tensor };
  Projector proj = Projector::random;
  Scale scale_type = Scale::channel;
  LowRank low_rank{};
  bool layerwise = false;  ///< an optimizer for each parameter, within the backward pass
  friend bool operator==(const Apollo&, const Apollo&) = default;
};

/// galore_torch's AdamW, AdamW8bit and Adafactor; the options are keys of optim_args
struct GaLore {
  enum class Base : std::uint8_t { adamw, adamw_8bit, adafactor };
  static constexpr double kScale = 0.25;
  Base base = Base::adamw;
  bool layerwise = false;  ///< an optimizer for each parameter, within the backward pass
  LowRank low_rank{.scale = kScale};
  friend bool operator==(const GaLore&, const GaLore&) = default;
};

/// lomo_optim.{Lomo, AdaLomo}
struct Lomo {
  bool adaptive = false;
  friend bool operator==(const Lomo&, const Lomo&) = default;
};

using OptimizerKind = std::variant<AdamW, Sgd, Adagrad, RmsProp, Adafactor, Bitsandbytes, ScheduleFree, StableAdamW,
                                   GrokAdamW, Muon, Torchao, Apollo, GaLore, Lomo, Lion>;

/// How it projects gradients, if it does.
template <class Kind>
auto low_rank_of(Kind& kind) -> decltype(&std::get<GaLore>(kind).low_rank) {
  if (auto* apollo = std::get_if<Apollo>(&kind)) return &apollo->low_rank;
  if (auto* galore = std::get_if<GaLore>(&kind)) return &galore->low_rank;
  return nullptr;
}

/// Each parameter has an optimizer of its own, which steps within the backward pass.
inline bool steps_by_layers(const OptimizerKind& kind) {
  const auto* apollo = std::get_if<Apollo>(&kind);
  const auto* galore = std::get_if<GaLore>(&kind);
  return (apollo && apollo->layerwise) || (galore && galore->layerwise);
}

/// What differs between library versions.
struct OptimizerBehaviour {
  std::int64_t bnb_blocksize = 256;  ///< elements that share an absmax
  /// The Trainer has bitsandbytes keep 32 bits for embeddings where it keeps 8 for others.
  bool bnb_spares_embeddings = true;
  /// block_size of torchao's AdamW4bit; that of AdamW8bit is 256.
  std::int64_t torchao_4bit_block = 256;
  /// GaLore's AdamW8bit names no arguments: 100, which was a percentile, is taken for max_unorm, whose norm is kept.
  bool bnb_galore_norm = true;
  CuSolver cusolver = CuSolver::v11_7_3;
};

/// Elements that share a scale.
inline std::int64_t torchao_block(const Torchao& kind, const OptimizerBehaviour& behaviour) {
  constexpr std::int64_t kOf8Bits = 256;
  return kind.bits == 4 ? behaviour.torchao_4bit_block : kOf8Bits;
}

}  // namespace qlp
