#include "nullgpu/interpose.h"

#include <array>
#include <cstring>
#include <dlfcn.h>
#include <link.h>
#include <string>

#include "nullgpu/entry.h"
#include "nullgpu/versions.h"

namespace nullgpu {
namespace {

using Dlsym = void* (*)(void*, const char*);
using Dlopen = void* (*)(const char*, int);

// The first versions of these symbols: glibc 2.34 moved them into libc and kept the old ones.
Dlsym find_dlsym() {
  for (const char* version : {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17", "GLIBC_2.0"}) {
    if (void* const p = dlvsym(RTLD_NEXT, "dlsym", version)) {
      return reinterpret_cast<Dlsym>(p);
    }
  }
  __builtin_trap();
}

Dlsym the_dlsym() {
  static const Dlsym kDlsym = find_dlsym();
  return kDlsym;
}

Dlopen the_dlopen() {
  static const auto kDlopen = reinterpret_cast<Dlopen>(the_dlsym()(RTLD_NEXT, "dlopen"));
  return kDlopen;
}

const char* own_path() {
  static const char* const kPath = [] {
    Dl_info info{};
    dladdr(reinterpret_cast<void*>(&own_entry_point), &info);
    return info.dli_fname;
  }();
  return kPath;
}

void* own_handle() {
  static void* const kHandle = the_dlopen()(own_path(), RTLD_LAZY | RTLD_NOLOAD);
  return kHandle;
}

bool begins(const char* text, const char* prefix) { return std::strncmp(text, prefix, std::strlen(prefix)) == 0; }

bool may_be_ours(const char* name) {
  return begins(name, "cu") || begins(name, "nccl") || begins(name, "nvml") || begins(name, "__cuda") ||
         begins(name, "pnccl");
}

}  // namespace

void* real_dlsym(void* handle, const char* name) { return the_dlsym()(handle, name); }

bool& detail::asking() {
  static thread_local bool flag = false;
  return flag;
}

bool is_loaded(const char* library) {
  void* const handle = the_dlopen()(library, RTLD_LAZY | RTLD_NOLOAD);
  if (handle != nullptr) {
    dlclose(handle);
  }
  return handle != nullptr;
}

void* real_entry_point(const char* library, const char* name) {
  void* const handle = the_dlopen()(library, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) {
    return nullptr;
  }
  void* const p = handle == own_handle() ? nullptr : the_dlsym()(handle, name);
  dlclose(handle);
  return p;
}

bool load_beside(const char* loaded, const char* library) {
  void* const handle = the_dlopen()(loaded, RTLD_LAZY | RTLD_NOLOAD);
  link_map* map = nullptr;
  if (handle == nullptr || dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0) {
    return false;
  }
  const std::string path = map->l_name;
  dlclose(handle);
  return the_dlopen()((path.substr(0, path.rfind('/') + 1) + library).c_str(), RTLD_LAZY) != nullptr;
}

// Not where the library was linked into the program itself (tests do that): then there is no handle of its own.
void* own_entry_point(const char* name) { return own_handle() == nullptr ? nullptr : the_dlsym()(own_handle(), name); }

bool is_driver_library(const char* path) {
  const char* slash = std::strrchr(path, '/');
  const char* name = slash == nullptr ? path : slash + 1;
  for (const char* driver_library : {"libcuda.so", "libnvidia-ml.so"}) {
    const std::size_t n = std::strlen(driver_library);
    if (std::strncmp(name, driver_library, n) == 0 && (name[n] == '\0' || name[n] == '.')) {
      return true;
    }
  }
  return false;
}

}  // namespace nullgpu

// The real dlopen and dlsym look at who calls them (its RUNPATH; what RTLD_NEXT means), so they are jumped to, with the
// program's own return address still in place: the functions below say what to call, and a few instructions do it.
extern "C" __attribute__((visibility("hidden"), used)) void* nullgpu_pick_dlopen(const char** path) {
  if (*path != nullptr && nullgpu::is_driver_library(*path)) {
    *path = nullgpu::own_path();
  }
  return reinterpret_cast<void*>(nullgpu::the_dlopen());
}

namespace {

void* always(void* found) { return found; }
thread_local void* t_found = nullptr;
void* found_here(void*, const char*) { return always(t_found); }

}  // namespace

extern "C" __attribute__((visibility("hidden"), used)) void* nullgpu_pick_dlsym(void* handle, const char* name) {
  using namespace nullgpu;
  if (handle != RTLD_NEXT && name != nullptr && may_be_ours(name)) {
    const bool of_a_library = handle != RTLD_DEFAULT && handle != own_handle();
    void* const found = is_versioned(name)
                            ? versioned_entry_point(name, loaded_runtime(of_a_library ? handle : nullptr))
                            : own_entry_point(name);
    if (found != nullptr) {
      t_found = found;
      return reinterpret_cast<void*>(found_here);
    }
  }
  return reinterpret_cast<void*>(the_dlsym());
}

#if defined(__x86_64__)
__asm__(R"(
  .globl dlopen
  .type dlopen, @function
dlopen:
  subq $24, %rsp
  movq %rdi, 8(%rsp)
  movq %rsi, 16(%rsp)
  leaq 8(%rsp), %rdi
  call nullgpu_pick_dlopen
  movq 8(%rsp), %rdi
  movq 16(%rsp), %rsi
  addq $24, %rsp
  jmp *%rax
  .size dlopen, .-dlopen

  .globl dlsym
  .type dlsym, @function
dlsym:
  subq $24, %rsp
  movq %rdi, 8(%rsp)
  movq %rsi, 16(%rsp)
  call nullgpu_pick_dlsym
  movq 8(%rsp), %rdi
  movq 16(%rsp), %rsi
  addq $24, %rsp
  jmp *%rax
  .size dlsym, .-dlsym
)");
#elif defined(__aarch64__)
__asm__(R"(
  .globl dlopen
  .type dlopen, %function
dlopen:
  stp x29, x30, [sp, -32]!
  stp x0, x1, [sp, 16]
  add x0, sp, 16
  bl nullgpu_pick_dlopen
  mov x16, x0
  ldp x0, x1, [sp, 16]
  ldp x29, x30, [sp], 32
  br x16
  .size dlopen, .-dlopen

  .globl dlsym
  .type dlsym, %function
dlsym:
  stp x29, x30, [sp, -32]!
  stp x0, x1, [sp, 16]
  bl nullgpu_pick_dlsym
  mov x16, x0
  ldp x0, x1, [sp, 16]
  ldp x29, x30, [sp], 32
  br x16
  .size dlsym, .-dlsym
)");
#else
#error "the null GPU knows x86-64 and AArch64 only"
#endif
