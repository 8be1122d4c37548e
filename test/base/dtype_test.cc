#include "base/dtype.h"

#include <doctest/doctest.h>

using namespace qlp;

TEST_CASE("base/dtype: the table's rows stand at their dtype") {
  for (const auto& row : kDTypes) CHECK(info(row.dtype).name == row.name);
}

TEST_CASE("base/dtype: names are read with and without torch's prefix") {
  CHECK(dtype_from_name("bfloat16") == DType::bfloat16);
  CHECK(dtype_from_name("torch.uint8") == DType::uint8);
  CHECK(dtype_from_name("bool") == DType::boolean);
  CHECK_FALSE(dtype_from_name("float8").has_value());
  CHECK_FALSE(dtype_from_name("").has_value());
}
