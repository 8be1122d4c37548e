#include "step/context_parallel.h"

#include "tensor/collective.h"
#include "tensor/factories.h"

namespace qlp {

SplitBuffers split_buffers(Context& ctx, const Shape& batch, const RankGroup& group) {
  constexpr int kBuffers = 4;
  SplitBuffers split;
  if (group.size == 1) return split;
  const Shape piece = batch.with(1, batch[1] / group.size);
  for (int i = 0; i < kBuffers; ++i) {
    const Tensor whole = empty(ctx, batch, DType::int64, Op::input);
    copy_to_device(ctx, bytes_of(batch, DType::int64).count());
    split.shards.push_back(empty(ctx, piece, DType::int64, Op::clone));
  }
  for (int i = 0; i < kBuffers; ++i) {
    split.last.reset();
    split.last = empty(ctx, piece, DType::int64, Op::clone);
    copy_to_host(ctx, bytes_of(piece, DType::int64).count());
  }
  return split;
}

}  // namespace qlp
