// A growing sequence that never moves what it holds.
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>
#include <vector>

namespace qlp {

/// Chunks of 2^13 elements: growing copies nothing, and touches each page once.
template <class T>
class ChunkedVector {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  void push_back(const T& value) {
    if (size_ % kChunk == 0) [[unlikely]]
      grow();
    last_[size_ % kChunk] = value;
    ++size_;
  }
  const T& operator[](std::size_t i) const { return chunks_[i / kChunk][i % kChunk]; }
  std::size_t size() const { return size_; }

 private:
  static constexpr std::size_t kChunk = std::size_t{1} << 13;
  // Out of line, so that push_back is short enough to be inlined.
  [[gnu::noinline]] void grow() { last_ = chunks_.emplace_back(std::make_unique_for_overwrite<T[]>(kChunk)).get(); }

  std::vector<std::unique_ptr<T[]>> chunks_;
  T* last_ = nullptr;  ///< the chunk that is being filled
  std::size_t size_ = 0;
};

}  // namespace qlp
