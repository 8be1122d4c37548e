#include "nullgpu/versions.h"

#include <cstddef>
#include <cstring>
#include <dlfcn.h>

#include "nullgpu/device_attributes.h"
#include "nullgpu/driver_names.h"
#include "nullgpu/entry.h"
#include "nullgpu/graph_nodes.h"
#include "nullgpu/interpose.h"
#include "nullgpu/modules.h"
#include "nullgpu/streams.h"

using namespace nullgpu;

namespace {

int properties(void* out, int device, PropertiesLayout layout) {
  return runtime_query("cudaGetDeviceProperties", [&] { return device_properties(out, device, layout); });
}

// The version with its minor is known to the real library alone; it answers without a driver.
int runtime_version(int* version, const char* library, int otherwise) {
  return query("cudaRuntimeGetVersion", [&] {
    if (ask_real<int>(library, "cudaRuntimeGetVersion", version) != ok || *version / 1000 != otherwise / 1000) {
      *version = otherwise;
    }
    return ok;
  });
}

// cudaFuncAttributes: 56 bytes in CUDA 11; clusters and a reserve make it 144 in CUDA 12 and 13.
int function_attributes(void* out, const void* stub, std::size_t bytes) {
  return runtime("cudaFuncGetAttributes", [&] {
    const Function& f = *kernel_of(stub);
    struct {
      std::size_t sizes[3];  // static shared, constant, local
      int numbers[7];        // threads, registers, PTX, binary, cache mode, dynamic shared, carveout
    } answer{};
    static constexpr int kNumbers[] = {0, 4, 5, 6, 7, 8, 9};
    for (std::size_t i = 0; i < 7; ++i) {
      function_attribute(f, kNumbers[i], &answer.numbers[i]);
    }
    std::memset(out, 0, bytes);
    std::memcpy(out, &answer, sizeof answer.sizes + sizeof answer.numbers);
    return ok;
  });
}

int capture_info(void* stream, int* status, unsigned long long* id, void** graph, GraphNode* const** after,
                 const void** edges, std::size_t* count) {
  return runtime("cudaStreamGetCaptureInfo", [&] {
    return capture_state(stream, {status, id, graph, after, edges, count});
  });
}

}  // namespace

#define QLP_VERSION(function, name, version) __asm__(".symver " #function ", " #name version ", local")

QLP_EXPORT int properties_11(void* out, int device) { return properties(out, device, PropertiesLayout::cuda11); }
QLP_EXPORT int properties_12(void* out, int device) { return properties(out, device, PropertiesLayout::cuda11); }
QLP_EXPORT int properties_13(void* out, int device) { return properties(out, device, PropertiesLayout::cuda13); }
QLP_VERSION(properties_11, cudaGetDeviceProperties, "@libcudart.so.11.0");
QLP_VERSION(properties_12, cudaGetDeviceProperties, "@libcudart.so.12");  // the old layout: headers of 12 name _v2
QLP_VERSION(properties_13, cudaGetDeviceProperties, "@@libcudart.so.13");

QLP_EXPORT int cudaGetDeviceProperties_v2(void* out, int device) {
  return properties(out, device, PropertiesLayout::cuda12);
}

QLP_EXPORT int runtime_version_11(int* version) { return runtime_version(version, "libcudart.so.11.0", 11080); }
QLP_EXPORT int runtime_version_12(int* version) { return runtime_version(version, "libcudart.so.12", 12080); }
QLP_EXPORT int runtime_version_13(int* version) { return runtime_version(version, "libcudart.so.13", 13000); }
QLP_VERSION(runtime_version_11, cudaRuntimeGetVersion, "@libcudart.so.11.0");
QLP_VERSION(runtime_version_12, cudaRuntimeGetVersion, "@libcudart.so.12");
QLP_VERSION(runtime_version_13, cudaRuntimeGetVersion, "@@libcudart.so.13");

QLP_EXPORT int function_attributes_11(void* out, const void* stub) { return function_attributes(out, stub, 56); }
QLP_EXPORT int function_attributes_12(void* out, const void* stub) { return function_attributes(out, stub, 144); }
QLP_EXPORT int function_attributes_13(void* out, const void* stub) { return function_attributes(out, stub, 144); }
QLP_VERSION(function_attributes_11, cudaFuncGetAttributes, "@libcudart.so.11.0");
QLP_VERSION(function_attributes_12, cudaFuncGetAttributes, "@libcudart.so.12");
QLP_VERSION(function_attributes_13, cudaFuncGetAttributes, "@@libcudart.so.13");

// CUDA 11 and 12 give status and id; _v2 adds the graph and what comes next, _v3 and CUDA 13 edge data before the
// count.
QLP_EXPORT int capture_info_11(void* stream, int* status, unsigned long long* id) {
  return capture_info(stream, status, id, nullptr, nullptr, nullptr, nullptr);
}
QLP_EXPORT int capture_info_12(void* stream, int* status, unsigned long long* id) {
  return capture_info(stream, status, id, nullptr, nullptr, nullptr, nullptr);
}
QLP_EXPORT int capture_info_13(void* stream, int* status, unsigned long long* id, void** graph,
                               GraphNode* const** after, const void** edges, std::size_t* count) {
  return capture_info(stream, status, id, graph, after, edges, count);
}
QLP_VERSION(capture_info_11, cudaStreamGetCaptureInfo, "@libcudart.so.11.0");
QLP_VERSION(capture_info_12, cudaStreamGetCaptureInfo, "@libcudart.so.12");
QLP_VERSION(capture_info_13, cudaStreamGetCaptureInfo, "@@libcudart.so.13");

QLP_EXPORT int cudaStreamGetCaptureInfo_v2(void* stream, int* status, unsigned long long* id, void** graph,
                                           GraphNode* const** after, std::size_t* count) {
  return capture_info(stream, status, id, graph, after, nullptr, count);
}

QLP_EXPORT int cudaStreamGetCaptureInfo_v3(void* stream, int* status, unsigned long long* id, void** graph,
                                           GraphNode* const** after, const void** edges, std::size_t* count) {
  return capture_info(stream, status, id, graph, after, edges, count);
}

QLP_EXPORT int update_dependencies_11(void* stream, void** after, std::size_t count, unsigned flags) {
  return runtime("cudaStreamUpdateCaptureDependencies",
                 [&] { return update_frontier(stream, nodes_of(after, count), flags == 1); });
}
QLP_EXPORT int update_dependencies_12(void* stream, void** after, std::size_t count, unsigned flags) {
  return update_dependencies_11(stream, after, count, flags);
}
QLP_EXPORT int update_dependencies_13(void* stream, void** after, const void*, std::size_t count, unsigned flags) {
  return update_dependencies_11(stream, after, count, flags);
}
QLP_VERSION(update_dependencies_11, cudaStreamUpdateCaptureDependencies, "@libcudart.so.11.0");
QLP_VERSION(update_dependencies_12, cudaStreamUpdateCaptureDependencies, "@libcudart.so.12");
QLP_VERSION(update_dependencies_13, cudaStreamUpdateCaptureDependencies, "@@libcudart.so.13");

// CUDA 12 has no edge data, which its _v2 and CUDA 13 have; CUDA 11 has no such function.
QLP_EXPORT int add_graph_node_12(void** node, void* graph, void* const* after, std::size_t count, void* parameters) {
  return add_graph_node(node, graph, after, count, parameters);
}
QLP_EXPORT int add_graph_node_13(void** node, void* graph, void* const* after, const void*, std::size_t count,
                                 void* parameters) {
  return add_graph_node(node, graph, after, count, parameters);
}
QLP_VERSION(add_graph_node_12, cudaGraphAddNode, "@libcudart.so.12");
QLP_VERSION(add_graph_node_13, cudaGraphAddNode, "@@libcudart.so.13");

QLP_EXPORT int cudaGraphAddNode_v2(void** node, void* graph, void* const* after, const void*, std::size_t count,
                                   void* parameters) {
  return add_graph_node(node, graph, after, count, parameters);
}

// CUDA 11 has no status to write.
QLP_EXPORT int driver_entry_point_11(const char* name, void** function, unsigned long long) {
  return runtime_query("cudaGetDriverEntryPoint", [&] {
    *function = driver_entry_point(name, 11080);
    return *function == nullptr ? invalid_value : ok;
  });
}
QLP_EXPORT int driver_entry_point_12(const char* name, void** function, unsigned long long, int* status) {
  return runtime_query("cudaGetDriverEntryPoint", [&] {
    int version = 12000;
    runtime_version_12(&version);
    *function = driver_entry_point(name, version);
    if (status != nullptr) {
      *status = static_cast<int>(*function == nullptr);
    }
    return ok;
  });
}
QLP_EXPORT int driver_entry_point_13(const char* name, void** function, unsigned long long, int* status) {
  return runtime_query("cudaGetDriverEntryPoint", [&] {
    int version = 13000;
    runtime_version_13(&version);
    *function = driver_entry_point(name, version);
    if (status != nullptr) {
      *status = static_cast<int>(*function == nullptr);
    }
    return ok;
  });
}
QLP_VERSION(driver_entry_point_11, cudaGetDriverEntryPoint, "@libcudart.so.11.0");
QLP_VERSION(driver_entry_point_12, cudaGetDriverEntryPoint, "@libcudart.so.12");
QLP_VERSION(driver_entry_point_13, cudaGetDriverEntryPoint, "@@libcudart.so.13");

QLP_EXPORT int cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned version, unsigned long long,
                                                int* status) {
  return runtime_query(__func__, [&] {
    *function = driver_entry_point(name, static_cast<int>(version));
    if (status != nullptr) {
      *status = static_cast<int>(*function == nullptr);
    }
    return ok;
  });
}

namespace nullgpu {

int loaded_runtime(void* from) {
  Dl_info info{};
  if (from != nullptr) {
    void* const p = real_dlsym(from, "cudaRuntimeGetVersion");
    const char* at = nullptr;
    if (p != nullptr && dladdr(p, &info) != 0 && (at = std::strstr(info.dli_fname, "libcudart.so.")) != nullptr) {
      const int major = (at[13] - '0') * 10 + (at[14] - '0');
      return major < 11 || major > 13 ? 13 : major;
    }
  }
  if (is_loaded("libcudart.so.13")) {
    return 13;
  }
  if (is_loaded("libcudart.so.12")) {
    return 12;
  }
  return is_loaded("libcudart.so.11.0") ? 11 : 13;
}

bool is_versioned(const char* name) { return versioned_entry_point(name, 13) != nullptr; }

void* versioned_entry_point(const char* name, int runtime) {
  struct Versions {
    const char* name;
    void* functions[3];
  };
  static const Versions kVersions[] = {
      {"cudaGetDeviceProperties",
       {reinterpret_cast<void*>(properties_11), reinterpret_cast<void*>(properties_12),
        reinterpret_cast<void*>(properties_13)}},
      {"cudaRuntimeGetVersion",
       {reinterpret_cast<void*>(runtime_version_11), reinterpret_cast<void*>(runtime_version_12),
        reinterpret_cast<void*>(runtime_version_13)}},
      {"cudaFuncGetAttributes",
       {reinterpret_cast<void*>(function_attributes_11), reinterpret_cast<void*>(function_attributes_12),
        reinterpret_cast<void*>(function_attributes_13)}},
      {"cudaStreamGetCaptureInfo",
       {reinterpret_cast<void*>(capture_info_11), reinterpret_cast<void*>(capture_info_12),
        reinterpret_cast<void*>(capture_info_13)}},
      {"cudaStreamUpdateCaptureDependencies",
       {reinterpret_cast<void*>(update_dependencies_11), reinterpret_cast<void*>(update_dependencies_12),
        reinterpret_cast<void*>(update_dependencies_13)}},
      {"cudaGraphAddNode",
       {reinterpret_cast<void*>(add_graph_node_12), reinterpret_cast<void*>(add_graph_node_12),
        reinterpret_cast<void*>(add_graph_node_13)}},
      {"cudaGetDriverEntryPoint",
       {reinterpret_cast<void*>(driver_entry_point_11), reinterpret_cast<void*>(driver_entry_point_12),
        reinterpret_cast<void*>(driver_entry_point_13)}},
  };
  for (const Versions& v : kVersions) {
    if (std::strcmp(v.name, name) == 0) {
      return v.functions[runtime - 11];
    }
  }
  return nullptr;
}

}  // namespace nullgpu
