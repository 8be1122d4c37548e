// Where the parameters of one optimizer group lie in the flat buffer that the ranks share, in equal parts
// (deepspeed/runtime/zero/stage_1_and_2.py, get_partition_info, initialize_gradient_partition, 0.18.3).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace qlp {

class ZeroLayout {
 public:
  /// A part of a parameter that belongs to one rank.
  struct Slice {
    std::int64_t rank = 0;
    std::int64_t numel = 0;
    friend bool operator==(const Slice&, const Slice&) = default;
  };

  /// `numels` in the order of the flat buffer, which is padded to a multiple of two elements for each rank.
  ZeroLayout(const std::vector<std::int64_t>& numels, std::int64_t world_size);

  std::int64_t numel() const { return partition_size_ * world_size_; }
  std::int64_t partition_size() const { return partition_size_; }
  /// The slices of parameter `index`, in order.
  std::vector<Slice> slices(std::size_t index) const;
  /// The parameters of which `rank` has a part.
  std::vector<std::size_t> members(std::int64_t rank) const;
  bool has(std::int64_t rank, std::size_t index) const;
  /// Where in the part of `rank` what it has of a parameter begins.
  std::int64_t start_in(std::int64_t rank, std::size_t index) const {
    return std::max<std::int64_t>(0, begin(index) - rank * partition_size_);
  }

 private:
  std::int64_t begin(std::size_t index) const { return ends_[index] - numels_[index]; }

  std::vector<std::int64_t> numels_, ends_;
  std::int64_t world_size_;
  std::int64_t partition_size_;
};

/// round_robin_gradients: the i-th place of the flat buffer is for parameter order[i], so that neighbours belong to
/// different ranks (_round_robin_reorder).
std::vector<std::size_t> round_robin_order(std::size_t parameters, std::int64_t partitions);

}  // namespace qlp
