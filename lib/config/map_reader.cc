#include "config/map_reader.h"

#include <algorithm>
#include <map>

#include "base/text.h"
#include "config/other_words.h"

namespace qlp {
namespace {

std::string range_text(IntegerRange range) {
  if (range.most == std::numeric_limits<std::int64_t>::max()) return std::to_string(range.least) + " or more";
  return std::to_string(range.least) + " to " + std::to_string(range.most);
}

/// Null, false, a number below 1, or a map in which all is off: what a foreign file says of what it does not use.
bool is_off(const TextNode& node) {
  if (node.kind == NodeKind::null) return true;
  if (node.kind == NodeKind::map) {
    if (const TextNode* enabled = find(node, "enabled")) return is_off(*enabled);
    return std::ranges::all_of(node.entries, [](const Entry& entry) { return is_off(*entry.value); });
  }
  const auto flag = boolean_of(node);
  const auto number = integer_of(node);
  return flag ? !*flag : number && *number < 1;
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> words) {
  const auto other = std::ranges::find_if(kOtherWords, [&](const OtherWord& row) {
    return row.theirs == word && std::ranges::find(words, row.ours) != words.end();
  });
  const auto near = other != kOtherWords.end() ? std::optional{other->ours} : closest(word, words);
  return near ? "did you mean " + std::string(*near) + "?" : "";
}

std::string trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return std::string(text);
}

}  // namespace

std::string join_path(std::string_view section, std::string_view key) {
  return section.empty() ? std::string(key) : std::string(section) + "." + std::string(key);
}

MapReader::MapReader(const TextNode* node, KeyPlace place, Findings& findings)
    : node_(node), place_(std::move(place)), findings_(findings) {
  if (!node_ || node_->kind == NodeKind::map) return;
  findings_.error("wrong-type", place_, "expected a map of keys and values, found " + describe(*node_));
  node_ = nullptr;
  broken_ = true;
}

bool MapReader::has(std::string_view key) const { return node_ && find(*node_, key); }

const TextNode* MapReader::take(std::string_view key) {
  if (std::find(known_.begin(), known_.end(), key) == known_.end()) known_.push_back(key);
  return node_ ? find(*node_, key) : nullptr;
}

KeyPlace MapReader::place_of(std::string_view key) const {
  const auto* value = node_ ? find(*node_, key) : nullptr;
  if (!value) return {join_path(place_.path, key), place_.position};
  if (value->kind != NodeKind::null) return {join_path(place_.path, key), value->position};
  const auto entry =
      std::find_if(node_->entries.rbegin(), node_->entries.rend(), [&](const Entry& e) { return e.key == key; });
  return {join_path(place_.path, key), entry->key_position};
}

void MapReader::forbid(std::string_view key, std::string message, std::string hint) {
  if (!has(key)) return;
  forbidden_.push_back(key);
  refuse(key, "not-supported", std::move(message), std::move(hint));
}

void MapReader::require(std::string_view key, std::string_view what) {
  take(key);
  if (!has(key) && !broken_)
    findings_.error("missing-key", place_of(key), std::string(key) + " is missing: " + std::string(what));
}

void MapReader::refuse(std::string_view key, std::string code, std::string message, std::string hint) {
  findings_.error(std::move(code), place_of(key), std::move(message), std::move(hint));
}

void MapReader::default_used(std::string_view key, const std::string& value) {
  findings_.note("default-used", place_of(key), "not given: " + value);
}

std::optional<std::int64_t> MapReader::integer(std::string_view key, IntegerRange range) {
  const auto* node = take(key);
  if (!node) return std::nullopt;
  const auto value = integer_of(*node);
  if (!value) {
    refuse(key, "wrong-type", value.error());
  } else if (*value < range.least || *value > range.most) {
    refuse(key, "out-of-range", std::to_string(*value) + " is out of range: expected " + range_text(range));
  } else {
    return *value;
  }
  return std::nullopt;
}

std::int64_t MapReader::integer_or(std::string_view key, IntegerRange range, std::int64_t fallback) {
  const auto value = integer(key, range);
  if (!has(key)) default_used(key, std::to_string(fallback));
  return value.value_or(fallback);
}

std::optional<double> MapReader::number(std::string_view key, NumberRange range) {
  const auto* node = take(key);
  if (!node) return std::nullopt;
  const auto value = number_of(*node);
  if (!value) {
    refuse(key, "wrong-type", value.error());
  } else if (*value < range.least || *value > range.most) {
    refuse(key, "out-of-range",
           exact_number(*value) + " is out of range: expected " + exact_number(range.least) + " to " +
               exact_number(range.most));
  } else {
    return *value;
  }
  return std::nullopt;
}

double MapReader::number_or(std::string_view key, NumberRange range, double fallback) {
  const auto value = number(key, range);
  if (!has(key)) default_used(key, exact_number(fallback));
  return value.value_or(fallback);
}

std::optional<bool> MapReader::boolean(std::string_view key) {
  const auto* node = take(key);
  if (!node) return std::nullopt;
  const auto value = boolean_of(*node);
  if (value) return *value;
  refuse(key, "wrong-type", value.error());
  return std::nullopt;
}

bool MapReader::boolean_or(std::string_view key, bool fallback) {
  const auto value = boolean(key);
  if (!has(key)) default_used(key, fallback ? "true" : "false");
  return value.value_or(fallback);
}

std::optional<std::string> MapReader::text(std::string_view key) {
  const auto* node = take(key);
  if (!node) return std::nullopt;
  const auto value = text_of(*node);
  if (value && !value->empty()) return *value;
  refuse(key, "wrong-type", value ? "expected a text, found an empty one" : value.error());
  return std::nullopt;
}

std::optional<Bytes> MapReader::size(std::string_view key) {
  const auto written = text(key);
  if (!written) return std::nullopt;
  const auto value = parse_size(*written);
  if (value) return *value;
  refuse(key, "bad-size", value.error());
  return std::nullopt;
}

std::optional<Bytes> MapReader::rate(std::string_view key) {
  const auto written = text(key);
  if (!written) return std::nullopt;
  const auto value = parse_rate(*written);
  if (value && *value != Bytes{}) return *value;
  refuse(key, "bad-rate", value ? "nothing at all: expected more than 0" : value.error());
  return std::nullopt;
}

std::optional<double> MapReader::percent(std::string_view key) {
  const auto written = text(key);
  if (!written) return std::nullopt;
  const auto value = parse_percent(*written);
  if (value) return *value;
  refuse(key, "bad-percentage", value.error());
  return std::nullopt;
}

std::optional<DType> MapReader::dtype(std::string_view key, std::span<const DType> allowed) {
  const auto written = text(key);
  if (!written) return std::nullopt;
  const auto value = dtype_from_name(*written);
  if (value && std::find(allowed.begin(), allowed.end(), *value) != allowed.end()) return value;
  std::vector<std::string_view> names;
  for (auto dtype : allowed) names.push_back(name_of(dtype));
  refuse(key, "bad-value", "'" + written->substr(0, 40) + "' is none of " + join(names), did_you_mean(*written, names));
  return std::nullopt;
}

DType MapReader::dtype_or(std::string_view key, std::span<const DType> allowed, DType fallback) {
  const auto value = dtype(key, allowed);
  if (!has(key)) default_used(key, std::string(name_of(fallback)));
  return value.value_or(fallback);
}

std::optional<std::vector<std::string>> MapReader::words(std::string_view key) {
  const auto* node = take(key);
  if (!node) return std::nullopt;
  if (node->kind != NodeKind::sequence) {
    refuse(key, "wrong-type", "expected a list of names, found " + describe(*node));
    return std::nullopt;
  }
  std::vector<std::string> list;
  bool good = true;
  for (const auto& item : node->items) {
    const auto word = text_of(*item);
    const KeyPlace at{join_path(place_.path, key), item->position};
    if (!word || word->empty()) {
      findings_.error("wrong-type", at, "expected a name, found " + describe(*item));
      good = false;
    } else if (std::find(list.begin(), list.end(), *word) != list.end()) {
      findings_.error("duplicate-item", at, "'" + *word + "' is listed twice");
      good = false;
    } else {
      list.push_back(*word);
    }
  }
  return good ? std::optional{std::move(list)} : std::nullopt;
}

std::optional<std::vector<std::string>> MapReader::word_or_words(std::string_view key) {
  const auto* node = take(key);
  if (!node || node->kind != NodeKind::scalar) return words(key);
  const auto word = text(key);
  return word ? std::optional{std::vector{*word}} : std::nullopt;
}

std::optional<std::vector<std::string>> MapReader::words_between_commas(std::string_view key) {
  const auto list = text(key);
  if (!list) return std::nullopt;
  std::vector<std::string> words;
  for (std::string_view rest = *list; !rest.empty();) {
    const auto end = std::min(rest.find(','), rest.size());
    if (auto word = trimmed(rest.substr(0, end)); !word.empty()) words.push_back(std::move(word));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return words;
}

std::optional<std::vector<std::int64_t>> MapReader::integers(std::string_view key, IntegerRange range) {
  const auto* node = take(key);
  if (!node) return std::nullopt;
  if (node->kind == NodeKind::scalar) {
    const auto one = integer(key, range);
    return one ? std::optional{std::vector{*one}} : std::nullopt;
  }
  if (node->kind != NodeKind::sequence) {
    refuse(key, "wrong-type", "expected a list of whole numbers, found " + describe(*node));
    return std::nullopt;
  }
  std::vector<std::int64_t> list;
  bool good = true;
  const auto wrong = [&](const TextNode& item, std::string code, std::string message) {
    findings_.error(std::move(code), {join_path(place_.path, key), item.position}, std::move(message));
    good = false;
  };
  for (const auto& item : node->items) {
    const auto value = integer_of(*item);
    if (!value)
      wrong(*item, "wrong-type", value.error());
    else if (*value < range.least || *value > range.most)
      wrong(*item, "out-of-range", std::to_string(*value) + " is out of range: expected " + range_text(range));
    else if (std::find(list.begin(), list.end(), *value) != list.end())
      wrong(*item, "duplicate-item", std::to_string(*value) + " is listed twice");
    else
      list.push_back(*value);
  }
  return good ? std::optional{std::move(list)} : std::nullopt;
}

std::optional<std::size_t> MapReader::word(std::string_view key, std::span<const std::string_view> allowed,
                                           std::span<const NotSupported> not_supported) {
  const auto written = text(key);
  if (!written) return std::nullopt;
  const auto index = std::find(allowed.begin(), allowed.end(), *written) - allowed.begin();
  if (static_cast<std::size_t>(index) < allowed.size()) return static_cast<std::size_t>(index);
  for (const auto& row : not_supported) {
    if (row.word != *written) continue;
    refuse(key, "not-supported", *written + " is not supported: " + std::string(row.reason),
           "use one of " + join(allowed));
    return std::nullopt;
  }
  refuse(key, "bad-value", "'" + written->substr(0, 40) + "' is none of " + join(allowed),
         did_you_mean(*written, allowed));
  return std::nullopt;
}

void MapReader::finish(std::span<const NotSupported> not_supported) {
  if (!node_) return;
  std::map<std::string_view, const Entry*> seen;
  for (const auto& entry : node_->entries) {
    const KeyPlace at{join_path(place_.path, entry.key), entry.key_position};
    const auto [first, is_new] = seen.emplace(entry.key, &entry);
    if (!is_new) {
      findings_.error("duplicate-key", at,
                      entry.key + " is given twice: first in line " + std::to_string(first->second->key_position.line));
      continue;
    }
    if (std::find(known_.begin(), known_.end(), entry.key) != known_.end()) continue;
    if (std::find(forbidden_.begin(), forbidden_.end(), entry.key) != forbidden_.end()) continue;
    const auto row = std::find_if(not_supported.begin(), not_supported.end(),
                                  [&](const NotSupported& r) { return r.word == entry.key; });
    if (row != not_supported.end()) {
      findings_.error("not-supported", at, entry.key + " is not supported: " + std::string(row->reason));
      continue;
    }
    const auto hint = did_you_mean(entry.key, known_);
    findings_.error("unknown-key", at, "unknown key '" + entry.key.substr(0, 40) + "'",
                    hint.empty() && !known_.empty() ? "known keys: " + join(known_) : hint);
  }
}

void MapReader::finish_foreign(std::span<const std::string_view> does_not_matter,
                               std::span<const NotSupported> not_supported) {
  if (!node_) return;
  for (const auto& entry : node_->entries) {
    const auto among = [&](const auto& words) {
      return std::find(words.begin(), words.end(), entry.key) != words.end();
    };
    if (among(known_) || among(does_not_matter)) continue;
    const auto row = std::find_if(not_supported.begin(), not_supported.end(),
                                  [&](const NotSupported& r) { return r.word == entry.key; });
    if (row != not_supported.end()) {
      if (!is_off(*entry.value))
        findings_.error("not-supported", {join_path(place_.path, entry.key), entry.key_position},
                        entry.key + " is not supported: " + std::string(row->reason));
      continue;
    }
    findings_.warning("unknown-key", {join_path(place_.path, entry.key), entry.key_position},
                      "'" + entry.key.substr(0, 40) + "' is not known and left out of the plan",
                      did_you_mean(entry.key, known_));
  }
}

}  // namespace qlp
