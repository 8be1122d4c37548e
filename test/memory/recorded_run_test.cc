// Training steps of the real libraries, as their allocator recorded them. The recordings are not part of the project:
// they are read where the folder `shared` lies beside it, or where QLP_SHARED_DIR says.
#include <cstdlib>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <zlib.h>

#include "memory/caching_allocator.h"
#include "memory/recorded_source.h"

using namespace qlp;
using namespace qlp::test;

namespace {

std::filesystem::path recordings() {
  const char* shared = std::getenv("QLP_SHARED_DIR");
  return std::filesystem::path(shared != nullptr ? shared : "../shared") / "data/oracle/events";
}

std::vector<HistoryLine> read_history(const std::filesystem::path& path) {
  std::string text;
  gzFile file = gzopen(path.c_str(), "rb");
  REQUIRE(file != nullptr);
  char buffer[1 << 16];
  for (int n = 0; (n = gzread(file, buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<std::size_t>(n));
  gzclose(file);

  std::vector<HistoryLine> history;
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);
  REQUIRE(line == "action,size,stream,address");
  while (std::getline(lines, line)) {
    std::istringstream fields(line);
    HistoryLine& event = history.emplace_back();
    char comma = 0;
    std::getline(fields, event.action, ',');
    fields >> event.bytes >> comma >> event.stream >> comma >> event.address;
  }
  return history;
}

bool is_outcome(const std::string& action) { return action.starts_with("segment_"); }

/// Drives an allocator by the lines about blocks, and expects the lines about segments, and all addresses, to follow.
void check_run(const std::string& name, const char* options) {
  const auto path = recordings() / (name + ".csv.gz");
  if (!std::filesystem::exists(path)) {
    MESSAGE("skipped: no " << path.string());
    return;
  }
  CAPTURE(name);
  const auto history = read_history(path);
  RecordedSource source(CounterSource::kUnlimited);
  for (const auto& line : history)
    if (line.action == "segment_alloc") source.segments.push_back(line.address);
  // An address space begins where nothing of an earlier one is left or goes on.
  std::map<std::uint64_t, std::uint64_t> mapped;
  for (const auto& line : history) {
    if (line.action == "segment_map") {
      const auto after = mapped.upper_bound(line.address);
      if (after == mapped.begin() || std::prev(after)->second != line.address)
        source.address_spaces.push_back(line.address);
      mapped[line.address] = line.address + line.bytes;
    } else if (line.action == "segment_unmap") {
      mapped.erase(line.address);
    }
  }

  EventLog log;
  CachingAllocator allocator(parse_allocator_config(options).value(), source, EventPolicy::at_synchronize);
  allocator.set_observer(&log);
  constexpr StreamId kSomeOtherStream = kMaxStreams - 1;
  std::map<std::uint64_t, Block*> allocated, pending;
  for (std::size_t i = 0; i < history.size(); ++i) {
    const HistoryLine& line = history[i];
    CAPTURE(i);
    if (line.action == "alloc") {
      Block* block = allocator.allocate(line.bytes, line.stream);
      REQUIRE(block->address == line.address);
      allocated[line.address] = block;
    } else if (line.action == "free_requested") {
      Block* block = allocated.at(line.address);
      allocated.erase(line.address);
      const bool at_once =
          i + 1 < history.size() && history[i + 1].action == "free_completed" && history[i + 1].address == line.address;
      if (!at_once) {
        allocator.record_stream(block, kSomeOtherStream);
        pending[line.address] = block;
      }
      allocator.free(block);
    } else if (line.action == "free_completed") {
      if (const auto waiting = pending.find(line.address); waiting != pending.end()) {
        allocator.complete_free(waiting->second);
        pending.erase(waiting);
      }
    } else if (log.lines.size() == i && (line.action == "segment_free" || line.action == "segment_unmap")) {
      allocator.empty_cache();  // not part of the recording, but the only other reason to give memory back
    } else {
      REQUIRE(is_outcome(line.action));
      continue;  // compared when the allocation that it belongs to has been made
    }
    REQUIRE(log.lines.size() > i);
    for (std::size_t j = i + 1; j-- > 0 && (j == i || is_outcome(history[j].action));)
      REQUIRE(log.lines[j] == history[j]);
  }
  CHECK(log.lines == history);
  CHECK(source.segments.empty());
}

}  // namespace

TEST_CASE("memory/recorded_run: single device, LoRA") { check_run("lora-single", ""); }
TEST_CASE("memory/recorded_run: single device, QLoRA") { check_run("qlora-single", ""); }
TEST_CASE("memory/recorded_run: FSDP2, LoRA") { check_run("lora-fsdp2-4", ""); }
TEST_CASE("memory/recorded_run: FSDP1 on a lagging device, LoRA") { check_run("lora-fsdp1-4-lazy", ""); }
TEST_CASE("memory/recorded_run: FSDP1 on a lagging device, full") { check_run("full-fsdp1-4-lazy", ""); }
TEST_CASE("memory/recorded_run: expandable segments") {
  check_run("lora-single-expandable", "expandable_segments:True");
}
TEST_CASE("memory/recorded_run: blocks that are not split") {
  check_run("lora-single-split", "max_split_size_mb:64,roundup_power2_divisions:4");
}
