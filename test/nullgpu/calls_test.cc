#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sys/wait.h>
#include <unistd.h>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "nullgpu/null_gpu.h"

namespace {

using namespace null_gpu;

constexpr int kNotSupported = 801;

// NOLINTBEGIN(readability-identifier-naming)
QLP_CALL(int, cudaMallocArray, void**, const void*, std::size_t, std::size_t, unsigned)
QLP_CALL(int, cublasSgemm_v2, void*)
QLP_CALL(int, cudaDriverGetVersion, int*)
QLP_CALL(int, nvmlInit_v2)
QLP_CALL(int, nvmlDeviceGetCount_v2, unsigned*)
QLP_CALL(int, nvmlDeviceGetHandleByIndex_v2, unsigned, void**)
QLP_CALL(int, nvmlDeviceGetGpuFabricInfoV, void*, void*)
QLP_CALL(int, cublasXtSgemm, void*)
QLP_CALL(int, cuLogsRegisterCallback, void*, void*, void**)
QLP_CALL(int, cuLogsUnregisterCallback, void*)
QLP_CALL(int, cuLogsCurrent, unsigned*, unsigned)
QLP_CALL(int, cuLogsDumpToFile, unsigned*, const char*, unsigned)
QLP_CALL(int, cuLogsDumpToMemory, unsigned*, char*, std::size_t*, unsigned)
QLP_CALL(int, cusolverDnSorgqr_bufferSize, void*, int, int, int, const float*, int, const float*, int*)
// NOLINTEND(readability-identifier-naming)

}  // namespace

TEST_CASE("nullgpu/calls: an entry point without an implementation is refused, counted and named") {
  run({}, [] {
    void* array = nullptr;
    QLP_EXPECT_EQ(cudaMallocArray(&array, nullptr, 1, 1, 0), kNotSupported);
    QLP_EXPECT_EQ(cudaMallocArray(&array, nullptr, 1, 1, 0), kNotSupported);
    QLP_EXPECT_EQ(cublasXtSgemm(nullptr), 15);
    QLP_EXPECT_EQ(nullgpu_unimplemented(), std::size_t{2});
    QLP_EXPECT_EQ(std::string(nullgpu_unimplemented_name(0)), std::string("cudaMallocArray"));
    QLP_EXPECT_EQ(nullgpu_unimplemented_calls(0), 2ULL);
    QLP_EXPECT(nullgpu_unimplemented_name(2) == nullptr);
    const unsigned long long before = nullgpu_launches();
    QLP_EXPECT_EQ(cublasSgemm_v2(nullptr), 0);
    QLP_EXPECT_EQ(nullgpu_launches(), before + 1);
    int size = -1;
    QLP_EXPECT_EQ(cusolverDnSorgqr_bufferSize(nullptr, 8, 8, 8, nullptr, 8, nullptr, &size), 0);
    QLP_EXPECT_EQ(size, 0);
    QLP_EXPECT_EQ(nullgpu_unimplemented(), std::size_t{2});
  });
}

TEST_CASE("nullgpu/calls: the driver's log can be listened to, and has nothing in it") {
  run({}, [] {
    void* one = nullptr;
    void* two = nullptr;
    QLP_EXPECT_EQ(cuLogsRegisterCallback(reinterpret_cast<void*>(&std::abort), nullptr, &one), 0);
    QLP_EXPECT_EQ(cuLogsRegisterCallback(reinterpret_cast<void*>(&std::abort), nullptr, &two), 0);
    QLP_EXPECT(one != nullptr && two != nullptr && one != two);
    QLP_EXPECT_EQ(cuLogsRegisterCallback(nullptr, nullptr, &one), 1);
    unsigned place = 7;
    QLP_EXPECT_EQ(cuLogsCurrent(&place, 0), 0);
    char text[8] = "before";
    std::size_t size = sizeof text;
    QLP_EXPECT_EQ(cuLogsDumpToMemory(&place, text, &size, 0), 0);
    QLP_EXPECT_EQ(size, std::size_t{0});
    QLP_EXPECT_EQ(std::string(text), std::string());
    QLP_EXPECT_EQ(cuLogsDumpToFile(nullptr, "/dev/null", 0), 0);
    QLP_EXPECT_EQ(cuLogsDumpToFile(nullptr, "/no/such/folder/log", 0), 1);
    QLP_EXPECT_EQ(cuLogsUnregisterCallback(one), 0);
    QLP_EXPECT_EQ(nullgpu_unimplemented(), std::size_t{0});
  });
}

TEST_CASE("nullgpu/calls: failures that are asked for") {
  run({{"NULLGPU_FAIL", "cudaMalloc:3,cudaStreamCreate:1=46"}}, [] {
    void* p = nullptr;
    for (const int expected : {0, 0, 2, 0}) {
      QLP_EXPECT_EQ(cudaMalloc(&p, 64), expected);
    }
    QLP_EXPECT_EQ(cudaGetLastError(), 2);
    QLP_EXPECT_EQ(cudaStreamCreate(&p), 46);
    QLP_EXPECT_EQ(cudaStreamCreate(&p), 0);
  });
}

TEST_CASE("nullgpu/calls: the report is JSON with everything in it") {
  char path[] = "/tmp/nullgpu-report-XXXXXX";
  REQUIRE(mkstemp(path) >= 0);
  run({{"NULLGPU_FAIL", "cudaMalloc:2"}, {"NULLGPU_NAME", "GPU \"of\" tests"}}, [&] {
    void* p = nullptr;
    cudaMalloc(&p, std::size_t{5} << 20U);
    cudaMalloc(&p, 64);
    cublasXtSgemm(nullptr);
    UniqueId id{};
    ncclCommInitRank(&p, 8, id, 3);
    QLP_EXPECT_EQ(nullgpu_write_report(path), 0);
  });
  std::ifstream file(path);
  const nlohmann::json report = nlohmann::json::parse(file);
  std::remove(path);
  CHECK(report["gpu"] == "GPU \"of\" tests");
  CHECK(report["devices"][0]["used_bytes"] == 6 << 20);
  CHECK(report["unimplemented"] == nlohmann::json::parse(R"([{"name": "cublasXtSgemm", "calls": 1}])"));
  CHECK(report["injected_failures"] == nlohmann::json::parse(R"(["cudaMalloc:2"])"));
  CHECK(report["communicators"][0]["size"] == 8);
}

TEST_CASE("nullgpu/calls: a process that was forked cannot use the GPU, and can do all else") {
  run({}, [] {
    void* p = nullptr;
    QLP_EXPECT_EQ(cudaMalloc(&p, 64), 0);
    cudaLaunchHostFunc(
        nullptr, [](void*) {}, nullptr);
    const pid_t child = fork();
    if (child == 0) {
      _exit(cudaMalloc(&p, 64) == 3 && cudaDeviceSynchronize() == 3 ? 7 : 8);
    }
    int status = 0;
    QLP_EXPECT_EQ(waitpid(child, &status, 0), child);
    QLP_EXPECT_EQ(WEXITSTATUS(status), 7);
    QLP_EXPECT_EQ(cudaMalloc(&p, 64), 0);
  });
}

TEST_CASE("nullgpu/calls: settings that are not understood end the program") {
  for (const auto& [name, value] : Variables{{"NULLGPU_BYTES", "80GB"},
                                             {"NULLGPU_SM", "42"},
                                             {"NULLGPU_LAZY_EVENTS", "yes"},
                                             {"NULLGPU_FAIL", "cudaMalloc"}}) {
    CAPTURE(name);
    run({}, [&, name = name, value = value] {
      const pid_t child = fork();
      if (child == 0) {
        setenv(name.c_str(), value.c_str(), 1);
        std::freopen("/dev/null", "w", stderr);
        int count = 0;
        void* p = nullptr;
        cudaGetDeviceCount(&count);
        cudaMalloc(&p, 64);
        _exit(0);
      }
      int status = 0;
      QLP_EXPECT_EQ(waitpid(child, &status, 0), child);
      QLP_EXPECT_EQ(WEXITSTATUS(status), 2);
    });
  }
}

TEST_CASE("nullgpu/calls: the driver's names come by version") {
  run({}, [] {
    void* function = nullptr;
    int status = -1;
    QLP_EXPECT_EQ(cuGetProcAddress_v2("cuMemAlloc", &function, 12000, 0, &status), 0);
    QLP_EXPECT(function == entry_point("cuMemAlloc_v2"));
    QLP_EXPECT_EQ(cuGetProcAddress_v2("cuStreamGetCaptureInfo", &function, 12000, 0, &status), 0);
    QLP_EXPECT(function == entry_point("cuStreamGetCaptureInfo_v2"));
    QLP_EXPECT_EQ(cuGetProcAddress_v2("cuStreamGetCaptureInfo", &function, 13000, 0, &status), 0);
    QLP_EXPECT(function == entry_point("cuStreamGetCaptureInfo_v3"));
    QLP_EXPECT_EQ(cuGetProcAddress_v2("cuNoSuchThing", &function, 13000, 0, &status), 500);
    QLP_EXPECT_EQ(status, 1);
  });
}

TEST_CASE("nullgpu/calls: asking for versions and asking NVML is no use of the GPU") {
  run({}, [] {
    int version = 0;
    unsigned count = 0;
    QLP_EXPECT_EQ(nvmlInit_v2(), 0);
    QLP_EXPECT_EQ(nvmlDeviceGetCount_v2(&count), 0);
    QLP_EXPECT_EQ(count, 8U);
    QLP_EXPECT_EQ(cudaDriverGetVersion(&version), 0);
    const pid_t child = fork();
    if (child == 0) {
      void* p = nullptr;
      _exit(cudaMalloc(&p, 64) == 0 ? 7 : 8);
    }
    int status = 0;
    QLP_EXPECT_EQ(waitpid(child, &status, 0), child);
    QLP_EXPECT_EQ(WEXITSTATUS(status), 7);
  });
}

TEST_CASE("nullgpu/calls: no GPU has a fabric, and those before Hopper do not know the question") {
  const auto asked = [](const char* sm, int status) {
    run({{"NULLGPU_SM", sm}}, [&] {
      void* device = nullptr;
      QLP_EXPECT_EQ(nvmlDeviceGetHandleByIndex_v2(0, &device), 0);
      unsigned info[16] = {0x2000024};  // its version
      info[7] = 3;                      // the state: completed
      QLP_EXPECT_EQ(nvmlDeviceGetGpuFabricInfoV(device, info), status);
      QLP_EXPECT_EQ(info[0], 0x2000024U);
      QLP_EXPECT_EQ(info[7] & 0xff, status == 0 ? 0U : 3U);
    });
  };
  asked("90", 0);
  asked("80", 3);
}
