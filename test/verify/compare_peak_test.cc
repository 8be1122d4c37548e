#include "verify/compare_peak.h"

#include <doctest/doctest.h>

using namespace qlp;

namespace {

InventoryItem item(Category category, std::string op, std::uint64_t count, std::uint64_t each) {
  InventoryItem out;
  out.category = category, out.op = std::move(op), out.count = count;
  out.requested = out.allocated = Bytes{count * each};
  return out;
}

}  // namespace

TEST_CASE("verify/compare_peak: equal blocks make no difference, however they are grouped and named") {
  const auto peak = compare_peak(
      "micro1.backward", {item(Category::activations, "a", 2, 512), item(Category::gradient_temporaries, "b", 1, 512)},
      {item(Category::activations, "mul", 3, 512)});
  CHECK(peak.phase == "micro1.backward");
  CHECK(peak.tensors.empty());
  REQUIRE(peak.categories.size() == 2);
  CHECK(peak.categories[0].category == Category::activations);
  CHECK(peak.categories[0].measured == Bytes{1024});
  CHECK(peak.categories[0].predicted == Bytes{1536});
}

TEST_CASE("verify/compare_peak: what one side has more of is named by both, the heaviest first") {
  const auto peak = compare_peak("p",
                                 {item(Category::activations, "line.py:3", 5, 512),
                                  item(Category::adapter, "x", 1, 4096), item(Category::parameters, "w", 7, 1024)},
                                 {item(Category::activations, "silu", 4, 512), item(Category::parameters, "w", 7, 1024),
                                  item(Category::workspace, "cublas", 1, 8192)});
  REQUIRE(peak.tensors.size() == 3);
  CHECK(peak.tensors[0].size == Bytes{8192});
  CHECK(peak.tensors[0].predicted == 1);
  CHECK(peak.tensors[0].predicted_as == "cublas (workspace)");
  CHECK(peak.tensors[0].measured_as.empty());
  CHECK(peak.tensors[1].measured_as == "x (adapter)");
  CHECK(peak.tensors[2].measured == 5);
  CHECK(peak.tensors[2].predicted == 4);
  CHECK(compare_peak("p", {item(Category::adapter, "x", 1, 1), item(Category::adapter, "y", 1, 2)}, {}, 1)
            .tensors.size() == 1);
}
