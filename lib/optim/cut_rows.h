// Matrices whose rows ranks share, as DTensor has them (torch/distributed/tensor/placement_types.py, Shard and Partial;
// seen in torch 2.8 and 2.14).
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/rounding.h"
#include "tensor/context.h"
#include "tensor/work.h"

namespace qlp {

/// Each rank has as many rows but for the last ones.
struct CutRows {
  RankGroup group;
  std::int64_t whole = 0;
  std::int64_t first = 0;  ///< of this rank
  std::int64_t most() const { return ceil_div(whole, group.size); }
  bool even() const { return whole % group.size == 0; }
};

/// A parameter that is this rank's rows of a DTensor.
struct CutParameter {
  Tensor part;
  CutRows rows;
};

/// Those of an optimizer.
class CutParameters {
 public:
  explicit CutParameters(const std::vector<CutParameter>& cut);
  /// None of a parameter that is whole.
  const CutRows* rows_of(const Tensor& parameter) const;

 private:
  std::unordered_map<const TensorImpl*, CutRows> rows_;
};

/// As many rows as the ranks have at most.
Tensor padded_rows(Context& ctx, const Tensor& part, const CutRows& rows);

/// The rows of all ranks, and what fills them up; `padded` is gathered in the place of `part` where it is defined.
Tensor gathered_rows(Context& ctx, const Tensor& part, const Tensor& padded, const CutRows& rows);

/// The whole matrix.
Tensor all_rows(Context& ctx, const Tensor& part, const CutRows& rows);

/// The sum of what every rank has a part of.
Tensor summed(Context& ctx, const Tensor& part, const RankGroup& group);

}  // namespace qlp
