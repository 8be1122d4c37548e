#include "config/machine_file.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "config/job_sections.h"
#include "config/yaml_parser.h"
#include "config/yaml_text.h"
#include "plan/gpu_catalogue.h"

namespace qlp {
namespace {

constexpr std::int64_t kSchema = 1;
constexpr std::int64_t kMostRanksOfCommunicator = std::int64_t{1} << 20;

constexpr std::array<std::string_view, 2> kCollectives{"all_reduce", "gather"};

void check_schema(MapReader& map) {
  map.require("schema", "the version of this format, 1");
  const auto schema = map.integer("schema", {});
  if (schema && *schema != kSchema)
    map.refuse("schema", "bad-value", "schema " + std::to_string(*schema) + " is unknown: this program reads schema 1");
}

Bytes required_size(MapReader& map, std::string_view key, std::string_view what) {
  map.require(key, what);
  return map.size(key).value_or(Bytes{});
}

MeasuredNccl read_communicator(const TextNode& node, const KeyPlace& at, Findings& findings) {
  MapReader map(&node, at, findings);
  MeasuredNccl entry;
  map.require("ranks", "how many the communicator joins");
  entry.ranks = map.integer("ranks", {1, kMostRanksOfCommunicator}).value_or(entry.ranks);
  map.require("ranks_per_node", "how many of them share a node");
  entry.ranks_per_node = map.integer("ranks_per_node", {1, entry.ranks}).value_or(entry.ranks);
  map.require("collectives", "all_reduce, or gather where it only gathers and scatters");
  entry.all_reduce = map.word("collectives", kCollectives) == 0U;
  entry.memory = required_size(map, "memory", "on each device");
  map.finish();
  return entry;
}

std::vector<MeasuredNccl> read_communicators(MapReader& map) {
  std::vector<MeasuredNccl> entries;
  const TextNode* node = map.take("nccl");
  if (!node) return entries;
  if (node->kind != NodeKind::sequence) {
    map.refuse("nccl", "wrong-type", "expected a list of communicators, found " + describe(*node));
    return entries;
  }
  for (const NodePtr& item : node->items) {
    const KeyPlace at{"nccl", item->position};
    const MeasuredNccl entry = read_communicator(*item, at, map.findings());
    const bool again = item->kind == NodeKind::map && std::ranges::any_of(entries, [&](const MeasuredNccl& other) {
                         return other.ranks == entry.ranks && other.ranks_per_node == entry.ranks_per_node &&
                                other.all_reduce == entry.all_reduce;
                       });
    if (again) map.findings().error("duplicate-item", at, "such a communicator is listed twice");
    entries.push_back(entry);
  }
  return entries;
}

/// Whether two names mean the same GPU.
bool same_gpu(const std::string& a, const std::string& b) {
  const GpuRow* row = find_gpu_row(a);
  return a == b || (row != nullptr && row == find_gpu_row(b));
}

}  // namespace

Result<MachineProfile> read_machine(std::string_view text, const std::string& file_name) {
  const auto root = parse_yaml(text, file_name);
  if (!root) return Unexpected{root.error()};
  Findings findings;
  MapReader map(root->get(), {"", (*root)->position}, findings);
  if (findings.has_errors()) return Unexpected{findings.take_wrong()};
  MachineProfile profile;
  check_schema(map);
  map.require("gpu", "its name, as the driver prints it");
  profile.gpu = map.text("gpu").value_or("");
  profile.capacity = required_size(map, "capacity", "what CUDA gives");
  profile.versions = map.words("versions").value_or(std::vector<std::string>{});
  profile.time = map.text("time").value_or("");
  profile.host = map.text("host").value_or("");
  profile.cuda_context = required_size(map, "cuda_context", "what a process takes before it does anything");
  profile.cublas = required_size(map, "cublas", "what its handles take");
  profile.library_overhead = required_size(map, "library_overhead", "what else a step leaves: loaded kernels");
  profile.nccl = read_communicators(map);
  map.finish();
  if (findings.has_errors()) return Unexpected{findings.take_wrong()};
  return profile;
}

Result<MachineProfile> read_machine_file(const std::string& path) {
  const auto text = read_text(path, DiskFiles{});
  if (!text) return Unexpected{text.error()};
  return read_machine(*text, path);
}

std::string to_yaml(const MachineProfile& profile) {
  std::string out = "# What was measured on a machine: for qlora-plan estimate --machine\nschema: 1\n";
  const auto line = [&](std::string_view key, const std::string& value) {
    out += std::string(key) + ": " + value + "\n";
  };
  line("gpu", yaml_text(profile.gpu));
  line("capacity", exact_size(profile.capacity));
  line("versions", yaml_list(profile.versions));
  if (!profile.time.empty()) line("time", yaml_text(profile.time));
  if (!profile.host.empty()) line("host", yaml_text(profile.host));
  line("cuda_context", exact_size(profile.cuda_context));
  line("cublas", exact_size(profile.cublas));
  line("library_overhead", exact_size(profile.library_overhead));
  if (!profile.nccl.empty()) out += "nccl:\n";
  for (const MeasuredNccl& entry : profile.nccl)
    out += "  - {ranks: " + std::to_string(entry.ranks) + ", ranks_per_node: " + std::to_string(entry.ranks_per_node) +
           ", collectives: " + std::string(kCollectives[entry.all_reduce ? 0 : 1]) +
           ", memory: " + exact_size(entry.memory) + "}\n";
  return out;
}

Diagnostics use_machine(JobDocument& document, const MachineProfile& profile, const std::string& file_name) {
  ClusterSpec& cluster = document.job.cluster;
  if (!same_gpu(profile.gpu, cluster.gpu.name))
    return {{Severity::error, "another-machine",
             "was measured on " + profile.gpu + ", and the job runs on " + cluster.gpu.name, "gpu",
             Position{file_name, 0, 0}, "calibrate on the job's GPU, or give that GPU in cluster.gpu"}};
  cluster.machine = profile;
  if (cluster.gpu.capacity_source != kCapacityOfJob) {
    cluster.gpu.capacity = profile.capacity;
    cluster.gpu.capacity_source = "CUDA's total, measured on this machine";
  }
  const auto margin = std::ranges::find_if(document.notes, [](const Diagnostic& note) {
    return note.code == "default-used" && note.key_path == "cluster.margin";
  });
  if (margin != document.notes.end()) {
    cluster.margin = 0;
    margin->message = "not given: 0% on a calibrated machine";
  }
  return {};
}

}  // namespace qlp
