#include "app/diagnostics.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <optional>
#include <vector>

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
      std::ifstream file{position.file};
      for (std::string text; std::getline(file, text);) entry->second.push_back(std::move(text));
    }
    const auto& lines = entry->second;
    return position.line <= lines.size() ? std::optional{lines[position.line - 1]} : std::nullopt;
  }

 private:
  std::map<std::string, std::vector<std::string>> files_;
};

/// Text from a file must not steer the terminal.
std::string harmless(std::string text) {
  std::ranges::replace_if(
      text, [](unsigned char c) { return (c < 0x20 && c != '\t' && c != '\n') || c == 0x7f; }, '?');
  return text;
}

std::string excerpt(std::string line, const Position& position, bool colors) {
  std::size_t at = position.column == 0 ? 0 : std::min<std::size_t>(position.column - 1, line.size());
  line = harmless(std::move(line));
  if (at > kWidth * 2 / 3) {
    const std::size_t cut = at - kWidth / 2;
    line.erase(0, cut);
    at -= cut;
  }
  line.resize(std::min(line.size(), kWidth));
  std::string number = std::to_string(position.line);
  number.insert(0, number.size() < 5 ? 5 - number.size() : 0, ' ');
  std::string out = number + " | " + line + "\n";
  if (position.column == 0) return out;
  std::string padding = line.substr(0, at);
  std::ranges::replace_if(
      padding, [](char c) { return c != '\t'; }, ' ');
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
    if (!d.key_path.empty()) message += harmless(d.key_path) + ": ";
    message += harmless(d.message);
    if (!d.hint.empty()) message += " (" + harmless(d.hint) + ")";
    out += harmless(place(d.position)) + message + "\n";
    if (auto line = source.line(d.position)) out += excerpt(std::move(*line), d.position, colors);
  }
  return out;
}

}  // namespace qlp::app
