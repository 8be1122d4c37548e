#include "trace/environment.h"

#include <algorithm>

#include "plan/gpu_catalogue.h"

namespace qlp {
namespace {

/// Copies up to this size are really made: batches and masks of long sequences (int64, 128 Ki tokens), so that what
/// the host put there is read back. Weights are larger.
constexpr std::uint64_t kRealCopies = std::uint64_t{1} << 20;

/// Before what the list holds.
void prepend(Environment& environment, const std::string& name, const std::string& value) {
  std::string& list = environment[name];
  list = list.empty() ? value : value + ":" + list;
}

}  // namespace

Environment traced_environment(Environment environment, const TraceFiles& files, const NullGpu& null_gpu) {
  prepend(environment, "LD_PRELOAD", files.library);
  prepend(environment, "LD_LIBRARY_PATH", files.driver);
  environment["TRITON_LIBCUDA_PATH"] = files.driver;
  prepend(environment, "PYTHONPATH", files.probe);
  environment["QLORA_PLAN_TRACE"] = files.request;

  const GpuSpec& gpu = null_gpu.gpu;
  const GpuRow* row = find_gpu_row(gpu.name);
  environment["NULLGPU_DEVICES"] = std::to_string(null_gpu.devices);
  environment["NULLGPU_NAME"] = row == nullptr || row->smi_name.empty() ? gpu.name : std::string{row->smi_name};
  environment["NULLGPU_SM"] = std::to_string(gpu.compute_capability);
  environment["NULLGPU_SMS"] = std::to_string(gpu.sm_count);
  environment["NULLGPU_BYTES"] = std::to_string(gpu.capacity.count());
  if (row != nullptr && row->nvml_total_mib != 0 && gpu.capacity == spec_of(*row).capacity)
    environment["NULLGPU_NVML_BYTES"] = std::to_string(std::uint64_t{row->nvml_total_mib} << 20);
  else
    environment["NULLGPU_NVML_BYTES"] = std::to_string(gpu.capacity.count());
  environment["NULLGPU_CONTEXT_BYTES"] = std::to_string(std::min(null_gpu.taken, gpu.capacity).count());
  environment["NULLGPU_COPY_MAX"] = std::to_string(kRealCopies);
  return environment;
}

}  // namespace qlp
