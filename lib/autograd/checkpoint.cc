#include "autograd/checkpoint.h"

#include <cstddef>
#include <utility>
#include <vector>

#include "autograd/autocast.h"
#include "autograd/engine.h"
#include "autograd/record.h"

namespace qlp {
namespace {

struct ReentrantBackward final : Node {
  explicit ReentrantBackward(Context& ctx)
      : Node(ctx), autocast_(ctx.autocast.enabled), random_calls_(ctx.random.calls) {}
  Region region;
  SavedTensor input;

  Grads backward(Context& ctx, Grads& grads) override {
    const Tensor saved = input.unpack(ctx);
    const Tensor detached = saved.alias();
    set_requires_grad(detached, saved.requires_grad());
    Tensor output;
    {
      const Scoped grad_mode(ctx.grad_enabled, true);
      const Scoped category(ctx.category, Category::activations);
      const AutocastRegion autocast(ctx, autocast_);
      const Scoped random(ctx.random.calls, random_calls_);  // preserve_rng_state
      output = region(ctx, detached);
    }
    ctx.engine.backward(ctx, {output}, {grads[0]});
    Grads out;
    out.push_back(grad_of(detached));
    return out;
  }
  void release() override { input.release(); }  // the function stays, an attribute of the context

 private:
  bool autocast_;
  std::uint64_t random_calls_;
};

class Holder;

/// One run of a checkpointed region.
class Frame final : public RefCounted {
 public:
  Frame(Context& ctx, Region region, Tensor input)
      : region_(std::move(region)),
        input_(std::move(input)),
        autocast_(ctx.autocast.enabled),
        random_calls_(ctx.random.calls) {}

  void recompute(Context& ctx);
  bool recomputed() const { return recomputed_; }
  std::vector<Holder*>& holders() { return holders_; }

 private:
  Region region_;
  Tensor input_;
  bool autocast_;
  std::uint64_t random_calls_;
  bool recomputed_ = false;
  std::vector<Holder*> holders_;  ///< in the order of saving; null where the node is gone
};

/// Stands for a tensor that the region saved.
class Holder final : public PackedTensor {
 public:
  explicit Holder(Ref<Frame> frame) : frame_(std::move(frame)), index_(frame_->holders().size()) {
    frame_->holders().push_back(this);
  }
  ~Holder() override { frame_->holders()[index_] = nullptr; }

  Tensor unpack(Context& ctx) override {
    if (!frame_->recomputed()) frame_->recompute(ctx);
    if (!tensor_.defined()) throw RecomputationDiffers();
    return std::exchange(tensor_, Tensor());
  }
  void fill(Tensor tensor) { tensor_ = std::move(tensor); }

 private:
  Ref<Frame> frame_;
  std::size_t index_;
  Tensor tensor_;
};

class PackAsHolder final : public SavedTensorHooks {
 public:
  explicit PackAsHolder(Ref<Frame> frame) : frame_(std::move(frame)) {}
  Ref<PackedTensor> pack(Context&, const Tensor&) override { return make_ref<Holder>(frame_); }

 private:
  Ref<Frame> frame_;
};

/// What the second run saves goes to the holder of the same number, and to the graph of the second run. Gives the
/// region up when everything that the backward pass needs has been made again (_StopRecomputationError).
class FillHolders final : public SavedTensorHooks {
 public:
  explicit FillHolders(Frame& frame) : frame_(frame) {}
  Ref<PackedTensor> pack(Context& ctx, const Tensor& tensor) override {
    if (ctx.abandoned) return nullptr;
    Tensor kept = tensor.requires_grad() ? tensor.alias() : tensor;
    auto& holders = frame_.holders();
    if (Holder* holder = holders[next_++]) holder->fill(kept);
    ctx.abandoned = next_ == holders.size();
    return make_ref<KeptTensor>(std::move(kept));
  }

 private:
  Frame& frame_;
  std::size_t next_ = 0;
};

void Frame::recompute(Context& ctx) {
  const Ref<Frame> self(this);
  FillHolders hooks(*this);
  const Scoped grad_mode(ctx.grad_enabled, true);
  const Scoped category(ctx.category, Category::activations);
  const Scoped module(ctx.module, ctx.module);
  const AutocastRegion autocast(ctx, autocast_);
  const Scoped abandoned(ctx.abandoned, false);
  const Scoped random(ctx.random.calls, random_calls_);  // preserve_rng_state
  ctx.saved_hooks.push_back(&hooks);
  region_(ctx, input_);
  ctx.saved_hooks.pop_back();
  recomputed_ = true;
}

}  // namespace

Tensor checkpoint_reentrant(Context& ctx, const Region& region, const Tensor& input) {
  Ref<ReentrantBackward> node;
  if (records(ctx, input)) {
    node = make_ref<ReentrantBackward>(ctx);
    node->add_edge(input);
    node->region = region;
    node->input.save(ctx, input);
  }
  Tensor output;
  {
    const Scoped grad_mode(ctx.grad_enabled, false);
    output = region(ctx, input);
  }
  set_history(output, node);
  return output;
}

Tensor checkpoint_nonreentrant(Context& ctx, const Region& region, const Tensor& input) {
  if (!ctx.grad_enabled) return region(ctx, input);
  const auto frame = make_ref<Frame>(ctx, region, input);
  PackAsHolder hooks(frame);
  ctx.saved_hooks.push_back(&hooks);
  Tensor output = region(ctx, input);
  ctx.saved_hooks.pop_back();
  return output;
}

}  // namespace qlp
