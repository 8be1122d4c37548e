#include <doctest/doctest.h>

#include "nullgpu/null_gpu.h"

// The runtimes say 11070, 12060 and 13020 of themselves; only these know their minor version. The bytes are those of
// cudaDeviceProp (728, 1032, 1008) and cudaFuncAttributes (56, 144, 144) in driver_types.h of CUDA 11.8, 12.8 and 13.0.
TEST_CASE("nullgpu/versions: each runtime's programs are answered in its own layouts") {
  const std::string gpu = "NULLGPU_NAME='NVIDIA X' NULLGPU_SMS=77 NULLGPU_SM=90";
  CHECK(null_gpu::output("ask_cudart_11.0", gpu) ==
        "runtime 11070 properties 0 728 77 2048 name NVIDIA X function 56 entry 1 -1 looked-up 728 malloc 0\n");
  // By its plain name CUDA 12 has the old layout; programs built with its headers ask for _v2.
  CHECK(null_gpu::output("ask_cudart_12", gpu) ==
        "runtime 12060 properties 0 1032 77 2048 name NVIDIA X function 144 entry 1 0 looked-up 728 malloc 0\n");
  CHECK(null_gpu::output("ask_cudart_13", gpu) ==
        "runtime 13020 properties 0 1008 77 2048 name NVIDIA X function 144 entry 1 0 looked-up 1008 malloc 0\n");
}
