#include "config/hub_name.h"

#include <algorithm>
#include <array>
#include <string>

namespace qlp {
namespace {

/// How a model was tuned, or who wraps it; dates of releases that kept the shapes.
constexpr auto kTuning =
    std::to_array<std::string_view>({"hf", "instruct", "it", "chat", "base", "thinking", "meta", "pt", "1124", "1025",
                                     "1125", "2507", "unsloth", "converted"});

/// Releases with the shapes of another; the names of some on the Hub.
struct Alias {
  std::string_view name;
  std::string_view same_as;
};
constexpr auto kAliases = std::to_array<Alias>({
    {"llama-3.3-70b", "llama-3.1-70b"},
    {"olmo-2-7b", "olmo2-7b"},
    {"olmo-2-13b", "olmo2-13b"},
    {"c4ai-command-r-v01", "command-r-35b"},
    {"c4ai-command-r7b-12-2024", "command-r7b"},
    {"olmo-3-7b", "olmo3-7b"},
    {"olmo-3-32b", "olmo3-32b"},
    {"mistral-nemo", "mistral-nemo-12b"},
    {"mistral-nemo-2407", "mistral-nemo-12b"},
    {"mistral-small-24b-2501", "mistral-small-24b"},
    {"deepseek-r1-distill-llama-8b", "llama-3.1-8b"},
    {"deepseek-r1-distill-llama-70b", "llama-3.1-70b"},
    {"deepseek-r1-distill-qwen-7b", "qwen2.5-7b"},
    {"deepseek-r1-distill-qwen-14b", "qwen2.5-14b"},
    {"deepseek-r1-distill-qwen-32b", "qwen2.5-32b"},
    {"deepseek-r1-0528-qwen3-8b", "qwen3-8b"},
});

std::string lowered(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

bool is_version(std::string_view word) { return word.size() > 2 && word.starts_with("v0."); }

/// The words of the name that count, joined again.
std::string essence(std::string_view name, bool with_version) {
  std::string result;
  while (!name.empty()) {
    const auto end = std::min(name.find_first_of("-_"), name.size());
    const auto word = name.substr(0, end);
    name.remove_prefix(std::min(end + 1, name.size()));
    if (std::ranges::find(kTuning, word) != kTuning.end() || (!with_version && is_version(word))) continue;
    result += (result.empty() ? "" : "-") + std::string(word);
  }
  return result;
}

}  // namespace

const CatalogueModel* model_of_hub(std::string_view name) {
  while (name.ends_with('/')) name.remove_suffix(1);
  const auto last = lowered(name.substr(name.rfind('/') + 1));
  for (const bool with_version : {true, false}) {
    auto words = essence(last, with_version);
    const auto alias = std::ranges::find(kAliases, words, &Alias::name);
    if (alias != kAliases.end()) words = alias->same_as;
    if (const auto* model = find_model(words)) return model;
  }
  return nullptr;
}

}  // namespace qlp
