// The null GPU's control interface: libqlora_nullgpu.so, preloaded into a program, stands in for CUDA's driver and
// runtime, cuBLAS, cuDNN, cuSPARSE, cuSOLVER, cuRAND, cuFFT, NVML, CUPTI and NCCL. It keeps the books (memory, streams,
// events, communicators), really makes small copies, and launches nothing. Programs look these functions up by name
// (dlsym(RTLD_DEFAULT, ...)). Sizes are bytes.
//
// How to start a program on it:
//   LD_PRELOAD=.../libqlora_nullgpu.so           before all others
//   LD_LIBRARY_PATH=.../nullgpu-driver:...        links named libcuda.so.1 and libnvidia-ml.so.1, for libraries that
//                                                need them by these names (torch's libcaffe2_nvrtc.so)
//   TRITON_LIBCUDA_PATH=.../nullgpu-driver       Triton links with what is there
// Preloading covers every call by name. dlopen() and dlsym() are interposed too: a driver that a program opens by
// itself is this one, and a name that this library knows is found here whatever library it is asked of. Programs that
// carry CUDA's runtime within them (libcudart_static) are not covered: it talks to the driver through tables without
// names.
//
// Variables (a value that is not understood ends the program with a message and exit status 2):
//   NULLGPU_DEVICES         how many there are (8). CUDA_VISIBLE_DEVICES is honoured
//   NULLGPU_NAME            its name (NVIDIA A100-SXM4-80GB)
//   NULLGPU_SM              compute capability times ten, 80: 70 to 121
//   NULLGPU_SMS             multiprocessors; NULLGPU_L2_BYTES, NULLGPU_CLOCK_KHZ, NULLGPU_MEMORY_KHZ, NULLGPU_BUS_BITS:
//                           each by default that of the best-known GPU of that capability
//   NULLGPU_BYTES           what cudaMemGetInfo calls total (85092990976): an allocation past it fails as CUDA's does
//   NULLGPU_NVML_BYTES      what NVML calls total (85899345920)
//   NULLGPU_CONTEXT_BYTES   taken off that by the first call that makes a context (0)
//   NULLGPU_DRIVER          the driver's CUDA version, 13020 for 13.2
//   NULLGPU_LAZY_EVENTS     0: work is done at once (the fastest GPU); 1: at the next synchronisation (the slowest)
//   NULLGPU_COPY_MAX        copies up to this are really made (65536); larger ones only in the books
//   NULLGPU_FAIL            NAME:N[=STATUS],...: the Nth call (N+: and all later ones) of an entry point fails, with
//                           that status instead of its library's out of memory or internal error. cudaMalloc:17
//   NULLGPU_REPORT          file written at exit by processes that used the GPU; %p is the process id
//   NULLGPU_RANKS           alone: this process plays its rank, all others are taken to hold what it holds;
//                           real: they are processes of this machine, and what is small is really exchanged
//   NULLGPU_LISTENS         1: rank 0 fails where it cannot listen at NCCL_COMM_ID; 0: that is another machine's matter
//   NULLGPU_NCCL_VERSION    as ncclGetVersion counts; default: that of the libnccl which is loaded, else 22703
// Not covered, and refused with "not supported": child nodes of graphs, arrays and textures, cuDNN's
// RNNs, multicast objects. Books are those of one process: two on one device do not see each other's memory.
#pragma once

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Device memory that the program has taken, and the most it ever had, without the context: of the calling thread's
/// current device, or of one by its ordinal among the visible ones.
size_t nullgpu_used(void);
size_t nullgpu_peak(void);
size_t nullgpu_device_used(int device);
size_t nullgpu_device_peak(int device);
/// What cudaMemGetInfo calls total, and what the context takes of it.
size_t nullgpu_capacity(void);
size_t nullgpu_context_bytes(void);
/// Allocations of device memory so far (cudaMalloc, cuMemCreate and their like), and those that failed.
size_t nullgpu_mallocs(void);
size_t nullgpu_failed_mallocs(void);
/// Host memory from CUDA: pinned by allocation or registration, and managed; now and at most.
size_t nullgpu_pinned(void);
size_t nullgpu_pinned_peak(void);
size_t nullgpu_managed(void);
size_t nullgpu_managed_peak(void);

/// How many of these n bytes of device memory hold what the host wrote there (copies, memsets, copies of such bytes).
/// All others read as zero: a kernel, or a copy past NULLGPU_COPY_MAX, would have written them.
size_t nullgpu_written_by_host(const void* address, size_t n);
/// These bytes are taken over by something else: they read as zero from now on.
void nullgpu_forget(const void* address, size_t n);
/// Host bytes into device memory, or out of it, as a copy of at most NULLGPU_COPY_MAX would, however many they are: in
/// the books alone, whatever any stream does or captures.
void nullgpu_put(void* address, const void* host, size_t n);
void nullgpu_get(void* host, const void* address, size_t n);

/// Kernels and library calls that were accepted and not run.
unsigned long long nullgpu_launches(void);
/// Entry points that were called and have no implementation: how many, and the name and number of calls of each (in the
/// order of first use; NULL past the end). Each answers "not supported" in its library's words.
size_t nullgpu_unimplemented(void);
const char* nullgpu_unimplemented_name(size_t index);
unsigned long long nullgpu_unimplemented_calls(size_t index);
/// Where an answer is plausible rather than known (a cuDNN workspace): same form.
size_t nullgpu_assumptions(void);
const char* nullgpu_assumption(size_t index);

/// Everything above as JSON, into a file (whole or not at all). 0, or errno.
int nullgpu_write_report(const char* path);
/// Major and minor version of this interface, 100 for 1.0.
int nullgpu_version(void);

#ifdef __cplusplus
}
#endif
