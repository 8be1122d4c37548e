#include <cstdio>
#include <string>

#include <doctest/doctest.h>

namespace {

// What a program prints with the null GPU preloaded.
std::string output(const std::string& program, const std::string& variables) {
  const std::string command = variables + " LD_PRELOAD=" QLP_NULLGPU_PRELOAD " " + program;
  std::FILE* pipe = popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string text;
  char buffer[1024];
  while (std::fgets(buffer, sizeof buffer, pipe) != nullptr) {
    text += buffer;
  }
  CHECK(pclose(pipe) == 0);
  return text;
}

const std::string kPrograms = QLP_NULLGPU_PROGRAMS;

}  // namespace

// The runtimes say 11070, 12060 and 13020 of themselves; only these know their minor version. The bytes are those of
// cudaDeviceProp (728, 1032, 1008) and cudaFuncAttributes (56, 144, 144) in driver_types.h of CUDA 11.8, 12.8 and 13.0.
TEST_CASE("nullgpu/versions: each runtime's programs are answered in its own layouts") {
  const std::string gpu = "NULLGPU_NAME='NVIDIA X' NULLGPU_SMS=77 NULLGPU_SM=90";
  CHECK(output(kPrograms + "/ask_cudart_11.0", gpu) ==
        "runtime 11070 properties 0 728 77 2048 name NVIDIA X function 56 entry 1 -1 looked-up 728 malloc 0\n");
  // By its plain name CUDA 12 has the old layout; programs built with its headers ask for _v2.
  CHECK(output(kPrograms + "/ask_cudart_12", gpu) ==
        "runtime 12060 properties 0 1032 77 2048 name NVIDIA X function 144 entry 1 0 looked-up 728 malloc 0\n");
  CHECK(output(kPrograms + "/ask_cudart_13", gpu) ==
        "runtime 13020 properties 0 1008 77 2048 name NVIDIA X function 144 entry 1 0 looked-up 1008 malloc 0\n");
}
