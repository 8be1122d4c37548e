// Figures and tables as people read them: GiB with two decimals, columns that line up, colour where asked for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/diagnostic.h"

namespace qlp {

std::string gib(Bytes amount);                                          ///< "12.70"
std::string gib(ByteDelta amount);                                      ///< "-0.31"
std::string mib(Bytes amount);                                          ///< "13005.149"
std::string three_digits(double value);                                 ///< "0.0123", "989", "8.05e+14"
std::string compute_capability_text(std::uint32_t compute_capability);  ///< "9.0" for 90

std::string_view name_of(Severity severity);  ///< "warning"

enum class Color : std::uint8_t { plain, good, bad, faint, strong };

/// The text in a terminal's colour; unchanged where colours are off.
std::string colored(std::string_view text, Color color, bool on);

struct Cell {
  std::string text;
  Color color = Color::plain;
};

/// Rows under headings; the first `left` columns are aligned left, the others right. No line ends in blanks.
class TextTable {
 public:
  TextTable(std::vector<std::string> headings, std::size_t left) : headings_(std::move(headings)), left_(left) {}
  void add(std::vector<Cell> row) { rows_.push_back(std::move(row)); }
  std::string text(bool colors) const;

 private:
  std::vector<std::string> headings_;
  std::size_t left_;
  std::vector<std::vector<Cell>> rows_;
};

/// "model.layers.*.mlp" for "model.layers.3.mlp": one place for all layers, as a line of Python is.
std::string without_layer(std::string_view module);

/// Text broken at blanks into lines of at most `width`, every line but the first indented.
std::string wrapped(std::string_view text, std::size_t indent, std::size_t width = 100);

}  // namespace qlp
