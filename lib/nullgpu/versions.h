// Entry points whose meaning changed while their name stayed. Each is exported once per runtime with the symbol version
// that this runtime's own library has (libcudart.so.11.0, .12, .13): the dynamic linker gives every library the one
// that it was built for, several in one process if need be.
#pragma once

namespace nullgpu {

/// The major version of the CUDA runtime that is loaded: of the library `from` (a handle of dlopen; null: of any).
int loaded_runtime(void* from);
bool is_versioned(const char* name);
/// This entry point as that runtime means it; null where its name never changed its meaning.
void* versioned_entry_point(const char* name, int runtime);

}  // namespace nullgpu
