// cuBLAS: handles and their state, scalar results. Everything that computes is a launch (entry_points/cublas.txt).
#include <cstdint>
#include <cstring>

#include "nullgpu/copies.h"
#include "nullgpu/cublas_version.h"
#include "nullgpu/entry.h"
#include "nullgpu/objects.h"
#include "nullgpu/versions.h"

using namespace nullgpu;

namespace {

enum Attribute { pointer_mode, math_mode, atomics_mode, multiprocessors, emulation };

int set(const char* name, void* handle, Attribute attribute, int value) {
  return library(name, [&] {
    if (handle == nullptr) {
      return invalid_value;  // CUBLAS_STATUS_NOT_INITIALIZED is 1 too
    }
    object(handle).put(attribute, value);
    return ok;
  });
}

int get(const char* name, void* handle, Attribute attribute, int* value) {
  return library(name, [&] {
    if (handle == nullptr) {
      return invalid_value;
    }
    *value = object(handle).value(attribute, 0);
    return ok;
  });
}

}  // namespace

QLP_EXPORT int cublasCreate_v2(void** handle) {
  return library(__func__, [&] {
    if (use_current_device() != ok) {
      return 1;
    }
    *handle = new Object;
    return static_cast<int>(ok);
  });
}

QLP_EXPORT int cublasDestroy_v2(void* handle) {
  return library(__func__, [&] {
    delete static_cast<Object*>(handle);
    return ok;
  });
}

QLP_EXPORT int cublasSetStream_v2(void* handle, void* stream) {
  return library(__func__, [&] {
    object(handle).stream = stream;
    return ok;
  });
}

QLP_EXPORT int cublasGetStream_v2(void* handle, void** stream) {
  return library(__func__, [&] {
    *stream = object(handle).stream;
    return ok;
  });
}

QLP_EXPORT int cublasSetWorkspace_v2(void*, void*, std::size_t) {
  return library(__func__, [] { return ok; });
}

QLP_EXPORT int cublasSetPointerMode_v2(void* handle, int mode) { return set(__func__, handle, pointer_mode, mode); }
QLP_EXPORT int cublasGetPointerMode_v2(void* handle, int* mode) { return get(__func__, handle, pointer_mode, mode); }
QLP_EXPORT int cublasSetMathMode(void* handle, int mode) { return set(__func__, handle, math_mode, mode); }
QLP_EXPORT int cublasGetMathMode(void* handle, int* mode) { return get(__func__, handle, math_mode, mode); }
QLP_EXPORT int cublasSetAtomicsMode(void* handle, int mode) { return set(__func__, handle, atomics_mode, mode); }
QLP_EXPORT int cublasGetAtomicsMode(void* handle, int* mode) { return get(__func__, handle, atomics_mode, mode); }
QLP_EXPORT int cublasSetSmCountTarget(void* handle, int n) { return set(__func__, handle, multiprocessors, n); }
QLP_EXPORT int cublasGetSmCountTarget(void* handle, int* n) { return get(__func__, handle, multiprocessors, n); }
QLP_EXPORT int cublasSetEmulationStrategy(void* handle, int s) { return set(__func__, handle, emulation, s); }
QLP_EXPORT int cublasGetEmulationStrategy(void* handle, int* s) { return get(__func__, handle, emulation, s); }

QLP_EXPORT int cublasGetProperty(int type, int* value) {
  return library(__func__, [&] { return cublas_property(type, value); });
}

QLP_EXPORT int cublasGetVersion_v2(void*, int* version) {
  return library(__func__, [&] {
    *version = cublas_version();
    return ok;
  });
}

QLP_EXPORT std::size_t cublasGetCudartVersion() { return static_cast<std::size_t>(loaded_runtime(nullptr)) * 1000; }
QLP_EXPORT int cublasLoggerConfigure() { return ok; }
QLP_EXPORT int cublasSetLoggerCallback() { return ok; }

QLP_EXPORT const char* cublasGetStatusName(int status) {
  switch (status) {
    case 0:
      return "CUBLAS_STATUS_SUCCESS";
    case 1:
      return "CUBLAS_STATUS_NOT_INITIALIZED";
    case 3:
      return "CUBLAS_STATUS_ALLOC_FAILED";
    case 7:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case 13:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
    case 14:
      return "CUBLAS_STATUS_INTERNAL_ERROR";
    case 15:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
    default:
      return "CUBLAS_STATUS_UNKNOWN";
  }
}

QLP_EXPORT const char* cublasGetStatusString(int status) { return cublasGetStatusName(status); }

// Copies between host and device, as columns.
namespace {

int copy_columns(const char* name, std::int64_t rows, std::int64_t columns, std::int64_t element, const void* from,
                 std::int64_t from_ld, void* to, std::int64_t to_ld) {
  return library(name, [&] {
    Pitched p{};
    p.source = from;
    p.destination = to;
    p.width = static_cast<std::size_t>(rows * element);
    p.height = static_cast<std::size_t>(columns);
    p.source_pitch = static_cast<std::size_t>(from_ld * element);
    p.destination_pitch = static_cast<std::size_t>(to_ld * element);
    copy(p);
    return ok;
  });
}

}  // namespace

#define QLP_MATRIX(name)                                                                                        \
  QLP_EXPORT int name(int rows, int columns, int element, const void* from, int from_ld, void* to, int to_ld) { \
    return copy_columns(__func__, rows, columns, element, from, from_ld, to, to_ld);                            \
  }
#define QLP_VECTOR(name)                                                                            \
  QLP_EXPORT int name(int n, int element, const void* from, int from_step, void* to, int to_step) { \
    return copy_columns(__func__, 1, n, element, from, from_step, to, to_step);                     \
  }
QLP_MATRIX(cublasSetMatrix)
QLP_MATRIX(cublasGetMatrix)
QLP_MATRIX(cublasSetMatrixAsync)  // the stream that follows has nothing to wait for
QLP_MATRIX(cublasGetMatrixAsync)
QLP_VECTOR(cublasSetVector)
QLP_VECTOR(cublasGetVector)
QLP_VECTOR(cublasSetVectorAsync)
QLP_VECTOR(cublasGetVectorAsync)

// Scalar results: zero, as of vectors of zeros. The lengths are int, in _64 std::int64_t: both are passed alike.
#define QLP_DOT(name, bytes)                                                                                     \
  QLP_EXPORT int name(void*, std::int64_t, const void*, std::int64_t, const void*, std::int64_t, void* result) { \
    zero_result(result, bytes);                                                                                  \
    return launch_call(__func__);                                                                                \
  }
#define QLP_REDUCE(name, bytes)                                                       \
  QLP_EXPORT int name(void*, std::int64_t, const void*, std::int64_t, void* result) { \
    zero_result(result, bytes);                                                       \
    return launch_call(__func__);                                                     \
  }
#define QLP_BOTH(define, name, bytes) define(name##_v2, bytes) define(name##_v2_64, bytes)
QLP_BOTH(QLP_DOT, cublasSdot, 4)
QLP_BOTH(QLP_DOT, cublasDdot, 8)
QLP_BOTH(QLP_DOT, cublasCdotu, 8)
QLP_BOTH(QLP_DOT, cublasCdotc, 8)
QLP_BOTH(QLP_DOT, cublasZdotu, 16)
QLP_BOTH(QLP_DOT, cublasZdotc, 16)
QLP_BOTH(QLP_REDUCE, cublasSnrm2, 4)
QLP_BOTH(QLP_REDUCE, cublasDnrm2, 8)
QLP_BOTH(QLP_REDUCE, cublasScnrm2, 4)
QLP_BOTH(QLP_REDUCE, cublasDznrm2, 8)
QLP_BOTH(QLP_REDUCE, cublasSasum, 4)
QLP_BOTH(QLP_REDUCE, cublasDasum, 8)
QLP_BOTH(QLP_REDUCE, cublasScasum, 4)
QLP_BOTH(QLP_REDUCE, cublasDzasum, 8)
QLP_REDUCE(cublasIsamax_v2, 4)
QLP_REDUCE(cublasIdamax_v2, 4)
QLP_REDUCE(cublasIcamax_v2, 4)
QLP_REDUCE(cublasIzamax_v2, 4)
QLP_REDUCE(cublasIsamin_v2, 4)
QLP_REDUCE(cublasIdamin_v2, 4)
QLP_REDUCE(cublasIcamin_v2, 4)
QLP_REDUCE(cublasIzamin_v2, 4)

// cudaDataType of the result: 0 R_32F, 1 R_64F, 2 R_16F, 4 C_32F, 5 C_64F, 6 C_16F, 14 R_16BF.
QLP_EXPORT int cublasDotEx(void*, int, const void*, int, int, const void*, int, int, void* result, int type, int) {
  zero_result(result, type == 5 ? 16 : type == 1 || type == 4 ? 8 : type == 0 || type == 6 ? 4 : 2);
  return launch_call(__func__);
}

QLP_EXPORT int cublasNrm2Ex(void*, int, const void*, int, int, void* result, int type, int) {
  zero_result(result, type == 1 ? 8 : type == 0 ? 4 : 2);
  return launch_call(__func__);
}
