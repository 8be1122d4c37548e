#include "nullgpu/device_attributes.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <string>
#include <vector>

#include "nullgpu/capabilities.h"
#include "nullgpu/device.h"
#include "nullgpu/settings.h"
#include "nullgpu/status.h"

namespace nullgpu {
namespace {

constexpr int kLargest = 2147483647;

const Capability& capability() { return *find_capability(settings().compute_capability); }

// The numbers of cudaDeviceAttr (driver_types.h) and CUdevice_attribute (cuda.h), which are the same.
int attribute_value(int attribute, const Device& device) {
  const Settings& s = settings();
  const Capability& c = capability();
  switch (attribute) {
    case 1:  // threads per block, and block dimensions x and y
    case 2:
    case 3:
      return 1024;
    case 4:
      return 64;
    case 5:
      return kLargest;
    case 6:
    case 7:
      return 65535;
    case 8:  // shared memory per block
      return 48 * 1024;
    case 9:  // constant memory
      return 65536;
    case 10:  // warp
      return 32;
    case 11:  // pitch
      return kLargest;
    case 12:  // registers per block and per multiprocessor
    case 82:
      return 65536;
    case 13:
      return s.clock_khz;
    case 14:  // alignment of textures and surfaces
    case 30:
      return 512;
    case 51:  // texture pitch alignment
      return 32;
    case 15:  // copies and kernels overlap
    case 19:  // host memory can be mapped
    case 31:  // concurrent kernels
    case 41:  // unified addressing
    case 78:  // stream priorities
    case 79:  // L1 caches: global, local
    case 80:
    case 83:  // managed memory
    case 89:  // concurrent managed access
    case 90:  // compute preemption
    case 91:  // registered memory by the host's pointer
    case 92:  // stream memory operations (v1), 64-bit ones, WAIT_VALUE_NOR
    case 93:
    case 94:
    case 95:   // cooperative launch
    case 99:   // host memory can be registered
    case 102:  // virtual memory management
    case 103:  // its handles as file descriptors
    case 115:  // memory pools
    case 121:  // deferred mapping of arrays
    case 122:  // stream memory operations (v2)
    case 123:
    case 125:  // IPC events
    case 129:  // unified function pointers
      return 1;
    case 16:
      return s.multiprocessors;
    case 20:  // compute mode: default
      return 0;
    case 21:  // textures: 1D, 2D, 3D
      return 131072;
    case 22:
    case 23:
      return attribute == 22 ? 131072 : 65536;
    case 24:
    case 25:
    case 26:
      return 16384;
    case 33:
      return device.physical + 1;
    case 34:  // PCI device, domain
    case 50:
      return 0;
    case 36:
      return s.memory_khz;
    case 37:
      return s.bus_bits;
    case 38:
      return static_cast<int>(s.l2_bytes);
    case 39:
      return c.threads_per_multiprocessor;
    case 40:  // copy engines
      return 3;
    case 75:
      return s.compute_capability / 10;
    case 76:
      return s.compute_capability % 10;
    case 81:
      return c.shared_bytes_per_multiprocessor;
    case 87:
      return c.fp32_per_fp64;
    case 97:
      return c.shared_bytes_per_block_optin;
    case 106:
      return c.blocks_per_multiprocessor;
    case 108:  // most of L2 that can persist, and the window
      return s.compute_capability >= 80 ? static_cast<int>(s.l2_bytes / 16 * 11) : 0;
    case 109:
      return s.compute_capability >= 80 ? 134213632 : 0;
    case 111:
      return c.reserved_shared_bytes_per_block;
    case 118:  // GPUDirect RDMA's writes are ordered for all devices
      return 200;
    case 119:  // handle types of memory pools: file descriptors
      return 1;
    case 120:  // cluster launch, tensor map access
    case 127:
      return static_cast<int>(c.cluster_launch);
    case 126:  // memory synchronisation domains
      return c.cluster_launch ? 4 : 1;
    default:
      return 0;
  }
}

struct Field {
  short at[3];  // offset in the layout of CUDA 11, 12, 13; -1 where there is none
  int attribute;
};

// Offsets of cudaDeviceProp's members that hold an attribute as an int: offsetof on driver_types.h of CUDA 11.8, 12.8
// (12.1 is the same) and 13.0.
constexpr Field kFields[] = {
    {{304, 304, 304}, 12},                                                 // regsPerBlock
    {{308, 308, 308}, 10},                                                 // warpSize
    {{320, 320, 320}, 1},                                                  // maxThreadsPerBlock
    {{324, 324, 324}, 2},                                                  // maxThreadsDim
    {{328, 328, 328}, 3},   {{332, 332, 332}, 4},  {{336, 336, 336}, 5},   // maxGridSize
    {{340, 340, 340}, 6},   {{344, 344, 344}, 7},  {{348, 348, -1}, 13},   // clockRate
    {{360, 360, 360}, 75},                                                 // major
    {{364, 364, 364}, 76},                                                 // minor
    {{384, 384, -1}, 15},                                                  // deviceOverlap
    {{388, 388, 384}, 16},                                                 // multiProcessorCount
    {{400, 400, 392}, 19},                                                 // canMapHostMemory
    {{408, 408, 396}, 21},                                                 // maxTexture1D
    {{420, 420, 404}, 22},                                                 // maxTexture2D
    {{424, 424, 408}, 23},  {{456, 456, 440}, 24},                         // maxTexture3D
    {{460, 460, 444}, 25},  {{464, 464, 448}, 26}, {{576, 576, 560}, 31},  // concurrentKernels
    {{584, 584, 568}, 33},                                                 // pciBusID
    {{600, 600, 584}, 40},                                                 // asyncEngineCount
    {{604, 604, 588}, 41},                                                 // unifiedAddressing
    {{608, 608, -1}, 36},                                                  // memoryClockRate
    {{612, 612, 592}, 37},                                                 // memoryBusWidth
    {{616, 616, 596}, 38},                                                 // l2CacheSize
    {{620, 620, 600}, 108},                                                // persistingL2CacheMaxSize
    {{624, 624, 604}, 39},                                                 // maxThreadsPerMultiProcessor
    {{628, 628, 608}, 78},                                                 // streamPrioritiesSupported
    {{632, 632, 612}, 79},                                                 // globalL1CacheSupported
    {{636, 636, 616}, 80},                                                 // localL1CacheSupported
    {{648, 648, 632}, 82},                                                 // regsPerMultiprocessor
    {{652, 652, 636}, 83},                                                 // managedMemory
    {{668, 668, -1}, 87},                                                  // singleToDoublePrecisionPerfRatio
    {{676, 676, 656}, 89},                                                 // concurrentManagedAccess
    {{680, 680, 660}, 90},                                                 // computePreemptionSupported
    {{684, 684, 664}, 91},                                                 // canUseHostPointerForRegisteredMem
    {{688, 688, 668}, 95},                                                 // cooperativeLaunch
    {{712, 712, 688}, 106},                                                // maxBlocksPerMultiProcessor
    {{716, 716, 692}, 109},                                                // accessPolicyMaxWindowSize
    {{-1, 728, 704}, 99},                                                  // hostRegisterSupported
    {{-1, 744, 720}, 115},                                                 // memoryPoolsSupported
    {{-1, 756, 732}, 118},                                                 // gpuDirectRDMAWritesOrdering
    {{-1, 760, 736}, 119},                                                 // memoryPoolSupportedHandleTypes
    {{-1, 764, 740}, 121},                                                 // deferredMappingCudaArraySupported
    {{-1, 768, 744}, 125},                                                 // ipcEventSupported
    {{-1, 772, 748}, 120},                                                 // clusterLaunch
    {{-1, 776, 752}, 129},                                                 // unifiedFunctionPointers
};

// Those that are a size_t.
constexpr Field kSizes[] = {
    {{296, 296, 296}, 8},    // sharedMemPerBlock
    {{312, 312, 312}, 11},   // memPitch
    {{352, 352, 352}, 9},    // totalConstMem
    {{368, 368, 368}, 14},   // textureAlignment
    {{376, 376, 376}, 51},   // texturePitchAlignment
    {{568, 568, 552}, 14},   // surfaceAlignment
    {{640, 640, 624}, 81},   // sharedMemPerMultiprocessor
    {{696, 696, 672}, 97},   // sharedMemPerBlockOptin
    {{720, 720, 696}, 111},  // reservedSharedMemPerBlock
};

constexpr std::size_t kBytes[] = {728, 1032, 1008};

template <class Int>
void put(unsigned char* properties, int offset, Int value) {
  if (offset >= 0) {
    std::memcpy(properties + offset, &value, sizeof value);
  }
}

// Defaults of a fresh context (CUDA C++ Programming Guide; cudaDeviceGetLimit on an A100).
constexpr std::size_t kLimits[] = {1024, 1048576, 8388608, 2, 2048, 128, 0};

std::atomic<std::size_t>* limits() {
  static auto* const kValues = [] {
    constexpr std::size_t kCount = std::size(kLimits);
    auto* values = new std::array<std::atomic<std::size_t>, kCount>;
    for (std::size_t i = 0; i < kCount; ++i) {
      (*values)[i].store(kLimits[i]);
    }
    return values;
  }();
  return kValues->data();
}

}  // namespace

int device_attribute(int* value, int attribute, int device) {
  const Device* d = find_device(device);
  if (d == nullptr) {
    return invalid_device;
  }
  if (value == nullptr || attribute <= 0) {
    return invalid_value;
  }
  *value = attribute_value(attribute, *d);
  return ok;
}

int device_limit(std::size_t* value, int limit) {
  if (value == nullptr || limit < 0 || limit >= static_cast<int>(std::size(kLimits))) {
    return invalid_value;
  }
  *value = limits()[limit].load();
  return ok;
}

int set_device_limit(int limit, std::size_t value) {
  if (limit < 0 || limit >= static_cast<int>(std::size(kLimits))) {
    return invalid_value;
  }
  limits()[limit].store(value);
  return ok;
}

int device_properties(void* properties, int device, PropertiesLayout layout) {
  const Device* d = find_device(device);
  if (d == nullptr) {
    return invalid_device;
  }
  if (properties == nullptr) {
    return invalid_value;
  }
  const auto column = static_cast<std::size_t>(layout);
  std::vector<unsigned char> p(kBytes[column], 0);
  const std::string& name = settings().name;
  std::memcpy(p.data(), name.data(), std::min<std::size_t>(name.size(), 255));
  std::memcpy(p.data() + 256, d->uuid.data(), d->uuid.size());
  put(p.data(), 288, settings().bytes);  // totalGlobalMem
  for (const Field& f : kFields) {
    put(p.data(), f.at[column], attribute_value(f.attribute, *d));
  }
  for (const Field& f : kSizes) {
    put(p.data(), f.at[column], static_cast<std::size_t>(attribute_value(f.attribute, *d)));
  }
  std::memcpy(properties, p.data(), p.size());
  return ok;
}

}  // namespace nullgpu
