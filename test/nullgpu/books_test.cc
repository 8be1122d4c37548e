#include <vector>

#include <doctest/doctest.h>

#include "nullgpu/null_gpu.h"

namespace {

using namespace null_gpu;

constexpr std::size_t kMiB = std::size_t{1} << 20U;
constexpr std::size_t kGiB = std::size_t{1} << 30U;
constexpr int kOutOfMemory = 2;
constexpr int kInvalidValue = 1;

}  // namespace

TEST_CASE("nullgpu/books: allocations count in granules, and small ones share") {
  run({}, [] {
    void* a = nullptr;
    QLP_EXPECT_EQ(cudaMalloc(&a, 3 * kMiB), 0);
    QLP_EXPECT_EQ(nullgpu_used(), 4 * kMiB);
    std::vector<void*> small(1000);
    for (void*& p : small) {
      QLP_EXPECT_EQ(cudaMalloc(&p, std::size_t{256}), 0);
    }
    QLP_EXPECT_EQ(nullgpu_used(), 6 * kMiB);
    for (void* p : small) {
      QLP_EXPECT_EQ(cudaFree(p), 0);
    }
    QLP_EXPECT_EQ(nullgpu_used(), 4 * kMiB);
    QLP_EXPECT_EQ(cudaFree(a), 0);
    QLP_EXPECT_EQ(nullgpu_used(), std::size_t{0});
    QLP_EXPECT_EQ(nullgpu_peak(), 6 * kMiB);
    QLP_EXPECT_EQ(cudaFree(a), kInvalidValue);
    QLP_EXPECT_EQ(cudaFree(static_cast<void*>(nullptr)), 0);
  });
}

TEST_CASE("nullgpu/books: past the capacity memory is out, context included") {
  run({{"NULLGPU_BYTES", "1073741824"}, {"NULLGPU_CONTEXT_BYTES", "104857600"}}, [] {
    void* a = nullptr;
    void* b = nullptr;
    std::size_t free_bytes = 0;
    std::size_t total = 0;
    QLP_EXPECT_EQ(cudaMemGetInfo(&free_bytes, &total), 0);
    QLP_EXPECT_EQ(total, kGiB);
    QLP_EXPECT_EQ(free_bytes, kGiB - 100 * kMiB);
    QLP_EXPECT_EQ(cudaMalloc(&a, 924 * kMiB), 0);
    QLP_EXPECT_EQ(cudaMalloc(&b, std::size_t{1}), kOutOfMemory);
    QLP_EXPECT_EQ(cudaPeekAtLastError(), kOutOfMemory);
    QLP_EXPECT_EQ(cudaGetLastError(), kOutOfMemory);
    QLP_EXPECT_EQ(cudaGetLastError(), 0);
    QLP_EXPECT_EQ(nullgpu_failed_mallocs(), std::size_t{1});
    QLP_EXPECT_EQ(cudaFree(a), 0);
    QLP_EXPECT_EQ(cudaMalloc(&b, std::size_t{1}), 0);
  });
}

TEST_CASE("nullgpu/books: every device has its own") {
  run({{"NULLGPU_DEVICES", "4"}}, [] {
    void* p = nullptr;
    int count = 0;
    QLP_EXPECT_EQ(cudaGetDeviceCount(&count), 0);
    QLP_EXPECT_EQ(count, 4);
    QLP_EXPECT_EQ(cudaSetDevice(3), 0);
    QLP_EXPECT_EQ(cudaMalloc(&p, 10 * kMiB), 0);
    QLP_EXPECT_EQ(nullgpu_device_used(3), 10 * kMiB);
    QLP_EXPECT_EQ(nullgpu_device_used(0), std::size_t{0});
    QLP_EXPECT_EQ(cudaSetDevice(4), 101);
  });
}

TEST_CASE("nullgpu/books: a terabyte is address space, not memory") {
  run({{"NULLGPU_BYTES", "4398046511104"}}, [] {
    std::vector<void*> blocks(1500);
    for (void*& p : blocks) {
      QLP_EXPECT_EQ(cudaMalloc(&p, kGiB), 0);
    }
    QLP_EXPECT_EQ(nullgpu_used(), 1500 * kGiB);
    int value = 42;
    int back = 0;
    QLP_EXPECT_EQ(cudaMemcpy(blocks[1234], &value, sizeof value, 1), 0);
    QLP_EXPECT_EQ(cudaMemcpy(&back, blocks[1234], sizeof back, 2), 0);
    QLP_EXPECT_EQ(back, 42);
  });
}

TEST_CASE("nullgpu/books: a hundred thousand blocks come and go") {
  run({{"NULLGPU_BYTES", "1099511627776"}}, [] {
    std::vector<void*> blocks(100000);
    for (void*& p : blocks) {
      cudaMalloc(&p, 2 * kMiB);
    }
    QLP_EXPECT_EQ(nullgpu_used(), 200000 * kMiB);
    for (std::size_t i = 0; i < blocks.size(); i += 2) {
      cudaFree(blocks[i]);
    }
    QLP_EXPECT_EQ(nullgpu_used(), 100000 * kMiB);
    for (std::size_t i = 0; i < blocks.size(); i += 2) {
      QLP_EXPECT_EQ(cudaMalloc(&blocks[i], 2 * kMiB), 0);
    }
    QLP_EXPECT_EQ(nullgpu_used(), 200000 * kMiB);
  });
}

TEST_CASE("nullgpu/books: pinned, registered and managed memory are the host's") {
  run({}, [] {
    void* pinned = nullptr;
    void* managed = nullptr;
    QLP_EXPECT_EQ(cudaHostAlloc(&pinned, 5 * kMiB, 0U), 0);
    QLP_EXPECT_EQ(cudaMallocManaged(&managed, 7 * kMiB, 1U), 0);
    std::vector<char> own(kMiB);
    QLP_EXPECT_EQ(cudaHostRegister(static_cast<void*>(own.data()), own.size(), 0U), 0);
    QLP_EXPECT_EQ(cudaHostRegister(static_cast<void*>(own.data() + 10), std::size_t{10}, 0U), 712);
    QLP_EXPECT_EQ(nullgpu_pinned(), 6 * kMiB);
    QLP_EXPECT_EQ(nullgpu_managed(), 7 * kMiB);
    QLP_EXPECT_EQ(nullgpu_used(), std::size_t{0});
    struct {
      int type, device;
      void *on_device, *on_host;
      long reserved[8];
    } attributes{};
    QLP_EXPECT_EQ(cudaPointerGetAttributes(&attributes, own.data() + 100), 0);
    QLP_EXPECT_EQ(attributes.type, 1);
    QLP_EXPECT_EQ(cudaPointerGetAttributes(&attributes, managed), 0);
    QLP_EXPECT_EQ(attributes.type, 3);
    QLP_EXPECT_EQ(cudaPointerGetAttributes(&attributes, &attributes), 0);
    QLP_EXPECT_EQ(attributes.type, 0);
    QLP_EXPECT_EQ(cudaHostUnregister(static_cast<void*>(own.data())), 0);
    QLP_EXPECT_EQ(cudaFreeHost(pinned), 0);
    QLP_EXPECT_EQ(cudaFree(managed), 0);
    QLP_EXPECT_EQ(nullgpu_pinned() + nullgpu_managed(), std::size_t{0});
  });
}
