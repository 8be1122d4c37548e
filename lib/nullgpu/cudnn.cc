// cuDNN: handles, descriptors, sizes. Everything that computes is a launch (entry_points/cudnn.txt). Workspaces and
// reserve spaces are taken to be empty: what a real GPU would choose by its own heuristics is not known here, and each
// time that this matters it is noted as an assumption in the report.
#include <cstdint>
#include <cstring>

#include "nullgpu/entry.h"
#include "nullgpu/interpose.h"
#include "nullgpu/objects.h"

using namespace nullgpu;

namespace {

constexpr int kBadParameter = 2000;  // CUDNN_STATUS_BAD_PARAM

// libcudnn.so.9 passes every call on to libraries beside it, by names that come back here; libcudnn_graph answers
// itself.
std::size_t version_of_real(const char* name) {
  if (load_beside("libcudnn.so.9", "libcudnn_graph.so.9")) {
    if (const auto version = ask_real<std::size_t>("libcudnn_graph.so.9", name)) {
      return *version;
    }
  }
  return ask_real<std::size_t>("libcudnn.so.8", name).value_or(0);
}

int no_size(const char* name, std::size_t* bytes) {
  return library(name, [&] {
    assume("workspaces and reserve spaces of cuDNN are taken to be empty");
    *bytes = 0;
    return ok;
  });
}

}  // namespace

QLP_EXPORT std::size_t cudnnGetVersion() {
  static const std::size_t kVersion = version_of_real("cudnnGetVersion");
  return kVersion != 0 ? kVersion : 91002;
}
QLP_EXPORT std::size_t cudnnGetMaxDeviceVersion() { return cudnnGetVersion(); }

QLP_EXPORT std::size_t cudnnGetCudartVersion() {
  static const std::size_t kVersion = version_of_real("cudnnGetCudartVersion");
  return kVersion != 0 ? kVersion : 12080;
}

QLP_EXPORT int cudnnGetProperty(int type, int* value) {
  return query(__func__, [&] {
    const auto version = static_cast<int>(cudnnGetVersion());  // 91002, and 8902 before 9.0
    const int major = version >= 90000 ? version / 10000 : version / 1000;
    const int minor = version >= 90000 ? version / 100 % 100 : version / 100 % 10;
    if (type < 0 || type > 2) {
      return kBadParameter;
    }
    *value = type == 0 ? major : type == 1 ? minor : version % 100;
    return static_cast<int>(ok);
  });
}

QLP_EXPORT const char* cudnnGetErrorString(int status) {
  switch (status) {
    case 0:
      return "CUDNN_STATUS_SUCCESS";
    case kBadParameter:
      return "CUDNN_STATUS_BAD_PARAM";
    case 3000:
      return "CUDNN_STATUS_NOT_SUPPORTED";
    case 4000:
      return "CUDNN_STATUS_INTERNAL_ERROR";
    default:
      return "CUDNN_STATUS_UNKNOWN";
  }
}

QLP_EXPORT void cudnnGetLastErrorString(char* text, std::size_t room) {
  if (room > 0) {
    text[0] = '\0';
  }
}

QLP_EXPORT int cudnnCreate(void** handle) { return create(__func__, handle); }
QLP_EXPORT int cudnnDestroy(void* handle) { return destroy(__func__, handle); }

QLP_EXPORT int cudnnSetStream(void* handle, void* stream) {
  return library(__func__, [&] {
    object(handle).stream = stream;
    return ok;
  });
}

QLP_EXPORT int cudnnGetStream(void* handle, void** stream) {
  return library(__func__, [&] {
    *stream = object(handle).stream;
    return ok;
  });
}

#define QLP_DESCRIPTOR(kind)                                                                               \
  QLP_EXPORT int cudnnCreate##kind##Descriptor(void** descriptor) { return create(__func__, descriptor); } \
  QLP_EXPORT int cudnnDestroy##kind##Descriptor(void* descriptor) { return destroy(__func__, descriptor); }
QLP_DESCRIPTOR(Tensor)
QLP_DESCRIPTOR(Filter)
QLP_DESCRIPTOR(Convolution)
QLP_DESCRIPTOR(Activation)
QLP_DESCRIPTOR(Pooling)
QLP_DESCRIPTOR(Dropout)
QLP_DESCRIPTOR(RNN)
QLP_DESCRIPTOR(RNNData)
QLP_DESCRIPTOR(CTCLoss)
QLP_DESCRIPTOR(SpatialTransformer)
QLP_DESCRIPTOR(OpTensor)
QLP_DESCRIPTOR(ReduceTensor)
QLP_DESCRIPTOR(LRN)
QLP_DESCRIPTOR(Attn)
QLP_DESCRIPTOR(SeqData)

#define QLP_ACCEPT(name) \
  QLP_EXPORT int name() { return accept(__func__); }
QLP_ACCEPT(cudnnSetTensor4dDescriptor)
QLP_ACCEPT(cudnnSetTensor4dDescriptorEx)
QLP_ACCEPT(cudnnSetFilter4dDescriptor)
QLP_ACCEPT(cudnnSetConvolution2dDescriptor)
QLP_ACCEPT(cudnnSetConvolutionNdDescriptor)
QLP_ACCEPT(cudnnSetConvolutionGroupCount)
QLP_ACCEPT(cudnnSetConvolutionMathType)
QLP_ACCEPT(cudnnSetActivationDescriptor)
QLP_ACCEPT(cudnnSetPooling2dDescriptor)
QLP_ACCEPT(cudnnSetPoolingNdDescriptor)
QLP_ACCEPT(cudnnSetDropoutDescriptor)
QLP_ACCEPT(cudnnRestoreDropoutDescriptor)
QLP_ACCEPT(cudnnSetRNNDataDescriptor)
QLP_ACCEPT(cudnnSetCTCLossDescriptor)
QLP_ACCEPT(cudnnSetCTCLossDescriptorEx)
QLP_ACCEPT(cudnnSetCTCLossDescriptor_v8)
QLP_ACCEPT(cudnnSetCTCLossDescriptor_v9)
QLP_ACCEPT(cudnnSetSpatialTransformerNdDescriptor)
QLP_ACCEPT(cudnnSetOpTensorDescriptor)
QLP_ACCEPT(cudnnSetReduceTensorDescriptor)
QLP_ACCEPT(cudnnSetCallback)

// A tensor's or filter's numbers, given back by the getters: attribute 0 the type, 1 the format, 2 dimensions, 3
// strides.
QLP_EXPORT int cudnnSetTensorNdDescriptor(void* descriptor, int type, int n, const int* dimensions,
                                          const int* strides) {
  return library(__func__, [&] {
    const auto bytes = static_cast<std::size_t>(n) * sizeof(int);
    object(descriptor).put(0, type);
    object(descriptor).set(2, dimensions, bytes);
    object(descriptor).set(3, strides, bytes);
    return ok;
  });
}

QLP_EXPORT int cudnnGetTensorNdDescriptor(void* descriptor, int room, int* type, int* n, int* dimensions,
                                          int* strides) {
  return library(__func__, [&] {
    const Object& o = object(descriptor);
    const auto bytes = static_cast<std::size_t>(room) * sizeof(int);
    *type = o.value(0, 0);
    *n = static_cast<int>(o.get(2, dimensions, bytes) / sizeof(int));
    o.get(3, strides, bytes);
    return ok;
  });
}

QLP_EXPORT int cudnnSetFilterNdDescriptor(void* descriptor, int type, int format, int n, const int* dimensions) {
  return library(__func__, [&] {
    object(descriptor).put(0, type);
    object(descriptor).put(1, format);
    object(descriptor).set(2, dimensions, static_cast<std::size_t>(n) * sizeof(int));
    return ok;
  });
}

QLP_EXPORT int cudnnGetFilterNdDescriptor(void* descriptor, int room, int* type, int* format, int* n, int* dimensions) {
  return library(__func__, [&] {
    const Object& o = object(descriptor);
    *type = o.value(0, 0);
    *format = o.value(1, 0);
    *n = static_cast<int>(o.get(2, dimensions, static_cast<std::size_t>(room) * sizeof(int)) / sizeof(int));
    return ok;
  });
}

// Sizes.
QLP_EXPORT int cudnnDropoutGetStatesSize(void*, std::size_t* bytes) { return no_size(__func__, bytes); }
QLP_EXPORT int cudnnDropoutGetReserveSpaceSize(void*, std::size_t* bytes) { return no_size(__func__, bytes); }
QLP_EXPORT int cudnnGetConvolutionForwardWorkspaceSize(void*, void*, void*, void*, void*, int, std::size_t* bytes) {
  return no_size(__func__, bytes);
}
QLP_EXPORT int cudnnGetConvolutionBackwardDataWorkspaceSize(void*, void*, void*, void*, void*, int,
                                                            std::size_t* bytes) {
  return no_size(__func__, bytes);
}
QLP_EXPORT int cudnnGetConvolutionBackwardFilterWorkspaceSize(void*, void*, void*, void*, void*, int,
                                                              std::size_t* bytes) {
  return no_size(__func__, bytes);
}
QLP_EXPORT int cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(void*, int, int, void*, void*, void*, void*,
                                                                        void*, std::size_t* bytes) {
  return no_size(__func__, bytes);
}
QLP_EXPORT int cudnnGetBatchNormalizationBackwardExWorkspaceSize(void*, int, int, void*, void*, void*, void*, void*,
                                                                 void*, void*, std::size_t* bytes) {
  return no_size(__func__, bytes);
}
QLP_EXPORT int cudnnGetBatchNormalizationTrainingExReserveSpaceSize(void*, int, int, void*, void*, std::size_t* bytes) {
  return no_size(__func__, bytes);
}
QLP_EXPORT int cudnnGetCTCLossWorkspaceSize(void*, void*, void*, const int*, const int*, const int*, int, void*,
                                            std::size_t* bytes) {
  return no_size(__func__, bytes);
}
QLP_EXPORT int cudnnGetCTCLossWorkspaceSize_v8(void*, int, void*, void*, void*, std::size_t* bytes) {
  return no_size(__func__, bytes);
}

// cudnnConvolution*AlgoPerf_t of cuDNN 8 and 9: algorithm, status, time, bytes, determinism, math type, reserve: 48
// bytes.
namespace {

struct Algorithm {
  int algorithm;
  int status;
  float time;
  std::size_t bytes;
  int determinism;
  int math_type;
  int reserved[3];
};

int one_algorithm(const char* name, int wanted, int* found, Algorithm* results) {
  return library(name, [&] {
    if (wanted < 1) {
      return kBadParameter;
    }
    assume("workspaces and reserve spaces of cuDNN are taken to be empty");
    results[0] = Algorithm{1, ok, 1.0F, 0, 1, 1, {}};
    *found = 1;
    return static_cast<int>(ok);
  });
}

}  // namespace

#define QLP_HEURISTIC(kind)                                                                                           \
  QLP_EXPORT int cudnnGetConvolution##kind##Algorithm_v7(void*, void*, void*, void*, void*, int wanted, int* found,   \
                                                         Algorithm* results) {                                        \
    return one_algorithm(__func__, wanted, found, results);                                                           \
  }                                                                                                                   \
  QLP_EXPORT int cudnnFindConvolution##kind##AlgorithmEx(void*, void*, const void*, void*, const void*, void*, void*, \
                                                         void*, int wanted, int* found, Algorithm* results, void*,    \
                                                         std::size_t) {                                               \
    return one_algorithm(__func__, wanted, found, results);                                                           \
  }
QLP_HEURISTIC(Forward)
QLP_HEURISTIC(BackwardData)
QLP_HEURISTIC(BackwardFilter)
