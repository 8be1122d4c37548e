// The CUDA runtime: devices, versions, errors.
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "nullgpu/books.h"
#include "nullgpu/device_attributes.h"
#include "nullgpu/entry.h"
#include "nullgpu/error_names.h"
#include "nullgpu/graphs.h"
#include "nullgpu/settings.h"
#include "nullgpu/streams.h"

using namespace nullgpu;

QLP_EXPORT int cudaGetDeviceCount(int* count) {
  return runtime_query(__func__, [&] {
    *count = device_count();
    return *count > 0 ? ok : no_device;
  });
}

QLP_EXPORT int cudaGetDevice(int* device) {
  return runtime_query(__func__, [&] {
    *device = current_device();
    return device_count() > 0 ? ok : no_device;
  });
}

QLP_EXPORT int cudaSetDevice(int device) {
  return runtime_query(__func__, [&] { return set_current_device(device); });
}

QLP_EXPORT int cudaInitDevice(int device, unsigned, unsigned) {
  return runtime_query(__func__, [&] { return use_device(device); });
}

QLP_EXPORT int cudaSetValidDevices(int*, int) {
  return runtime_query(__func__, [] { return ok; });
}

QLP_EXPORT int cudaChooseDevice(int* device, const void*) {
  return runtime_query(__func__, [&] {
    *device = 0;
    return ok;
  });
}

QLP_EXPORT int cudaGetDeviceFlags(unsigned* flags) {
  return runtime_query(__func__, [&] {
    *flags = 8;  // cudaDeviceMapHost
    return ok;
  });
}

QLP_EXPORT int cudaSetDeviceFlags(unsigned) {
  return runtime_query(__func__, [] { return ok; });
}

QLP_EXPORT int cudaDeviceReset() {
  return runtime_query(__func__, [] {
    Books::get().clear(current_device());
    leave_device(current_device());
    return ok;
  });
}

QLP_EXPORT int cudaThreadExit() { return cudaDeviceReset(); }

QLP_EXPORT int cudaDeviceSynchronize() {
  return runtime(__func__, [] { return synchronize_device(); });
}

QLP_EXPORT int cudaThreadSynchronize() { return cudaDeviceSynchronize(); }

QLP_EXPORT int cudaDeviceGetAttribute(int* value, int attribute, int device) {
  return runtime_query(__func__, [&] { return device_attribute(value, attribute, device); });
}

QLP_EXPORT int cudaDeviceGetPCIBusId(char* text, int length, int device) {
  return runtime_query(__func__, [&] {
    const Device* d = find_device(device);
    if (d == nullptr) {
      return invalid_device;
    }
    const auto id = pci_bus_id(*d);
    if (length <= static_cast<int>(std::strlen(id.data()))) {
      return invalid_value;
    }
    std::strcpy(text, id.data());
    return ok;
  });
}

QLP_EXPORT int cudaDeviceGetByPCIBusId(int* device, const char* text) {
  return runtime_query(__func__, [&] {
    for (int i = 0; i < device_count(); ++i) {
      if (strcasecmp(text, pci_bus_id(*find_device(i)).data()) == 0) {
        *device = i;
        return ok;
      }
    }
    return invalid_device;
  });
}

QLP_EXPORT int cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return runtime(__func__, [&] {
    if (least != nullptr) {
      *least = 0;
    }
    if (greatest != nullptr) {
      *greatest = -5;
    }
    return ok;
  });
}

QLP_EXPORT int cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  return runtime_query(__func__, [&] {
    if (find_device(device) == nullptr || find_device(peer) == nullptr) {
      return invalid_device;
    }
    *can = static_cast<int>(device != peer);
    return ok;
  });
}

QLP_EXPORT int cudaDeviceEnablePeerAccess(int peer, unsigned) {
  return runtime(__func__, [&] { return find_device(peer) == nullptr ? invalid_device : ok; });
}

QLP_EXPORT int cudaDeviceDisablePeerAccess(int peer) {
  return runtime(__func__, [&] { return find_device(peer) == nullptr ? invalid_device : ok; });
}

// cudaDeviceP2PAttr: 1 performance rank, 2 access, 3 native atomics, 4 arrays.
QLP_EXPORT int cudaDeviceGetP2PAttribute(int* value, int attribute, int from, int to) {
  return runtime_query(__func__, [&] {
    if (find_device(from) == nullptr || find_device(to) == nullptr || from == to) {
      return invalid_device;
    }
    *value = attribute == 1 ? 0 : 1;
    return ok;
  });
}

QLP_EXPORT int cudaDeviceGetCacheConfig(int* config) {
  return runtime(__func__, [&] {
    *config = 0;
    return ok;
  });
}

QLP_EXPORT int cudaDeviceSetCacheConfig(int) {
  return runtime(__func__, [] { return ok; });
}

QLP_EXPORT int cudaDeviceSetSharedMemConfig(int) {
  return runtime(__func__, [] { return ok; });
}

QLP_EXPORT int cudaDeviceGetSharedMemConfig(int* config) {
  return runtime(__func__, [&] {
    *config = 1;
    return ok;
  });
}

QLP_EXPORT int cudaDeviceSetLimit(int limit, std::size_t value) {
  return runtime(__func__, [&] { return set_device_limit(limit, value); });
}

QLP_EXPORT int cudaDeviceGetLimit(std::size_t* value, int limit) {
  return runtime(__func__, [&] { return device_limit(value, limit); });
}

QLP_EXPORT int cudaDeviceFlushGPUDirectRDMAWrites(int, int) {
  return runtime(__func__, [] { return ok; });
}

QLP_EXPORT int cudaDriverGetVersion(int* version) {
  return query(__func__, [&] {
    *version = settings().driver_version;
    return ok;
  });
}

QLP_EXPORT int cudaGetLastError() {
  const int error = last_error();
  last_error() = ok;
  return error;
}

QLP_EXPORT int cudaPeekAtLastError() { return last_error(); }
QLP_EXPORT const char* cudaGetErrorName(int error) { return error_name(error).runtime; }
QLP_EXPORT const char* cudaGetErrorString(int error) { return error_name(error).text; }

QLP_EXPORT int cudaProfilerStart() {
  return runtime(__func__, [] { return ok; });
}

QLP_EXPORT int cudaProfilerStop() {
  return runtime(__func__, [] { return ok; });
}

QLP_EXPORT int cudaCtxResetPersistingL2Cache() {
  return runtime(__func__, [] { return ok; });
}
