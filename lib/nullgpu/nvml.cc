// NVML: the devices of the machine, whatever CUDA_VISIBLE_DEVICES says. Memory is that of this process alone.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <unistd.h>

#include "nullgpu/books.h"
#include "nullgpu/capabilities.h"
#include "nullgpu/entry.h"
#include "nullgpu/settings.h"

using namespace nullgpu;

namespace {

constexpr int kInvalidArgument = 2;
constexpr int kNotFound = 6;
constexpr int kInsufficientSize = 7;

// A device handle is its number plus one.
int index_of(const void* device) { return static_cast<int>(reinterpret_cast<std::intptr_t>(device)) - 1; }
void* handle_of(int index) { return reinterpret_cast<void*>(static_cast<std::intptr_t>(index) + 1); }

template <class Answer>
int of_device(const char* name, const void* device, Answer&& answer) {
  return query(name, [&] {
    const int index = index_of(device);
    return index < 0 || index >= settings().devices ? kInvalidArgument : static_cast<int>(answer(index));
  });
}

int put_text(char* out, unsigned room, const char* text) {
  if (room <= std::strlen(text)) {
    return kInsufficientSize;
  }
  std::strcpy(out, text);
  return ok;
}

// What this process has on it: its visible device's books.
std::size_t used_bytes(int physical) {
  for (int i = 0; i < device_count(); ++i) {
    if (find_device(i)->physical == physical && device_in_use(i)) {
      return Books::get().of(i).used.now + settings().context_bytes;
    }
  }
  return 0;
}

// NVML counts physical memory; what CUDA cannot give is reserved.
std::size_t reserved_bytes() { return settings().nvml_bytes - settings().bytes; }

struct Process {
  unsigned pid;
  unsigned long long used;
  unsigned gpu_instance;
  unsigned compute_instance;
};

int processes(const char* name, const void* device, unsigned* count, Process* out) {
  return of_device(name, device, [&](int index) {
    const std::size_t used = used_bytes(index);
    const unsigned room = *count;
    *count = used > 0 ? 1 : 0;
    if (*count > room) {
      return kInsufficientSize;
    }
    if (*count > 0) {
      out[0] = Process{static_cast<unsigned>(getpid()), used, 0xffffffffU, 0xffffffffU};
    }
    return static_cast<int>(ok);
  });
}

}  // namespace

#define QLP_ACCEPT(name)                       \
  QLP_EXPORT int name() {                      \
    return query(__func__, [] { return ok; }); \
  }
QLP_ACCEPT(nvmlInit)
QLP_ACCEPT(nvmlInit_v2)
QLP_ACCEPT(nvmlInitWithFlags)
QLP_ACCEPT(nvmlShutdown)

QLP_EXPORT const char* nvmlErrorString(int status) {
  static constexpr const char* kTexts[] = {"Success",
                                           "Uninitialized",
                                           "Invalid Argument",
                                           "Not Supported",
                                           "Insufficient Permissions",
                                           "Already Initialized",
                                           "Not Found",
                                           "Insufficient Size"};
  return status < 0 || status > 7 ? "Unknown Error" : kTexts[status];
}

QLP_EXPORT int nvmlSystemGetDriverVersion(char* text, unsigned room) {
  return query(__func__, [&] { return put_text(text, room, "595.45.04"); });
}

QLP_EXPORT int nvmlSystemGetNVMLVersion(char* text, unsigned room) {
  return query(__func__, [&] { return put_text(text, room, "13.595.45.04"); });
}

QLP_EXPORT int nvmlSystemGetCudaDriverVersion_v2(int* version) {
  return query(__func__, [&] {
    *version = settings().driver_version;
    return ok;
  });
}

QLP_EXPORT int nvmlSystemGetCudaDriverVersion(int* version) { return nvmlSystemGetCudaDriverVersion_v2(version); }

QLP_EXPORT int nvmlDeviceGetCount_v2(unsigned* count) {
  return query(__func__, [&] {
    *count = static_cast<unsigned>(settings().devices);
    return ok;
  });
}

QLP_EXPORT int nvmlDeviceGetCount(unsigned* count) { return nvmlDeviceGetCount_v2(count); }

QLP_EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  return query(__func__, [&] {
    *device = handle_of(static_cast<int>(index));
    return static_cast<int>(index) < settings().devices ? ok : static_cast<Status>(kInvalidArgument);
  });
}

QLP_EXPORT int nvmlDeviceGetHandleByIndex(unsigned index, void** device) {
  return nvmlDeviceGetHandleByIndex_v2(index, device);
}

QLP_EXPORT int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
  return query(__func__, [&] {
    for (int i = 0; i < settings().devices; ++i) {
      if (std::strcmp(uuid, uuid_text(physical_device(i)).data()) == 0) {
        *device = handle_of(i);
        return static_cast<int>(ok);
      }
    }
    return kNotFound;
  });
}

QLP_EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char* id, void** device) {
  return query(__func__, [&] {
    for (int i = 0; i < settings().devices; ++i) {
      const auto own = pci_bus_id(physical_device(i));
      const std::size_t given = std::strlen(id);
      // NVML writes the domain with eight digits, CUDA with four.
      if (given >= 12 && strcasecmp(id + given - 12, own.data()) == 0) {
        *device = handle_of(i);
        return static_cast<int>(ok);
      }
    }
    return kNotFound;
  });
}

QLP_EXPORT int nvmlDeviceGetHandleByPciBusId(const char* id, void** device) {
  return nvmlDeviceGetHandleByPciBusId_v2(id, device);
}

QLP_EXPORT int nvmlDeviceGetIndex(void* device, unsigned* index) {
  return of_device(__func__, device, [&](int i) {
    *index = static_cast<unsigned>(i);
    return ok;
  });
}

QLP_EXPORT int nvmlDeviceGetName(void* device, char* text, unsigned room) {
  return of_device(__func__, device, [&](int) { return put_text(text, room, settings().name.c_str()); });
}

QLP_EXPORT int nvmlDeviceGetUUID(void* device, char* text, unsigned room) {
  return of_device(__func__, device, [&](int i) { return put_text(text, room, uuid_text(physical_device(i)).data()); });
}

QLP_EXPORT int nvmlDeviceGetMinorNumber(void* device, unsigned* number) {
  return of_device(__func__, device, [&](int i) {
    *number = static_cast<unsigned>(i);
    return ok;
  });
}

// nvmlPciInfo_t: short bus id (16), domain, bus, device, ids, bus id (32).
QLP_EXPORT int nvmlDeviceGetPciInfo_v3(void* device, void* out) {
  return of_device(__func__, device, [&](int i) {
    struct {
      char legacy[16];
      unsigned domain, bus, device, id, subsystem;
      char text[32];
    } info{};
    const auto id = pci_bus_id(physical_device(i));
    std::memcpy(info.legacy, id.data(), 13);
    std::snprintf(info.text, sizeof info.text, "0000%s", id.data());
    info.bus = static_cast<unsigned>(i) + 1;
    std::memcpy(out, &info, sizeof info);
    return ok;
  });
}

QLP_EXPORT int nvmlDeviceGetPciInfo_v2(void* device, void* out) { return nvmlDeviceGetPciInfo_v3(device, out); }

QLP_EXPORT int nvmlDeviceGetMemoryInfo(void* device, void* out) {
  return of_device(__func__, device, [&](int i) {
    const unsigned long long total = settings().nvml_bytes;
    const unsigned long long used = used_bytes(i) + reserved_bytes();
    const unsigned long long info[3] = {total, total - used, used};
    std::memcpy(out, info, sizeof info);
    return ok;
  });
}

// nvmlMemory_v2_t: version, total, reserved, free, used.
QLP_EXPORT int nvmlDeviceGetMemoryInfo_v2(void* device, void* out) {
  return of_device(__func__, device, [&](int i) {
    const unsigned long long total = settings().nvml_bytes;
    const unsigned long long used = used_bytes(i);
    const unsigned long long reserved = reserved_bytes();
    const unsigned long long info[4] = {total, reserved, total - reserved - used, used};
    std::memcpy(static_cast<char*>(out) + 8, info, sizeof info);
    return ok;
  });
}

QLP_EXPORT int nvmlDeviceGetUtilizationRates(void* device, unsigned* gpu_and_memory) {
  return of_device(__func__, device, [&](int i) {
    gpu_and_memory[0] = used_bytes(i) > 0 ? 100 : 0;
    gpu_and_memory[1] = used_bytes(i) > 0 ? 50 : 0;
    return ok;
  });
}

QLP_EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count, Process* out) {
  return processes(__func__, device, count, out);
}
QLP_EXPORT int nvmlDeviceGetComputeRunningProcesses_v2(void* device, unsigned* count, Process* out) {
  return processes(__func__, device, count, out);
}
// The first form has process id and bytes alone.
QLP_EXPORT int nvmlDeviceGetComputeRunningProcesses(void* device, unsigned* count, unsigned long long* out) {
  Process process{};
  const unsigned room = *count;
  const int status = processes(__func__, device, count, room == 0 ? nullptr : &process);
  if (status == ok && *count > 0) {
    out[0] = process.pid;
    out[1] = process.used;
  }
  return status;
}

QLP_EXPORT int nvmlDeviceGetGraphicsRunningProcesses_v3(void* device, unsigned* count, Process*) {
  return of_device(__func__, device, [&](int) {
    *count = 0;
    return ok;
  });
}

QLP_EXPORT int nvmlDeviceGetCudaComputeCapability(void* device, int* major, int* minor) {
  return of_device(__func__, device, [&](int) {
    *major = settings().compute_capability / 10;
    *minor = settings().compute_capability % 10;
    return ok;
  });
}

QLP_EXPORT int nvmlDeviceGetNumGpuCores(void* device, unsigned* cores) {
  return of_device(__func__, device, [&](int) {
    const int sm = settings().compute_capability;
    *cores = static_cast<unsigned>(settings().multiprocessors * (sm == 80 || sm < 80 ? 64 : 128));
    return ok;
  });
}

#define QLP_NUMBER(name, value)                         \
  QLP_EXPORT int name(void* device, unsigned* number) { \
    return of_device(__func__, device, [&](int) {       \
      *number = value;                                  \
      return ok;                                        \
    });                                                 \
  }
QLP_NUMBER(nvmlDeviceGetPowerUsage, 100000)
QLP_NUMBER(nvmlDeviceGetEnforcedPowerLimit, 400000)
QLP_NUMBER(nvmlDeviceGetPowerManagementLimit, 400000)
QLP_NUMBER(nvmlDeviceGetPersistenceMode, 1)
QLP_NUMBER(nvmlDeviceGetComputeMode, 0)
QLP_NUMBER(nvmlDeviceGetBoardId, 0x100)
QLP_NUMBER(nvmlDeviceGetMultiGpuBoard, 0)
QLP_NUMBER(nvmlDeviceGetMemoryBusWidth, static_cast<unsigned>(settings().bus_bits))
QLP_NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, 4)
QLP_NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, 4)
QLP_NUMBER(nvmlDeviceGetCurrPcieLinkWidth, 16)
QLP_NUMBER(nvmlDeviceGetMaxPcieLinkWidth, 16)

QLP_EXPORT int nvmlDeviceGetTemperature(void* device, int, unsigned* degrees) {
  return of_device(__func__, device, [&](int) {
    *degrees = 40;
    return ok;
  });
}

// Clocks: graphics, SM, memory, video, in MHz.
namespace {

unsigned clock_mhz(int type) {
  return static_cast<unsigned>(type == 2 ? settings().memory_khz : settings().clock_khz) / 1000;
}

}  // namespace

QLP_EXPORT int nvmlDeviceGetClockInfo(void* device, int type, unsigned* mhz) {
  return of_device(__func__, device, [&](int) {
    *mhz = clock_mhz(type);
    return ok;
  });
}

QLP_EXPORT int nvmlDeviceGetMaxClockInfo(void* device, int type, unsigned* mhz) {
  return nvmlDeviceGetClockInfo(device, type, mhz);
}

QLP_EXPORT int nvmlDeviceGetApplicationsClock(void* device, int type, unsigned* mhz) {
  return nvmlDeviceGetClockInfo(device, type, mhz);
}

QLP_EXPORT int nvmlDeviceGetMigMode(void* device, unsigned* now, unsigned* pending) {
  return of_device(__func__, device, [&](int) {
    *now = *pending = 0;
    return ok;
  });
}

QLP_EXPORT int nvmlDeviceGetEccMode(void* device, int* now, int* pending) {
  return of_device(__func__, device, [&](int) {
    *now = *pending = 0;
    return ok;
  });
}

QLP_EXPORT int nvmlDeviceGetTotalEccErrors(void* device, int, int, unsigned long long* count) {
  return of_device(__func__, device, [&](int) {
    *count = 0;
    return ok;
  });
}

// Topology: all GPUs of a machine hang on one switch (NVML_TOPOLOGY_SINGLE) and see each other (NVML_P2P_STATUS_OK).
QLP_EXPORT int nvmlDeviceGetTopologyCommonAncestor(void* device, void*, int* level) {
  return of_device(__func__, device, [&](int) {
    *level = 10;
    return ok;
  });
}

QLP_EXPORT int nvmlDeviceGetP2PStatus(void* device, void*, int, int* status) {
  return of_device(__func__, device, [&](int) {
    *status = 0;
    return ok;
  });
}

QLP_EXPORT int nvmlDeviceGetNvLinkState(void* device, unsigned, int* active) {
  return of_device(__func__, device, [&](int) {
    *active = 0;
    return ok;
  });
}

QLP_EXPORT int nvmlDeviceGetMemoryAffinity(void* device, unsigned words, unsigned long* set, int) {
  return of_device(__func__, device, [&](int) {
    for (unsigned i = 0; i < words; ++i) {
      set[i] = i == 0 ? 1 : 0;
    }
    return ok;
  });
}

QLP_EXPORT int nvmlDeviceGetCpuAffinity(void* device, unsigned words, unsigned long* set) {
  return of_device(__func__, device, [&](int) {
    std::memset(set, 0xff, words * sizeof *set);
    return ok;
  });
}
