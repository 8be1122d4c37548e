#include <cstring>
#include <numeric>
#include <vector>

#include <doctest/doctest.h>

#include "nullgpu/null_gpu.h"

namespace {

using namespace null_gpu;

constexpr std::size_t kMiB = std::size_t{1} << 20U;
constexpr std::size_t kGiB = std::size_t{1} << 30U;
constexpr int kInvalidValue = 1;

char* device_block(std::size_t bytes) {
  void* p = nullptr;
  QLP_EXPECT_EQ(cudaMalloc(&p, bytes), 0);
  return static_cast<char*>(p);
}

// Resident set of this process, in pages.
long resident() {
  long total = 0;
  long pages = 0;
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  QLP_EXPECT(file != nullptr && std::fscanf(file, "%ld %ld", &total, &pages) == 2);
  std::fclose(file);
  return pages;
}

}  // namespace

TEST_CASE("nullgpu/copies: what the host wrote it can read back, all else reads as zero") {
  run({}, [] {
    char* p = device_block(kMiB);
    std::vector<int> in(1000);
    std::iota(in.begin(), in.end(), 7);
    const std::size_t bytes = in.size() * sizeof(int);
    std::vector<int> out(1000, -1);
    QLP_EXPECT_EQ(cudaMemcpy(out.data(), p, bytes, 2), 0);
    QLP_EXPECT(out == std::vector<int>(1000, 0));
    QLP_EXPECT_EQ(cudaMemcpy(p, in.data(), bytes, 1), 0);
    QLP_EXPECT_EQ(nullgpu_written_by_host(p, kMiB), bytes);
    QLP_EXPECT_EQ(cudaMemcpy(p + 10000, p, bytes, 3), 0);  // on the device
    QLP_EXPECT_EQ(cudaMemcpy(out.data(), p + 10000, bytes, 2), 0);
    QLP_EXPECT(out == in);
    QLP_EXPECT_EQ(nullgpu_written_by_host(p, kMiB), 2 * bytes);
    nullgpu_forget(p + 10000, 4);
    QLP_EXPECT_EQ(cudaMemcpy(out.data(), p + 10000, bytes, 2), 0);
    QLP_EXPECT_EQ(out[0], 0);
    QLP_EXPECT_EQ(out[1], in[1]);
  });
}

TEST_CASE(
    "nullgpu/copies: the books take and give bytes while a stream is captured, when the program's own copies cannot") {
  run({}, [] {
    char* p = device_block(kMiB);
    void* stream = nullptr;
    void* graph = nullptr;
    QLP_EXPECT_EQ(cudaStreamCreate(&stream), 0);
    QLP_EXPECT_EQ(cudaStreamBeginCapture(stream, 0), 0);
    const int in = 41;
    int out = 0;
    nullgpu_put(p + 64, &in, sizeof in);
    QLP_EXPECT_EQ(nullgpu_written_by_host(p, kMiB), sizeof in);
    nullgpu_get(&out, p + 64, sizeof out);
    QLP_EXPECT_EQ(out, in);
    QLP_EXPECT_EQ(cudaStreamEndCapture(stream, &graph), 0);
    std::size_t nodes = 1;
    QLP_EXPECT_EQ(cudaGraphGetNodes(graph, nullptr, &nodes), 0);
    QLP_EXPECT_EQ(nodes, std::size_t{0});
  });
}

TEST_CASE("nullgpu/copies: what the books are given is kept, however large") {
  run({{"NULLGPU_COPY_MAX", "1024"}}, [] {
    char* p = device_block(kMiB);
    const std::vector<int> in(10000, 41);
    std::vector<int> out(10000);
    nullgpu_put(p, in.data(), in.size() * sizeof(int));
    QLP_EXPECT_EQ(nullgpu_written_by_host(p, kMiB), in.size() * sizeof(int));
    nullgpu_get(out.data(), p, out.size() * sizeof(int));
    QLP_EXPECT(out == in);
  });
}

TEST_CASE("nullgpu/copies: large ones leave zeros and what the host had written, and touch no memory") {
  run({{"NULLGPU_COPY_MAX", "1024"}, {"NULLGPU_BYTES", "1099511627776"}}, [] {
    char* p = device_block(100 * kGiB);
    char* q = device_block(100 * kGiB);
    const int value = 123;
    QLP_EXPECT_EQ(cudaMemcpy(p + kGiB, &value, sizeof value, 1), 0);
    const long before = resident();
    QLP_EXPECT_EQ(cudaMemcpy(q, p, 100 * kGiB, 3), 0);
    void* host = nullptr;
    QLP_EXPECT_EQ(cudaHostAlloc(&host, 50 * kGiB, 0U), 0);
    static_cast<char*>(host)[5000] = 1;
    QLP_EXPECT_EQ(cudaMemcpy(host, q, 50 * kGiB, 2), 0);
    QLP_EXPECT_EQ(static_cast<int>(static_cast<char*>(host)[5000]), 0);
    int back = 0;
    std::memcpy(&back, static_cast<char*>(host) + kGiB, sizeof back);
    QLP_EXPECT_EQ(back, 123);
    QLP_EXPECT(resident() - before < 2000);
    QLP_EXPECT_EQ(cudaMemset(q, 0, 100 * kGiB), 0);
    QLP_EXPECT_EQ(cudaMemcpy(&back, q + kGiB, sizeof back, 2), 0);
    QLP_EXPECT_EQ(back, 0);
  });
}

TEST_CASE("nullgpu/copies: memsets are kept as copies are") {
  run({}, [] {
    char* p = device_block(kMiB);
    QLP_EXPECT_EQ(cudaMemset(p, 0x5a, 100), 0);
    unsigned char out[101] = {};
    QLP_EXPECT_EQ(cudaMemcpy(out, p, 101, 2), 0);
    QLP_EXPECT_EQ(static_cast<int>(out[99]), 0x5a);
    QLP_EXPECT_EQ(static_cast<int>(out[100]), 0);
    QLP_EXPECT_EQ(nullgpu_written_by_host(p, kMiB), std::size_t{100});
  });
}

TEST_CASE("nullgpu/copies: freed memory is refused, and forgotten when it comes back") {
  run({}, [] {
    char* p = device_block(2 * kMiB);
    const int value = 9;
    QLP_EXPECT_EQ(cudaMemcpy(p, &value, sizeof value, 1), 0);
    QLP_EXPECT_EQ(cudaMemcpy(p + 2 * kMiB - 2, &value, sizeof value, 1), kInvalidValue);
    QLP_EXPECT_EQ(cudaFree(p), 0);
    QLP_EXPECT_EQ(cudaMemcpy(p, &value, sizeof value, 1), kInvalidValue);
    // Small blocks come back at once.
    char* small = device_block(64);
    QLP_EXPECT_EQ(cudaMemcpy(small, &value, sizeof value, 1), 0);
    QLP_EXPECT_EQ(cudaFree(small), 0);
    for (int i = 0; i < 5000; ++i) {
      char* again = device_block(64);
      int back = -1;
      QLP_EXPECT_EQ(cudaMemcpy(&back, again, sizeof back, 2), 0);
      QLP_EXPECT_EQ(back, 0);
    }
  });
}
