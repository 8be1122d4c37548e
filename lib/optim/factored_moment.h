// A second moment that is kept as sums over the rows and over the columns of a matrix (Adafactor, AdaLOMO).
#pragma once

#include "tensor/context.h"

namespace qlp {

struct FactoredMoment {
  Tensor row, column;  ///< of matrices: without the last dimension, and without the last but one
  Tensor all;          ///< of anything else
};

/// tensor.norm(2) / tensor.numel() ** 0.5
Tensor root_mean_square(Context& ctx, const Tensor& tensor);

/// A shape without one of its dimensions, counted from the end.
Shape without(const Shape& shape, int dim);

/// The moment takes in grad ** 2 + 1e-30, with `decay` of what it was; gives the gradient over its root, no larger than
/// 1 in root mean square. `update` is the name that holds the steps of that in turn.
void scale_by_moment(Context& ctx, const FactoredMoment& moment, const Tensor& grad, double decay, Tensor& update);

}  // namespace qlp
