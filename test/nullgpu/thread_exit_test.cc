#include <doctest/doctest.h>

#include "nullgpu/null_gpu.h"

TEST_CASE("nullgpu/thread_exit: a thread that asks for an interpreter which is over waits for the end of the process") {
  CHECK(null_gpu::output("leave 1") == "waits\n");
}

TEST_CASE("nullgpu/thread_exit: other threads end themselves as before") {
  CHECK(null_gpu::output("leave 0") == "ended\n");
}
