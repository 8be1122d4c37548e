#include "memory/allocator_config.h"

#include <string>

#include <doctest/doctest.h>

using namespace qlp;

namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

AllocatorConfig parsed(const char* text, LargerSizes larger_sizes = LargerSizes::after_last) {
  const auto config = parse_allocator_config(text, larger_sizes);
  REQUIRE(config);
  return *config;
}

Diagnostics errors_of(const char* text) {
  const auto config = parse_allocator_config(text);
  REQUIRE_FALSE(config);
  return config.error();
}

}  // namespace

TEST_CASE("memory/allocator_config: no text means the defaults") {
  CHECK(parsed("") == AllocatorConfig{});
  CHECK(parsed("backend:native,pinned_use_background_threads:True,throw_on_cudamalloc_oom:True,") == AllocatorConfig{});
}

TEST_CASE("memory/allocator_config: each option is read, with spaces anywhere around it") {
  const auto config = parsed(
      " expandable_segments : True, max_split_size_mb:64,max_non_split_rounding_mb:30,"
      "garbage_collection_threshold:0.8,per_process_memory_fraction:0.5");
  CHECK(config.expandable_segments);
  CHECK(config.max_split_size == 64 * kMiB);
  CHECK(config.max_non_split_rounding == 30 * kMiB);
  CHECK(config.garbage_collection_threshold == 0.8);
  CHECK(config.memory_fraction == 0.5);
  CHECK_FALSE(parsed("per_process_memory_fraction:1.0").memory_fraction);
}

TEST_CASE("memory/allocator_config: larger segments move the limits of the other options, in any order") {
  const auto config = parsed("max_split_size_mb:12,large_segment_size_mb:12");
  CHECK(config.large_segment_size == 12 * kMiB);
  CHECK(config.max_split_size == 12 * kMiB);
  CHECK(errors_of("large_segment_size_mb:10").at(0).message == "large_segment_size_mb must be above 10");
  CHECK(errors_of("max_split_size_mb:19").at(0).message == "max_split_size_mb must be at least 20");
  CHECK(errors_of("max_split_size_mb:29,large_segment_size_mb:30").size() == 1);
  CHECK(errors_of("max_non_split_rounding_mb:19").size() == 1);
}

TEST_CASE("memory/allocator_config: one number of divisions holds for all sizes") {
  for (auto divisions : parsed("roundup_power2_divisions:4").roundup_power2_divisions) CHECK(divisions == 4);
}

TEST_CASE("memory/allocator_config: divisions by size, as torch's snapshot shows them") {
  const auto at = [](const AllocatorConfig& config, std::uint64_t mib) {
    return config.power2_divisions_at(mib * kMiB);
  };
  const auto newer = parsed("roundup_power2_divisions:[64:8,256:4,1024:2,>:1]");
  CHECK(newer.power2_divisions_at(1) == 8);
  CHECK(at(newer, 64) == 8);
  CHECK(at(newer, 127) == 8);
  CHECK(at(newer, 128) == 0);  // an interval between two given ones is not filled
  CHECK(at(newer, 256) == 4);
  CHECK(at(newer, 1024) == 2);
  CHECK(at(newer, 2048) == 1);
  CHECK(at(newer, std::uint64_t{1} << 30) == 1);
  const auto older = parsed("roundup_power2_divisions:[64:8,256:4,1024:2,>:1]", LargerSizes::from_last);
  CHECK(at(older, 512) == 0);
  CHECK(at(older, 1024) == 1);
  CHECK(at(parsed("roundup_power2_divisions:[>:8]"), 1) == 0);
  CHECK(at(parsed("roundup_power2_divisions:[>:8]", LargerSizes::from_last), 1) == 8);
  CHECK(at(parsed("roundup_power2_divisions:[131072:4]"), 1) == 4);
}

TEST_CASE("memory/allocator_config: all errors at once, each with its place") {
  const auto errors = errors_of("max_split_size_mb:x,expandable_segment:True,garbage_collection_threshold:1");
  REQUIRE(errors.size() == 3);
  CHECK(errors[0].position.column == 19);
  CHECK(errors[0].message == "expected a whole number of MiB instead of 'x'");
  CHECK(errors[1].code == "unknown-key");
  CHECK(errors[1].hint == "did you mean expandable_segments?");
  CHECK(errors[1].position.column == 21);
  CHECK(errors[2].position.column == 74);
}

TEST_CASE("memory/allocator_config: what torch refuses is refused") {
  for (auto text : {"expandable_segments:true", "expandable_segments", "garbage_collection_threshold:0",
                    "roundup_power2_divisions:3", "roundup_power2_divisions:0", "roundup_power2_divisions:[256:3]",
                    "roundup_power2_divisions:[300:4]", "roundup_power2_divisions:[256:2", "backend:foo",
                    "roundup_power2_divisions:[256:1,,512:2]", "per_process_memory_fraction:1.1", "nonsense"}) {
    CAPTURE(text);
    CHECK(errors_of(text).size() >= 1);
  }
}

TEST_CASE("memory/allocator_config: what torch reads by accident is refused too") {
  for (auto text : {"max_split_size_mb:64x", "max_split_size_mb:-1", "max_split_size_mb:99999999999999999999"}) {
    CAPTURE(text);
    CHECK(errors_of(text).size() == 1);
  }
}

TEST_CASE("memory/allocator_config: the driver's pool is not supported") {
  CHECK(errors_of("backend:cudaMallocAsync").at(0).hint == "use the backend native");
}
