#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "autograd/matmul.h"
#include "optim/optimizer.h"
#include "quant/recorder.h"
#include "shard/reducer.h"
#include "shard/requested.h"

using namespace qlp;
using test::DryDevice;

namespace {

constexpr std::int64_t kMiB = 1 << 20;

/// Six linear layers of 1024 x 1024 in float32, the first two frozen, under DDP.
struct SixLayers {
  DryDevice dry;
  std::vector<Tensor> weights, trained;
  std::unique_ptr<Reducer> reducer;
  std::unique_ptr<Optimizer> optimizer;
  test::Requested requested{dry.recorder};

  SixLayers() {
    for (int i = 0; i < 6; ++i) {
      weights.push_back(empty(dry.ctx, {1024, 1024}, DType::float32, Op::parameter));
      if (i < 2) continue;
      set_requires_grad(weights.back(), true);
      trained.push_back(weights.back());
    }
    optimizer = make_optimizer(dry.ctx, AdamW{}, {trained});
    requested.peak();
  }

  void wrap(ReducerOptions options) {
    options.world_size = 2;
    reducer = std::make_unique<Reducer>(dry.ctx, options, weights, trained);
  }
  void forward_backward() {
    if (reducer) reducer->prepare_forward(dry.ctx);
    Tensor x = empty(dry.ctx, {1, 1024}, DType::float32, Op::input);
    for (const Tensor& weight : weights) x = linear(dry.ctx, x, weight);
    dry.engine.backward(dry.ctx, {x}, {empty(dry.ctx, x.shape(), DType::float32, Op::input)});
  }
  void zero_grad() {
    for (const Tensor& parameter : trained) set_grad(parameter, Tensor());
  }
};

}  // namespace

// The figures were traced with torch 2.6 on the CPU.
TEST_CASE("shard/ddp: gradients beside their buckets") {
  SixLayers job;
  job.wrap({});
  CHECK(job.requested.peak() == 48);  // the broadcast flattens all parameters, frozen ones too
  CHECK(job.requested.now() == 40);
  for (const std::int64_t backward : {56, 88, 88}) {
    job.forward_backward();
    CHECK(job.requested.peak() == backward);
    job.optimizer->step(job.dry.ctx);
    CHECK(job.requested.peak() == 104);
    job.zero_grad();
    CHECK(job.requested.now() == 72);
  }
}

TEST_CASE("shard/ddp: gradients as views of their buckets") {
  SixLayers job;
  job.wrap({.gradient_as_bucket_view = true});
  for (const std::int64_t backward : {44, 76, 76}) {
    job.requested.peak();
    job.forward_backward();
    CHECK(job.requested.peak() == backward);
    job.optimizer->step(job.dry.ctx);
    CHECK(job.requested.peak() == 88);
    job.zero_grad();
    CHECK(job.requested.now() == 72);
  }
}

TEST_CASE("shard/ddp: without synchronisation gradients stay beside the buckets, which are not made anew") {
  SixLayers job;
  job.wrap({.gradient_as_bucket_view = true});
  job.reducer->set_sync(false);
  job.forward_backward();
  CHECK(job.requested.now() == 56);
  job.reducer->set_sync(true);
  job.forward_backward();
  CHECK(job.requested.now() == 40);  // added up, then copied into the buckets
}

TEST_CASE("shard/ddp: buckets are made anew in the order in which gradients became ready") {
  SixLayers job;
  job.wrap({});
  job.forward_backward();
  job.zero_grad();
  job.dry.recorder.take();
  job.reducer->prepare_forward(job.dry.ctx);
  CHECK(job.dry.recorder.take() == test::Events{20, 8, -8, -20, -16 * kMiB, 4 * kMiB, 12 * kMiB});
  job.reducer->prepare_forward(job.dry.ctx);
  CHECK(job.dry.recorder.take().empty());
}

TEST_CASE("shard/ddp: the old bucket may wait for the stream of the collectives") {
  SixLayers job;
  job.wrap({});
  CHECK_FALSE(job.dry.timeline.waits_for_streams());
  job.forward_backward();
  job.zero_grad();
  job.reducer->prepare_forward(job.dry.ctx);
  CHECK(job.dry.timeline.waits_for_streams());
}

TEST_CASE("shard/ddp: or is held until the next backward pass that sums gradients") {
  SixLayers job;
  job.wrap({.replaced = ReplacedBuckets::held});
  job.forward_backward();
  job.zero_grad();
  CHECK(job.requested.now() == 40);
  job.reducer->prepare_forward(job.dry.ctx);
  CHECK_FALSE(job.dry.timeline.waits_for_streams());
  CHECK(job.requested.now() == 56);
  job.reducer->set_sync(false);
  job.forward_backward();
  job.zero_grad();
  CHECK(job.requested.now() == 56);
  job.reducer->set_sync(true);
  job.forward_backward();
  job.zero_grad();
  CHECK(job.requested.now() == 40);
}

TEST_CASE(
    "shard/ddp: every bucket is summed over the ranks once its gradients are there, where they are synchronised") {
  SixLayers job;
  job.wrap({});
  // What all_reduce was given since the last call, in MiB.
  const auto summed = [&] {
    std::vector<std::uint64_t> mib;
    for (const CollectiveEvent& event : std::exchange(job.dry.device.work().collectives, {}))
      if (event.kind == Collective::all_reduce) mib.push_back(event.bytes / kMiB);
    return mib;
  };
  job.forward_backward();
  CHECK(summed() == std::vector<std::uint64_t>{16});
  job.forward_backward();
  CHECK(summed() == std::vector<std::uint64_t>{4, 12});
  job.reducer->set_sync(false);
  job.forward_backward();
  CHECK(summed().empty());
}

TEST_CASE("shard/ddp: a bucket is closed once it has reached its limit, by dtype") {
  DryDevice dry;
  const auto make = [&](std::int64_t numel, DType dtype) { return empty(dry.ctx, {numel}, dtype, Op::parameter); };
  const std::vector<Tensor> tensors{make(100, DType::float32), make(10, DType::bfloat16), make(150, DType::float32),
                                    make(300, DType::float32), make(1, DType::bfloat16)};
  CHECK(assign_buckets(tensors, {1000}) == std::vector<Bucket>{{0, 2}, {1, 4}, {3}});
  CHECK(assign_buckets(tensors, {400, 10000}) == std::vector<Bucket>{{0}, {1, 4}, {2, 3}});
  CHECK(assign_buckets(tensors, {1000}, BucketOrder::as_closed) == std::vector<Bucket>{{0, 2}, {3}, {1, 4}});
}

TEST_CASE("shard/ddp: a coalesced broadcast has two buffers in flight, and none for a tensor alone") {
  DryDevice dry;
  std::vector<Tensor> tensors;
  for (int i = 0; i < 6; ++i) tensors.push_back(empty(dry.ctx, {100}, DType::float32, Op::parameter));
  dry.recorder.take();
  broadcast_coalesced(dry.ctx, tensors, {MeshAxis::dp_replicate, 2}, 500);
  CHECK(dry.recorder.take() == test::Events{800, 800, -800, 800, -800, -800});
  broadcast_coalesced(dry.ctx, tensors, {MeshAxis::dp_replicate, 2}, 400);
  CHECK(dry.recorder.take().empty());
}

// torch/csrc/distributed/c10d/reducer.cpp, finalize_bucket_dense; seen with LOMO, whose hooks take gradients.
TEST_CASE("shard/ddp: gradients that are gone by the end of the backward pass are made anew") {
  for (const bool view : {false, true}) {
    SixLayers job;
    job.wrap({.gradient_as_bucket_view = view});
    for (const Tensor& weight : job.trained) register_hook(weight, [&job](Context&, Grads&) { job.zero_grad(); });
    job.forward_backward();
    for (const Tensor& weight : job.trained) CHECK(grad_of(weight).defined());
  }
}
