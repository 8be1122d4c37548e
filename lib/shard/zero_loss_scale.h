// DeepSpeed's scale of the loss in float16, a number of the host (deepspeed/runtime/fp16/loss_scaler.py, 0.18.3).
#pragma once

#include <cstdint>
#include <stdexcept>

namespace qlp {

/// The keys of DeepSpeed's section fp16.
struct LossScaleOptions {
  double loss_scale = 0;  ///< that stays; 0: one that follows overflows
  std::int64_t initial_scale_power = 16;
  std::int64_t loss_scale_window = 1000;  ///< steps without an overflow before it grows
  std::int64_t hysteresis = 2;            ///< overflows before it shrinks
  bool consecutive_hysteresis = false;    ///< a step without one starts that count again
  double min_loss_scale = 1;
  friend bool operator==(const LossScaleOptions&, const LossScaleOptions&) = default;
};

/// The library ends a training run, in its words.
struct TrainingStopped : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class ZeroLossScale {
 public:
  /// 1 for good: where the module is not in float16.
  ZeroLossScale() = default;
  explicit ZeroLossScale(const LossScaleOptions& options);

  double value() const { return value_; }
  /// In the last step.
  bool overflowed() const { return overflowed_; }
  /// After each step. Throws TrainingStopped where the scale cannot shrink any more, as DeepSpeed does.
  void update(bool overflow);

 private:
  LossScaleOptions options_{.loss_scale = 1};
  double value_ = 1;
  bool overflowed_ = false;
  std::int64_t step_ = 0, last_overflow_ = -1, overflows_left_ = 0;
};

}  // namespace qlp
