// What the readers of one input find, gathered so that all errors are told at once.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/diagnostic.h"

namespace qlp {

/// A key of the input: its path for people, and where it is.
struct KeyPlace {
  std::string path;  ///< "training.seq_len"
  Position position;
};

class Findings {
 public:
  void error(std::string code, KeyPlace at, std::string message, std::string hint = "") {
    add(Severity::error, std::move(code), std::move(at), std::move(message), std::move(hint));
  }
  void warning(std::string code, KeyPlace at, std::string message, std::string hint = "") {
    add(Severity::warning, std::move(code), std::move(at), std::move(message), std::move(hint));
  }
  void note(std::string code, KeyPlace at, std::string message) {
    add(Severity::note, std::move(code), std::move(at), std::move(message), "");
  }
  void append(Diagnostics more) {
    for (auto& d : more) list_.push_back(std::move(d));
  }

  bool has_errors() const { return qlp::has_errors(list_); }
  const Diagnostics& list() const { return list_; }
  Diagnostics take() { return std::move(list_); }
  /// What is to be mended in the input: without what is merely told.
  Diagnostics take_wrong() {
    std::erase_if(list_, [](const Diagnostic& d) { return d.severity == Severity::note; });
    return take();
  }

 private:
  void add(Severity severity, std::string code, KeyPlace at, std::string message, std::string hint) {
    list_.push_back(
        {severity, std::move(code), std::move(message), std::move(at.path), std::move(at.position), std::move(hint)});
  }

  Diagnostics list_;
};

}  // namespace qlp
