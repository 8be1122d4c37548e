#include "report/gpus.h"

#include <nlohmann/json.hpp>

#include "plan/gpu_catalogue.h"
#include "report/format.h"
#include "report/json_parts.h"

namespace qlp {
namespace {

/// "3350", "149.7"; a figure that does not apply is empty.
std::string number(double value) {
  if (value == 0) return "";
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

}  // namespace

std::string gpus_table(bool colors, bool verbose) {
  TextTable table{{"GPU", "nvidia-smi name", "cc", "SMs", "nvidia-smi MiB", "CUDA MiB", "GB/s", "fp16 TFLOP/s"}, 2};
  std::string sources;
  for (const auto& row : gpu_rows()) {
    const GpuSpec spec = spec_of(row);
    const bool measured = row.cuda_total_mib != 0;
    table.add({{std::string{row.name}},
               {std::string{row.smi_name}},
               {compute_capability_text(row.compute_capability)},
               {std::to_string(row.sm_count)},
               {number(row.nvml_total_mib)},
               {std::to_string(spec.capacity.count() >> 20) + (measured ? " " : "~")},
               {number(row.bandwidth_gb_s)},
               {number(row.half_tflops)}});
    if (verbose) {
      sources += std::string{row.name} + ": " + std::string{row.source} + "\n";
      sources += "  capacity: " + spec.capacity_source + "\n";
    }
  }
  std::string out = table.text(colors) +
                    "\nCUDA MiB is what a job can get; ~ where it was not measured and follows the "
                    "nearest relative.\n";
  return verbose ? out + "\n" + sources : out;
}

std::string gpus_json() {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const auto& row : gpu_rows()) {
    const GpuSpec spec = spec_of(row);
    nlohmann::ordered_json entry{{"name", row.name},
                                 {"smi_name", row.smi_name},
                                 {"arch", row.arch},
                                 {"compute_capability", compute_capability_text(row.compute_capability)},
                                 {"sm_count", row.sm_count},
                                 {"capacity_bytes", spec.capacity.count()},
                                 {"capacity_source", spec.capacity_source}};
    const auto put = [&](const char* key, auto value) {
      if (value != 0) entry[key] = value;
    };
    put("nvml_total_bytes", std::uint64_t{row.nvml_total_mib} << 20);
    put("cuda_total_bytes", std::uint64_t{row.cuda_total_mib} << 20);
    put("bandwidth_gb_s", row.bandwidth_gb_s);
    const bool ampere = has_bf16(row.compute_capability);
    put("fp16_tflops", row.half_tflops);
    put("bf16_tflops", ampere ? row.half_tflops : 0);
    put("tf32_tflops", ampere ? row.half_tflops / 2 : 0);
    put("fp32_tflops", row.fp32_tflops);
    put("nvlink_gb_s", row.nvlink_gb_s);
    put("nvlink_gpus", row.nvlink_gpus);
    put("pcie_gen", row.pcie_gen);
    put("pcie_lanes", row.pcie_lanes);
    entry["source"] = row.source;
    out.push_back(std::move(entry));
  }
  return document_text(out);
}

}  // namespace qlp
