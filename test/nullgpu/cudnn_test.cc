#include <doctest/doctest.h>

#include "nullgpu/null_gpu.h"

namespace {

using namespace null_gpu;

constexpr int kLstm = 2, kGru = 3;
constexpr int kNoBias = 0, kDoubleBias = 2;
constexpr int kFloat = 0, kHalf = 2;

// NOLINTBEGIN(readability-identifier-naming): their own names
QLP_CALL(int, cudnnCreateRNNDescriptor, void**)
QLP_CALL(int, cudnnCreateTensorDescriptor, void**)
QLP_CALL(int, cudnnSetRNNDescriptor_v8, void*, int, int, int, int, int, int, int, int, int, int, int, int, void*,
         unsigned)
QLP_CALL(int, cudnnGetRNNWeightSpaceSize, void*, void*, std::size_t*)
QLP_CALL(int, cudnnGetRNNWeightParams, void*, void*, int, std::size_t, const void*, int, void*, void**, void*, void**)
QLP_CALL(int, cudnnGetTensorNdDescriptor, void*, int, int*, int*, int*, int*)
// NOLINTEND(readability-identifier-naming)

struct Layers {
  int cell, bias, directions, type, input, hidden, projection, layers;
};

void* rnn(const Layers& of) {
  void* descriptor = nullptr;
  QLP_EXPECT_EQ(cudnnCreateRNNDescriptor(&descriptor), 0);
  QLP_EXPECT_EQ(cudnnSetRNNDescriptor_v8(descriptor, 0, of.cell, of.bias, of.directions - 1, 0, of.type, of.type, 0,
                                         of.input, of.hidden, of.projection, of.layers, nullptr, 0),
                0);
  return descriptor;
}

std::size_t weight_bytes(void* descriptor) {
  std::size_t bytes = 0;
  QLP_EXPECT_EQ(cudnnGetRNNWeightSpaceSize(nullptr, descriptor, &bytes), 0);
  return bytes;
}

/// Where a part lies in the weights, in bytes, and how many elements it has; -1 where there is none.
struct Part {
  long offset;
  int elements;
};
Part part(void* descriptor, int layer, int id, bool bias) {
  static char weights[1];
  void* shape = nullptr;
  void* address = nullptr;
  cudnnCreateTensorDescriptor(&shape);
  QLP_EXPECT_EQ(cudnnGetRNNWeightParams(nullptr, descriptor, layer, 0, weights, id, bias ? nullptr : shape,
                                        bias ? nullptr : &address, bias ? shape : nullptr, bias ? &address : nullptr),
                0);
  int type = 0, count = 0, dimensions[3]{}, strides[3]{};
  QLP_EXPECT_EQ(cudnnGetTensorNdDescriptor(shape, 3, &type, &count, dimensions, strides), 0);
  QLP_EXPECT_EQ(count, 3);
  return {address == nullptr ? -1 : static_cast<char*>(address) - weights,
          dimensions[0] * dimensions[1] * dimensions[2]};
}

}  // namespace

TEST_CASE("nullgpu/cudnn: the weights of recurrent layers fill their buffer without gaps or overlaps") {
  run({}, [] {
    void* lstm = rnn({kLstm, kDoubleBias, 2, kFloat, 5, 7, 3, 2});
    long next = 0;
    for (const bool bias : {false, true}) {
      for (int layer = 0; layer < 4; ++layer) {
        for (int id = 0; id < (bias ? 8 : 9); ++id) {
          const Part p = part(lstm, layer, id, bias);
          QLP_EXPECT_EQ(p.offset, next);
          next += p.elements * 4L;
        }
      }
    }
    QLP_EXPECT_EQ(weight_bytes(lstm), static_cast<std::size_t>(next));
    // As PyTorch counts the parameters of such a layer.
    const int layer0 = 4 * 7 * 5 + 4 * 7 * 3 + 3 * 7 + 2 * 4 * 7, layer1 = 4 * 7 * 6 + 4 * 7 * 3 + 3 * 7 + 2 * 4 * 7;
    QLP_EXPECT_EQ(weight_bytes(lstm), std::size_t{4} * 2 * (layer0 + layer1));
  });
}

TEST_CASE("nullgpu/cudnn: without biases and in half precision there are only matrices, of two bytes an element") {
  run({}, [] {
    void* gru = rnn({kGru, kNoBias, 1, kHalf, 5, 7, 7, 1});
    QLP_EXPECT_EQ(weight_bytes(gru), std::size_t{2} * 3 * 7 * (5 + 7));
    QLP_EXPECT_EQ(part(gru, 0, 3, false).offset, 2L * 3 * 7 * 5);
    QLP_EXPECT_EQ(part(gru, 0, 0, true).offset, -1L);
    QLP_EXPECT(cudnnGetRNNWeightParams(nullptr, gru, 1, 0, nullptr, 0, nullptr, nullptr, nullptr, nullptr) != 0);
  });
}
