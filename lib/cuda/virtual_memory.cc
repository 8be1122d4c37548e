#include "cuda/virtual_memory.h"

#include <cuda_runtime_api.h>

#include "cuda/cuda_error.h"

namespace qlp {
namespace {

template <class Function>
void find(Function& function, const char* name) {
  void* address = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  check(cudaGetDriverEntryPointByVersion(name, &address, 12000, cudaEnableDefault, &found), name);
  if (found != cudaDriverEntryPointSuccess || address == nullptr) throw CudaError(cudaErrorSymbolNotFound, name);
  function = reinterpret_cast<Function>(address);
}

VirtualMemory find_all() {
  VirtualMemory found{};
  find(found.reserve, "cuMemAddressReserve");
  find(found.unreserve, "cuMemAddressFree");
  find(found.create, "cuMemCreate");
  find(found.release, "cuMemRelease");
  find(found.map, "cuMemMap");
  find(found.unmap, "cuMemUnmap");
  find(found.set_access, "cuMemSetAccess");
  return found;
}

}  // namespace

const VirtualMemory& virtual_memory() {
  static const VirtualMemory found = find_all();
  return found;
}

}  // namespace qlp
