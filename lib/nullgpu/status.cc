#include "nullgpu/status.h"

#include <cstring>

namespace nullgpu {

const LibraryStatus& library_status(const char* entry_point) {
  // Longer prefixes first.
  static constexpr LibraryStatus kLibraries[] = {
      {"cublas", 15, 3},                   // CUBLAS_STATUS_NOT_SUPPORTED, _ALLOC_FAILED
      {"cusparse", 10, 2},                 // CUSPARSE_STATUS_NOT_SUPPORTED, _ALLOC_FAILED
      {"cusolver", 9, 2},                  // CUSOLVER_STATUS_NOT_SUPPORTED, _ALLOC_FAILED
      {"cudnn", 3000, 4000},               // CUDNN_STATUS_NOT_SUPPORTED, _INTERNAL_ERROR of cuDNN 9
      {"curand", 999, 102},                // CURAND_STATUS_INTERNAL_ERROR, _ALLOCATION_FAILED
      {"cufft", 16, 2},                    // CUFFT_NOT_SUPPORTED, _ALLOC_FAILED
      {"cupti", 27, 999},                  // CUPTI_ERROR_NOT_SUPPORTED, _UNKNOWN
      {"nccl", 5, 3},                      // ncclInvalidUsage, ncclInternalError
      {"nvml", 3, 999},                    // NVML_ERROR_NOT_SUPPORTED, _UNKNOWN
      {"", not_supported, out_of_memory},  // the driver and the runtime
  };
  for (const LibraryStatus& library : kLibraries) {
    if (std::strncmp(entry_point, library.prefix, std::strlen(library.prefix)) == 0) {
      return library;
    }
  }
  __builtin_unreachable();
}

}  // namespace nullgpu
