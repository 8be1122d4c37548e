#include "verify/gpu.h"

#include <doctest/doctest.h>

namespace qlp {
namespace {

TEST_CASE("verify/gpu: a library that is not there, and one that is somebody else's, are errors that name it") {
  const auto missing = open_gpu("/nowhere/libqlora_cuda.so", {});
  REQUIRE_FALSE(missing);
  CHECK(missing.error().find("/nowhere/libqlora_cuda.so") != std::string::npos);
  const auto other = open_gpu("libm.so.6", {});
  REQUIRE_FALSE(other);
  CHECK(other.error().find("libm.so.6") != std::string::npos);
}

}  // namespace
}  // namespace qlp
