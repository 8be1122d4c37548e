#include "estimate/verification.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace qlp {

bool Tolerance::allows(Bytes measured, Bytes predicted) const {
  const double off = std::abs(static_cast<double>(difference(measured, predicted).count()));
  return off <= static_cast<double>(bytes.count()) + share * static_cast<double>(predicted.count());
}

bool Verification::finished() const {
  return !interrupted && !ranks.empty() &&
         std::ranges::all_of(ranks, [](const RankVerification& rank) { return rank.end == RankEnd::finished; });
}

bool Verification::within_tolerance() const {
  const auto is_near = [&](const ComparedFigure& figure) {
    return !figure.judged ||
           (figure.measured && figure.predicted && tolerance.allows(*figure.measured, *figure.predicted));
  };
  return finished() && std::ranges::all_of(ranks, [&](const RankVerification& rank) {
           return std::ranges::all_of(rank.figures, is_near) &&
                  std::ranges::all_of(rank.losses, [](double loss) { return std::isfinite(loss); });
         });
}

bool Verification::out_of_memory() const {
  return std::ranges::any_of(ranks, [](const RankVerification& rank) { return rank.end == RankEnd::out_of_memory; });
}

}  // namespace qlp
