#include "nullgpu/objects.h"

#include <algorithm>
#include <cstring>

#include "nullgpu/books.h"
#include "nullgpu/entry.h"

namespace nullgpu {

void Object::set(std::int64_t attribute, const void* value, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto* from = static_cast<const unsigned char*>(value);
  attributes[attribute].assign(from, from + bytes);
}

std::size_t Object::get(std::int64_t attribute, void* out, std::size_t room) const {
  const std::lock_guard lock(mutex_);
  const auto found = attributes.find(attribute);
  if (found == attributes.end()) {
    return 0;
  }
  if (out != nullptr) {
    std::memcpy(out, found->second.data(), std::min(room, found->second.size()));
  }
  return found->second.size();
}

int create(const char* name, void** handle) {
  return library(name, [&] {
    *handle = new Object;
    return ok;
  });
}

int destroy(const char* name, void* handle) {
  return library(name, [&] {
    delete static_cast<Object*>(handle);
    return ok;
  });
}

int accept(const char* name) {
  return library(name, [] { return ok; });
}

void zero_result(void* result, std::size_t bytes) {
  if (result == nullptr) {
    return;
  }
  Block block{};
  Books& books = Books::get();
  if (books.find(result, block) && block.on_device()) {
    const std::lock_guard guard(books);
    const auto begin = reinterpret_cast<std::uintptr_t>(result);
    books.known().forget(begin, begin + bytes);
    return;
  }
  std::memset(result, 0, bytes);
}

}  // namespace nullgpu
