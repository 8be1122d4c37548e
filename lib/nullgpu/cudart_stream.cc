// The CUDA runtime: streams, events, host functions.
#include <cstddef>

#include "nullgpu/entry.h"
#include "nullgpu/streams.h"

using namespace nullgpu;

QLP_EXPORT int cudaStreamCreateWithPriority(void** stream, unsigned flags, int priority) {
  return runtime(__func__, [&] {
    if (stream == nullptr || flags > 1) {
      return invalid_value;
    }
    *stream = new_stream(flags, priority < -5 ? -5 : priority > 0 ? 0 : priority);
    return ok;
  });
}

QLP_EXPORT int cudaStreamCreate(void** stream) {
  return runtime(__func__, [&] {
    *stream = new_stream(0, 0);
    return ok;
  });
}

QLP_EXPORT int cudaStreamCreateWithFlags(void** stream, unsigned flags) {
  return runtime(__func__, [&] {
    if (stream == nullptr || flags > 1) {
      return invalid_value;
    }
    *stream = new_stream(flags, 0);
    return ok;
  });
}

QLP_EXPORT int cudaStreamDestroy(void* stream) {
  return runtime(__func__, [&] { return destroy_stream(stream); });
}

QLP_EXPORT int cudaStreamSynchronize(void* stream) {
  return runtime(__func__, [&] { return synchronize_stream(stream); });
}

QLP_EXPORT int cudaStreamQuery(void* stream) {
  return runtime(__func__, [&] { return query_stream(stream); });
}

QLP_EXPORT int cudaStreamWaitEvent(void* stream, void* event, unsigned) {
  return runtime(__func__, [&] { return wait_event(stream, event); });
}

QLP_EXPORT int cudaStreamGetPriority(void* stream, int* priority) {
  return runtime(__func__, [&] { return ask_stream(stream, [&](const Stream& s) { *priority = s.priority; }); });
}

QLP_EXPORT int cudaStreamGetFlags(void* stream, unsigned* flags) {
  return runtime(__func__, [&] { return ask_stream(stream, [&](const Stream& s) { *flags = s.flags; }); });
}

QLP_EXPORT int cudaStreamGetId(void* stream, unsigned long long* id) {
  return runtime(__func__, [&] { return ask_stream(stream, [&](const Stream& s) { *id = s.id; }); });
}

QLP_EXPORT int cudaStreamGetDevice(void* stream, int* device) {
  return runtime(__func__, [&] { return ask_stream(stream, [&](const Stream& s) { *device = s.device; }); });
}

QLP_EXPORT int cudaStreamCopyAttributes(void*, void*) {
  return runtime(__func__, [] { return ok; });
}

QLP_EXPORT int cudaStreamSetAttribute(void*, int, const void*) {
  return runtime(__func__, [] { return ok; });
}

QLP_EXPORT int cudaStreamAttachMemAsync(void*, void*, std::size_t, unsigned) {
  return runtime(__func__, [] { return ok; });
}

QLP_EXPORT int cudaLaunchHostFunc(void* stream, void (*function)(void*), void* data) {
  return runtime(__func__, [&] {
    return function == nullptr ? static_cast<int>(invalid_value)
                               : submit_host_function(stream, [=] { function(data); });
  });
}

QLP_EXPORT int cudaStreamAddCallback(void* stream, void (*function)(void*, int, void*), void* data, unsigned) {
  return runtime(__func__, [&] {
    return function == nullptr ? static_cast<int>(invalid_value)
                               : submit_host_function(stream, [=] { function(stream, ok, data); });
  });
}

QLP_EXPORT int cudaEventCreateWithFlags(void** event, unsigned flags) {
  return runtime(__func__, [&] {
    if (event == nullptr || flags > 7) {
      return invalid_value;
    }
    *event = new_event(flags);
    return ok;
  });
}

QLP_EXPORT int cudaEventCreate(void** event) {
  return runtime(__func__, [&] {
    *event = new_event(0);
    return ok;
  });
}

QLP_EXPORT int cudaEventDestroy(void* event) {
  return runtime(__func__, [&] { return destroy_event(event); });
}

QLP_EXPORT int cudaEventRecord(void* event, void* stream) {
  return runtime(__func__, [&] { return record(event, stream); });
}

QLP_EXPORT int cudaEventRecordWithFlags(void* event, void* stream, unsigned) {
  return runtime(__func__, [&] { return record(event, stream); });
}

QLP_EXPORT int cudaEventQuery(void* event) {
  return runtime(__func__, [&] { return query_event(event); });
}

QLP_EXPORT int cudaEventSynchronize(void* event) {
  return runtime(__func__, [&] { return synchronize_event(event); });
}

QLP_EXPORT int cudaEventElapsedTime(float* milliseconds, void* start, void* stop) {
  return runtime(__func__, [&] { return elapsed(milliseconds, start, stop); });
}

QLP_EXPORT int cudaEventElapsedTime_v2(float* milliseconds, void* start, void* stop) {
  return runtime(__func__, [&] { return elapsed(milliseconds, start, stop); });
}
