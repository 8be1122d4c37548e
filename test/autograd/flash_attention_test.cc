// The events are those of F.scaled_dot_product_attention on the null GPU (sm80, 108 multiprocessors unless said).
#include <doctest/doctest.h>

#include "autograd/attention_run.h"

namespace qlp {
namespace {

using namespace test;

AttentionRun run(const AttentionSize& size, const AttentionBehaviour& behaviour, DeviceTraits traits = a100()) {
  DryDevice dry(traits);
  return run_attention(dry, size, DType::bfloat16,
                       [&](Context& ctx, const Tensor& q, const Tensor& k, const Tensor& v) {
                         return flash_attention(ctx, q, k, v, behaviour);
                       });
}

}  // namespace

TEST_CASE("autograd/flash_attention: keeps a log-sum-exp a row, works on padded rows in the backward pass") {
  const AttentionRun torch28 = run({2, 8, 8, 500, 64}, kTorch28);
  CHECK(torch28.forward == Events{1024000, 32000, 16, 8});
  CHECK(torch28.backward == Events{1024000, 1024000, 1024000, 32768, 2097152, -2097152, -32768});
  CHECK(run({2, 8, 8, 500, 64}, kTorch24).forward == Events{1024000, 32000});
}

TEST_CASE("autograd/flash_attention: splits the keys where blocks of queries do not fill the GPU") {
  CHECK(run({1, 8, 8, 512, 80}, kTorch28).forward == Events{655360, 16384, 32768, 3145728, 16, 8, -32768, -3145728});
  CHECK(run({1, 8, 8, 512, 256}, kTorch28).forward ==
        Events{2097152, 16384, 49152, 12582912, 16, 8, -49152, -12582912});
  SUBCASE("up to one block a multiprocessor in torch 2.4, two later") {
    CHECK(run({1, 8, 8, 512, 80}, kTorch24).forward == Events{655360, 16384, 65536, 6291456, -6291456, -65536});
  }
  SUBCASE("by the GPU: sm90 with 132 multiprocessors") {
    const DeviceTraits h100{.compute_capability = 90, .sm_count = 132};
    CHECK(run({2, 8, 8, 500, 64}, kTorch28, h100).forward ==
          Events{1024000, 32000, 64000, 4096000, 16, 8, -64000, -4096000});
    CHECK(run({1, 8, 8, 512, 80}, kTorch28, h100).forward ==
          Events{655360, 16384, 65536, 6291456, 16, 8, -65536, -6291456});
  }
}

TEST_CASE("autograd/flash_attention: groups heads itself, with expanded gradients of k and v meanwhile") {
  const AttentionRun grouped = run({1, 8, 2, 256, 64}, kTorch28);
  CHECK(grouped.forward == Events{262144, 8192, 16, 8});
  CHECK(grouped.backward ==
        Events{262144, 65536, 65536, 8192, 524288, 262144, 262144, -262144, -262144, -524288, -8192});
}

TEST_CASE(
    "autograd/flash_attention: heads that are contiguous come out contiguous and are copied in the backward pass") {
  DryDevice dry(a100());
  const Shape shape{1, 8, 512, 80};
  const Tensor q = dry.tensor(shape, DType::bfloat16), k = dry.tensor(shape, DType::bfloat16),
               v = dry.tensor(shape, DType::bfloat16);
  for (const Tensor* x : {&q, &k, &v}) set_requires_grad(*x, true);
  const Tensor out = flash_attention(dry.ctx, q, k, v, kTorch28);
  CHECK(out.contiguous());
  Grads grads;
  grads.push_back(dry.tensor({1, 512, 8, 80}, DType::bfloat16).transpose(1, 2));
  const Grads result = gradient_edge(out).node->backward(dry.ctx, grads);
  CHECK(dry.recorder.take() == Events{655360, 655360, 655360, 655360, 16384, 1572864, -1572864, -16384, -655360});
}

TEST_CASE("autograd/flash_attention: multiplies only what is attended to, scores and values; five times to go back") {
  CHECK(causal_pairs(4) == 10);
  CHECK(causal_pairs(4, 9) == 10);
  CHECK(causal_pairs(4, 2) == 7);
  CHECK(causal_pairs(4, 1) == 4);
  DryDevice dry(a100());
  const Tensor q = dry.tensor({2, 8, 512, 64}, DType::bfloat16);
  const Tensor k = dry.tensor({2, 2, 512, 64}, DType::bfloat16), v = dry.tensor({2, 2, 512, 64}, DType::bfloat16);
  set_requires_grad(q, true);
  const double& operations = dry.device.work().operations[static_cast<std::size_t>(DType::bfloat16)];
  const Tensor out = flash_attention(dry.ctx, q, k, v, kTorch28);
  const double product = 2.0 * 2 * 8 * 64 * 512 * 513 / 2;
  CHECK(operations == 2 * product);
  Grads grads;
  grads.push_back(dry.tensor({2, 8, 512, 64}, DType::bfloat16));
  gradient_edge(out).node->backward(dry.ctx, grads);
  CHECK(operations == 7 * product);
}

}  // namespace qlp
