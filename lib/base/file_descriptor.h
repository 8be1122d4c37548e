// An open file that is closed with its owner.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace qlp {

class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int number) : number_(number) {}
  FileDescriptor(FileDescriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~FileDescriptor() { close(); }

  int number() const { return number_; }
  bool is_open() const { return number_ >= 0; }
  void close();

 private:
  int number_ = -1;
};

/// A pipe whose ends no program inherits that is not given them.
struct Pipe {
  FileDescriptor read_end, write_end;
};

/// The error is the system's reason.
Result<Pipe, std::string> open_pipe();

/// Reads what is there without waiting, and appends it. False at the end of the file, or where it cannot be read.
bool read_available(FileDescriptor& file, std::string& text);

/// Writes everything, waiting where it must. False where nobody reads; SIGPIPE must be ignored for that.
bool write_all(int file, std::string_view text);

}  // namespace qlp
