#include "config/job_tree.h"

#include <algorithm>
#include <utility>

namespace qlp {
namespace {

void put(std::vector<Entry>& entries, std::string_view key, NodePtr value) {
  const auto old = std::ranges::find(entries, key, &Entry::key);
  const Position at = value->position;
  if (old != entries.end())
    *old = {std::string(key), at, std::move(value)};
  else
    entries.push_back({std::string(key), at, std::move(value)});
}

bool names_a_model(const TextNode& model) {
  return model.kind == NodeKind::map && (find(model, "config") || find(model, "name") || find(model, "hidden_size"));
}

/// What a model section says of the run, whatever the model is: the rest describes one model.
bool is_of_the_run(std::string_view key) { return key == "dtype" || key == "loading"; }

/// A section's keys with those of `changes` in their place.
NodePtr section_over(std::string_view section, const TextNode& base, const TextNode& changes) {
  auto result = base;
  if (section == "model" && names_a_model(changes))
    std::erase_if(result.entries, [](const Entry& e) { return !is_of_the_run(e.key); });
  for (const Entry& change : changes.entries) {
    std::erase_if(result.entries, [&](const Entry& e) { return e.key == change.key; });
    result.entries.push_back(change);
  }
  return std::make_shared<TextNode>(std::move(result));
}

}  // namespace

NodePtr scalar(std::string text, const Position& at) {
  TextNode node;
  node.kind = NodeKind::scalar, node.position = at, node.text = std::move(text);
  return std::make_shared<TextNode>(std::move(node));
}

NodePtr list_of(const std::vector<std::string>& texts, const Position& at) {
  TextNode node;
  node.kind = NodeKind::sequence, node.position = at;
  for (const std::string& text : texts) node.items.push_back(scalar(text, at));
  return std::make_shared<TextNode>(std::move(node));
}

NodePtr map_of(std::vector<Entry> entries, const Position& at) {
  TextNode node;
  node.kind = NodeKind::map, node.position = at, node.entries = std::move(entries);
  return std::make_shared<TextNode>(std::move(node));
}

void JobTree::set(std::string_view section, std::string_view key, NodePtr value) {
  const auto had = std::ranges::find(sections_, section, &Entry::key);
  auto entries = had != sections_.end() ? had->value->entries : std::vector<Entry>{};
  put(entries, key, std::move(value));
  put(sections_, section, map_of(std::move(entries), file_));
}

void JobTree::say(std::string_view section, std::string_view key, std::string text, const Position& at) {
  set(section, key, scalar(std::move(text), at));
}

void JobTree::replace(std::string_view section, NodePtr value) { put(sections_, section, std::move(value)); }

const TextNode* JobTree::value(std::string_view section, std::string_view key) const {
  const auto had = std::ranges::find(sections_, section, &Entry::key);
  return had != sections_.end() ? find(*had->value, key) : nullptr;
}

bool JobTree::has(std::string_view section, std::string_view key) const { return value(section, key) != nullptr; }

NodePtr JobTree::sections() const { return map_of(sections_, file_); }

NodePtr JobTree::tree() const {
  auto entries = sections_;
  put(entries, "schema", scalar("1", file_));
  return map_of(std::move(entries), file_);
}

NodePtr laid_over(const TextNode& base, const TextNode& changes) {
  auto entries = base.entries;
  for (const Entry& change : changes.entries) {
    const TextNode* had = find(base, change.key);
    const bool both = had && had->kind == NodeKind::map && change.value->kind == NodeKind::map;
    put(entries, change.key,
        both && change.key != "plans" ? section_over(change.key, *had, *change.value) : change.value);
  }
  return map_of(std::move(entries), changes.position.file.empty() ? base.position : changes.position);
}

NodePtr without_nulls(const TextNode& node) {
  auto result = node;
  std::erase_if(result.entries, [](const Entry& e) { return e.value->kind == NodeKind::null; });
  for (Entry& entry : result.entries) entry.value = without_nulls(*entry.value);
  return std::make_shared<TextNode>(std::move(result));
}

}  // namespace qlp
