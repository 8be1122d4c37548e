// Single rows of a table that are trained beside it (peft.tuners.trainable_tokens, 0.15 to 0.21).
#pragma once

#include <utility>
#include <vector>

#include "nn/parameter.h"
#include "tensor/context.h"

namespace qlp {

/// TrainableTokensLayer: the rows as they are trained, and as they were.
class TokenDelta {
 public:
  /// `rows` has one row for each of `tokens`.
  TokenDelta(Parameter& rows, std::vector<std::int64_t> tokens) : rows_(&rows), tokens_(std::move(tokens)) {}

  /// A copy of the whole table with those rows in it, made in every forward pass (get_merged_weights).
  Tensor merged(Context& ctx, const Tensor& table) const;

  Parameter& rows() const { return *rows_; }
  Tensor& original() { return original_; }
  const std::vector<std::int64_t>& tokens() const { return tokens_; }

 private:
  Parameter* rows_;
  std::vector<std::int64_t> tokens_;
  Tensor original_;
};

}  // namespace qlp
