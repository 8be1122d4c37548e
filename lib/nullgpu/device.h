// The devices that the program sees, and which one each thread is on.
#pragma once

#include <array>
#include <cstddef>

namespace nullgpu {

struct Device {
  int physical;  // as NVML counts
  std::array<unsigned char, 16> uuid;
};

/// How many there are by CUDA_VISIBLE_DEVICES, and the one with this ordinal (null: there is none).
int device_count();
const Device* find_device(int ordinal);
/// As NVML counts, whatever is visible.
Device physical_device(int index);
/// "GPU-01234567-...".
std::array<char, 41> uuid_text(const Device& device);
std::array<char, 16> pci_bus_id(const Device& device);

/// The current device of this thread; the driver's context is its primary one.
int current_device();
int set_current_device(int ordinal);
/// Makes the current device's primary context if there is none. ok, or why there is no device.
int use_current_device();
int use_device(int ordinal);
bool device_in_use(int ordinal);
/// Drops the primary context.
void leave_device(int ordinal);

/// Contexts as the driver hands them out: a primary one per device, and those of cuCtxCreate.
struct Context {
  int device;
  bool primary;
};
Context* primary_context(int ordinal);
Context* new_context(int ordinal);
/// Null where this thread has none.
Context* current_context();
void set_current_context(Context* context);

}  // namespace nullgpu
