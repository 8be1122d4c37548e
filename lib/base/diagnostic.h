// What the program tells people about their input or their plan: one message with its place and a way out.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace qlp {

enum class Severity : std::uint8_t { note, warning, error };

/// A place in an input file; line and column count from 1, 0 where unknown.
struct Position {
  std::string file;
  std::uint32_t line = 0;
  std::uint32_t column = 0;
};

struct Diagnostic {
  Severity severity = Severity::error;
  std::string code;      ///< stable, kebab-case: "unknown-key"
  std::string message;   ///< one sentence: what is wrong, and what was expected
  std::string key_path;  ///< "training.seq_len", empty where none applies
  Position position;
  std::string hint;  ///< did-you-mean, or the fix; may be empty
};

using Diagnostics = std::vector<Diagnostic>;

inline bool has_errors(const Diagnostics& diagnostics) {
  for (const auto& d : diagnostics)
    if (d.severity == Severity::error) return true;
  return false;
}

}  // namespace qlp
