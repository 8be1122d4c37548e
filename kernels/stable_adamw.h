// StableAdamW on one parameter, as torch-optimi has it (stableadamw.py, 0.3). Arrays lie densely.
#pragma once

#include "adamw.h"

namespace qlp::kernels {

/// Numbers that a launch of stable_adamw() may have on their way.
inline constexpr std::int64_t kStableAdamWScratch = 1024;

/// `compensation`: like the parameter, what 16 bits have lost in rounding; or of another type, and not read. `scratch`
/// [kStableAdamWScratch] of the stream.
cudaError_t stable_adamw(const View& parameter, const View& grad, const View& exp_avg, const View& exp_avg_sq,
                         const View& compensation, const AdamWNumbers& numbers, float* scratch, cudaStream_t stream);

}  // namespace qlp::kernels
