#include "step/evaluation.h"

#include <algorithm>
#include <utility>

#include "tensor/collective.h"
#include "tensor/compute.h"
#include "tensor/factories.h"

namespace qlp {
namespace {

/// Batches that are run before those that only leave their results.
constexpr std::int64_t kRunFirst = 2;

/// torch.cat or np.concatenate along the first dimension.
Tensor joined(Context& ctx, const Tensor& a, const Tensor& b) {
  const Scoped place(ctx.place, a.storage().place());
  Tensor out = empty(ctx, a.shape().with(0, a.size(0) + b.size(0)), a.dtype(), Op::cat);
  copy_into(ctx, out.narrow(0, 0, a.size(0)), a);
  copy_into(ctx, out.narrow(0, a.size(0), b.size(0)), b);
  return out;
}

/// accelerator.gather_for_metrics
Tensor gathered(Context& ctx, const Tensor& tensor, const RankGroup& group) {
  if (group.size == 1) return tensor;
  Tensor all = empty(ctx, tensor.shape().with(0, tensor.size(0) * group.size), tensor.dtype(), Op::all_gather);
  all_gather(ctx, group, all, tensor);
  return all;
}

/// accelerator.pad_across_processes: the ranks tell each other their shapes; here all are alike.
void compare_shapes(Context& ctx, const Tensor& tensor, const RankGroup& group) {
  const Tensor shape = empty(ctx, {1, static_cast<std::int64_t>(tensor.shape().rank())}, DType::int64, Op::input);
  gathered(ctx, shape, group);
  ctx.device.synchronize();
}

class Container {
 public:
  void add(Context& ctx, const Tensor& tensor) {
    tensors_ = tensors_.defined() ? joined(ctx, tensors_, tensor) : tensor;
  }

  /// nested_numpify knows no bfloat16.
  void to_numpy(Context& ctx) {
    if (!tensors_.defined()) return;
    Tensor array = to_host(ctx, tensors_);
    if (array.dtype() == DType::bfloat16) {
      const Tensor wide = empty_like(ctx, array, DType::float32, Op::to_copy);
      copy_into(ctx, wide, array);
      array = wide;
    }
    arrays_ = arrays_.defined() ? joined(ctx, arrays_, array) : std::move(array);
    tensors_.reset();
  }

 private:
  Tensor tensors_, arrays_;
};

/// A prediction of the same shapes and dtypes in another place.
Prediction remade(Context& ctx, const Prediction& model, Place where) {
  const Scoped place(ctx.place, where);
  const auto again = [&ctx](const Tensor& tensor) {
    return tensor.defined() ? empty(ctx, tensor.shape(), tensor.dtype(), Op::to_copy) : Tensor();
  };
  return {again(model.loss), again(model.logits), again(model.labels)};
}

}  // namespace

void evaluation_loop(Context& ctx, const EvaluationOptions& options, const Predict& predict) {
  const Scoped category(ctx.category, Category::logits_and_loss);
  const std::int64_t window = options.accumulation ? std::min(options.accumulation, options.batches) : options.batches;
  Container losses, logits, labels;
  Prediction latest, shapes;  // the loop's names hold the latest until the next one is there
  const auto all_to_numpy = [&] {
    for (Container* container : {&losses, &logits, &labels}) container->to_numpy(ctx);
  };
  for (std::int64_t batch = 1; batch <= options.batches; ++batch) {
    const bool runs = batch <= kRunFirst || batch == window;
    latest = runs ? predict(ctx) : remade(ctx, shapes, Place::device);
    if (batch == 1) shapes = remade(ctx, latest, Place::meta);
    {
      const Tensor repeated = empty(ctx, {options.batch_size}, latest.loss.dtype(), Op::clone);
      copy_into(ctx, repeated, latest.loss);
      latest.loss = gathered(ctx, repeated, options.group);
    }
    losses.add(ctx, latest.loss);
    if (options.keeps_predictions) {
      compare_shapes(ctx, latest.labels, options.group);
      compare_shapes(ctx, latest.logits, options.group);
      latest.logits = gathered(ctx, latest.logits, options.group);
      logits.add(ctx, latest.logits);
      latest.labels = gathered(ctx, latest.labels, options.group);
      labels.add(ctx, latest.labels);
    }
    if (options.accumulation && batch % options.accumulation == 0) {
      all_to_numpy();
      latest = {};
      ctx.device.empty_cache();
    }
  }
  all_to_numpy();
}

}  // namespace qlp
