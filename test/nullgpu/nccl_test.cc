#include <array>
#include <cstring>
#include <functional>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include <climits>
#include <doctest/doctest.h>

#include "nullgpu/null_gpu.h"

namespace {

using namespace null_gpu;

constexpr int kInt32 = 2;
constexpr int kFloat32 = 7;
constexpr int kBfloat16 = 9;
constexpr int kSum = 0;
constexpr int kAverage = 4;

template <class T>
T* on_device(const std::vector<T>& values) {
  void* p = nullptr;
  QLP_EXPECT_EQ(cudaMalloc(&p, 4096), 0);
  QLP_EXPECT_EQ(cudaMemcpy(p, values.data(), values.size() * sizeof(T), 1), 0);
  return static_cast<T*>(p);
}

template <class T>
std::vector<T> from_device(const T* p, std::size_t n) {
  std::vector<T> values(n);
  QLP_EXPECT_EQ(cudaMemcpy(values.data(), p, n * sizeof(T), 2), 0);
  return values;
}

void* communicator(int size, int rank) {
  UniqueId id{};
  void* c = nullptr;
  QLP_EXPECT_EQ(ncclGetUniqueId(&id), 0);
  QLP_EXPECT_EQ(ncclCommInitRank(&c, size, id, rank), 0);
  return c;
}

}  // namespace

TEST_CASE("nullgpu/nccl: one rank of any number") {
  run({}, [] {
    void* c = communicator(4096, 4095);
    int n = 0;
    QLP_EXPECT_EQ(ncclCommCount(c, &n), 0);
    QLP_EXPECT_EQ(n, 4096);
    QLP_EXPECT_EQ(ncclCommUserRank(c, &n), 0);
    QLP_EXPECT_EQ(n, 4095);
    QLP_EXPECT_EQ(ncclCommDestroy(c), 0);
    QLP_EXPECT_EQ(ncclCommCount(c, &n), 4);
    UniqueId id{};
    QLP_EXPECT_EQ(ncclCommInitRank(&c, 4, id, 4), 4);
  });
}

TEST_CASE("nullgpu/nccl: collectives give what all ranks would hold if all held the same") {
  run({}, [] {
    void* c = communicator(4, 2);
    int* ints = on_device<int>({1, 2, 3, 4, 5, 6, 7, 8});
    int* out = on_device<int>(std::vector<int>(8, -1));
    QLP_EXPECT_EQ(ncclAllReduce(ints, out, 8, kInt32, kSum, c, nullptr), 0);
    QLP_EXPECT(from_device(out, 8) == (std::vector<int>{4, 8, 12, 16, 20, 24, 28, 32}));
    QLP_EXPECT_EQ(ncclAllReduce(ints, out, 8, kInt32, kAverage, c, nullptr), 0);
    QLP_EXPECT(from_device(out, 8) == (std::vector<int>{1, 2, 3, 4, 5, 6, 7, 8}));
    QLP_EXPECT_EQ(ncclReduceScatter(ints, out, 2, kInt32, kSum, c, nullptr), 0);
    QLP_EXPECT(from_device(out, 2) == (std::vector<int>{20, 24}));
    QLP_EXPECT_EQ(ncclGroupStart(), 0);
    QLP_EXPECT_EQ(ncclAllGather(ints, out, 2, kInt32, c, nullptr), 0);
    QLP_EXPECT_EQ(ncclGroupEnd(), 0);
    QLP_EXPECT(from_device(out, 8) == (std::vector<int>{1, 2, 1, 2, 1, 2, 1, 2}));
    float* floats = on_device<float>({0.5F, -2});
    QLP_EXPECT_EQ(ncclAllReduce(floats, floats, 2, kFloat32, kSum, c, nullptr), 0);
    QLP_EXPECT(from_device(floats, 2) == (std::vector<float>{2, -8}));
    std::uint16_t* halves = on_device<std::uint16_t>({0x3f80, 0xc000});  // 1 and -2
    QLP_EXPECT_EQ(ncclAllReduce(halves, halves, 2, kBfloat16, kSum, c, nullptr), 0);
    QLP_EXPECT(from_device(halves, 2) == (std::vector<std::uint16_t>{0x4080, 0xc100}));
  });
}

TEST_CASE("nullgpu/nccl: a communicator that does not block is in progress once") {
  run({}, [] {
    struct {
      std::size_t size = 32;
      unsigned magic = 0xcafebeef;
      unsigned version = 22809;
      int blocking = 0;
      int rest[3] = {INT_MIN, INT_MIN, INT_MIN};
    } config;
    UniqueId id{};
    void* c = nullptr;
    int error = -1;
    QLP_EXPECT_EQ(ncclCommInitRankConfig(&c, 2, id, 0, &config), 7);
    QLP_EXPECT_EQ(ncclCommGetAsyncError(c, &error), 0);
    QLP_EXPECT_EQ(error, 7);
    QLP_EXPECT_EQ(ncclCommGetAsyncError(c, &error), 0);
    QLP_EXPECT_EQ(error, 0);
  });
}

TEST_CASE("nullgpu/nccl: all devices of a process, and parts of a communicator") {
  run({{"NULLGPU_DEVICES", "4"}}, [] {
    std::array<void*, 4> c{};
    QLP_EXPECT_EQ(ncclCommInitAll(c.data(), 4, nullptr), 0);
    int rank = -1;
    QLP_EXPECT_EQ(ncclCommUserRank(c[3], &rank), 0);
    QLP_EXPECT_EQ(rank, 3);
    void* none = &rank;
    QLP_EXPECT_EQ(ncclCommSplit(c[3], -1, 0, &none, nullptr), 0);
    QLP_EXPECT(none == nullptr);
    QLP_EXPECT_EQ(ncclCommSplit(c[3], 1, 1, &none, nullptr), 0);
    QLP_EXPECT_EQ(ncclCommUserRank(none, &rank), 0);
    QLP_EXPECT_EQ(rank, 1);
  });
}

TEST_CASE("nullgpu/nccl: failures that are asked for") {
  run({{"NULLGPU_FAIL", "ncclCommInitRank:2,ncclCommGetAsyncError:3+=6,ncclAllReduce:1=1"}}, [] {
    void* c = communicator(2, 0);
    void* second = nullptr;
    UniqueId id{};
    QLP_EXPECT_EQ(ncclCommInitRank(&second, 2, id, 0), 3);
    int error = -1;
    for (const int expected : {0, 0, 6, 6}) {
      QLP_EXPECT_EQ(ncclCommGetAsyncError(c, &error), 0);
      QLP_EXPECT_EQ(error, expected);
    }
    int* p = on_device<int>({1});
    QLP_EXPECT_EQ(ncclAllReduce(p, p, 1, kInt32, kSum, c, nullptr), 1);
    QLP_EXPECT_EQ(ncclAllReduce(p, p, 1, kInt32, kSum, c, nullptr), 0);
  });
}

namespace {

// Runs `body(communicator, rank)` in that many processes, each a rank on its own device.
void ranks(int size, const std::function<void(void*, int)>& body) {
  run({{"NULLGPU_RANKS", "real"}, {"NULLGPU_COPY_MAX", "1048576"}}, [&] {
    UniqueId id{};
    std::memset(&id, 0, sizeof id);
    const std::uint64_t words[2] = {1, static_cast<std::uint64_t>(getpid()) << 20U | 1U};  // what ncclGetUniqueId makes
    std::memcpy(id.bytes, words, sizeof words);
    std::vector<pid_t> children;
    for (int r = 0; r < size; ++r) {
      children.push_back(fork());
      if (children.back() == 0) {
        void* c = nullptr;
        cudaSetDevice(r);
        QLP_EXPECT_EQ(ncclCommInitRank(&c, size, id, r), 0);
        body(c, r);
        QLP_EXPECT_EQ(ncclCommDestroy(c), 0);
        _exit(0);
      }
    }
    for (const pid_t child : children) {
      int status = 0;
      QLP_EXPECT_EQ(waitpid(child, &status, 0), child);
      QLP_EXPECT_EQ(status, 0);
    }
  });
}

}  // namespace

TEST_CASE("nullgpu/nccl: ranks that are processes exchange what is small") {
  ranks(3, [](void* c, int rank) {
    int* mine = on_device<int>({10 * rank, 10 * rank + 1, 10 * rank + 2});
    int* out = on_device<int>(std::vector<int>(9, -1));
    for (int turn = 0; turn < 50; ++turn) {
      QLP_EXPECT_EQ(ncclAllGather(mine, out, 3, kInt32, c, nullptr), 0);
      QLP_EXPECT(from_device(out, 9) == (std::vector<int>{0, 1, 2, 10, 11, 12, 20, 21, 22}));
      QLP_EXPECT_EQ(ncclAllReduce(mine, out, 3, kInt32, kSum, c, nullptr), 0);
      QLP_EXPECT(from_device(out, 3) == (std::vector<int>{30, 33, 36}));
      QLP_EXPECT_EQ(ncclReduceScatter(mine, out, 1, kInt32, 2, c, nullptr), 0);  // maximum
      QLP_EXPECT_EQ(from_device(out, 1)[0], 20 + rank);
      QLP_EXPECT_EQ(ncclBroadcast(mine, out, 3, kInt32, 1, c, nullptr), 0);
      QLP_EXPECT(from_device(out, 3) == (std::vector<int>{10, 11, 12}));
    }
    // What no host wrote stays so.
    void* fresh = nullptr;
    cudaMalloc(&fresh, 4096);
    QLP_EXPECT_EQ(ncclAllReduce(fresh, out, 3, kInt32, kSum, c, nullptr), 0);
    QLP_EXPECT_EQ(nullgpu_written_by_host(out, 12), std::size_t{0});
  });
}

TEST_CASE("nullgpu/nccl: processes exchange objects, which are bytes, in parts") {
  ranks(2, [](void* c, int rank) {
    constexpr int kUint8 = 1;
    constexpr std::size_t kLong = 150'000;  // more than two messages
    const auto object = [](int owner) {
      std::vector<unsigned char> bytes(kLong);
      for (std::size_t i = 0; i < kLong; ++i) {
        bytes[i] = static_cast<unsigned char>(i / 1000 + static_cast<std::size_t>(owner));
      }
      return bytes;
    };
    void* mine = nullptr;
    void* all = nullptr;
    QLP_EXPECT_EQ(cudaMalloc(&mine, kLong), 0);
    QLP_EXPECT_EQ(cudaMalloc(&all, 2 * kLong), 0);
    QLP_EXPECT_EQ(cudaMemcpy(mine, object(rank).data(), kLong, 1), 0);
    QLP_EXPECT_EQ(ncclAllGather(mine, all, kLong, kUint8, c, nullptr), 0);
    QLP_EXPECT(from_device(static_cast<unsigned char*>(all), kLong) == object(0));
    QLP_EXPECT(from_device(static_cast<unsigned char*>(all) + kLong, kLong) == object(1));
    QLP_EXPECT_EQ(ncclBroadcast(rank == 1 ? mine : nullptr, mine, kLong, kUint8, 1, c, nullptr), 0);
    QLP_EXPECT(from_device(static_cast<unsigned char*>(mine), kLong) == object(1));
    // From one to another, longer than what waits in between; what no host wrote is received as well.
    constexpr std::size_t kLonger = 900'000;
    void* longer = nullptr;
    QLP_EXPECT_EQ(cudaMalloc(&longer, kLonger), 0);
    for (const bool known : {true, false}) {
      if (rank == 0) {
        if (known) {
          QLP_EXPECT_EQ(cudaMemset(longer, 7, kLonger), 0);
        }
        QLP_EXPECT_EQ(ncclSend(longer, kLonger, kUint8, 1, c, nullptr), 0);
        QLP_EXPECT_EQ(cudaFree(longer), 0);
        QLP_EXPECT_EQ(cudaMalloc(&longer, kLonger), 0);
      } else {
        QLP_EXPECT_EQ(ncclRecv(longer, kLonger, kUint8, 0, c, nullptr), 0);
        QLP_EXPECT_EQ(nullgpu_written_by_host(longer, kLonger), known ? kLonger : 0);
        QLP_EXPECT_EQ(from_device(static_cast<unsigned char*>(longer), kLonger)[kLonger - 1], known ? 7 : 0);
      }
    }
    // To each other at the same time.
    void* theirs = nullptr;
    QLP_EXPECT_EQ(cudaMalloc(&theirs, kLonger), 0);
    QLP_EXPECT_EQ(cudaMemset(longer, 1 + rank, kLonger), 0);
    QLP_EXPECT_EQ(ncclGroupStart(), 0);
    QLP_EXPECT_EQ(ncclSend(longer, kLonger, kUint8, 1 - rank, c, nullptr), 0);
    QLP_EXPECT_EQ(ncclRecv(theirs, kLonger, kUint8, 1 - rank, c, nullptr), 0);
    QLP_EXPECT_EQ(ncclGroupEnd(), 0);
    QLP_EXPECT_EQ(from_device(static_cast<unsigned char*>(theirs), kLonger)[kLonger - 1], 2 - rank);
  });
}

TEST_CASE("nullgpu/nccl: processes send round a ring in a group, and split by color") {
  ranks(4, [](void* c, int rank) {
    int* mine = on_device<int>({rank});
    int* out = on_device<int>({-1});
    QLP_EXPECT_EQ(ncclGroupStart(), 0);
    QLP_EXPECT_EQ(ncclRecv(out, 1, kInt32, (rank + 3) % 4, c, nullptr), 0);
    QLP_EXPECT_EQ(ncclSend(mine, 1, kInt32, (rank + 1) % 4, c, nullptr), 0);
    QLP_EXPECT_EQ(ncclGroupEnd(), 0);
    QLP_EXPECT_EQ(from_device(out, 1)[0], (rank + 3) % 4);
    void* part = nullptr;
    int size = 0;
    int place = -1;
    QLP_EXPECT_EQ(ncclCommSplit(c, rank % 2, -rank, &part, nullptr), 0);
    QLP_EXPECT_EQ(ncclCommCount(part, &size), 0);
    QLP_EXPECT_EQ(ncclCommUserRank(part, &place), 0);
    QLP_EXPECT_EQ(size, 2);
    QLP_EXPECT_EQ(place, rank < 2 ? 1 : 0);
    QLP_EXPECT_EQ(ncclAllReduce(mine, out, 1, kInt32, kSum, part, nullptr), 0);
    QLP_EXPECT_EQ(from_device(out, 1)[0], rank % 2 == 0 ? 2 : 4);
  });
}

TEST_CASE("nullgpu/nccl: a rank that dies is an error of the others, not a hang") {
  run({{"NULLGPU_RANKS", "real"}}, [] {
    UniqueId id{};
    const std::uint64_t words[2] = {1, static_cast<std::uint64_t>(getpid()) << 20U | 2U};
    std::memcpy(id.bytes, words, sizeof words);
    const pid_t child = fork();
    void* c = nullptr;
    if (child == 0) {
      ncclCommInitRank(&c, 2, id, 1);
      _exit(0);
    }
    QLP_EXPECT_EQ(ncclCommInitRank(&c, 2, id, 0), 0);
    int status = 0;
    waitpid(child, &status, 0);
    int* p = on_device<int>({1});
    int error = 0;
    QLP_EXPECT_EQ(ncclAllReduce(p, p, 1, kInt32, kSum, c, nullptr), 0);
    QLP_EXPECT_EQ(ncclCommGetAsyncError(c, &error), 0);
    QLP_EXPECT_EQ(error, 6);
  });
}
