// Where tokens go that are sent evenly to experts that run one by one.
#pragma once

#include "tensor/context.h"

namespace qlp {

struct ExpertOf {
  std::int64_t expert = 0, experts = 0, top_k = 0;
};

/// Writes which of its tokens' choices an expert is, and behind them the tokens, choice by choice: to places [2, rows]
/// of int64, as torch.where gives them. Pair `i` of a token and an expert is that of expert `i` modulo their number.
void fill_even_places(Context& ctx, const Tensor& places, const ExpertOf& of, std::int64_t tokens);

}  // namespace qlp
