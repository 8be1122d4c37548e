// A fresh null GPU for a test: its own process, in which the library is loaded and its entry points are looked up by
// name. Declared here are those that the tests call, as the libraries' own headers do, so that no CUDA is needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace null_gpu {

using Variables = std::vector<std::pair<std::string, std::string>>;

/// Runs `body` with these variables set; expectations that fail in it, and a crash, fail the calling test case.
void run(const Variables& variables, const std::function<void()>& body);

/// What a program of test/nullgpu/programs prints with the null GPU preloaded and these variables set ("NAME=VALUE
/// ..."); a status other than 0 fails the calling test case.
std::string output(const std::string& command, const std::string& variables = "");

/// Address of an entry point of the library; fails the test where it has none.
void* entry_point(const char* name);

/// Notes a failure in the process of the test.
void fail(const char* file, int line, const std::string& message);

template <class A, class B>
void expect_equal(const A& a, const B& b, const char* text, const char* file, int line) {
  if (!(a == b)) {
    std::ostringstream message;
    message << text << ": " << a << " is not " << b;
    fail(file, line, message.str());
  }
}

#define QLP_EXPECT(condition) ((condition) ? void() : null_gpu::fail(__FILE__, __LINE__, #condition))
#define QLP_EXPECT_EQ(a, b) null_gpu::expect_equal((a), (b), #a, __FILE__, __LINE__)

/// An entry point of the library, called as a function is.
template <class Signature>
struct Entry;
template <class Result, class... Parameters>
struct Entry<Result(Parameters...)> {
  const char* name;
  Result operator()(Parameters... parameters) const {
    return reinterpret_cast<Result (*)(Parameters...)>(entry_point(name))(parameters...);
  }
};
#define QLP_CALL(result, name, ...) inline const Entry<result(__VA_ARGS__)> name{#name};

struct Dim3 {
  unsigned x, y, z;
};

struct UniqueId {
  char bytes[128];
};

struct AllocationProperties {  // CUmemAllocationProp
  int type, handle_types, location_type, device;
  void* windows;
  unsigned char flags[8];
};

// NOLINTBEGIN(readability-identifier-naming): their own names
// The runtime.
QLP_CALL(int, cudaGetDeviceCount, int*)
QLP_CALL(int, cudaGetDevice, int*)
QLP_CALL(int, cudaSetDevice, int)
QLP_CALL(int, cudaDeviceGetAttribute, int*, int, int)
QLP_CALL(int, cudaDeviceSynchronize)
QLP_CALL(int, cudaGetLastError)
QLP_CALL(int, cudaPeekAtLastError)
QLP_CALL(const char*, cudaGetErrorName, int)
QLP_CALL(int, cudaMalloc, void**, std::size_t)
QLP_CALL(int, cudaFree, void*)
QLP_CALL(int, cudaMallocManaged, void**, std::size_t, unsigned)
QLP_CALL(int, cudaHostAlloc, void**, std::size_t, unsigned)
QLP_CALL(int, cudaFreeHost, void*)
QLP_CALL(int, cudaHostRegister, void*, std::size_t, unsigned)
QLP_CALL(int, cudaHostUnregister, void*)
QLP_CALL(int, cudaMemGetInfo, std::size_t*, std::size_t*)
QLP_CALL(int, cudaPointerGetAttributes, void*, const void*)
QLP_CALL(int, cudaMemcpy, void*, const void*, std::size_t, int)
QLP_CALL(int, cudaMemcpyAsync, void*, const void*, std::size_t, int, void*)
QLP_CALL(int, cudaMemset, void*, int, std::size_t)
QLP_CALL(int, cudaMallocAsync, void**, std::size_t, void*)
QLP_CALL(int, cudaFreeAsync, void*, void*)
QLP_CALL(int, cudaDeviceGetDefaultMemPool, void**, int)
QLP_CALL(int, cudaMemPoolGetAttribute, void*, int, void*)
QLP_CALL(int, cudaMemPoolSetAttribute, void*, int, void*)
QLP_CALL(int, cudaMemPoolTrimTo, void*, std::size_t)
QLP_CALL(int, cudaStreamCreate, void**)
QLP_CALL(int, cudaStreamCreateWithPriority, void**, unsigned, int)
QLP_CALL(int, cudaStreamDestroy, void*)
QLP_CALL(int, cudaStreamGetPriority, void*, int*)
QLP_CALL(int, cudaStreamQuery, void*)
QLP_CALL(int, cudaStreamSynchronize, void*)
QLP_CALL(int, cudaStreamWaitEvent, void*, void*, unsigned)
QLP_CALL(int, cudaLaunchHostFunc, void*, void (*)(void*), void*)
QLP_CALL(int, cudaEventCreateWithFlags, void**, unsigned)
QLP_CALL(int, cudaEventDestroy, void*)
QLP_CALL(int, cudaEventRecord, void*, void*)
QLP_CALL(int, cudaEventQuery, void*)
QLP_CALL(int, cudaEventSynchronize, void*)
QLP_CALL(int, cudaEventElapsedTime, float*, void*, void*)
QLP_CALL(int, cudaStreamBeginCapture, void*, int)
QLP_CALL(int, cudaStreamEndCapture, void*, void**)
QLP_CALL(int, cudaStreamIsCapturing, void*, int*)
QLP_CALL(int, cudaThreadExchangeStreamCaptureMode, int*)
QLP_CALL(int, cudaStreamBeginCaptureToGraph, void*, void*, void* const*, const void*, std::size_t, int)
QLP_CALL(int, cudaGraphCreate, void**, unsigned)
QLP_CALL(int, cudaGraphClone, void**, void*)
QLP_CALL(int, cudaGraphAddNode_v2, void**, void*, void* const*, const void*, std::size_t, void*)
QLP_CALL(int, cudaGraphConditionalHandleCreate, unsigned long long*, void*, unsigned, unsigned)
QLP_CALL(int, cudaGraphGetNodes, void*, void**, std::size_t*)
QLP_CALL(int, cudaGraphInstantiateWithFlags, void**, void*, unsigned long long)
QLP_CALL(int, cudaGraphLaunch, void*, void*)
QLP_CALL(int, cudaGraphDestroy, void*)
QLP_CALL(int, cudaGraphExecDestroy, void*)
QLP_CALL(int, cudaLaunchKernel, const void*, Dim3, Dim3, void**, std::size_t, void*)

// The driver.
QLP_CALL(int, cuMemAddressReserve, std::uintptr_t*, std::size_t, std::size_t, std::uintptr_t, unsigned long long)
QLP_CALL(int, cuMemAddressFree, std::uintptr_t, std::size_t)
QLP_CALL(int, cuMemCreate, std::uint64_t*, std::size_t, const AllocationProperties*, unsigned long long)
QLP_CALL(int, cuMemRelease, std::uint64_t)
QLP_CALL(int, cuMemMap, std::uintptr_t, std::size_t, std::size_t, std::uint64_t, unsigned long long)
QLP_CALL(int, cuMemUnmap, std::uintptr_t, std::size_t)
QLP_CALL(int, cuMemSetAccess, std::uintptr_t, std::size_t, const void*, std::size_t)
QLP_CALL(int, cuGetProcAddress_v2, const char*, void**, int, std::uint64_t, int*)
QLP_CALL(int, cuCtxGetCurrent, void**)

// NCCL.
QLP_CALL(int, ncclGetUniqueId, UniqueId*)
QLP_CALL(int, ncclCommInitRank, void**, int, UniqueId, int)
QLP_CALL(int, ncclCommInitRankConfig, void**, int, UniqueId, int, const void*)
QLP_CALL(int, ncclCommInitAll, void**, int, const int*)
QLP_CALL(int, ncclCommCount, void*, int*)
QLP_CALL(int, ncclCommUserRank, void*, int*)
QLP_CALL(int, ncclCommSplit, void*, int, int, void**, const void*)
QLP_CALL(int, ncclCommDestroy, void*)
QLP_CALL(int, ncclCommGetAsyncError, void*, int*)
QLP_CALL(int, ncclAllReduce, const void*, void*, std::size_t, int, int, void*, void*)
QLP_CALL(int, ncclAllGather, const void*, void*, std::size_t, int, void*, void*)
QLP_CALL(int, ncclReduceScatter, const void*, void*, std::size_t, int, int, void*, void*)
QLP_CALL(int, ncclBroadcast, const void*, void*, std::size_t, int, int, void*, void*)
QLP_CALL(int, ncclSend, const void*, std::size_t, int, int, void*, void*)
QLP_CALL(int, ncclRecv, void*, std::size_t, int, int, void*, void*)
QLP_CALL(int, ncclGroupStart)
QLP_CALL(int, ncclGroupEnd)

// The control interface.
QLP_CALL(std::size_t, nullgpu_used)
QLP_CALL(std::size_t, nullgpu_peak)
QLP_CALL(std::size_t, nullgpu_device_used, int)
QLP_CALL(std::size_t, nullgpu_mallocs)
QLP_CALL(std::size_t, nullgpu_failed_mallocs)
QLP_CALL(std::size_t, nullgpu_pinned)
QLP_CALL(std::size_t, nullgpu_managed)
QLP_CALL(std::size_t, nullgpu_written_by_host, const void*, std::size_t)
QLP_CALL(void, nullgpu_forget, const void*, std::size_t)
QLP_CALL(void, nullgpu_put, void*, const void*, std::size_t)
QLP_CALL(void, nullgpu_get, void*, const void*, std::size_t)
QLP_CALL(std::size_t, nullgpu_unimplemented)
QLP_CALL(const char*, nullgpu_unimplemented_name, std::size_t)
QLP_CALL(unsigned long long, nullgpu_unimplemented_calls, std::size_t)
QLP_CALL(unsigned long long, nullgpu_launches)
QLP_CALL(int, nullgpu_write_report, const char*)
// NOLINTEND(readability-identifier-naming)

}  // namespace null_gpu
