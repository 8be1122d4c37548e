#include "nullgpu/modules.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "nullgpu/books.h"
#include "nullgpu/capabilities.h"
#include "nullgpu/device.h"
#include "nullgpu/settings.h"
#include "nullgpu/status.h"

namespace nullgpu {
namespace {

constexpr int kRegisters = 32;  // of every kernel
constexpr int kThreads = 1024;
constexpr int kStaticLimit = 48 * 1024;  // dynamic shared memory without opting in to more

struct Variable {
  std::string name;
  std::size_t bytes;
  void* memory;
};

struct Registry {
  std::unordered_set<Module*> modules;
  std::unordered_set<Function*> functions;
  std::unordered_map<const void*, Function*> kernels;
  std::unordered_map<const void*, Variable> variables;
};

Registry& registry() {
  static Registry* const kRegistry = new Registry;
  return *kRegistry;
}

using Guard = std::lock_guard<Books>;

const Capability& capability() { return *find_capability(settings().compute_capability); }

}  // namespace

Module* new_module() {
  const Guard guard(Books::get());
  return *registry().modules.insert(new Module).first;
}

Module* find_module(void* handle) {
  const Guard guard(Books::get());
  auto* module = static_cast<Module*>(handle);
  return registry().modules.contains(module) ? module : nullptr;
}

int unload_module(void* handle) {
  const Guard guard(Books::get());
  Module* const module = find_module(handle);
  if (module == nullptr) {
    return invalid_handle;
  }
  for (const auto& [name, function] : module->functions) {
    registry().functions.erase(function);
    delete function;
  }
  for (const auto& [name, variable] : module->variables) {
    Books::get().release(variable.first, Kind::symbol);
  }
  registry().modules.erase(module);
  delete module;
  return ok;
}

Function* function_of(Module& module, const char* name) {
  const Guard guard(Books::get());
  Function*& function = module.functions[name];
  if (function == nullptr) {
    function = *registry().functions.insert(new Function{name, &module, {}}).first;
  }
  return function;
}

Function* find_function(void* handle) {
  const Guard guard(Books::get());
  auto* function = static_cast<Function*>(handle);
  return registry().functions.contains(function) ? function : nullptr;
}

void register_kernel(const void* stub, const char* name) {
  const Guard guard(Books::get());
  Function*& function = registry().kernels[stub];
  if (function == nullptr) {
    function = *registry().functions.insert(new Function{name, nullptr, {}}).first;
  }
}

void register_variable(const void* shadow, const char* name, std::size_t bytes) {
  const Guard guard(Books::get());
  registry().variables.try_emplace(shadow, Variable{name, bytes, nullptr});
}

Function* kernel_of(const void* stub) {
  const Guard guard(Books::get());
  // A kernel handle (cudaGetKernel, cudaLibraryGetKernel) serves as well as the stub.
  if (Function* const function = find_function(const_cast<void*>(stub))) {
    return function;
  }
  if (!registry().kernels.contains(stub)) {
    register_kernel(stub, "");
  }
  return registry().kernels[stub];
}

void* variable_of(const void* shadow, std::size_t* bytes) {
  const Guard guard(Books::get());
  const auto found = registry().variables.find(shadow);
  if (found == registry().variables.end()) {
    return nullptr;
  }
  Variable& variable = found->second;
  if (variable.memory == nullptr) {
    Books::get().allocate(&variable.memory, std::max<std::size_t>(variable.bytes, 1), Kind::symbol, current_device(),
                          0);
  }
  if (bytes != nullptr) {
    *bytes = variable.bytes;
  }
  return variable.memory;
}

// CUfunction_attribute (cuda.h): 0 threads, 1 static shared, 2 constant, 3 local, 4 registers, 5 PTX and 6 binary
// version, 7 cache mode, 8 dynamic shared limit, 9 carveout, 10 to 16 clusters.
int function_attribute(const Function& function, int attribute, int* value) {
  const Guard guard(Books::get());
  if (value == nullptr || attribute < 0 || attribute > 16) {
    return invalid_value;
  }
  const auto set = function.attributes.find(attribute);
  if (set != function.attributes.end()) {
    *value = set->second;
    return ok;
  }
  switch (attribute) {
    case 0:
      *value = kThreads;
      break;
    case 4:
      *value = kRegisters;
      break;
    case 5:
    case 6:
      *value = settings().compute_capability;
      break;
    case 8:
      *value = kStaticLimit;
      break;
    case 9:
      *value = -1;
      break;
    default:
      *value = 0;
  }
  return ok;
}

int set_function_attribute(Function& function, int attribute, int value) {
  const Guard guard(Books::get());
  if (attribute < 8 || attribute > 16 ||
      (attribute == 8 && (value < 0 || value > capability().shared_bytes_per_block_optin))) {
    return invalid_value;
  }
  function.attributes[attribute] = value;
  return ok;
}

int blocks_per_multiprocessor(int block_threads, std::size_t shared_bytes) {
  const Capability& c = capability();
  const int threads = (std::max(block_threads, 1) + 31) / 32 * 32;
  const auto shared =
      static_cast<int>(std::min<std::size_t>(shared_bytes, 1U << 30U)) + c.reserved_shared_bytes_per_block;
  if (threads > kThreads || static_cast<int>(shared_bytes) > c.shared_bytes_per_block_optin) {
    return 0;
  }
  int blocks = std::min(c.blocks_per_multiprocessor, c.threads_per_multiprocessor / threads);
  blocks = std::min(blocks, 65536 / (kRegisters * threads));
  return shared > 0 ? std::min(blocks, c.shared_bytes_per_multiprocessor / shared) : blocks;
}

int check_launch(unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                 unsigned block_z, std::size_t shared_bytes) {
  const auto threads = static_cast<unsigned long long>(block_x) * block_y * block_z;
  if (threads == 0 || threads > kThreads || block_z > 64 || grid_x == 0 || grid_x > 2147483647U || grid_y == 0 ||
      grid_y > 65535U || grid_z == 0 || grid_z > 65535U) {
    return invalid_configuration;
  }
  return shared_bytes > static_cast<std::size_t>(capability().shared_bytes_per_block_optin) ? invalid_value : ok;
}

}  // namespace nullgpu
