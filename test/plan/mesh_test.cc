#include "plan/mesh.h"

#include <doctest/doctest.h>

using namespace qlp;

TEST_CASE("plan/mesh: stages are outermost, ranks that share layers lie side by side") {
  const Mesh mesh{.tp = 2, .pp = 2};
  CHECK(mesh.ranks_of_replica() == 4);
  const auto is = [&](std::int64_t rank, std::int64_t pp, std::int64_t dp, std::int64_t tp) {
    const MeshPlace place = place_in(mesh, 8, rank);
    return place.pp == pp && place.dp == dp && place.tp == tp;
  };
  CHECK(is(0, 0, 0, 0));
  CHECK(is(1, 0, 0, 1));
  CHECK(is(3, 0, 1, 1));
  CHECK(is(4, 1, 0, 0));
  CHECK(is(7, 1, 1, 1));
}
