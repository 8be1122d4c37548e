#include "step/trainer.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <utility>

#include "autograd/autocast.h"
#include "autograd/engine.h"
#include "autograd/pointwise.h"
#include "tensor/arithmetic.h"
#include "tensor/collective.h"
#include "tensor/compute.h"
#include "tensor/factories.h"

namespace qlp {
namespace {

Tensor scalar(Context& ctx, DType dtype, Op op = Op::input) { return empty(ctx, {}, dtype, op); }

/// tensor.to(device) from pageable memory, which waits for the GPU.
Tensor from_host(Context& ctx, const Shape& shape, DType dtype) {
  Tensor out = empty(ctx, shape, dtype, Op::input);
  copy_to_device(ctx, bytes_of(shape, dtype).count());
  ctx.device.synchronize();
  return out;
}

}  // namespace

Trainer::Trainer(CausalLm& model, ShardingRuntime& runtime, TrainerOptions options, PhaseObserver begin_phase)
    : model_(model), runtime_(runtime), options_(std::move(options)), begin_phase_(std::move(begin_phase)) {}

void Trainer::prepare(Context& ctx) {
  begin_phase_("prepare");
  runtime_.place_model(ctx, model_);
  ctx.device.empty_cache();  // accelerator.free_memory()
  make_first_sums(ctx);
  if (options_.makes_optimizer_first) make_optimizer(ctx);
  runtime_.prepare(ctx, model_);
  if (!options_.makes_optimizer_first) make_optimizer(ctx);
  runtime_.initialize_states(ctx, *optimizer_);
  if (options_.scales_loss) scaler_.emplace(options_.gradient_parts);
  {
    const Scoped category(ctx.category, Category::logits_and_loss);
    total_loss_ = scalar(ctx, DType::float32);
    fill(ctx, total_loss_, 0);
  }
}

void Trainer::train(Context& ctx) {
  for (std::int64_t step = 1; step <= options_.num_steps; ++step) {
    if (options_.pipeline.stages > 1) {
      pipeline_step(ctx);
      begin_phase_("step" + std::to_string(step) + ".optimizer");
      end_step(ctx, step);
      continue;
    }
    if (step > 1) begin_phase_("micro" + std::to_string(micro_ + 1) + ".forward");
    const std::int64_t last = options_.gradient_accumulation_steps;
    const double items = label_tokens(options_.micro_batch_size) * static_cast<double>(last);
    options_.run.item_count = items;
    // A sum over the tokens of all micro steps is divided by their number already.
    options_.run.loss_weight = options_.run.behaviour.averages_loss ? 1 / static_cast<double>(last) : 1;
    if (options_.item_count != ItemCount::host_number) num_items_ = counted_items(ctx, items);
    if (ctx.kernels(total_loss_)) numbers_.emplace_back();
    for (std::int64_t i = 1; i <= last; ++i) {
      micro_step(ctx, i, i == last || options_.sync_each_batch);
      begin_phase_(i == last ? "step" + std::to_string(step) + ".optimizer"
                             : "micro" + std::to_string(micro_ + 1) + ".forward");
      add_up_loss(ctx);
    }
    end_step(ctx, step);
  }
  begin_phase_("end");
  const auto drop_locals = [&] { num_items_.reset(), step_loss_.reset(), grad_norm_.reset(); };
  if (options_.epoch_is_function) drop_locals();
  store_flos(ctx);
  drop_locals();
  if (!options_.adds_loss_in_place) total_loss_.reset();  // else an attribute of the Trainer
}

void Trainer::end_step(Context& ctx, std::int64_t step) {
  optimizer_step(ctx);
  begin_phase_("step" + std::to_string(step) + ".zero_grad");
  runtime_.zero_grad(ctx, trained_);
  if (step != options_.checkpoint_step) return;
  begin_phase_("step" + std::to_string(step) + ".save");
  store_flos(ctx);
  save_checkpoint(ctx, model_, runtime_, *optimizer_, options_.save);
}

void Trainer::make_first_sums(Context& ctx) {
  if (!options_.keeps_first_sums) return;
  const std::vector<ParameterGroup> groups =
      group_parameters(runtime_.ShardingRuntime::trained(model_), options_.groups).groups;
  first_sums_ = first_adagrad_states(ctx, groups, options_.adagrad_start != AdagradStart::unmoved);
}

void Trainer::make_optimizer(Context& ctx) {
  OptimizerSetup setup{.behaviour = options_.optimizer_behaviour,
                       .embeddings = {},
                       .adagrad_start = options_.adagrad_start,
                       .frozen = runtime_.frozen(model_)};
  Embedding* const embedding = model_.parts().embedding.get();  // none on later stages of a pipeline
  std::vector<TrainedTensor> trained = runtime_.trained(model_);
  auto [groups, decays] = group_parameters(trained, options_.groups);
  for (auto& [parameter, tensor, flat, whole, first_row] : trained) {
    if (!flat && embedding && parameter == &embedding->weight()) setup.embeddings.push_back(tensor);
    if (whole.rank() > 0)
      setup.cut.push_back({tensor, {runtime_.shard_axes(parameter->mesh).front(), whole[0], first_row}});
    by_mesh_[parameter->parts > 1 ? parameter->mesh : LayerMesh::none].tensors.push_back(tensor);
    trained_.push_back(std::move(tensor));
  }
  for (auto& [mesh, tensors] : by_mesh_) {
    tensors.axes = runtime_.shard_axes(mesh);
    if (mesh == LayerMesh::tp) tensors.axes.push_back(options_.tensor_parallel);
    if (mesh == LayerMesh::ep) tensors.axes.push_back(options_.expert_parallel);
  }
  if (!setup.cut.empty())
    setup.clip_grad_norm = [this](Context& c, const std::vector<Tensor>& parameters, double max_norm) {
      return runtime_.clip_grad_norm(c, parameters, max_norm);
    };
  optimizer_ = qlp::make_optimizer(ctx, options_.optimizer, std::move(groups), setup);
  optimizer_->set_lr(options_.learning_rate);
  optimizer_->set_weight_decays(std::move(decays));
  if (!steps_by_layers(options_.optimizer)) return;
  for (std::size_t i = 0; i < trained_.size(); ++i)  // its place: a hook that held the tensor would hold itself
    register_post_accumulate_hook(trained_[i], [this, i](Context& c) {
      const Scoped grad_mode(c.grad_enabled, false);
      optimizer_->step_alone(c, trained_[i]);
      set_grad(trained_[i], {});
    });
}

/// All but the first of each sequence.
double Trainer::label_tokens(std::int64_t batch_size) const {
  return static_cast<double>(batch_size * (options_.seq_len - 1));
}

Tensor Trainer::tokens(Context& ctx, std::int64_t batch_size, std::int64_t micro, Text text) const {
  const RankGroup& ring = options_.context_parallel;
  Tensor out = from_host(ctx, {batch_size, options_.seq_len / ring.size}, DType::int64);
  if (ctx.kernels(out)) {
    const SampleId first{.seed = ctx.random.seed,
                         .step = static_cast<std::int64_t>(numbers_.size()),
                         .micro = micro,
                         .sample = options_.rank * batch_size};
    const auto ids = sample_tokens(first, batch_size, options_.seq_len, options_.vocab_size);
    upload(ctx, out,
           balanced_piece(text_of(ids, options_.seq_len, text), options_.seq_len, ring.size, own_place(ctx, ring)));
  }
  return out;
}

/// _prepare_inputs, _prepare_context_parallel_inputs
Trainer::Batch Trainer::make_batch(Context& ctx, std::int64_t batch_size, std::int64_t micro) const {
  Batch batch;
  const RankGroup& ring = options_.context_parallel;
  if (ring.size > 1 && options_.splits_on_device)
    batch.split = split_buffers(ctx, {batch_size, options_.seq_len}, ring);
  batch.ids = tokens(ctx, batch_size, micro);
  batch.labels = tokens(ctx, batch_size, micro);
  if (ring.size == 1) return batch;
  batch.shifted_labels = tokens(ctx, batch_size, micro, Text::shifted_labels);
  batch.positions = tokens(ctx, batch_size, micro, Text::positions);
  return batch;
}

Tensor Trainer::counted_items(Context& ctx, double own) const {
  Tensor counted = from_host(ctx, {}, DType::int64);
  fill(ctx, counted, own);
  if (options_.averages_tokens && options_.world_size > 1) {
    Tensor gathered;
    {
      const Tensor copy = scalar(ctx, DType::int64, Op::clone);
      copy_into(ctx, copy, counted);
      gathered = empty(ctx, {options_.world_size}, DType::int64, Op::all_gather);
      all_gather(ctx, {MeshAxis::world, options_.world_size}, gathered, copy);
    }
    counted.reset();
    counted = scalar(ctx, DType::int64, Op::sum);
    reduce_all(ctx, Reduce::sum, counted, gathered);
  } else if (options_.averages_tokens && options_.item_count == ItemCount::device_int64) {
    const Tensor sum = scalar(ctx, DType::int64, Op::sum);
    copy_into(ctx, sum, counted);
    counted = sum;
  }
  if (options_.item_count == ItemCount::device_float) {
    const Tensor share = scalar(ctx, DType::float32, Op::div);
    const std::int64_t sharing = options_.tensor_parallel.size * options_.context_parallel.size;
    compute(ctx, Unary::mul, share, counted, 1 / static_cast<double>(sharing));
    counted = share;
  }
  return counted;
}

CausalLmOutput Trainer::compute_loss(Context& ctx, const Batch& batch, const Tensor& num_items, RunOptions run) {
  run.shifted_labels = batch.shifted_labels, run.positions = batch.positions;
  CausalLmOutput output;
  {
    const AutocastRegion autocast(ctx, options_.autocast);
    output = runtime_.forward(ctx, model_, batch.ids, batch.labels, num_items, run);
    run = {};
  }
  if (options_.outputs_to_fp32 && output.logits.defined()) {
    const Scoped category(ctx.category, Category::logits_and_loss);
    output.logits = to(ctx, output.logits, DType::float32);
  }
  // Ranks that share layers have the same samples.
  const std::int64_t ranks = options_.world_size / options_.tensor_parallel.size;
  if (options_.averages_tokens && num_items.defined())
    output.loss = scale_in_place(ctx, output.loss, static_cast<double>(ranks));
  return output;
}

void Trainer::micro_step(Context& ctx, std::int64_t micro, bool sync) {
  ++micro_;
  runtime_.begin_micro_step(ctx, sync);
  if (micro_ == 1) begin_phase_("micro1.forward");
  Batch batch = make_batch(ctx, options_.micro_batch_size, micro);
  Tensor loss = compute_loss(ctx, batch, num_items_, options_.run).loss;
  begin_phase_("micro" + std::to_string(micro_) + ".backward");
  if (!options_.keeps_inputs) batch.ids = batch.labels = batch.shifted_labels = batch.positions = Tensor();
  const double weight = options_.run.loss_weight;
  if (ctx.kernels(loss)) numbers_.back().loss += item(ctx, loss) * weight;
  if (runtime_.steps_in_backward()) {
    runtime_.backward(ctx, loss, *optimizer_);
    if (ctx.kernels(loss)) {
      numbers_.back().grad_norm = runtime_.grad_norm(ctx);
      numbers_.back().skipped = runtime_.skipped();
    }
  } else {
    const Tensor share = scale(ctx, loss, weight, Op::div);  // of the accumulation steps, in accelerator.backward
    const Tensor scaled = scaler_ ? scaler_->scale(ctx, share) : share;
    ctx.engine.backward(ctx, {scaled}, {Tensor()});
    optimizer_->finish_backward(ctx);
  }
  if (options_.divides_reported_loss) {
    step_loss_ = scalar(ctx, DType::float32, Op::div);
    compute(ctx, Unary::mul, step_loss_, loss, 1 / static_cast<double>(options_.gradient_accumulation_steps));
  } else {
    step_loss_ = loss.alias();
  }
}

void Trainer::evaluate(Context& ctx) {
  begin_phase_("evaluation");
  const Scoped grad_mode(ctx.grad_enabled, false);
  const Scoped training(ctx.training, false);
  evaluation_loop(ctx, *options_.evaluation, [this](Context& c) { return predict(c); });
}

void Trainer::save(Context& ctx) {
  begin_phase_("save");
  save_model(ctx, model_, runtime_, *optimizer_, options_.save);
}

/// prediction_step
Prediction Trainer::predict(Context& ctx) {
  const Scoped category(ctx.category, Category::activations);
  const std::int64_t batch_size = options_.evaluation->batch_size;
  const Batch batch = make_batch(ctx, batch_size, 0);
  const double items = label_tokens(batch_size);
  const Tensor num_items = options_.evaluation_counts_items ? counted_items(ctx, items) : Tensor();
  RunOptions run = options_.run;
  run.checkpointing = Checkpointing::none;
  run.input_requires_grad = false;
  run.item_count = items;
  const CausalLmOutput output = compute_loss(ctx, batch, num_items, run);
  const Scoped results(ctx.category, Category::logits_and_loss);
  Prediction prediction;
  prediction.loss = scalar(ctx, output.loss.dtype(), Op::mean);
  copy_into(ctx, prediction.loss, output.loss);
  if (options_.evaluation->keeps_predictions)
    prediction.logits = output.logits, prediction.labels = batch.labels.alias();
  return prediction;
}

StagePass Trainer::stage_forward(Context& ctx, std::int64_t i) {
  const PipelineOptions& pipeline = options_.pipeline;
  begin_phase_("micro" + std::to_string(micro_ + i + 1) + ".forward");
  runtime_.begin_stage_forward(ctx);
  StagePass pass;
  if (!pipeline.first()) pass.input = pipeline_.receive_input(ctx, i);
  const Tensor ids = tokens(ctx, options_.micro_batch_size, i + 1);
  const Tensor labels = tokens(ctx, options_.micro_batch_size, i + 1);
  CausalLmOutput output;
  {
    const AutocastRegion autocast(ctx, options_.autocast);
    output = runtime_.forward(ctx, model_, pipeline.first() ? ids : pass.input, labels, num_items_, options_.run);
  }
  if (pipeline.last()) {
    pass.output = scale(ctx, output.loss, 1 / static_cast<double>(pipeline.microbatches), Op::div);
    if (ctx.kernels(pass.output)) numbers_.back().loss += item(ctx, pass.output);
    if (scaler_) pass.output = scaler_->scale(ctx, pass.output);
    pass.logits = std::move(output.logits);
  } else {
    pass.output = std::move(output.hidden);
    pipeline_.send_output(ctx, pass.output);
  }
  return pass;
}

void Trainer::stage_backward(Context& ctx, std::int64_t i, const StagePass& pass, bool last) {
  begin_phase_("micro" + std::to_string(micro_ + i + 1) + ".backward");
  runtime_.begin_stage_backward(ctx, last);
  const Tensor gradient = options_.pipeline.last() ? Tensor() : pipeline_.receive_gradient(ctx, i);
  ctx.engine.backward(ctx, {pass.output}, {gradient});
  if (pass.input.defined()) pipeline_.send_gradient(ctx, grad_of(pass.input));
}

/// As many forward passes as the schedule has ahead, then one backward and one forward in turn.
void Trainer::pipeline_step(Context& ctx) {
  const PipelineOptions& pipeline = options_.pipeline;
  runtime_.begin_micro_step(ctx, true);
  pipeline_.make(ctx, options_.micro_batch_size, options_.seq_len);
  if (scaler_) scaler_->begin(ctx);  // gradients of all stages are those of the last one's loss, scaled
  const bool computes = ctx.kernels(total_loss_) != nullptr;
  if (computes) numbers_.emplace_back();
  const std::int64_t played = computes ? pipeline.microbatches : pipeline.played();
  std::deque<StagePass> in_flight;
  std::int64_t forwards = 0;
  const auto forward = [&] { in_flight.push_back(stage_forward(ctx, forwards++)); };
  while (forwards < pipeline.warmup()) forward();
  for (std::int64_t i = 0; i < played; ++i) {
    stage_backward(ctx, i, in_flight.front(), i == played - 1);
    in_flight.pop_front();
    if (forwards < played) forward();
  }
  pipeline_.flush(ctx);
  runtime_.end_stage_passes(ctx);
  micro_ += played;
}

/// The running sum, behind a filter for losses that are not numbers, for whose answer the host waits.
void Trainer::add_up_loss(Context& ctx) {
  scratch(ctx, 1, Op::ne);
  ctx.device.synchronize();
  {
    const Tensor magnitude = scalar(ctx, DType::float32, Op::abs);
    scratch(ctx, 1, Op::ne);
  }
  const Tensor sum = options_.adds_loss_in_place ? total_loss_ : scalar(ctx, DType::float32, Op::add);
  compute(ctx, Binary::add, sum, total_loss_, step_loss_);
  total_loss_ = sum;
}

/// The ranks tell each other how much they have computed (distributed_broadcast_scalars).
void Trainer::store_flos(Context& ctx) {
  if (options_.world_size == 1) return;
  Tensor all;
  {
    const Tensor own = scalar(ctx, DType::float32);
    std::vector<Tensor> outputs;
    for (std::int64_t rank = 0; rank < options_.world_size; ++rank)
      outputs.push_back(scalar(ctx, DType::float32, Op::clone));
    scratch(ctx, static_cast<std::uint64_t>(options_.world_size) * size_of(DType::float32), Op::all_gather);
    communicate(ctx, Collective::all_gather, {MeshAxis::world, options_.world_size},
                outputs.size() * size_of(DType::float32));
    all = empty(ctx, {options_.world_size}, DType::float32, Op::cat);
  }
  const Tensor sum = scalar(ctx, DType::float32, Op::sum);
}

Tensor Trainer::clip_grad_norm(Context& ctx, double max_norm) {
  if (options_.pipeline.stages > 1) {
    const std::vector<RankGroup> parts = runtime_.shard_axes(LayerMesh::none);
    return clip_over_stages(ctx, {trained_, parts}, options_.pipeline.group(), max_norm);
  }
  if (by_mesh_.size() < 2) return runtime_.clip_grad_norm(ctx, trained_, max_norm);
  std::vector<MeshTensors> meshes;
  for (const auto& [mesh, tensors] : by_mesh_) meshes.push_back(tensors);
  return clip_over_meshes(ctx, meshes, max_norm);
}

/// Of the parameters that have a gradient, this is read, and the parameter read and written.
void Trainer::touch_updated(Context& ctx) const {
  for (const Tensor& parameter : trained_) {
    if (!grad_of(parameter).defined()) continue;
    touch(ctx, grad_of(parameter));
    for (int i = 0; i < 2; ++i) touch(ctx, parameter);
  }
}

void Trainer::optimizer_step(Context& ctx) {
  if (runtime_.steps_in_backward()) return;
  if (scaler_) scaler_->unscale(ctx, trained_);
  if (options_.clips) {
    constexpr double kNoLimit = std::numeric_limits<double>::infinity();
    grad_norm_ = clip_grad_norm(ctx, options_.max_grad_norm > 0 ? options_.max_grad_norm : kNoLimit);
    if (ctx.kernels(grad_norm_)) numbers_.back().grad_norm = item(ctx, grad_norm_);
  }
  const bool skipped = scaler_ && scaler_->found_inf(ctx);
  if (skipped)
    numbers_.back().skipped = true;
  else
    optimizer_->step(ctx);
  touch_updated(ctx);
  if (scaler_) scaler_->update(ctx);
}

}  // namespace qlp
