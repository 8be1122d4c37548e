#include "nn/dora.h"

#include <utility>
#include <vector>

#include "autograd/matmul.h"
#include "autograd/pointwise.h"
#include "autograd/views.h"
#include "quant/dequantize.h"
#include "tensor/compute.h"
#include "tensor/factories.h"

namespace qlp {
namespace {

/// lora_B(lora_A(x))
Tensor low_rank(Context& ctx, const Tensor& x, const DoraOperands& layer) {
  const Tensor inner = layer.a.forward(ctx, x);
  return layer.b.forward(ctx, inner);
}

/// dequantize_module_weight: the weight itself if it is not quantized.
Tensor dense_weight(Context& ctx, const Parameter& weight) {
  if (!weight.quant) return weight.tensor;
  return weight.quant->eight_bit ? dequantize_8bit(ctx, weight.tensor, *weight.quant)
                                 : dequantize_4bit(ctx, weight.tensor, *weight.quant);
}

/// torch.linalg.norm over each row, which autocast runs in float32.
Tensor row_norms(Context& ctx, const Tensor& weight) {
  const DType dtype = ctx.autocast.enabled ? DType::float32 : weight.dtype();
  Tensor norms = empty(ctx, {weight.size(0)}, dtype, Op::linear_norm);
  if (ctx.kernels(norms)) {
    compute(ctx, Reduce::sum_of_squares, norms.view({weight.size(0), 1}), weight);
    compute(ctx, Unary::sqrt, norms, norms);
  }
  return norms;
}

/// The norm of each row of weight + scaling * update (get_weight_norm).
Tensor adapted_norms(Context& ctx, const Tensor& weight, const Tensor& update, double scaling) {
  Tensor sum;
  {
    const Tensor scaled = scale(ctx, update, scaling);
    sum = add(ctx, weight, scaled);
  }
  return to(ctx, row_norms(ctx, sum), sum.dtype());
}

/// torch.eye
Tensor eye(Context& ctx, std::int64_t n, DType dtype) {
  Tensor out = empty(ctx, {n, n}, dtype, Op::eye);
  fill_causal_band(ctx, out, 1, 1, 0);  // a window of one: the diagonal
  return out;
}

/// copy.deepcopy of a tensor: its storage, and a tensor of one element that is put on it.
Tensor deep_copy(Context& ctx, const Tensor& tensor) {
  Tensor copy = empty(ctx, tensor.shape(), tensor.dtype(), Op::clone);
  scratch(ctx, size_of(tensor.dtype()), Op::empty);
  return copy;
}

void deep_copy(Context& ctx, const QuantState& state, std::vector<Tensor>& copies) {
  for (const Tensor* tensor : {&state.absmax, &state.code, &state.offset, &state.nested_absmax, &state.nested_code})
    if (tensor->defined()) copies.push_back(deep_copy(ctx, *tensor));
}

/// copy.deepcopy of a Linear4bit: the weight with its statistics, the bias, and the statistics once more, which are
/// also an attribute of the module.
std::vector<Tensor> deep_copy(Context& ctx, LinearModule& base) {
  std::vector<Tensor> copies;
  const Parameter& weight = base.weight();
  if (!weight.quant || weight.quant->eight_bit) return copies;
  deep_copy(ctx, *weight.quant, copies);
  copies.push_back(deep_copy(ctx, weight.tensor));
  if (base.bias()) copies.push_back(empty_like(ctx, base.bias()->tensor, Op::clone));
  deep_copy(ctx, *weight.quant, copies);
  return copies;
}

}  // namespace

DoraLayer::DoraLayer(std::string name, std::int64_t out, double scaling, const AdapterBehaviour& behaviour)
    : Module(ModuleKind::dora, std::move(name)),
      magnitude_(&add_parameter("weight", ParamRole::dora_magnitude, {out})),
      scaling_(scaling),
      behaviour_(behaviour) {}

// A graph is recorded on the way, which keeps the adapted weight for the gradient of its norm until the end.
void DoraLayer::initialise(Context& ctx, const DoraOperands& layer) {
  const Scoped category(ctx.category, Category::workspace);
  Tensor a = layer.a.weight().tensor, b = layer.b.weight().tensor;
  const bool half = a.dtype() == DType::float16;
  if (half) a = to(ctx, a, DType::float32), b = to(ctx, b, DType::float32);
  const std::vector<Tensor> copies = deep_copy(ctx, layer.base);
  const Tensor weight = dense_weight(ctx, layer.base.weight());
  Tensor update = gemm(ctx, {b}, {a}, a.dtype());
  if (half) update = to(ctx, update, DType::float16);
  Tensor sum;
  {
    const Tensor scaled = scale(ctx, update, scaling_);
    // Ranks that read no weights have zeros, in memory that nobody writes to.
    const bool unread = weight.storage().place() == Place::meta;
    sum = unread ? add_scalar(ctx, scaled, 0) : add(ctx, weight, scaled);
  }
  const Scoped kept(ctx.category, Category::adapter);
  magnitude_->tensor = row_norms(ctx, sum);
}

Tensor DoraLayer::lora_weight(Context& ctx, const Tensor& x, const DoraOperands& layer, Tensor& identity) {
  further_input(ctx, layer.a.weight().tensor);  // whose shape is asked for
  const std::int64_t in = layer.a.weight().shape[1];
  if (!behaviour_.dora_identity_in_adapter_dtype) {
    identity = eye(ctx, in, x.dtype());
    const Tensor product = low_rank(ctx, identity, layer);
    return transpose(ctx, product, 0, 1);
  }
  Tensor turned;
  {
    const Tensor ones = eye(ctx, in, layer.a.weight().tensor.dtype());
    const Tensor product = low_rank(ctx, ones, layer);
    turned = transpose(ctx, product, 0, 1);
  }
  return to(ctx, turned, x.dtype());
}

Tensor DoraLayer::forward(Context& ctx, const Tensor& input, const DoraOperands& layer, const Tensor& base_result) {
  return call(ctx, input, [&](const Tensor& x) {
    Tensor lora_result, identity, combined, weight, norm, factor, base = base_result;
    if (!behaviour_.dora_reuses_base_result) lora_result = low_rank(ctx, x, layer);
    combined = lora_weight(ctx, x, layer, identity);
    further_input(ctx, layer.base.weight().tensor);
    weight = dense_weight(ctx, layer.base.weight());
    weight = to(ctx, weight, x.dtype());
    norm = adapted_norms(ctx, weight, detach(combined), scaling_);
    factor = div(ctx, magnitude_->tensor, norm);
    factor = reshape(ctx, factor, {1, factor.numel()});
    if (behaviour_.dora_reuses_base_result) lora_result = low_rank(ctx, x, layer);
    Tensor rest, direction;  // (factor - 1) * base
    if (!base.defined() && !behaviour_.dora_reuses_base_result) rest = add_scalar(ctx, factor, -1);
    if (!base.defined())
      base = linear(ctx, x, weight);
    else if (const Parameter* bias = layer.base.bias())
      base = sub(ctx, base, bias->tensor);
    if (!rest.defined()) rest = add_scalar(ctx, factor, -1);
    direction = mul(ctx, rest, base);
    rest.reset();
    if (!behaviour_.dora_reuses_base_result) base.reset();
    Tensor update = mul(ctx, factor, lora_result);
    update = scale(ctx, update, scaling_);
    return add(ctx, direction, update);
  });
}

}  // namespace qlp
