#include "shard/zero_optimizer.h"

#include <algorithm>
#include <memory>
#include <vector>

#include <doctest/doctest.h>

#include "autograd/matmul.h"
#include "quant/recorder.h"
#include "shard/requested.h"

using namespace qlp;
using test::DryDevice;

namespace {

constexpr std::int64_t kMiB = 1 << 20;

/// Four linear layers of 1024 x 1024 in bfloat16, 2 MiB each, under ZeRO on two ranks, of which this is the first.
struct FourLayers {
  DryDevice dry;
  std::vector<std::unique_ptr<Parameter>> parameters;
  std::unique_ptr<ZeroOptimizer> zero;
  std::unique_ptr<Optimizer> adam;
  test::Requested requested{dry.recorder};

  explicit FourLayers(ZeroOptions options) {
    options.world_size = 2;
    options.module_dtype = options.module_dtype.value_or(DType::bfloat16);
    if (options.reduce_bucket_size == 0) options.reduce_bucket_size = 16 * kMiB;
    std::vector<Parameter*> group;
    for (int i = 0; i < 4; ++i) {
      parameters.push_back(std::make_unique<Parameter>());
      parameters.back()->tensor = empty(dry.ctx, {1024, 1024}, DType::bfloat16, Op::parameter);
      set_requires_grad(parameters.back()->tensor, true);
      group.push_back(parameters.back().get());
    }
    zero = std::make_unique<ZeroOptimizer>(dry.ctx, std::vector<std::vector<Parameter*>>{group}, options);
    adam = make_optimizer(dry.ctx, AdamW{}, {{zero->trained().front().tensor}});
    requested.peak();
  }

  void backward(bool boundary = true) {
    zero->gradients().set_boundary(boundary);
    Tensor x = empty(dry.ctx, {1, 1024}, DType::bfloat16, Op::input);
    for (const auto& parameter : parameters) x = linear(dry.ctx, x, parameter->tensor);
    dry.engine.backward(dry.ctx, {x}, {empty(dry.ctx, x.shape(), DType::bfloat16, Op::input)});
    zero->gradients().finish_backward(dry.ctx);
  }
};

constexpr std::int64_t kAtRest = 8 + 8;  // the flat parameters; this rank's half in float32

}  // namespace

TEST_CASE("shard/zero_optimizer: parameters are views of one flat buffer, this rank's half is there in float32") {
  FourLayers job({});
  CHECK(job.requested.now() == kAtRest);
  for (const auto& parameter : job.parameters) {
    CHECK(&parameter->tensor.storage() == &job.parameters.front()->tensor.storage());
    CHECK(parameter->tensor.shape() == Shape{1024, 1024});
    CHECK(parameter->tensor.dtype() == DType::bfloat16);
  }
  CHECK(job.zero->trained().front().tensor.numel() == 2 * kMiB);
}

TEST_CASE("shard/zero_optimizer: the bucket comes with the first gradient and goes with the backward pass") {
  FourLayers job({});
  job.backward();
  // The bucket, the four gradients joined for the sum over ranks: their own memory has gone to the bucket.
  CHECK(job.requested.peak() == kAtRest + 32 + 8);
  CHECK(job.requested.now() == kAtRest + 4);  // this rank's two
  FourLayers two({.overlap_comm = true});
  two.backward();
  CHECK(two.requested.peak() == kAtRest + 2 * 32 + 8);
}

TEST_CASE("shard/zero_optimizer: a step takes float32 gradients of the partition, and keeps moments") {
  FourLayers job({});
  for (int step = 0; step < 2; ++step) {
    job.backward();
    job.requested.peak();
    job.zero->step(job.dry.ctx, *job.adam);
    // Gradients in bfloat16 give way to joined ones and those to float32: then both moments and the list of roots.
    CHECK(job.requested.peak() == kAtRest + 8 + 2 * 8 + 8);
    CHECK(job.requested.now() == kAtRest + 2 * 8);
  }
}

TEST_CASE("shard/zero_optimizer: over several micro steps stage 2 keeps its part, stage 1 all and the bucket") {
  FourLayers two({.partition_gradients = true});
  two.backward(false);
  CHECK(two.requested.now() == kAtRest + 4);
  two.backward(true);
  CHECK(two.requested.now() == kAtRest + 4);
  FourLayers one({.partition_gradients = false});
  one.backward(false);
  CHECK(one.requested.now() == kAtRest + 32 + 8);
  one.backward(true);
  CHECK(one.requested.now() == kAtRest + 4);
}

TEST_CASE("shard/zero_optimizer: a full bucket is emptied for the next gradients; larger ones are summed in place") {
  FourLayers job({.reduce_bucket_size = kMiB});
  job.backward();
  // 2 for the bucket; two gradients of this rank have been copied out, another one is in the making.
  CHECK(job.requested.peak() == kAtRest + 2 + 4 + 2);
  CHECK(job.requested.now() == kAtRest + 4);
  FourLayers small({.reduce_bucket_size = kMiB / 2});
  small.backward();
  CHECK(small.requested.now() == kAtRest + 4);
}

TEST_CASE("shard/zero_optimizer: without contiguous gradients they stay what they are until they are joined") {
  FourLayers job({.contiguous_gradients = false});
  job.backward();
  CHECK(job.requested.peak() == kAtRest + 8 + 8);
  CHECK(job.requested.now() == kAtRest + 4);
}

TEST_CASE("shard/zero_optimizer: with offload a buffer for the largest parameter is all that is added") {
  FourLayers job({.offload_optimizer = true});
  CHECK(job.requested.now() == 8 + 2);
  CHECK(job.zero->trained().front().tensor.on_host());
  for (int step = 0; step < 2; ++step) {
    job.backward();
    CHECK(job.requested.now() == 8 + 2);
    job.zero->step(job.dry.ctx, *job.adam);
    CHECK(job.requested.peak() == 8 + 2);
  }
}

TEST_CASE(
    "shard/zero_optimizer: the cast that stage 1 looks at is there beside the bucket's, the last one to the end") {
  FourLayers job({.partition_gradients = false, .grad_accum_dtype = DType::float32});
  job.backward();
  // Four sums of float32, the bucket, the cast of the last gradient, and what is sent, joined.
  CHECK(job.requested.peak() == kAtRest + 16 + 32 + 2 + 8);
}

TEST_CASE("shard/zero_optimizer: with offload, gradients that are added up in float32 go to the host from there") {
  // The engine is in float32, what is trained is not: stage 1 keeps grad_accum beside the gradients.
  FourLayers job(
      {.partition_gradients = false, .module_dtype = DType::float32, .accumulates = true, .offload_optimizer = true});
  for (int step = 0; step < 2; ++step) {
    job.backward(false);
    CHECK(job.requested.now() == 8 + 2 + 32 + 4 * 4);
    job.backward(true);
    CHECK(job.requested.now() == 8 + 2);
    job.zero->step(job.dry.ctx, *job.adam);
  }
}

TEST_CASE("shard/zero_optimizer: gradients of several groups go through one bucket") {
  DryDevice dry;
  std::vector<std::unique_ptr<Parameter>> parameters;
  std::vector<std::vector<Parameter*>> groups(2);
  for (int i = 0; i < 2; ++i) {
    parameters.push_back(std::make_unique<Parameter>());
    parameters.back()->tensor = empty(dry.ctx, {64, 64}, DType::float32, Op::parameter);
    set_requires_grad(parameters.back()->tensor, true);
    groups[static_cast<std::size_t>(i)].push_back(parameters.back().get());
  }
  ZeroOptimizer zero(dry.ctx, groups, {.reduce_bucket_size = 64 * 64 * 4});
  REQUIRE(zero.trained().size() == 2);
  Tensor x = empty(dry.ctx, {1, 64}, DType::float32, Op::input);
  for (const auto& parameter : parameters) x = linear(dry.ctx, x, parameter->tensor);
  dry.recorder.take();
  dry.engine.backward(dry.ctx, {x}, {empty(dry.ctx, x.shape(), DType::float32, Op::input)});
  zero.gradients().finish_backward(dry.ctx);
  const test::Events events = dry.recorder.take();
  CHECK(std::count(events.begin(), events.end(), 64 * 64 * 4 * 4) == 1);
}
