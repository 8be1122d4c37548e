#include "trace/environment.h"

#include <algorithm>
#include <string_view>

#include "plan/gpu_catalogue.h"

namespace qlp {
namespace {

/// Copies up to this size are really made: batches and masks of long sequences (int64, 128 Ki tokens), so that what
/// the host put there is read back. Weights are larger.
constexpr std::uint64_t kRealCopies = std::uint64_t{1} << 20;

class Environment {
 public:
  explicit Environment(std::vector<std::string> entries) : entries_(std::move(entries)) {}

  void set(std::string_view name, const std::string& value) {
    const std::string entry = std::string{name} + "=" + value;
    if (std::string* old = find(name)) {
      *old = entry;
    } else {
      entries_.push_back(entry);
    }
  }

  /// Before what the list holds.
  void prepend(std::string_view name, const std::string& value) {
    const std::string* old = find(name);
    const std::string rest = old == nullptr ? std::string{} : old->substr(name.size() + 1);
    set(name, rest.empty() ? value : value + ":" + rest);
  }

  std::vector<std::string> take() { return std::move(entries_); }

 private:
  std::string* find(std::string_view name) {
    const auto found = std::ranges::find_if(entries_, [&](const std::string& entry) {
      return entry.starts_with(name) && entry.size() > name.size() && entry[name.size()] == '=';
    });
    return found == entries_.end() ? nullptr : &*found;
  }

  std::vector<std::string> entries_;
};

}  // namespace

std::vector<std::string> traced_environment(const std::vector<std::string>& current, const TraceFiles& files,
                                            const NullGpu& null_gpu) {
  Environment environment{current};
  environment.prepend("LD_PRELOAD", files.library);
  environment.prepend("LD_LIBRARY_PATH", files.driver);
  environment.set("TRITON_LIBCUDA_PATH", files.driver);
  environment.prepend("PYTHONPATH", files.probe);
  environment.set("QLORA_PLAN_TRACE", files.request);

  const GpuSpec& gpu = null_gpu.gpu;
  const GpuRow* row = find_gpu_row(gpu.name);
  environment.set("NULLGPU_DEVICES", std::to_string(null_gpu.devices));
  environment.set("NULLGPU_NAME", row == nullptr || row->smi_name.empty() ? gpu.name : std::string{row->smi_name});
  environment.set("NULLGPU_SM", std::to_string(gpu.compute_capability));
  environment.set("NULLGPU_SMS", std::to_string(gpu.sm_count));
  environment.set("NULLGPU_BYTES", std::to_string(gpu.capacity.count()));
  if (row != nullptr && row->nvml_total_mib != 0 && gpu.capacity == spec_of(*row).capacity)
    environment.set("NULLGPU_NVML_BYTES", std::to_string(std::uint64_t{row->nvml_total_mib} << 20));
  else
    environment.set("NULLGPU_NVML_BYTES", std::to_string(gpu.capacity.count()));
  environment.set("NULLGPU_CONTEXT_BYTES", std::to_string(std::min(null_gpu.taken, gpu.capacity).count()));
  environment.set("NULLGPU_COPY_MAX", std::to_string(kRealCopies));
  return environment.take();
}

}  // namespace qlp
