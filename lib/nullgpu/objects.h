// Handles and descriptors of the libraries: whatever is set is given back when it is asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

namespace nullgpu {

struct Object {
  void* stream = nullptr;
  std::map<std::int64_t, std::vector<unsigned char>> attributes;

  void set(std::int64_t attribute, const void* value, std::size_t bytes);
  /// Copies at most `room` bytes; how many there are. 0: never set.
  std::size_t get(std::int64_t attribute, void* out, std::size_t room) const;
  template <class Value>
  void put(std::int64_t attribute, Value value) {
    set(attribute, &value, sizeof value);
  }
  template <class Value>
  Value value(std::int64_t attribute, Value otherwise) const {
    Value result = otherwise;
    return get(attribute, &result, sizeof result) == sizeof result ? result : otherwise;
  }

 private:
  mutable std::mutex mutex_;
};

/// The calls, by the name of their entry point, that make and end one, and one that is only acknowledged.
int create(const char* name, void** handle);
int destroy(const char* name, void* handle);
int accept(const char* name);

inline Object& object(void* handle) { return *static_cast<Object*>(handle); }

/// A scalar result of a library: zero on the host, forgotten on the device.
void zero_result(void* result, std::size_t bytes);

}  // namespace nullgpu
