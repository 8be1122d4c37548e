#include "step/context_parallel.h"

#include "tensor/collective.h"
#include "tensor/factories.h"

namespace qlp {

std::vector<double> balanced_piece(const std::vector<double>& whole, std::int64_t length, std::int64_t ranks,
                                   std::int64_t rank) {
  if (ranks == 1) return whole;
  const std::int64_t part = length / (2 * ranks);
  std::vector<double> piece;
  for (auto row = whole.begin(); row != whole.end(); row += length)
    for (const std::int64_t i : {rank, 2 * ranks - 1 - rank})
      piece.insert(piece.end(), row + i * part, row + (i + 1) * part);
  return piece;
}

SplitBuffers split_buffers(Context& ctx, const Shape& batch, const RankGroup& group) {
  constexpr int kBuffers = 4;
  SplitBuffers split;
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
