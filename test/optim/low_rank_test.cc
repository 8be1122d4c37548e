#include "optim/low_rank.h"

#include <utility>

#include <doctest/doctest.h>

using namespace qlp;

// galore_projector.py, project(), 1.0.
TEST_CASE("optim/low_rank: a matrix is cut at its shorter side by std, at its longer one by reverse_std") {
  const auto from_left = [](ProjectionSide type, std::int64_t rows, std::int64_t columns) {
    const ProjectedSides sides = projected_sides(type, rows, columns);
    CHECK(sides.left != sides.right);
    return sides.left;
  };
  for (const auto& [rows, columns] : {std::pair{300, 200}, std::pair{200, 200}, std::pair{200, 300}}) {
    CHECK(from_left(ProjectionSide::std, rows, columns) == (rows < columns));
    CHECK(from_left(ProjectionSide::reverse_std, rows, columns) == (rows >= columns));
    CHECK(from_left(ProjectionSide::left, rows, columns));
    CHECK_FALSE(from_left(ProjectionSide::right, rows, columns));
    const ProjectedSides both = projected_sides(ProjectionSide::full, rows, columns);
    CHECK(both.left);
    CHECK(both.right);
  }
}
