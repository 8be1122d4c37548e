// What CUDA says about a device: attributes (the runtime and the driver share their numbers) and cudaDeviceProp.
#pragma once

#include <cstddef>

namespace nullgpu {

/// Status. Attributes that are not known are 0, as all features are that this GPU does not have.
int device_attribute(int* value, int attribute, int device);

/// cudaLimit and CUlimit: stack, printf buffer, heap, ...; what was set is given back.
int device_limit(std::size_t* value, int limit);
int set_device_limit(int limit, std::size_t value);

/// cudaDeviceProp as CUDA 11, 12 and 13 lay it out (728, 1032 and 1008 bytes).
enum class PropertiesLayout : int { cuda11 = 0, cuda12 = 1, cuda13 = 2 };
int device_properties(void* properties, int device, PropertiesLayout layout);

}  // namespace nullgpu
