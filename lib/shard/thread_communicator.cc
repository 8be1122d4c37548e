#include "shard/thread_communicator.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "tensor/number.h"

namespace qlp {
namespace {

std::string described(const char* kind, std::int64_t count, DType dtype) {
  return std::string(kind) + " of " + std::to_string(count) + " " + std::string(name_of(dtype));
}

std::size_t bytes_for(std::int64_t count, DType dtype) { return static_cast<std::size_t>(count) * size_of(dtype); }

const std::byte* element(const void* data, std::int64_t index, DType dtype) {
  return static_cast<const std::byte*>(data) + bytes_for(index, dtype);
}

/// Elements `first` to `first + count` of the ranks' `in`, joined in the order of ranks, densely in `out`.
void join(const std::vector<ThreadHub::Ticket>& tickets, std::int64_t first, std::int64_t count, DType dtype,
          ReduceOp op, std::vector<std::byte>& out) {
  out.resize(bytes_for(count, dtype));
  for (std::int64_t i = 0; i < count; ++i) {
    double sum = load_number(element(tickets.front().in, first + i, dtype), dtype);
    for (std::size_t rank = 1; rank < tickets.size(); ++rank) {
      const double value = load_number(element(tickets[rank].in, first + i, dtype), dtype);
      sum = op == ReduceOp::max ? std::max(sum, value) : sum + value;
    }
    if (op == ReduceOp::average) sum /= static_cast<double>(tickets.size());
    store_number(out.data() + bytes_for(i, dtype), dtype, sum);
  }
}

}  // namespace

const std::vector<ThreadHub::Ticket>& ThreadHub::meet(const RankGroup& group, std::int64_t rank, Ticket ticket) {
  return meet({rank_at(group, rank, 0), group.size, group.stride}, group.size, place_in(group, rank),
              std::move(ticket));
}

const std::vector<ThreadHub::Ticket>& ThreadHub::meet(const Key& key, std::int64_t size, std::int64_t place,
                                                      Ticket ticket) {
  std::unique_lock lock(mutex_);
  if (stopped_) throw RankStopped();
  Room& room = rooms_[key];
  room.tickets.resize(static_cast<std::size_t>(size));
  room.tickets[static_cast<std::size_t>(place)] = std::move(ticket);
  const std::uint64_t meeting = room.meetings;
  if (++room.arrived == size) {
    room.arrived = 0, ++room.meetings;
    std::swap(room.all, room.tickets);
    for (const Ticket& other : room.all)
      if (other.what != room.all.front().what)
        room.mistake = "ranks of one group meet for " + room.all.front().what + " and for " + other.what;
    changed_.notify_all();
  } else {
    changed_.wait(lock, [&] { return room.meetings != meeting || stopped_; });
    if (room.meetings == meeting) throw RankStopped();
  }
  if (!room.mistake.empty()) throw std::logic_error(room.mistake);
  return room.all;
}

void ThreadHub::post(std::int64_t from, std::int64_t to, std::string what, std::vector<std::byte> bytes) {
  const std::lock_guard lock(mutex_);
  if (stopped_) throw RankStopped();
  messages_[{from, to}].push_back({std::move(what), std::move(bytes)});
  changed_.notify_all();
}

std::vector<std::byte> ThreadHub::fetch(std::int64_t from, std::int64_t to, const std::string& what) {
  std::unique_lock lock(mutex_);
  std::deque<Message>& waiting = messages_[{from, to}];
  changed_.wait(lock, [&] { return !waiting.empty() || stopped_; });
  if (waiting.empty()) throw RankStopped();
  const Message message = std::move(waiting.front());
  waiting.pop_front();
  if (message.what != what) throw std::logic_error("a " + message.what + " came where a " + what + " was expected");
  return message.bytes;
}

void ThreadHub::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
}

const std::vector<ThreadHub::Ticket>& ThreadCommunicator::meet(const RankGroup& group, std::string what, const void* in,
                                                               void* out, const Counts* to) {
  return hub_.meet(group, rank_, {std::move(what), in, out, to});
}

// All come with what they have, read what they need of the others, and leave together, so that nobody writes to what
// another still reads.

void ThreadCommunicator::all_gather(StreamId, const RankGroup& group, void* out, const void* in, std::int64_t count,
                                    DType dtype) {
  const std::size_t bytes = bytes_for(count, dtype);
  auto* to = static_cast<std::byte*>(out);
  for (const auto& ticket : meet(group, described("all_gather", count, dtype), in, out)) {
    if (ticket.in != to) std::memmove(to, ticket.in, bytes);
    to += bytes;
  }
  barrier(group);
}

void ThreadCommunicator::reduce_scatter(StreamId, const RankGroup& group, void* out, const void* in, std::int64_t count,
                                        DType dtype, ReduceOp op) {
  std::vector<std::byte> part;
  const auto& tickets = meet(group, described("reduce_scatter", count, dtype), in, out);
  join(tickets, place_in(group, rank_) * count, count, dtype, op, part);
  barrier(group);
  std::memcpy(out, part.data(), part.size());
}

void ThreadCommunicator::all_reduce(StreamId, const RankGroup& group, void* data, std::int64_t count, DType dtype,
                                    ReduceOp op) {
  std::vector<std::byte> whole;
  join(meet(group, described("all_reduce", count, dtype), data, data), 0, count, dtype, op, whole);
  barrier(group);
  std::memcpy(data, whole.data(), whole.size());
}

void ThreadCommunicator::reduce(StreamId, const RankGroup& group, void* data, std::int64_t count, DType dtype,
                                ReduceOp op, std::int64_t root) {
  std::vector<std::byte> whole;
  const auto& tickets = meet(group, described("reduce", count, dtype), data, data);
  if (place_in(group, rank_) == root) join(tickets, 0, count, dtype, op, whole);
  barrier(group);
  if (!whole.empty()) std::memcpy(data, whole.data(), whole.size());
}

void ThreadCommunicator::broadcast(StreamId, const RankGroup& group, void* data, std::int64_t count, DType dtype,
                                   std::int64_t root) {
  const auto& tickets = meet(group, described("broadcast", count, dtype), data, data);
  if (place_in(group, rank_) != root)
    std::memcpy(data, tickets[static_cast<std::size_t>(root)].in, bytes_for(count, dtype));
  barrier(group);
}

void ThreadCommunicator::all_to_all(StreamId, const RankGroup& group, void* out, const Counts& from, const void* in,
                                    const Counts& to, DType dtype) {
  const auto own = static_cast<std::size_t>(place_in(group, rank_));
  const auto& tickets = meet(group, "all_to_all of " + std::string(name_of(dtype)), in, out, &to);
  auto* next = static_cast<std::byte*>(out);
  for (std::size_t place = 0; place < tickets.size(); ++place) {
    const Counts& sent = *tickets[place].to;
    if (sent.at(own) != from.at(place)) throw std::logic_error("an all_to_all of which not all comes that is awaited");
    const std::int64_t start = std::accumulate(sent.begin(), sent.begin() + static_cast<std::ptrdiff_t>(own), 0LL);
    const std::size_t bytes = bytes_for(from[place], dtype);
    if (bytes) std::memcpy(next, element(tickets[place].in, start, dtype), bytes);
    next += bytes;
  }
  barrier(group);
}

void ThreadCommunicator::send(StreamId, const RankGroup& group, const void* data, std::int64_t count, DType dtype,
                              std::int64_t to) {
  const auto* const from = static_cast<const std::byte*>(data);
  hub_.post(rank_, rank_at(group, rank_, to), described("message", count, dtype),
            {from, from + bytes_for(count, dtype)});
}

void ThreadCommunicator::recv(StreamId, const RankGroup& group, void* data, std::int64_t count, DType dtype,
                              std::int64_t from) {
  const auto bytes = hub_.fetch(rank_at(group, rank_, from), rank_, described("message", count, dtype));
  std::memcpy(data, bytes.data(), bytes.size());
}

void ThreadCommunicator::exchange(StreamId stream, const RankGroup& group, const void* in, std::int64_t to, void* out,
                                  std::int64_t from, std::int64_t count, DType dtype) {
  send(stream, group, in, count, dtype, to);
  recv(stream, group, out, count, dtype, from);
}

void ThreadCommunicator::barrier(const RankGroup& group) { meet(group, "barrier", nullptr, nullptr); }

}  // namespace qlp
