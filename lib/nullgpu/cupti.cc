// CUPTI: profilers find that there is nothing to record. Subscribing succeeds, no activity ever comes.
#include <cstdint>
#include <ctime>

#include "nullgpu/entry.h"
#include "nullgpu/interpose.h"

using namespace nullgpu;

#define QLP_ACCEPT(name)                         \
  QLP_EXPORT int name() {                        \
    return library(__func__, [] { return ok; }); \
  }

QLP_ACCEPT(cuptiActivityEnable)
QLP_ACCEPT(cuptiActivityDisable)
QLP_ACCEPT(cuptiActivityEnableDriverApi)
QLP_ACCEPT(cuptiActivityEnableRuntimeApi)
QLP_ACCEPT(cuptiActivityEnableCudaEventDeviceTimestamps)
QLP_ACCEPT(cuptiActivityRegisterCallbacks)
QLP_ACCEPT(cuptiActivityRegisterTimestampCallback)
QLP_ACCEPT(cuptiActivityFlushAll)
QLP_ACCEPT(cuptiActivitySetAttribute)
QLP_ACCEPT(cuptiActivityConfigureUnifiedMemoryCounter)
QLP_ACCEPT(cuptiEnableCallback)
QLP_ACCEPT(cuptiEnableDomain)
QLP_ACCEPT(cuptiFinalize)
QLP_ACCEPT(cuptiUnsubscribe)

QLP_EXPORT int cuptiSubscribe(void** subscriber, void*, void*) {
  return library(__func__, [&] {
    static int g_subscriber = 0;
    *subscriber = &g_subscriber;
    return ok;
  });
}

QLP_EXPORT int cuptiActivityGetNextRecord(unsigned char*, std::size_t, void** record) {
  return library(__func__, [&] {
    *record = nullptr;
    return 12;  // CUPTI_ERROR_MAX_LIMIT_REACHED: no more
  });
}

QLP_EXPORT int cuptiActivityGetNumDroppedRecords(void*, std::uint32_t, std::size_t* dropped) {
  return library(__func__, [&] {
    *dropped = 0;
    return ok;
  });
}

QLP_EXPORT int cuptiActivityPushExternalCorrelationId(int, std::uint64_t) {
  return library(__func__, [] { return ok; });
}

QLP_EXPORT int cuptiActivityPopExternalCorrelationId(int, std::uint64_t* last) {
  return library(__func__, [&] {
    if (last != nullptr) {
      *last = 0;
    }
    return ok;
  });
}

QLP_EXPORT int cuptiGetVersion(std::uint32_t* version) {
  return library(__func__, [&] {
    for (const char* name : {"libcupti.so.13", "libcupti.so.12"}) {
      if (ask_real<int>(name, "cuptiGetVersion", version) == ok) {
        return static_cast<int>(ok);
      }
    }
    *version = 26;  // CUDA 12.8
    return static_cast<int>(ok);
  });
}

QLP_EXPORT int cuptiGetTimestamp(std::uint64_t* nanoseconds) {
  return library(__func__, [&] {
    timespec t{};
    clock_gettime(CLOCK_REALTIME, &t);
    *nanoseconds = static_cast<std::uint64_t>(t.tv_sec) * 1000000000U + static_cast<std::uint64_t>(t.tv_nsec);
    return ok;
  });
}

QLP_EXPORT int cuptiGetResultString(int status, const char** text) {
  *text = status == 0 ? "CUPTI_SUCCESS" : "CUPTI_ERROR_NOT_SUPPORTED";
  return ok;
}
