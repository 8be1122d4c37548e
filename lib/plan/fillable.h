// A value of DeepSpeed's file that the Trainer fills in where it is "auto". Where the file has none, it stays
// DeepSpeed's own default (transformers integrations/deepspeed.py, fill_match).
#pragma once

#include <cstdint>
#include <variant>

namespace qlp {

enum class Unsaid : std::uint8_t { automatic, left_out };

template <class T>
using Fillable = std::variant<Unsaid, T>;

/// What DeepSpeed is given.
template <class T>
T filled_in(const Fillable<T>& value, T trainers, T deepspeeds) {
  if (const T* given = std::get_if<T>(&value)) return *given;
  return std::get<Unsaid>(value) == Unsaid::automatic ? trainers : deepspeeds;
}

}  // namespace qlp
