#include "nn/even_places.h"

#include <vector>

#include "tensor/compute.h"

namespace qlp {

void fill_even_places(Context& ctx, const Tensor& places, const ExpertOf& of, std::int64_t tokens) {
  if (!ctx.kernels(places)) return;
  std::vector<double> columns, of_token;
  for (std::int64_t k = 0; k < of.top_k; ++k)
    for (std::int64_t token = 0; token < tokens; ++token) {
      if ((token * of.top_k + k) % of.experts != of.expert) continue;
      columns.push_back(static_cast<double>(k)), of_token.push_back(static_cast<double>(token));
    }
  columns.insert(columns.end(), of_token.begin(), of_token.end());
  if (!columns.empty()) upload(ctx, places, columns);
}

}  // namespace qlp
