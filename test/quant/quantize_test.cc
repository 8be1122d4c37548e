#include "quant/quantize.h"

#include <array>

#include <doctest/doctest.h>

#include "quant/recorder.h"

namespace qlp {
namespace {

using test::DryDevice;
using test::Events;

constexpr QuantBehaviour kBnb043{
    .fused_gemm = false, .own_statistics = false, .honours_compute_dtype = false, .bias_in_compute_dtype = false};

Events events_of_quantizing(DryDevice& dry, FourBitQuantizer& quantizer, const Shape& shape) {
  const Tensor weight = dry.tensor(shape, DType::bfloat16);
  const QuantizedWeight kept = quantizer.quantize(dry.ctx, weight);
  Events events = dry.recorder.take();  // before the statistics go
  return events;
}

// The linear weights of one layer of Llama-3-8B.
constexpr std::array kLlama8bLayer{Shape{4096, 4096},  Shape{1024, 4096},  Shape{1024, 4096}, Shape{4096, 4096},
                                   Shape{14336, 4096}, Shape{14336, 4096}, Shape{4096, 14336}};

struct Held {
  std::uint64_t requested = 0, rounded = 0;

  void add(const Tensor& tensor) {
    const std::uint64_t bytes = tensor.defined() ? tensor.storage().bytes() : 0;
    requested += bytes, rounded += round_up(Bytes{bytes}, 512).count();
  }
};

/// What 32 such layers hold once quantized.
Held llama_8b(bool double_quant, DType storage) {
  DryDevice dry;
  FourBitQuantizer quantizer({double_quant, storage}, {});
  Held held;
  for (int layer = 0; layer < 32; ++layer) {
    for (const Shape& shape : kLlama8bLayer) {
      const QuantizedWeight weight = quantizer.quantize(dry.ctx, dry.tensor(shape, DType::bfloat16));
      held.add(weight.packed), held.add(weight.state.absmax), held.add(weight.state.code);
      held.add(weight.state.offset), held.add(weight.state.nested_absmax), held.add(weight.state.nested_code);
    }
  }
  return held;
}

}  // namespace

// Sequences recorded from the oracle: the real libraries with Llama-3.2-1B, stacks 2025-10 and 2025-01.
TEST_CASE("quant/quantize: allocations with double quant are those of bitsandbytes 0.50.2") {
  DryDevice dry;
  FourBitQuantizer quantizer({.double_quant = true}, {});
  CHECK(events_of_quantizing(dry, quantizer, {2048, 8192}) == Events{1048576, 8388608, 64, 64, 4, -64, -4, 4, 128, 4,
                                                                     -4, -128, 1048576, 1024, 4096, 262144, 1024,
                                                                     -1048576, -1048576});
  CHECK(events_of_quantizing(dry, quantizer, {2048, 8192}) == Events{1048576, 8388608, 64, 64, 4, -64, -4, 4, 128, 4,
                                                                     -4, -128, 1048576, 4096, 262144, 1024, -1048576,
                                                                     -1048576});
}

TEST_CASE("quant/quantize: allocations with double quant are those of bitsandbytes 0.43.3") {
  DryDevice dry;
  FourBitQuantizer quantizer({.double_quant = true}, kBnb043);
  CHECK(events_of_quantizing(dry, quantizer, {2048, 2048}) ==
        Events{262144, 2097152, 64, 64, 4, -64, -4, 4, 1024, 1024, 65536, -262144});
  CHECK(events_of_quantizing(dry, quantizer, {512, 2048}) ==
        Events{65536, 524288, 64, 64, 4, -64, -4, 4, 256, 16384, -65536});
}

TEST_CASE("quant/quantize: without double quant the absmax values stay") {
  DryDevice dry;
  FourBitQuantizer quantizer({.double_quant = false, .storage = DType::float32}, {});
  const Tensor weight = dry.tensor({8192, 2048}, DType::bfloat16);
  const QuantizedWeight out = quantizer.quantize(dry.ctx, weight);
  CHECK(dry.recorder.take() == Events{1048576, 8388608, 64, 64, 4, -64, -4});
  CHECK(out.packed.shape() == Shape{2097152, 1});
  CHECK(out.packed.dtype() == DType::float32);
  CHECK(out.state.absmax.dtype() == DType::float32);
  CHECK_FALSE(out.state.offset.defined());
}

TEST_CASE("quant/quantize: the mean of many absmax values needs memory to meet in") {
  DryDevice hopper({.compute_capability = 90, .sm_count = 132});
  FourBitQuantizer quantizer({.double_quant = true, .storage = DType::bfloat16}, {});
  CHECK(events_of_quantizing(hopper, quantizer, {14336, 4096}) ==  // Llama-3.1-8B, stack 2025-10
        Events{3670016, 29360128, 64, 64, 4, -64, -4, 4, 448, 4, -4, -448, 3670016, 1024, 14336, 917504, 1024, -3670016,
               -3670016});
}

TEST_CASE("quant/quantize: what is held has the category it stays for") {
  DryDevice dry;
  FourBitQuantizer quantizer({.double_quant = true}, {});
  const QuantizedWeight out = quantizer.quantize(dry.ctx, dry.tensor({512, 2048}, DType::bfloat16));
  CHECK(out.packed.storage().label().category == Category::parameters);
  for (const Tensor& statistic :
       {out.state.absmax, out.state.code, out.state.offset, out.state.nested_absmax, out.state.nested_code})
    CHECK(statistic.storage().label().category == Category::quant_state);
}

TEST_CASE("quant/quantize: Llama-3-8B takes what the published sizes add up to") {
  constexpr std::uint64_t kPacked = 3489660928, kWeights = 224;
  const Held nested = llama_8b(true, DType::uint8);
  CHECK(nested.requested == kPacked + 110755840 + 244608);
  CHECK(nested.rounded == 3600875520);
  const Held plain = llama_8b(false, DType::bfloat16);
  CHECK(plain.requested == kPacked + 436207616 + kWeights * 64);
  CHECK(plain.rounded == kPacked + 436207616 + kWeights * 512);
}

}  // namespace qlp
