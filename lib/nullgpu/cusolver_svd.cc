// What cuSOLVER answers for the workspaces of torch.linalg.svd (driver gesvdj; of vectors that are reduced): the closed
// forms of lib/tensor/svd.h, which says where they are from.
#include <algorithm>
#include <cstdint>

#include "nullgpu/entry.h"
#include "nullgpu/interpose.h"

using namespace nullgpu;

namespace {

/// 11703 of 11.7.3; the library that is loaded.
int cusolver_version() {
  int version = 0;
  for (const char* name : {"libcusolver.so.12", "libcusolver.so.11"}) {
    if (ask_real<int>(name, "cusolverGetVersion", &version) == ok) {
      return version;
    }
  }
  return 11703;
}

std::int64_t rounded(std::int64_t numbers) { return (numbers + 31) / 32 * 32; }

std::int64_t square_workspace(std::int64_t n) {
  const std::int64_t pairs = (n + 31) / 32;
  const std::int64_t blocks = 2 * pairs;
  return rounded(2 * n * n + rounded(n + blocks * blocks + 1024 + 2049 * pairs));
}

std::int64_t qr_workspace(std::int64_t rows, std::int64_t columns, int version) {
  const std::int64_t block = version >= 11703 ? 256 : 128;
  const std::int64_t geqrf = 8 * block * block + 4 * block * std::max(block, columns);
  if (version < 11600) {
    return std::max(geqrf, rounded(std::int64_t{128} * 257 + rows + 129 * columns));
  }
  const std::int64_t vectors = block * (block + 1) + rounded(columns * (rows + columns));
  const std::int64_t products = version < 11700
                                    ? rounded(rows + 129 * columns)
                                    : block * rows + 2 * block * columns + (rows <= 32 ? 0 : rounded(columns));
  return std::max(geqrf + 32, vectors + products);
}

std::int64_t workspace(std::int64_t m, std::int64_t n) {
  if (m == n) {
    return square_workspace(n);
  }
  const std::int64_t rows = std::max(m, n);
  const std::int64_t columns = std::min(m, n);
  const std::int64_t square = rounded(columns * columns);
  const std::int64_t transposed = n > m ? rounded(m * n) : 0;
  return std::max({square_workspace(columns) + square, square + rounded(rows * columns),
                   transposed + rounded(columns) + qr_workspace(rows, columns, cusolver_version())});
}

constexpr auto kInvalidValue = static_cast<Status>(3);  // CUSOLVER_STATUS_INVALID_VALUE

}  // namespace

QLP_EXPORT int cusolverDnSgesvdj_bufferSize(void*, int, int, int m, int n, const float*, int, const float*,
                                            const float*, int, const float*, int, int* size, void*) {
  return library(__func__, [&] {
    const std::int64_t numbers = workspace(m, n);
    if (numbers > INT32_MAX) {
      return kInvalidValue;
    }
    *size = static_cast<int>(numbers);
    return ok;
  });
}

QLP_EXPORT int cusolverDnSgesvdjBatched_bufferSize(void*, int, int, int, const float*, int, const float*, const float*,
                                                   int, const float*, int, int* size, void*, int) {
  return library(__func__, [&] {
    *size = 992;  // whatever the batch
    return ok;
  });
}
