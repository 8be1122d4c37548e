// Status codes of the libraries that the null GPU stands in for. The runtime and the driver share theirs.
// Sources: driver_types.h, cuda.h (CUDA 11.8 to 13.0), cublas_api.h, cudnn_graph.h (9), nccl.h (2.28), nvml.h.
#pragma once

namespace nullgpu {

enum Status : int {
  ok = 0,
  invalid_value = 1,
  out_of_memory = 2,
  not_initialized = 3,
  invalid_configuration = 9,
  invalid_pitch = 12,
  invalid_symbol = 13,
  no_device = 100,
  invalid_device = 101,
  invalid_context = 201,
  invalid_image = 200,
  map_failed = 205,
  already_mapped = 208,
  peer_access_unsupported = 217,
  file_not_found = 301,
  invalid_handle = 400,
  not_found = 500,
  not_ready = 600,
  peer_access_already_enabled = 704,
  peer_access_not_enabled = 705,
  host_memory_already_registered = 712,
  host_memory_not_registered = 713,
  not_permitted = 800,
  not_supported = 801,
  capture_unsupported = 900,
  capture_invalidated = 901,
  capture_merge = 902,
  capture_unmatched = 903,
  capture_unjoined = 904,
  captured_event = 907,
  capture_wrong_thread = 908,
};

/// What each library answers for a call that it cannot do, and the failure that NULLGPU_FAIL asks for by default.
struct LibraryStatus {
  const char* prefix;
  int unsupported;
  int failure;
};

const LibraryStatus& library_status(const char* entry_point);

}  // namespace nullgpu
