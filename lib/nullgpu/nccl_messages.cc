#include <algorithm>

#include "nullgpu/books.h"
#include "nullgpu/copies.h"
#include "nullgpu/nccl_communicator.h"
#include "nullgpu/settings.h"

namespace nullgpu {

bool is_short(const Communicator& k, std::size_t bytes) {
  return k.exchange != nullptr && bytes <= std::min(Exchange::kMost, settings().copy_max);
}

Exchange::Message announcement(const void* in, std::size_t bytes) {
  Exchange::Message message;
  Books& books = Books::get();
  const std::lock_guard guard(books);
  Block block{};
  const auto begin = reinterpret_cast<std::uintptr_t>(in);
  message.known =
      bytes > 0 && (!books.find(in, block) || !block.on_device() || books.known().count(begin, begin + bytes) > 0);
  return message;
}

Exchange::Message message_of(const void* in, std::size_t bytes) {
  Exchange::Message message = announcement(in, bytes);
  message.bytes.resize(bytes);
  copy(message.bytes.data(), in, bytes);
  return message;
}

void deliver(void* out, const unsigned char* bytes, std::size_t n, bool known) {
  if (known) {
    copy(out, bytes, n);
  } else {
    const std::lock_guard guard(Books::get());
    const auto begin = reinterpret_cast<std::uintptr_t>(out);
    Books::get().known().forget(begin, begin + n);
  }
}

std::vector<Exchange::Message> meet(Communicator& k, const Exchange::Message& mine) {
  std::vector<Exchange::Message> all;
  if (!k.exchange->gather(mine, all)) {
    k.error = kRemoteError;
    all.clear();
  }
  return all;
}

}  // namespace nullgpu
