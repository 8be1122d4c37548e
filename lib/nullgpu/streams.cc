#include "nullgpu/streams.h"

#include <atomic>
#include <mutex>
#include <unordered_set>

#include "nullgpu/books.h"
#include "nullgpu/calls.h"
#include "nullgpu/device.h"
#include "nullgpu/host_queue.h"
#include "nullgpu/pools.h"
#include "nullgpu/settings.h"
#include "nullgpu/status.h"

namespace nullgpu {
namespace {

std::atomic<std::uint64_t> g_epoch{1};
std::atomic<unsigned long long> g_next_id{1};

struct Registry {
  std::unordered_set<Stream*> streams;
  std::unordered_set<Event*> events;
  std::vector<std::array<Stream, 3>*> defaults;  // by device: null, legacy, per thread
};

Registry& registry() {
  static Registry* const kRegistry = new Registry;
  return *kRegistry;
}

using Guard = std::lock_guard<Books>;

Stream* default_stream(std::uintptr_t handle) {
  auto& defaults = registry().defaults;
  const auto device = static_cast<std::size_t>(current_device());
  while (defaults.size() <= device) {
    auto* made = new std::array<Stream, 3>;
    for (Stream& s : *made) {
      s = Stream{static_cast<int>(defaults.size()), 0, 0, g_next_id++};
    }
    defaults.push_back(made);
  }
  return &(*defaults[device])[handle == 2 ? 2 : 0];
}

bool pending(std::uint64_t epoch, std::uint64_t host_work) {
  return (settings().lazy_events && epoch == g_epoch.load()) || !host_work_done(host_work);
}

}  // namespace

Stream* find_stream(void* handle) {
  const Guard guard(Books::get());
  const auto number = reinterpret_cast<std::uintptr_t>(handle);
  if (number <= 2) {
    return default_stream(number);
  }
  auto* stream = static_cast<Stream*>(handle);
  return registry().streams.contains(stream) ? stream : nullptr;
}

Stream* new_stream(unsigned flags, int priority) {
  const Guard guard(Books::get());
  return *registry().streams.insert(new Stream{current_device(), flags, priority, g_next_id++}).first;
}

int destroy_stream(void* handle) {
  const Guard guard(Books::get());
  auto* stream = static_cast<Stream*>(handle);
  if (registry().streams.erase(stream) == 0) {
    return invalid_handle;
  }
  if (stream->capture != nullptr) {
    abandon_capture(*stream);
  }
  delete stream;
  return ok;
}

Event* find_event(void* handle) {
  const Guard guard(Books::get());
  auto* event = static_cast<Event*>(handle);
  return registry().events.contains(event) ? event : nullptr;
}

Event* new_event(unsigned flags) {
  const Guard guard(Books::get());
  return *registry().events.insert(new Event{flags, current_device()}).first;
}

int destroy_event(void* handle) {
  const Guard guard(Books::get());
  auto* event = static_cast<Event*>(handle);
  if (registry().events.erase(event) == 0) {
    return invalid_handle;
  }
  delete event;
  return ok;
}

int record(void* event, void* stream) {
  const Guard guard(Books::get());
  Event* const e = find_event(event);
  Stream* const s = find_stream(stream);
  if (e == nullptr || s == nullptr) {
    return invalid_handle;
  }
  e->capture = s->capture;
  if (s->capture != nullptr) {
    e->frontier = s->frontier;
    return ok;
  }
  e->recorded = true;
  e->epoch = g_epoch.load();
  e->launches = launches();
  e->host_work = s->host_work;
  return ok;
}

int query_event(void* event) {
  const Guard guard(Books::get());
  const Event* const e = find_event(event);
  if (e == nullptr) {
    return invalid_handle;
  }
  if (e->capture != nullptr) {
    return captured_event;
  }
  return e->recorded && pending(e->epoch, e->host_work) ? not_ready : ok;
}

int query_stream(void* stream) {
  const Guard guard(Books::get());
  const Stream* const s = find_stream(stream);
  if (s == nullptr) {
    return invalid_handle;
  }
  if (s->capture != nullptr) {
    invalidate_capture(*s->capture);
    return capture_unsupported;
  }
  return host_work_done(s->host_work) ? ok : not_ready;
}

void complete_work() {
  g_epoch.fetch_add(1);
  trim_pools();
}

int synchronize_event(void* event) {
  std::uint64_t host_work = 0;
  {
    const Guard guard(Books::get());
    const Event* const e = find_event(event);
    if (e == nullptr) {
      return invalid_handle;
    }
    if (e->capture != nullptr) {
      return captured_event;
    }
    host_work = e->host_work;
  }
  wait_for_host_work(host_work);
  complete_work();
  return ok;
}

int synchronize_stream(void* stream) {
  std::uint64_t host_work = 0;
  {
    const Guard guard(Books::get());
    Stream* const s = find_stream(stream);
    if (s == nullptr) {
      return invalid_handle;
    }
    if (s->capture != nullptr) {
      invalidate_capture(*s->capture);
      return capture_unsupported;
    }
    host_work = s->host_work;
  }
  wait_for_host_work(host_work);
  complete_work();
  return ok;
}

int synchronize_device() {
  if (const int status = forbid_in_capture()) {
    return status;
  }
  wait_for_host_work(last_host_work());
  complete_work();
  return ok;
}

int wait_event(void* stream, void* event) {
  const Guard guard(Books::get());
  Stream* const s = find_stream(stream);
  const Event* const e = find_event(event);
  if (e == nullptr || s == nullptr) {
    return invalid_handle;
  }
  if (e->capture != nullptr) {
    return join_capture(*s, *e->capture, e->frontier);
  }
  s->host_work = std::max(s->host_work, e->host_work);
  return ok;
}

int elapsed(float* milliseconds, void* start, void* stop) {
  const Guard guard(Books::get());
  const Event* const a = find_event(start);
  const Event* const b = find_event(stop);
  constexpr unsigned kDisableTiming = 2;
  if (milliseconds == nullptr) {
    return invalid_value;
  }
  if (a == nullptr || b == nullptr || !a->recorded || !b->recorded || ((a->flags | b->flags) & kDisableTiming) != 0) {
    return invalid_handle;
  }
  if (pending(a->epoch, a->host_work) || pending(b->epoch, b->host_work)) {
    return not_ready;
  }
  const auto between = static_cast<std::int64_t>(b->launches - a->launches);
  *milliseconds = between == 0 ? 1.0F : static_cast<float>(between);
  return ok;
}

int submit_host_function(void* stream, std::function<void()> function) {
  const Guard guard(Books::get());
  Stream* const s = find_stream(stream);
  if (s == nullptr) {
    return invalid_handle;
  }
  if (s->capture != nullptr) {
    return capture_node(*s, NodeType::host, std::move(function));
  }
  s->host_work = queue_host_work(std::move(function));
  return ok;
}

}  // namespace nullgpu
