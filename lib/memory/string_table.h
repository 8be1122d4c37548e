// Names by number, so that many records can share one text.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

namespace qlp {

/// The number of a name in a StringTable; 0 is the empty name.
using NameId = std::uint32_t;

class StringTable {
 public:
  StringTable() { intern(""); }

  /// The same number for the same text.
  NameId intern(std::string_view text) {
    if (const auto found = ids_.find(text); found != ids_.end()) return found->second;
    const auto id = static_cast<NameId>(names_.size());
    ids_.emplace(names_.emplace_back(text), id);
    return id;
  }
  std::string_view name(NameId id) const { return names_[id]; }
  std::size_t size() const { return names_.size(); }

  StringTable(const StringTable&) = delete;
  StringTable& operator=(const StringTable&) = delete;
  StringTable(StringTable&&) = default;
  StringTable& operator=(StringTable&&) = default;
  ~StringTable() = default;

 private:
  std::deque<std::string> names_;  ///< addresses are stable, also when the table moves
  std::unordered_map<std::string_view, NameId> ids_;
};

}  // namespace qlp
