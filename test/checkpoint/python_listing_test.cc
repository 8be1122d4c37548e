#include "checkpoint/python_listing.h"

#include <doctest/doctest.h>

using namespace qlp;

TEST_CASE("checkpoint/python_listing: floating parameters get the dtype of the weights, buffers keep theirs") {
  const auto listing = read_python_listing(R"({"transformers": "5.1", "class": "X", "tensors": [
    {"name": "w", "dtype": "float32", "shape": [2, 3], "parameter": true, "linear": true},
    {"name": "b", "dtype": "float32", "shape": [], "parameter": false, "linear": false}]})",
                                           DType::bfloat16);
  REQUIRE(listing);
  CHECK(listing->model_class == "X");
  REQUIRE(listing->tensors.size() == 2);
  CHECK(listing->tensors[0].dtype == DType::bfloat16);
  CHECK(listing->tensors[0].shape == Shape{2, 3});
  CHECK(listing->tensors[0].linear);
  CHECK(listing->tensors[1].dtype == DType::float32);
}

TEST_CASE("checkpoint/python_listing: anything else is refused, with Python's own reason where it gives one") {
  const auto code = [](std::string_view text) {
    return read_python_listing(text, DType::bfloat16).error().front().code;
  };
  CHECK(code("") == "bad-listing");
  CHECK(code("[]") == "bad-listing");
  CHECK(code(R"({"transformers": "5", "class": "X", "tensors": []})") == "bad-listing");
  CHECK(code(R"({"transformers": "5", "class": "X", "tensors": [{"name": 3}]})") == "bad-listing");
  CHECK(code(R"({"error": "no torch"})") == "python-failed");
}
