// NCCL. Nobody is waited for; communicators.h says what collectives give. Small data that the host wrote is really
// gathered, scattered and reduced; all else reads as zero.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <unordered_set>

#include <climits>

#include "nullgpu/books.h"
#include "nullgpu/communicator_log.h"
#include "nullgpu/communicators.h"
#include "nullgpu/copies.h"
#include "nullgpu/entry.h"
#include "nullgpu/interpose.h"
#include "nullgpu/settings.h"
#include "nullgpu/streams.h"

using namespace nullgpu;

namespace {

constexpr int kInvalidArgument = 4;
constexpr int kInvalidUsage = 5;
constexpr int kInProgress = 7;
constexpr int kNoColor = -1;

struct Communicator {
  int size;
  int rank;
  int device;
  std::size_t log;
  // Ranks whose part of a gathered result may be written to: fewer than `size` where a split made a communicator whose
  // size only the other ranks know.
  int certain;
  std::atomic<int> state{ok};  // kInProgress until it is asked for once, where the program said blocking = 0
};

struct UniqueId {
  char bytes[128];
};

std::unordered_set<Communicator*>& live() {
  static auto* const kLive = new std::unordered_set<Communicator*>;
  return *kLive;
}

Communicator* find(void* handle) {
  const std::lock_guard guard(Books::get());
  auto* communicator = static_cast<Communicator*>(handle);
  return live().contains(communicator) ? communicator : nullptr;
}

// ncclConfig_t: size, magic and version (16 bytes), then `blocking`, whose undefined value is INT_MIN.
bool non_blocking(const void* config) {
  int blocking = INT_MIN;
  if (config != nullptr) {
    std::memcpy(&blocking, static_cast<const char*>(config) + 16, sizeof blocking);
  }
  return blocking == 0;
}

int make(void** out, int size, int rank, const void* config, int certain) {
  if (out == nullptr || size < 1 || rank < 0 || rank >= size) {
    return kInvalidArgument;
  }
  if (use_current_device() != ok) {
    return 1;  // ncclUnhandledCudaError
  }
  auto* made = new Communicator{size, rank, current_device(), log_communicator(size, rank), certain};
  {
    const std::lock_guard guard(Books::get());
    live().insert(made);
  }
  *out = made;
  if (non_blocking(config)) {
    made->state = kInProgress;
    return kInProgress;
  }
  return ok;
}

int drop(void* handle) {
  Communicator* communicator = find(handle);
  if (communicator == nullptr) {
    return kInvalidArgument;
  }
  const std::lock_guard guard(Books::get());
  live().erase(communicator);
  delete communicator;
  return ok;
}

// One collective of `n` elements a rank: checks, then `work(communicator, bytes)` in stream order.
template <class Work>
int collective(const char* name, std::size_t n, int type, void* handle, void* stream, Work&& work) {
  return library(name, [&] {
    Communicator* c = find(handle);
    const std::size_t element = nccl_element_bytes(type);
    if (c == nullptr || element == 0) {
      return kInvalidArgument;
    }
    if (c->state == kInProgress) {
      return kInvalidUsage;
    }
    log_collective(c->log);
    count_launch();
    const Communicator* const communicator = c;
    const std::size_t bytes = n * element;
    return submit(stream, NodeType::kernel, [=] { work(*communicator, bytes); }) == ok ? ok : kInvalidArgument;
  });
}

char* at(void* p, std::size_t bytes) { return static_cast<char*>(p) + bytes; }
const char* at(const void* p, std::size_t bytes) { return static_cast<const char*>(p) + bytes; }

void gather(const Communicator& c, const void* in, void* out, std::size_t bytes) {
  for (int r = 0; r < c.certain; ++r) {
    copy(at(out, static_cast<std::size_t>(r) * bytes), in, bytes);
  }
}

}  // namespace

QLP_EXPORT int ncclGetVersion(int* version) {
  return library(__func__, [&] {
    *version = settings().nccl_version;
    if (*version == 0 && ask_real<int>("libnccl.so.2", "ncclGetVersion", version) != ok) {
      *version = 22703;
    }
    return ok;
  });
}

QLP_EXPORT const char* ncclGetErrorString(int status) {
  static constexpr const char* kTexts[] = {"no error",
                                           "unhandled cuda error",
                                           "unhandled system error",
                                           "internal error",
                                           "invalid argument",
                                           "invalid usage",
                                           "remote process exited or there was a network error",
                                           "NCCL operation in progress"};
  return status < 0 || status > 7 ? "unknown result code" : kTexts[status];
}

QLP_EXPORT const char* ncclGetLastError(void*) { return ""; }
QLP_EXPORT void ncclResetDebugInit() {}

QLP_EXPORT int ncclGetUniqueId(UniqueId* id) {
  return library(__func__, [&] {
    static std::atomic<std::uint64_t> g_next{1};
    std::memset(id, 0, sizeof *id);
    const std::uint64_t words[2] = {0x6c63636e6c756eU, g_next++};
    std::memcpy(id->bytes, words, sizeof words);
    return ok;
  });
}

QLP_EXPORT int ncclCommGetUniqueId(void*, UniqueId* id) { return ncclGetUniqueId(id); }

QLP_EXPORT int ncclCommInitRank(void** c, int size, UniqueId, int rank) {
  return library(__func__, [&] { return make(c, size, rank, nullptr, size); });
}

QLP_EXPORT int ncclCommInitRankConfig(void** c, int size, UniqueId, int rank, const void* config) {
  return library(__func__, [&] { return make(c, size, rank, config, size); });
}

QLP_EXPORT int ncclCommInitRankScalable(void** c, int size, int rank, int, const UniqueId*, const void* config) {
  return library(__func__, [&] { return make(c, size, rank, config, size); });
}

QLP_EXPORT int ncclCommInitAll(void** c, int count, const int* devices) {
  return library(__func__, [&] {
    const int before = current_device();
    int status = ok;
    for (int i = 0; i < count && status == ok; ++i) {
      status =
          set_current_device(devices == nullptr ? i : devices[i]) == ok ? make(&c[i], count, i, nullptr, count) : 1;
    }
    set_current_device(before);
    return status;
  });
}

// How many ranks took the same color only they know: taken to be all, or at least those up to this one's key.
QLP_EXPORT int ncclCommSplit(void* parent, int color, int key, void** out, const void* config) {
  return library(__func__, [&] {
    const Communicator* p = find(parent);
    if (p == nullptr || out == nullptr) {
      return kInvalidArgument;
    }
    *out = nullptr;
    if (color == kNoColor) {
      return static_cast<int>(ok);
    }
    assume("a communicator made by ncclCommSplit is taken to have all ranks of its parent");
    const int rank = std::clamp(key, 0, p->size - 1);
    return make(out, p->size, rank, config, rank + 1);
  });
}

QLP_EXPORT int ncclCommShrink(void* parent, const int* excluded, int count, void** out, const void* config, int) {
  return library(__func__, [&] {
    const Communicator* p = find(parent);
    if (p == nullptr || count >= p->size) {
      return kInvalidArgument;
    }
    int rank = p->rank;
    for (int i = 0; i < count; ++i) {
      rank -= static_cast<int>(excluded[i] < p->rank);
    }
    return make(out, p->size - count, rank, config, p->size - count);
  });
}

QLP_EXPORT int ncclCommGrow(void* parent, int size, const UniqueId*, int rank, void** out, const void* config) {
  return library(__func__, [&] {
    const Communicator* p = find(parent);
    return make(out, size, p == nullptr ? rank : p->rank, config, size);
  });
}

QLP_EXPORT int ncclCommFinalize(void* c) {
  return library(__func__, [&] { return find(c) == nullptr ? kInvalidArgument : static_cast<int>(ok); });
}
QLP_EXPORT int ncclCommDestroy(void* c) {
  return library(__func__, [&] { return drop(c); });
}
QLP_EXPORT int ncclCommAbort(void* c) {
  return library(__func__, [&] { return drop(c); });
}
QLP_EXPORT int ncclCommRevoke(void* c, int) {
  return library(__func__, [&] { return find(c) == nullptr ? kInvalidArgument : static_cast<int>(ok); });
}
QLP_EXPORT int ncclCommSuspend(void* c, int) {
  return library(__func__, [&] { return find(c) == nullptr ? kInvalidArgument : static_cast<int>(ok); });
}
QLP_EXPORT int ncclCommResume(void* c) {
  return library(__func__, [&] { return find(c) == nullptr ? kInvalidArgument : static_cast<int>(ok); });
}

// A failure that NULLGPU_FAIL asks for is what the communicator reports; the call itself succeeds.
QLP_EXPORT int ncclCommGetAsyncError(void* c, int* error) {
  mark_used();
  Communicator* communicator = find(c);
  if (communicator == nullptr || error == nullptr) {
    return kInvalidArgument;
  }
  const int failure = injected_failure(__func__);
  *error = failure != 0 ? failure : communicator->state.exchange(ok);
  return ok;
}

QLP_EXPORT int ncclCommCount(void* c, int* count) {
  return library(__func__, [&] {
    const Communicator* communicator = find(c);
    *count = communicator == nullptr ? 0 : communicator->size;
    return communicator == nullptr ? kInvalidArgument : static_cast<int>(ok);
  });
}

QLP_EXPORT int ncclCommUserRank(void* c, int* rank) {
  return library(__func__, [&] {
    const Communicator* communicator = find(c);
    *rank = communicator == nullptr ? 0 : communicator->rank;
    return communicator == nullptr ? kInvalidArgument : static_cast<int>(ok);
  });
}

QLP_EXPORT int ncclCommCuDevice(void* c, int* device) {
  return library(__func__, [&] {
    const Communicator* communicator = find(c);
    *device = communicator == nullptr ? 0 : communicator->device;
    return communicator == nullptr ? kInvalidArgument : static_cast<int>(ok);
  });
}

// What NCCL itself would take of the device is not in the books.
QLP_EXPORT int ncclCommMemStats(void*, int, std::uint64_t* value) {
  return library(__func__, [&] {
    *value = 0;
    return ok;
  });
}

QLP_EXPORT int ncclMemAlloc(void** p, std::size_t bytes) {
  return library(__func__, [&] {
    return Books::get().allocate(p, bytes, Kind::device, current_device(), 0) == ok ? ok : static_cast<Status>(1);
  });
}

QLP_EXPORT int ncclMemFree(void* p) {
  return library(__func__, [&] { return Books::get().release(p, Kind::device) == ok ? ok : static_cast<Status>(1); });
}

// Registered buffers: handles that only come back.
namespace {

int register_buffer(const char* name, void* c, void* buffer, void** handle) {
  return library(name, [&] {
    if (find(c) == nullptr) {
      return kInvalidArgument;
    }
    *handle = new void*(buffer);
    return static_cast<int>(ok);
  });
}

int deregister_buffer(const char* name, void* handle) {
  return library(name, [&] {
    delete static_cast<void**>(handle);
    return ok;
  });
}

}  // namespace

QLP_EXPORT int ncclCommRegister(void* c, void* buffer, std::size_t, void** handle) {
  return register_buffer(__func__, c, buffer, handle);
}
QLP_EXPORT int ncclCommDeregister(void*, void* handle) { return deregister_buffer(__func__, handle); }
QLP_EXPORT int ncclCommWindowRegister(void* c, void* buffer, std::size_t, void** window, int) {
  return register_buffer(__func__, c, buffer, window);
}
QLP_EXPORT int ncclCommWindowDeregister(void*, void* window) { return deregister_buffer(__func__, window); }
QLP_EXPORT int ncclWinGetUserPtr(void*, void* window, void** p) {
  return library(__func__, [&] {
    *p = *static_cast<void**>(window);
    return ok;
  });
}

QLP_EXPORT int ncclGroupStart() {
  return library(__func__, [] { return ok; });
}
QLP_EXPORT int ncclGroupEnd() {
  return library(__func__, [] { return ok; });
}
QLP_EXPORT int ncclGroupSimulateEnd(void*) {
  return library(__func__, [] { return ok; });
}

QLP_EXPORT int ncclRedOpCreatePreMulSum(int* operation, void*, int, int, void*) {
  return library(__func__, [&] {
    *operation = 100;  // beyond ncclNumOps: passes its input on
    return ok;
  });
}
QLP_EXPORT int ncclRedOpDestroy(int, void*) {
  return library(__func__, [] { return ok; });
}

QLP_EXPORT int ncclAllReduce(const void* in, void* out, std::size_t n, int type, int operation, void* c, void* stream) {
  return collective(__func__, n, type, c, stream,
                    [=](const Communicator& k, std::size_t) { reduce(out, in, n, type, operation, k.size); });
}

QLP_EXPORT int ncclReduce(const void* in, void* out, std::size_t n, int type, int operation, int root, void* c,
                          void* stream) {
  return collective(__func__, n, type, c, stream, [=](const Communicator& k, std::size_t) {
    if (k.rank == root) {
      reduce(out, in, n, type, operation, k.size);
    }
  });
}

QLP_EXPORT int ncclReduceScatter(const void* in, void* out, std::size_t n, int type, int operation, void* c,
                                 void* stream) {
  return collective(__func__, n, type, c, stream, [=](const Communicator& k, std::size_t bytes) {
    reduce(out, at(in, static_cast<std::size_t>(k.rank) * bytes), n, type, operation, k.size);
  });
}

QLP_EXPORT int ncclAllGather(const void* in, void* out, std::size_t n, int type, void* c, void* stream) {
  return collective(__func__, n, type, c, stream,
                    [=](const Communicator& k, std::size_t bytes) { gather(k, in, out, bytes); });
}

QLP_EXPORT int ncclBroadcast(const void* in, void* out, std::size_t n, int type, int, void* c, void* stream) {
  return collective(__func__, n, type, c, stream,
                    [=](const Communicator&, std::size_t bytes) { copy(out, in == nullptr ? out : in, bytes); });
}

QLP_EXPORT int ncclBcast(void*, std::size_t n, int type, int, void* c, void* stream) {
  return collective(__func__, n, type, c, stream, [](const Communicator&, std::size_t) {});
}

QLP_EXPORT int ncclGather(const void* in, void* out, std::size_t n, int type, int root, void* c, void* stream) {
  return collective(__func__, n, type, c, stream, [=](const Communicator& k, std::size_t bytes) {
    if (k.rank == root) {
      gather(k, in, out, bytes);
    }
  });
}

// Every root holds what this rank would scatter: its own part.
QLP_EXPORT int ncclScatter(const void* in, void* out, std::size_t n, int type, int root, void* c, void* stream) {
  return collective(__func__, n, type, c, stream, [=](const Communicator& k, std::size_t bytes) {
    if (k.rank == root) {
      copy(out, at(in, static_cast<std::size_t>(k.rank) * bytes), bytes);
    }
  });
}

// Every other rank sends to this one what it sends to itself.
QLP_EXPORT int ncclAlltoAll(const void* in, void* out, std::size_t n, int type, void* c, void* stream) {
  return collective(__func__, n, type, c, stream, [=](const Communicator& k, std::size_t bytes) {
    gather(k, at(in, static_cast<std::size_t>(k.rank) * bytes), out, bytes);
  });
}

QLP_EXPORT int ncclSend(const void*, std::size_t n, int type, int, void* c, void* stream) {
  return collective(__func__, n, type, c, stream, [](const Communicator&, std::size_t) {});
}

// What a peer would send nobody knows here: it reads as zero.
QLP_EXPORT int ncclRecv(void* out, std::size_t n, int type, int, void* c, void* stream) {
  return collective(__func__, n, type, c, stream, [=](const Communicator&, std::size_t bytes) {
    const std::lock_guard guard(Books::get());
    const auto begin = reinterpret_cast<std::uintptr_t>(out);
    Books::get().known().forget(begin, begin + bytes);
  });
}
