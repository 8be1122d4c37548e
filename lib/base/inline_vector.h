// A vector whose first N elements need no heap.
#pragma once

#include <cassert>
#include <cstddef>
#include <memory>
#include <new>
#include <utility>

namespace qlp {

template <class T, std::size_t N>
class InlineVector {
 public:
  InlineVector() = default;
  explicit InlineVector(std::size_t size) { resize(size); }
  InlineVector(InlineVector&& other) noexcept { take(other); }
  InlineVector& operator=(InlineVector&& other) noexcept {
    if (this != &other) clear(), release(), take(other);
    return *this;
  }
  InlineVector(const InlineVector& other) {
    reserve(other.size_);
    for (const T& x : other) push_back(x);
  }
  InlineVector& operator=(const InlineVector& other) {
    if (this != &other) *this = InlineVector(other);
    return *this;
  }
  ~InlineVector() { clear(), release(); }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](std::size_t i) { return assert(i < size_), data_[i]; }
  const T& operator[](std::size_t i) const { return assert(i < size_), data_[i]; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }

  template <class... Args>
  T& emplace_back(Args&&... args) {
    if (size_ == capacity_) reserve(capacity_ * 2);
    return *::new (static_cast<void*>(data_ + size_++)) T(std::forward<Args>(args)...);
  }
  void push_back(T value) { emplace_back(std::move(value)); }
  void resize(std::size_t size) {
    reserve(size);
    while (size_ < size) emplace_back();
    while (size_ > size) data_[--size_].~T();
  }
  /// Destroys from the first to the last, as std::vector does.
  void clear() {
    for (std::size_t i = 0; i < size_; ++i) data_[i].~T();
    size_ = 0;
  }
  void reserve(std::size_t capacity) {
    if (capacity <= capacity_) return;
    T* grown = std::allocator<T>().allocate(capacity);
    for (std::size_t i = 0; i < size_; ++i) {
      ::new (static_cast<void*>(grown + i)) T(std::move(data_[i]));
      data_[i].~T();
    }
    release();
    data_ = grown, capacity_ = capacity;
  }

 private:
  T* inline_data() { return std::launder(reinterpret_cast<T*>(buffer_)); }
  void release() {
    if (data_ != inline_data()) std::allocator<T>().deallocate(data_, capacity_);
    data_ = inline_data(), capacity_ = N;
  }
  void take(InlineVector& other) {
    if (other.data_ == other.inline_data()) {
      for (T& x : other) emplace_back(std::move(x));
      other.clear();
    } else {
      data_ = other.data_, size_ = other.size_, capacity_ = other.capacity_;
      other.data_ = other.inline_data(), other.size_ = 0, other.capacity_ = N;
    }
  }

  alignas(T) std::byte buffer_[N * sizeof(T)];
  T* data_ = inline_data();
  std::size_t size_ = 0;
  std::size_t capacity_ = N;
};

}  // namespace qlp
