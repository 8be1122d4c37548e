// The CUDA driver: initialisation, devices, contexts, errors, names.
#include <cstdint>
#include <cstring>
#include <strings.h>
#include <vector>

#include "nullgpu/books.h"
#include "nullgpu/device_attributes.h"
#include "nullgpu/driver_names.h"
#include "nullgpu/entry.h"
#include "nullgpu/error_names.h"
#include "nullgpu/settings.h"
#include "nullgpu/streams.h"

using namespace nullgpu;

QLP_EXPORT int cuInit(unsigned) {
  return driver(__func__, [] { return device_count() > 0 ? ok : no_device; });
}

QLP_EXPORT int cuDriverGetVersion(int* version) {
  return query(__func__, [&] {
    *version = settings().driver_version;
    return ok;
  });
}

QLP_EXPORT int cuDeviceGetCount(int* count) {
  return driver(__func__, [&] {
    *count = device_count();
    return ok;
  });
}

QLP_EXPORT int cuDeviceGet(int* device, int ordinal) {
  return driver(__func__, [&] {
    *device = ordinal;
    return find_device(ordinal) == nullptr ? invalid_device : ok;
  });
}

QLP_EXPORT int cuDeviceGetName(char* name, int length, int device) {
  return driver(__func__, [&] {
    if (find_device(device) == nullptr || length <= 0) {
      return invalid_device;
    }
    std::strncpy(name, settings().name.c_str(), static_cast<std::size_t>(length) - 1);
    name[length - 1] = '\0';
    return ok;
  });
}

QLP_EXPORT int cuDeviceGetUuid_v2(void* uuid, int device) {
  return driver(__func__, [&] {
    const Device* d = find_device(device);
    if (d == nullptr) {
      return invalid_device;
    }
    std::memcpy(uuid, d->uuid.data(), d->uuid.size());
    return ok;
  });
}

QLP_EXPORT int cuDeviceGetUuid(void* uuid, int device) { return cuDeviceGetUuid_v2(uuid, device); }

QLP_EXPORT int cuDeviceTotalMem_v2(std::size_t* bytes, int device) {
  return driver(__func__, [&] {
    *bytes = settings().bytes;
    return find_device(device) == nullptr ? invalid_device : ok;
  });
}

QLP_EXPORT int cuDeviceGetAttribute(int* value, int attribute, int device) {
  return driver(__func__, [&] { return device_attribute(value, attribute, device); });
}

QLP_EXPORT int cuDeviceComputeCapability(int* major, int* minor, int device) {
  return driver(__func__, [&] {
    *major = settings().compute_capability / 10;
    *minor = settings().compute_capability % 10;
    return find_device(device) == nullptr ? invalid_device : ok;
  });
}

QLP_EXPORT int cuDeviceGetPCIBusId(char* text, int length, int device) {
  return driver(__func__, [&] {
    const Device* d = find_device(device);
    if (d == nullptr || length < static_cast<int>(sizeof(pci_bus_id(*d))) - 3) {
      return d == nullptr ? invalid_device : invalid_value;
    }
    std::strcpy(text, pci_bus_id(*d).data());
    return ok;
  });
}

QLP_EXPORT int cuDeviceGetByPCIBusId(int* device, const char* text) {
  return driver(__func__, [&] {
    for (int i = 0; i < device_count(); ++i) {
      if (strcasecmp(text, pci_bus_id(*find_device(i)).data()) == 0) {
        *device = i;
        return ok;
      }
    }
    return invalid_device;
  });
}

QLP_EXPORT int cuDeviceCanAccessPeer(int* can, int device, int peer) {
  return driver(__func__, [&] {
    *can = static_cast<int>(device != peer);
    return find_device(device) == nullptr || find_device(peer) == nullptr ? invalid_device : ok;
  });
}

QLP_EXPORT int cuDeviceGetP2PAttribute(int* value, int attribute, int from, int to) {
  return driver(__func__, [&] {
    *value = attribute == 1 ? 0 : 1;
    return find_device(from) == nullptr || find_device(to) == nullptr || from == to ? invalid_device : ok;
  });
}

QLP_EXPORT int cuCtxEnablePeerAccess(void*, unsigned) {
  return driver(__func__, [] { return ok; });
}

QLP_EXPORT int cuCtxDisablePeerAccess(void*) {
  return driver(__func__, [] { return ok; });
}

QLP_EXPORT int cuDevicePrimaryCtxRetain(void** context, int device) {
  return driver(__func__, [&] {
    *context = primary_context(device);
    return use_device(device);
  });
}

QLP_EXPORT int cuDevicePrimaryCtxRelease_v2(int device) {
  return driver(__func__, [&] { return find_device(device) == nullptr ? invalid_device : ok; });
}

QLP_EXPORT int cuDevicePrimaryCtxSetFlags_v2(int device, unsigned) {
  return driver(__func__, [&] { return find_device(device) == nullptr ? invalid_device : ok; });
}

QLP_EXPORT int cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* active) {
  return driver(__func__, [&] {
    if (flags != nullptr) {
      *flags = 0;
    }
    if (active != nullptr) {
      *active = static_cast<int>(device_in_use(device));
    }
    return find_device(device) == nullptr ? invalid_device : ok;
  });
}

QLP_EXPORT int cuDevicePrimaryCtxReset_v2(int device) {
  return driver(__func__, [&] {
    Books::get().clear(device);
    leave_device(device);
    return ok;
  });
}

namespace {

int create_context(void** context, int device) {
  if (find_device(device) == nullptr) {
    return invalid_device;
  }
  Context* made = new_context(device);
  set_current_context(made);
  *context = made;
  return ok;
}

std::vector<Context*>& pushed_contexts() {
  static thread_local std::vector<Context*> pushed;
  return pushed;
}

}  // namespace

QLP_EXPORT int cuCtxCreate_v2(void** context, unsigned, int device) {
  return driver(__func__, [&] { return create_context(context, device); });
}

QLP_EXPORT int cuCtxCreate_v3(void** context, void*, int, unsigned, int device) {
  return driver(__func__, [&] { return create_context(context, device); });
}

QLP_EXPORT int cuCtxCreate_v4(void** context, void*, unsigned, int device) {
  return driver(__func__, [&] { return create_context(context, device); });
}

QLP_EXPORT int cuCtxDestroy_v2(void* context) {
  return driver(__func__, [&] {
    auto* c = static_cast<Context*>(context);
    if (c == nullptr || c->primary) {
      return invalid_context;
    }
    if (current_context() == c) {
      set_current_context(nullptr);
    }
    delete c;
    return ok;
  });
}

QLP_EXPORT int cuCtxGetCurrent(void** context) {
  return driver(__func__, [&] {
    *context = current_context();
    return ok;
  });
}

QLP_EXPORT int cuCtxSetCurrent(void* context) {
  return driver(__func__, [&] {
    set_current_context(static_cast<Context*>(context));
    return ok;
  });
}

QLP_EXPORT int cuCtxPushCurrent_v2(void* context) {
  return driver(__func__, [&] {
    pushed_contexts().push_back(current_context());
    set_current_context(static_cast<Context*>(context));
    return ok;
  });
}

QLP_EXPORT int cuCtxPopCurrent_v2(void** context) {
  return driver(__func__, [&] {
    if (pushed_contexts().empty() && current_context() == nullptr) {
      return invalid_context;
    }
    if (context != nullptr) {
      *context = current_context();
    }
    Context* before = nullptr;
    if (!pushed_contexts().empty()) {
      before = pushed_contexts().back();
      pushed_contexts().pop_back();
    }
    set_current_context(before);
    return ok;
  });
}

QLP_EXPORT int cuCtxGetDevice(int* device) {
  return driver(__func__, [&] {
    *device = current_device();
    return current_context() == nullptr ? invalid_context : ok;
  });
}

QLP_EXPORT int cuCtxGetFlags(unsigned* flags) {
  return driver(__func__, [&] {
    *flags = 8;
    return ok;
  });
}

QLP_EXPORT int cuCtxGetId(void* context, unsigned long long* id) {
  return driver(__func__, [&] {
    *id = reinterpret_cast<std::uintptr_t>(context == nullptr ? current_context() : context);
    return ok;
  });
}

QLP_EXPORT int cuCtxGetApiVersion(void*, unsigned* version) {
  return driver(__func__, [&] {
    *version = 3020;  // what every driver since CUDA 3.2 says
    return ok;
  });
}

QLP_EXPORT int cuCtxSynchronize() {
  return driver(__func__, [] { return synchronize_device(); });
}

QLP_EXPORT int cuCtxSynchronize_v2(void*) {
  return driver("cuCtxSynchronize", [] { return synchronize_device(); });
}

QLP_EXPORT int cuCtxGetLimit(std::size_t* value, int limit) {
  return driver(__func__, [&] { return device_limit(value, limit); });
}

QLP_EXPORT int cuCtxSetLimit(int limit, std::size_t value) {
  return driver(__func__, [&] { return set_device_limit(limit, value); });
}

QLP_EXPORT int cuCtxGetCacheConfig(int* config) {
  return driver(__func__, [&] {
    *config = 0;
    return ok;
  });
}

QLP_EXPORT int cuCtxSetCacheConfig(int) {
  return driver(__func__, [] { return ok; });
}

QLP_EXPORT int cuCtxSetSharedMemConfig(int) {
  return driver(__func__, [] { return ok; });
}

QLP_EXPORT int cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  return driver(__func__, [&] {
    if (least != nullptr) {
      *least = 0;
    }
    if (greatest != nullptr) {
      *greatest = -5;
    }
    return ok;
  });
}

QLP_EXPORT int cuCtxResetPersistingL2Cache() {
  return driver(__func__, [] { return ok; });
}

QLP_EXPORT int cuProfilerStart() {
  return driver(__func__, [] { return ok; });
}

QLP_EXPORT int cuProfilerStop() {
  return driver(__func__, [] { return ok; });
}

QLP_EXPORT int cuFlushGPUDirectRDMAWrites(int, int) {
  return driver(__func__, [] { return ok; });
}

QLP_EXPORT int cuGetErrorString(int error, const char** text) {
  *text = has_error_name(error) ? error_name(error).text : nullptr;
  return has_error_name(error) ? ok : invalid_value;
}

QLP_EXPORT int cuGetErrorName(int error, const char** text) {
  *text = has_error_name(error) ? error_name(error).driver : nullptr;
  return has_error_name(error) ? ok : invalid_value;
}

QLP_EXPORT int cuGetProcAddress(const char* name, void** function, int version, std::uint64_t) {
  return driver(__func__, [&] {
    *function = driver_entry_point(name, version);
    return *function == nullptr ? not_found : ok;
  });
}

// The status tells a name that is not known (1) from one that is newer than the version (2); the call itself succeeds.
QLP_EXPORT int cuGetProcAddress_v2(const char* name, void** function, int version, std::uint64_t, int* status) {
  return driver(__func__, [&] {
    *function = driver_entry_point(name, version);
    if (status != nullptr) {
      *status = *function != nullptr ? 0 : driver_entry_point(name, 99990) == nullptr ? 1 : 2;
    }
    return *function == nullptr ? not_found : ok;
  });
}
