#include "step/load.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "nn/initial_values.h"
#include "shard/rows.h"
#include "shard/state_dict.h"
#include "step/load_order.h"
#include "step/mxfp4.h"
#include "tensor/compute.h"
#include "tensor/factories.h"

namespace qlp {
namespace {

constexpr std::uint64_t kWarmupReserve = 1'288'490'189;  // 1.2 GiB; caching_allocator_warmup

const RankShare& share_of(const Parameter& parameter, const LoadOptions& options) {
  return parameter.mesh == LayerMesh::ep ? options.experts_cut : options.cut;
}

/// What this rank reads of a parameter.
Shape read_shape(const Parameter& parameter, const LoadOptions& options) {
  const RankShare& share = share_of(parameter, options);
  return parameter.shape.with(0, rows_of(parameter.shape[0], share.ranks, share.rank).own);
}
std::int64_t first_row(const Parameter& parameter, const LoadOptions& options) {
  const RankShare& share = share_of(parameter, options);
  return rows_of(parameter.shape[0], share.ranks, share.rank).padded * share.rank;
}

/// The linear layers, which every family's tensor parallel plan cuts.
bool in_tp_plan(const Parameter& parameter) {
  return parameter.role == ParamRole::base_weight || parameter.role == ParamRole::bias;
}

/// caching_allocator_warmup: one allocation that makes the cache as large as the model will be, or as the GPU allows;
/// freed at once, the segment stays.
void warm_up(Context& ctx, const std::vector<Parameter*>& order, const LoadOptions& options, bool quantizes) {
  const bool by_name = options.behaviour.loader == Loader::by_name;
  std::uint64_t total = 0;
  for (const Parameter* parameter : order) {
    // 4.57 takes the head for tied in every model that can tie it; 5 counts what a quantized weight will take.
    if (!by_name && parameter->role == ParamRole::lm_head) continue;
    const std::uint64_t bytes = bytes_of(read_shape(*parameter, options), options.dtype).count();
    if (by_name)
      total +=
          parameter->quantize ? static_cast<std::uint64_t>(parameter->numel()) / (options.eight_bit ? 1 : 2) : bytes;
    else  // 4.57 takes several processes for tensor parallelism
      total += in_tp_plan(*parameter) ? bytes / static_cast<std::uint64_t>(options.world_size) : bytes;
  }
  if (options.capacity > kWarmupReserve) total = std::min(total, options.capacity - kWarmupReserve);
  const std::uint32_t divisor = quantizes && !by_name ? 2 : 1;  // 4.57 asks for half where it quantizes
  const std::uint64_t bytes = total / divisor / 2 * 2;
  if (bytes == 0) return;
  Block* block = ctx.device.allocate(bytes, ctx.stream, ctx.label(Op::warmup));
  using Of = DeviceSizedAllocation::Of;
  ctx.device.timeline().sized_by_device(
      {block->tag, by_name ? Of::capacity : Of::free_memory, divisor, kWarmupReserve});
  ctx.device.free(block);
}

void quantize(Context& ctx, Parameter& parameter, const Tensor& weight, WeightQuantizer& quantizer) {
  QuantizedWeight quantized = quantizer.quantize(ctx, weight);
  parameter.tensor = std::move(quantized.packed);
  parameter.quant = std::make_unique<QuantState>(std::move(quantized.state));
}

/// Most checkpoints hold a matrix for each expert and projection; transformers 5 stacks them, and joins gate and up, on
/// the GPU (core_model_loading.py: MergeModulelist, Concatenate). A rank that has part of them reads no more than that.
Tensor stack_experts(Context& ctx, const Shape& shape, std::int64_t parts, DType dtype) {
  const Shape stacked = shape.with(1, shape[1] / parts), single{stacked[1], stacked[2]};
  std::vector<std::vector<Tensor>> matrices(static_cast<std::size_t>(parts));
  for (auto& of_part : matrices)
    for (std::int64_t i = 0; i < shape[0]; ++i) of_part.push_back(empty(ctx, single, dtype, Op::parameter));
  std::vector<Tensor> stacks;
  for (auto& of_part : matrices) {
    stacks.push_back(empty(ctx, stacked, dtype, Op::parameter));
    of_part.clear();
  }
  return parts == 1 ? stacks.front() : empty(ctx, shape, dtype, Op::parameter);
}

/// The weight as it arrives on the GPU. 4.57 reads onto the GPU what is in the file, and casts it there
/// (_load_state_dict_into_meta_model: param[...], then param.to(casting_dtype)); the others cast in host memory.
Tensor read(Context& ctx, const Parameter& parameter, const LoadOptions& options) {
  const Shape shape = read_shape(parameter, options);
  if (options.mxfp4_experts && is_stack(parameter))
    return dequantized_mxfp4(ctx, shape, options.dtype, options.behaviour.loader);
  if (parameter.fused_parts && !options.stacked_experts)
    return stack_experts(ctx, shape, parameter.fused_parts, options.dtype);
  Tensor as_stored;
  if (options.behaviour.loader == Loader::by_file && options.checkpoint_dtype != options.dtype)
    as_stored = empty(ctx, shape, options.checkpoint_dtype, Op::parameter);
  return empty(ctx, shape, options.dtype, Op::parameter);
}

void load_parameter(Context& ctx, Parameter& parameter, const LoadOptions& options, WeightQuantizer* quantizer) {
  Tensor weight = read(ctx, parameter, options);
  fill_initial(ctx, parameter, weight, first_row(parameter, options));
  if (!parameter.quantize) {
    parameter.tensor = std::move(weight);
    // set_module_tensor_to_device ends with empty_cache; biases of quantized layers take another way.
    const bool plain = !quantizer || parameter.role != ParamRole::bias;
    if (options.behaviour.loader == Loader::by_tensor && plain) ctx.device.empty_cache();
    return;
  }
  if (options.behaviour.loader != Loader::by_file || options.eight_bit) {
    quantize(ctx, parameter, weight, *quantizer);
    return;
  }
  // 4.57 reads onto the GPU, moves to the host and back: two whole copies.
  const Tensor again = empty(ctx, parameter.shape, options.dtype, Op::parameter);
  copy_into(ctx, again, weight);
  quantize(ctx, parameter, again, *quantizer);
}

bool has_quantized(Module& module) {
  for (const Parameter* parameter : module.parameters())
    if (parameter->quant) return true;
  return false;
}

void make_buffers(Context& ctx, CausalLm& model, DType dtype, Place where) {
  const Scoped category(ctx.category, Category::parameters);
  const Scoped place(ctx.place, where);
  for (const ModuleBuffer& buffer : model.buffers())
    *buffer.tensor = empty(ctx, buffer.shape, buffer.in_model_dtype ? dtype : DType::float32, Op::buffer);
  model.visit([&](Module& module) { module.fill_buffers(ctx); });
}

/// The checkpoint's files as safetensors opens them: mapped, read where they are touched.
std::vector<Tensor> map_files(Context& ctx, const std::vector<Parameter*>& order, const LoadOptions& options) {
  const Scoped place(ctx.place, Place::mapped);
  std::vector<Tensor> files;
  for (const Parameter* parameter : order) {
    const bool packed = options.mxfp4_experts && is_stack(*parameter);
    files.push_back(packed ? empty(ctx, {mxfp4_bytes(parameter->numel())}, DType::uint8, Op::parameter)
                           : empty(ctx, parameter->shape, options.checkpoint_dtype, Op::parameter));
  }
  return files;
}

/// Weights in the dtype of the file stay views of it. Ranks that are sent their weights have empty tensors in their
/// place, which nobody writes to (modeling_utils.py, _move_missing_keys_from_meta_to_cpu).
void load_on_host(Context& ctx, CausalLm& model, const std::vector<Parameter*>& order, const LoadOptions& options) {
  if (options.keeps_on_host) {
    const std::vector<Tensor> files = map_files(ctx, order, options);
    const Scoped place(ctx.place, Place::host);
    for (std::size_t i = 0; i < order.size(); ++i) {
      const bool as_stored = options.checkpoint_dtype == options.dtype && files[i].dtype() == options.dtype;
      order[i]->tensor = as_stored ? files[i] : empty(ctx, order[i]->shape, options.dtype, Op::parameter);
      fill_initial(ctx, *order[i], order[i]->tensor);
    }
  } else {
    const Scoped place(ctx.place, Place::meta);
    for (Parameter* parameter : order) parameter->tensor = empty(ctx, parameter->shape, options.dtype, Op::parameter);
  }
  make_buffers(ctx, model, options.dtype, Place::host);
}

/// A quantized weight leaves the GPU again: for host memory, or for nowhere.
void take_off_gpu(Context& ctx, Parameter& parameter, bool keeps) {
  if (keeps) {
    parameter.tensor = to_host(ctx, parameter.tensor);
    return;
  }
  const Scoped place(ctx.place, Place::meta);
  parameter.tensor = empty(ctx, parameter.tensor.shape(), parameter.tensor.dtype(), Op::to_copy);
}

/// Under zero.Init every parameter is cut as soon as its module is there. Then module by module is gathered, filled by
/// rank 0, broadcast and cut again (transformers integrations/deepspeed.py, _load_state_dict_into_zero3_model).
void load_in_parts(Context& ctx, CausalLm& model, const std::vector<Parameter*>& order, const LoadOptions& options,
                   ParameterCutter& cutter) {
  model.visit([&](Module& module) {
    for (const auto& parameter : module.own_parameters())
      if (in_checkpoint(*parameter)) cutter.make(ctx, *parameter, options.dtype);
    for (const Parameter* parameter : module.shared_parameters()) cutter.make_replaced(ctx, *parameter, options.dtype);
  });
  make_buffers(ctx, model, options.dtype, Place::device);
  const std::vector<Tensor> files = map_files(ctx, order, options);  // every rank reads all of them
  for (Parameter* parameter : order) cutter.fill(ctx, *parameter);
}

/// accelerate's dispatch_model: looks at the state dict (before 4.5x once more for every module that has hooks).
void dispatch(Context& ctx, CausalLm& model, const LoadOptions& options) {
  const LoadBehaviour& behaviour = options.behaviour;
  if (behaviour.loader != Loader::by_name) cloned_nested_codes(ctx, model);
  make_buffers(ctx, model, options.dtype, Place::device);
  if (behaviour.loader == Loader::by_tensor)
    model.visit([&](Module& module) {
      if (has_quantized(module)) cloned_nested_codes(ctx, module);
    });
}

}  // namespace

void load(Context& ctx, CausalLm& model, const LoadOptions& options, WeightQuantizer* quantizer,
          ParameterCutter* cutter) {
  const Scoped grad_mode(ctx.grad_enabled, false);
  const Scoped category(ctx.category, Category::parameters);
  const std::vector<Parameter*> order =
      load_order(model, options.checkpoint_dtype, options.behaviour.loader, options.mxfp4_experts);
  if (options.path == LoadPath::host) {
    load_on_host(ctx, model, order, options);
    return;
  }
  if (options.path == LoadPath::in_parts) {
    load_in_parts(ctx, model, order, options, *cutter);
    return;
  }
  const std::vector<Tensor> files = map_files(ctx, order, options);
  if (options.behaviour.loader != Loader::by_tensor) warm_up(ctx, order, options, quantizer != nullptr);
  for (Parameter* parameter : order) {
    load_parameter(ctx, *parameter, options, quantizer);
    if (options.path == LoadPath::through_gpu) take_off_gpu(ctx, *parameter, options.keeps_on_host);
  }
  if (options.path == LoadPath::through_gpu)
    make_buffers(ctx, model, options.dtype, Place::host);
  else
    dispatch(ctx, model, options);
}

}  // namespace qlp
