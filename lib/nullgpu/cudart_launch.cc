// The CUDA runtime: kernels, the code that is linked into programs, libraries, occupancy.
#include <cstddef>
#include <cstring>
#include <vector>

#include "nullgpu/capabilities.h"
#include "nullgpu/entry.h"
#include "nullgpu/modules.h"
#include "nullgpu/settings.h"
#include "nullgpu/streams.h"

using namespace nullgpu;

namespace {

struct Dim3 {
  unsigned x, y, z;
};

int launch_kernel(Dim3 grid, Dim3 block, std::size_t shared, void* stream) {
  if (const int status = check_launch(grid.x, grid.y, grid.z, block.x, block.y, block.z, shared)) {
    return status;
  }
  count_launch();
  return submit(stream, NodeType::kernel, [] {});
}

// cudaLaunchConfig_t, as far as it matters.
struct LaunchConfig {
  Dim3 grid;
  Dim3 block;
  std::size_t shared;
  void* stream;
};

struct Configuration {
  Dim3 grid;
  Dim3 block;
  std::size_t shared;
  void* stream;
};

std::vector<Configuration>& configurations() {
  static thread_local std::vector<Configuration> pushed;
  return pushed;
}

}  // namespace

QLP_EXPORT int cudaLaunchKernel(const void*, Dim3 grid, Dim3 block, void**, std::size_t shared, void* stream) {
  return runtime(__func__, [&] { return launch_kernel(grid, block, shared, stream); });
}

QLP_EXPORT int __cudaLaunchKernel(void*, Dim3 grid, Dim3 block, void**, std::size_t shared, void* stream) {
  return runtime("cudaLaunchKernel", [&] { return launch_kernel(grid, block, shared, stream); });
}

QLP_EXPORT int cudaLaunchCooperativeKernel(const void*, Dim3 grid, Dim3 block, void**, std::size_t shared,
                                           void* stream) {
  return runtime(__func__, [&] { return launch_kernel(grid, block, shared, stream); });
}

QLP_EXPORT int cudaLaunchKernelExC(const LaunchConfig* config, const void*, void**) {
  return runtime(__func__, [&] { return launch_kernel(config->grid, config->block, config->shared, config->stream); });
}

// What the compiler puts around <<<...>>>.
QLP_EXPORT unsigned __cudaPushCallConfiguration(Dim3 grid, Dim3 block, std::size_t shared, void* stream) {
  configurations().push_back({grid, block, shared, stream});
  return 0;
}

QLP_EXPORT int __cudaPopCallConfiguration(Dim3* grid, Dim3* block, std::size_t* shared, void* stream) {
  auto& pushed = configurations();
  if (pushed.empty()) {
    return invalid_configuration;
  }
  const Configuration c = pushed.back();
  pushed.pop_back();
  *grid = c.grid;
  *block = c.block;
  *shared = c.shared;
  std::memcpy(stream, &c.stream, sizeof c.stream);
  return ok;
}

QLP_EXPORT void** __cudaRegisterFatBinary(void*) { return reinterpret_cast<void**>(new void*(nullptr)); }
QLP_EXPORT void __cudaRegisterFatBinaryEnd(void**) {}
QLP_EXPORT void __cudaUnregisterFatBinary(void** handle) { delete handle; }
QLP_EXPORT char __cudaInitModule(void**) { return 1; }

QLP_EXPORT void __cudaRegisterFunction(void**, const char* stub, char*, const char* name, int, void*, void*, void*,
                                       void*, int*) {
  register_kernel(stub, name);
}

QLP_EXPORT void __cudaRegisterVar(void**, char* shadow, char*, const char* name, int, std::size_t bytes, int, int) {
  register_variable(shadow, name, bytes);
}

QLP_EXPORT void __cudaRegisterManagedVar(void**, void** shadow, char*, const char* name, int, std::size_t bytes, int,
                                         int) {
  register_variable(shadow, name, bytes);
}

QLP_EXPORT void __cudaRegisterTexture() {}
QLP_EXPORT void __cudaRegisterSurface() {}
QLP_EXPORT void __cudaRegisterHostVar() {}

QLP_EXPORT int __cudaGetKernel(void** kernel, const void* stub) {
  *kernel = kernel_of(stub);
  return ok;
}

QLP_EXPORT int cudaGetKernel(void** kernel, const void* stub) {
  return runtime(__func__, [&] {
    *kernel = kernel_of(stub);
    return ok;
  });
}

QLP_EXPORT int cudaGetFuncBySymbol(void** function, const void* stub) {
  return runtime(__func__, [&] {
    *function = kernel_of(stub);
    return ok;
  });
}

QLP_EXPORT int cudaFuncGetName(const char** name, const void* stub) {
  return runtime(__func__, [&] {
    *name = kernel_of(stub)->name.c_str();
    return ok;
  });
}

QLP_EXPORT int cudaFuncSetAttribute(const void* stub, int attribute, int value) {
  return runtime(__func__, [&] { return set_function_attribute(*kernel_of(stub), attribute, value); });
}

QLP_EXPORT int cudaFuncSetCacheConfig(const void*, int) {
  return runtime(__func__, [] { return ok; });
}

QLP_EXPORT int cudaFuncSetSharedMemConfig(const void*, int) {
  return runtime(__func__, [] { return ok; });
}

QLP_EXPORT int cudaKernelSetAttributeForDevice(void* kernel, int attribute, int value, int) {
  return runtime(__func__, [&] { return set_function_attribute(*kernel_of(kernel), attribute, value); });
}

QLP_EXPORT int cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void*, int threads,
                                                                      std::size_t shared, unsigned) {
  return runtime(__func__, [&] {
    *blocks = blocks_per_multiprocessor(threads, shared);
    return ok;
  });
}

QLP_EXPORT int cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* stub, int threads,
                                                             std::size_t shared) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, stub, threads, shared, 0);
}

QLP_EXPORT int cudaOccupancyAvailableDynamicSMemPerBlock(std::size_t* bytes, const void*, int blocks, int) {
  return runtime(__func__, [&] {
    const Capability& c = *find_capability(settings().compute_capability);
    *bytes = static_cast<std::size_t>(c.shared_bytes_per_multiprocessor / (blocks < 1 ? 1 : blocks) -
                                      c.reserved_shared_bytes_per_block);
    return ok;
  });
}

QLP_EXPORT int cudaOccupancyMaxActiveClusters(int* clusters, const void*, const void*) {
  return runtime(__func__, [&] {
    *clusters = settings().multiprocessors / 16;
    return ok;
  });
}

QLP_EXPORT int cudaOccupancyMaxPotentialClusterSize(int* size, const void*, const void*) {
  return runtime(__func__, [&] {
    *size = 8;  // the largest that every GPU with clusters takes
    return ok;
  });
}

QLP_EXPORT int cudaLibraryLoadData(void** library, const void*, int*, void**, unsigned, int*, void**, unsigned) {
  return runtime(__func__, [&] {
    *library = new_module();
    return ok;
  });
}

QLP_EXPORT int cudaLibraryLoadFromFile(void** library, const char*, int*, void**, unsigned, int*, void**, unsigned) {
  return runtime(__func__, [&] {
    *library = new_module();
    return ok;
  });
}

QLP_EXPORT int cudaLibraryUnload(void* library) {
  return runtime(__func__, [&] { return unload_module(library); });
}

QLP_EXPORT int cudaLibraryGetKernel(void** kernel, void* library, const char* name) {
  return runtime(__func__, [&] {
    Module* module = find_module(library);
    if (module == nullptr) {
      return invalid_handle;
    }
    *kernel = function_of(*module, name);
    return ok;
  });
}
