// A device that watches the order of its streams: work on one stream must not touch what another stream may still be
// working on. It computes at once, as the CPU does, and keeps for every piece of memory who wrote and read it last; an
// access that no wait puts after them is what would go wrong on a GPU, sooner or later.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <numeric>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "memory/segment_source.h"
#include "tensor/communicator.h"
#include "tensor/kernels.h"
#include "tensor/streams.h"

namespace qlp::test {

/// Dense bytes at an address.
inline Array bytes_at(const void* data, std::uint64_t bytes) {
  const auto count = static_cast<std::int64_t>(bytes);
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): nothing is written through it
  return {static_cast<std::byte*>(const_cast<void*>(data)), DType::uint8, {count}, contiguous_strides({count})};
}

/// Every stream counts its work; a clock says of each stream how much of its work is done before what comes next.
class StreamOrder final : public Streams {
 public:
  /// This memory is the device's; what is never told is the host's, and not looked at.
  void add_memory(std::uint64_t address, std::uint64_t bytes) {
    begin_ = std::min(begin_, address), end_ = std::max(end_, address + bytes);
  }

  void wait(StreamId stream, StreamId other) override { join(clocks_.at(stream), clocks_.at(other)); }
  void synchronize() override {
    for (StreamId stream = 0; stream < kStreams; ++stream) host_waits(stream);
  }
  void use_workspace(StreamId, void*, std::uint64_t) override {}

  /// The host has waited for this stream, so all that is queued later comes after it.
  void host_waits(StreamId stream) { join(host_, clocks_.at(stream)); }

  /// One piece of work.
  void note(StreamId stream, std::initializer_list<Array> reads, std::initializer_list<Array> writes) {
    used_ |= 1U << stream;
    Clock& clock = clocks_.at(stream);
    join(clock, host_);
    ++clock[stream];
    for (const Array& array : reads) each_grain(array, [&](Grain& grain) { read(grain, stream, clock); });
    for (const Array& array : writes) each_grain(array, [&](Grain& grain) { write(grain, stream, clock); });
  }

  /// Accesses that nothing puts in order, and the first of them in words.
  std::size_t hazards() const { return hazards_; }
  const std::string& first_hazard() const { return first_; }
  /// How many streams had work.
  int streams_used() const { return __builtin_popcount(used_); }
  /// Work on this stream begins: named in a hazard.
  void set_phase(const std::string& phase) { phase_ = phase; }

 private:
  static constexpr std::size_t kStreams = 16;
  static constexpr std::uint64_t kGrain = 4;  // bytes that count as one: no two tensors share them
  using Clock = std::array<std::uint32_t, kStreams>;
  struct Grain {
    StreamId writer = 0;
    std::uint32_t written = 0;  ///< by the writer's count
    Clock read{};
  };

  static void join(Clock& to, const Clock& from) {
    for (std::size_t i = 0; i < kStreams; ++i) to[i] = std::max(to[i], from[i]);
  }

  void read(Grain& grain, StreamId stream, const Clock& clock) {
    if (grain.written > clock[grain.writer]) hazard("reads", stream, "writes", grain.writer);
    grain.read[stream] = clock[stream];
  }
  void write(Grain& grain, StreamId stream, const Clock& clock) {
    if (grain.written > clock[grain.writer]) hazard("writes", stream, "writes", grain.writer);
    for (StreamId other = 0; other < kStreams; ++other)
      if (grain.read[other] > clock[other]) hazard("writes", stream, "reads", other);
    grain = {stream, clock[stream], {}};
  }
  void hazard(const char* what, StreamId stream, const char* before, StreamId other) {
    if (hazards_++ == 0)
      first_ = phase_ + ": stream " + std::to_string(stream) + " " + what + " what stream " + std::to_string(other) +
               " " + before;
  }

  template <class F>
  void each_grain(const Array& array, F&& f) {
    const auto address = reinterpret_cast<std::uint64_t>(array.data);
    if (address < begin_ || address >= end_ || array.numel() == 0) return;
    walk(array, 0, address, f);
  }
  template <class F>
  void walk(const Array& array, int dim, std::uint64_t address, F& f) {
    const int rank = static_cast<int>(array.shape.rank());
    const std::uint64_t size = size_of(array.dtype);
    std::int64_t run = 1;  // elements from `dim` on, if they lie in one run
    for (int d = rank; d-- > dim && run > 0;)
      run = array.size(d) == 1 || array.stride(d) == run ? run * array.size(d) : 0;
    if (run > 0) {
      const std::uint64_t last = address + static_cast<std::uint64_t>(run) * size - 1;
      for (std::uint64_t grain = address / kGrain; grain <= last / kGrain; ++grain) f(grains_[grain]);
      return;
    }
    const std::int64_t count = array.stride(dim) == 0 ? 1 : array.size(dim);
    for (std::int64_t i = 0; i < count; ++i)
      walk(array, dim + 1, address + static_cast<std::uint64_t>(i * array.stride(dim)) * size, f);
  }

  std::uint64_t begin_ = ~std::uint64_t{0}, end_ = 0;
  std::array<Clock, kStreams> clocks_{};
  Clock host_{};
  std::unordered_map<std::uint64_t, Grain> grains_;
  std::size_t hazards_ = 0;
  std::uint32_t used_ = 0;
  std::string first_, phase_;
};

/// Tells where the device's memory is.
class OrderedSegments final : public SegmentSource {
 public:
  OrderedSegments(SegmentSource& inner, StreamOrder& order) : inner_(inner), order_(order) {}

  std::uint64_t capacity() const override { return inner_.capacity(); }
  std::optional<std::uint64_t> allocate(std::uint64_t bytes) override {
    const auto address = inner_.allocate(bytes);
    if (address) order_.add_memory(*address, bytes);
    return address;
  }
  void release(std::uint64_t address, std::uint64_t bytes) override { inner_.release(address, bytes); }
  std::uint64_t reserve(std::uint64_t bytes) override {
    const std::uint64_t address = inner_.reserve(bytes);
    order_.add_memory(address, bytes);
    return address;
  }
  void unreserve(std::uint64_t address, std::uint64_t bytes) override { inner_.unreserve(address, bytes); }
  bool map(std::uint64_t address, std::uint64_t bytes) override { return inner_.map(address, bytes); }
  void unmap(std::uint64_t address, std::uint64_t bytes) override { inner_.unmap(address, bytes); }

 private:
  SegmentSource& inner_;
  StreamOrder& order_;
};

class OrderedKernels final : public Kernels {
 public:
  OrderedKernels(Kernels& inner, StreamOrder& order) : inner_(inner), order_(order) {}

  void fill(StreamId stream, const Array& out, double value) override {
    order_.note(stream, {}, {out});
    inner_.fill(stream, out, value);
  }
  void arange(StreamId stream, const Array& out, double start) override {
    order_.note(stream, {}, {out});
    inner_.arange(stream, out, start);
  }
  void causal_band(StreamId stream, const Array& out, std::int64_t window, double inside, double outside) override {
    order_.note(stream, {}, {out});
    inner_.causal_band(stream, out, window, inside, outside);
  }
  void random_uniform(StreamId stream, const Array& out, std::uint64_t key, std::uint64_t first, double low,
                      double high) override {
    order_.note(stream, {}, {out});
    inner_.random_uniform(stream, out, key, first, low, high);
  }
  void bernoulli(StreamId stream, const Array& out, std::uint64_t key, std::uint64_t first,
                 double probability) override {
    order_.note(stream, {}, {out});
    inner_.bernoulli(stream, out, key, first, probability);
  }
  void upload(StreamId stream, void* to, const void* from, std::uint64_t bytes) override {
    order_.note(stream, {}, {bytes_at(to, bytes)});
    inner_.upload(stream, to, from, bytes);
    order_.host_waits(stream);
  }
  void download(StreamId stream, void* to, const void* from, std::uint64_t bytes) override {
    order_.note(stream, {bytes_at(from, bytes)}, {});
    inner_.download(stream, to, from, bytes);
    order_.host_waits(stream);
  }
  void poison(StreamId stream, void* data, std::uint64_t bytes) override {
    order_.note(stream, {}, {bytes_at(data, bytes)});
    inner_.poison(stream, data, bytes);
  }
  void unary(StreamId stream, Unary op, const Array& out, const Array& x, double p, double q) override {
    order_.note(stream, {x}, {out});
    inner_.unary(stream, op, out, x, p, q);
  }
  void binary(StreamId stream, Binary op, const Array& out, const Array& x, const Array& y, double p) override {
    order_.note(stream, {x, y}, {out});
    inner_.binary(stream, op, out, x, y, p);
  }
  void reduce(StreamId stream, Reduce op, const Array& out, const Array& x, double factor) override {
    order_.note(stream, {x}, {out});
    inner_.reduce(stream, op, out, x, factor);
  }
  void flag_non_finite(StreamId stream, const Array& flag, const Array& x) override {
    order_.note(stream, {x}, {flag});
    inner_.flag_non_finite(stream, flag, x);
  }
  void gemm(StreamId stream, const Array& out, const Array& a, const Array& b, double alpha, double beta) override {
    order_.note(stream, {a, b}, {out});
    inner_.gemm(stream, out, a, b, alpha, beta);
  }
  void gather_rows(StreamId stream, const Array& out, const Array& table, const Array& index) override {
    order_.note(stream, {table, index}, {out});
    inner_.gather_rows(stream, out, table, index);
  }
  void scatter_add_rows(StreamId stream, const Array& out, const Array& rows, const Array& index) override {
    order_.note(stream, {rows, index}, {out});
    inner_.scatter_add_rows(stream, out, rows, index);
  }
  void softmax(StreamId stream, const Array& out, const Array& x, bool log) override {
    order_.note(stream, {x}, {out});
    inner_.softmax(stream, out, x, log);
  }
  void softmax_backward(StreamId stream, const Array& out, const Array& grad, const Array& y, bool log) override {
    order_.note(stream, {grad, y}, {out});
    inner_.softmax_backward(stream, out, grad, y, log);
  }
  void nll_loss(StreamId stream, const Array& loss, const Array& total_weight, const Array& log_probabilities,
                const Array& labels, bool mean) override {
    order_.note(stream, {log_probabilities, labels}, {loss, total_weight});
    inner_.nll_loss(stream, loss, total_weight, log_probabilities, labels, mean);
  }
  void nll_loss_backward(StreamId stream, const Array& out, const Array& grad, const Array& labels,
                         const Array& total_weight, bool mean) override {
    order_.note(stream, {grad, labels, total_weight}, {out});
    inner_.nll_loss_backward(stream, out, grad, labels, total_weight, mean);
  }
  void cross_entropy_in_place(StreamId stream, const Array& losses, const Array& logits, const Array& labels) override {
    order_.note(stream, {labels}, {losses, logits});
    inner_.cross_entropy_in_place(stream, losses, logits, labels);
  }
  void rms_norm(StreamId stream, const Array& out, const Array& rstd, const Array& x, const Array& gain, double eps,
                double offset) override {
    order_.note(stream, {x, gain}, {out, rstd});
    inner_.rms_norm(stream, out, rstd, x, gain, eps, offset);
  }
  void rms_norm_backward(StreamId stream, const Array& dx, const Array& dgain, const Array& grad, const Array& x,
                         const Array& gain, const Array& rstd, double offset) override {
    order_.note(stream, {grad, x, gain, rstd}, {dx, dgain});
    inner_.rms_norm_backward(stream, dx, dgain, grad, x, gain, rstd, offset);
  }
  void gated_product(StreamId stream, const Array& out, const Array& gate, const Array& up, bool gelu) override {
    order_.note(stream, {gate, up}, {out});
    inner_.gated_product(stream, out, gate, up, gelu);
  }
  void gated_product_backward(StreamId stream, const Array& gate, const Array& up, const Array& grad,
                              bool gelu) override {
    order_.note(stream, {grad}, {gate, up});
    inner_.gated_product_backward(stream, gate, up, grad, gelu);
  }
  void rotate_in_place(StreamId stream, const Array& x, const Array& cos, const Array& sin, bool inverse) override {
    order_.note(stream, {cos, sin}, {x});
    inner_.rotate_in_place(stream, x, cos, sin, inverse);
  }
  void attention(StreamId stream, const Array& out, const Array& lse, const Array& q, const Array& k, const Array& v,
                 const Array& mask, const AttentionOptions& options) override {
    order_.note(stream, {q, k, v, mask}, {out, lse});
    inner_.attention(stream, out, lse, q, k, v, mask, options);
  }
  void attention_backward(StreamId stream, const Array& dq, const Array& dk, const Array& dv, const Array& grad,
                          const Array& out, const Array& lse, const Array& q, const Array& k, const Array& v,
                          const Array& mask, const AttentionOptions& options) override {
    order_.note(stream, {grad, out, lse, q, k, v, mask}, {dq, dk, dv});
    inner_.attention_backward(stream, dq, dk, dv, grad, out, lse, q, k, v, mask, options);
  }
  void quantize_4bit(StreamId stream, const Array& packed, const Blockwise& statistics, const Array& x,
                     bool nf4) override {
    order_.note(stream, {x, statistics.code}, {packed, statistics.absmax});
    inner_.quantize_4bit(stream, packed, statistics, x, nf4);
  }
  void dequantize_4bit(StreamId stream, const Array& out, const Array& packed, const Blockwise& statistics) override {
    order_.note(stream, {packed, statistics.code, statistics.absmax}, {out});
    inner_.dequantize_4bit(stream, out, packed, statistics);
  }
  void gemm_4bit(StreamId stream, const Array& out, const Array& x, const FourBitArrays& weight) override {
    order_.note(stream,
                {x, weight.packed, weight.absmax, weight.code, weight.offset, weight.nested_absmax, weight.nested_code},
                {out});
    inner_.gemm_4bit(stream, out, x, weight);
  }
  void quantize_8bit(StreamId stream, const Array& out, const Blockwise& statistics, const Array& x) override {
    order_.note(stream, {x, statistics.code}, {out, statistics.absmax});
    inner_.quantize_8bit(stream, out, statistics, x);
  }
  void dequantize_8bit(StreamId stream, const Array& out, const Array& codes, const Blockwise& statistics) override {
    order_.note(stream, {codes, statistics.code, statistics.absmax}, {out});
    inner_.dequantize_8bit(stream, out, codes, statistics);
  }
  void adamw(StreamId stream, const Array& parameter, const Array& grad, const Array& exp_avg, const Array& exp_avg_sq,
             const AdamWNumbers& numbers) override {
    order_.note(stream, {grad}, {parameter, exp_avg, exp_avg_sq});
    inner_.adamw(stream, parameter, grad, exp_avg, exp_avg_sq, numbers);
  }
  void adamw_8bit(StreamId stream, const Array& parameter, const Array& grad, const Array& exp_avg,
                  const Blockwise& first, const Array& exp_avg_sq, const Blockwise& second,
                  const AdamWNumbers& numbers) override {
    order_.note(stream, {grad, first.code, second.code}, {parameter, exp_avg, exp_avg_sq, first.absmax, second.absmax});
    inner_.adamw_8bit(stream, parameter, grad, exp_avg, first, exp_avg_sq, second, numbers);
  }

 private:
  Kernels& inner_;
  StreamOrder& order_;
};

class OrderedCommunicator final : public Communicator {
 public:
  OrderedCommunicator(Communicator& inner, StreamOrder& order) : inner_(inner), order_(order) {}

  std::int64_t rank() const override { return inner_.rank(); }
  void all_gather(StreamId stream, const RankGroup& group, void* out, const void* in, std::int64_t count,
                  DType dtype) override {
    order_.note(stream, {elements(in, count, dtype)}, {elements(out, count * group.size, dtype)});
    inner_.all_gather(stream, group, out, in, count, dtype);
  }
  void reduce_scatter(StreamId stream, const RankGroup& group, void* out, const void* in, std::int64_t count,
                      DType dtype, ReduceOp op) override {
    order_.note(stream, {elements(in, count * group.size, dtype)}, {elements(out, count, dtype)});
    inner_.reduce_scatter(stream, group, out, in, count, dtype, op);
  }
  void all_reduce(StreamId stream, const RankGroup& group, void* data, std::int64_t count, DType dtype,
                  ReduceOp op) override {
    order_.note(stream, {}, {elements(data, count, dtype)});
    inner_.all_reduce(stream, group, data, count, dtype, op);
  }
  void reduce(StreamId stream, const RankGroup& group, void* data, std::int64_t count, DType dtype, ReduceOp op,
              std::int64_t root) override {
    order_.note(stream, {}, {elements(data, count, dtype)});
    inner_.reduce(stream, group, data, count, dtype, op, root);
  }
  void broadcast(StreamId stream, const RankGroup& group, void* data, std::int64_t count, DType dtype,
                 std::int64_t root) override {
    order_.note(stream, {}, {elements(data, count, dtype)});
    inner_.broadcast(stream, group, data, count, dtype, root);
  }
  void all_to_all(StreamId stream, const RankGroup& group, void* out, const Counts& from, const void* in,
                  const Counts& to, DType dtype) override {
    const auto sum = [](const Counts& counts) {
      return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
    };
    order_.note(stream, {elements(in, sum(to), dtype)}, {elements(out, sum(from), dtype)});
    inner_.all_to_all(stream, group, out, from, in, to, dtype);
  }
  void send(StreamId stream, const RankGroup& group, const void* data, std::int64_t count, DType dtype,
            std::int64_t to) override {
    order_.note(stream, {elements(data, count, dtype)}, {});
    inner_.send(stream, group, data, count, dtype, to);
  }
  void recv(StreamId stream, const RankGroup& group, void* data, std::int64_t count, DType dtype,
            std::int64_t from) override {
    order_.note(stream, {}, {elements(data, count, dtype)});
    inner_.recv(stream, group, data, count, dtype, from);
  }
  void exchange(StreamId stream, const RankGroup& group, const void* in, std::int64_t to, void* out, std::int64_t from,
                std::int64_t count, DType dtype) override {
    order_.note(stream, {elements(in, count, dtype)}, {elements(out, count, dtype)});
    inner_.exchange(stream, group, in, to, out, from, count, dtype);
  }
  void barrier(const RankGroup& group) override { inner_.barrier(group); }

 private:
  static Array elements(const void* data, std::int64_t count, DType dtype) {
    return bytes_at(data, bytes_of(count, dtype).count());
  }
  Communicator& inner_;
  StreamOrder& order_;
};

}  // namespace qlp::test
