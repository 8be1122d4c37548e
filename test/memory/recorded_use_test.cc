// The allocator beside PyTorch's own under random use (test/data/allocator, made by record_allocator.py).
#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include <doctest/doctest.h>

#include "memory/caching_allocator.h"
#include "memory/recorded_source.h"

using namespace qlp;
using namespace qlp::test;

namespace {

struct Recording {
  std::map<std::string, std::string> settings;
  std::vector<std::string> done;
  std::vector<HistoryLine> history;
  std::vector<std::uint64_t> address_spaces;
  std::map<std::string, MemoryStats::Figure> figures;
  std::uint64_t retries = 0, ooms = 0;
};

Recording read_recording(const std::string& path) {
  Recording recording;
  std::ifstream file(path);
  REQUIRE_MESSAGE(file.good(), path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string kind;
    words >> kind >> std::ws;
    if (kind == "set") {
      std::string key, value;
      words >> key >> std::ws;
      std::getline(words, value);
      recording.settings[key] = value;
    } else if (kind == "do") {
      std::getline(words, recording.done.emplace_back());
    } else if (kind == "reserve") {
      std::int64_t address = 0;
      words >> address;
      recording.address_spaces.push_back(static_cast<std::uint64_t>(address));
    } else if (kind == "event") {
      HistoryLine& event = recording.history.emplace_back();
      words >> event.action >> event.stream >> event.bytes >> event.address;
    } else if (kind == "peak") {
      std::string figure;
      words >> figure;
      words >> recording.figures[figure].current >> recording.figures[figure].peak;
    } else if (kind == "count") {
      words >> recording.retries >> recording.ooms;
    }
  }
  return recording;
}

/// torch keeps the events of several streams in a hash table, and orders streams by their pointers: within a run of
/// these lines the order means nothing. Of an `oom` only the place is recorded.
std::vector<HistoryLine> comparable(std::vector<HistoryLine> lines) {
  const auto unordered = [](const HistoryLine& line) {
    return line.action == "free_completed" || line.action == "segment_free" || line.action == "segment_unmap";
  };
  for (auto begin = lines.begin(); begin != lines.end();) {
    if (begin->action == "oom") *begin = {"oom", 0, 0, 0};
    const auto end = std::find_if(begin, lines.end(), [&](const HistoryLine& l) { return l.action != begin->action; });
    if (unordered(*begin)) {
      std::sort(begin, end, [](const HistoryLine& a, const HistoryLine& b) { return a.address < b.address; });
      begin = end;
    } else {
      ++begin;
    }
  }
  return lines;
}

AllocatorConfig config_of(const Recording& recording) {
  const bool older = recording.settings.at("torch").starts_with("2.8");
  auto config = parse_allocator_config(recording.settings.at("options"),
                                       older ? LargerSizes::from_last : LargerSizes::after_last);
  REQUIRE(config);
  config->equal_blocks = older ? EqualBlocks::lowest_address : EqualBlocks::oldest_segment;
  if (const auto fraction = recording.settings.find("fraction"); fraction != recording.settings.end())
    config->memory_fraction = std::stod(fraction->second);
  return *config;
}

void use(CachingAllocator& allocator, const std::vector<std::string>& done) {
  std::map<int, Block*> blocks;
  for (const auto& line : done) {
    std::istringstream words(line);
    std::string what;
    int id = 0;
    std::uint64_t bytes = 0;
    StreamId stream = 0;
    words >> what;
    if (what == "allocate") {
      words >> id >> bytes >> stream;
      REQUIRE_NOTHROW_MESSAGE(blocks[id] = allocator.allocate(bytes, stream), line);
    } else if (what == "fail") {
      words >> bytes >> stream;
      REQUIRE_THROWS_AS_MESSAGE(allocator.allocate(bytes, stream), OutOfMemory, line);
    } else if (what == "free") {
      words >> id;
      allocator.free(blocks.at(id));
    } else if (what == "record") {
      words >> id >> stream;
      allocator.record_stream(blocks.at(id), stream);
    } else if (what == "synchronize") {
      allocator.synchronize();
    } else if (what == "empty_cache") {
      allocator.empty_cache();
    } else {
      FAIL(line);
    }
  }
}

void check_recording(const std::string& name) {
  CAPTURE(name);
  const Recording recording = read_recording("test/data/allocator/" + name + ".txt");
  RecordedSource source(std::stoull(recording.settings.at("capacity")));
  for (const auto& line : recording.history)
    if (line.action == "segment_alloc") source.segments.push_back(line.address);
  source.address_spaces.assign(recording.address_spaces.begin(), recording.address_spaces.end());
  EventLog log;
  CachingAllocator allocator(
      config_of(recording), source,
      recording.settings.at("lazy") == "1" ? EventPolicy::at_synchronize : EventPolicy::ready_at_once);
  allocator.set_observer(&log);
  use(allocator, recording.done);

  const auto expected = comparable(recording.history);
  const auto got = comparable(log.lines);
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CAPTURE(i);
    REQUIRE(got[i].action == expected[i].action);
    REQUIRE(got[i].bytes == expected[i].bytes);
    REQUIRE(got[i].address == expected[i].address);
    REQUIRE(got[i].stream == expected[i].stream);
  }
  const auto check_figure = [&](const char* figure, const MemoryStats::Figure& value) {
    CAPTURE(figure);
    CHECK(value.current == recording.figures.at(figure).current);
    CHECK(value.peak == recording.figures.at(figure).peak);
  };
  const MemoryStats& stats = allocator.stats();
  check_figure("requested", stats.requested);
  check_figure("allocated", stats.allocated);
  check_figure("active", stats.active);
  check_figure("reserved", stats.reserved);
  CHECK(stats.num_alloc_retries == recording.retries);
  CHECK(stats.num_ooms == recording.ooms);
}

}  // namespace

TEST_CASE("memory/recorded_use: default options, several streams, near the limit") { check_recording("defaults"); }
TEST_CASE("memory/recorded_use: events that complete only at a synchronisation") { check_recording("lazy"); }
TEST_CASE("memory/recorded_use: expandable segments") { check_recording("expandable"); }
TEST_CASE("memory/recorded_use: blocks that are not split, sizes rounded by interval") { check_recording("split"); }
TEST_CASE("memory/recorded_use: garbage collection under a memory fraction") { check_recording("garbage"); }
TEST_CASE("memory/recorded_use: torch 2.14 takes the oldest of equal blocks") { check_recording("newer"); }
TEST_CASE("memory/recorded_use: larger segments and a memory fraction among the options") {
  check_recording("newer-large-segments");
}
