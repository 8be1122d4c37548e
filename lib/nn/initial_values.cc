#include "nn/initial_values.h"

#include <cmath>
#include <string_view>

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
      return {0, 0};
    default:
      break;
  }
  const double bound = 1 / std::sqrt(static_cast<double>(parameter.shape[-1]));
  return {-bound, bound};
}

}  // namespace

std::string checkpoint_name(const Parameter& parameter) {
  constexpr std::string_view kBase = ".base_layer";
  std::string name = parameter.name;
  if (const auto at = name.find(kBase); at != std::string::npos) name.erase(at, kBase.size());
  return name;
}

void fill_initial(Context& ctx, const Parameter& parameter, const Tensor& out) {
  Kernels* const kernels = ctx.kernels(out);
  if (!kernels) return;
  const Range range = range_of(parameter);
  const std::uint64_t key = random_key(ctx.random.seed, checkpoint_name(parameter));
  kernels->random_uniform(ctx.stream, array_of(out), key, 0, range.low, range.high);
}

}  // namespace qlp
