// Streams and events. No work takes time: what the host asks of a stream is done when it is asked for, except host
// functions, which a thread of their own calls in order. NULLGPU_LAZY_EVENTS=1 keeps events from being ready until the
// host synchronises with anything (the slowest GPU there can be).
#pragma once

#include <cstdint>
#include <functional>

#include "nullgpu/graphs.h"
#include "nullgpu/status.h"

namespace nullgpu {

struct Stream {
  int device;
  unsigned flags;
  int priority;
  unsigned long long id;
  std::uint64_t host_work = 0;  // the last host function that it waits for
  Capture* capture = nullptr;
  std::vector<GraphNode*> frontier{};  // what the next captured node depends on
};

struct Event {
  unsigned flags;  // 2: no timing
  int device;
  bool recorded = false;
  std::uint64_t epoch = 0;
  unsigned long long launches = 0;  // before it
  std::uint64_t host_work = 0;
  Capture* capture = nullptr;  // it was recorded in a capture
  std::vector<GraphNode*> frontier{};
};

/// Handles 0, 1 and 2 are the default streams. Null: there is no such stream.
Stream* find_stream(void* handle);
Stream* new_stream(unsigned flags, int priority);
int destroy_stream(void* handle);
Event* find_event(void* handle);
Event* new_event(unsigned flags);
int destroy_event(void* handle);

int record(void* event, void* stream);
/// ok or not_ready.
int query_event(void* event);
int query_stream(void* stream);
int synchronize_event(void* event);
int synchronize_stream(void* stream);
int synchronize_device();
int wait_event(void* stream, void* event);
/// Between two records: a millisecond for each launch, and at least one. So programs that time kernels to choose among
/// them (Triton, torch.compile) choose the same in every run, and repeat each a hundred times rather than ten thousand.
int elapsed(float* milliseconds, void* start, void* stop);

/// All recorded work is done: what every synchronisation comes to.
void complete_work();

/// What a stream is like: `get(stream)`. Status.
template <class Get>
int ask_stream(void* handle, Get&& get) {
  const Stream* const s = find_stream(handle);
  if (s == nullptr) {
    return invalid_handle;
  }
  get(*s);
  return ok;
}

/// Work in a stream: done now, or a node of the graph that the stream is captured into. Status.
template <class Work>
int submit(void* stream, NodeType type, Work&& work) {
  Stream* const s = find_stream(stream);
  if (s == nullptr) {
    return invalid_handle;
  }
  if (s->capture != nullptr) {
    return capture_node(*s, type, std::forward<Work>(work));
  }
  work();
  return ok;
}

/// A function that the host shall call when the stream gets there.
int submit_host_function(void* stream, std::function<void()> function);

}  // namespace nullgpu
