// Names of the driver's entry points: cuGetProcAddress takes a plain name and a CUDA version, and gives the newest
// variant that this version knew.
#pragma once

namespace nullgpu {

/// Null: no such name. `version` as 12080 for CUDA 12.8.
void* driver_entry_point(const char* name, int version);

}  // namespace nullgpu
