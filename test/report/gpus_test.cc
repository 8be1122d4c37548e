#include "report/gpus.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "plan/gpu_catalogue.h"

namespace qlp {

TEST_CASE("report/gpus: a row for each GPU, and what was not measured is marked") {
  const std::string text = gpus_table(false, false);
  CHECK(text.find("H100 SXM5 80GB ") != std::string::npos);
  CHECK(text.find("81151~") != std::string::npos);
  CHECK(gpus_table(false, true).find("nearest measured relative") != std::string::npos);
}

TEST_CASE("report/gpus: JSON holds every row, absent instead of 0") {
  const auto json = nlohmann::json::parse(gpus_json());
  REQUIRE(json.size() == gpu_rows().size());
  for (const auto& row : json) {
    CHECK(row["capacity_bytes"] > 0);
    CHECK(row.value("bf16_tflops", 1.0) > 0);
    CHECK(row["fp16_tflops"] > 0);
    CHECK(row.contains("tf32_tflops") == row.contains("bf16_tflops"));
  }
}

}  // namespace qlp
