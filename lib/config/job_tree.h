// A job file in the making, from what a file of another tool says: the tree that the job reader reads.
#pragma once

#include <string>
#include <string_view>

#include "config/text_node.h"

namespace qlp {

/// Sections of keys. Every value keeps the place where the other file says it, so that errors point there.
class JobTree {
 public:
  explicit JobTree(Position file) : file_(std::move(file)) {}

  /// The value under a key of a section, in the place of an earlier one.
  void set(std::string_view section, std::string_view key, NodePtr value);
  void say(std::string_view section, std::string_view key, std::string text, const Position& at);
  /// A whole section: plans.
  void replace(std::string_view section, NodePtr value);
  bool has(std::string_view section, std::string_view key) const;
  /// The value of a key; null where there is none.
  const TextNode* value(std::string_view section, std::string_view key) const;

  /// What was said; and the same as a whole job file.
  NodePtr sections() const;
  NodePtr tree() const;

 private:
  Position file_;
  std::vector<Entry> sections_;
};

/// `changes` laid over `base`, key by key within each section. A model that `changes` names takes the place of the
/// one in `base`; so do its plans.
NodePtr laid_over(const TextNode& base, const TextNode& changes);

/// The same without what is null, at any depth: a key without a value is not given.
NodePtr without_nulls(const TextNode& node);

/// A text, and a map of nodes, that stand at a place of the input which means them.
NodePtr scalar(std::string text, const Position& at);
NodePtr list_of(const std::vector<std::string>& texts, const Position& at);
NodePtr map_of(std::vector<Entry> entries, const Position& at);

}  // namespace qlp
