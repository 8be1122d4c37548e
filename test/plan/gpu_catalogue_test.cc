#include "plan/gpu_catalogue.h"

#include <algorithm>
#include <set>

#include <doctest/doctest.h>

namespace qlp {

TEST_CASE("plan/gpu_catalogue: finds a GPU by both of its names in any case") {
  for (const auto& row : gpu_rows()) {
    CAPTURE(row.name);
    REQUIRE(find_gpu_row(row.name) == &row);
    CHECK(find_gpu_row(row.smi_name) == &row);
    std::string lower{row.name};
    std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    CHECK(find_gpu_row(lower) == &row);
  }
}

TEST_CASE("plan/gpu_catalogue: takes short forms that mean one GPU") {
  const auto name = [](std::string_view asked) {
    const GpuRow* row = find_gpu_row(asked);
    return row == nullptr ? std::string_view{} : row->name;
  };
  CHECK(name("H200") == "H200 SXM 141GB");
  CHECK(name("h100 sxm") == "H100 SXM5 80GB");
  CHECK(name("A100-SXM4-80GB") == "A100 SXM4 80GB");
  CHECK(name("A100 SXM 40GB") == "A100 SXM4 40GB");
  CHECK(name("RTX 4090") == "GeForce RTX 4090");
  CHECK(name("4090") == "GeForce RTX 4090");
  CHECK(name("L40S 48GB") == "L40S");
  CHECK(name("T4") == "Tesla T4");
  CHECK(name("DGX Spark") == "GB10 (DGX Spark)");
}

TEST_CASE("plan/gpu_catalogue: names all candidates instead of guessing") {
  CHECK(find_gpu("H100") == std::nullopt);
  CHECK(gpus_like("H100") == std::vector<std::string>{"H100 SXM5 80GB", "H100 PCIe", "H100 NVL 94GB"});
  CHECK(gpus_like("A100-80GB") == std::vector<std::string>{"A100 SXM4 80GB", "A100 PCIe 80GB"});
  CHECK(gpus_like("H100 96GB").empty());
  CHECK(gpus_like("RTX 4060 Ti 8GB").empty());
  CHECK(gpus_like("MI300X").empty());
  CHECK(gpus_like("").empty());
  CHECK(gpus_like("nvidia").empty());
}

TEST_CASE("plan/gpu_catalogue: capacity is what CUDA gives") {
  const auto h100 = find_gpu("NVIDIA H100 80GB HBM3");
  REQUIRE(h100);
  CHECK(h100->name == "H100 SXM5 80GB");
  CHECK(h100->capacity == Bytes{81082ULL << 20});
  CHECK(h100->capacity_source == "CUDA's total, measured (catalogue)");
  CHECK(h100->compute_capability == 90);
  CHECK(h100->sm_count == 132);
}

TEST_CASE("plan/gpu_catalogue: an unmeasured capacity follows the nearest relative and says so") {
  const auto pcie = find_gpu("A100 PCIe 80GB");
  REQUIRE(pcie);
  CHECK(pcie->capacity == Bytes{81151ULL << 20});
  CHECK(pcie->capacity_source.find("nearest measured relative, A100 SXM4 80GB") != std::string::npos);
  for (const auto& row : gpu_rows()) {
    CAPTURE(row.name);
    const double mib = static_cast<double>(spec_of(row).capacity.count()) / (1 << 20);
    CHECK(mib > 0);
    if (row.nvml_total_mib != 0) {
      CHECK(mib < row.nvml_total_mib);
      CHECK(mib > 0.96 * row.nvml_total_mib);
    }
  }
}

TEST_CASE("plan/gpu_catalogue: rates fit the chips that have them") {
  for (const auto& row : gpu_rows()) {
    CAPTURE(row.name);
    // fp32: a multiply-add in every lane of every multiprocessor and cycle, at clocks that GPUs have.
    const int lanes = row.compute_capability <= 80 ? 64 : 128;
    const double gigahertz = row.fp32_tflops * 1000 / (2.0 * lanes * row.sm_count);
    CHECK(gigahertz > 1.3);
    CHECK(gigahertz < 2.7);
    CHECK(row.half_tflops >= 2 * row.fp32_tflops * 0.98);
    CHECK((row.nvlink_gpus > 0) == (row.nvlink_gb_s > 0));
    CHECK(row.bandwidth_gb_s > 0);
  }
}

TEST_CASE("plan/gpu_catalogue: peak rates per second and direction") {
  const GpuRates h100 = find_gpu("H100 SXM5 80GB")->rates;
  CHECK(h100.bf16_flops == 989e12);
  CHECK(h100.tf32_flops == 494.5e12);
  CHECK(h100.fp32_flops == 67e12);
  CHECK(h100.nvlink_bytes == 450e9);
  CHECK(h100.pcie_bytes == 64e9);
  CHECK(h100.memory_bytes == 3350e9);
  const GpuRates t4 = find_gpu("T4")->rates;  // no bf16 in its tensor cores
  CHECK(t4.fp16_flops == 65e12);
  CHECK(t4.bf16_flops == 8.1e12);
}

TEST_CASE("plan/gpu_catalogue: names are unique and every row has a source") {
  std::set<std::string> seen;
  for (const auto& name : gpu_names()) CHECK(seen.insert(name).second);
  CHECK(std::ranges::none_of(gpu_rows(), [](const GpuRow& row) { return row.source.empty(); }));
}

}  // namespace qlp
