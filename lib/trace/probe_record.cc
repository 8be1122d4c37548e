#include "trace/probe_record.h"

#include <algorithm>

#include "config/json_parser.h"

namespace qlp {
namespace {

/// One event; what is missing or of another kind reads as empty, as a newer probe may say more and an older one less.
class Event {
 public:
  explicit Event(const TextNode& node) : node_(node) {}

  std::string text(std::string_view key) const {
    const TextNode* value = find(node_, key);
    return value == nullptr || value->kind != NodeKind::scalar ? std::string{} : value->text;
  }
  std::uint64_t count(std::string_view key) const {
    const TextNode* value = find(node_, key);
    if (value == nullptr) return 0;
    const auto number = integer_of(*value);
    return number ? static_cast<std::uint64_t>(std::max<std::int64_t>(*number, 0)) : 0;
  }
  bool flag(std::string_view key) const { return text(key) == "true"; }

  LedgerFigures figures(std::string_view key) const {
    const TextNode* value = find(node_, key);
    if (value == nullptr) return {};
    const Event part{*value};
    return {.requested = Bytes{part.count("requested")},
            .allocated = Bytes{part.count("allocated")},
            .active = Bytes{part.count("active")},
            .reserved = Bytes{part.count("reserved")}};
  }

  template <class Visit>
  void for_each_item(std::string_view key, Visit&& visit) const {
    const TextNode* value = find(node_, key);
    if (value == nullptr) return;
    for (const auto& item : value->items) visit(*item);
  }

  template <class Visit>
  void for_each_entry(std::string_view key, Visit&& visit) const {
    const TextNode* value = find(node_, key);
    if (value == nullptr) return;
    for (const auto& entry : value->entries) visit(entry.key, *entry.value);
  }

 private:
  const TextNode& node_;
};

void add_phase(std::vector<ProbedPhase>& phases, ProbedPhase phase) {
  const auto last = std::find_if(phases.rbegin(), phases.rend(),
                                 [&](const ProbedPhase& other) { return other.device == phase.device; });
  if (last != phases.rend() && last->name == phase.name) {
    phase.peak = larger(last->peak, phase.peak);
    *last = std::move(phase);
    return;
  }
  phases.push_back(std::move(phase));
}

std::optional<Category> category_of(std::string_view name) {
  const auto found = std::ranges::find(kCategoryNames, name);
  if (found == kCategoryNames.end()) return std::nullopt;
  return static_cast<Category>(found - kCategoryNames.begin());
}

ProbedInventory inventory_of(const Event& event) {
  ProbedInventory inventory{
      .device = static_cast<std::int64_t>(event.count("device")), .phase = event.text("phase"), .items = {}};
  event.for_each_item("items", [&](const TextNode& node) {
    const Event item{node};
    inventory.items.push_back({.category = category_of(item.text("category")).value_or(Category::activations),
                               .op = item.text("op"),
                               .module = item.text("place"),
                               .tensor = item.text("tensor"),
                               .count = item.count("count"),
                               .requested = Bytes{item.count("requested")},
                               .allocated = Bytes{item.count("allocated")}});
  });
  return inventory;
}

void add_event(ProcessRecord& record, const Event& event) {
  const std::string kind = event.text("event");
  if (kind == "torch") {
    event.for_each_item("argv", [&](const TextNode& word) { record.command.push_back(word.text); });
    record.torch = event.text("version"), record.cuda = event.text("cuda"), record.hip = event.text("hip");
    record.rank = static_cast<std::int64_t>(event.count("rank"));
    record.world_size = static_cast<std::int64_t>(event.count("world_size"));
  } else if (kind == "phase") {
    add_phase(record.phases, {.name = event.text("name"),
                              .phase = event.text("phase"),
                              .device = static_cast<std::int64_t>(event.count("device")),
                              .peak = event.figures("peak"),
                              .held = event.figures("held"),
                              .device_peak = Bytes{event.count("device_peak")},
                              .retries = event.count("retries"),
                              .ooms = event.count("ooms")});
  } else if (kind == "answer") {
    record.answers.push_back({.kind = event.text("kind"),
                              .operation = event.text("operation"),
                              .place = event.text("place"),
                              .value = event.text("value"),
                              .count = event.count("count")});
  } else if (kind == "inventory") {
    record.inventories.push_back(inventory_of(event));
  } else if (kind == "library") {
    event.for_each_entry("unimplemented", [&](const std::string& name, const TextNode& calls) {
      record.unimplemented.emplace_back(name, static_cast<std::uint64_t>(integer_of(calls) ? *integer_of(calls) : 0));
    });
    event.for_each_item("assumptions", [&](const TextNode& text) { record.assumptions.push_back(text.text); });
  } else if (kind == "exception") {
    record.exception = {
        .type = event.text("type"), .message = event.text("message"), .out_of_memory = event.flag("out_of_memory")};
  } else if (kind == "problem") {
    record.problems.push_back(event.text("message"));
  } else if (kind == "end") {
    record.end = event.text("reason");
    record.rank = static_cast<std::int64_t>(event.count("rank"));
    record.world_size = static_cast<std::int64_t>(event.count("world_size"));
    event.for_each_entry("versions", [&](const std::string& name, const TextNode& version) {
      record.versions.emplace_back(name, version.text);
    });
  }
}

}  // namespace

Result<ProcessRecord> read_probe_record(std::string_view text, const std::string& file) {
  ProcessRecord record;
  std::uint32_t line = 0;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) break;  // cut off while it was written
    ++line;
    auto node = parse_json(text.substr(0, end), file);
    text.remove_prefix(end + 1);
    if (!node) {
      for (auto& d : node.error()) d.position.line = line;
      return Unexpected{std::move(node.error())};
    }
    add_event(record, Event{**node});
  }
  return record;
}

}  // namespace qlp
