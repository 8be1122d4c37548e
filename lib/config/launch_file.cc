#include "config/launch_file.h"

#include "base/dtype.h"
#include "config/accelerate_reader.h"
#include "config/deepspeed_reader.h"
#include "config/json_parser.h"
#include "config/yaml_parser.h"

namespace qlp {
namespace {

bool looks_like_json(const std::string& text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  return first != std::string::npos && text[first] == '{';
}

}  // namespace

std::optional<LaunchFile> read_launch_file(const std::string& path, const FileReader& files, Findings& findings) {
  const auto text = read_text(path, files);
  if (!text) {
    findings.append(text.error());
    return std::nullopt;
  }
  const auto root = looks_like_json(*text) ? parse_json(*text, path) : parse_yaml(*text, path);
  if (!root) {
    findings.append(root.error());
    return std::nullopt;
  }
  const TextNode& node = **root;
  if (node.kind == NodeKind::map && find(node, "distributed_type")) return read_accelerate(node, path, files, findings);
  if (node.kind == NodeKind::map && find(node, "zero_optimization")) {
    const auto plan = read_deepspeed(node, path, findings);
    return plan ? std::optional{LaunchFile{.plan = *plan}} : std::nullopt;
  }
  findings.error("not-a-launch-file", {"", {path, node.position.line, node.position.column}},
                 "neither a file of accelerate (distributed_type) nor one of DeepSpeed (zero_optimization)");
  return std::nullopt;
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
