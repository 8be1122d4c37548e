#include <doctest/doctest.h>

#include "nullgpu/null_gpu.h"

namespace {

using namespace null_gpu;

constexpr std::size_t kMiB = std::size_t{1} << 20U;
constexpr std::size_t kGiB = std::size_t{1} << 30U;
constexpr int kInvalidValue = 1;
constexpr int kOutOfMemory = 2;
constexpr AllocationProperties kOnDevice{1, 0, 1, 0, nullptr, {}};

std::uint64_t create(std::size_t bytes) {
  std::uint64_t handle = 0;
  QLP_EXPECT_EQ(cuMemCreate(&handle, bytes, &kOnDevice, 0), 0);
  return handle;
}

}  // namespace

TEST_CASE("nullgpu/virtual_memory: a range takes no memory, what is created does until it is neither held nor mapped") {
  run({{"NULLGPU_BYTES", "1073741824"}}, [] {
    std::uintptr_t range = 0;
    cudaSetDevice(0);
    QLP_EXPECT_EQ(cuMemAddressReserve(&range, 100 * kGiB, 0, 0, 0), 0);
    QLP_EXPECT_EQ(nullgpu_used(), std::size_t{0});
    const std::uint64_t a = create(20 * kMiB);
    const std::uint64_t b = create(20 * kMiB);
    QLP_EXPECT_EQ(cuMemMap(range, 20 * kMiB, 0, a, 0), 0);
    QLP_EXPECT_EQ(cuMemSetAccess(range, 20 * kMiB, nullptr, 1), 0);
    QLP_EXPECT_EQ(cuMemMap(range, 20 * kMiB, 0, b, 0), 208);
    QLP_EXPECT_EQ(cuMemMap(range + 20 * kMiB, 20 * kMiB, 0, b, 0), 0);
    QLP_EXPECT_EQ(nullgpu_used(), 40 * kMiB);
    QLP_EXPECT_EQ(cuMemRelease(a), 0);
    QLP_EXPECT_EQ(nullgpu_used(), 40 * kMiB);
    auto* p = reinterpret_cast<void*>(range + 19 * kMiB);
    const int value = 3;
    int back = 0;
    QLP_EXPECT_EQ(cudaMemcpy(p, &value, sizeof value, 1), 0);
    QLP_EXPECT_EQ(cuMemUnmap(range, 20 * kMiB), 0);
    QLP_EXPECT_EQ(nullgpu_used(), 20 * kMiB);
    QLP_EXPECT_EQ(cuMemAddressFree(range, 100 * kGiB), kInvalidValue);  // b is still mapped
    QLP_EXPECT_EQ(cuMemUnmap(range + 20 * kMiB, 20 * kMiB), 0);
    QLP_EXPECT_EQ(cuMemMap(range, 20 * kMiB, 0, b, 0), 0);
    QLP_EXPECT_EQ(cudaMemcpy(&back, p, sizeof back, 2), 0);
    QLP_EXPECT_EQ(back, 0);
    QLP_EXPECT_EQ(cuMemUnmap(range, 20 * kMiB), 0);
    QLP_EXPECT_EQ(cuMemRelease(b), 0);
    QLP_EXPECT_EQ(nullgpu_used(), std::size_t{0});
    QLP_EXPECT_EQ(cuMemAddressFree(range, 100 * kGiB), 0);
  });
}

TEST_CASE("nullgpu/virtual_memory: the capacity holds for it too") {
  run({{"NULLGPU_BYTES", "1073741824"}}, [] {
    cudaSetDevice(0);
    create(1000 * kMiB);
    std::uint64_t handle = 0;
    QLP_EXPECT_EQ(cuMemCreate(&handle, 26 * kMiB, &kOnDevice, 0), kOutOfMemory);
    QLP_EXPECT_EQ(cuMemCreate(&handle, 24 * kMiB, &kOnDevice, 0), 0);
    QLP_EXPECT_EQ(cuMemCreate(&handle, 5, &kOnDevice, 0), kInvalidValue);
  });
}

TEST_CASE("nullgpu/virtual_memory: a capture is no hindrance, as expandable segments grow in one") {
  run({}, [] {
    void* s = nullptr;
    void* graph = nullptr;
    std::uint64_t handle = 0;
    QLP_EXPECT_EQ(cudaStreamCreateWithPriority(&s, 1, 0), 0);
    QLP_EXPECT_EQ(cudaStreamBeginCapture(s, 0), 0);
    QLP_EXPECT_EQ(cuMemCreate(&handle, 2 * kMiB, &kOnDevice, 0), 0);
    QLP_EXPECT_EQ(cudaStreamEndCapture(s, &graph), 0);
  });
}

TEST_CASE("nullgpu/virtual_memory: pools hold memory until they are trimmed") {
  run({}, [] {
    void* pool = nullptr;
    void* p = nullptr;
    std::uint64_t value = 0;
    std::uint64_t keep = ~std::uint64_t{0};
    QLP_EXPECT_EQ(cudaDeviceGetDefaultMemPool(&pool, 0), 0);
    QLP_EXPECT_EQ(cudaMemPoolSetAttribute(pool, 4, &keep), 0);
    QLP_EXPECT_EQ(cudaMallocAsync(&p, 40 * kMiB, nullptr), 0);
    QLP_EXPECT_EQ(nullgpu_used(), 64 * kMiB);
    QLP_EXPECT_EQ(cudaFreeAsync(p, nullptr), 0);
    cudaDeviceSynchronize();
    QLP_EXPECT_EQ(cudaMemPoolGetAttribute(pool, 5, &value), 0);
    QLP_EXPECT_EQ(value, 64 * kMiB);
    QLP_EXPECT_EQ(cudaMemPoolGetAttribute(pool, 7, &value), 0);
    QLP_EXPECT_EQ(value, std::uint64_t{0});
    QLP_EXPECT_EQ(cudaMemPoolTrimTo(pool, 0), 0);
    QLP_EXPECT_EQ(nullgpu_used(), std::size_t{0});
    keep = 0;
    cudaMemPoolSetAttribute(pool, 4, &keep);
    cudaMallocAsync(&p, 40 * kMiB, nullptr);
    cudaFreeAsync(p, nullptr);
    cudaDeviceSynchronize();
    QLP_EXPECT_EQ(nullgpu_used(), std::size_t{0});
  });
}
