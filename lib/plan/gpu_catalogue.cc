#include "plan/gpu_catalogue.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <ranges>

#include "plan/gpu_table.h"

namespace qlp {
namespace {

using Words = std::vector<std::string>;

/// The words of a name in lower case, without the ones that name the brand only.
Words words_of(std::string_view name) {
  static constexpr std::array<std::string_view, 8> kBrand{"nvidia",     "tesla",   "geforce", "quadro",
                                                          "generation", "edition", "rtx",     "gpu"};
  Words words;
  std::string word;
  const auto take = [&] {
    if (!word.empty() && std::ranges::find(kBrand, word) == kBrand.end()) words.push_back(word);
    word.clear();
  };
  for (const char c : name) {
    const bool lower = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (lower) {
      word += c;
    } else if (c >= 'A' && c <= 'Z') {
      word += static_cast<char>(c - 'A' + 'a');
    } else {
      take();
    }
  }
  take();
  return words;
}

/// 80 for "80gb", 0 for any other word.
std::uint32_t gigabytes_in(std::string_view word) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  return error == std::errc{} && std::string_view{end, word.data() + word.size()} == "gb" ? number : 0;
}

bool has(const Words& words, std::string_view word) { return std::ranges::find(words, word) != words.end(); }

/// A size that the names leave out ("L40S 48GB") is compared with the total; ECC takes up to 1/16 of the nominal size.
bool size_matches(const GpuRow& row, const Words& named, std::uint32_t gigabytes) {
  if (std::ranges::any_of(named, [](const std::string& w) { return gigabytes_in(w) != 0; })) return false;
  const double total = row.nvml_total_mib / 1024.0;
  return total > gigabytes * 0.93 && total < gigabytes * 1.03;
}

bool goes_by(const GpuRow& row, const Words& asked) {
  Words named = words_of(row.name);
  for (const auto& word : words_of(row.smi_name)) named.push_back(word);
  return !asked.empty() && std::ranges::all_of(asked, [&](const std::string& word) {
    if (has(named, word)) return true;
    if (word == "sxm") return has(named, "sxm2") || has(named, "sxm4") || has(named, "sxm5");
    const std::uint32_t gigabytes = gigabytes_in(word);
    return gigabytes != 0 && size_matches(row, named, gigabytes);
  });
}

std::vector<const GpuRow*> rows_like(std::string_view name) {
  const Words asked = words_of(name);
  std::vector<const GpuRow*> exact;
  std::vector<const GpuRow*> loose;
  for (const auto& row : kGpuTable) {
    if (words_of(row.name) == asked || words_of(row.smi_name) == asked) exact.push_back(&row);
    if (goes_by(row, asked)) loose.push_back(&row);
  }
  return exact.empty() ? loose : exact;
}

/// How unlike two GPUs are in what decides the part of the memory that CUDA gives: size first, then the chip.
double distance(const GpuRow& a, const GpuRow& b) {
  const double size = std::abs(std::log(static_cast<double>(a.nvml_total_mib) / b.nvml_total_mib));
  return size + (a.compute_capability == b.compute_capability ? 0.0 : 0.1) + (a.arch == b.arch ? 0.0 : 0.1);
}

const GpuRow& nearest_measured(const GpuRow& row) {
  const GpuRow* best = nullptr;
  for (const auto& other : kGpuTable) {
    if (other.cuda_total_mib == 0 || other.nvml_total_mib == 0) continue;
    if (best == nullptr || distance(row, other) < distance(row, *best)) best = &other;
  }
  return *best;
}

/// PCI Express base specifications: GT/s of a lane, before encoding, by generation.
double pcie_bytes_per_second(std::uint32_t generation, std::uint32_t lanes) {
  constexpr std::array<double, 7> kTransfers{0, 2.5e9, 5e9, 8e9, 16e9, 32e9, 64e9};
  return generation < kTransfers.size() ? kTransfers[generation] * lanes / 8 : 0;
}

GpuRates rates_of(const GpuRow& row) {
  const double half = row.half_tflops * 1e12, single = row.fp32_tflops * 1e12;
  const bool ampere = has_bf16(row.compute_capability);
  return {.fp16_flops = half,
          .bf16_flops = ampere ? half : single,  // emulated in fp32
          .fp32_flops = single,
          .tf32_flops = ampere ? half / 2 : single,
          .memory_bytes = row.bandwidth_gb_s * 1e9,
          .nvlink_bytes = row.nvlink_gb_s * 1e9 / 2,
          .nvlink_gpus = row.nvlink_gpus,
          .pcie_bytes = pcie_bytes_per_second(row.pcie_gen, row.pcie_lanes)};
}

}  // namespace

std::span<const GpuRow> gpu_rows() { return kGpuTable; }

const GpuRow* find_gpu_row(std::string_view name) {
  const auto rows = rows_like(name);
  return rows.size() == 1 ? rows.front() : nullptr;
}

GpuSpec spec_of(const GpuRow& row) {
  GpuSpec spec{.name = std::string{row.name},
               .capacity = Bytes{},
               .capacity_source = "",
               .compute_capability = row.compute_capability,
               .sm_count = row.sm_count,
               .rates = rates_of(row)};
  std::uint64_t mib = row.cuda_total_mib;
  if (mib != 0) {
    spec.capacity_source = "CUDA's total, measured (catalogue)";
  } else {
    const GpuRow& relative = nearest_measured(row);
    mib = std::uint64_t{row.nvml_total_mib} * relative.cuda_total_mib / relative.nvml_total_mib;
    spec.capacity_source = "nvidia-smi's total times the share that CUDA gives on the nearest measured relative, " +
                           std::string{relative.name} + " (catalogue)";
  }
  if (!row.note.empty()) spec.capacity_source += "; " + std::string{row.note};
  spec.capacity = Bytes{mib << 20};
  return spec;
}

std::optional<GpuSpec> find_gpu(std::string_view name) {
  const GpuRow* row = find_gpu_row(name);
  return row == nullptr ? std::nullopt : std::optional{spec_of(*row)};
}

std::vector<std::string> gpu_names() {
  std::vector<std::string> names;
  for (const auto& row : kGpuTable) names.emplace_back(row.name);
  return names;
}

std::vector<std::string> gpus_like(std::string_view name) {
  std::vector<std::string> names;
  for (const auto* row : rows_like(name)) names.emplace_back(row->name);
  return names;
}

}  // namespace qlp
