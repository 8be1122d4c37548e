// What a launcher is given: raw memory, its element type, sizes and strides. Knows nothing of tensors.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

namespace qlp::kernels {

enum class Type : std::uint8_t { float32, float16, bfloat16, float64, int64, int32, int16, int8, uint8, boolean };

inline constexpr int kMaxRank = 5;

/// A strided array on the device; strides in elements, 0 along a dimension that broadcasts.
struct View {
  void* data = nullptr;
  Type type = Type::float32;
  int rank = 0;
  std::int64_t size[kMaxRank] = {};
  std::int64_t stride[kMaxRank] = {};

  __host__ __device__ std::int64_t numel() const {
    std::int64_t count = 1;
    for (int i = 0; i < rank; ++i) count *= size[i];
    return count;
  }
  /// Of the last dimension.
  __host__ __device__ std::int64_t width() const { return size[rank - 1]; }
  /// That many of the last dimension there are.
  __host__ __device__ std::int64_t rows() const {
    std::int64_t count = 1;
    for (int i = 0; i + 1 < rank; ++i) count *= size[i];
    return count;
  }
};

/// Leaves out dimensions of size 1 and joins those that follow each other in all views, which have the same sizes: a
/// dense array of any shape becomes one row, so that finding an element costs no division.
template <std::size_t kCount>
void join_dimensions(View (&views)[kCount]) {
  int kept = 0;
  for (int i = 0; i < views[0].rank; ++i) {
    if (views[0].size[i] == 1) continue;
    bool follows = kept > 0;
    for (const View& view : views) follows = follows && view.stride[kept - 1] == view.stride[i] * view.size[i];
    if (!follows) ++kept;
    for (View& view : views) {
      view.size[kept - 1] = follows ? view.size[kept - 1] * view.size[i] : view.size[i];
      view.stride[kept - 1] = view.stride[i];
    }
  }
  for (View& view : views) view.rank = kept;
}

}  // namespace qlp::kernels
