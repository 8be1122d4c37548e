#include "model/target_matching.h"

#include <algorithm>
#include <regex>
#include <string>

namespace qlp {
namespace {

bool ends_with_part(std::string_view name, std::string_view part) {
  return name == part || (name.ends_with(part) && name[name.size() - part.size() - 1] == '.');
}

}  // namespace

bool is_target(const AdapterSpec& adapter, std::string_view name, bool is_head) {
  if (adapter.all_linear) return !is_head;
  if (!adapter.target_pattern.empty()) return std::regex_match(std::string(name), std::regex(adapter.target_pattern));
  return std::any_of(adapter.target_modules.begin(), adapter.target_modules.end(),
                     [&](const std::string& target) { return ends_with_part(name, target); });
}

bool is_saved_module(const AdapterSpec& adapter, std::string_view name) {
  return std::any_of(adapter.modules_to_save.begin(), adapter.modules_to_save.end(),
                     [&](const std::string& saved) { return name.ends_with(saved); });
}

std::int64_t rank_for(const AdapterSpec& adapter, std::string_view name) {
  for (const auto& [pattern, rank] : adapter.rank_pattern)
    if (std::regex_match(std::string(name), std::regex("(.*\\.)?(" + pattern + ")"))) return rank;
  return adapter.r;
}

}  // namespace qlp
