#include <atomic>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "nullgpu/null_gpu.h"

namespace {

using namespace null_gpu;

constexpr int kNotReady = 600;
constexpr int kInvalidHandle = 400;
constexpr unsigned kDisableTiming = 2;

void* stream() {
  void* s = nullptr;
  QLP_EXPECT_EQ(cudaStreamCreateWithPriority(&s, 1, -1), 0);
  return s;
}

void* event(unsigned flags) {
  void* e = nullptr;
  QLP_EXPECT_EQ(cudaEventCreateWithFlags(&e, flags), 0);
  return e;
}

}  // namespace

TEST_CASE("nullgpu/streams: events are ready at once") {
  run({}, [] {
    void* s = stream();
    void* e = event(kDisableTiming);
    QLP_EXPECT_EQ(cudaEventQuery(e), 0);  // never recorded
    QLP_EXPECT_EQ(cudaEventRecord(e, s), 0);
    QLP_EXPECT_EQ(cudaEventQuery(e), 0);
    QLP_EXPECT_EQ(cudaStreamQuery(s), 0);
    QLP_EXPECT_EQ(cudaEventDestroy(e), 0);
    QLP_EXPECT_EQ(cudaEventQuery(e), kInvalidHandle);
  });
}

TEST_CASE("nullgpu/streams: lazy events are ready after any synchronisation") {
  run({{"NULLGPU_LAZY_EVENTS", "1"}}, [] {
    void* s = stream();
    void* e = event(kDisableTiming);
    QLP_EXPECT_EQ(cudaEventQuery(e), 0);
    const auto synchronisations = {+[](void*, void*) { cudaDeviceSynchronize(); },
                                   +[](void* t, void*) { cudaStreamSynchronize(t); },
                                   +[](void*, void* f) { cudaEventSynchronize(f); }};
    for (const auto& synchronise : synchronisations) {
      QLP_EXPECT_EQ(cudaEventRecord(e, s), 0);
      QLP_EXPECT_EQ(cudaEventQuery(e), kNotReady);
      QLP_EXPECT_EQ(cudaEventQuery(e), kNotReady);
      synchronise(s, e);
      QLP_EXPECT_EQ(cudaEventQuery(e), 0);
    }
  });
}

TEST_CASE("nullgpu/streams: the time between two records goes by launches, so that it is the same in every run") {
  run({}, [] {
    void* a = event(0);
    void* b = event(0);
    float milliseconds = -1;
    QLP_EXPECT_EQ(cudaEventElapsedTime(&milliseconds, a, b), kInvalidHandle);
    cudaEventRecord(a, nullptr);
    for (int i = 0; i < 5; ++i) cudaLaunchKernel(&milliseconds, Dim3{1, 1, 1}, Dim3{32, 1, 1}, nullptr, 0, nullptr);
    cudaEventRecord(b, nullptr);
    QLP_EXPECT_EQ(cudaEventElapsedTime(&milliseconds, a, b), 0);
    QLP_EXPECT_EQ(milliseconds, 5.0F);
    QLP_EXPECT_EQ(cudaEventElapsedTime(&milliseconds, b, a), 0);
    QLP_EXPECT_EQ(milliseconds, -5.0F);
    cudaEventRecord(a, nullptr);
    QLP_EXPECT_EQ(cudaEventElapsedTime(&milliseconds, b, a), 0);
    QLP_EXPECT_EQ(milliseconds, 1.0F);
    void* untimed = event(kDisableTiming);
    cudaEventRecord(untimed, nullptr);
    QLP_EXPECT_EQ(cudaEventElapsedTime(&milliseconds, a, untimed), kInvalidHandle);
  });
}

TEST_CASE("nullgpu/streams: host functions are called, in order, and waited for") {
  run({}, [] {
    static std::vector<int> g_order;
    static std::atomic<bool> g_go{false};
    void* s = stream();
    void* other = stream();
    void* e = event(kDisableTiming);
    cudaLaunchHostFunc(
        s,
        [](void*) {
          while (!g_go) {
            std::this_thread::yield();
          }
          g_order.push_back(1);
        },
        nullptr);
    cudaLaunchHostFunc(
        s, [](void* p) { g_order.push_back(*static_cast<int*>(p)); }, new int(2));
    cudaEventRecord(e, s);
    QLP_EXPECT_EQ(cudaEventQuery(e), kNotReady);
    QLP_EXPECT_EQ(cudaStreamQuery(s), kNotReady);
    QLP_EXPECT_EQ(cudaStreamQuery(other), 0);
    QLP_EXPECT_EQ(cudaStreamWaitEvent(other, e, 0), 0);
    QLP_EXPECT_EQ(cudaStreamQuery(other), kNotReady);
    g_go = true;
    QLP_EXPECT_EQ(cudaStreamSynchronize(other), 0);
    QLP_EXPECT(g_order == (std::vector<int>{1, 2}));
  });
}

TEST_CASE("nullgpu/streams: handles that are none are refused") {
  run({}, [] {
    int value = 0;
    void* s = stream();
    int priority = 0;
    QLP_EXPECT_EQ(cudaStreamGetPriority(s, &priority), 0);
    QLP_EXPECT_EQ(priority, -1);
    QLP_EXPECT_EQ(cudaStreamDestroy(s), 0);
    QLP_EXPECT_EQ(cudaStreamDestroy(s), kInvalidHandle);
    QLP_EXPECT_EQ(cudaStreamSynchronize(&value), kInvalidHandle);
    QLP_EXPECT_EQ(cudaStreamSynchronize(nullptr), 0);
  });
}

TEST_CASE("nullgpu/streams: many threads at once") {
  run({{"NULLGPU_DEVICES", "4"}, {"NULLGPU_LAZY_EVENTS", "1"}}, [] {
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([t] {
        QLP_EXPECT_EQ(cudaSetDevice(t % 4), 0);
        void* s = stream();
        void* e = event(kDisableTiming);
        for (int i = 0; i < 300; ++i) {
          void* p = nullptr;
          QLP_EXPECT_EQ(cudaMalloc(&p, static_cast<std::size_t>(1 + i) << 12U), 0);
          QLP_EXPECT_EQ(cudaMemcpyAsync(p, &i, sizeof i, 1, s), 0);
          cudaEventRecord(e, s);
          cudaLaunchHostFunc(
              s, [](void*) {}, nullptr);
          int back = -1;
          QLP_EXPECT_EQ(cudaMemcpyAsync(&back, p, sizeof back, 2, s), 0);
          QLP_EXPECT_EQ(cudaStreamSynchronize(s), 0);
          QLP_EXPECT_EQ(cudaEventQuery(e) == 0 || cudaEventQuery(e) == kNotReady, true);
          QLP_EXPECT_EQ(back, i);
          QLP_EXPECT_EQ(cudaFree(p), 0);
        }
      });
    }
    for (std::thread& t : threads) {
      t.join();
    }
    for (int d = 0; d < 4; ++d) {
      QLP_EXPECT_EQ(nullgpu_device_used(d), std::size_t{0});
    }
  });
}
