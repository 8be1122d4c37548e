#include <doctest/doctest.h>

#include "nullgpu/null_gpu.h"

namespace {

using namespace null_gpu;

constexpr int kGlobal = 0;
constexpr int kThreadLocal = 1;
constexpr int kRelaxed = 2;
constexpr int kCaptureUnsupported = 900;
constexpr int kCaptureInvalidated = 901;
constexpr int kCaptureUnjoined = 904;

void* stream() {
  void* s = nullptr;
  QLP_EXPECT_EQ(cudaStreamCreateWithPriority(&s, 1, 0), 0);
  return s;
}

void* event() {
  void* e = nullptr;
  QLP_EXPECT_EQ(cudaEventCreateWithFlags(&e, 2), 0);
  return e;
}

}  // namespace

TEST_CASE("nullgpu/graphs: what is captured is done at each launch, not before") {
  run({}, [] {
    void* s = stream();
    void* p = nullptr;
    cudaMalloc(&p, 64);
    int value = 5;
    int back = -1;
    int capturing = -1;
    QLP_EXPECT_EQ(cudaStreamBeginCapture(s, kThreadLocal), 0);
    QLP_EXPECT_EQ(cudaStreamIsCapturing(s, &capturing), 0);
    QLP_EXPECT_EQ(capturing, 1);
    QLP_EXPECT_EQ(cudaMemcpyAsync(p, &value, sizeof value, 1, s), 0);
    QLP_EXPECT_EQ(cudaLaunchKernel(&value, Dim3{1, 1, 1}, Dim3{32, 1, 1}, nullptr, 0, s), 0);
    void* graph = nullptr;
    QLP_EXPECT_EQ(cudaStreamEndCapture(s, &graph), 0);
    std::size_t nodes = 0;
    QLP_EXPECT_EQ(cudaGraphGetNodes(graph, nullptr, &nodes), 0);
    QLP_EXPECT_EQ(nodes, std::size_t{2});
    cudaMemcpy(&back, p, sizeof back, 2);
    QLP_EXPECT_EQ(back, 0);
    void* exec = nullptr;
    QLP_EXPECT_EQ(cudaGraphInstantiateWithFlags(&exec, graph, 0), 0);
    QLP_EXPECT_EQ(cudaGraphDestroy(graph), 0);
    value = 6;
    QLP_EXPECT_EQ(cudaGraphLaunch(exec, s), 0);
    cudaMemcpy(&back, p, sizeof back, 2);
    QLP_EXPECT_EQ(back, 6);
    QLP_EXPECT_EQ(cudaGraphExecDestroy(exec), 0);
  });
}

TEST_CASE("nullgpu/graphs: a stream joins a capture by an event, and has to come back") {
  run({}, [] {
    void* s = stream();
    void* side = stream();
    void* fork = event();
    void* join = event();
    int stub = 0;
    const auto launch = [&](void* t) {
      QLP_EXPECT_EQ(cudaLaunchKernel(&stub, Dim3{1, 1, 1}, Dim3{32, 1, 1}, nullptr, 0, t), 0);
    };
    void* graph = nullptr;
    for (const bool back : {true, false}) {
      QLP_EXPECT_EQ(cudaStreamBeginCapture(s, kRelaxed), 0);
      launch(s);
      cudaEventRecord(fork, s);
      QLP_EXPECT_EQ(cudaStreamWaitEvent(side, fork, 0), 0);
      launch(side);
      if (back) {
        cudaEventRecord(join, side);
        QLP_EXPECT_EQ(cudaStreamWaitEvent(s, join, 0), 0);
      }
      QLP_EXPECT_EQ(cudaStreamEndCapture(s, &graph), back ? 0 : kCaptureUnjoined);
      int capturing = -1;
      cudaStreamIsCapturing(side, &capturing);
      QLP_EXPECT_EQ(capturing, 0);
    }
  });
}

TEST_CASE("nullgpu/graphs: allocations and synchronisations break a capture, unless the thread says otherwise") {
  run({}, [] {
    void* s = stream();
    void* p = nullptr;
    void* graph = nullptr;
    QLP_EXPECT_EQ(cudaStreamBeginCapture(s, kGlobal), 0);
    int mode = kRelaxed;
    QLP_EXPECT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), 0);
    QLP_EXPECT_EQ(mode, kGlobal);
    QLP_EXPECT_EQ(cudaMalloc(&p, 64), 0);
    cudaThreadExchangeStreamCaptureMode(&mode);
    QLP_EXPECT_EQ(cudaMalloc(&p, 64), kCaptureUnsupported);
    QLP_EXPECT_EQ(cudaStreamEndCapture(s, &graph), kCaptureInvalidated);
    QLP_EXPECT_EQ(cudaStreamBeginCapture(s, kRelaxed), 0);
    QLP_EXPECT_EQ(cudaStreamSynchronize(s), kCaptureUnsupported);
    QLP_EXPECT_EQ(cudaStreamEndCapture(s, &graph), kCaptureInvalidated);
    QLP_EXPECT_EQ(cudaMalloc(&p, 64), 0);
  });
}

TEST_CASE("nullgpu/graphs: the bodies of a conditional node are captured, and run once at each launch") {
  run({}, [] {
    struct {  // cudaGraphNodeParams
      int type = 13, reserved[3] = {};
      unsigned long long handle = 0;
      int kind = 0;
      unsigned size = 2;
      void** bodies = nullptr;
      long long rest[26] = {};
    } parameters;
    void* s = stream();
    void* p = nullptr;
    void* graph = nullptr;
    void* node = nullptr;
    cudaMalloc(&p, 64);
    const int values[2] = {5, 6};
    QLP_EXPECT_EQ(cudaGraphCreate(&graph, 0), 0);
    QLP_EXPECT_EQ(cudaGraphConditionalHandleCreate(&parameters.handle, graph, 0, 0), 0);
    QLP_EXPECT_EQ(cudaGraphAddNode_v2(&node, graph, nullptr, nullptr, 0, &parameters), 0);
    for (int i = 0; i < 2; ++i) {
      QLP_EXPECT_EQ(cudaStreamBeginCaptureToGraph(s, parameters.bodies[i], nullptr, nullptr, 0, kRelaxed), 0);
      QLP_EXPECT_EQ(cudaMemcpyAsync(static_cast<int*>(p) + i, &values[i], sizeof(int), 1, s), 0);
      QLP_EXPECT_EQ(cudaStreamEndCapture(s, nullptr), 0);
    }
    void* copy = nullptr;
    QLP_EXPECT_EQ(cudaGraphClone(&copy, graph), 0);
    QLP_EXPECT_EQ(cudaGraphDestroy(graph), 0);
    void* exec = nullptr;
    QLP_EXPECT_EQ(cudaGraphInstantiateWithFlags(&exec, copy, 0), 0);
    QLP_EXPECT_EQ(cudaGraphDestroy(copy), 0);
    int back[2] = {};
    cudaMemcpy(back, p, sizeof back, 2);
    QLP_EXPECT_EQ(back[0], 0);
    QLP_EXPECT_EQ(cudaGraphLaunch(exec, s), 0);
    cudaMemcpy(back, p, sizeof back, 2);
    QLP_EXPECT_EQ(back[0], 5);
    QLP_EXPECT_EQ(back[1], 6);
    QLP_EXPECT_EQ(cudaGraphExecDestroy(exec), 0);
  });
}

TEST_CASE("nullgpu/graphs: other nodes that are added by their parameters are refused, and counted") {
  run({}, [] {
    int parameters[64] = {2};  // a memset
    void* graph = nullptr;
    void* node = nullptr;
    QLP_EXPECT_EQ(cudaGraphCreate(&graph, 0), 0);
    QLP_EXPECT_EQ(cudaGraphAddNode_v2(&node, graph, nullptr, nullptr, 0, parameters), 801);
    QLP_EXPECT_EQ(nullgpu_unimplemented(), std::size_t{1});
    QLP_EXPECT_EQ(std::string{nullgpu_unimplemented_name(0)}, std::string{"cudaGraphAddNode"});
  });
}
