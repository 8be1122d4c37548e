#include "config/job_reader.h"

#include <algorithm>
#include <tuple>
#include <utility>
#include <variant>

#include "base/rounding.h"
#include "config/foreign_job.h"
#include "config/job_sections.h"
#include "config/launch_file.h"
#include "config/model_catalogue.h"
#include "config/yaml_parser.h"
#include "memory/allocator_config.h"
#include "model/class_names.h"
#include "plan/catalogue.h"
#include "plan/stack_profile.h"

namespace qlp {
namespace {

constexpr std::int64_t kSchema = 1;

Section section_of(MapReader& map, std::string_view key) { return {map.take(key), map.place_of(key)}; }

void check_schema(MapReader& map) {
  map.require("schema", "the version of this format, 1");
  const auto schema = map.integer("schema", {});
  if (schema && *schema != kSchema)
    map.refuse("schema", "bad-value", "schema " + std::to_string(*schema) + " is unknown: this program reads schema 1");
}

/// The allocator's options, read and followed as the job's torch does.
void read_allocator(MapReader& map, JobSpec& job) {
  const auto at_least = [&](Version version) { return job.stack.torch >= version; };
  const auto equal_blocks = at_least({2, 13, 0}) ? EqualBlocks::oldest_segment : EqualBlocks::lowest_address;
  const auto larger_sizes = at_least({2, 9, 0}) ? LargerSizes::after_last : LargerSizes::from_last;
  job.allocator.equal_blocks = equal_blocks;
  const auto* node = map.take("allocator");
  if (!node || node->kind == NodeKind::null) return;
  const auto text = map.text("allocator");
  if (!text) return;
  const auto config = parse_allocator_config(*text, larger_sizes);
  if (config) {
    job.allocator = *config;
    job.allocator.equal_blocks = equal_blocks;
    job.allocator_text = *text;
    return;
  }
  for (auto error : config.error()) {
    // The column within the option text, seen from where that begins in the file.
    const auto at = map.place_of("allocator");
    const auto inside = error.position.column == 0 ? 0 : error.position.column - 1;
    error.key_path = at.path;
    error.position = {at.position.file, at.position.line, at.position.column + (node->quoted ? 1U : 0U) + inside};
    if (error.code.empty()) error.code = "bad-allocator";
    map.findings().append({error});
  }
}

void adopt_checkpoint_quantization(const ModelSection& model, const Section& section, JobSpec& job,
                                   Findings& findings) {
  // "The model is quantized with Mxfp4Config but you are passing a BitsAndBytesConfig" (quantizers/auto.py)
  if (model.model.mxfp4_experts && job.quantization)
    findings.error("checkpoint-quantization", section.place,
                   "the checkpoint is stored in MXFP4, and transformers quantizes no such weights again: it cannot be "
                   "trained as it is stored, and is dequantized as a whole",
                   "leave quantization out, or take a checkpoint in bfloat16");
  const auto& stored = model.checkpoint_quantization;
  if (!stored) return;
  if (!job.quantization) {
    job.quantization = stored;
    findings.note("checkpoint-quantization", section.place,
                  "the checkpoint is stored in bitsandbytes 4-bit, and loaded so");
    return;
  }
  auto asked = *job.quantization;
  asked.prepare_kbit = stored->prepare_kbit, asked.trl_bf16_cast = stored->trl_bf16_cast;
  if (asked != *stored)
    findings.warning("checkpoint-quantization", section.place,
                     "differs from the quantization_config that the checkpoint is stored with",
                     "transformers would use that of the checkpoint");
}

/// `plans: FILE`, a file of accelerate or DeepSpeed.
std::optional<LaunchFile> read_launch(const Section& plans, const FileReader& files, Findings& findings) {
  if (!plans.node || plans.node->kind != NodeKind::scalar) return std::nullopt;
  const auto path = text_of(*plans.node);
  if (!path) {
    findings.error("wrong-type", plans.place, path.error());
    return std::nullopt;
  }
  if (find_plan(*path)) {
    findings.error("wrong-type", plans.place, "expected a list or a map of plans, or a file; found the name of a plan",
                   "write plans: [" + *path + "]");
    return std::nullopt;
  }
  if (path->empty()) {
    findings.error("wrong-type", plans.place, "expected a list or a map of plans, or a file; found an empty text");
    return std::nullopt;
  }
  return read_launch_file(path_beside(plans.place.position.file, *path), plans.place, files, findings);
}

/// How processes lie on nodes is the file's word only where their number is.
LaunchDefaults defaults_of(const std::optional<LaunchFile>& launch, const Section& cluster) {
  LaunchDefaults defaults;
  if (!launch) return defaults;
  defaults.world_size = launch->world_size.value_or(defaults.world_size);
  const bool own = cluster.node && cluster.node->kind == NodeKind::map && find(*cluster.node, "world_size");
  if (launch->num_machines && !own) defaults.gpus_per_node = ceil_div(defaults.world_size, *launch->num_machines);
  defaults.mixed_precision = launch->mixed_precision.value_or(defaults.mixed_precision);
  defaults.state_dict_type = launch->state_dict_type.value_or(defaults.state_dict_type);
  defaults.mesh = launch->mesh;
  return defaults;
}

/// FSDP's own wrapper around each unit's module, which is torch's checkpoint without reentrance
/// (accelerate/accelerator.py and utils/fsdp_utils.py, 1.15).
void adopt_checkpointing(const Section& plans, JobSpec& job, Findings& findings) {
  if (!StackProfile(job.stack).trainer.turns_cache_off())
    findings.error("not-supported", plans.place,
                   "fsdp_activation_checkpointing: transformers " + to_string(job.stack.transformers) +
                       " grows its cache when a layer runs again, and torch stops with a CheckpointError",
                   "use training.gradient_checkpointing, which turns the cache off");
  else if (job.training.gradient_checkpointing != GradientCheckpointing::none)
    findings.error("checkpointed-twice", plans.place,
                   "fsdp_activation_checkpointing beside training.gradient_checkpointing, which transformers refuses",
                   "leave one of them out");
  else if (job.adapter && std::holds_alternative<Fsdp1>(job.plans.front().plan))
    // Units of an adapter's layers lie within those of the model's, each with a wrapper of its own.
    findings.error("not-supported", plans.place,
                   "fsdp_activation_checkpointing beside an adapter under FSDP1: what runs again is of another dtype, "
                   "and torch stops with a CheckpointError",
                   "use training.gradient_checkpointing, or FSDP2");
  else
    job.training.gradient_checkpointing = GradientCheckpointing::nonreentrant;
}

/// The plan of a launch file in a job that is otherwise read. Without RAM-efficient loading from_pretrained fills host
/// memory on every rank.
void adopt_launch(const LaunchFile& launch, const Section& plans, JobSpec& job, Findings& findings) {
  job.plans = {plan_for(launch, job)};
  if (launch.ram_efficient_loading == false && job.loading == Loading::automatic) job.loading = Loading::cpu;
  if (launch.activation_checkpointing) adopt_checkpointing(plans, job, findings);
  if (launch.world_size && *launch.world_size != job.cluster.world_size)
    findings.warning("launch-world-size", plans.place,
                     "the file starts " + std::to_string(*launch.world_size) +
                         " processes, and cluster.world_size is " + std::to_string(job.cluster.world_size),
                     "cluster.world_size is planned");
}

/// The class of the decoder layers by name is what no name at all means.
void leave_usual_classes(JobSpec& job) {
  const std::vector usual{class_name(job.model.family, "DecoderLayer")};
  const auto leave = [&](std::optional<std::vector<std::string>>& classes) {
    if (classes == usual) classes.reset();
  };
  for (NamedPlan& plan : job.plans) {
    if (auto* fsdp1 = std::get_if<Fsdp1>(&plan.plan)) leave(fsdp1->transformer_cls_names_to_wrap);
    if (auto* fsdp2 = std::get_if<Fsdp2>(&plan.plan)) leave(fsdp2->transformer_cls_names_to_wrap);
  }
}

/// Sections that a job can do without.
void note_absent(MapReader& map) {
  if (!map.has("quantization")) map.default_used("quantization", "none, the weights stay in model.dtype");
  if (!map.has("adapter")) map.default_used("adapter", "none, all parameters are trained");
  if (!map.has("allocator")) map.default_used("allocator", "PyTorch's defaults");
}

/// What no section can see by itself.
void check_together(const ModelSection& model, const MapReader& map, const JobSpec& job, Findings& findings) {
  if (job.quantization && !job.adapter)
    findings.error("needs-adapter", map.place_of("quantization"),
                   "a quantized base cannot be trained by itself: give an adapter section, or leave quantization out");
  const auto longest = job.model.max_position_embeddings;
  if (model.known && longest > 0 && job.training.seq_len > longest)
    findings.warning("long-sequence", {"training.seq_len", map.place_of("training").position},
                     "seq_len " + std::to_string(job.training.seq_len) + " is longer than the model's " +
                         std::to_string(longest) + " positions");
}

/// Errors before warnings, and those of the job file before others.
void sort_by_place(Diagnostics& list, const std::string& job_file) {
  const auto key = [&](const Diagnostic& d) {
    return std::tuple(d.severity != Severity::error, d.position.file != job_file, d.position.line, d.position.column);
  };
  std::stable_sort(list.begin(), list.end(), [&](const auto& a, const auto& b) { return key(a) < key(b); });
}

/// What the command line says, as the sections of a job file.
NodePtr tree_of(const JobOverrides& overrides, const FileReader& files) {
  JobTree tree({});
  const auto say = [&](const char* section, const char* key, const std::string& value, const char* option) {
    tree.say(section, key, value, {option, 0, 0});
  };
  if (overrides.gpu) say("cluster", "gpu", *overrides.gpu, "--gpu");
  if (overrides.world_size) say("cluster", "world_size", std::to_string(*overrides.world_size), "--gpus");
  if (overrides.model) {
    const bool is_path = files.kind_of(*overrides.model) != FileReader::Kind::missing || !find_model(*overrides.model);
    say("model", is_path ? "config" : "name", *overrides.model, "--model");
  }
  if (overrides.launch) tree.replace("plans", scalar(*overrides.launch, {"--launch", 0, 0}));
  return tree.sections();
}

/// The job file as it is meant: a training file of another tool, or a job that names one, in the words of ours, and
/// what beats it laid over it. Null where it has errors.
NodePtr meant_by(const TextNode& root, const NodePtr& overrides, const FileReader& files, Findings& findings) {
  if (is_foreign(root)) return job_of_foreign(root, *overrides, files, findings);
  NodePtr own = laid_over(root, *overrides);
  const TextNode* from = root.kind == NodeKind::map ? find(root, "from") : nullptr;
  if (!from) return own;
  const KeyPlace named{"from", from->position};
  const auto path = text_of(*from);
  if (!path || path->empty()) {
    findings.error("wrong-type", named, "expected a file of axolotl, LLaMA-Factory or TRL, found " + describe(*from));
    return nullptr;
  }
  return job_of_foreign_file(path_beside(from->position.file, *path), named, *own, files, findings);
}

}  // namespace

Result<JobDocument> read_job(std::string_view text, const std::string& file_name, const FileReader& files,
                             const JobOverrides& overrides) {
  auto root = parse_yaml(text, file_name);
  if (!root) return Unexpected{std::move(root.error())};

  Findings findings;
  // A job that is no map is told as such by its reader, and nothing is laid over it.
  const bool is_map = (*root)->kind == NodeKind::map;
  const NodePtr job_tree = is_map ? meant_by(**root, tree_of(overrides, files), files, findings) : *root;
  if (!job_tree) return Unexpected{findings.take_wrong()};
  MapReader map(job_tree.get(), {"", (*root)->position}, findings);
  if (!is_map) return Unexpected{findings.take_wrong()};
  map.take("from");
  JobSpec job;
  check_schema(map);
  job.stack = read_stack_section(section_of(map, "stack"), findings);
  const auto plans = section_of(map, "plans");
  const auto launch = read_launch(plans, files, findings);
  const LaunchDefaults defaults = defaults_of(launch, section_of(map, "cluster"));
  auto model = read_model_section(section_of(map, "model"), files, findings);
  const auto quantization = section_of(map, "quantization");
  job.quantization = read_quantization_section(quantization, model.dtype, findings);
  const auto family = model.known ? std::optional{model.model.family} : std::nullopt;
  job.adapter = read_adapter_section(section_of(map, "adapter"), family, files, findings);
  job.training = read_training_section(section_of(map, "training"), job.stack, family, defaults, findings);
  job.cluster = read_cluster_section(section_of(map, "cluster"), defaults, findings);
  read_allocator(map, job);
  if (!plans.node || plans.node->kind != NodeKind::scalar) job.plans = read_plans_section(plans, findings);
  note_absent(map);
  adopt_checkpoint_quantization(model, quantization, job, findings);
  job.model = std::move(model.model);
  job.dtype = model.dtype;
  job.loading = model.loading;
  if (launch) adopt_launch(*launch, plans, job, findings);
  leave_usual_classes(job);
  check_together(model, map, job, findings);
  map.finish();

  if (!findings.has_errors()) return JobDocument{std::move(job), findings.take()};
  auto wrong = findings.take_wrong();
  sort_by_place(wrong, file_name);
  return Unexpected{std::move(wrong)};
}

Result<JobDocument> read_job_file(const std::string& path, const JobOverrides& overrides) {
  const DiskFiles files;
  const auto text = read_text(path, files);
  if (!text) return Unexpected{text.error()};
  return read_job(*text, path, files, overrides);
}

}  // namespace qlp
