#include "report/format.h"

#include <algorithm>
#include <array>
#include <cstdio>

namespace qlp {
namespace {

std::string fixed(double value, int decimals) {
  std::array<char, 64> buffer{};
  const int length = std::snprintf(buffer.data(), buffer.size(), "%.*f", decimals, value);
  return {buffer.data(), static_cast<std::size_t>(length)};
}

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
constexpr double kMiB = 1024.0 * 1024.0;

std::string_view code_of(Color color) {
  switch (color) {
    case Color::good:
      return "\x1b[32m";
    case Color::bad:
      return "\x1b[31m";
    case Color::faint:
      return "\x1b[2m";
    case Color::strong:
      return "\x1b[1m";
    case Color::plain:
      break;
  }
  return "";
}

bool is_number(std::string_view word) {
  return !word.empty() && std::ranges::all_of(word, [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

std::string gib(Bytes amount) { return fixed(static_cast<double>(amount.count()) / kGiB, 2); }
std::string gib(ByteDelta amount) { return fixed(static_cast<double>(amount.count()) / kGiB, 2); }
std::string mib(Bytes amount) { return fixed(static_cast<double>(amount.count()) / kMiB, 3); }

std::string three_digits(double value) {
  std::array<char, 64> buffer{};
  const int length = std::snprintf(buffer.data(), buffer.size(), value >= 1000 && value < 1e6 ? "%.0f" : "%.3g", value);
  return {buffer.data(), static_cast<std::size_t>(length)};
}

std::string compute_capability_text(std::uint32_t compute_capability) {
  return std::to_string(compute_capability / 10) + "." + std::to_string(compute_capability % 10);
}

std::string_view name_of(Severity severity) {
  if (severity == Severity::error) return "error";
  return severity == Severity::warning ? "warning" : "note";
}

std::string colored(std::string_view text, Color color, bool on) {
  if (!on || color == Color::plain) return std::string{text};
  return std::string{code_of(color)} + std::string{text} + "\x1b[0m";
}

std::string TextTable::text(bool colors) const {
  std::vector<std::size_t> widths;
  for (const auto& heading : headings_) widths.push_back(heading.size());
  for (const auto& row : rows_)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].text.size());

  std::string out;
  const auto line = [&](std::size_t columns, auto cell_at) {
    std::string blanks;  // held back so that no line ends in them
    for (std::size_t i = 0; i < columns; ++i) {
      const Cell& cell = cell_at(i);
      const std::string padding(widths[i] - cell.text.size(), ' ');
      if (i > 0) blanks += "  ";
      if (i >= left_) blanks += padding;
      if (!cell.text.empty()) {
        out += blanks + colored(cell.text, cell.color, colors);
        blanks.clear();
      }
      if (i < left_) blanks += padding;
    }
    out += '\n';
  };
  line(headings_.size(), [&](std::size_t i) { return Cell{headings_[i], Color::strong}; });
  for (const auto& row : rows_) line(row.size(), [&](std::size_t i) -> const Cell& { return row[i]; });
  return out;
}

std::string wrapped(std::string_view text, std::size_t indent, std::size_t width) {
  std::string out;
  std::size_t column = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (column > 0 && column + 1 + end > width) {
      out += '\n' + std::string(indent, ' ');
      column = indent;
    } else if (!out.empty()) {
      out += ' ';
      ++column;
    }
    out += text.substr(0, end);
    column += end;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::string without_layer(std::string_view module) {
  std::string out;
  while (!module.empty()) {
    const std::size_t end = std::min(module.find('.'), module.size());
    const auto word = module.substr(0, end);
    if (!out.empty()) out += '.';
    out += is_number(word) ? "*" : word;
    module.remove_prefix(std::min(end + 1, module.size()));
  }
  return out;
}

}  // namespace qlp
