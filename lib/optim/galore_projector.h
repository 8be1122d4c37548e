// galore_torch's projection of a gradient to fewer rows or columns, and of an update back.
#pragma once

#include <cstdint>
#include <vector>

#include "optim/optimizer_kind.h"
#include "tensor/context.h"
#include "tensor/cusolver.h"

namespace qlp {

/// How GaLore projects what is in the second group of an optimizer.
struct Projection {
  GaLore options;
  CuSolver cusolver = CuSolver::v11_7_3;
};

/// GaLoreProjector of one matrix (galore_projector.py, 1.0).
class GaLoreProjector {
 public:
  /// The gradient in the space of its largest singular vectors, which are found anew every so many steps.
  Tensor project(Context& ctx, const Projection& how, const Tensor& grad, std::int64_t steps);
  Tensor project_back(Context& ctx, const Projection& how, const Tensor& low_rank) const;
  /// What is kept: one matrix, or two of proj_type full.
  void add_tensors(std::vector<Tensor>& all) const { all.push_back(left_), all.push_back(right_); }

 private:
  Tensor left_, right_;  ///< vectors as rows: [rank, rows], [rank, columns]
};

}  // namespace qlp
