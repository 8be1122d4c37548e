#include "cuda/segments.h"

#include <string>

#include <cuda_runtime_api.h>

#include "base/rounding.h"
#include "cuda/cuda_error.h"
#include "cuda/virtual_memory.h"

namespace qlp {
namespace {

/// What the driver maps at least (cuMemGetAllocationGranularity), and so what cudaMalloc takes of the device.
constexpr std::uint64_t kPage = std::uint64_t{2} << 20;

void check_driver(CUresult status, const char* what) {
  if (status != CUDA_SUCCESS)
    throw CudaError(cudaErrorUnknown, std::string(what) + " (" + std::to_string(status) + ")");
}

void* pointer(std::uint64_t address) { return reinterpret_cast<void*>(address); }  // NOLINT(performance-no-int-to-ptr)

/// Where memory is out the allocator takes the blocks that wait for a stream, without asking.
void wait_for_all() { check(cudaDeviceSynchronize(), "waiting for the device"); }

CUmemAllocationProp page_properties(int device) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {device}};
  return properties;
}

}  // namespace

CudaSegments::CudaSegments() {
  check(cudaGetDevice(&device_), "asking for the current device");
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, device_), "asking what the device is");
  capacity_ = properties.totalGlobalMem;
}

CudaSegments::~CudaSegments() {
  for (const auto& [address, bytes] : segments_) cudaFree(pointer(address));
  while (!pages_.empty()) unmap_page(pages_.begin()->first);
  for (const auto& [address, bytes] : spaces_) virtual_memory().unreserve(address, bytes);
}

std::optional<std::uint64_t> CudaSegments::allocate(std::uint64_t bytes) {
  void* data = nullptr;
  const cudaError_t status = cudaMalloc(&data, bytes);
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // or the next launch fails with it
    wait_for_all();
    return std::nullopt;
  }
  check(status, "taking a segment of memory");
  const auto address = reinterpret_cast<std::uint64_t>(data);
  segments_[address] = bytes;
  used_ += round_up(bytes, kPage);
  return address;
}

void CudaSegments::release(std::uint64_t address, std::uint64_t bytes) {
  check(cudaFree(pointer(address)), "giving back a segment");
  segments_.erase(address);
  used_ -= round_up(bytes, kPage);
}

std::uint64_t CudaSegments::reserve(std::uint64_t bytes) {
  CUdeviceptr address = 0;
  const std::uint64_t whole = round_up(bytes, kPage);
  check_driver(virtual_memory().reserve(&address, whole, 0, 0, 0), "reserving address space");
  spaces_[address] = whole;
  return address;
}

void CudaSegments::unreserve(std::uint64_t address, std::uint64_t /*bytes*/) {
  const auto space = spaces_.find(address);
  check_driver(virtual_memory().unreserve(address, space->second), "giving back address space");
  spaces_.erase(space);
}

// Page by page: any part of what was mapped at once may be unmapped alone.
bool CudaSegments::map(std::uint64_t address, std::uint64_t bytes) {
  const CUmemAllocationProp properties = page_properties(device_);
  for (std::uint64_t at = address; at < address + bytes; at += kPage) {
    CUmemGenericAllocationHandle page = 0;
    const CUresult status = virtual_memory().create(&page, kPage, &properties, 0);
    if (status == CUDA_ERROR_OUT_OF_MEMORY) {
      for (std::uint64_t mapped = address; mapped < at; mapped += kPage) unmap_page(mapped);
      wait_for_all();
      return false;
    }
    check_driver(status, "taking memory");
    check_driver(virtual_memory().map(at, kPage, 0, page, 0), "mapping memory");
    pages_[at] = page;
    used_ += kPage;
  }
  const CUmemAccessDesc access{properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  check_driver(virtual_memory().set_access(address, bytes, &access, 1), "opening memory");
  return true;
}

void CudaSegments::unmap(std::uint64_t address, std::uint64_t bytes) {
  wait_for_all();  // cudaFree does so by itself, cuMemUnmap does not
  for (std::uint64_t at = address; at < address + bytes; at += kPage) unmap_page(at);
}

void CudaSegments::unmap_page(std::uint64_t address) {
  const auto page = pages_.find(address);
  virtual_memory().unmap(address, kPage);
  virtual_memory().release(page->second);
  pages_.erase(page);
  used_ -= kPage;
}

}  // namespace qlp
