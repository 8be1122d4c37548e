#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "optim/optimizer_job.h"

using namespace qlp;
using test::Events;
using test::OptimizerJob;

namespace {

using Algorithm = Bitsandbytes::Algorithm;

constexpr std::int64_t kMap = 1024, kLarge = 8192, kSmall = 4095;

OptimizerJob large_and_small() {
  return OptimizerJob({{{128, 64}, DType::bfloat16}, {{kSmall}, DType::bfloat16}, {{kLarge + 1}, DType::bfloat16}});
}

}  // namespace

// bitsandbytes/optim/optimizer.py, Optimizer2State.init_state of 0.50.2.
TEST_CASE("optim/bitsandbytes: 8 bits, a maximum for each 256 elements, one pair of maps; small tensors in 32 bits") {
  OptimizerJob job = large_and_small();
  CHECK(job.make(Bitsandbytes{Algorithm::adamw, 8, false}, {{0, 1, 2}}).empty());
  CHECK(job.step() ==
        Events{kMap, kMap, kLarge, kLarge, 128, 128, 4 * kSmall, 4 * kSmall, kLarge + 1, kLarge + 1, 132, 132});
  CHECK(job.step().empty());
}

TEST_CASE("optim/bitsandbytes: Lion and RMSprop keep one average and one map") {
  for (const auto algorithm : {Algorithm::lion, Algorithm::rmsprop}) {
    OptimizerJob job = large_and_small();
    job.make(Bitsandbytes{algorithm, 8, false}, {{0, 1}});
    CHECK(job.step() == Events{kMap, kLarge, 128, 4 * kSmall});
  }
}

TEST_CASE("optim/bitsandbytes: AdEMAMix keeps two averages in one tensor, and makes the maxima first") {
  OptimizerJob job = large_and_small();
  job.make(Bitsandbytes{Algorithm::ademamix, 8, false}, {{0, 1}});
  CHECK(job.step() == Events{kMap, kMap, 256, 128, 2 * kLarge, kLarge, 8 * kSmall, 4 * kSmall});
}

TEST_CASE("optim/bitsandbytes: 32 bits need no maps") {
  OptimizerJob job = large_and_small();
  job.make(Bitsandbytes{Algorithm::adamw, 32, false}, {{0}});
  CHECK(job.step() == Events{4 * kLarge, 4 * kLarge});
}

TEST_CASE("optim/bitsandbytes: embeddings stay in 32 bits where the Trainer asks for it") {
  OptimizerJob job = large_and_small();
  OptimizerSetup setup{.embeddings = {job.parameters[0]}};
  job.make(Bitsandbytes{Algorithm::adamw, 8, false}, {{0}}, setup);
  CHECK(job.step() == Events{4 * kLarge, 4 * kLarge});
  setup.behaviour.bnb_spares_embeddings = false;
  job.make(Bitsandbytes{Algorithm::adamw, 8, false}, {{0}}, setup);
  CHECK(job.step() == Events{kMap, kMap, kLarge, kLarge, 128, 128});
}

TEST_CASE("optim/bitsandbytes: blocks of 2048 before 0.44") {
  OptimizerJob job = large_and_small();
  job.make(Bitsandbytes{Algorithm::lion, 8, false}, {{0}}, {.behaviour = {.bnb_blocksize = 2048}, .embeddings = {}});
  CHECK(job.step() == Events{kMap, kLarge, 16});
}

TEST_CASE("optim/bitsandbytes: what is on the host has all of its state there, and no pages") {
  OptimizerJob job({});
  {
    const Scoped place(job.dry.ctx.place, Place::host);
    job.parameters.push_back(empty(job.dry.ctx, {100000}, DType::float32, Op::parameter));
    set_grad(job.parameters[0], empty_like(job.dry.ctx, job.parameters[0], Op::parameter));
  }
  job.make(Bitsandbytes{Algorithm::adamw, 8, true}, {{0}});
  CHECK(job.step().empty());
  CHECK(job.optimizer->managed_state() == Bytes{});
}

TEST_CASE("optim/bitsandbytes: paged averages of 100,000 elements and more are beside the allocator, maxima are not") {
  OptimizerJob job({{{99999}, DType::float32}, {{100000}, DType::float32}});
  job.make(Bitsandbytes{Algorithm::adamw, 8, true}, {{0, 1}});
  CHECK(job.step() == Events{kMap, kMap, 99999, 99999, 391 * 4, 391 * 4, 391 * 4, 391 * 4});
  CHECK(job.optimizer->managed_state() == Bytes{200000});
}
