// What is alive at the peak, as it was found and as it was predicted: by category, and block by block.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "estimate/rank_ledger.h"
#include "estimate/verification.h"

namespace qlp {

/// Blocks are alike where they have the same allocated size: how they are called on either side, and in which category
/// they are counted, does not matter for what makes the difference. Sizes of which one side has more come first where
/// they weigh most, `most` of them at most. The blocks of an item have one size (EstimateOptions::phase_inventories and
/// the probe of traced programs see to that).
ComparedPeak compare_peak(std::string phase, const std::vector<InventoryItem>& measured,
                          const std::vector<InventoryItem>& predicted, std::size_t most = 20);

}  // namespace qlp
