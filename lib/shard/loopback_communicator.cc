#include "shard/loopback_communicator.h"

#include <cstddef>

namespace qlp {
namespace {

Array dense(void* data, std::int64_t count, DType dtype) {
  const Shape shape{count};
  return {static_cast<std::byte*>(data), dtype, shape, contiguous_strides(shape)};
}

std::byte* part(void* data, std::int64_t index, std::int64_t count, DType dtype) {
  return static_cast<std::byte*>(data) + static_cast<std::size_t>(index * count) * size_of(dtype);
}

const std::byte* part(const void* data, std::int64_t index, std::int64_t count, DType dtype) {
  return static_cast<const std::byte*>(data) + static_cast<std::size_t>(index * count) * size_of(dtype);
}

}  // namespace

void LoopbackCommunicator::copy(StreamId stream, void* out, const void* in, std::int64_t count, DType dtype) {
  if (count == 0 || out == in) return;
  kernels_.unary(stream, Unary::copy, dense(out, count, dtype), dense(const_cast<void*>(in), count, dtype), 0, 0);
}

void LoopbackCommunicator::all_gather(StreamId stream, const RankGroup& group, void* out, const void* in,
                                      std::int64_t count, DType dtype) {
  for (std::int64_t place = 0; place < group.size; ++place)
    copy(stream, part(out, place, count, dtype), in, count, dtype);
}

void LoopbackCommunicator::reduce_scatter(StreamId stream, const RankGroup& group, void* out, const void* in,
                                          std::int64_t count, DType dtype, ReduceOp /*op*/) {
  copy(stream, out, part(in, place_in(group, rank_), count, dtype), count, dtype);
}

void LoopbackCommunicator::all_reduce(StreamId /*stream*/, const RankGroup& /*group*/, void* /*data*/,
                                      std::int64_t /*count*/, DType /*dtype*/, ReduceOp /*op*/) {}

void LoopbackCommunicator::reduce(StreamId /*stream*/, const RankGroup& /*group*/, void* /*data*/,
                                  std::int64_t /*count*/, DType /*dtype*/, ReduceOp /*op*/, std::int64_t /*root*/) {}

void LoopbackCommunicator::broadcast(StreamId stream, const RankGroup& group, void* data, std::int64_t count,
                                     DType dtype, std::int64_t root) {
  if (place_in(group, rank_) != root) recv(stream, group, data, count, dtype, root);
}

void LoopbackCommunicator::all_to_all(StreamId stream, const RankGroup& group, void* out, const Counts& from,
                                      const void* in, const Counts& to, DType dtype) {
  std::int64_t read = 0, written = 0;
  for (std::size_t place = 0; place < to.size(); ++place) {
    if (from[place] == to[place])
      copy(stream, part(out, 1, written, dtype), part(in, 1, read, dtype), to[place], dtype);
    else
      recv(stream, group, part(out, 1, written, dtype), from[place], dtype, static_cast<std::int64_t>(place));
    read += to[place], written += from[place];
  }
}

void LoopbackCommunicator::send(StreamId /*stream*/, const RankGroup& /*group*/, const void* /*data*/,
                                std::int64_t /*count*/, DType /*dtype*/, std::int64_t /*to*/) {}

void LoopbackCommunicator::recv(StreamId stream, const RankGroup& /*group*/, void* data, std::int64_t count,
                                DType dtype, std::int64_t /*from*/) {
  if (count > 0) kernels_.fill(stream, dense(data, count, dtype), 0);
}

void LoopbackCommunicator::exchange(StreamId stream, const RankGroup& group, const void* /*in*/, std::int64_t /*to*/,
                                    void* out, std::int64_t from, std::int64_t count, DType dtype) {
  recv(stream, group, out, count, dtype, from);
}

void LoopbackCommunicator::barrier(const RankGroup& /*group*/) {}

}  // namespace qlp
