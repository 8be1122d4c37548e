#include "shard/zero_loss_scale.h"

#include <algorithm>
#include <cmath>

namespace qlp {
namespace {

constexpr double kFactor = 2;  // scale_factor

}  // namespace

ZeroLossScale::ZeroLossScale(const LossScaleOptions& options)
    : options_(options),
      value_(options.loss_scale > 0 ? options.loss_scale
                                    : std::pow(2.0, static_cast<double>(options.initial_scale_power))),
      overflows_left_(options.hysteresis) {}

/// DynamicLossScaler.update_scale
void ZeroLossScale::update(bool overflow) {
  overflowed_ = overflow;
  if (options_.loss_scale > 0) return;
  if (overflow) {
    if (options_.hysteresis == 1 || overflows_left_ == 1) {
      if (value_ == options_.min_loss_scale)
        throw TrainingStopped("Current loss scale already at minimum - cannot decrease scale anymore. Exiting run.");
      value_ = std::max(value_ / kFactor, options_.min_loss_scale);
    } else {
      --overflows_left_;
    }
    last_overflow_ = step_;
  } else {
    if (options_.consecutive_hysteresis) overflows_left_ = options_.hysteresis;
    const std::int64_t stable = step_ - last_overflow_ - 1;
    if (stable > 0 && stable % options_.loss_scale_window == 0) {
      if (!options_.consecutive_hysteresis) overflows_left_ = options_.hysteresis;
      value_ *= kFactor;
    }
  }
  ++step_;
}

}  // namespace qlp
