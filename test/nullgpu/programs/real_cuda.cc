// A program as CUDA's own headers and libraries make it (runtime, cuBLAS, cuBLASLt, NCCL), started with the null GPU
// preloaded. Exit status 0 when all was as it has to be; else what was not is on stderr.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <cublasLt.h>
#include <cublas_v2.h>
#include <dlfcn.h>
#include <vector>

#include <cuda.h>
#include <cuda_runtime.h>
#include <nccl.h>

namespace {

int g_failures = 0;

void expect(bool holds, const char* what, int line) {
  if (!holds) {
    std::fprintf(stderr, "line %d: %s\n", line, what);
    ++g_failures;
  }
}

#define QLP_EXPECT(condition) expect((condition), #condition, __LINE__)
#define QLP_OK(call) expect((call) == 0, #call, __LINE__)

void devices() {
  cudaDeviceProp p{};
  QLP_OK(cudaGetDeviceProperties(&p, 0));
  QLP_EXPECT(std::strcmp(p.name, "NVIDIA H100 80GB HBM3") == 0);
  QLP_EXPECT(p.major == 9 && p.minor == 0 && p.multiProcessorCount == 132);
  QLP_EXPECT(p.totalGlobalMem == 85021687808U);
  QLP_EXPECT(p.sharedMemPerBlock == 49152 && p.sharedMemPerBlockOptin == 232448);
  QLP_EXPECT(p.sharedMemPerMultiprocessor == 233472 && p.reservedSharedMemPerBlock == 1024);
  QLP_EXPECT(p.maxThreadsPerMultiProcessor == 2048 && p.maxBlocksPerMultiProcessor == 32);
  QLP_EXPECT(p.regsPerMultiprocessor == 65536 && p.warpSize == 32 && p.l2CacheSize == 52428800);
  QLP_EXPECT(p.clusterLaunch == 1 && p.memoryPoolsSupported == 1 && p.unifiedAddressing == 1);
  QLP_EXPECT(p.maxGridSize[0] == 2147483647 && p.maxThreadsDim[2] == 64 && p.totalConstMem == 65536);
  int version = 0;
  QLP_OK(cudaRuntimeGetVersion(&version));
  QLP_EXPECT(version == CUDART_VERSION);
  int value = 0;
  QLP_OK(cudaDeviceGetAttribute(&value, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
  QLP_EXPECT(value == 232448);
  cudaFuncAttributes f{};
  QLP_OK(cudaFuncGetAttributes(&f, reinterpret_cast<const void*>(&devices)));
  QLP_EXPECT(f.maxThreadsPerBlock == 1024 && f.numRegs > 0 && f.binaryVersion == 90);
}

void memory() {
  std::vector<float> in(100, 2.5F);
  std::vector<float> out(100);
  float* p = nullptr;
  cudaStream_t s = nullptr;
  QLP_OK(cudaMalloc(&p, 400));
  QLP_OK(cudaStreamCreate(&s));
  QLP_OK(cudaMemcpyAsync(p, in.data(), 400, cudaMemcpyHostToDevice, s));
  QLP_OK(cudaMemcpyAsync(out.data(), p, 400, cudaMemcpyDeviceToHost, s));
  QLP_OK(cudaStreamSynchronize(s));
  QLP_EXPECT(in == out);
  cudaPointerAttributes a{};
  QLP_OK(cudaPointerGetAttributes(&a, p));
  QLP_EXPECT(a.type == cudaMemoryTypeDevice && a.devicePointer == p);
  void* big = nullptr;
  QLP_EXPECT(cudaMalloc(&big, std::size_t{1} << 40U) == cudaErrorMemoryAllocation);
  QLP_EXPECT(std::strcmp(cudaGetErrorString(cudaGetLastError()), "out of memory") == 0);
  QLP_OK(cudaFree(p));
}

void matrices() {
  cublasHandle_t blas = nullptr;
  QLP_OK(cublasCreate(&blas));
  int version = 0;
  QLP_OK(cublasGetVersion(blas, &version));
  QLP_EXPECT(version == CUBLAS_VERSION);
  cublasLtHandle_t lt = nullptr;
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t layout = nullptr;
  cublasLtMatmulPreference_t preference = nullptr;
  cublasLtMatmulHeuristicResult_t result{};
  int found = 0;
  QLP_OK(cublasLtCreate(&lt));
  QLP_OK(cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  cublasOperation_t transpose = CUBLAS_OP_T;
  QLP_OK(cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_TRANSA, &transpose, sizeof transpose));
  transpose = CUBLAS_OP_N;
  QLP_OK(cublasLtMatmulDescGetAttribute(operation, CUBLASLT_MATMUL_DESC_TRANSA, &transpose, sizeof transpose, nullptr));
  QLP_EXPECT(transpose == CUBLAS_OP_T);
  QLP_OK(cublasLtMatrixLayoutCreate(&layout, CUDA_R_16BF, 64, 32, 64));
  std::uint64_t rows = 0;
  QLP_OK(cublasLtMatrixLayoutGetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_ROWS, &rows, sizeof rows, nullptr));
  QLP_EXPECT(rows == 64);
  QLP_OK(cublasLtMatmulPreferenceCreate(&preference));
  QLP_OK(cublasLtMatmulAlgoGetHeuristic(lt, operation, layout, layout, layout, layout, preference, 1, &result, &found));
  QLP_EXPECT(found == 1 && result.state == CUBLAS_STATUS_SUCCESS && result.workspaceSize == 0);
}

void communicators() {
  int version = 0;
  QLP_OK(ncclGetVersion(&version));
  QLP_EXPECT(version == NCCL_VERSION_CODE);
  ncclUniqueId id{};
  ncclComm_t c = nullptr;
  QLP_OK(ncclGetUniqueId(&id));
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  QLP_OK(ncclCommInitRankConfig(&c, 8, id, 3, &config));
  int* p = nullptr;
  const int value = 5;
  int back = 0;
  QLP_OK(cudaMalloc(&p, 4));
  QLP_OK(cudaMemcpy(p, &value, 4, cudaMemcpyHostToDevice));
  QLP_OK(ncclAllReduce(p, p, 1, ncclInt32, ncclSum, c, nullptr));
  QLP_OK(cudaMemcpy(&back, p, 4, cudaMemcpyDeviceToHost));
  QLP_EXPECT(back == 40);
  QLP_OK(ncclCommDestroy(c));
}

void driver() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  QLP_EXPECT(library != nullptr);
  auto* init = reinterpret_cast<decltype(&cuInit)>(dlsym(library, "cuInit"));
  QLP_OK(init(0));
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  QLP_OK(cudaGetDriverEntryPointByVersion("cuMemAlloc", &function, 12000, cudaEnableDefault, &found));
  QLP_EXPECT(function != nullptr && found == cudaDriverEntryPointSuccess);
  using Count = int (*)(unsigned*);
  void* nvml = dlopen("/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1", RTLD_NOW);
  unsigned count = 0;
  QLP_EXPECT(nvml != nullptr && reinterpret_cast<Count>(dlsym(nvml, "nvmlDeviceGetCount_v2"))(&count) == 0);
  QLP_EXPECT(count == 2);
}

}  // namespace

int main() {
  devices();
  memory();
  matrices();
  communicators();
  driver();
  return g_failures == 0 ? 0 : 1;
}
