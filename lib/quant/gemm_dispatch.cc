#include "quant/gemm_dispatch.h"

#include <span>

#include "quant/quant_state.h"

namespace qlp {
namespace {

/// A product as the calibration sees it: how many tiles of 64 outputs there are for the multiprocessors, and whether
/// the weight is deep (k) or wide (n).
struct Layer {
  std::int64_t m, n, k;
  std::int64_t tiles;
  std::int64_t sms;

  /// Tiles for at least `num` / `den` of the multiprocessors.
  constexpr bool waves(std::int64_t num, std::int64_t den = 1) const { return tiles * den >= sms * num; }
  /// The same at one half, where bitsandbytes rounds down.
  constexpr bool half_wave() const { return tiles >= sms / 2; }
  constexpr bool at_most(std::int64_t num, std::int64_t den) const { return tiles * den <= sms * num; }
  constexpr bool deeper_than_double() const { return k > 2 * n; }
};

/// The first tier that applies says up to how many rows the fused kernel is used.
struct Tier {
  bool (*applies)(const Layer&);
  std::int64_t rows;
};
using Tiers = std::span<const Tier>;

constexpr bool always(const Layer&) { return true; }
constexpr bool three_waves(const Layer& l) { return l.waves(3); }
constexpr bool two_waves(const Layer& l) { return l.waves(2); }
constexpr bool one_wave(const Layer& l) { return l.waves(1); }
constexpr bool half_wave(const Layer& l) { return l.half_wave(); }

constexpr std::int64_t kTinyRows = 4;           // always fused
constexpr std::int64_t kVectorRows = 7;         // what the kernel without tensor cores is good for
constexpr std::int64_t kMaxRows = 1536;         // never above
constexpr std::int64_t kMaxRowsLarge = 512;     // never above for a weight that is not small
constexpr std::int64_t kSmallWeight = 4 << 20;  // elements

// Small weights, wide: k < n / 2.
constexpr Tier kSmallWideA100[] = {{[](const Layer& l) { return !l.waves(1, 3); }, 1536}, {always, 512}};
constexpr Tier kSmallWideHopper[] = {{[](const Layer& l) { return !l.waves(1, 3); }, 512}, {always, 320}};
constexpr Tier kSmallWideT4[] = {{three_waves, 320},
                                 {[](const Layer& l) { return l.k >= 1024; }, 64},
                                 {[](const Layer& l) { return l.k >= 704; }, 96},
                                 {always, 320}};
constexpr Tier kSmallWide[] = {
    {one_wave, 320}, {[](const Layer& l) { return l.tiles * l.k > l.sms * 320; }, 192}, {always, 320}};

// Small weights, the others.
constexpr Tier kSmallA100[] = {{[](const Layer& l) { return l.at_most(1, 8) && l.k >= l.n; }, 32},
                               {[](const Layer& l) { return l.at_most(1, 4) && l.k >= l.n; }, 128},
                               {[](const Layer& l) { return l.at_most(1, 4); }, 384},
                               {[](const Layer& l) { return l.at_most(1, 2); }, 16},
                               {always, 0}};
constexpr Tier kSmallHopper[] = {{[](const Layer& l) { return l.at_most(1, 4); }, 32},
                                 {[](const Layer& l) { return l.at_most(1, 2); }, 16},
                                 {always, 0}};
constexpr Tier kSmallT4[] = {{[](const Layer& l) { return l.m > 8 && !l.waves(1); }, 64},
                             {[](const Layer& l) { return l.at_most(1, 4) && l.k < l.n; }, 32},
                             {[](const Layer& l) { return l.at_most(1, 4); }, 23},
                             {[](const Layer& l) { return l.at_most(1, 2); }, 16},
                             {always, 0}};
constexpr Tier kSmall[] = {{[](const Layer& l) { return l.at_most(1, 4) && l.k < l.n; }, 32},
                           {[](const Layer& l) { return l.at_most(1, 4); }, 23},
                           {[](const Layer& l) { return l.at_most(1, 2); }, 16},
                           {always, 0}};

// Weights of 4 Mi elements and more.
constexpr Tier kA100[] = {{three_waves, 128},
                          {[](const Layer& l) { return l.waves(1) && l.k < l.n; }, 64},
                          {one_wave, 32},
                          {[](const Layer& l) { return l.k >= 3 * l.n && !l.at_most(1, 4); }, 0},
                          {[](const Layer& l) { return l.k == l.n && l.tiles >= 48 && !l.waves(3, 5); }, 0},
                          {[](const Layer& l) { return !l.waves(1, 2) && l.k <= l.n; }, 128},
                          {[](const Layer& l) { return !l.waves(1, 2) && l.waves(1, 3); }, 0},
                          {[](const Layer& l) { return l.half_wave() && l.k < l.n; }, 128},
                          {always, 16}};
constexpr Tier kHopper[] = {
    {three_waves, 64}, {two_waves, 48},
    {one_wave, 32},    {[](const Layer& l) { return l.half_wave() && l.k >= l.n && !l.waves(3, 4); }, 0},
    {half_wave, 16},   {always, 0}};
constexpr Tier kT4[] = {{[](const Layer& l) { return l.waves(3) && l.k < l.n; }, 128}, {half_wave, 64}, {always, 32}};
constexpr Tier kA10[] = {{one_wave, 128}, {half_wave, 64}, {always, 16}};
constexpr Tier kBlackwellRtx[] = {
    {three_waves, 256},
    {two_waves, 128},
    {[](const Layer& l) { return l.waves(4, 5) && l.k >= l.n; }, 96},
    {[](const Layer& l) { return l.waves(4, 5); }, 64},
    {[](const Layer& l) { return l.half_wave() && 2 * l.k >= l.n && l.tiles >= 128; }, 64},
    {half_wave, 8},
    {[](const Layer& l) { return l.deeper_than_double() && l.tiles > 64; }, 16},
    {always, 8}};
constexpr Tier kAda[] = {
    {three_waves, 256},
    {two_waves, 128},
    {[](const Layer& l) { return l.waves(4, 5) && (l.deeper_than_double() || l.tiles >= 200); }, 128},
    {[](const Layer& l) { return l.waves(4, 5) && l.k >= l.n && l.sms >= 60; }, 128},
    {[](const Layer& l) { return l.waves(4, 5) && l.k >= l.n; }, 32},
    {[](const Layer& l) { return l.waves(4, 5); }, 64},
    {[](const Layer& l) { return l.half_wave() && l.deeper_than_double(); }, 64},
    {[](const Layer& l) { return l.half_wave() && l.tiles >= 64; }, 8},
    {half_wave, 32},
    {[](const Layer& l) { return l.k >= 3 * l.n && l.tiles <= 48; }, 12},
    {[](const Layer& l) { return l.k > l.n && l.tiles <= 48; }, 10},
    {[](const Layer& l) { return l.deeper_than_double() || l.tiles < 48; }, 16},
    {always, 8}};

// Blackwell for data centres: whatever the size of the weight.
constexpr Tier kB200[] = {{three_waves, 32}, {[](const Layer& l) { return l.waves(1) && l.k < l.n; }, 8}, {always, 0}};

// Six or seven rows with weights of 4 Mi elements and more, on GPUs with HBM: dequantizing wins at some sizes.
constexpr Tier kA100SixRows[] = {{[](const Layer& l) { return l.tiles >= 48 && l.k > l.n && !l.waves(3, 4); }, 0},
                                 {[](const Layer& l) { return l.tiles >= 48 && l.k == l.n && !l.waves(3, 5); }, 0},
                                 {always, kVectorRows}};
constexpr Tier kHopperSixRows[] = {
    {[](const Layer& l) { return l.tiles >= 36 && l.k > l.n && !l.waves(3, 4); }, 0},
    {[](const Layer& l) { return l.tiles >= 36 && l.k == l.n && !l.waves(3, 4) && l.waves(3, 5); }, 0},
    {always, kVectorRows}};
constexpr Tier kFewRows[] = {{always, kVectorRows}};

/// The tables of one architecture.
struct Calibration {
  Tiers small_wide, small, large, six_rows;
};
constexpr Calibration kDefaultCalibration{kSmallWide, kSmall, kAda, kFewRows};
constexpr Calibration kA100Calibration{kSmallWideA100, kSmallA100, kA100, kA100SixRows};
constexpr Calibration kHopperCalibration{kSmallWideHopper, kSmallHopper, kHopper, kHopperSixRows};
constexpr Calibration kT4Calibration{kSmallWideT4, kSmallT4, kT4, kFewRows};
constexpr Calibration kA10Calibration{kSmallWide, kSmall, kA10, kFewRows};
constexpr Calibration kBlackwellRtxCalibration{kSmallWide, kSmall, kBlackwellRtx, kFewRows};

const Calibration& calibration_of(std::uint32_t compute_capability) {
  if (compute_capability / 10 == 9) return kHopperCalibration;
  switch (compute_capability) {
    case 75:
      return kT4Calibration;
    case 80:
      return kA100Calibration;
    case 86:
      return kA10Calibration;
    case 120:
      return kBlackwellRtxCalibration;
    default:
      return kDefaultCalibration;
  }
}

bool fits(Tiers tiers, const Layer& layer) {
  for (const Tier& tier : tiers)
    if (tier.applies(layer)) return layer.m <= tier.rows;
  return false;
}

bool fused_at(std::uint32_t compute_capability, const Layer& layer) {
  if (compute_capability / 10 == 10) return fits(kB200, layer);
  const Calibration& calibration = calibration_of(compute_capability);
  if (layer.n * layer.k < kSmallWeight)
    return fits(2 * layer.k < layer.n ? calibration.small_wide : calibration.small, layer);
  if (layer.m > kMaxRowsLarge) return false;
  if (layer.m <= kVectorRows) return layer.m < 6 || fits(calibration.six_rows, layer);
  if (compute_capability == 121 && layer.waves(1)) return layer.m <= 256;  // GB10; from 0.50.1
  return fits(calibration.large, layer);
}

}  // namespace

bool uses_fused_gemm_4bit(const GemmShape& shape, DType dtype, const DeviceTraits& traits) {
  if (shape.m > kMaxRows || shape.k % FourBitFormat::kBlocksize != 0) return false;
  if (shape.m <= kTinyRows) return true;
  const std::uint32_t arch = traits.compute_capability;
  const bool tensor_cores = dtype != DType::float32 && (arch >= 80 || (arch == 75 && dtype == DType::float16));
  if (!tensor_cores) return shape.m <= kVectorRows;
  if (arch == 87 || arch / 10 == 11) return false;  // Jetson: not calibrated
  return fused_at(arch, {shape.m, shape.n, shape.k, (shape.n + 63) / 64, traits.sm_count});
}

}  // namespace qlp
