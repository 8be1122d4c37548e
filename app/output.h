// Results go to stdout or, whole or not at all, to a file.
#pragma once

#include <string>
#include <string_view>

namespace qlp::app {

/// Writes the text to the file, by way of a temporary one beside it, or to stdout where the path is "-".
/// Throws OutputError with the reason.
void write_result(const std::string& path, std::string_view text);
void write_stdout(std::string_view text);
void write_stderr(std::string_view text);

struct OutputError {
  std::string message;
};

}  // namespace qlp::app
