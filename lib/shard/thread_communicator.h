// The wire between ranks that are threads of one process: buffers are read where they lie. Sums are made in the order
// of ranks, so that a run gives the same numbers every time.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tensor/communicator.h"

namespace qlp {

/// Another rank has ended, and this one with it.
struct RankStopped : std::runtime_error {
  RankStopped() : std::runtime_error("another rank has ended") {}
};

/// What the ranks meet at; outlives their communicators.
class ThreadHub {
 public:
  /// What a rank brings to a meeting.
  struct Ticket {
    std::string what;  ///< alike on all ranks, or they have lost each other
    const void* in = nullptr;
    void* out = nullptr;
    const Counts* to = nullptr;  ///< elements of `in` for each place, where not all get as many
  };

  explicit ThreadHub(std::int64_t ranks) : ranks_(ranks) {}
  ThreadHub(const ThreadHub&) = delete;
  ThreadHub& operator=(const ThreadHub&) = delete;

  std::int64_t ranks() const { return ranks_; }
  /// Waits for all places of the group; gives the tickets of all, which stay until the group meets again. Throws
  /// RankStopped, or logic_error where the ranks have come for different things.
  const std::vector<Ticket>& meet(const RankGroup& group, std::int64_t rank, Ticket ticket);
  /// A message of one rank to another, of which there may be several on their way; nobody waits for it to arrive.
  void post(std::int64_t from, std::int64_t to, std::string what, std::vector<std::byte> bytes);
  /// The first that has not been fetched. Throws as meet() does.
  std::vector<std::byte> fetch(std::int64_t from, std::int64_t to, const std::string& what);
  /// Whoever waits, or comes to wait, is thrown out.
  void stop();

 private:
  using Key = std::tuple<std::int64_t, std::int64_t, std::int64_t>;  ///< first rank, size, stride
  struct Room {
    std::vector<Ticket> tickets, all;
    std::int64_t arrived = 0;
    std::uint64_t meetings = 0;
    std::string mistake;
  };
  const std::vector<Ticket>& meet(const Key& key, std::int64_t size, std::int64_t place, Ticket ticket);
  std::int64_t ranks_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<Key, Room> rooms_;
  struct Message {
    std::string what;
    std::vector<std::byte> bytes;
  };
  std::map<std::pair<std::int64_t, std::int64_t>, std::deque<Message>> messages_;  ///< by sender and receiver
  bool stopped_ = false;
};

class ThreadCommunicator final : public Communicator {
 public:
  ThreadCommunicator(ThreadHub& hub, std::int64_t rank) : hub_(hub), rank_(rank) {}

  std::int64_t rank() const override { return rank_; }
  void all_gather(StreamId stream, const RankGroup& group, void* out, const void* in, std::int64_t count,
                  DType dtype) override;
  void reduce_scatter(StreamId stream, const RankGroup& group, void* out, const void* in, std::int64_t count,
                      DType dtype, ReduceOp op) override;
  void all_reduce(StreamId stream, const RankGroup& group, void* data, std::int64_t count, DType dtype,
                  ReduceOp op) override;
  void reduce(StreamId stream, const RankGroup& group, void* data, std::int64_t count, DType dtype, ReduceOp op,
              std::int64_t root) override;
  void broadcast(StreamId stream, const RankGroup& group, void* data, std::int64_t count, DType dtype,
                 std::int64_t root) override;
  void all_to_all(StreamId stream, const RankGroup& group, void* out, const Counts& from, const void* in,
                  const Counts& to, DType dtype) override;
  void send(StreamId stream, const RankGroup& group, const void* data, std::int64_t count, DType dtype,
            std::int64_t to) override;
  void recv(StreamId stream, const RankGroup& group, void* data, std::int64_t count, DType dtype,
            std::int64_t from) override;
  void exchange(StreamId stream, const RankGroup& group, const void* in, std::int64_t to, void* out, std::int64_t from,
                std::int64_t count, DType dtype) override;
  void barrier(const RankGroup& group) override;

 private:
  const std::vector<ThreadHub::Ticket>& meet(const RankGroup& group, std::string what, const void* in, void* out,
                                             const Counts* to = nullptr);
  ThreadHub& hub_;
  std::int64_t rank_;
};

}  // namespace qlp
