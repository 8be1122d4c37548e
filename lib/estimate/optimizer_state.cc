#include "estimate/optimizer_state.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "base/overloaded.h"
#include "base/rounding.h"
#include "base/shape.h"

namespace qlp {
namespace {

Bytes floats(std::int64_t count) { return bytes_of(count, DType::float32); }

/// A tensor like each one, so many times.
OptimizerState copies(std::span<const TrainedShape> trained, std::int64_t times) {
  OptimizerState state;
  for (const TrainedShape& tensor : trained) state.allocated += bytes_of(times * tensor.numel(), tensor.dtype);
  return state;
}

/// The fused kernel counts the steps of each tensor on the GPU.
OptimizerState of(const AdamW& kind, std::span<const TrainedShape> trained) {
  OptimizerState state = copies(trained, 2);
  if (kind.loop == AdamW::Loop::fused) state.allocated += floats(static_cast<std::int64_t>(trained.size()));
  return state;
}

/// From the beginning, a sum like each tensor as it was then; and the number of steps, where that is moved to the GPU.
OptimizerState of(const Adagrad&, std::span<const TrainedShape> given, AdagradStart start) {
  OptimizerState state;
  for (const TrainedShape& tensor : given) {
    if (start == AdagradStart::in_step && !tensor.has_gradient) continue;
    state.allocated += bytes_of(tensor.numel(), tensor.made_as.value_or(tensor.dtype));
    if (start == AdagradStart::moved) state.allocated += floats(1);
  }
  return state;
}

/// Two averages; what 16-bit numbers lose in rounding, or one byte; two numbers.
OptimizerState of(const StableAdamW&, std::span<const TrainedShape> trained) {
  OptimizerState state = copies(trained, 2);
  for (const TrainedShape& tensor : trained) {
    const bool compensates = tensor.dtype != DType::float32;
    state.allocated += compensates ? bytes_of(tensor.numel(), tensor.dtype) : Bytes{1};
    state.allocated += bytes_of(1, tensor.dtype) + floats(1);
  }
  return state;
}

/// A sum for each row and one for each column of a matrix, and what is added up of anything else; the size of the
/// parameter.
OptimizerState of(const Adafactor&, std::span<const TrainedShape> trained) {
  OptimizerState state;
  for (const TrainedShape& tensor : trained)
    state.allocated += floats(tensor.vector ? tensor.numel() : tensor.rows + tensor.width) + floats(1);
  return state;
}

/// One average, two for AdamW, three for AdEMAMix. In 8 bits: a maximum for each block, a map for signed averages and
/// one for squares.
OptimizerState of(const Bitsandbytes& kind, const OptimizerBehaviour& behaviour,
                  std::span<const TrainedShape> trained) {
  using Algorithm = Bitsandbytes::Algorithm;
  constexpr std::int64_t kSmallestIn8Bits = 4096, kSmallestManaged = 100000, kMap = 256;
  const std::int64_t averages = kind.algorithm == Algorithm::adamw ? 2 : kind.algorithm == Algorithm::ademamix ? 3 : 1;
  OptimizerState state;
  bool maps = false;
  for (const TrainedShape& tensor : trained) {
    const std::int64_t numel = tensor.numel();
    const bool spared = tensor.embedding && behaviour.bnb_spares_embeddings;
    const bool small = kind.optim_bits == 8 && numel >= kSmallestIn8Bits && !spared;
    const Bytes values = bytes_of(averages * numel, small ? DType::uint8 : DType::float32);
    (kind.is_paged && numel >= kSmallestManaged ? state.managed : state.allocated) += values;
    if (small) state.allocated += floats(averages * ceil_div(numel, behaviour.bnb_blocksize));
    maps = maps || small;
  }
  if (maps) state.allocated += floats(averages > 1 ? 2 * kMap : kMap);
  return state;
}

/// Two averages: codes, a scale for each block and the values of the codes, where the elements fill enough blocks.
OptimizerState of(const Torchao& kind, const OptimizerBehaviour& behaviour, std::span<const TrainedShape> trained) {
  constexpr std::int64_t kSmallest = 4096;
  const std::int64_t block = torchao_block(kind, behaviour);
  OptimizerState state;
  for (const TrainedShape& tensor : trained) {
    const std::int64_t numel = tensor.numel();
    const bool small = numel >= kSmallest && numel % block == 0;
    const Bytes codes = bytes_of(numel / (8 / kind.bits), DType::uint8);
    const Bytes one =
        small ? codes + floats(numel / block) + floats(std::int64_t{1} << kind.bits) : bytes_of(numel, tensor.dtype);
    state.allocated += one + one;
    if (small) state.allocated += floats(2 * tensor.slices * (std::int64_t{1} << kind.bits));  // values of the codes
  }
  return state;
}

/// What a matrix is projected to by its vectors, and the bytes of those. Those that need no cast stay with all that
/// were found.
struct Projected {
  TrainedShape low_rank;
  Bytes vectors;
};
Projected projected(const LowRank& how, const TrainedShape& matrix, DType dtype) {
  const ProjectedSides sides = projected_sides(how.proj_type, matrix.whole_rows, matrix.width);
  const std::int64_t found = std::min(matrix.whole_rows, matrix.width), used = std::min(how.rank, found);
  const std::int64_t length = (sides.left ? matrix.whole_rows : 0) + (sides.right ? matrix.width : 0);
  Projected out{matrix, bytes_of((dtype == DType::float32 ? found : used) * length, dtype)};
  if (sides.left) out.low_rank.rows = used;
  if (sides.right) out.low_rank.width = used;
  return out;
}

/// The same by random numbers, whatever the rank.
Projected projected_by_chance(const LowRank& how, const TrainedShape& matrix) {
  const bool right = projected_sides(how.proj_type, matrix.rows, matrix.width).right;
  Projected out{matrix, bytes_of(how.rank * (right ? matrix.width : matrix.rows), matrix.dtype)};
  (right ? out.low_rank.width : out.low_rank.rows) = how.rank;
  return out;
}

/// Two averages; of a projected matrix those of what it is projected to, the projection, and a norm.
OptimizerState of(const Apollo& kind, std::span<const TrainedShape> trained) {
  OptimizerState state;
  for (const TrainedShape& tensor : trained) {
    TrainedShape kept = tensor;
    if (tensor.projected) {
      const Projected made = kind.proj == Apollo::Projector::svd ? projected(kind.low_rank, tensor, tensor.dtype)
                                                                 : projected_by_chance(kind.low_rank, tensor);
      kept = made.low_rank;
      state.allocated += made.vectors + bytes_of(1, tensor.dtype);
    }
    state.allocated += bytes_of(2 * kept.numel(), kept.dtype);
  }
  return state;
}

OptimizerState of(const GaLore& kind, const OptimizerBehaviour& behaviour, std::span<const TrainedShape> trained) {
  using Base = GaLore::Base;
  std::vector<TrainedShape> kept(trained.begin(), trained.end());
  Bytes vectors;
  for (TrainedShape& tensor : kept) {
    tensor.embedding = false;  // the Trainer spares them where it makes an optimizer of bitsandbytes'
    if (!tensor.projected) continue;
    const DType dtype = kind.base == Base::adafactor ? DType::float32 : tensor.dtype;
    const Projected made = projected(kind.low_rank, tensor, dtype);
    tensor = made.low_rank, vectors += made.vectors;
  }
  OptimizerState state = kind.base == Base::adafactor ? of(Adafactor{}, kept)
                         : kind.base == Base::adamw
                             ? copies(kept, 2)
                             : of(Bitsandbytes{Bitsandbytes::Algorithm::adamw, 8, false}, behaviour, kept);
  if (kind.base == Base::adamw_8bit && kind.layerwise) {  // one by one, for the maps that each optimizer has
    state.allocated = Bytes{};
    for (const TrainedShape& tensor : kept)
      state.allocated += of(Bitsandbytes{Bitsandbytes::Algorithm::adamw, 8, false}, behaviour, {&tensor, 1}).allocated;
  }
  if (kind.base == Base::adamw_8bit && behaviour.bnb_galore_norm)
    state.allocated += floats(static_cast<std::int64_t>(kept.size()));
  state.allocated += vectors;
  return state;
}

/// None; AdaLOMO's sums for rows and columns, which it also makes for what is frozen.
OptimizerState of(const Lomo& kind, std::span<const TrainedShape> trained) {
  OptimizerState state;
  if (!kind.adaptive) return state;
  for (const TrainedShape& tensor : trained)
    state.allocated += floats(tensor.vector ? tensor.numel() : tensor.rows + tensor.width);
  return state;
}

}  // namespace

OptimizerState optimizer_state(const OptimizerKind& kind, const OptimizerBehaviour& behaviour,
                               std::span<const TrainedShape> given, AdagradStart start) {
  std::vector<TrainedShape> trained;
  std::copy_if(given.begin(), given.end(), std::back_inserter(trained),
               [](const TrainedShape& t) { return t.has_gradient; });
  return std::visit(
      Overloaded{
          [&](const AdamW& adamw) { return of(adamw, trained); },
          [&](const Sgd& sgd) { return copies(trained, sgd.momentum != 0 ? 1 : 0); },
          [&](const Lion&) { return copies(trained, 1); },
          [&](const Adagrad& adagrad) { return of(adagrad, given, start); },
          [&](const RmsProp&) { return copies(trained, 1); },
          [&](const Adafactor& adafactor) { return of(adafactor, trained); },
          [&](const Bitsandbytes& bnb) { return of(bnb, behaviour, trained); },
          [&](const ScheduleFree& free) { return copies(trained, free.base == ScheduleFree::Base::sgd ? 1 : 2); },
          [&](const StableAdamW& stable) { return of(stable, trained); },
          [](const GrokAdamW&) { return OptimizerState{}; },  // on the host
          [&](const Muon&) { return copies(trained, 1); },
          [&](const Torchao& torchao) { return of(torchao, behaviour, trained); },
          [&](const Apollo& apollo) { return of(apollo, trained); },
          [&](const GaLore& galore) { return of(galore, behaviour, trained); },
          [&](const Lomo& lomo) { return of(lomo, trained); },
      },
      kind);
}

}  // namespace qlp
