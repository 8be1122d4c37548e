// cuDNN's recurrent layers: how a layer's weights lie in the one buffer that holds them all. (cuDNN 8 and 9; the
// library's documentation gives what each matrix is, and PyTorch's aten/src/ATen/native/cudnn/RNN.cpp checks that the
// gates of one matrix follow each other.) What they keep for the backward pass is taken to be empty, as workspaces are.
#include <array>
#include <cstdint>

#include "nullgpu/entry.h"
#include "nullgpu/objects.h"

using namespace nullgpu;

namespace {

constexpr int kBadParameter = 2000;  // CUDNN_STATUS_BAD_PARAM

struct Rnn {
  int cell, bias_mode, direction, data_type;
  std::int32_t input, hidden, projection, layers;

  /// Matrices of a kind: LSTM 4, GRU 3, plain cells 1.
  int gates() const { return cell == 2 ? 4 : cell == 3 ? 3 : 1; }
  int directions() const { return direction == 1 ? 2 : 1; }
  int pseudo_layers() const { return layers * directions(); }
  int output() const { return projection != 0 ? projection : hidden; }
  bool projects() const { return projection != 0 && projection != hidden; }
  int inputs_of(int pseudo_layer) const { return pseudo_layer < directions() ? input : output() * directions(); }
  /// CUDNN_RNN_NO_BIAS 0, one on the input's side 1, on both 2, on the recurrent side 3.
  bool has_bias(bool recurrent) const { return bias_mode == 2 || bias_mode == (recurrent ? 3 : 1); }

  std::size_t element_bytes() const {
    constexpr int kFloat = 0, kDouble = 1;
    return data_type == kFloat ? 4 : data_type == kDouble ? 8 : 2;
  }
  std::size_t matrix_elements(int pseudo_layer) const {
    const auto per_gate =
        static_cast<std::size_t>(hidden) * static_cast<std::size_t>(inputs_of(pseudo_layer) + output());
    return static_cast<std::size_t>(gates()) * per_gate + projection_elements();
  }
  std::size_t projection_elements() const {
    return projects() ? static_cast<std::size_t>(hidden) * static_cast<std::size_t>(projection) : 0;
  }
  std::size_t bias_elements() const {
    return static_cast<std::size_t>((has_bias(false) ? 1 : 0) + (has_bias(true) ? 1 : 0)) *
           static_cast<std::size_t>(gates()) * static_cast<std::size_t>(hidden);
  }
  /// Of all matrices of the layers before this one.
  std::size_t matrices_before(int pseudo_layer) const {
    std::size_t sum = 0;
    for (int layer = 0; layer < pseudo_layer; ++layer) {
      sum += matrix_elements(layer);
    }
    return sum;
  }
  std::size_t elements() const {
    return matrices_before(pseudo_layers()) + static_cast<std::size_t>(pseudo_layers()) * bias_elements();
  }
};

Rnn rnn_of(void* descriptor) { return object(descriptor).value(0, Rnn{}); }

/// A part of the weights: where it begins, and its shape; no rows where there is none.
struct Part {
  std::size_t offset = 0;
  int rows = 0, columns = 0;
};

/// `id` counts the matrices on the input's side, those on the recurrent side, and at last the projection.
Part matrix(const Rnn& rnn, int layer, int id) {
  const int gates = rnn.gates();
  const int in = rnn.inputs_of(layer), back = rnn.output();
  const auto hidden = static_cast<std::size_t>(rnn.hidden);
  const auto gate = static_cast<std::size_t>(id % gates);
  const std::size_t begin = rnn.matrices_before(layer);
  const std::size_t recurrent = begin + static_cast<std::size_t>(gates) * hidden * static_cast<std::size_t>(in);
  if (id < gates) {
    return {begin + gate * hidden * static_cast<std::size_t>(in), rnn.hidden, in};
  }
  if (id < 2 * gates) {
    return {recurrent + gate * hidden * static_cast<std::size_t>(back), rnn.hidden, back};
  }
  if (!rnn.projects()) {
    return {};
  }
  return {recurrent + static_cast<std::size_t>(gates) * hidden * static_cast<std::size_t>(back), rnn.projection,
          rnn.hidden};
}

Part bias(const Rnn& rnn, int layer, int id) {
  const int gates = rnn.gates();
  const bool recurrent = id >= gates;
  if (id >= 2 * gates || !rnn.has_bias(recurrent)) {
    return {};
  }
  const std::size_t begin =
      rnn.matrices_before(rnn.pseudo_layers()) + static_cast<std::size_t>(layer) * rnn.bias_elements();
  const auto row = static_cast<std::size_t>(recurrent && !rnn.has_bias(false) ? id - gates : id);
  return {begin + row * static_cast<std::size_t>(rnn.hidden), rnn.hidden, 1};
}

/// Both may be null: nobody asks for it.
void answer(const Rnn& rnn, const void* weights, const Part& part, void* descriptor, const void** address) {
  if (descriptor != nullptr) {
    const std::array<int, 3> dimensions{part.rows != 0 ? 1 : 0, part.rows, part.columns};
    const std::array<int, 3> strides{part.rows * part.columns, part.columns, 1};
    Object& o = object(descriptor);
    o.put(0, rnn.data_type);
    o.put(2, dimensions);
    o.put(3, strides);
  }
  if (address != nullptr) {
    *address = part.rows == 0 || weights == nullptr
                   ? nullptr
                   : static_cast<const unsigned char*>(weights) + part.offset * rnn.element_bytes();
  }
}

}  // namespace

QLP_EXPORT int cudnnSetRNNDescriptor_v8(void* descriptor, int, int cell, int bias_mode, int direction, int,
                                        int data_type, int, int, std::int32_t input, std::int32_t hidden,
                                        std::int32_t projection, std::int32_t layers, void*, std::uint32_t) {
  return library(__func__, [&] {
    object(descriptor).put(0, Rnn{cell, bias_mode, direction, data_type, input, hidden, projection, layers});
    return ok;
  });
}

QLP_EXPORT int cudnnGetRNNWeightSpaceSize(void*, void* descriptor, std::size_t* bytes) {
  return library(__func__, [&] {
    const Rnn rnn = rnn_of(descriptor);
    *bytes = rnn.elements() * rnn.element_bytes();
    return ok;
  });
}

QLP_EXPORT int cudnnGetRNNWeightParams(void*, void* descriptor, std::int32_t layer, std::size_t, const void* weights,
                                       std::int32_t id, void* matrix_descriptor, const void** matrix_address,
                                       void* bias_descriptor, const void** bias_address) {
  return library(__func__, [&] {
    const Rnn rnn = rnn_of(descriptor);
    if (layer < 0 || layer >= rnn.pseudo_layers() || id < 0 || id > 2 * rnn.gates()) {
      return kBadParameter;
    }
    answer(rnn, weights, matrix(rnn, layer, id), matrix_descriptor, matrix_address);
    answer(rnn, weights, bias(rnn, layer, id), bias_descriptor, bias_address);
    return static_cast<int>(ok);
  });
}

QLP_EXPORT int cudnnGetRNNTempSpaceSizes(void*, void*, int, void*, std::size_t* workspace, std::size_t* reserve) {
  return library(__func__, [&] {
    assume("workspaces and reserve spaces of cuDNN are taken to be empty");
    for (std::size_t* bytes : {workspace, reserve}) {
      if (bytes != nullptr) {
        *bytes = 0;
      }
    }
    return ok;
  });
}

QLP_EXPORT int cudnnBuildRNNDynamic(void*, void*, std::int32_t) { return accept(__func__); }
