#include "trace/environment.h"

#include <string>

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

  for (const auto& [name, value] : null_gpu_variables(null_gpu)) environment[name] = value;
  environment["NULLGPU_COPY_MAX"] = std::to_string(kRealCopies);
  return environment;
}

}  // namespace qlp
