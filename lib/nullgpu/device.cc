#include "nullgpu/device.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "nullgpu/settings.h"
#include "nullgpu/status.h"

namespace nullgpu {
namespace {

struct Slot {
  Device device;
  Context primary;
  std::atomic<bool> used{false};
};

// CUDA_VISIBLE_DEVICES: numbers or beginnings of UUIDs, up to the first that is no device; one that is named twice
// leaves none (CUDA C++ Programming Guide, "Environment Variables").
std::vector<int> visible() {
  std::vector<int> result;
  const Settings& s = settings();
  if (!s.has_visible_devices) {
    for (int i = 0; i < s.devices; ++i) {
      result.push_back(i);
    }
    return result;
  }
  const std::string& text = s.visible_devices;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string item = text.substr(at, end - at);
    at = end + 1;
    int index = -1;
    if (item.compare(0, 4, "GPU-") == 0) {
      for (int i = 0; i < s.devices; ++i) {
        if (std::strncmp(uuid_text(physical_device(i)).data(), item.c_str(), item.size()) == 0) {
          index = i;
        }
      }
    } else {
      char* rest = nullptr;
      const long value = std::strtol(item.c_str(), &rest, 10);
      index = rest == item.c_str() || value < 0 || value >= s.devices ? -1 : static_cast<int>(value);
    }
    if (index < 0) {
      break;
    }
    for (const int other : result) {
      if (other == index) {
        return {};
      }
    }
    result.push_back(index);
  }
  return result;
}

std::deque<Slot>& slots() {
  static std::deque<Slot>* const kSlots = [] {
    auto* made = new std::deque<Slot>;
    for (const int index : visible()) {
      Slot& slot = made->emplace_back();
      slot.device = physical_device(index);
      slot.primary = {static_cast<int>(made->size()) - 1, true};
    }
    return made;
  }();
  return *kSlots;
}

Slot* find_slot(int ordinal) {
  return ordinal < 0 || ordinal >= static_cast<int>(slots().size()) ? nullptr
                                                                    : &slots()[static_cast<std::size_t>(ordinal)];
}

thread_local int t_device = 0;
thread_local Context* t_context = nullptr;

}  // namespace

int device_count() { return static_cast<int>(slots().size()); }

const Device* find_device(int ordinal) {
  const Slot* slot = find_slot(ordinal);
  return slot == nullptr ? nullptr : &slot->device;
}

Device physical_device(int index) {
  Device device{index, {}};
  const unsigned seed = static_cast<unsigned>(index) * 2654435761U;
  for (std::size_t i = 0; i < device.uuid.size(); ++i) {
    device.uuid[i] = static_cast<unsigned char>((0x4eU + i * 37U) ^ (seed >> (8U * (i % 4U))));
  }
  return device;
}

std::array<char, 41> uuid_text(const Device& device) {
  std::array<char, 41> text{};
  std::size_t at = 4;
  std::memcpy(text.data(), "GPU-", 4);
  for (std::size_t i = 0; i < device.uuid.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) {
      text[at++] = '-';
    }
    at += static_cast<std::size_t>(std::snprintf(&text[at], text.size() - at, "%02x", device.uuid[i]));
  }
  return text;
}

std::array<char, 16> pci_bus_id(const Device& device) {
  std::array<char, 16> text{};
  const auto bus = static_cast<unsigned>(device.physical) + 1U;
  std::snprintf(text.data(), text.size(), "%04X:%02X:00.0", (bus >> 8U) & 0xffffU, bus & 0xffU);
  return text;
}

int current_device() { return t_context != nullptr ? t_context->device : t_device; }

int set_current_device(int ordinal) {
  Slot* slot = find_slot(ordinal);
  if (slot == nullptr) {
    return slots().empty() ? no_device : invalid_device;
  }
  t_device = ordinal;
  t_context = &slot->primary;
  slot->used.store(true, std::memory_order_relaxed);
  return ok;
}

int use_current_device() {
  if (t_context != nullptr && !t_context->primary) {
    return ok;
  }
  return set_current_device(current_device());
}

int use_device(int ordinal) {
  Slot* slot = find_slot(ordinal);
  if (slot == nullptr) {
    return invalid_device;
  }
  slot->used.store(true, std::memory_order_relaxed);
  return ok;
}

bool device_in_use(int ordinal) {
  const Slot* slot = find_slot(ordinal);
  return slot != nullptr && slot->used.load(std::memory_order_relaxed);
}

void leave_device(int ordinal) {
  if (Slot* slot = find_slot(ordinal)) {
    slot->used.store(false, std::memory_order_relaxed);
  }
}

Context* primary_context(int ordinal) {
  Slot* slot = find_slot(ordinal);
  return slot == nullptr ? nullptr : &slot->primary;
}

Context* new_context(int ordinal) { return new Context{ordinal, false}; }

Context* current_context() { return t_context; }

void set_current_context(Context* context) {
  t_context = context;
  if (context != nullptr) {
    t_device = context->device;
    use_device(context->device);
  }
}

}  // namespace nullgpu
