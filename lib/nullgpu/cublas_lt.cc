// cuBLASLt: descriptors keep their attributes; the heuristic finds one algorithm, which needs no workspace.
#include <cstdint>
#include <cstring>

#include "nullgpu/cublas_version.h"
#include "nullgpu/entry.h"
#include "nullgpu/objects.h"
#include "nullgpu/versions.h"

using namespace nullgpu;

namespace {

constexpr int kInvalid = 7;  // CUBLAS_STATUS_INVALID_VALUE

int set(const char* name, void* handle, int attribute, const void* value, std::size_t bytes) {
  return library(name, [&] {
    if (handle == nullptr || value == nullptr) {
      return kInvalid;
    }
    object(handle).set(attribute, value, bytes);
    return static_cast<int>(ok);
  });
}

int get(const char* name, void* handle, int attribute, void* value, std::size_t bytes, std::size_t* written) {
  return library(name, [&] {
    const std::size_t have = object(handle).get(attribute, value, bytes);
    if (have == 0 && value != nullptr) {
      std::memset(value, 0, bytes);  // the default of nearly all of them
    }
    if (written != nullptr) {
      *written = have == 0 ? bytes : have;
    }
    return ok;
  });
}

// cublasLtMatmulHeuristicResult_t: an algorithm of 64 bytes, workspace, status, waves, reserve.
struct Result {
  std::uint64_t algorithm[8];
  std::size_t workspace;
  int status;
  float waves;
  int reserved[4];
};

}  // namespace

#define QLP_DESCRIPTOR(kind)                                                                                       \
  QLP_EXPORT int cublasLt##kind##Destroy(void* handle) { return destroy(__func__, handle); }                       \
  QLP_EXPORT int cublasLt##kind##SetAttribute(void* handle, int attribute, const void* value, std::size_t bytes) { \
    return set(__func__, handle, attribute, value, bytes);                                                         \
  }                                                                                                                \
  QLP_EXPORT int cublasLt##kind##GetAttribute(void* handle, int attribute, void* value, std::size_t bytes,         \
                                              std::size_t* written) {                                              \
    return get(__func__, handle, attribute, value, bytes, written);                                                \
  }
QLP_DESCRIPTOR(MatmulDesc)
QLP_DESCRIPTOR(MatrixLayout)
QLP_DESCRIPTOR(MatmulPreference)
QLP_DESCRIPTOR(MatrixTransformDesc)

QLP_EXPORT int cublasLtCreate(void** handle) { return create(__func__, handle); }
QLP_EXPORT int cublasLtDestroy(void* handle) { return destroy(__func__, handle); }

// CUBLASLT_MATMUL_DESC_COMPUTE_TYPE 0, _SCALE_TYPE 1.
QLP_EXPORT int cublasLtMatmulDescCreate(void** handle, int compute_type, int scale_type) {
  const int status = create(__func__, handle);
  if (status == ok) {
    object(*handle).put(0, compute_type);
    object(*handle).put(1, scale_type);
  }
  return status;
}

// CUBLASLT_MATRIX_LAYOUT_TYPE 0, _ORDER 1, _ROWS 2, _COLS 3, _LD 4.
QLP_EXPORT int cublasLtMatrixLayoutCreate(void** handle, int type, std::uint64_t rows, std::uint64_t columns,
                                          std::int64_t ld) {
  const int status = create(__func__, handle);
  if (status == ok) {
    object(*handle).put(0, type);
    object(*handle).put(2, rows);
    object(*handle).put(3, columns);
    object(*handle).put(4, ld);
  }
  return status;
}

QLP_EXPORT int cublasLtMatmulPreferenceCreate(void** handle) { return create(__func__, handle); }
QLP_EXPORT int cublasLtMatrixTransformDescCreate(void** handle, int) { return create(__func__, handle); }

QLP_EXPORT int cublasLtMatmulAlgoGetHeuristic(void*, void*, void*, void*, void*, void*, void*, int wanted,
                                              Result* results, int* found) {
  return library(__func__, [&] {
    if (wanted < 1 || results == nullptr || found == nullptr) {
      return kInvalid;
    }
    results[0] = Result{{1}, 0, ok, 1.0F, {}};
    *found = 1;
    return static_cast<int>(ok);
  });
}

QLP_EXPORT int cublasLtMatmulAlgoGetIds(void*, int, int, int, int, int, int, int wanted, int* ids, int* found) {
  return library(__func__, [&] {
    *found = wanted > 0 ? 1 : 0;
    if (wanted > 0) {
      ids[0] = 1;
    }
    return ok;
  });
}

QLP_EXPORT int cublasLtMatmulAlgoInit(void*, int, int, int, int, int, int, int, std::uint64_t* algorithm) {
  return library(__func__, [&] {
    std::memset(algorithm, 0, 64);
    algorithm[0] = 1;
    return ok;
  });
}

QLP_EXPORT int cublasLtMatmulAlgoCheck(void*, void*, void*, void*, void*, void*, const std::uint64_t* algorithm,
                                       Result* result) {
  return library(__func__, [&] {
    *result = Result{{}, 0, ok, 1.0F, {}};
    std::memcpy(result->algorithm, algorithm, sizeof result->algorithm);
    return ok;
  });
}

// An algorithm of the program's own is 64 bytes without a life of its own: what is set is not kept.
QLP_EXPORT int cublasLtMatmulAlgoConfigSetAttribute(void*, int, const void*, std::size_t) {
  return library(__func__, [] { return ok; });
}

QLP_EXPORT int cublasLtMatmulAlgoConfigGetAttribute(const void*, int, void* value, std::size_t bytes,
                                                    std::size_t* written) {
  return library(__func__, [&] {
    std::memset(value, 0, bytes);
    if (written != nullptr) {
      *written = bytes;
    }
    return ok;
  });
}

QLP_EXPORT int cublasLtMatmul() { return launch_call(__func__); }
QLP_EXPORT int cublasLtMatrixTransform() { return launch_call(__func__); }

QLP_EXPORT std::size_t cublasLtGetVersion() { return static_cast<std::size_t>(cublas_version()); }
QLP_EXPORT int cublasLtGetProperty(int type, int* value) {
  return library(__func__, [&] { return cublas_property(type, value); });
}
QLP_EXPORT std::size_t cublasLtGetCudartVersion() { return static_cast<std::size_t>(loaded_runtime(nullptr)) * 1000; }
QLP_EXPORT const char* cublasLtGetStatusName(int status) {
  return status == 0 ? "CUBLAS_STATUS_SUCCESS" : "CUBLAS_STATUS_UNKNOWN";
}
QLP_EXPORT const char* cublasLtGetStatusString(int status) { return cublasLtGetStatusName(status); }
QLP_EXPORT int cublasLtLoggerSetLevel() { return ok; }
QLP_EXPORT int cublasLtLoggerSetMask() { return ok; }
QLP_EXPORT int cublasLtLoggerSetFile() { return ok; }
QLP_EXPORT int cublasLtLoggerSetCallback() { return ok; }
QLP_EXPORT int cublasLtLoggerOpenFile() { return ok; }
QLP_EXPORT int cublasLtLoggerForceDisable() { return ok; }
QLP_EXPORT unsigned cublasLtDisableCpuInstructionsSetMask() { return 0; }
