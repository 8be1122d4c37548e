#include "shard/zero3.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "autograd/engine.h"
#include "nn/linear.h"
#include "shard/zero3_gather.h"
#include "tensor/factories.h"

using namespace qlp;

namespace {

constexpr std::int64_t kWidth = 256, kWeight = kWidth * kWidth;
constexpr std::uint64_t kWhole = 2 * kWeight;  // bytes of a weight in bfloat16

/// Four square layers, one after the other.
class Chain final : public Module {
 public:
  Chain() : Module(ModuleKind::model, "") {
    for (int i = 0; i < 4; ++i)
      layers_.push_back(
          std::make_unique<Linear>("layers." + std::to_string(i), kWidth, kWidth, false, ParamRole::base_weight));
    for (const auto& layer : layers_) add_child(*layer);
  }
  Tensor forward(Context& ctx, Tensor x) {
    for (const auto& layer : layers_) x = layer->forward(ctx, x);
    return x;
  }
  Linear& layer(std::size_t i) { return *layers_[i]; }

 private:
  std::vector<std::unique_ptr<Linear>> layers_;
};

DeviceTraits traits_with_small_workspace() {
  DeviceTraits traits;
  traits.cublas_workspace_bytes = 512;
  return traits;
}

Zero3Options options_for(std::int64_t world_size) {
  return {.world_size = world_size,
          .reduce_bucket_size = 2 * kWeight,
          .prefetch_bucket_size = 0,
          .max_reuse_distance = 0,
          .param_persistence_threshold = 0};
}

/// A chain whose parameters are cut.
struct Cut {
  explicit Cut(const Zero3Options& chosen, bool trained = false) : options(chosen) {
    timeline.begin_phase("load", allocator.stats());
    for (Parameter* parameter : chain.parameters()) {
      parameter->trainable = trained;
      parameter->tensor = empty(ctx, parameter->shape, DType::bfloat16, Op::parameter);
      set_requires_grad(parameter->tensor, trained);
      params.push_back(std::make_unique<Zero3Param>(ctx, *parameter, params.size(), options));
      all.push_back(params.back().get());
    }
    coordinator = std::make_unique<Zero3Coordinator>(chain, all, options);
    hooks = std::make_unique<Zero3Hooks>(*coordinator, Zero3Hooks::LeafObserver());
    chain.visit([&](Module& module) { module.set_hooks(hooks.get()); });
  }
  std::uint64_t held() const { return allocator.stats().allocated.current; }

  /// A pass over one row of input, from an output that wants a gradient back if parameters do. Gives the most that was
  /// held in the forward pass beyond what was held before.
  std::uint64_t pass(bool backward = false) {
    coordinator->reset_step(ctx);
    const std::uint64_t before = held();
    timeline.begin_phase("forward", allocator.stats());
    Tensor x = empty(ctx, {1, kWidth}, DType::bfloat16, Op::input);
    set_requires_grad(x, backward);
    Tensor y = chain.forward(ctx, x);
    timeline.begin_phase("backward", allocator.stats());
    const std::uint64_t peak = timeline.phases()[timeline.phases().size() - 2].allocated.bytes - before;
    after_forward = held() - before;
    if (backward) engine.backward(ctx, {y}, {empty(ctx, {1, kWidth}, DType::bfloat16, Op::input)});
    return peak;
  }

  CounterSource source;
  CachingAllocator allocator{AllocatorConfig{}, source};
  Timeline timeline;
  Device device{allocator, timeline, traits_with_small_workspace()};
  Engine engine;
  Context ctx{device, engine};
  Zero3Options options;
  Chain chain;
  std::vector<std::unique_ptr<Zero3Param>> params;
  std::vector<Zero3Param*> all;
  std::unique_ptr<Zero3Coordinator> coordinator;
  std::unique_ptr<Zero3Hooks> hooks;
  std::uint64_t after_forward = 0;
};

}  // namespace

TEST_CASE("shard/zero3: each rank holds an equal part of every parameter, the last one's padded") {
  const Cut cut(options_for(3));
  CHECK(cut.allocator.stats().requested.current == 4 * 2 * 21'846);  // 65536 elements on three ranks
  CHECK(cut.all[0]->tensor().numel() == 0);
  CHECK(cut.all[0]->holds_data());
}

TEST_CASE("shard/zero3: a parameter is whole only while its module runs") {
  Cut cut(options_for(4));
  for (int pass = 1; pass <= 3; ++pass) {
    const std::uint64_t peak = cut.pass();
    CHECK(peak > kWhole);
    CHECK(peak < kWhole + kWhole / 2);
    CHECK(cut.after_forward < kWhole / 2);
  }
}

TEST_CASE("shard/zero3: from the second pass on what comes next is fetched ahead") {
  Zero3Options options = options_for(4);
  SUBCASE("one at a time, straight into its place") {
    options.prefetch_bucket_size = kWeight;
    Cut cut(options);
    CHECK(cut.pass() < 2 * kWhole);
    const std::uint64_t peak = cut.pass();
    CHECK(peak > 2 * kWhole);
    CHECK(peak < 3 * kWhole);
  }
  SUBCASE("several by way of a buffer, which stays until all of them have been waited for") {
    options.prefetch_bucket_size = 2 * kWeight;
    Cut cut(options);
    cut.pass();
    const std::uint64_t peak = cut.pass();
    CHECK(peak > 4 * kWhole);  // the buffer of two and both copies
    CHECK(peak < 6 * kWhole);
  }
  SUBCASE("not beyond the limit of live parameters") {
    options.prefetch_bucket_size = 2 * kWeight;
    options.max_live_parameters = kWeight;
    Cut cut(options);
    cut.pass();
    CHECK(cut.pass() < 2 * kWhole);
  }
}

TEST_CASE("shard/zero3: what is used again within the reuse distance stays") {
  Zero3Options options = options_for(4);
  options.max_reuse_distance = 100 * kWeight;
  Cut cut(options);
  cut.hooks->replaces_linear = true;
  cut.pass(true);
  CHECK(cut.after_forward < kWhole);  // the trace is still being recorded
  cut.pass(true);
  CHECK(cut.after_forward > 4 * kWhole);
  cut.coordinator->release_all(cut.ctx);
  for (const Zero3Param* param : cut.all) CHECK(param->status == Zero3Status::not_available);
}

TEST_CASE("shard/zero3: a view that autograd keeps holds the whole of a frozen weight, DeepSpeed's linear does not") {
  Cut plain(options_for(4));
  plain.pass(true);
  CHECK(plain.after_forward > 4 * kWhole);
  Cut patched(options_for(4));
  patched.hooks->replaces_linear = true;
  patched.pass(true);
  CHECK(patched.after_forward < kWhole);
}

TEST_CASE("shard/zero3: gradients end as parts of this rank, by way of the bucket") {
  const Zero3Options options = options_for(4);
  Cut cut(options, true);
  Zero3Gradients gradients(cut.ctx, {cut.all}, {}, options);
  const std::uint64_t before = cut.held();
  for (int micro = 1; micro <= 2; ++micro) {
    cut.pass(true);
    gradients.finish_backward(cut.ctx);
    cut.coordinator->release_all(cut.ctx);
    for (const Zero3Param* param : cut.all) CHECK_FALSE(grad_of(param->tensor()).defined());
    CHECK(gradients.parts(0).size() == 4);
    CHECK(gradients.parts(0).front().numel() == kWeight / 4);
    CHECK(cut.held() - before <= 2 * 512);  // cuBLAS
  }
}

TEST_CASE("shard/zero3: a parameter that another module reads is gathered, and then counts as that module's") {
  Cut cut(options_for(4));
  cut.coordinator->reset_step(cut.ctx);
  Module& reader = cut.chain.layer(0);
  const Parameter& read = cut.all[3]->parameter();
  cut.hooks->further_input(cut.ctx, reader, read.tensor);
  CHECK(cut.all[3]->status == Zero3Status::not_available);  // outside of a forward pass
  cut.hooks->in_forward = true;
  cut.hooks->further_input(cut.ctx, reader, read.tensor);
  CHECK(cut.all[3]->status == Zero3Status::available);
  cut.coordinator->release_all(cut.ctx);
  cut.coordinator->fetch(cut.ctx, &reader);
  CHECK(cut.all[0]->status == Zero3Status::available);
  CHECK(cut.all[3]->status == Zero3Status::available);
  CHECK(cut.all[1]->status == Zero3Status::not_available);
}

TEST_CASE("shard/zero3: what is fetched as a sum lies in it, which stays as long as any of it is needed") {
  Zero3Options options = options_for(4);
  options.fetches_by_all_reduce = true;
  Cut cut(options);
  const std::uint64_t before = cut.held();
  Zero3Gather::start(cut.ctx, {cut.all[0], cut.all[1]}, options);
  CHECK(cut.held() == before + 2 * kWhole);
  for (Zero3Param* param : {cut.all[0], cut.all[1]}) wait_for(cut.ctx, *param);
  CHECK(cut.held() == before + 2 * kWhole);
  CHECK(cut.all[1]->tensor().shape() == Shape{kWidth, kWidth});
  cut.all[0]->free(cut.ctx);
  CHECK(cut.held() == before + 2 * kWhole);
  cut.all[1]->free(cut.ctx);
  CHECK(cut.held() == before);
}

TEST_CASE("shard/zero3: one rank gathers nothing") {
  Cut cut(options_for(1));
  CHECK(cut.held() == 4 * kWhole);
  CHECK(cut.pass() < kWhole);
}

TEST_CASE("shard/zero3: parts on the host take nothing of the GPU until they are gathered") {
  Zero3Options options = options_for(4);
  options.offload_param = true;
  Cut cut(options);
  CHECK(cut.held() == 0);
  const std::uint64_t peak = cut.pass();
  CHECK(peak > kWhole + kWhole / 4);  // the copy of this rank's part beside the whole
  CHECK(peak < 2 * kWhole);
}
