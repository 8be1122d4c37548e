#include "trace/null_gpu.h"

#include <algorithm>
#include <string>

#include "plan/gpu_catalogue.h"

namespace qlp {

Environment null_gpu_variables(const NullGpu& null_gpu) {
  const GpuSpec& gpu = null_gpu.gpu;
  const GpuRow* row = find_gpu_row(gpu.name);
  const bool whole = row != nullptr && row->nvml_total_mib != 0 && gpu.capacity == spec_of(*row).capacity;
  const std::uint64_t nvml = whole ? std::uint64_t{row->nvml_total_mib} << 20 : gpu.capacity.count();
  return {{"NULLGPU_DEVICES", std::to_string(null_gpu.devices)},
          {"NULLGPU_NAME", row == nullptr || row->smi_name.empty() ? gpu.name : std::string{row->smi_name}},
          {"NULLGPU_SM", std::to_string(gpu.compute_capability)},
          {"NULLGPU_SMS", std::to_string(gpu.sm_count)},
          {"NULLGPU_BYTES", std::to_string(gpu.capacity.count())},
          {"NULLGPU_NVML_BYTES", std::to_string(nvml)},
          {"NULLGPU_CONTEXT_BYTES", std::to_string(std::min(null_gpu.taken, gpu.capacity).count())}};
}

}  // namespace qlp
