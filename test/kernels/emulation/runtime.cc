// What the CUDA runtime does beside launching, where the device is the host.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>

#include <cuda_runtime_api.h>

namespace {

/// What cudaMalloc gave and cudaFree did not take back: begin and bytes.
std::map<const std::byte*, std::size_t>& device_memory() {
  static std::map<const std::byte*, std::size_t> ranges;
  return ranges;
}

}  // namespace

const char* cudaGetErrorString(cudaError_t status) {
  return status == cudaErrorInvalidValue ? "invalid argument" : status ? "out of memory" : "no error";
}

cudaError_t cudaMalloc(void** data, std::size_t bytes) {
  *data = std::malloc(bytes);  // not one byte more, so that AddressSanitizer sees what goes past it
  if (*data == nullptr) return cudaErrorMemoryAllocation;
  std::memset(*data, 0xff, bytes);
  device_memory()[static_cast<std::byte*>(*data)] = bytes;
  return cudaSuccess;
}

cudaError_t cudaMallocManaged(void** data, std::size_t bytes) { return cudaMalloc(data, bytes); }

cudaError_t cudaFree(void* data) {
  device_memory().erase(static_cast<std::byte*>(data));
  std::free(data);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind /*kind*/, cudaStream_t) {
  if (bytes != 0) std::memcpy(to, from, bytes);
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* data, int value, std::size_t bytes, cudaStream_t) {
  if (bytes != 0) std::memset(data, value, bytes);
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* data) {
  const auto* const at = static_cast<const std::byte*>(data);
  auto range = device_memory().upper_bound(at);
  const bool inside = range != device_memory().begin() && (--range, at < range->first + range->second);
  attributes->type = inside ? cudaMemoryTypeDevice : cudaMemoryTypeUnregistered;
  return cudaSuccess;
}

// There is nothing to wait for.
cudaError_t cudaStreamCreateWithFlags(cudaStream_t*, unsigned) { return cudaSuccess; }
cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamQuery(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t*, unsigned) { return cudaSuccess; }
cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }
