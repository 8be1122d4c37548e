// The projection of a gradient to the space of its largest singular vectors, and of an update back.
#pragma once

#include <cstdint>
#include <vector>

#include "optim/cut_rows.h"
#include "optim/optimizer_kind.h"
#include "tensor/context.h"
#include "tensor/cusolver.h"

namespace qlp {

/// How what is in the second group of an optimizer is projected.
struct Projection {
  LowRank options;
  CuSolver cusolver = CuSolver::v11_7_3;
  bool layerwise = false;
};

/// GaLoreProjector of one matrix (galore_torch 1.0, galore_projector.py; apollo_torch 1.0, svd_projector.py).
class GaLoreProjector {
 public:
  /// The gradient in the space of its largest singular vectors, which are found anew every so many steps. Where ranks
  /// share its rows (`cut`) they are gathered for that, and what is projected from the left is a part of a sum over the
  /// ranks.
  Tensor project(Context& ctx, const Projection& how, const Tensor& grad, std::int64_t steps,
                 const CutRows* cut = nullptr);
  /// With all rows, if rows were projected.
  Tensor project_back(Context& ctx, const Projection& how, const Tensor& low_rank) const;
  bool projects_rows() const { return left_.defined(); }
  /// What is kept: one matrix, or two of proj_type full.
  void add_tensors(std::vector<Tensor>& all) const { all.push_back(left_), all.push_back(right_); }

 private:
  Tensor left_, right_;  ///< vectors as rows: [rank, rows], [rank, columns]
};

}  // namespace qlp
