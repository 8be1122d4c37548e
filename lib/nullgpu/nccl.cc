// NCCL but for its collectives: communicators and what they are asked. Nobody is waited for.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <sys/random.h>
#include <unordered_set>

#include <climits>

#include "nullgpu/books.h"
#include "nullgpu/communicator_log.h"
#include "nullgpu/entry.h"
#include "nullgpu/interpose.h"
#include "nullgpu/nccl_communicator.h"
#include "nullgpu/rendezvous.h"
#include "nullgpu/settings.h"

using namespace nullgpu;

namespace {

constexpr int kNoColor = -1;

struct UniqueId {
  char bytes[128];
};

std::unordered_set<Communicator*>& live() {
  static auto* const kLive = new std::unordered_set<Communicator*>;
  return *kLive;
}

// ncclConfig_t: size, magic and version (16 bytes), then `blocking`, whose undefined value is INT_MIN.
bool non_blocking(const void* config) {
  int blocking = INT_MIN;
  if (config != nullptr) {
    std::memcpy(&blocking, static_cast<const char*>(config) + 16, sizeof blocking);
  }
  return blocking == 0;
}

std::uint64_t token_of(const UniqueId& id) {
  std::uint64_t words[2];
  std::memcpy(words, id.bytes, sizeof words);
  return words[1];
}

int make(void** out, int size, int rank, const void* config, int certain, std::uint64_t token = 0) {
  if (out == nullptr || size < 1 || rank < 0 || rank >= size) {
    return kInvalidArgument;
  }
  if (use_current_device() != ok) {
    return 1;  // ncclUnhandledCudaError
  }
  if (settings().listens && token != 0 && rank == 0 && !can_listen_at_rendezvous()) {
    return kSystemError;
  }
  std::unique_ptr<Exchange> exchange;
  if (settings().real_ranks && token != 0 && size > 1) {
    exchange = Exchange::join(token, size, rank);
    if (exchange == nullptr) {
      return kRemoteError;
    }
  }
  auto* made = new Communicator{
      size, rank, current_device(), log_communicator(size, rank), certain, std::move(exchange), 0, token};
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
  Communicator* communicator = find_communicator(handle);
  if (communicator == nullptr) {
    return kInvalidArgument;
  }
  const std::lock_guard guard(Books::get());
  live().erase(communicator);
  delete communicator;
  return ok;
}

}  // namespace

Communicator* nullgpu::find_communicator(void* handle) {
  const std::lock_guard guard(Books::get());
  auto* communicator = static_cast<Communicator*>(handle);
  return live().contains(communicator) ? communicator : nullptr;
}

QLP_EXPORT int ncclGetVersion(int* version) {
  return query(__func__, [&] {
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
    if (!rendezvous_makes_sense()) {
      return kInvalidArgument;
    }
    std::uint64_t words[2] = {0x6c63636e6c756eU, 0};
    while (words[1] == 0) {
      if (getrandom(&words[1], sizeof words[1], 0) != sizeof words[1]) {
        return kSystemError;
      }
    }
    std::memset(id, 0, sizeof *id);
    std::memcpy(id->bytes, words, sizeof words);
    return static_cast<int>(ok);
  });
}

QLP_EXPORT int ncclCommGetUniqueId(void*, UniqueId* id) { return ncclGetUniqueId(id); }

QLP_EXPORT int ncclCommInitRank(void** c, int size, UniqueId id, int rank) {
  return library(__func__, [&] { return make(c, size, rank, nullptr, size, token_of(id)); });
}

QLP_EXPORT int ncclCommInitRankConfig(void** c, int size, UniqueId id, int rank, const void* config) {
  return library(__func__, [&] { return make(c, size, rank, config, size, token_of(id)); });
}

QLP_EXPORT int ncclCommInitRankScalable(void** c, int size, int rank, int, const UniqueId* ids, const void* config) {
  return library(__func__, [&] { return make(c, size, rank, config, size, token_of(ids[0])); });
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

namespace {

// All ranks tell their color and key; those of one color order themselves by key, then by rank.
int split_real(Communicator& p, int color, int key, void** out, const void* config) {
  const int mine[2] = {color, key};
  const auto all = meet(p, message_of(mine, sizeof mine));
  ++p.splits;
  if (all.empty()) {
    return kRemoteError;
  }
  int size = 0;
  int rank = 0;
  for (int r = 0; r < p.size; ++r) {
    int other[2];
    std::memcpy(other, all[static_cast<std::size_t>(r)].bytes.data(), sizeof other);
    if (other[0] == color) {
      ++size;
      rank += static_cast<int>(other[1] < key || (other[1] == key && r < p.rank));
    }
  }
  if (color == kNoColor) {
    return ok;
  }
  // The same on all of its ranks, and on none of another communicator.
  const std::uint64_t token = (p.token + static_cast<std::uint64_t>(p.splits)) * 0x9e3779b97f4a7c15U ^
                              (static_cast<std::uint64_t>(color) + 1) * 0xc2b2ae3d27d4eb4fU;
  return make(out, size, rank, config, size, token);
}

}  // namespace

// How many ranks took the same color only they know: taken to be all, or at least those up to this one's key.
QLP_EXPORT int ncclCommSplit(void* parent, int color, int key, void** out, const void* config) {
  return library(__func__, [&] {
    Communicator* p = find_communicator(parent);
    if (p == nullptr || out == nullptr) {
      return kInvalidArgument;
    }
    *out = nullptr;
    if (p->exchange != nullptr) {
      return split_real(*p, color, key, out, config);
    }
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
    const Communicator* p = find_communicator(parent);
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
    const Communicator* p = find_communicator(parent);
    return make(out, size, p == nullptr ? rank : p->rank, config, size);
  });
}

QLP_EXPORT int ncclCommFinalize(void* c) {
  return library(__func__, [&] { return find_communicator(c) == nullptr ? kInvalidArgument : static_cast<int>(ok); });
}
QLP_EXPORT int ncclCommDestroy(void* c) {
  return library(__func__, [&] { return drop(c); });
}
QLP_EXPORT int ncclCommAbort(void* c) {
  return library(__func__, [&] { return drop(c); });
}
QLP_EXPORT int ncclCommRevoke(void* c, int) {
  return library(__func__, [&] { return find_communicator(c) == nullptr ? kInvalidArgument : static_cast<int>(ok); });
}
QLP_EXPORT int ncclCommSuspend(void* c, int) {
  return library(__func__, [&] { return find_communicator(c) == nullptr ? kInvalidArgument : static_cast<int>(ok); });
}
QLP_EXPORT int ncclCommResume(void* c) {
  return library(__func__, [&] { return find_communicator(c) == nullptr ? kInvalidArgument : static_cast<int>(ok); });
}

// A failure that NULLGPU_FAIL asks for is what the communicator reports; the call itself succeeds.
QLP_EXPORT int ncclCommGetAsyncError(void* c, int* error) {
  mark_used();
  Communicator* communicator = find_communicator(c);
  if (communicator == nullptr || error == nullptr) {
    return kInvalidArgument;
  }
  const int failure = injected_failure(__func__);
  const int state = communicator->state.exchange(ok);
  *error = failure != 0 ? failure : state != ok ? state : communicator->error.load();
  return ok;
}

QLP_EXPORT int ncclCommCount(void* c, int* count) {
  return library(__func__, [&] {
    const Communicator* communicator = find_communicator(c);
    *count = communicator == nullptr ? 0 : communicator->size;
    return communicator == nullptr ? kInvalidArgument : static_cast<int>(ok);
  });
}

QLP_EXPORT int ncclCommUserRank(void* c, int* rank) {
  return library(__func__, [&] {
    const Communicator* communicator = find_communicator(c);
    *rank = communicator == nullptr ? 0 : communicator->rank;
    return communicator == nullptr ? kInvalidArgument : static_cast<int>(ok);
  });
}

QLP_EXPORT int ncclCommCuDevice(void* c, int* device) {
  return library(__func__, [&] {
    const Communicator* communicator = find_communicator(c);
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
    if (find_communicator(c) == nullptr) {
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

QLP_EXPORT int ncclRedOpCreatePreMulSum(int* operation, void*, int, int, void*) {
  return library(__func__, [&] {
    *operation = 100;  // beyond ncclNumOps: passes its input on
    return ok;
  });
}
QLP_EXPORT int ncclRedOpDestroy(int, void*) {
  return library(__func__, [] { return ok; });
}
