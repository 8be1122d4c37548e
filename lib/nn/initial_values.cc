#include "nn/initial_values.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "tensor/collective.h"
#include "tensor/compute.h"
#include "tensor/random.h"

namespace qlp {
namespace {

struct Range {
  double low, high;
};

Range range_of(const Parameter& parameter) {
  constexpr double kSpread = 0.1;  // of what is no matrix
  switch (parameter.role) {
    case ParamRole::norm:
      return {1 - kSpread, 1 + kSpread};
    case ParamRole::bias:
      return {-kSpread, kSpread};
    case ParamRole::lora_b:
    case ParamRole::lora_bias:
      return {0, 0};
    default:
      break;
  }
  const bool cuts_inputs = parameter.cut_dim == static_cast<int>(parameter.shape.rank()) - 1;
  const std::int64_t inputs = parameter.shape[-1] * (cuts_inputs ? parameter.parts : 1);
  const double bound = 1 / std::sqrt(static_cast<double>(inputs));
  return {-bound, bound};
}

/// A part of a tensor, element by element: runs that lie `step` apart in the whole, the first at `start`.
struct Runs {
  std::int64_t length = 0, step = 0, start = 0;
};

Runs runs_of(const Parameter& parameter, std::int64_t place) {
  // Of projections that are joined each is cut (transformers distributed/tensor_parallel.py, PackedColwiseParallel).
  const std::int64_t joined = parameter.cut_dim > 0 ? std::max<std::int64_t>(parameter.fused_parts, 1) : 1;
  std::int64_t length = parameter.shape[parameter.cut_dim] / joined;
  for (int dim = parameter.cut_dim + 1; dim < static_cast<int>(parameter.shape.rank()); ++dim)
    length *= parameter.shape[dim];
  return {.length = length, .step = length * parameter.parts, .start = place % parameter.parts * length};
}

}  // namespace

std::string checkpoint_name(const Parameter& parameter) {
  constexpr std::string_view kBase = ".base_layer";
  std::string name = parameter.name;
  if (const auto at = name.find(kBase); at != std::string::npos) name.erase(at, kBase.size());
  return name;
}

void fill_initial(Context& ctx, const Parameter& parameter, const Tensor& out, std::int64_t first_row) {
  Kernels* const kernels = ctx.kernels(out);
  if (!kernels || out.numel() == 0) return;
  const Range range = range_of(parameter);
  const std::uint64_t key = random_key(ctx.random.seed, checkpoint_name(parameter));
  const Runs runs = runs_of(parameter, own_place(ctx, mesh_group(parameter)));
  const std::int64_t first = first_row * (parameter.numel() / parameter.shape[0]);
  for (std::int64_t at = 0; at < out.numel();) {
    const std::int64_t run = (first + at) / runs.length, within = (first + at) % runs.length;
    const std::int64_t length = std::min(runs.length - within, out.numel() - at);
    kernels->random_uniform(ctx.stream, array_of(out.flat(at, length)), key,
                            static_cast<std::uint64_t>(run * runs.step + runs.start + within), range.low, range.high);
    at += length;
  }
}

}  // namespace qlp
