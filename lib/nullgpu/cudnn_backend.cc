// cuDNN's graph interface (cudnnBackend*): descriptors keep what is set, the heuristic finds one engine for every
// graph, and every plan runs in no workspace. Attributes and types: cudnn_graph.h of cuDNN 9.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <vector>

#include "nullgpu/entry.h"

namespace {

using namespace nullgpu;

constexpr int kBadParameter = 2000;

struct Attribute {
  std::int64_t count;
  std::vector<unsigned char> bytes;
};

struct Descriptor {
  int kind;
  std::map<int, Attribute> attributes;
};

// cudnnBackendAttributeType_t: bytes of one element. Enumerations, float and int32 have four.
std::size_t element_bytes(int type) {
  switch (type) {
    case 0:   // handle
    case 3:   // int64
    case 5:   // double
    case 6:   // pointer
    case 15:  // descriptor
      return 8;
    case 2:   // bool
    case 24:  // char
      return 1;
    case 26:  // fraction
      return 16;
    default:
      return 4;
  }
}

enum Name {
  heuristic_results = 202,
  configuration_engine = 300,
  configuration_knobs = 302,
  configuration_workspace = 303,
  configuration_shared_memory = 304,
  plan_workspace = 402,
  plan_intermediates = 403,
  plan_run_only = 404,
  graph_engines = 802,
  engine_index = 1301,
  engine_knobs = 1302,
  engine_numerical_notes = 1303,
  engine_layouts = 1304,
  engine_behaviour_notes = 1305,
};

int answer_number(std::int64_t value, std::int64_t room, std::int64_t* count, void* out) {
  if (count != nullptr) {
    *count = 1;
  }
  if (room > 0 && out != nullptr) {
    std::memcpy(out, &value, sizeof value);
  }
  return ok;
}

int stored(const Descriptor& d, int name, int type, std::int64_t room, std::int64_t* count, void* out) {
  const auto found = d.attributes.find(name);
  const std::int64_t have = found == d.attributes.end() ? 0 : found->second.count;
  if (count != nullptr) {
    *count = have;
  }
  if (room > 0 && have > 0 && out != nullptr) {
    const std::size_t bytes = static_cast<std::size_t>(std::min(room, have)) * element_bytes(type);
    std::memcpy(out, found->second.bytes.data(), std::min(bytes, found->second.bytes.size()));
  }
  return ok;
}

// Descriptors are given back by filling in one that the program made.
int answer_descriptor(const Descriptor& d, std::int64_t room, std::int64_t* count, void* out) {
  if (count != nullptr) {
    *count = 1;
  }
  if (room > 0 && out != nullptr) {
    Descriptor* target = nullptr;
    std::memcpy(&target, out, sizeof(void*));
    if (target == nullptr) {
      return kBadParameter;
    }
    for (const auto& [name, attribute] : d.attributes) {
      target->attributes.emplace(name, attribute);
    }
  }
  return ok;
}

}  // namespace

QLP_EXPORT int cudnnBackendCreateDescriptor(int kind, void** descriptor) {
  return library(__func__, [&] {
    *descriptor = new Descriptor{kind, {}};
    return ok;
  });
}

QLP_EXPORT int cudnnBackendDestroyDescriptor(void* descriptor) {
  return library(__func__, [&] {
    delete static_cast<Descriptor*>(descriptor);
    return ok;
  });
}

QLP_EXPORT int cudnnBackendInitialize(void*) {
  return library(__func__, [] { return ok; });
}

QLP_EXPORT int cudnnBackendFinalize(void*) {
  return library(__func__, [] { return ok; });
}

QLP_EXPORT int cudnnBackendSetAttribute(void* descriptor, int name, int type, std::int64_t count, const void* values) {
  return library(__func__, [&] {
    if (descriptor == nullptr || count < 0 || (values == nullptr && count > 0)) {
      return kBadParameter;
    }
    const auto* from = static_cast<const unsigned char*>(values);
    const std::size_t bytes = static_cast<std::size_t>(count) * element_bytes(type);
    static_cast<Descriptor*>(descriptor)->attributes[name] = {count, std::vector<unsigned char>(from, from + bytes)};
    return static_cast<int>(ok);
  });
}

QLP_EXPORT int cudnnBackendGetAttribute(const void* descriptor, int name, int type, std::int64_t room,
                                        std::int64_t* count, void* out) {
  return library(__func__, [&] {
    if (descriptor == nullptr) {
      return kBadParameter;
    }
    const Descriptor& d = *static_cast<const Descriptor*>(descriptor);
    switch (name) {
      case heuristic_results:
      case configuration_engine:
        return answer_descriptor(d, room, count, out);
      case plan_workspace:
      case configuration_workspace:
        assume("workspaces and reserve spaces of cuDNN are taken to be empty");
        return answer_number(0, room, count, out);
      case configuration_shared_memory:
      case engine_index:
        return answer_number(0, room, count, out);
      case graph_engines:
        return answer_number(1, room, count, out);
      case configuration_knobs:
      case plan_intermediates:
      case plan_run_only:
      case engine_knobs:
      case engine_numerical_notes:
      case engine_layouts:
      case engine_behaviour_notes:
        if (count != nullptr) {
          *count = 0;
        }
        return static_cast<int>(ok);
      default:
        return stored(d, name, type, room, count, out);
    }
  });
}

QLP_EXPORT int cudnnBackendExecute(void*, void*, void*) { return launch_call(__func__); }
QLP_EXPORT int cudnnBackendPopulateCudaGraph(void*, void*, void*, void*) { return launch_call(__func__); }
QLP_EXPORT int cudnnBackendUpdateCudaGraph(void*, void*, void*, void*) { return launch_call(__func__); }
