#include "nn/loss.h"

#include <doctest/doctest.h>

#include "autograd/autocast.h"
#include "autograd/engine.h"
#include "autograd/pointwise.h"
#include "nn/adapted_layer.h"
#include "nn/fused_loss.h"

namespace qlp {
namespace {

using test::DryDevice;
using test::Events;
using test::in_order;

constexpr std::int64_t kVocabulary = 128256;

/// The Trainer's way from the loss to its gradient: over the number of steps, backward.
Events backward(DryDevice& dry, const Tensor& loss) {
  dry.recorder.take();
  const Tensor share = scale(dry.ctx, loss, 0.5, Op::div);
  dry.ctx.engine.backward(dry.ctx, {share}, {Tensor()});
  return in_order(dry.recorder.take());
}

}  // namespace

// Recorded from the oracle: Llama-3.2-1B, LoRA, bf16, one sequence of 128 tokens.
TEST_CASE("nn/loss: labels are padded and shifted, transformers 4.57") {
  DryDevice dry;
  const Tensor logits = dry.tensor({1, 128, kVocabulary}, DType::bfloat16);
  Tensor labels = dry.tensor({1, 128}, DType::int64), items = dry.tensor({}, DType::int64);
  set_requires_grad(logits, true);
  Tensor loss;
  {
    const AutocastRegion autocast(dry.ctx, true);
    loss = causal_lm_loss(dry.ctx, logits, labels, items, {});
  }
  CHECK(in_order(dry.recorder.take()) == Events{65667072, 1032, 65667072, 4, 4, 4, -65667072, -4});
  loss = scale_in_place(dry.ctx, loss, 2);
  CHECK(backward(dry, loss) == Events{4, 4, 4, 4, -4, 4, -4, 65667072, -1032, -4, -4, 65667072, -65667072, -65667072,
                                      32833536, -65667072, -4});
}

TEST_CASE("nn/loss: logits are shifted, transformers 4.48") {
  DryDevice dry;
  const Tensor logits = dry.tensor({1, 128, kVocabulary}, DType::bfloat16);
  Tensor labels = dry.tensor({1, 128}, DType::int64);
  set_requires_grad(logits, true);
  Tensor loss;
  {
    const AutocastRegion autocast(dry.ctx, true);
    loss =
        causal_lm_loss(dry.ctx, logits, labels, Tensor(),
                       {.attention = {.full_slices_record = true}, .shifts_labels = false, .item_count_on_host = true});
  }
  labels.reset();  // a view of them stays
  CHECK(in_order(dry.recorder.take()) == Events{65667072, 65154048, 4, 4, 4, -65667072, -4});
  CHECK(backward(dry, loss) == Events{4, 4, 4, 4, -4, 65154048, -1024, -4, -4, 65154048, -65154048, -65154048, 65154048,
                                      -65154048, 65667072, -65154048, 32833536, -65667072, -4});
}

TEST_CASE("nn/loss: more than one row needs a copy of the shifted labels, beside the padded ones") {
  DryDevice dry;
  const Tensor logits = dry.tensor({2, 128, 1000}, DType::bfloat16);
  const Tensor labels = dry.tensor({2, 128}, DType::int64);
  const Tensor loss = causal_lm_loss(dry.ctx, logits, labels, Tensor(), {});
  const Events events = dry.recorder.take();
  CHECK(Events(events.begin(), events.begin() + 3) == Events{1'024'000, 2064, 2048});
}

TEST_CASE("nn/loss: Liger 0.6 makes a tensor of each chunk of logits, and keeps the last until the next is there") {
  DryDevice dry;
  const Tensor hidden = dry.tensor({1, 128, 2048}, DType::bfloat16);
  const Tensor head = dry.tensor({kVocabulary, 2048}, DType::bfloat16);
  const Tensor labels = dry.tensor({1, 128}, DType::int64), items = dry.tensor({}, DType::int64);
  set_requires_grad(hidden, true);
  const LigerBehaviour liger{
      .norm_skips_frozen_gain = false, .replaces_head_norms = false, .loss_reuses_buffer = false};
  Tensor loss;
  {
    const AutocastRegion autocast(dry.ctx, true);
    loss = liger_causal_lm_loss(dry.ctx, hidden, head, labels, items, {.liger = liger});
  }
  Events oracle{1032, 524288, 512, 128, 8, 1024, -1024, -8, 1026048, 16384, -16384};
  for (int chunk = 1; chunk < 32; ++chunk) oracle.insert(oracle.end(), {1026048, -1026048, 16384, -16384});
  oracle.insert(oracle.end(), {4, -1026048, -512, -128, 4, -1032, -4});
  CHECK(in_order(dry.recorder.take()) == in_order(oracle));

  loss = scale_in_place(dry.ctx, loss, 2);
  CHECK(backward(dry, loss) == Events{4, 4, 4, 4, -4, 4, -4, 4, 1, 1, -4, -4, -4, -1, -1});
  CHECK(grad_of(hidden).shape() == hidden.shape());
}

TEST_CASE("nn/loss: Liger 0.8 writes all chunks of logits into one buffer") {
  DryDevice dry;
  const Tensor hidden = dry.tensor({1, 128, 2048}, DType::bfloat16);
  const Tensor head = dry.tensor({kVocabulary, 2048}, DType::bfloat16);
  const Tensor labels = dry.tensor({1, 128}, DType::int64), items = dry.tensor({}, DType::float32);
  set_requires_grad(hidden, true);
  {
    const AutocastRegion autocast(dry.ctx, true);
    const Tensor loss = liger_causal_lm_loss(dry.ctx, hidden, head, labels, items, {.liger = LigerBehaviour{}});
    CHECK(in_order(dry.recorder.take()) ==
          Events{1032, 524288, 512, 128, 8, 1024, -1024, -8, 1026048, -1026048, 4, -512, -128, 4, -1032, -4});
  }
}

TEST_CASE("nn/loss: Liger keeps the gradients of hidden states and of a trained head, and no logits") {
  for (const bool recent : {false, true}) {
    DryDevice dry;
    const Tensor hidden = dry.tensor({2, 512, 256}, DType::bfloat16);
    const Tensor head = dry.tensor({32000, 256}, DType::bfloat16);
    const Tensor labels = dry.tensor({2, 512}, DType::int64);
    set_requires_grad(hidden, true), set_requires_grad(head, true);
    const LigerBehaviour liger{
        .norm_skips_frozen_gain = recent, .replaces_head_norms = recent, .loss_reuses_buffer = recent};
    const std::uint64_t before = dry.allocator.stats().requested.current;
    const Tensor loss = liger_causal_lm_loss(dry.ctx, hidden, head, labels, Tensor(), {.liger = liger});
    const std::uint64_t gradients = 2 * 512 * 256 * 2 + 32000 * 256 * 2;
    CHECK(dry.allocator.stats().requested.current == before + gradients + 4);
    dry.ctx.engine.backward(dry.ctx, {loss}, {Tensor()});
    CHECK(grad_of(head).shape() == head.shape());
    CHECK(grad_of(hidden).shape() == hidden.shape());
  }
}

}  // namespace qlp
