// NCCL's collectives, sends and receives; communicators.h says what they give. Small data that the host wrote is really
// gathered, scattered and reduced; all else reads as zero.
#include <algorithm>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "nullgpu/books.h"
#include "nullgpu/communicator_log.h"
#include "nullgpu/communicators.h"
#include "nullgpu/copies.h"
#include "nullgpu/entry.h"
#include "nullgpu/exchange.h"
#include "nullgpu/nccl_communicator.h"
#include "nullgpu/streams.h"

using namespace nullgpu;

namespace {

// One collective of `n` elements a rank: checks, then `work(communicator, bytes)` in stream order.
template <class Work>
int collective(const char* name, std::size_t n, int type, void* handle, void* stream, Work&& work) {
  return library(name, [&] {
    Communicator* c = find_communicator(handle);
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

// Reduces all ranks' messages of `total` elements; this one takes `n` of them from element `first`.
void reduce_real(Communicator& k, const void* in, std::size_t total, void* out, std::size_t first, std::size_t n,
                 int type, int operation) {
  const std::size_t element = nccl_element_bytes(type);
  const auto all = meet(k, message_of(in, total * element));
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

// As bytes torch sends Python objects (torch/distributed/distributed_c10d.py, _object_to_tensor); ncclInt8 lies below
// it.
constexpr int kUint8 = 1;

// Long ones go in parts, where the host wrote them.
bool may_go_in_parts(const Communicator& k, std::size_t bytes, int type) {
  return k.exchange != nullptr && type <= kUint8 && !is_short(k, bytes);
}

// Whether a collective's messages really go: short ones, and bytes that some rank's host wrote, which all ranks tell
// each other first. `in`: null where this rank sends nothing.
bool is_sent(Communicator& k, const void* in, std::size_t bytes, int type) {
  if (!may_go_in_parts(k, bytes, type)) {
    return is_short(k, bytes);
  }
  const auto all = meet(k, announcement(in, in == nullptr ? 0 : bytes));
  return std::any_of(all.begin(), all.end(), [](const Exchange::Message& m) { return m.known; });
}

// Calls `part(begin, bytes)` until it gives false.
template <class Part>
void in_parts(std::size_t bytes, Part&& part) {
  std::size_t begin = 0;
  do {
    const std::size_t n = std::min(bytes - begin, Exchange::kMost);
    if (!part(begin, n)) {
      return;
    }
    begin += n;
  } while (begin < bytes);
}

// ---- A rank that plays alone.

void gather(const Communicator& c, const void* in, void* out, std::size_t bytes) {
  for (int r = 0; r < c.certain; ++r) {
    copy(at(out, static_cast<std::size_t>(r) * bytes), in, bytes);
  }
}

}  // namespace

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
void gather_all(Communicator& k, const void* in, void* out, std::size_t bytes, int type) {
  if (!is_sent(k, in, bytes, type)) {
    if (out != nullptr) {
      gather(k, in, out, bytes);
    }
    return;
  }
  in_parts(bytes, [&](std::size_t begin, std::size_t n) {
    const auto all = meet(k, message_of(at(in, begin), n));
    for (std::size_t r = 0; r < all.size() && out != nullptr; ++r) {
      deliver(at(out, r * bytes + begin), all[r].bytes.data(), n, all[r].known);
    }
    return !all.empty();
  });
}

}  // namespace

QLP_EXPORT int ncclAllGather(const void* in, void* out, std::size_t n, int type, void* c, void* stream) {
  return collective(__func__, n, type, c, stream,
                    [=](Communicator& k, std::size_t bytes) { gather_all(k, in, out, bytes, type); });
}

QLP_EXPORT int ncclGather(const void* in, void* out, std::size_t n, int type, int root, void* c, void* stream) {
  return collective(__func__, n, type, c, stream, [=](Communicator& k, std::size_t bytes) {
    gather_all(k, in, k.rank == root ? out : nullptr, bytes, type);
  });
}

QLP_EXPORT int ncclBroadcast(const void* in, void* out, std::size_t n, int type, int root, void* c, void* stream) {
  return collective(__func__, n, type, c, stream, [=](Communicator& k, std::size_t bytes) {
    if (!is_sent(k, k.rank == root ? in : nullptr, bytes, type)) {
      copy(out, in == nullptr ? out : in, bytes);
      return;
    }
    in_parts(bytes, [&](std::size_t begin, std::size_t length) {
      const bool sends = k.rank == root;
      const auto all = meet(k, message_of(sends ? at(in, begin) : in, sends ? length : 0));
      if (!all.empty()) {
        const Exchange::Message& m = all[static_cast<std::size_t>(root)];
        deliver(at(out, begin), m.bytes.data(), length, m.known);
      }
      return !all.empty();
    });
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
      const auto all = meet(k, message_of(in, k.rank == root ? whole : 0));
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
    const auto all = meet(k, message_of(in, whole));
    for (std::size_t r = 0; r < all.size(); ++r) {
      deliver(at(out, r * bytes), all[r].bytes.data() + mine, bytes, all[r].known);
    }
  });
}

// Between two ranks. What a group sends and what it receives goes on at the same time, as ranks may send each other
// more than waits in a mailbox.
namespace {

using Transfers = std::vector<std::function<void()>>;

void run(const Transfers& transfers) {
  for (const auto& transfer : transfers) {
    transfer();
  }
}

struct Group {
  int depth = 0;
  Transfers sends;
  Transfers receives;
};

Group& group() {
  static thread_local Group the_group;
  return the_group;
}

void send_to(Communicator& k, int peer, const void* in, std::size_t bytes, int type) {
  const auto send = [&](const Exchange::Message& message) {
    const bool sent = k.exchange->send(peer, message);
    if (!sent) {
      k.error = kRemoteError;
    }
    return sent;
  };
  if (is_short(k, bytes)) {
    send(message_of(in, bytes));
  } else if (may_go_in_parts(k, bytes, type)) {
    const Exchange::Message first = announcement(in, bytes);
    if (send(first) && first.known) {
      in_parts(bytes, [&](std::size_t begin, std::size_t n) { return send(message_of(at(in, begin), n)); });
    }
  }
}

void receive_from(Communicator& k, int peer, void* out, std::size_t bytes, int type) {
  const auto receive = [&](Exchange::Message& message) {
    const bool received = k.exchange->receive(peer, message);
    if (!received) {
      k.error = kRemoteError;
    }
    return received;
  };
  const auto receive_part = [&](std::size_t begin, std::size_t n) {
    Exchange::Message message;
    if (!receive(message)) {
      return false;
    }
    message.bytes.resize(n);
    deliver(at(out, begin), message.bytes.data(), n, message.known);
    return true;
  };
  if (is_short(k, bytes)) {
    receive_part(0, bytes);
    return;
  }
  Exchange::Message first;
  if (may_go_in_parts(k, bytes, type) && receive(first) && first.known) {
    in_parts(bytes, receive_part);
  } else {
    deliver(out, nullptr, bytes, false);
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
      const Transfers sends = std::exchange(g.sends, {});
      const Transfers receives = std::exchange(g.receives, {});
      std::thread sender;
      if (receives.empty()) {
        run(sends);
      } else if (!sends.empty()) {
        sender = std::thread(run, std::cref(sends));
      }
      run(receives);
      if (sender.joinable()) {
        sender.join();
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
    if (group().depth > 0) {
      group().sends.emplace_back([&k, peer, in, bytes, type] { send_to(k, peer, in, bytes, type); });
    } else {
      send_to(k, peer, in, bytes, type);
    }
  });
}

// What a peer would send nobody knows when this rank plays alone: it reads as zero.
QLP_EXPORT int ncclRecv(void* out, std::size_t n, int type, int peer, void* c, void* stream) {
  return collective(__func__, n, type, c, stream, [=](Communicator& k, std::size_t bytes) {
    if (group().depth > 0) {
      group().receives.emplace_back([&k, peer, out, bytes, type] { receive_from(k, peer, out, bytes, type); });
    } else {
      receive_from(k, peer, out, bytes, type);
    }
  });
}
