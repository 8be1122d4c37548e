#include "quant/matmul_4bit.h"

#include <doctest/doctest.h>

#include "autograd/autocast.h"
#include "quant/linear_4bit.h"
#include "quant/quantize.h"
#include "quant/recorder.h"

namespace qlp {
namespace {

using test::DryDevice;
using test::Events;

constexpr QuantBehaviour kBnb050{};
constexpr QuantBehaviour kBnb043{
    .fused_gemm = false, .own_statistics = false, .honours_compute_dtype = false, .bias_in_compute_dtype = false};

/// A layer under bf16 autocast whose input is float32, as after prepare_model_for_kbit_training.
struct Layer {
  DryDevice dry;
  QuantBehaviour behaviour;
  FourBitQuantizer quantizer;
  QuantizedWeight quantized;
  Tensor bias;

  Layer(QuantBehaviour version, const Shape& weight, bool double_quant = true)
      : behaviour(version), quantizer({double_quant, DType::uint8}, version) {
    quantized = quantizer.quantize(dry.ctx, dry.tensor(weight, DType::bfloat16));
    dry.recorder.take();
  }
  FourBitWeight weight() const { return {quantized.packed, &quantized.state}; }
  Events forward(const Tensor& x) {
    dry.recorder.take();
    const AutocastRegion autocast(dry.ctx, true);
    const Tensor out = linear_4bit(dry.ctx, x, weight(), bias, {DType::bfloat16, behaviour});
    CHECK(out.dtype() == x.dtype());
    CHECK(out.shape() == x.shape().with(-1, quantized.state.shape[0]));
    return dry.recorder.take();
  }
};

}  // namespace

// Sequences recorded from the oracle: Llama-3.2-1B and Qwen2.5-7B with prepare_model_for_kbit_training and bf16
// autocast, stacks 2025-10 (bitsandbytes 0.50.2), 2026-11 (0.50.2) and 2025-01 (0.43.3), compute capability 8.0.
TEST_CASE("quant/matmul_4bit: many rows are multiplied with a dequantized weight, 0.50") {
  Layer layer(kBnb050, {2048, 2048});
  CHECK(layer.forward(layer.dry.tensor({1, 2048, 2048}, DType::float32)) ==
        Events{8388608, 262144, 262144, 8388608, 8388608, -262144, -262144, -8388608, 16777216, -8388608, -8388608});
}

TEST_CASE("quant/matmul_4bit: without double quant there are no absmax copies") {
  Layer layer(kBnb050, {2048, 2048}, false);
  CHECK(layer.forward(layer.dry.tensor({1, 2048, 2048}, DType::float32)) ==
        Events{8388608, 8388608, 8388608, -8388608, 16777216, -8388608, -8388608});
}

TEST_CASE("quant/matmul_4bit: few rows go to the fused kernel, which needs no weight") {
  Layer layer(kBnb050, {2048, 2048});
  CHECK(layer.forward(layer.dry.tensor({1, 128, 2048}, DType::float32)) ==
        Events{524288, 524288, 1048576, -524288, -524288});
}

TEST_CASE("quant/matmul_4bit: 0.43 computes in the input's dtype and lets autocast cast the weight") {
  Layer layer(kBnb043, {2048, 2048});
  CHECK(layer.forward(layer.dry.tensor({1, 2048, 2048}, DType::float32)) ==
        Events{262144, 8388608, -262144, 16777216, -8388608, 8388608, 8388608, 8388608, -8388608, -8388608, -16777216,
               16777216, -8388608});
}

// In the two cases with bias the oracle also takes and gives back 1 MiB for cuBLASLt in each product.
TEST_CASE("quant/matmul_4bit: a stored bias is cast for good, 0.50") {
  Layer layer(kBnb050, {3584, 3584});
  layer.bias = layer.dry.tensor({3584}, DType::float32);
  const Tensor x = layer.dry.tensor({1, 512, 3584}, DType::float32);
  CHECK(layer.forward(x) == Events{3670016, 7168, -14336, 802816, 802816, 25690112, 3670016, -802816, -802816,
                                   -25690112, 7340032, -3670016, -3670016});
  CHECK(layer.bias.dtype() == DType::bfloat16);
  CHECK(layer.forward(x) ==
        Events{3670016, 802816, 802816, 25690112, 3670016, -802816, -802816, -25690112, 7340032, -3670016, -3670016});
}

TEST_CASE("quant/matmul_4bit: a bias in 0.43 has the dtype of the input") {
  Layer layer(kBnb043, {3584, 3584});
  layer.bias = layer.dry.tensor({3584}, DType::float32);
  CHECK(layer.forward(layer.dry.tensor({1, 512, 3584}, DType::float32)) ==
        Events{802816, 25690112, -802816, 51380224, -25690112, 7168, 25690112, 3670016, 3670016, -3670016, -25690112,
               -7168, -51380224, 7340032, -3670016});
  CHECK(layer.bias.dtype() == DType::float32);
}

TEST_CASE("quant/matmul_4bit: backward dequantizes again and keeps nothing") {
  for (const QuantBehaviour& version : {kBnb050, kBnb043}) {
    Layer layer(version, {2048, 8192});
    DryDevice& dry = layer.dry;
    const Tensor x = dry.tensor({1, 2048, 8192}, DType::bfloat16);
    set_requires_grad(x, true);
    Tensor out = matmul_4bit(dry.ctx, x, layer.weight(), {}, version);
    CHECK(x.use_count() == 2);  // ours and that of its AccumulateGrad
    const Tensor grad = dry.tensor({1, 2048, 2048}, DType::bfloat16);
    dry.engine.backward(dry.ctx, {out}, {grad});
    CHECK(dry.recorder.take() == Events{1048576, 33554432, -1048576, 33554432, -33554432});
    CHECK(grad_of(x).shape() == x.shape());
  }
}

TEST_CASE("quant/matmul_4bit: a gradient of another dtype costs a second weight") {
  Layer layer(kBnb050, {2048, 8192});
  DryDevice& dry = layer.dry;
  const Tensor x = dry.tensor({1, 2048, 8192}, DType::float32);
  set_requires_grad(x, true);
  Tensor out = matmul_4bit(dry.ctx, x, layer.weight(), {}, kBnb050);
  const Tensor grad = dry.tensor({1, 2048, 2048}, DType::float32);
  dry.engine.backward(dry.ctx, {out}, {grad});
  CHECK(dry.recorder.take() == Events{1048576, 33554432, -1048576, 67108864, -33554432, 67108864, -67108864});
}

TEST_CASE("quant/matmul_4bit: before 0.43.2 the input stays with the graph") {
  Layer layer(kBnb050, {512, 2048});
  DryDevice& dry = layer.dry;
  const Tensor x = dry.tensor({1, 64, 2048}, DType::bfloat16);
  set_requires_grad(x, true);
  QuantBehaviour old = kBnb043;
  old.keeps_input = true;
  const Tensor out = matmul_4bit(dry.ctx, x, layer.weight(), {}, old);
  CHECK(x.use_count() == 3);
}

TEST_CASE("quant/matmul_4bit: nothing is recorded where no gradient is wanted") {
  Layer layer(kBnb050, {512, 2048});
  const Tensor out =
      matmul_4bit(layer.dry.ctx, layer.dry.tensor({1, 64, 2048}, DType::bfloat16), layer.weight(), {}, kBnb050);
  CHECK_FALSE(out.requires_grad());
}

}  // namespace qlp
