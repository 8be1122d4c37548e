#include <doctest/doctest.h>

#include "nullgpu/null_gpu.h"

namespace {

using namespace null_gpu;

// NOLINTBEGIN(readability-identifier-naming)
QLP_CALL(int, cusolverDnSgesvdj_bufferSize, void*, int, int, int, int, const float*, int, const float*, const float*,
         int, const float*, int, int*, void*)
// NOLINTEND(readability-identifier-naming)

int asked_for(int m, int n, int& status) {
  int size = -1;
  status =
      cusolverDnSgesvdj_bufferSize(nullptr, 1, 1, m, n, nullptr, m, nullptr, nullptr, m, nullptr, n, &size, nullptr);
  return size;
}

}  // namespace

// As cuSOLVER 11.7.3 answers; without that library its version is taken to be this one.
TEST_CASE("nullgpu/cusolver_svd: an SVD asks for the workspace that cuSOLVER asks for") {
  run({}, [] {
    int status = -1;
    QLP_EXPECT_EQ(asked_for(24, 24, status), 4256);
    QLP_EXPECT_EQ(asked_for(30, 20, status), 786496);
    QLP_EXPECT_EQ(asked_for(50, 100, status), 791552);
    QLP_EXPECT_EQ(asked_for(4096, 14336, status), 140058880);
    QLP_EXPECT_EQ(asked_for(100000, 64, status), 32102784);
    QLP_EXPECT_EQ(status, 0);
    asked_for(60000, 40000, status);
    QLP_EXPECT_EQ(status, 3);
  });
}
