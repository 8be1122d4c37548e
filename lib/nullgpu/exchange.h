// What ranks that are real processes of one machine tell each other (NULLGPU_RANKS=real): small messages through memory
// that they share. A collective waits for all of its ranks, as a real one does; a rank that has died is noticed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace nullgpu {

/// One rank's place in a communicator. Calls of one object are not synchronised, like those of a communicator.
class Exchange {
 public:
  /// Meets all ranks of that communicator. Null: the memory cannot be had, or a rank has died.
  static std::unique_ptr<Exchange> join(std::uint64_t token, int size, int rank);
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  ~Exchange();

  struct Message {
    std::vector<unsigned char> bytes;
    bool known = false;  // the host wrote it
  };
  /// The longest message.
  static constexpr std::size_t kMost = std::size_t{64} << 10U;

  /// Every rank's message, mine among them. False: a rank has died.
  bool gather(const Message& mine, std::vector<Message>& all);
  bool send(int peer, const Message& message);
  bool receive(int peer, Message& message);

 private:
  struct Shared;
  Exchange(Shared* shared, std::size_t bytes, int size, int rank);
  template <class Ready>
  bool wait(Ready&& ready);

  Shared* shared_;
  std::size_t bytes_;
  int size_;
  int rank_;
  std::uint64_t round_ = 0;
};

}  // namespace nullgpu
