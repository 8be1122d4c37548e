// The CUDA driver: streams, events, capture, graphs.
#include <cstdint>

#include "nullgpu/entry.h"
#include "nullgpu/graphs.h"
#include "nullgpu/streams.h"

using namespace nullgpu;

QLP_EXPORT int cuStreamCreate(void** stream, unsigned flags) {
  return driver(__func__, [&] {
    *stream = new_stream(flags, 0);
    return current_context() == nullptr ? invalid_context : ok;
  });
}

QLP_EXPORT int cuStreamCreateWithPriority(void** stream, unsigned flags, int priority) {
  return driver(__func__, [&] {
    *stream = new_stream(flags, priority < -5 ? -5 : priority > 0 ? 0 : priority);
    return ok;
  });
}

QLP_EXPORT int cuStreamDestroy_v2(void* stream) {
  return driver(__func__, [&] { return destroy_stream(stream); });
}

QLP_EXPORT int cuStreamSynchronize(void* stream) {
  return driver(__func__, [&] { return synchronize_stream(stream); });
}

QLP_EXPORT int cuStreamQuery(void* stream) {
  return driver(__func__, [&] { return query_stream(stream); });
}

QLP_EXPORT int cuStreamWaitEvent(void* stream, void* event, unsigned) {
  return driver(__func__, [&] { return wait_event(stream, event); });
}

QLP_EXPORT int cuStreamGetPriority(void* stream, int* priority) {
  return driver(__func__, [&] { return ask_stream(stream, [&](const Stream& s) { *priority = s.priority; }); });
}

QLP_EXPORT int cuStreamGetFlags(void* stream, unsigned* flags) {
  return driver(__func__, [&] { return ask_stream(stream, [&](const Stream& s) { *flags = s.flags; }); });
}

QLP_EXPORT int cuStreamGetId(void* stream, unsigned long long* id) {
  return driver(__func__, [&] { return ask_stream(stream, [&](const Stream& s) { *id = s.id; }); });
}

QLP_EXPORT int cuStreamGetCtx(void* stream, void** context) {
  return driver(__func__,
                [&] { return ask_stream(stream, [&](const Stream& s) { *context = primary_context(s.device); }); });
}

QLP_EXPORT int cuStreamGetDevice(void* stream, int* device) {
  return driver(__func__, [&] { return ask_stream(stream, [&](const Stream& s) { *device = s.device; }); });
}

QLP_EXPORT int cuStreamAttachMemAsync(void*, std::uintptr_t, std::size_t, unsigned) {
  return driver(__func__, [] { return ok; });
}

QLP_EXPORT int cuStreamSetAttribute(void*, int, const void*) {
  return driver(__func__, [] { return ok; });
}

QLP_EXPORT int cuLaunchHostFunc(void* stream, void (*function)(void*), void* data) {
  return driver(__func__, [&] { return submit_host_function(stream, [=] { function(data); }); });
}

QLP_EXPORT int cuStreamAddCallback(void* stream, void (*function)(void*, int, void*), void* data, unsigned) {
  return driver(__func__, [&] { return submit_host_function(stream, [=] { function(stream, ok, data); }); });
}

// Values in memory that streams write and wait for: nobody else writes them, so waits are over at once.
QLP_EXPORT int cuStreamWaitValue32_v2(void*, std::uintptr_t, std::uint32_t, unsigned) {
  return driver(__func__, [] { return ok; });
}
QLP_EXPORT int cuStreamWaitValue64_v2(void*, std::uintptr_t, std::uint64_t, unsigned) {
  return driver(__func__, [] { return ok; });
}
QLP_EXPORT int cuStreamWriteValue32_v2(void*, std::uintptr_t, std::uint32_t, unsigned) {
  return driver(__func__, [] { return ok; });
}
QLP_EXPORT int cuStreamWriteValue64_v2(void*, std::uintptr_t, std::uint64_t, unsigned) {
  return driver(__func__, [] { return ok; });
}

QLP_EXPORT int cuEventCreate(void** event, unsigned flags) {
  return driver(__func__, [&] {
    *event = new_event(flags);
    return ok;
  });
}

QLP_EXPORT int cuEventDestroy_v2(void* event) {
  return driver(__func__, [&] { return destroy_event(event); });
}

QLP_EXPORT int cuEventRecord(void* event, void* stream) {
  return driver(__func__, [&] { return record(event, stream); });
}

QLP_EXPORT int cuEventRecordWithFlags(void* event, void* stream, unsigned) {
  return driver(__func__, [&] { return record(event, stream); });
}

QLP_EXPORT int cuEventQuery(void* event) {
  return driver(__func__, [&] { return query_event(event); });
}

QLP_EXPORT int cuEventSynchronize(void* event) {
  return driver(__func__, [&] { return synchronize_event(event); });
}

QLP_EXPORT int cuEventElapsedTime(float* milliseconds, void* start, void* stop) {
  return driver(__func__, [&] { return elapsed(milliseconds, start, stop); });
}

QLP_EXPORT int cuEventElapsedTime_v2(float* milliseconds, void* start, void* stop) {
  return driver(__func__, [&] { return elapsed(milliseconds, start, stop); });
}

QLP_EXPORT int cuStreamBeginCapture_v2(void* stream, int mode) {
  return driver(__func__, [&] { return begin_capture(stream, mode, nullptr, {}); });
}

QLP_EXPORT int cuStreamEndCapture(void* stream, void** graph) {
  return driver(__func__, [&] {
    Graph* made = nullptr;
    const int status = end_capture(stream, &made);
    if (graph != nullptr) {
      *graph = made;
    }
    return status;
  });
}

QLP_EXPORT int cuStreamIsCapturing(void* stream, int* status) {
  return driver(__func__, [&] { return capture_state(stream, {status, nullptr, nullptr, nullptr, nullptr, nullptr}); });
}

QLP_EXPORT int cuStreamGetCaptureInfo_v2(void* stream, int* status, unsigned long long* id, void** graph,
                                         GraphNode* const** after, std::size_t* count) {
  return driver(__func__, [&] { return capture_state(stream, {status, id, graph, after, nullptr, count}); });
}

QLP_EXPORT int cuStreamGetCaptureInfo_v3(void* stream, int* status, unsigned long long* id, void** graph,
                                         GraphNode* const** after, const void** edges, std::size_t* count) {
  return driver(__func__, [&] { return capture_state(stream, {status, id, graph, after, edges, count}); });
}

QLP_EXPORT int cuThreadExchangeStreamCaptureMode(int* mode) {
  return driver(__func__, [&] {
    *mode = exchange_capture_mode(*mode);
    return ok;
  });
}

QLP_EXPORT int cuGraphCreate(void** graph, unsigned) {
  return driver(__func__, [&] {
    *graph = new_graph();
    return ok;
  });
}

QLP_EXPORT int cuGraphDestroy(void* graph) {
  return driver(__func__, [&] { return destroy_graph(graph); });
}

namespace {

int instantiate_into(void** exec, void* graph) {
  const Graph* g = find_graph(graph);
  if (g == nullptr) {
    return invalid_value;
  }
  *exec = instantiate(*g);
  return ok;
}

}  // namespace

QLP_EXPORT int cuGraphInstantiateWithFlags(void** exec, void* graph, unsigned long long) {
  return driver(__func__, [&] { return instantiate_into(exec, graph); });
}

QLP_EXPORT int cuGraphInstantiate_v2(void** exec, void* graph, void*, char*, std::size_t) {
  return driver(__func__, [&] { return instantiate_into(exec, graph); });
}

QLP_EXPORT int cuGraphExecDestroy(void* exec) {
  return driver(__func__, [&] { return destroy_exec(exec); });
}

QLP_EXPORT int cuGraphLaunch(void* exec, void* stream) {
  return driver(__func__, [&] { return launch(exec, stream); });
}

QLP_EXPORT int cuGraphUpload(void*, void*) {
  return driver(__func__, [] { return ok; });
}
