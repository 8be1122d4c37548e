// Built for the CUDA runtime of one major version (MAJOR), and started with the null GPU preloaded: prints what it is
// told and how many bytes each answer took, once as linked and once by dlsym on its runtime.
#include <cstdio>
#include <cstring>
#include <dlfcn.h>

extern "C" {
int cudaRuntimeGetVersion(int*);
#if MAJOR == 12
int cudaGetDeviceProperties_v2(void*, int);  // as the headers of CUDA 12 name it
#define cudaGetDeviceProperties cudaGetDeviceProperties_v2
#else
int cudaGetDeviceProperties(void*, int);
#endif
int cudaFuncGetAttributes(void*, const void*);
int cudaGetDriverEntryPoint(const char*, void**, unsigned long long, int*);
int cudaMalloc(void**, std::size_t);
}

namespace {

constexpr unsigned char kUntouched = 0xa5;
unsigned char g_buffer[4096];

void reset() { std::memset(g_buffer, kUntouched, sizeof g_buffer); }

int touched() {
  int n = sizeof g_buffer;
  while (n > 0 && g_buffer[n - 1] == kUntouched) {
    --n;
  }
  return n;
}

int number_at(int offset) {
  int value = 0;
  std::memcpy(&value, g_buffer + offset, sizeof value);
  return value;
}

}  // namespace

int main() {
  int version = 0;
  cudaRuntimeGetVersion(&version);
  reset();
  const int status = cudaGetDeviceProperties(g_buffer, 1);
  const int bytes = touched();
  const int multiprocessors = number_at(MAJOR == 13 ? 384 : 388);  // where driver_types.h of that version has it
  const int threads = number_at(MAJOR == 13 ? 604 : 624);
  std::printf("runtime %d properties %d %d %d %d name %s", version, status, bytes, multiprocessors, threads,
              reinterpret_cast<const char*>(g_buffer));

  reset();
  cudaFuncGetAttributes(g_buffer, &version);
  std::printf(" function %d", touched());

  void* p = nullptr;
  int found = 0x5a5a5a5a;
  cudaGetDriverEntryPoint("cuInit", &p, 0, &found);
  std::printf(" entry %d %d", static_cast<int>(p != nullptr), found == 0x5a5a5a5a ? -1 : found);

  void* runtime = dlopen(RUNTIME, RTLD_LAZY);
  reset();
  reinterpret_cast<int (*)(void*, int)>(dlsym(runtime, "cudaGetDeviceProperties"))(g_buffer, 0);
  std::printf(" looked-up %d", touched());
  std::printf(" malloc %d\n", cudaMalloc(&p, 100));
  return 0;
}
