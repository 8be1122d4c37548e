// What a plan or a stack does not run, said as an error.
#pragma once

#include <string>
#include <utility>

#include "base/diagnostic.h"

namespace qlp {

inline Diagnostic refusal(std::string code, std::string message, std::string key_path, std::string hint) {
  Diagnostic out;
  out.code = std::move(code), out.message = std::move(message);
  out.key_path = std::move(key_path), out.hint = std::move(hint);
  return out;
}

}  // namespace qlp
