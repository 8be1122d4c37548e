#include "config/foreign_file.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "config/hub_name.h"

namespace qlp {
ForeignFile::ForeignFile(std::string_view tool, const TextNode& root, const ForeignContext& context, Findings& findings)
    : tool_(tool), root_(root), context_(context), map_(&root, {"", root.position}, findings), job_(root.position) {}

bool ForeignFile::is_overridden(std::string_view section, std::string_view key) const {
  const TextNode* node = find(context_.overrides, section);
  return node && (node->kind != NodeKind::map || find(*node, key));
}

void ForeignFile::copy(std::string_view key, std::string_view section, std::string_view ours) {
  if (map_.take(key)) {
    const auto entry = std::ranges::find(root_.entries, key, &Entry::key);
    job_.set(section, ours, entry->value);
  }
}

void ForeignFile::copy_or(std::string_view key, std::string_view section, std::string_view ours,
                          std::string_view fallback) {
  copy(key, section, ours);
  if (!map_.has(key)) by_default(key, section, ours, fallback);
}

void ForeignFile::say(std::string_view key, std::string_view section, std::string_view ours, std::string_view word) {
  map_.take(key);
  job_.say(section, ours, std::string(word), map_.place_of(key).position);
}

void ForeignFile::by_default(std::string_view key, std::string_view section, std::string_view ours,
                             std::string_view word) {
  say(key, section, ours, word);
  if (!is_overridden(section, ours))
    map_.findings().note("default-used", map_.place_of(key),
                         "not given: " + std::string(word) + ", the default of " + tool_);
}

void ForeignFile::name_model(std::string_view key) {
  const auto name = map_.text(key);
  if (!name || is_overridden("model", "config") || is_overridden("model", "name") ||
      is_overridden("model", "hidden_size"))
    return;
  const KeyPlace place = map_.place_of(key);
  if (context_.files.kind_of(path_beside(place.position.file, *name)) != FileReader::Kind::missing)
    return job_.say("model", "config", *name, place.position);
  const auto* model = model_of_hub(*name);
  // A name that is not known is told by the reader of the job.
  job_.say("model", "name", model ? std::string(model->name) : *name, place.position);
  if (model)
    map_.findings().warning("model-by-name", place,
                            "taken for " + std::string(model->name) + " by its name, with the shapes of that",
                            "--model FILE gives its own config.json");
}

void ForeignFile::say_list(std::string_view key, std::string_view section, std::string_view ours,
                           const std::vector<std::string>& words) {
  job_.set(section, ours, list_of(words, map_.place_of(key).position));
}

void ForeignFile::copy_list(std::string_view key, std::string_view section, std::string_view ours) {
  if (const auto words = map_.words_between_commas(key)) say_list(key, section, ours, *words);
}

std::string ForeignFile::planned_word(std::string_view key, std::string_view fallback,
                                      std::initializer_list<std::string_view> planned) {
  const auto given = map_.text(key);
  if (!given) return std::string(map_.has(key) ? *planned.begin() : fallback);
  const std::string& word = *given;
  if (std::ranges::find(planned, word) != planned.end()) return word;
  std::string list;
  for (const std::string_view each : planned) list += (list.empty() ? "" : " and ") + std::string(each);
  const auto near = closest(word, std::span(planned.begin(), planned.size()));
  refuse(key, "'" + word + "', only " + list + (planned.size() == 1 ? " is" : " are") + " planned",
         near ? "did you mean " + std::string(*near) + "?" : "");
  return std::string(*planned.begin());
}

void ForeignFile::refuse(std::string_view key, const std::string& reason, const std::string& hint) {
  map_.take(key);
  map_.refuse(key, "not-supported", std::string(key) + " is not supported: " + reason, hint);
}

void ForeignFile::warn(std::string_view key, const std::string& message, const std::string& hint) {
  map_.take(key);
  map_.findings().warning("not-as-written", map_.place_of(key), message, hint);
}

NodePtr ForeignFile::finish(std::initializer_list<std::span<const std::string_view>> without_memory,
                            std::span<const NotSupported> not_supported) {
  for (const Entry& entry : root_.entries) {
    if (std::ranges::find(not_supported, entry.key, &NotSupported::word) != not_supported.end()) continue;
    const auto stands_for = [&](std::string_view pattern) {
      return pattern.ends_with('*') ? entry.key.starts_with(pattern.substr(0, pattern.size() - 1))
                                    : entry.key == pattern;
    };
    for (const auto& patterns : without_memory)
      if (std::ranges::any_of(patterns, stands_for)) map_.take(entry.key);
  }
  map_.finish_foreign({}, not_supported);
  return job_.tree();
}

}  // namespace qlp
