// The CUDA driver: modules, libraries, functions, launches, occupancy.
#include <algorithm>
#include <cstddef>
#include <cstring>

#include "nullgpu/books.h"
#include "nullgpu/capabilities.h"
#include "nullgpu/entry.h"
#include "nullgpu/modules.h"
#include "nullgpu/settings.h"
#include "nullgpu/streams.h"

using namespace nullgpu;

namespace {

int load(const char* name, void** module, const void* image) {
  return driver(name, [&] {
    if (image == nullptr) {
      return invalid_value;
    }
    *module = new_module();
    return ok;
  });
}

int get_function(const char* entry, void** function, void* module, const char* name) {
  return driver(entry, [&] {
    Module* m = find_module(module);
    if (m == nullptr) {
      return invalid_handle;
    }
    *function = function_of(*m, name);
    return ok;
  });
}

template <class Use>
int with_function(const char* entry, void* function, Use&& use) {
  return driver(entry, [&] {
    Function* f = find_function(function);
    return f == nullptr ? static_cast<int>(invalid_handle) : static_cast<int>(use(*f));
  });
}

int launch_kernel(const char* entry, void* function, const unsigned (&size)[6], std::size_t shared, void* stream) {
  return with_function(entry, function, [&](const Function&) {
    if (const int status = check_launch(size[0], size[1], size[2], size[3], size[4], size[5], shared)) {
      return status;
    }
    count_launch();
    return submit(stream, NodeType::kernel, [] {});
  });
}

// CUlaunchConfig, as far as it matters.
struct LaunchConfig {
  unsigned size[6];
  unsigned shared;
  void* stream;
};

}  // namespace

QLP_EXPORT int cuModuleLoadData(void** module, const void* image) { return load(__func__, module, image); }
QLP_EXPORT int cuModuleLoadFatBinary(void** module, const void* image) { return load(__func__, module, image); }
QLP_EXPORT int cuModuleLoad(void** module, const char* path) { return load(__func__, module, path); }
QLP_EXPORT int cuModuleLoadDataEx(void** module, const void* image, unsigned, int*, void**) {
  return load(__func__, module, image);
}
QLP_EXPORT int cuLibraryLoadData(void** library, const void* image, int*, void**, unsigned, int*, void**, unsigned) {
  return load(__func__, library, image);
}
QLP_EXPORT int cuLibraryLoadFromFile(void** library, const char* path, int*, void**, unsigned, int*, void**, unsigned) {
  return load(__func__, library, path);
}

QLP_EXPORT int cuModuleUnload(void* module) {
  return driver(__func__, [&] { return unload_module(module); });
}
QLP_EXPORT int cuLibraryUnload(void* library) {
  return driver(__func__, [&] { return unload_module(library); });
}

QLP_EXPORT int cuModuleGetLoadingMode(int* mode) {
  return driver(__func__, [&] {
    *mode = 2;  // CU_MODULE_LAZY_LOADING, the default since CUDA 12.2
    return ok;
  });
}

QLP_EXPORT int cuModuleGetFunction(void** function, void* module, const char* name) {
  return get_function(__func__, function, module, name);
}
QLP_EXPORT int cuLibraryGetKernel(void** kernel, void* library, const char* name) {
  return get_function(__func__, kernel, library, name);
}

QLP_EXPORT int cuModuleGetFunctionCount(unsigned* count, void* module) {
  return driver(__func__, [&] {
    Module* m = find_module(module);
    *count = m == nullptr ? 0 : static_cast<unsigned>(m->functions.size());
    return m == nullptr ? invalid_handle : ok;
  });
}

// How large a variable is stands in the module's image, which nobody reads here: a page, which covers the scalars that
// programs look up.
QLP_EXPORT int cuModuleGetGlobal_v2(void** p, std::size_t* bytes, void* module, const char* name) {
  return driver(__func__, [&] {
    Module* m = find_module(module);
    if (m == nullptr) {
      return static_cast<int>(invalid_handle);
    }
    assume("the size of a module's variable (cuModuleGetGlobal) is taken to be 4096 bytes");
    auto& variable = m->variables[name];
    if (variable.first == nullptr) {
      variable.second = 4096;
      if (const int status =
              Books::get().allocate(&variable.first, variable.second, Kind::symbol, current_device(), 0)) {
        return status;
      }
    }
    if (p != nullptr) {
      *p = variable.first;
    }
    if (bytes != nullptr) {
      *bytes = variable.second;
    }
    return static_cast<int>(ok);
  });
}

QLP_EXPORT int cuLibraryGetModule(void** module, void* library) {
  return driver(__func__, [&] {
    *module = library;
    return find_module(library) == nullptr ? invalid_handle : ok;
  });
}

QLP_EXPORT int cuKernelGetFunction(void** function, void* kernel) {
  return with_function(__func__, kernel, [&](Function& f) {
    *function = &f;
    return ok;
  });
}

QLP_EXPORT int cuKernelGetLibrary(void** library, void* kernel) {
  return with_function(__func__, kernel, [&](Function& f) {
    *library = f.module;
    return ok;
  });
}

QLP_EXPORT int cuFuncGetModule(void** module, void* function) {
  return with_function(__func__, function, [&](Function& f) {
    *module = f.module;
    return ok;
  });
}

QLP_EXPORT int cuFuncGetName(const char** name, void* function) {
  return with_function(__func__, function, [&](Function& f) {
    *name = f.name.c_str();
    return ok;
  });
}

QLP_EXPORT int cuKernelGetName(const char** name, void* kernel) {
  return with_function(__func__, kernel, [&](Function& f) {
    *name = f.name.c_str();
    return ok;
  });
}

QLP_EXPORT int cuFuncGetAttribute(int* value, int attribute, void* function) {
  return with_function(__func__, function, [&](Function& f) { return function_attribute(f, attribute, value); });
}
QLP_EXPORT int cuKernelGetAttribute(int* value, int attribute, void* kernel, int) {
  return with_function(__func__, kernel, [&](Function& f) { return function_attribute(f, attribute, value); });
}
QLP_EXPORT int cuFuncSetAttribute(void* function, int attribute, int value) {
  return with_function(__func__, function, [&](Function& f) { return set_function_attribute(f, attribute, value); });
}
QLP_EXPORT int cuKernelSetAttribute(int attribute, int value, void* kernel, int) {
  return with_function(__func__, kernel, [&](Function& f) { return set_function_attribute(f, attribute, value); });
}
QLP_EXPORT int cuFuncSetCacheConfig(void* function, int) {
  return with_function(__func__, function, [](Function&) { return ok; });
}
QLP_EXPORT int cuKernelSetCacheConfig(void* kernel, int, int) {
  return with_function(__func__, kernel, [](Function&) { return ok; });
}
QLP_EXPORT int cuFuncSetSharedMemConfig(void* function, int) {
  return with_function(__func__, function, [](Function&) { return ok; });
}
QLP_EXPORT int cuFuncLoad(void* function) {
  return with_function(__func__, function, [](Function&) { return ok; });
}
QLP_EXPORT int cuFuncIsLoaded(int* state, void* function) {
  return with_function(__func__, function, [&](Function&) {
    *state = 1;
    return ok;
  });
}

QLP_EXPORT int cuLaunchKernel(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                              unsigned block_y, unsigned block_z, unsigned shared, void* stream, void**, void**) {
  return launch_kernel(__func__, function, {grid_x, grid_y, grid_z, block_x, block_y, block_z}, shared, stream);
}
QLP_EXPORT int cuLaunchCooperativeKernel(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                         unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                                         void* stream, void**) {
  return launch_kernel(__func__, function, {grid_x, grid_y, grid_z, block_x, block_y, block_z}, shared, stream);
}
QLP_EXPORT int cuLaunchKernelEx(const LaunchConfig* config, void* function, void**, void**) {
  return launch_kernel(__func__, function, config->size, config->shared, config->stream);
}

QLP_EXPORT int cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, void*, int threads, std::size_t shared,
                                                                    unsigned) {
  return driver(__func__, [&] {
    *blocks = blocks_per_multiprocessor(threads, shared);
    return ok;
  });
}
QLP_EXPORT int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void* function, int threads,
                                                           std::size_t shared) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, threads, shared, 0);
}

QLP_EXPORT int cuOccupancyMaxPotentialBlockSizeWithFlags(int* grid, int* block, void*, std::size_t (*shared)(int),
                                                         std::size_t fixed, int limit, unsigned) {
  return driver(__func__, [&] {
    int best = 0;
    for (int threads = std::min(1024, limit > 0 ? limit : 1024); threads > 0; threads -= 32) {
      const int blocks = blocks_per_multiprocessor(threads, shared == nullptr ? fixed : shared(threads));
      if (blocks * threads > best) {
        best = blocks * threads;
        *block = threads;
        *grid = blocks * settings().multiprocessors;
      }
    }
    return best > 0 ? ok : invalid_value;
  });
}
QLP_EXPORT int cuOccupancyMaxPotentialBlockSize(int* grid, int* block, void* function, std::size_t (*shared)(int),
                                                std::size_t fixed, int limit) {
  return cuOccupancyMaxPotentialBlockSizeWithFlags(grid, block, function, shared, fixed, limit, 0);
}

QLP_EXPORT int cuOccupancyMaxActiveClusters(int* clusters, void*, const void*) {
  return driver(__func__, [&] {
    *clusters = settings().multiprocessors / 16;
    return ok;
  });
}
QLP_EXPORT int cuOccupancyMaxPotentialClusterSize(int* size, void*, const void*) {
  return driver(__func__, [&] {
    *size = 8;
    return ok;
  });
}

// Linking PTX: the result is a module's image that nobody reads.
QLP_EXPORT int cuLinkCreate_v2(unsigned, int*, void**, void** state) {
  return driver(__func__, [&] {
    *state = new_module();
    return ok;
  });
}
QLP_EXPORT int cuLinkAddData_v2(void*, int, void*, std::size_t, const char*, unsigned, int*, void**) {
  return driver(__func__, [] { return ok; });
}
QLP_EXPORT int cuLinkAddFile_v2(void*, int, const char*, unsigned, int*, void**) {
  return driver(__func__, [] { return ok; });
}
QLP_EXPORT int cuLinkComplete(void*, void** image, std::size_t* bytes) {
  static unsigned char g_image[64];
  return driver(__func__, [&] {
    *image = g_image;
    *bytes = sizeof g_image;
    return ok;
  });
}
QLP_EXPORT int cuLinkDestroy(void* state) {
  return driver(__func__, [&] { return unload_module(state); });
}

// A tensor map is 128 bytes that only the device reads.
namespace {

int encode(const char* name, void* map) {
  return driver(name, [&] {
    std::memset(map, 0, 128);
    return ok;
  });
}

}  // namespace

QLP_EXPORT int cuTensorMapEncodeTiled(void* map) { return encode(__func__, map); }
QLP_EXPORT int cuTensorMapEncodeIm2col(void* map) { return encode(__func__, map); }
QLP_EXPORT int cuTensorMapEncodeIm2colWide(void* map) { return encode(__func__, map); }
QLP_EXPORT int cuTensorMapReplaceAddress(void*, void*) {
  return driver(__func__, [] { return ok; });
}
