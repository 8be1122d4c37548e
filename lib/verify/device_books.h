// The device's books, read at fixed points, as terms: what the context, the libraries and NCCL took.
#pragma once

#include <optional>
#include <string>

#include "base/bytes.h"
#include "verify/rank_measurement.h"

namespace qlp {

/// Points of a run at which a rank reads the device's books, in any order but the last.
namespace reading_point {
inline constexpr const char* kContext = "context";                   ///< a context, nothing else
inline constexpr const char* kCublas = "cublas";                     ///< handles are made and a product has run
inline constexpr const char* kNccl = "nccl";                         ///< communicators are made
inline constexpr const char* kFirstCollective = "first_collective";  ///< each has run one
inline constexpr const char* kSampledPeak = "sampled_peak";          ///< the most that a sampling thread saw
}  // namespace reading_point

struct DeviceBooks {
  Bytes context;
  Bytes cublas;
  Bytes nccl;
  Bytes libraries;                   ///< cuBLAS and whatever else but managed memory grew while steps ran
  std::optional<Bytes> device_used;  ///< at the sampled peak, other processes included
  std::string source;                ///< of the terms
  std::string peak_source;
};

/// Each term is what the device grew by, beside the allocator's segments, from one reading to the next. Where the
/// driver tells what this process holds that is read, else the whole device less what others held before.
DeviceBooks device_books(const RankMeasurement& measured);

}  // namespace qlp
