#include "memory/allocator_config.h"

#include <cctype>
#include <charconv>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"

namespace qlp {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
/// Requests below this size share segments (kMinLargeAlloc, c10/core/AllocatorConfig.h of torch 2.14).
constexpr std::uint64_t kMinLargeAllocMiB = 10;

/// Options that change where the memory of a device goes.
constexpr std::array<std::string_view, 8> kOptions{
    "max_split_size_mb",   "max_non_split_rounding_mb", "roundup_power2_divisions",    "garbage_collection_threshold",
    "expandable_segments", "large_segment_size_mb",     "per_process_memory_fraction", "backend",
};
/// Options about host memory, locks, graph capture and messages: an eager run's device memory does not depend on them.
constexpr std::array<std::string_view, 12> kWithoutEffect{
    "release_lock_on_cudamalloc",     "release_lock_on_hipmalloc",         "pinned_use_cuda_host_register",
    "pinned_use_hip_host_register",   "pinned_num_register_threads",       "pinned_use_background_threads",
    "pinned_reserve_segment_size_mb", "pinned_max_round_threshold_mb",     "pinned_max_cached_size_mb",
    "pinned_free_catch_all",          "graph_capture_record_stream_reuse", "throw_on_cudamalloc_oom",
};

/// Part of the text, without the spaces around it.
struct Piece {
  std::string_view text;
  std::size_t offset = 0;
};

Piece trimmed(Piece piece) {
  const auto is_space = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
  while (!piece.text.empty() && is_space(piece.text.front())) {
    piece.text.remove_prefix(1);
    ++piece.offset;
  }
  while (!piece.text.empty() && is_space(piece.text.back())) piece.text.remove_suffix(1);
  return piece;
}

/// The pieces between the commas that are outside of brackets.
std::vector<Piece> split(Piece list) {
  std::vector<Piece> pieces;
  std::size_t begin = 0;
  bool inside = false;
  for (std::size_t i = 0; i <= list.text.size(); ++i) {
    if (i < list.text.size()) {
      if (list.text[i] == '[') inside = true;
      if (list.text[i] == ']') inside = false;
      if (list.text[i] != ',' || inside) continue;
    }
    pieces.push_back(trimmed({list.text.substr(begin, i - begin), list.offset + begin}));
    begin = i + 1;
  }
  return pieces;
}

/// "key:value"; both empty-handed pieces where there is no colon.
std::pair<Piece, Piece> key_and_value(Piece entry) {
  const std::size_t colon = entry.text.find(':');
  if (colon == std::string_view::npos) return {entry, {{}, entry.offset + entry.text.size()}};
  return {trimmed({entry.text.substr(0, colon), entry.offset}),
          trimmed({entry.text.substr(colon + 1), entry.offset + colon + 1})};
}

template <class Number>
std::optional<Number> number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

class Parser {
 public:
  explicit Parser(LargerSizes larger_sizes) : larger_sizes_(larger_sizes) {}

  Result<AllocatorConfig> parse(std::string_view text) {
    for (const Piece entry : split({text, 0})) {
      if (entry.text.empty()) continue;
      const auto [key, value] = key_and_value(entry);
      option(key, value);
    }
    check_limits();
    if (!errors_.empty()) return Unexpected{std::move(errors_)};
    return config_;
  }

 private:
  void option(Piece key, Piece value) {
    if (std::ranges::find(kWithoutEffect, key.text) != kWithoutEffect.end()) return;
    if (key.text == "max_split_size_mb") {
      if (auto mib = mebibytes(value)) split_size_ = {*mib, value};
    } else if (key.text == "max_non_split_rounding_mb") {
      if (auto mib = mebibytes(value)) rounding_ = {*mib, value};
    } else if (key.text == "large_segment_size_mb") {
      if (auto mib = mebibytes(value)) large_segment_ = {*mib, value};
    } else if (key.text == "expandable_segments") {
      if (value.text != "True" && value.text != "False") {
        error(value, "expandable_segments must be True or False", "");
      }
      config_.expandable_segments = value.text == "True";
    } else if (key.text == "garbage_collection_threshold") {
      const auto share = number<double>(value.text);
      if (!share || *share <= 0 || *share >= 1) {
        error(value, "garbage_collection_threshold must lie between 0 and 1, both excluded", "");
      }
      config_.garbage_collection_threshold = share.value_or(0);
    } else if (key.text == "per_process_memory_fraction") {
      const auto share = number<double>(value.text);
      if (!share || *share <= 0 || *share > 1) {
        error(value, "per_process_memory_fraction must be above 0 and at most 1", "");
      } else if (*share < 1) {
        config_.memory_fraction = share;
      }
    } else if (key.text == "roundup_power2_divisions") {
      divisions(value);
    } else if (key.text == "backend") {
      if (value.text == "cudaMallocAsync") {
        error(value,
              "the allocator backend cudaMallocAsync is not supported: the driver's pool, not PyTorch, decides "
              "what is kept",
              "use the backend native");
      } else if (value.text != "native") {
        error(value, "the allocator backend is native or cudaMallocAsync, not '" + std::string(value.text) + "'", "");
      }
    } else {
      const auto meant = closest(key.text, kOptions);
      report("unknown-key", key, "unknown allocator option '" + std::string(key.text) + "'",
             meant ? "did you mean " + std::string(*meant) + "?" : "known: " + join(kOptions));
    }
  }

  /// A number, or a list of "size in MiB:number" in which ">" stands for all larger sizes.
  void divisions(Piece value) {
    auto& table = config_.roundup_power2_divisions;
    if (!value.text.starts_with('[')) {
      if (const auto steps = power_of_two(value, false)) table.fill(*steps);
      return;
    }
    if (!value.text.ends_with(']')) return error(value, "the list of roundup_power2_divisions has no end", "add ']'");
    std::size_t last = 0;
    bool first = true;
    for (const Piece entry : split({value.text.substr(1, value.text.size() - 2), value.offset + 1})) {
      const auto [interval, text] = key_and_value(entry);
      const auto steps = power_of_two(text, true);
      if (interval.text == ">") {
        const std::size_t from = larger_sizes_ == LargerSizes::after_last ? last + 1 : last;
        if (steps) std::fill(table.begin() + static_cast<std::ptrdiff_t>(from), table.end(), *steps);
        continue;
      }
      const auto mib = number<std::uint64_t>(interval.text);
      if (!mib || !std::has_single_bit(*mib)) {
        error(interval, "the sizes in roundup_power2_divisions are powers of two in MiB, or >", "");
        continue;
      }
      const auto index = std::min(static_cast<std::size_t>(std::countr_zero(*mib)), table.size() - 1);
      if (!steps) continue;
      if (first) std::fill_n(table.begin(), index, *steps);
      first = false;
      table[index] = *steps;
      last = index;
    }
  }

  std::optional<std::uint32_t> power_of_two(Piece value, bool zero_is_off) {
    const auto steps = number<std::uint32_t>(value.text);
    if (steps && (std::has_single_bit(*steps) || (zero_is_off && *steps == 0))) return steps;
    error(value, "the divisions of roundup_power2_divisions are powers of two", "");
    return std::nullopt;
  }

  std::optional<std::uint64_t> mebibytes(Piece value) {
    const auto mib = number<std::uint64_t>(value.text);
    if (mib && *mib < (std::uint64_t{1} << 44)) return mib;
    error(value, "expected a whole number of MiB instead of '" + std::string(value.text) + "'", "");
    return std::nullopt;
  }

  /// Limits that depend on other options, whatever their order in the text.
  void check_limits() {
    if (large_segment_) {
      if (large_segment_->mib <= kMinLargeAllocMiB)
        error(large_segment_->place, "large_segment_size_mb must be above 10", "");
      config_.large_segment_size = large_segment_->mib * kMiB;
      config_.max_non_split_rounding = config_.large_segment_size;
    }
    const std::uint64_t least = config_.large_segment_size / kMiB;
    if (split_size_) {
      if (split_size_->mib < least)
        error(split_size_->place, "max_split_size_mb must be at least " + std::to_string(least), "");
      config_.max_split_size = split_size_->mib * kMiB;
    }
    if (rounding_) {
      if (rounding_->mib < least)
        error(rounding_->place, "max_non_split_rounding_mb must be at least " + std::to_string(least), "");
      config_.max_non_split_rounding = rounding_->mib * kMiB;
    }
  }

  void error(Piece place, std::string message, std::string hint) {
    report("allocator-option", place, std::move(message), std::move(hint));
  }

  void report(std::string code, Piece place, std::string message, std::string hint) {
    Diagnostic& diagnostic = errors_.emplace_back();
    diagnostic.code = std::move(code);
    diagnostic.message = std::move(message);
    diagnostic.position.line = 1;
    diagnostic.position.column = static_cast<std::uint32_t>(place.offset + 1);
    diagnostic.hint = std::move(hint);
  }

  struct Mebibytes {
    std::uint64_t mib;
    Piece place;
  };
  LargerSizes larger_sizes_;
  AllocatorConfig config_;
  std::optional<Mebibytes> split_size_, rounding_, large_segment_;
  Diagnostics errors_;
};

}  // namespace

Result<AllocatorConfig> parse_allocator_config(std::string_view text, LargerSizes larger_sizes) {
  return Parser(larger_sizes).parse(text);
}

}  // namespace qlp
