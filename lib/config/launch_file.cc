#include "config/launch_file.h"

#include <utility>

#include "base/dtype.h"
#include "config/accelerate_reader.h"
#include "config/deepspeed_reader.h"
#include "config/named_file.h"
#include "config/shard_map_reader.h"

namespace qlp {
namespace {

bool has(const TextNode& node, std::string_view key) { return node.kind == NodeKind::map && find(node, key); }

std::nullopt_t refuse(const TextNode& node, std::string message, Findings& findings) {
  findings.error("not-a-launch-file", {"", node.position}, std::move(message));
  return std::nullopt;
}

}  // namespace

std::optional<LaunchFile> read_launch_file(const std::string& path, const KeyPlace& named, const FileReader& files,
                                           Findings& findings) {
  const NodePtr root = read_map(path, named, files, findings);
  if (!root) return std::nullopt;
  if (has(*root, "distributed_type")) return read_accelerate(*root, path, files, findings);
  if (has(*root, "wrap_units")) return read_shard_map(*root, path, findings);
  if (!has(*root, "zero_optimization"))
    return refuse(*root, "neither a file of accelerate (distributed_type) nor one of DeepSpeed (zero_optimization)",
                  findings);
  const auto plan = read_deepspeed(*root, path, findings);
  return plan ? std::optional{LaunchFile{.plan = *plan}} : std::nullopt;
}

std::optional<NamedPlan> read_deepspeed_file(const std::string& path, const KeyPlace& named, const FileReader& files,
                                             Findings& findings) {
  const NodePtr root = read_map(path, named, files, findings);
  if (!root) return std::nullopt;
  if (!has(*root, "zero_optimization")) return refuse(*root, "no file of DeepSpeed (zero_optimization)", findings);
  return read_deepspeed(*root, path, findings);
}

NamedPlan plan_for(const LaunchFile& file, const JobSpec& job) {
  NamedPlan plan = file.plan;
  if (auto* fsdp1 = std::get_if<Fsdp1>(&plan.plan)) {
    const bool as_usual = fsdp1->auto_wrap_policy == WrapPolicy::transformer_based_wrap;
    if (job.adapter || as_usual) fsdp1->auto_wrap_policy.reset();
  }
  auto* fsdp2 = std::get_if<Fsdp2>(&plan.plan);
  if (fsdp2 && job.quantization && !is_floating(job.quantization->quant_storage)) {
    fsdp2->ignored_params = Fsdp2Ignored::quantized;
    if (!fsdp2->hybrid) plan.name = "fsdp2-local-base";
  }
  return plan;
}

}  // namespace qlp
