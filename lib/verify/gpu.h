// A GPU as a rank uses it. Behind this is CUDA with NCCL, in a library of its own that is opened when a run asks for
// it: the program itself needs neither.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "memory/segment_source.h"
#include "tensor/communicator.h"
#include "tensor/device.h"
#include "verify/gpu_failure.h"

namespace qlp {

/// What a GPU is, and what drives it.
struct GpuFacts {
  std::string name;  ///< as nvidia-smi prints it
  std::uint32_t compute_capability = 0;
  std::uint32_t sm_count = 0;
  Bytes capacity;                     ///< cudaMemGetInfo's total
  std::vector<std::string> versions;  ///< "driver 580.65.06", "CUDA 13.0", "cuBLASLt 13.1.0", "NCCL 2.28.9"
};

/// The device's books at one moment.
struct GpuMemory {
  Bytes used, total;                ///< of the whole device (cudaMemGetInfo)
  std::optional<Bytes> by_process;  ///< by this one (NVML), where the driver tells
  std::optional<Bytes> by_others;   ///< by other processes (NVML)
};

/// What ranks have to agree on before they can talk.
struct GpuWorld {
  std::int64_t rank = 0, world_size = 1;
  std::string id;                             ///< what make_rendezvous() gave rank 0
  std::vector<RankGroup> groups;              ///< that will be asked for, in the same order on every rank
  std::chrono::milliseconds timeout{60'000};  ///< for making them, and for any wait for the device afterwards
};

/// Functions throw GpuFailure, where nothing else is said.
class Gpu {
 public:
  Gpu() = default;
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;
  virtual ~Gpu() = default;

  virtual const GpuFacts& facts() const = 0;
  /// May be called on any thread.
  virtual GpuMemory memory() = 0;

  virtual SegmentSource& segments() = 0;
  /// Kernels, streams, and after connect() the communicator. Makes streams and handles when they are first used.
  virtual Compute compute() = 0;

  /// Makes the handles of the libraries, and runs a first product on memory of its own, which is given back.
  virtual void warm_up() = 0;

  /// Any bytes, by which the ranks find rank 0 that makes them.
  virtual std::string make_rendezvous() = 0;
  /// Returns when all ranks have called it.
  virtual void connect(const GpuWorld& world) = 0;
  /// Ends the communicators, on all ranks that connected: waits for what is on its way, and throws
  /// CommunicatorFailure where that fails.
  virtual void disconnect() = 0;
};

struct GpuOptions {
  int ordinal = 0;  ///< among the visible ones
  std::function<std::chrono::milliseconds()> clock;
  Kernels* host_kernels = nullptr;  ///< for tensors in host memory, and for what is cast on its way there
};

/// Opens the library at `path` and in it the GPU. The error says what is missing: the library itself, one that it
/// needs, the driver, the GPU. The library stays open.
Result<std::unique_ptr<Gpu>, std::string> open_gpu(const std::string& path, const GpuOptions& options);

/// The one function that the library exports, as kOpenGpu. Null, and why.
using OpenGpu = Gpu* (*)(const GpuOptions& options, std::string& error);
inline constexpr const char* kOpenGpu = "qlora_plan_open_gpu";

}  // namespace qlp
