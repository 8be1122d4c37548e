// The driver's functions for address space and memory behind it. The runtime has none, and libcuda is looked up through
// it: nothing here links with the driver.
#pragma once

#include <cuda.h>

namespace qlp {

struct VirtualMemory {
  decltype(&cuMemAddressReserve) reserve;
  decltype(&cuMemAddressFree) unreserve;
  decltype(&cuMemCreate) create;
  decltype(&cuMemRelease) release;
  decltype(&cuMemMap) map;
  decltype(&cuMemUnmap) unmap;
  decltype(&cuMemSetAccess) set_access;
};

/// Throws CudaError where the driver has not got them.
const VirtualMemory& virtual_memory();

}  // namespace qlp
