#include "trace/environment.h"

#include <algorithm>

#include <doctest/doctest.h>

#include "plan/gpu_catalogue.h"

namespace qlp {
namespace {

const TraceFiles kFiles{.library = "/a/lib.so", .driver = "/a/driver", .probe = "/a/probe", .request = "/t/r.json"};

std::string value(const Environment& environment, const std::string& name) {
  std::string found = "(absent)";
  int times = 0;
  for (const std::string& entry : lines_of(environment))
    if (entry.starts_with(name + "=")) found = entry.substr(name.size() + 1), ++times;
  CHECK(times <= 1);
  return found;
}

}  // namespace

TEST_CASE("trace/environment: ours comes first, the user's stays") {
  const auto out =
      traced_environment({{"PATH", "/bin"}, {"PYTHONPATH", "/mine"}, {"LD_PRELOAD", ""}, {"NULLGPU_DEVICES", "9"}},
                         kFiles, {.gpu = *find_gpu("A100 SXM4 80GB"), .devices = 2, .taken = Bytes{77}});
  CHECK(value(out, "PATH") == "/bin");
  CHECK(value(out, "PYTHONPATH") == "/a/probe:/mine");
  CHECK(value(out, "LD_PRELOAD") == "/a/lib.so");
  CHECK(value(out, "LD_LIBRARY_PATH") == "/a/driver");
  CHECK(value(out, "QLORA_PLAN_TRACE") == "/t/r.json");
  CHECK(value(out, "NULLGPU_DEVICES") == "2");
  CHECK(value(out, "NULLGPU_CONTEXT_BYTES") == "77");
}

TEST_CASE("trace/environment: the GPU is the catalogue's in every respect, or of another size") {
  GpuSpec gpu = *find_gpu("H100 SXM5 80GB");
  auto out = traced_environment({}, kFiles, {.gpu = gpu, .devices = 1, .taken = {}});
  CHECK(value(out, "NULLGPU_NAME") == "NVIDIA H100 80GB HBM3");
  CHECK(value(out, "NULLGPU_SM") == "90");
  CHECK(value(out, "NULLGPU_SMS") == "132");
  CHECK(value(out, "NULLGPU_BYTES") == std::to_string(gpu.capacity.count()));
  CHECK(value(out, "NULLGPU_NVML_BYTES") == std::to_string(81559ULL << 20));
  gpu.capacity = Bytes{1000};
  out = traced_environment({}, kFiles, {.gpu = gpu, .devices = 1, .taken = Bytes{5000}});
  CHECK(value(out, "NULLGPU_BYTES") == "1000");
  CHECK(value(out, "NULLGPU_NVML_BYTES") == "1000");
  CHECK(value(out, "NULLGPU_CONTEXT_BYTES") == "1000");
}

}  // namespace qlp
