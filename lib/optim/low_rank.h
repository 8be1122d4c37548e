// The projections of gradients to fewer rows or columns that GaLore and APOLLO share.
#pragma once

#include <cstdint>

namespace qlp {

/// std multiplies a matrix at its longer side, so that its shorter one is cut; reverse_std the other.
enum class ProjectionSide : std::uint8_t { std, reverse_std, left, right, full };

/// Keys of optim_args.
struct LowRank {
  std::int64_t rank = 128;
  ProjectionSide proj_type = ProjectionSide::std;
  std::int64_t update_proj_gap = 200;  ///< steps between new projections
  double scale = 1;                    ///< of updates
  friend bool operator==(const LowRank&, const LowRank&) = default;
};

/// The sides that a matrix is multiplied from: from the left its rows are cut, from the right its columns.
struct ProjectedSides {
  bool left = false, right = false;
};

inline ProjectedSides projected_sides(ProjectionSide type, std::int64_t rows, std::int64_t columns) {
  using enum ProjectionSide;
  if (type == full) return {true, true};
  const bool tall = rows >= columns;
  const bool from_right = type == right || (type == ProjectionSide::std && tall) || (type == reverse_std && !tall);
  return {!from_right, from_right};
}

}  // namespace qlp
