// Words and numbers for people: sizes with their units, percentages, spelling suggestions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"

namespace qlp {

/// Reads an amount of memory with its unit: "80GiB", "80 GB", "1.5TiB", "512B". The error is a sentence that says what
/// is wrong and how it is written; a number alone and the bare suffixes ("80", "80G", "80Gi") are errors.
Result<Bytes, std::string> parse_size(std::string_view text);

/// "79.2 GiB", "512 B": three digits or so, binary units.
std::string format_size(Bytes amount);

/// The same amount to the byte, as parse_size reads it, in the largest binary unit that divides it: "80GiB", "1B".
std::string exact_size(Bytes amount);

/// An amount per second, with "/s" behind it: "50GB/s".
Result<Bytes, std::string> parse_rate(std::string_view text);
std::string exact_rate(Bytes per_second);

/// Reads "2%" or "0.5 %" as 0.02 or 0.005; not negative. The error is a sentence.
Result<double, std::string> parse_percent(std::string_view text);

/// A share as parse_percent reads it back, exactly: "2%".
std::string exact_percent(double share);

/// The shortest decimal text that reads back as this number: "0.05", "16".
std::string exact_number(double number);

/// A count with a comma between thousands: "8,030,261,248".
std::string with_commas(std::uint64_t count);

/// How many letters must be inserted, removed, replaced or swapped with their neighbour to get from one to the other,
/// where capitals and the kind of separator (space, '-', '_', '.') do not count.
std::size_t edit_distance(std::string_view from, std::string_view to);

/// The word of the list that was probably meant, if one is near enough.
std::optional<std::string_view> closest(std::string_view word, std::span<const std::string_view> words);

/// Bytes of the letter that a text begins with, in UTF-8; 0 if it is none. The text is not empty.
std::size_t letter_length(std::string_view text);

/// The text with '?' for every byte that is not UTF-8 and every control character that is not among `kept`: what a file
/// holds must not steer a terminal or begin a line of its own.
std::string harmless(std::string_view text, std::string_view kept = {});

/// "a, b, c"
std::string join(std::span<const std::string_view> words, std::string_view separator = ", ");

}  // namespace qlp
