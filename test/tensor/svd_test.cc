#include "tensor/svd.h"

#include <array>
#include <cmath>
#include <utility>

#include <doctest/doctest.h>

#include "tensor/cpu_device.h"

using namespace qlp;

// Of the libraries themselves, on handles with the properties of an H100.
TEST_CASE("tensor/svd: a workspace is what cuSOLVER asks for") {
  constexpr std::array<std::pair<std::int64_t, std::int64_t>, 7> kShapes{
      {{24, 24}, {30, 20}, {50, 100}, {4096, 4096}, {14336, 4096}, {4096, 14336}, {100000, 64}}};
  const auto check = [&](CuSolver cusolver, const std::array<std::int64_t, 7>& numbers) {
    for (std::size_t i = 0; i < kShapes.size(); ++i) {
      CAPTURE(i);
      CHECK(gesvdj_workspace(kShapes[i].first, kShapes[i].second, cusolver) == numbers[i]);
    }
  };
  check(CuSolver::v11_4_5, {4256, 196640, 201696, 33887360, 75497472, 75497472, 6404096});
  check(CuSolver::v11_6_1, {4256, 196672, 201728, 33887360, 76060800, 134781056, 6528928});
  check(CuSolver::v11_7_1, {4256, 196672, 201728, 33887360, 78405760, 137126016, 19237120});
  check(CuSolver::v11_7_3, {4256, 786496, 791552, 33887360, 81338624, 140058880, 32102784});
}

TEST_CASE("tensor/svd: the vectors are orthogonal, the values fall, and together they give the matrix") {
  for (const Shape& shape : {Shape{7, 4}, Shape{4, 7}, Shape{5, 5}}) {
    test::CpuDevice cpu;
    const Tensor matrix = cpu.random(shape, -1, 1, DType::float32);
    const Svd found = svd(cpu.ctx, matrix, CuSolver::v11_7_3);
    const auto a = cpu.numbers(matrix), ut = cpu.numbers(found.ut), s = cpu.numbers(found.s),
               vh = cpu.numbers(found.vh);
    const auto m = static_cast<std::size_t>(shape[0]), n = static_cast<std::size_t>(shape[1]);
    const std::size_t k = s.size();
    REQUIRE(k == 4 + (m == n ? 1 : 0));
    constexpr double kNear = 1e-5;
    for (std::size_t i = 0; i < m; ++i)
      for (std::size_t j = 0; j < n; ++j) {
        double sum = 0;
        for (std::size_t l = 0; l < k; ++l) sum += ut[l * m + i] * s[l] * vh[l * n + j];
        CHECK(std::abs(sum - a[i * n + j]) < kNear);
      }
    for (std::size_t p = 0; p < k; ++p) {
      if (p > 0) CHECK(s[p] <= s[p - 1]);
      for (std::size_t q = 0; q < k; ++q) {
        double left = 0, right = 0;
        for (std::size_t i = 0; i < m; ++i) left += ut[p * m + i] * ut[q * m + i];
        for (std::size_t j = 0; j < n; ++j) right += vh[p * n + j] * vh[q * n + j];
        CHECK(std::abs(left - (p == q ? 1 : 0)) < kNear);
        CHECK(std::abs(right - (p == q ? 1 : 0)) < kNear);
      }
    }
  }
}
