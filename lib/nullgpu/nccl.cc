// NCCL. Nobody is waited for; communicators.h says what collectives give. Small data that the host wrote is really
// gathered, scattered and reduced; all else reads as zero.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <sys/random.h>
#include <unordered_set>
#include <utility>
#include <vector>

#include <climits>

#include "nullgpu/books.h"
#include "nullgpu/communicator_log.h"
#include "nullgpu/communicators.h"
#include "nullgpu/copies.h"
#include "nullgpu/entry.h"
#include "nullgpu/exchange.h"
#include "nullgpu/interpose.h"
#include "nullgpu/settings.h"
#include "nullgpu/streams.h"

using namespace nullgpu;

namespace {

constexpr int kSystemError = 2;
constexpr int kInvalidArgument = 4;
constexpr int kInvalidUsage = 5;
constexpr int kRemoteError = 6;
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
  std::unique_ptr<Exchange> exchange;  // with ranks that are real
  int splits = 0;
  std::uint64_t token = 0;
  std::atomic<int> error{ok};  // a rank has died
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
    Communicator* const communicator = c;
    const std::size_t bytes = n * element;
    return submit(stream, NodeType::kernel, [=] { work(*communicator, bytes); }) == ok ? ok : kInvalidArgument;
  });
}

char* at(void* p, std::size_t bytes) { return static_cast<char*>(p) + bytes; }
const char* at(const void* p, std::size_t bytes) { return static_cast<const char*>(p) + bytes; }

// ---- Ranks that are real. Whether a message is short enough must come out alike on all of them.

bool is_short(const Communicator& k, std::size_t bytes) {
  return k.exchange != nullptr && bytes <= std::min(Exchange::kMost, settings().copy_max);
}

Exchange::Message message_of(const void* in, std::size_t bytes) {
  Exchange::Message message;
  message.bytes.resize(bytes);
  copy(message.bytes.data(), in, bytes);
  Books& books = Books::get();
  const std::lock_guard guard(books);
  Block block{};
  const auto begin = reinterpret_cast<std::uintptr_t>(in);
  message.known =
      bytes > 0 && (!books.find(in, block) || !block.on_device() || books.known().count(begin, begin + bytes) > 0);
  return message;
}

// What nobody wrote on the host reads as zero.
void deliver(void* out, const unsigned char* bytes, std::size_t n, bool known) {
  if (known) {
    copy(out, bytes, n);
  } else {
    const std::lock_guard guard(Books::get());
    const auto begin = reinterpret_cast<std::uintptr_t>(out);
    Books::get().known().forget(begin, begin + n);
  }
}

// Every rank's message; empty when a rank has died.
std::vector<Exchange::Message> meet(Communicator& k, const void* in, std::size_t bytes) {
  std::vector<Exchange::Message> all;
  if (!k.exchange->gather(message_of(in, bytes), all)) {
    k.error = kRemoteError;
    all.clear();
  }
  return all;
}

// Reduces all ranks' messages of `total` elements; this one takes `n` of them from element `first`.
void reduce_real(Communicator& k, const void* in, std::size_t total, void* out, std::size_t first, std::size_t n,
                 int type, int operation) {
  const std::size_t element = nccl_element_bytes(type);
  const auto all = meet(k, in, total * element);
  std::vector<unsigned char> messages;
  bool known = false;
  for (const Exchange::Message& m : all) {
    messages.insert(messages.end(), m.bytes.begin(), m.bytes.end());
    known = known || m.known;
  }
  if (!all.empty() && out != nullptr) {
    known = combine(messages.data(), total, type, operation, k.size) && known;
    deliver(out, messages.data() + first * element, n * element, known);
  }
}

// ---- A rank that plays alone.

void gather(const Communicator& c, const void* in, void* out, std::size_t bytes) {
  for (int r = 0; r < c.certain; ++r) {
    copy(at(out, static_cast<std::size_t>(r) * bytes), in, bytes);
  }
}

}  // namespace

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
  const auto all = meet(p, mine, sizeof mine);
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
    Communicator* p = find(parent);
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
  const int state = communicator->state.exchange(ok);
  *error = failure != 0 ? failure : state != ok ? state : communicator->error.load();
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
  return collective(__func__, n, type, c, stream, [=](Communicator& k, std::size_t bytes) {
    if (is_short(k, bytes)) {
      reduce_real(k, in, n, out, 0, n, type, operation);
    } else {
      reduce(out, in, n, type, operation, k.size);
    }
  });
}

QLP_EXPORT int ncclReduce(const void* in, void* out, std::size_t n, int type, int operation, int root, void* c,
                          void* stream) {
  return collective(__func__, n, type, c, stream, [=](Communicator& k, std::size_t bytes) {
    if (is_short(k, bytes)) {
      reduce_real(k, in, n, k.rank == root ? out : nullptr, 0, n, type, operation);
    } else if (k.rank == root) {
      reduce(out, in, n, type, operation, k.size);
    }
  });
}

QLP_EXPORT int ncclReduceScatter(const void* in, void* out, std::size_t n, int type, int operation, void* c,
                                 void* stream) {
  return collective(__func__, n, type, c, stream, [=](Communicator& k, std::size_t bytes) {
    const auto ranks = static_cast<std::size_t>(k.size);
    const auto rank = static_cast<std::size_t>(k.rank);
    if (is_short(k, bytes * ranks)) {
      reduce_real(k, in, n * ranks, out, n * rank, n, type, operation);
    } else {
      reduce(out, at(in, rank * bytes), n, type, operation, k.size);
    }
  });
}

namespace {

// Every rank's message behind one another.
void gather_all(Communicator& k, const void* in, void* out, std::size_t bytes) {
  if (!is_short(k, bytes)) {
    if (out != nullptr) {
      gather(k, in, out, bytes);
    }
    return;
  }
  const auto all = meet(k, in, bytes);
  for (std::size_t r = 0; r < all.size() && out != nullptr; ++r) {
    deliver(at(out, r * bytes), all[r].bytes.data(), bytes, all[r].known);
  }
}

}  // namespace

QLP_EXPORT int ncclAllGather(const void* in, void* out, std::size_t n, int type, void* c, void* stream) {
  return collective(__func__, n, type, c, stream,
                    [=](Communicator& k, std::size_t bytes) { gather_all(k, in, out, bytes); });
}

QLP_EXPORT int ncclGather(const void* in, void* out, std::size_t n, int type, int root, void* c, void* stream) {
  return collective(__func__, n, type, c, stream, [=](Communicator& k, std::size_t bytes) {
    gather_all(k, in, k.rank == root ? out : nullptr, bytes);
  });
}

QLP_EXPORT int ncclBroadcast(const void* in, void* out, std::size_t n, int type, int root, void* c, void* stream) {
  return collective(__func__, n, type, c, stream, [=](Communicator& k, std::size_t bytes) {
    if (!is_short(k, bytes)) {
      copy(out, in == nullptr ? out : in, bytes);
      return;
    }
    const auto all = meet(k, in, k.rank == root ? bytes : 0);
    if (!all.empty()) {
      const Exchange::Message& m = all[static_cast<std::size_t>(root)];
      deliver(out, m.bytes.data(), bytes, m.known);
    }
  });
}

QLP_EXPORT int ncclBcast(void* buffer, std::size_t n, int type, int root, void* c, void* stream) {
  return ncclBroadcast(buffer, buffer, n, type, root, c, stream);
}

// Alone, every root holds what this rank would scatter, its own part.
QLP_EXPORT int ncclScatter(const void* in, void* out, std::size_t n, int type, int root, void* c, void* stream) {
  return collective(__func__, n, type, c, stream, [=](Communicator& k, std::size_t bytes) {
    const std::size_t mine = static_cast<std::size_t>(k.rank) * bytes;
    const std::size_t whole = static_cast<std::size_t>(k.size) * bytes;
    if (is_short(k, whole)) {
      const auto all = meet(k, in, k.rank == root ? whole : 0);
      if (!all.empty()) {
        const Exchange::Message& m = all[static_cast<std::size_t>(root)];
        deliver(out, m.bytes.data() + mine, bytes, m.known);
      }
    } else if (k.rank == root) {
      copy(out, at(in, mine), bytes);
    }
  });
}

// Alone, every other rank sends to this one what it sends to itself.
QLP_EXPORT int ncclAlltoAll(const void* in, void* out, std::size_t n, int type, void* c, void* stream) {
  return collective(__func__, n, type, c, stream, [=](Communicator& k, std::size_t bytes) {
    const std::size_t mine = static_cast<std::size_t>(k.rank) * bytes;
    const std::size_t whole = static_cast<std::size_t>(k.size) * bytes;
    if (!is_short(k, whole)) {
      gather(k, at(in, mine), out, bytes);
      return;
    }
    const auto all = meet(k, in, whole);
    for (std::size_t r = 0; r < all.size(); ++r) {
      deliver(at(out, r * bytes), all[r].bytes.data() + mine, bytes, all[r].known);
    }
  });
}

// Between two ranks. In a group all is sent before anything is waited for.
namespace {

struct Group {
  int depth = 0;
  std::vector<std::function<void()>> receives;
};

Group& group() {
  static thread_local Group the_group;
  return the_group;
}

void receive_from(Communicator& k, int peer, void* out, std::size_t bytes) {
  Exchange::Message message;
  if (k.exchange->receive(peer, message)) {
    message.bytes.resize(bytes);
    deliver(out, message.bytes.data(), bytes, message.known);
  } else {
    k.error = kRemoteError;
  }
}

}  // namespace

QLP_EXPORT int ncclGroupStart() {
  return library(__func__, [] {
    ++group().depth;
    return ok;
  });
}

QLP_EXPORT int ncclGroupEnd() {
  return library(__func__, [] {
    Group& g = group();
    if (g.depth == 0) {
      return kInvalidUsage;
    }
    if (--g.depth == 0) {
      const auto receives = std::exchange(g.receives, {});
      for (const auto& receive : receives) {
        receive();
      }
    }
    return static_cast<int>(ok);
  });
}

QLP_EXPORT int ncclGroupSimulateEnd(void* information) {
  (void)information;
  return ncclGroupEnd();
}

QLP_EXPORT int ncclSend(const void* in, std::size_t n, int type, int peer, void* c, void* stream) {
  return collective(__func__, n, type, c, stream, [=](Communicator& k, std::size_t bytes) {
    if (is_short(k, bytes) && !k.exchange->send(peer, message_of(in, bytes))) {
      k.error = kRemoteError;
    }
  });
}

// What a peer would send nobody knows when this rank plays alone: it reads as zero.
QLP_EXPORT int ncclRecv(void* out, std::size_t n, int type, int peer, void* c, void* stream) {
  return collective(__func__, n, type, c, stream, [=](Communicator& k, std::size_t bytes) {
    if (!is_short(k, bytes)) {
      deliver(out, nullptr, bytes, false);
    } else if (group().depth > 0) {
      group().receives.emplace_back([&k, peer, out, bytes] { receive_from(k, peer, out, bytes); });
    } else {
      receive_from(k, peer, out, bytes);
    }
  });
}
