// Modules, libraries and kernels: everything loads, every kernel that is asked for exists, and its numbers are
// plausible.
#pragma once

#include <cstddef>
#include <map>
#include <string>

namespace nullgpu {

struct Module;

struct Function {
  std::string name;
  Module* module;
  std::map<int, int> attributes;  // what cuFuncSetAttribute set
};

struct Module {
  std::map<std::string, Function*, std::less<>> functions;
  std::map<std::string, std::pair<void*, std::size_t>, std::less<>> variables;
};

Module* new_module();
int unload_module(void* handle);
Module* find_module(void* handle);
/// Made when it is first asked for.
Function* function_of(Module& module, const char* name);
Function* find_function(void* handle);

/// Code linked into the program: kernels and variables by the address of their stub on the host.
void register_kernel(const void* stub, const char* name);
void register_variable(const void* shadow, const char* name, std::size_t bytes);
/// Makes one for a stub that was never registered.
Function* kernel_of(const void* stub);
/// Device memory for the variable; null: never registered.
void* variable_of(const void* shadow, std::size_t* bytes);

/// CUfunction_attribute. Status.
int function_attribute(const Function& function, int attribute, int* value);
int set_function_attribute(Function& function, int attribute, int value);

/// cudaOccupancyMaxActiveBlocksPerMultiprocessor: limited by threads, blocks, registers and shared memory.
int blocks_per_multiprocessor(int block_threads, std::size_t shared_bytes);
/// Status: invalid_value or invalid_configuration where no GPU of this kind would launch it.
int check_launch(unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                 unsigned block_z, std::size_t shared_bytes);

}  // namespace nullgpu
