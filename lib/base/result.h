// A value or the reasons why there is none; the member names are those of std::expected (C++23).
#pragma once

#include <cassert>
#include <utility>
#include <variant>

#include "base/diagnostic.h"

namespace qlp {

/// Marks a value as the error of a Result.
template <class E>
struct Unexpected {
  E error;
};
template <class E>
Unexpected(E) -> Unexpected<E>;

template <class T, class E = Diagnostics>
class Result {  // NOLINT(bugprone-exception-escape): std::variant moves what it holds, or throws nothing
 public:
  // NOLINTBEGIN(google-explicit-constructor): a function returns the value, or Unexpected, as it is.
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Unexpected<E> failure) : state_(std::in_place_index<1>, std::move(failure.error)) {}
  // NOLINTEND(google-explicit-constructor)

  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }

  T& value() { return assert(has_value()), *std::get_if<0>(&state_); }
  const T& value() const { return assert(has_value()), *std::get_if<0>(&state_); }
  E& error() { return assert(!has_value()), *std::get_if<1>(&state_); }
  const E& error() const { return assert(!has_value()), *std::get_if<1>(&state_); }

  T& operator*() { return value(); }
  const T& operator*() const { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  std::variant<T, E> state_;
};

}  // namespace qlp
