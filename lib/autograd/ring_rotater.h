// Buffers that go round the ranks that share a sequence (_AllGatherRotater, _AllToAllRotater of torch's
// _context_parallel/_attention.py, 2.14).
#pragma once

#include <utility>

#include "autograd/ring_attention.h"
#include "tensor/collective.h"
#include "tensor/factories.h"

namespace qlp {

class RingRotater {
 public:
  RingRotater(const Ring& ring, RingRotation rotation) : ring_(ring), rotation_(rotation) {}

  /// Starts to give `own` [n] to the others, and holds it until somebody waits for what comes.
  void exchange(Context& ctx, Tensor own) {
    const bool gathers = rotation_ == RingRotation::allgather;
    if (gathers && buffer_.defined()) return;
    const std::int64_t count = own.numel() * (gathers ? ring_.ranks : 1);
    buffer_ = empty(ctx, {count}, own.dtype(), gathers ? Op::all_gather : Op::recv);
    if (gathers)
      all_gather(ctx, ring_.group(), buffer_, own);
    else
      rotate(ctx, own);
    sent_ = std::move(own);
  }
  /// Waits. What has come from the rank before: a part of what was gathered.
  Tensor next_buffer() {
    sent_.reset();
    if (rotation_ == RingRotation::alltoall) return buffer_;
    const std::int64_t count = buffer_.numel() / ring_.ranks;
    return buffer_.flat((ring_.rank + ring_.ranks - ++steps_) % ring_.ranks * count, count);
  }

 private:
  /// To the next rank, and from the one before.
  void rotate(Context& ctx, const Tensor& own) const {
    const std::uint64_t bytes = bytes_of(own.shape(), own.dtype()).count();
    for (const Collective kind : {Collective::send, Collective::recv}) communicate(ctx, kind, ring_.group(), bytes);
    qlp::exchange(ctx, ring_.group(), own, (ring_.rank + 1) % ring_.ranks, buffer_,
                  (ring_.rank + ring_.ranks - 1) % ring_.ranks);
  }

  Ring ring_;
  RingRotation rotation_;
  Tensor sent_, buffer_;
  std::int64_t steps_ = 0;  ///< of the ring, so far
};

}  // namespace qlp
