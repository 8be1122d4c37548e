// The GPU that the program is given: what is in this folder, put together.
#include "verify/gpu.h"

#include <cublasLt.h>
#include <optional>

#include <cuda_runtime_api.h>
#include <nccl.h>

#include "cuda/cublas_products.h"
#include "cuda/cuda_error.h"
#include "cuda/kernels.h"
#include "cuda/nccl_communicator.h"
#include "cuda/nvml.h"
#include "cuda/segments.h"
#include "cuda/streams.h"

namespace qlp {
namespace {

std::string version(int number, int major, int minor, bool patch) {
  std::string text = std::to_string(number / major) + "." + std::to_string(number % major / minor);
  return patch ? text + "." + std::to_string(number % minor) : text;
}

std::string pci_bus_id(int ordinal) {
  std::string text(32, '\0');
  check(cudaDeviceGetPCIBusId(text.data(), static_cast<int>(text.size()), ordinal), "asking where the GPU is");
  text.resize(text.find('\0'));
  return text;
}

class CudaGpu final : public Gpu {
 public:
  /// The GPU of `options` is the current one.
  explicit CudaGpu(const GpuOptions& options)
      : options_(options), nvml_(pci_bus_id(options.ordinal)), facts_(look(options.ordinal)) {}
  ~CudaGpu() override {
    streams_.set_watch({});
    communicator_.reset();
  }

  const GpuFacts& facts() const override { return facts_; }

  GpuMemory memory() override {
    std::size_t free = 0, total = 0;
    check(cudaMemGetInfo(&free, &total), "asking for the memory in use");
    GpuMemory books{Bytes{total - free}, Bytes{total}, {}, {}};
    if (const auto processes = nvml_.processes()) {
      if (processes->own) books.by_process = Bytes{*processes->own};
      books.by_others = Bytes{processes->others};
    }
    return books;
  }

  SegmentSource& segments() override { return segments_; }

  Compute compute() override {
    if (!kernels_) {
      products_.emplace(streams_);
      streams_.set_products(&*products_);
      kernels_.emplace(streams_, &*products_, *options_.host_kernels);
    }
    Compute out;
    out.kernels = &*kernels_, out.host_kernels = options_.host_kernels, out.streams = &streams_;
    if (communicator_) out.communicator = &*communicator_;
    return out;
  }

  void warm_up() override {
    constexpr std::int64_t kSide = 64;
    constexpr std::int64_t kBytes = kSide * kSide * 2;
    const Compute computes = compute();
    void* data = nullptr;
    check(cudaMalloc(&data, 3 * kBytes), "taking memory for a first product");
    const auto matrix = [&](int place) {
      return Array{static_cast<std::byte*>(data) + place * kBytes,
                   DType::bfloat16,
                   {kSide, kSide},
                   contiguous_strides({kSide, kSide})};
    };
    for (int place : {0, 1}) computes.kernels->fill(0, matrix(place), 1);
    computes.kernels->gemm(0, matrix(2), matrix(0), matrix(1), 1, 0);
    streams_.finish(0);
    check(cudaFree(data), "giving back memory");
  }

  std::string make_rendezvous() override { return make_nccl_id(); }

  void connect(const GpuWorld& world) override {
    communicator_.emplace(streams_, world, options_.clock);
    streams_.set_watch([this] { communicator_->check_health(); });
  }
  void disconnect() override {
    if (communicator_) communicator_->finish();
  }

 private:
  GpuFacts look(int ordinal) const {
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, ordinal), "asking what the GPU is");
    std::size_t free = 0, total = 0;
    check(cudaMemGetInfo(&free, &total), "asking for the memory");
    GpuFacts facts{properties.name,
                   static_cast<std::uint32_t>(properties.major * 10 + properties.minor),
                   static_cast<std::uint32_t>(properties.multiProcessorCount),
                   Bytes{total},
                   {}};
    if (const auto driver = nvml_.driver_version()) facts.versions.push_back("driver " + *driver);
    int runtime = 0, nccl = 0;
    check(cudaRuntimeGetVersion(&runtime), "asking for the version of CUDA");
    facts.versions.push_back("CUDA " + version(runtime, 1000, 10, false));
    facts.versions.push_back("cuBLASLt " + version(static_cast<int>(cublasLtGetVersion()), 10000, 100, true));
    if (ncclGetVersion(&nccl) == ncclSuccess) facts.versions.push_back("NCCL " + version(nccl, 10000, 100, true));
    return facts;
  }

  GpuOptions options_;
  Nvml nvml_;
  GpuFacts facts_;
  CudaSegments segments_;
  CudaStreams streams_;
  std::optional<CublasProducts> products_;
  std::optional<CudaKernels> kernels_;
  std::optional<NcclCommunicator> communicator_;
};

}  // namespace
}  // namespace qlp

extern "C" __attribute__((visibility("default"))) qlp::Gpu* qlora_plan_open_gpu(const qlp::GpuOptions& options,
                                                                                std::string& error) {
  using namespace qlp;
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess) {
    error = status == cudaErrorInsufficientDriver ? "no NVIDIA driver (libcuda.so.1), or one that is older than CUDA " +
                                                        version(CUDART_VERSION, 1000, 10, false)
                                                  : std::string("no GPU: ") + cudaGetErrorString(status);
    return nullptr;
  }
  if (options.ordinal >= count) {
    error = "GPU " + std::to_string(options.ordinal) + " is not there: " + std::to_string(count) + " visible";
    return nullptr;
  }
  try {
    check(cudaSetDevice(options.ordinal), "choosing the GPU");  // before anything else makes a context on another
    return new CudaGpu(options);
  } catch (const std::exception& failure) {
    error = failure.what();
    return nullptr;
  }
}
