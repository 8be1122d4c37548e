// How fast a GPU computes and moves data at best, per second.
#pragma once

#include <cstdint>

#include "base/dtype.h"

namespace qlp {

struct GpuRates {
  double fp16_flops = 0;  ///< matrix products, by the dtype of their operands: dense, accumulated in fp32
  double bf16_flops = 0;
  double fp32_flops = 0;
  double tf32_flops = 0;    ///< fp32 operands that may be rounded
  double memory_bytes = 0;  ///< read and written together
  double nvlink_bytes = 0;  ///< in one direction
  std::uint32_t nvlink_gpus = 0;
  double pcie_bytes = 0;  ///< in one direction
  friend bool operator==(const GpuRates&, const GpuRates&) = default;
};

}  // namespace qlp
