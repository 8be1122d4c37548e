#include "memory/host_memory.h"

#include <doctest/doctest.h>

using namespace qlp;

namespace {

constexpr auto kPageable = HostKind::pageable, kPinned = HostKind::pinned, kMapped = HostKind::mapped;

std::uint64_t sum(const HostFigures& figures) {
  std::uint64_t bytes = 0;
  for (const std::uint64_t of_category : figures.categories) bytes += of_category;
  return bytes;
}

}  // namespace

TEST_CASE("memory/host_memory: each phase has the peak of its total, and what is held at its end") {
  HostMemory host(PinnedReuse::same_size);
  host.begin_phase("load");
  const auto a = host.take(kPageable, 1000, Category::parameters);
  const auto b = host.take(kPageable, 3000, Category::activations);
  host.give_back(kPageable, 3000, b, Category::activations);
  host.begin_phase("prepare");
  host.take(kPinned, 500, Category::gradients);
  host.give_back(kPageable, 1000, a, Category::parameters);
  host.finish();

  const auto& phases = host.phases();
  REQUIRE(phases.size() == 2);
  CHECK(phases[0].name == "load");
  CHECK(phases[0].peak.total() == 4000);
  CHECK(sum(phases[0].peak) == 4000);
  CHECK(phases[0].held.total() == 1000);
  CHECK(phases[1].peak.total() == 1512);
  CHECK(phases[1].peak.pinned == 512);
  CHECK(sum(phases[1].peak) == 1500);
  CHECK(phases[1].held.pageable == 0);
  CHECK(phases[1].held.pinned == 512);
}

TEST_CASE("memory/host_memory: pinned blocks are powers of two and are kept when they are free") {
  HostMemory host(PinnedReuse::same_size);
  host.begin_phase("all");
  const auto block = host.take(kPinned, 1025, Category::parameters);
  CHECK(block == 2048);
  CHECK(host.now().pinned == 2048);
  host.give_back(kPinned, 1025, block, Category::parameters);
  CHECK(host.now().pinned == 2048);
  CHECK(sum(host.now()) == 0);
  CHECK(host.take(kPinned, 2048, Category::parameters) == 2048);
  CHECK(host.now().pinned == 2048);
  CHECK(host.take(kPinned, 2049, Category::parameters) == 4096);
  CHECK(host.now().pinned == 2048 + 4096);
}

TEST_CASE("memory/host_memory: a free block serves its own size only, or all that it is large enough for") {
  for (const auto reuse : {PinnedReuse::same_size, PinnedReuse::large_enough}) {
    HostMemory host(reuse);
    const auto large = host.take(kPinned, 1 << 20, Category::parameters);
    host.give_back(kPinned, 1 << 20, large, Category::parameters);
    const bool taken_again = host.take(kPinned, 100, Category::parameters) == 1 << 20;
    CHECK(taken_again == (reuse == PinnedReuse::large_enough));
    CHECK(host.now().pinned == (taken_again ? 1 << 20 : (1 << 20) + 128));
  }
}

TEST_CASE("memory/host_memory: mapped files are counted beside the total") {
  HostMemory host(PinnedReuse::same_size);
  host.begin_phase("load");
  const auto file = host.take(kMapped, 4000, Category::parameters);
  CHECK(host.now().mapped == 4000);
  CHECK(host.now().total() == 0);
  CHECK(sum(host.now()) == 0);
  host.give_back(kMapped, 4000, file, Category::parameters);
  host.take(kPageable, 10, Category::parameters);  // the greatest total, with nothing mapped any more
  host.finish();
  CHECK(host.phases().front().peak.mapped == 4000);
  CHECK(host.phases().front().held.mapped == 0);
}

TEST_CASE("memory/host_memory: bytes move from one category to another") {
  HostMemory host(PinnedReuse::same_size);
  const auto taken = host.take(kPageable, 10, Category::activations);
  host.relabel(kPageable, 10, Category::activations, Category::gradients);
  CHECK(host.now().categories[static_cast<std::size_t>(Category::activations)] == 0);
  CHECK(host.now().categories[static_cast<std::size_t>(Category::gradients)] == 10);
  host.give_back(kPageable, 10, taken, Category::gradients);
  CHECK(sum(host.now()) == 0);
}
