// What the attention kernels do differently by version of torch; plan/stack_profile fills it in, with sources.
#pragma once

namespace qlp {

struct AttentionBehaviour {
  /// FlashAttention's seed and offset lie on the device: two small tensors a call (torch 2.5 on).
  bool flash_rng_on_device = true;
  /// FlashAttention splits the keys until two blocks run on each multiprocessor (2.5 on); before, until one does.
  bool flash_fills_twice = true;
  /// The memory-efficient kernel's seed and offset lie on the device even without dropout (2.9 on).
  bool efficient_rng_on_device = false;
  /// The memory-efficient kernel takes fewer heads of keys than of queries (2.9 on).
  bool efficient_groups_heads = false;
  /// x[:, :, None, :, :] leaves a node for each slice of everything (before 2.9).
  bool full_slices_record = false;
  /// A boolean mask becomes an additive one by torch.where (2.5 on); before, by zeros and masked_fill_.
  bool converts_mask_by_where = true;
};

}  // namespace qlp
