// Shared ownership with a count in the object, freed at the moment the last reference goes. Not for use across threads.
#pragma once

#include <cstdint>
#include <utility>

namespace qlp {

/// Base of objects owned through Ref.
class RefCounted {
 public:
  RefCounted() = default;
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;
  virtual ~RefCounted() = default;

  std::uint32_t use_count() const { return count_; }

 private:
  template <class T>
  friend class Ref;
  mutable std::uint32_t count_ = 0;
};

template <class T>
class Ref {
 public:
  Ref() = default;
  Ref(std::nullptr_t) {}  // NOLINT(google-explicit-constructor): as std::shared_ptr
  explicit Ref(T* object) : object_(object) { add(); }
  Ref(const Ref& other) : object_(other.object_) { add(); }
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  template <class U>
  Ref(Ref<U> other) : object_(other.detach()) {}  // NOLINT(google-explicit-constructor): of a base class
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() { drop(); }

  T* get() const { return object_; }
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }
  explicit operator bool() const { return object_ != nullptr; }
  void reset() { drop(), object_ = nullptr; }
  /// Gives up the pointer without dropping the reference.
  T* detach() { return std::exchange(object_, nullptr); }
  friend bool operator==(const Ref& a, const Ref& b) { return a.object_ == b.object_; }

 private:
  void add() const {
    if (object_) ++object_->count_;
  }
  void drop() const {
    if (object_ && --object_->count_ == 0) delete object_;
  }
  T* object_ = nullptr;
};

template <class T, class... Args>
Ref<T> make_ref(Args&&... args) {
  return Ref<T>(new T(std::forward<Args>(args)...));
}

}  // namespace qlp
