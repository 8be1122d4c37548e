#include "shard/zero_layout.h"

#include <algorithm>

#include "base/rounding.h"

namespace qlp {
namespace {

constexpr std::int64_t kRankAlignment = 2;  // elements for each rank: nccl_start_alignment_factor

}  // namespace

ZeroLayout::ZeroLayout(const std::vector<std::int64_t>& numels, std::int64_t world_size)
    : numels_(numels), world_size_(world_size) {
  std::int64_t total = 0;
  for (const std::int64_t numel : numels_) ends_.push_back(total += numel);
  partition_size_ = ceil_div(total, kRankAlignment * world_size_) * kRankAlignment;
}

std::vector<ZeroLayout::Slice> ZeroLayout::slices(std::size_t index) const {
  std::vector<Slice> out;
  for (std::int64_t at = begin(index); at < ends_[index];) {
    const std::int64_t rank = at / partition_size_;
    const std::int64_t end = std::min(ends_[index], (rank + 1) * partition_size_);
    out.push_back({rank, end - at});
    at = end;
  }
  return out;
}

bool ZeroLayout::has(std::int64_t rank, std::size_t index) const {
  return begin(index) < (rank + 1) * partition_size_ && ends_[index] > rank * partition_size_;
}

std::vector<std::size_t> ZeroLayout::members(std::int64_t rank) const {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < numels_.size(); ++i)
    if (has(rank, i)) out.push_back(i);
  return out;
}

std::vector<std::size_t> round_robin_order(std::size_t parameters, std::int64_t partitions) {
  std::vector<std::size_t> order;
  const auto step = static_cast<std::size_t>(partitions);
  for (std::size_t first = 0; first < std::min(step, parameters); ++first)
    for (std::size_t i = first; i < parameters; i += step) order.push_back(i);
  return order;
}

}  // namespace qlp
