// cuSPARSE, cuSOLVER, cuRAND, cuFFT: handles and descriptors. What computes is a launch and what asks for the size of a
// workspace is told 0 (entry_points/), but for the SVDs of cusolver_svd.cc; the size of a sparse result, which only the
// device would know, is taken to be 0 too.
#include <atomic>
#include <cstdint>
#include <cstring>

#include "nullgpu/entry.h"
#include "nullgpu/interpose.h"
#include "nullgpu/objects.h"

using namespace nullgpu;

namespace {

int set_stream(const char* name, void* handle, void* stream) {
  return library(name, [&] {
    object(handle).stream = stream;
    return ok;
  });
}

int get_stream(const char* name, void* handle, void** stream) {
  return library(name, [&] {
    *stream = object(handle).stream;
    return ok;
  });
}

}  // namespace

#define QLP_CREATE(name) \
  QLP_EXPORT int name(void** handle) { return create(__func__, handle); }
#define QLP_DESTROY(name) \
  QLP_EXPORT int name(void* handle) { return destroy(__func__, handle); }
#define QLP_ACCEPT(name) \
  QLP_EXPORT int name() { return accept(__func__); }

// cuSPARSE.
QLP_CREATE(cusparseCreate)
QLP_DESTROY(cusparseDestroy)
QLP_CREATE(cusparseCreateMatDescr)
QLP_DESTROY(cusparseDestroyMatDescr)
QLP_CREATE(cusparseCreateBsrsv2Info)
QLP_DESTROY(cusparseDestroyBsrsv2Info)
QLP_CREATE(cusparseCreateBsrsm2Info)
QLP_DESTROY(cusparseDestroyBsrsm2Info)
QLP_CREATE(cusparseSpGEMM_createDescr)
QLP_DESTROY(cusparseSpGEMM_destroyDescr)
QLP_CREATE(cusparseSpSV_createDescr)
QLP_DESTROY(cusparseSpSV_destroyDescr)
QLP_CREATE(cusparseSpSM_createDescr)
QLP_DESTROY(cusparseSpSM_destroyDescr)
QLP_DESTROY(cusparseDestroySpMat)
QLP_DESTROY(cusparseDestroyDnMat)
QLP_DESTROY(cusparseDestroyDnVec)
QLP_DESTROY(cusparseDestroySpVec)
QLP_CREATE(cusparseCreateCsr)
QLP_CREATE(cusparseCreateCsc)
QLP_CREATE(cusparseCreateCoo)
QLP_CREATE(cusparseCreateBsr)
QLP_CREATE(cusparseCreateBlockedEll)
QLP_CREATE(cusparseCreateDnMat)
QLP_CREATE(cusparseCreateDnVec)
QLP_CREATE(cusparseCreateSpVec)
QLP_ACCEPT(cusparseSetMatType)
QLP_ACCEPT(cusparseSetMatFillMode)
QLP_ACCEPT(cusparseSetMatDiagType)
QLP_ACCEPT(cusparseSetMatIndexBase)
QLP_ACCEPT(cusparseSpMatSetAttribute)
QLP_ACCEPT(cusparseDnMatSetStridedBatch)
QLP_ACCEPT(cusparseCsrSetStridedBatch)
QLP_ACCEPT(cusparseCooSetStridedBatch)
QLP_ACCEPT(cusparseCsrSetPointers)
QLP_EXPORT int cusparseSetStream(void* handle, void* stream) { return set_stream(__func__, handle, stream); }
QLP_EXPORT int cusparseGetStream(void* handle, void** stream) { return get_stream(__func__, handle, stream); }

QLP_EXPORT int cusparseSetPointerMode(void* handle, int mode) {
  return library(__func__, [&] {
    object(handle).put(0, mode);
    return ok;
  });
}

QLP_EXPORT int cusparseGetPointerMode(void* handle, int* mode) {
  return library(__func__, [&] {
    *mode = object(handle).value(0, 0);
    return ok;
  });
}

QLP_EXPORT const char* cusparseGetErrorString(int status) { return status == 0 ? "success" : "not supported"; }
QLP_EXPORT const char* cusparseGetErrorName(int status) {
  return status == 0 ? "CUSPARSE_STATUS_SUCCESS" : "CUSPARSE_STATUS_NOT_SUPPORTED";
}

QLP_EXPORT int cusparseSpMatGetSize(void*, std::int64_t* rows, std::int64_t* columns, std::int64_t* nonzeros) {
  return library(__func__, [&] {
    assume("sparse results of cuSPARSE are taken to be empty");
    *rows = *columns = *nonzeros = 0;
    return ok;
  });
}

QLP_EXPORT int cusparseSpGEMM_workEstimation(void*, int, int, const void*, void*, void*, const void*, void*, int, int,
                                             void*, std::size_t* size, void*) {
  return size_call(__func__, size);
}
QLP_EXPORT int cusparseSpGEMM_compute(void*, int, int, const void*, void*, void*, const void*, void*, int, int, void*,
                                      std::size_t* size, void*) {
  return size_call(__func__, size);
}

// cuSOLVER.
QLP_CREATE(cusolverDnCreate)
QLP_DESTROY(cusolverDnDestroy)
QLP_CREATE(cusolverDnCreateParams)
QLP_DESTROY(cusolverDnDestroyParams)
QLP_CREATE(cusolverDnCreateGesvdjInfo)
QLP_DESTROY(cusolverDnDestroyGesvdjInfo)
QLP_CREATE(cusolverDnCreateSyevjInfo)
QLP_DESTROY(cusolverDnDestroySyevjInfo)
QLP_ACCEPT(cusolverDnXgesvdjSetTolerance)
QLP_ACCEPT(cusolverDnXgesvdjSetMaxSweeps)
QLP_ACCEPT(cusolverDnXgesvdjSetSortEig)
QLP_ACCEPT(cusolverDnXsyevjSetSortEig)
QLP_ACCEPT(cusolverDnXsyevjSetTolerance)
QLP_ACCEPT(cusolverDnXsyevjSetMaxSweeps)
QLP_EXPORT int cusolverDnSetStream(void* handle, void* stream) { return set_stream(__func__, handle, stream); }
QLP_EXPORT int cusolverDnGetStream(void* handle, void** stream) { return get_stream(__func__, handle, stream); }

// cuRAND.
QLP_EXPORT int curandCreateGenerator(void** generator, int) { return create(__func__, generator); }
QLP_EXPORT int curandCreateGeneratorHost(void** generator, int) { return create(__func__, generator); }
QLP_DESTROY(curandDestroyGenerator)
QLP_EXPORT int curandSetStream(void* generator, void* stream) { return set_stream(__func__, generator, stream); }
QLP_ACCEPT(curandSetPseudoRandomGeneratorSeed)
QLP_ACCEPT(curandSetGeneratorOffset)
QLP_ACCEPT(curandSetGeneratorOrdering)
QLP_ACCEPT(curandSetQuasiRandomGeneratorDimensions)

QLP_EXPORT int curandGetVersion(int* version) {
  return library(__func__, [&] {
    if (ask_real<int>("libcurand.so.10", "curandGetVersion", version) != ok) {
      *version = 10309;
    }
    return ok;
  });
}

// cuFFT: a plan is a small number.
namespace {

std::atomic<int> g_next_plan{1};

int make_plan(const char* name, int* plan) {
  return library(name, [&] {
    *plan = g_next_plan++;
    return ok;
  });
}

}  // namespace

QLP_EXPORT int cufftCreate(int* plan) { return make_plan(__func__, plan); }
QLP_EXPORT int cufftPlan1d(int* plan, int, int, int) { return make_plan(__func__, plan); }
QLP_EXPORT int cufftPlan2d(int* plan, int, int, int) { return make_plan(__func__, plan); }
QLP_EXPORT int cufftPlan3d(int* plan, int, int, int, int) { return make_plan(__func__, plan); }
QLP_EXPORT int cufftPlanMany(int* plan, int, int*, int*, int, int, int*, int, int, int, int) {
  return make_plan(__func__, plan);
}
QLP_EXPORT int cufftXtMakePlanMany(int, int, void*, void*, long long, long long, int, void*, long long, long long, int,
                                   long long, std::size_t* size, int) {
  return size_call(__func__, size);
}
QLP_EXPORT int cufftMakePlanMany(int, int, int*, int*, int, int, int*, int, int, int, int, std::size_t* size) {
  return size_call(__func__, size);
}
QLP_EXPORT int cufftMakePlan1d(int, int, int, int, std::size_t* size) { return size_call(__func__, size); }
QLP_EXPORT int cufftGetSize(int, std::size_t* size) { return size_call(__func__, size); }
QLP_ACCEPT(cufftDestroy)
QLP_ACCEPT(cufftSetStream)
QLP_ACCEPT(cufftSetAutoAllocation)
QLP_ACCEPT(cufftSetWorkArea)
QLP_EXPORT int cufftGetVersion(int* version) {
  return library(__func__, [&] {
    *version = 11303;
    return ok;
  });
}
