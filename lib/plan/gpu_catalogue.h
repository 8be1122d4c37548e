// The GPUs that people fine-tune on: what each is called and what a planner needs to know of it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plan/job_spec.h"

namespace qlp {

/// One GPU of the catalogue. Memory figures are MiB as the tools print them; a 0 was never measured or does not apply.
struct GpuRow {
  std::string_view name;      ///< "H100 SXM5 80GB"
  std::string_view smi_name;  ///< as nvidia-smi prints it: "NVIDIA H100 80GB HBM3"
  std::string_view arch;
  std::uint32_t compute_capability = 0;  ///< 90 for 9.0
  std::uint32_t sm_count = 0;
  std::uint32_t nvml_total_mib = 0;  ///< nvidia-smi's total
  std::uint32_t cuda_total_mib = 0;  ///< cudaMemGetInfo's total
  double bandwidth_gb_s = 0;         ///< memory
  double half_tflops = 0;            ///< fp16, and bf16 from compute capability 8.0 on: dense, fp32 accumulation
  double fp32_tflops = 0;            ///< without tensor cores
  double nvlink_gb_s = 0;            ///< both directions together
  std::uint32_t nvlink_gpus = 0;     ///< GPUs of one machine that it joins
  std::uint32_t pcie_gen = 0;
  std::uint32_t pcie_lanes = 0;
  std::string_view source;
  std::string_view note;
};

/// V100, A100, H100, B200 and their relatives; all other chips are those of graphics cards.
constexpr bool is_data_centre_chip(std::uint32_t compute_capability) {
  return compute_capability == 70 || compute_capability == 80 || compute_capability == 90 ||
         compute_capability / 10 == 10;
}

/// Tensor cores take bf16, and tf32 at half that rate, from Ampere on (NVIDIA A100 whitepaper and its successors).
constexpr bool has_bf16(std::uint32_t compute_capability) { return compute_capability >= 80; }

/// All rows, oldest architecture first.
std::span<const GpuRow> gpu_rows();

/// The row that this name means: the catalogue's name or nvidia-smi's, in any case, or a short form of it ("H200",
/// "A100-SXM4-80GB", "rtx 4090"). None where no GPU or more than one ("H100") goes by it.
const GpuRow* find_gpu_row(std::string_view name);

/// The same as the job file needs it. The capacity is what CUDA gives; where that was never measured it is the nominal
/// size times the ratio of the nearest measured relative, and capacity_source says so.
std::optional<GpuSpec> find_gpu(std::string_view name);
GpuSpec spec_of(const GpuRow& row);

/// The catalogue's names, for lists and did-you-mean.
std::vector<std::string> gpu_names();

/// The names that a short form may mean ("H100": three), empty where it means none.
std::vector<std::string> gpus_like(std::string_view name);

}  // namespace qlp
