#include "config/foreign_job.h"

#include <algorithm>
#include <array>

#include "config/axolotl_reader.h"
#include "config/job_sections.h"
#include "config/llama_factory_reader.h"
#include "config/named_file.h"
#include "config/trl_reader.h"

namespace qlp {
namespace {

enum class Tool : std::uint8_t { none, axolotl, llama_factory, trl, other };

bool has(const TextNode& node, std::string_view key) { return node.kind == NodeKind::map && find(node, key); }

/// What a file is by the keys that only its tool has, and what to do with one that is no training file.
struct Sign {
  std::string_view key;
  Tool tool;
  std::string_view advice;
};
constexpr auto kSigns = std::to_array<Sign>({
    {"base_model", Tool::axolotl, ""},
    {"finetuning_type", Tool::llama_factory, ""},
    {"stage", Tool::llama_factory, ""},
    {"cutoff_len", Tool::llama_factory, ""},
    {"template", Tool::llama_factory, ""},
    {"model_name_or_path", Tool::trl, ""},
    {"distributed_type", Tool::other,
     "a file of accelerate says how a job is run, not which: give it beside one, with --launch FILE or as plans: FILE"},
    {"zero_optimization", Tool::other,
     "a file of DeepSpeed says how a job is run, not which: give it beside one, with --launch FILE or as plans: FILE"},
    {"peft_type", Tool::other,
     "PEFT's adapter_config.json says which adapter, not which job: name it in one, as adapter: FILE"},
    {"architectures", Tool::other,
     "a model's config.json says which model, not which job: name it in one, under "
     "model: {config: FILE}"},
    {"_component_", Tool::other, ""},
    {"_target_", Tool::other, ""},
    {"scenarios", Tool::other,
     "scenarios of fms-acceleration are many jobs: write one with its keys as TRL's, whose arguments they are"},
    {"backward_prefetch", Tool::other,
     "a file of fsdp_config says how a job is run, not which: name it in a training file, as fsdp_config: FILE"},
    {"transformer_layer_cls_to_wrap", Tool::other,
     "a file of fsdp_config says how a job is run, not which: name it in a training file, as fsdp_config: FILE"},
    {"per_device_train_batch_size", Tool::trl, ""},
});

/// The sign is in the map itself, or in its model: torchtune's recipes have a component there.
bool shows(const TextNode& root, const Sign& sign) {
  if (has(root, sign.key)) return true;
  const auto* model = has(root, "model") ? find(root, "model") : nullptr;
  return sign.key.starts_with('_') && model && has(*model, sign.key);
}

const Sign* sign_of(const TextNode& root) {
  const auto found = std::ranges::find_if(kSigns, [&](const Sign& sign) { return shows(root, sign); });
  return found != kSigns.end() ? &*found : nullptr;
}

NodePtr read_by(Tool tool, const TextNode& root, const ForeignContext& context, Findings& findings) {
  if (tool == Tool::axolotl) return read_axolotl(root, context, findings);
  if (tool == Tool::llama_factory) return read_llama_factory(root, context, findings);
  return read_trl(root, context, findings);
}

/// What the launcher decides: one process is by itself, more are DDP's where the file says nothing else.
NodePtr with_plan(const TextNode& job, Findings& findings) {
  const auto* cluster = find(job, "cluster");
  const auto* ranks = cluster && cluster->kind == NodeKind::map ? find(*cluster, "world_size") : nullptr;
  const auto* plans = find(job, "plans");
  if (!plans) {
    const auto count = ranks ? integer_of(*ranks) : Result<std::int64_t, std::string>{1};
    const bool many = count && *count > 1;
    TextNode list;
    list.kind = NodeKind::sequence, list.position = job.position;
    list.items.push_back(scalar(many ? "ddp" : "single", job.position));
    const auto entries = std::vector<Entry>{{"plans", job.position, std::make_shared<TextNode>(std::move(list))}};
    return laid_over(job, *map_of(entries, {}));
  }
  if (plans->kind == NodeKind::map && !ranks)
    findings.error("missing-key", {"cluster.world_size", plans->position},
                   "on how many GPUs it runs is not in the file", "give --gpus N");
  return std::make_shared<TextNode>(job);
}

}  // namespace

bool is_foreign(const TextNode& root) { return !has(root, "schema") && sign_of(root); }

NodePtr job_of_foreign(const TextNode& root, const TextNode& overrides, const FileReader& files, Findings& findings) {
  const auto* sign = sign_of(root);
  const KeyPlace whole{"", root.position};
  if (!sign) {
    findings.error("not-a-job", whole,
                   "no training file that is known: expected one of axolotl (base_model), "
                   "LLaMA-Factory or TRL (model_name_or_path)");
    return nullptr;
  }
  if (sign->tool == Tool::other) {
    const bool told = !sign->advice.empty();
    findings.error("not-a-job", whole,
                   told
                       ? std::string(sign->advice)
                       : std::string("recipes of torchtune and NeMo are not supported: they train with layers of their "
                                     "own, whose memory is not planned"),
                   told ? "" : "a job file can describe the same model and adapter as transformers trains them");
    return nullptr;
  }
  Findings unheard;  // the job reader reads the section again, and tells
  const Section stack{find(overrides, "stack"), {"stack", overrides.position}};
  const ForeignContext context{overrides, files, read_stack_section(stack, unheard)};
  const NodePtr given = without_nulls(root);
  const NodePtr job = read_by(sign->tool, *given, context, findings);
  return with_plan(*laid_over(*job, overrides), findings);
}

NodePtr job_of_foreign_file(const std::string& path, const KeyPlace& named, const TextNode& overrides,
                            const FileReader& files, Findings& findings) {
  const NodePtr root = read_map(path, named, files, findings);
  return root ? job_of_foreign(*root, overrides, files, findings) : nullptr;
}

}  // namespace qlp
