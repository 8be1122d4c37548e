#include "base/shape.h"

#include <stdexcept>

#include <doctest/doctest.h>

using namespace qlp;

TEST_CASE("base/shape: dimensions count from both ends") {
  const Shape shape{2, 3, 5};
  CHECK(shape.rank() == 3);
  CHECK(shape[0] == 2);
  CHECK(shape[-1] == 5);
  CHECK(shape.with(-1, 7) == Shape{2, 3, 7});
}

TEST_CASE("base/shape: numel is the product, 1 for a scalar, 0 with an empty dimension") {
  CHECK(Shape{4096, 14336}.numel() == 58720256);
  CHECK(Shape{}.numel() == 1);
  CHECK(Shape{4, 0}.numel() == 0);
}

TEST_CASE("base/shape: bytes follow the dtype") {
  CHECK(bytes_of(Shape{4, 3}, DType::bfloat16) == Bytes{24});
  CHECK(bytes_of(10, DType::float32) == Bytes{40});
  CHECK_THROWS_AS(bytes_of(std::int64_t{1} << 62, DType::float64), std::overflow_error);
}

TEST_CASE("base/shape: printed as PyTorch prints sizes") {
  CHECK(to_string(Shape{4096, 14336}) == "[4096, 14336]");
  CHECK(to_string(Shape{}) == "[]");
}
