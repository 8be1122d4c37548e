#include "model/target_matching.h"

#include <algorithm>
#include <cmath>
#include <re2/re2.h>
#include <string>

namespace qlp {
namespace {

bool ends_with_part(std::string_view name, std::string_view part) {
  return name == part || (name.ends_with(part) && name[name.size() - part.size() - 1] == '.');
}

/// Only whether names match is asked, so groups need not be kept.
re2::RE2::Options pattern_options() {
  re2::RE2::Options options(re2::RE2::Quiet);
  options.set_never_capture(true);
  return options;
}

/// True if the whole name matches; a pattern that is none matches nothing.
bool matches(const std::string& pattern, std::string_view name) {
  const re2::RE2 expression(pattern, pattern_options());
  return expression.ok() && re2::RE2::FullMatch(re2::StringPiece(name.data(), name.size()), expression);
}

}  // namespace

std::optional<std::string> error_in_pattern(const std::string& pattern) {
  const re2::RE2 expression(pattern, pattern_options());
  return expression.ok() ? std::nullopt : std::optional(expression.error());
}

bool is_target(const AdapterSpec& adapter, std::string_view name, bool is_head) {
  if (adapter.all_linear) return !is_head;
  if (!adapter.target_pattern.empty()) return matches(adapter.target_pattern, name);
  return std::any_of(adapter.target_modules.begin(), adapter.target_modules.end(),
                     [&](const std::string& target) { return ends_with_part(name, target); });
}

bool is_saved_module(const AdapterSpec& adapter, std::string_view name) {
  return std::any_of(adapter.modules_to_save.begin(), adapter.modules_to_save.end(),
                     [&](const std::string& saved) { return name.ends_with(saved); });
}

std::int64_t rank_for(const AdapterSpec& adapter, std::string_view name) {
  for (const auto& [pattern, rank] : adapter.rank_pattern)
    if (matches("(.*\\.)?(" + pattern + ")", name)) return rank;
  return adapter.r;
}

double scaling_for(const AdapterSpec& adapter, std::string_view name) {
  const auto rank = static_cast<double>(rank_for(adapter, name));
  return adapter.lora_alpha / (adapter.use_rslora ? std::sqrt(rank) : rank);
}

}  // namespace qlp
