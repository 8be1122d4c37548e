#include "nullgpu/exchange.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <sched.h>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace nullgpu {
namespace {

constexpr std::size_t kLetters = 8;  // that wait between two ranks

struct Letter {
  std::size_t length;
  int known;
  unsigned char bytes[Exchange::kMost];
};

void write_letter(Letter& letter, const Exchange::Message& message) {
  letter.length = std::min(message.bytes.size(), Exchange::kMost);
  letter.known = static_cast<int>(message.known);
  std::copy_n(message.bytes.data(), letter.length, letter.bytes);
}

void read_letter(const Letter& letter, Exchange::Message& message) {
  message.bytes.assign(letter.bytes, letter.bytes + letter.length);
  message.known = letter.known != 0;
}

// A collective's letters of this round and the one before: a rank that has written round n has read round n - 1.
struct Place {
  std::atomic<int> process;
  std::atomic<std::uint64_t> round;
  Letter letters[2];
};

struct Mailbox {
  std::atomic<std::uint64_t> posted;
  std::atomic<std::uint64_t> taken;
  Letter letters[kLetters];
};

// Ended, or about to be: dead and not yet waited for.
bool is_gone(int process) {
  if (process <= 0) {
    return false;
  }
  if (kill(process, 0) != 0 && errno == ESRCH) {
    return true;
  }
  char text[512] = {};
  const int file = open(("/proc/" + std::to_string(process) + "/stat").c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    return false;
  }
  const ssize_t n = read(file, text, sizeof text - 1);
  close(file);
  const char* const after_name = n > 0 ? std::strrchr(text, ')') : nullptr;
  return after_name != nullptr && std::strncmp(after_name, ") Z", 3) == 0;
}

}  // namespace

// Zero pages of a file without a name, once all are there: places of all ranks, then a mailbox for each ordered pair.
struct Exchange::Shared {
  Place& place(int rank) { return reinterpret_cast<Place*>(this)[rank]; }
  Mailbox& mailbox(int size, int from, int to) { return reinterpret_cast<Mailbox*>(&place(size))[from * size + to]; }
};

Exchange::Exchange(Shared* shared, std::size_t bytes, int size, int rank)
    : shared_(shared), bytes_(bytes), size_(size), rank_(rank) {}

Exchange::~Exchange() {
  shared_->place(rank_).process.store(-1);  // left in peace
  munmap(shared_, bytes_);
}

template <class Ready>
bool Exchange::wait(Ready&& ready) {
  for (unsigned turn = 0; !ready(); ++turn) {
    if (turn < 100) {
      sched_yield();
      continue;
    }
    const timespec pause{0, 200000};
    nanosleep(&pause, nullptr);
    for (int r = 0; turn % 256 == 0 && r < size_; ++r) {
      if (is_gone(shared_->place(r).process.load())) {
        return ready();
      }
    }
  }
  return true;
}

std::unique_ptr<Exchange> Exchange::join(std::uint64_t token, int size, int rank) {
  const std::string name = "/dev/shm/nullgpu-" + std::to_string(token);
  const auto ranks = static_cast<std::size_t>(size);
  const std::size_t bytes = ranks * sizeof(Place) + ranks * ranks * sizeof(Mailbox);
  const int file = open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0) {
    return nullptr;
  }
  void* const p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  close(file);
  if (p == MAP_FAILED) {
    return nullptr;
  }
  std::unique_ptr<Exchange> exchange(new Exchange(static_cast<Shared*>(p), bytes, size, rank));
  exchange->shared_->place(rank).process.store(getpid());
  const bool all = exchange->wait([&] {
    for (int r = 0; r < size; ++r) {
      if (exchange->shared_->place(r).process.load() == 0) {
        return false;
      }
    }
    return true;
  });
  unlink(name.c_str());
  return all ? std::move(exchange) : nullptr;
}

bool Exchange::gather(const Message& mine, std::vector<Message>& all) {
  ++round_;
  Place& own = shared_->place(rank_);
  write_letter(own.letters[round_ % 2], mine);
  own.round.store(round_, std::memory_order_release);
  all.resize(static_cast<std::size_t>(size_));
  for (int r = 0; r < size_; ++r) {
    Place& place = shared_->place(r);
    if (!wait([&] { return place.round.load(std::memory_order_acquire) >= round_; })) {
      return false;
    }
    read_letter(place.letters[round_ % 2], all[static_cast<std::size_t>(r)]);
  }
  return true;
}

bool Exchange::send(int peer, const Message& message) {
  Mailbox& box = shared_->mailbox(size_, rank_, peer);
  const std::uint64_t posted = box.posted.load(std::memory_order_relaxed);
  if (!wait([&] { return posted - box.taken.load(std::memory_order_acquire) < kLetters; })) {
    return false;
  }
  write_letter(box.letters[posted % kLetters], message);
  box.posted.store(posted + 1, std::memory_order_release);
  return true;
}

bool Exchange::receive(int peer, Message& message) {
  Mailbox& box = shared_->mailbox(size_, peer, rank_);
  const std::uint64_t taken = box.taken.load(std::memory_order_relaxed);
  if (!wait([&] { return box.posted.load(std::memory_order_acquire) > taken; })) {
    return false;
  }
  read_letter(box.letters[taken % kLetters], message);
  box.taken.store(taken + 1, std::memory_order_release);
  return true;
}

}  // namespace nullgpu
