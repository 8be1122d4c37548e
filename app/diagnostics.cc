#include "app/diagnostics.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <system_error>
#include <vector>

#include "app/terminal.h"
#include "base/text.h"
#include "report/format.h"

namespace qlp::app {
namespace {

constexpr std::size_t kWidth = 100;  ///< longest part of a source line that is shown

/// The lines of files, each file read once.
class SourceLines {
 public:
  std::optional<std::string> line(const Position& position) {
    if (position.file.empty() || position.line == 0) return std::nullopt;
    auto [entry, is_new] = files_.try_emplace(position.file);
    if (is_new) {
      std::ifstream file;
      std::error_code none;
      if (std::filesystem::is_regular_file(position.file, none)) file.open(position.file);  // a pipe is read already
      for (std::string text; std::getline(file, text);) entry->second.push_back(std::move(text));
    }
    const auto& lines = entry->second;
    return position.line <= lines.size() ? std::optional{lines[position.line - 1]} : std::nullopt;
  }

 private:
  std::map<std::string, std::vector<std::string>> files_;
};

/// Columns count letters, not bytes.
std::string excerpt(std::string_view line, const Position& position, bool colors) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  const std::string safe = for_terminal(line);
  std::vector<std::string_view> letters;
  for (std::string_view rest = safe; !rest.empty(); rest.remove_prefix(letters.back().size()))
    letters.push_back(rest.substr(0, letter_length(rest)));
  const std::size_t at = position.column == 0 ? 0 : std::min<std::size_t>(position.column - 1, letters.size());
  const std::size_t first = at > kWidth * 2 / 3 ? at - kWidth / 2 : 0;
  std::string part, padding;
  for (std::size_t i = first; i < std::min(letters.size(), first + kWidth); ++i) {
    part += letters[i];
    if (i < at) padding += letters[i] == "\t" ? '\t' : ' ';
  }
  std::string number = std::to_string(position.line);
  number.insert(0, number.size() < 5 ? 5 - number.size() : 0, ' ');
  std::string out = number + " | " + part + "\n";
  if (position.column == 0) return out;
  return out + std::string(number.size(), ' ') + " | " + padding + colored("^", Color::good, colors) + "\n";
}

std::string place(const Position& position) {
  if (position.file.empty()) return "qlora-plan: ";
  std::string text = position.file + ":";
  if (position.line != 0) text += std::to_string(position.line) + ":";
  if (position.line != 0 && position.column != 0) text += std::to_string(position.column) + ":";
  return text + " ";
}

std::string severity_text(Severity severity, bool colors) {
  switch (severity) {
    case Severity::note:
      return colored("note:", Color::faint, colors);
    case Severity::warning:
      return colored("warning:", Color::strong, colors);
    case Severity::error:
      break;
  }
  return colored("error:", Color::bad, colors);
}

}  // namespace

std::string diagnostics_text(const Diagnostics& diagnostics, bool colors) {
  SourceLines source;
  std::string out;
  for (const auto& d : diagnostics) {
    std::string message = severity_text(d.severity, colors) + " ";
    if (!d.key_path.empty()) message += for_terminal(d.key_path) + ": ";
    message += for_terminal(d.message);
    if (!d.hint.empty()) message += " (" + for_terminal(d.hint) + ")";
    out += for_terminal(place(d.position)) + message + "\n";
    if (auto line = source.line(d.position)) out += excerpt(*line, d.position, colors);
  }
  return out;
}

}  // namespace qlp::app
