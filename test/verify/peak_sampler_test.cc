#include "verify/peak_sampler.h"

#include <atomic>
#include <stdexcept>

#include <doctest/doctest.h>

namespace qlp {
namespace {

using std::chrono::milliseconds;

TEST_CASE("verify/peak_sampler: the most that was there is kept, and the last moment is seen") {
  std::atomic<std::uint64_t> amount{7};
  std::atomic<int> looks{0};
  PeakSampler sampler(
      [&] {
        ++looks;
        return Bytes{amount.load()};
      },
      milliseconds{1});
  while (looks < 2) std::this_thread::yield();
  amount = 50;
  const int before = looks;
  while (looks < before + 2) std::this_thread::yield();
  amount = 9;
  CHECK(sampler.stop() == Bytes{50});
  CHECK(sampler.stop() == Bytes{50});

  PeakSampler late([&] { return Bytes{amount.load()}; }, milliseconds{60'000});
  amount = 90;
  CHECK(late.stop() == Bytes{90});
}

TEST_CASE("verify/peak_sampler: a device that cannot be asked has no peak") {
  PeakSampler sampler([]() -> Bytes { throw std::runtime_error("gone"); }, milliseconds{1});
  CHECK(sampler.stop() == Bytes{});
}

}  // namespace
}  // namespace qlp
