// Arrays as the launchers of kernels/ see them.
#pragma once

#include "strided_view.h"
#include "tensor/array.h"

namespace qlp {

/// Broadcast to `shape`, from the right. Throws std::logic_error where there is no memory, or no way to broadcast.
kernels::View view_of(const Array& array, const Shape& shape);
inline kernels::View view_of(const Array& array) { return view_of(array, array.shape); }
/// Throws where the array has gaps.
kernels::View dense_view_of(const Array& array);
/// A matrix, or a batch of them, as a batch.
kernels::View batched(const Array& array);

}  // namespace qlp
