// One fine-tuning job, complete: what the job file says, with every default filled in.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/dtype.h"
#include "memory/allocator_config.h"
#include "model/adapter_spec.h"
#include "model/model_spec.h"
#include "model/optim_targets.h"
#include "model/quantization_spec.h"
#include "optim/optimizer_names.h"
#include "plan/gpu_rates.h"
#include "plan/machine_profile.h"
#include "plan/mesh.h"
#include "plan/sharding_plan.h"
#include "plan/stack_versions.h"

namespace qlp {

enum class GradientCheckpointing : std::uint8_t { none, reentrant, nonreentrant };
enum class Attention : std::uint8_t { sdpa, eager, flash_attention_2 };
enum class Loss : std::uint8_t { plain, liger, chunked };

/// Trainer.evaluate() after training, in the words of TrainingArguments.
struct EvaluationSpec {
  std::int64_t per_device_eval_batch_size = 8;
  bool prediction_loss_only = true;                     ///< as evaluate() does without compute_metrics
  std::int64_t num_samples = 0;                         ///< of the evaluation set; matters where predictions are kept
  std::optional<std::int64_t> eval_accumulation_steps;  ///< batches after which predictions go to the host; none: never
  friend bool operator==(const EvaluationSpec&, const EvaluationSpec&) = default;
};

/// In what form FSDP saves a checkpoint that training can go on from (accelerate's fsdp_state_dict_type); automatic:
/// whole under FSDP1, in shards under FSDP2 (dataclasses.py, set_state_dict_type, 1.15).
enum class StateDictType : std::uint8_t { full, sharded, automatic };

struct TrainingSpec {
  std::int64_t micro_batch_size = 1;
  std::int64_t seq_len = 0;
  std::int64_t gradient_accumulation_steps = 1;
  bool sync_each_batch = false;  ///< gradients are reduced after every micro step (GradientAccumulationPlugin)
  GradientCheckpointing gradient_checkpointing = GradientCheckpointing::none;
  bool bf16 = false;  ///< mixed_precision: bf16
  bool fp16 = false;  ///< mixed_precision: fp16, which scales the loss
  bool tf32 = false;  ///< products of float32 operands may round them (torch.backends.cuda.matmul.allow_tf32)
  bool mixed_precision() const { return bf16 || fp16; }
  DType autocast_dtype() const { return fp16 ? DType::float16 : DType::bfloat16; }
  std::optional<OptimTargets> optim_targets;  ///< of optimizers that project some weights
  NamedOptimizer optimizer{};
  double weight_decay = 0;     ///< of all but biases and norms
  double max_grad_norm = 1.0;  ///< 0: no clipping
  Attention attention = Attention::sdpa;
  Loss loss = Loss::plain;
  std::optional<EvaluationSpec> evaluation;
  bool saves_model = false;  ///< Trainer.save_model() at the end, with a FULL_STATE_DICT under FSDP
  /// After the last step but one (or the only one) model and optimizer are saved, as save_steps asks; none: never.
  std::optional<StateDictType> checkpoint;
  std::int64_t num_steps = 2;  ///< optimizer steps that are run; the first has no optimizer state yet
  friend bool operator==(const TrainingSpec&, const TrainingSpec&) = default;
};

/// What `estimate` needs to know of a GPU; rows come from the catalogue or from the job file.
struct GpuSpec {
  std::string name;                       ///< the catalogue's or the user's name
  Bytes capacity;                         ///< what CUDA gives (cudaMemGetInfo's total)
  std::string capacity_source;            ///< where that figure is from
  std::uint32_t compute_capability = 80;  ///< 80 for 8.0, 90 for 9.0
  std::uint32_t sm_count = 108;
  GpuRates rates;
  friend bool operator==(const GpuSpec&, const GpuSpec&) = default;
};

/// The default network between nodes: one port of 400 Gbit/s for each GPU (NVIDIA DGX H100 datasheet: eight
/// ConnectX-7).
inline constexpr Bytes kInterNodeBandwidth{50'000'000'000};

struct ClusterSpec {
  GpuSpec gpu;
  std::int64_t world_size = 1;
  std::int64_t gpus_per_node = 8;
  /// Per second, of each GPU in one direction: to the others of its node (none: as the catalogue says), to other nodes.
  std::optional<Bytes> intra_node_bandwidth;
  Bytes inter_node_bandwidth = kInterNodeBandwidth;
  Mesh mesh;  ///< parallelism beside that over data
  Bytes used_by_others;
  double margin = 0.02;                   ///< share of capacity that is kept free
  std::optional<Bytes> host_memory;       ///< of a node; none: unknown, and decides nothing
  std::optional<MachineProfile> machine;  ///< measured, where estimate was given one
  friend bool operator==(const ClusterSpec&, const ClusterSpec&) = default;
};

/// Where the weights arrive; automatic: rank0 under FSDP, else gpu (plan/loading.h).
enum class Loading : std::uint8_t { gpu, cpu, rank0, automatic };

struct JobSpec {
  ModelSpec model;
  DType dtype = DType::bfloat16;  ///< load dtype
  Loading loading = Loading::gpu;
  std::optional<QuantizationSpec> quantization;
  std::optional<AdapterSpec> adapter;  ///< none: full fine-tune
  TrainingSpec training;
  ClusterSpec cluster;
  AllocatorConfig allocator;
  std::string allocator_text;    ///< as written, for the report
  std::vector<NamedPlan> plans;  ///< in the order in which they are reported
  StackVersions stack;
  friend bool operator==(const JobSpec&, const JobSpec&) = default;
};

}  // namespace qlp
