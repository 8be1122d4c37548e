// Averages of optimizers for kernels under test.
#pragma once

#include <cmath>
#include <vector>

#include "kernels/bench.h"
#include "tensor/optimizer_kernels.h"

namespace qlp::test {

inline OptimizerKernels& optimizers(Kernels& kernels) { return dynamic_cast<OptimizerKernels&>(kernels); }

/// 256 ascending values, most of them small.
inline std::vector<double> squares_of_a_line(bool is_signed) {
  std::vector<double> values;
  for (int i = 0; i < 256; ++i) {
    const double x = is_signed ? (i - 127) / 128.0 : i / 255.0;
    values.push_back(x * std::abs(x));
  }
  return values;
}

/// An average of `count` elements on both sides: numbers, or with a blocksize codes.
class TwinAverage {
 public:
  TwinAverage(Bench& bench, std::int64_t count, std::int64_t blocksize, bool is_signed)
      : blocksize_(blocksize),
        is_signed_(is_signed),
        values_(blocksize ? DType::uint8 : DType::float32, {count}),
        absmax_(DType::float32, {blocksize ? (count + blocksize - 1) / blocksize : 1}),
        code_(DType::float32, {256}) {
    bench.set(code_, squares_of_a_line(is_signed));
    bench.randomize(absmax_, 0.5, 1);
    if (blocksize)
      bench.randomize(values_, is_signed ? 0 : 1, 255.9);
    else
      bench.randomize(values_, is_signed ? -1 : 0.1, 1);
  }

  template <class At>
  Average at(const At& at) const {
    Average out{.values = at(values_), .codes = {}, .is_signed = is_signed_};
    if (blocksize_) out.codes = {at(absmax_), at(code_), blocksize_};
    return out;
  }
  /// What an update writes.
  std::vector<Twin*> written() {
    return blocksize_ ? std::vector<Twin*>{&absmax_, &values_} : std::vector<Twin*>{&values_};
  }

 private:
  std::int64_t blocksize_;
  bool is_signed_;
  Twin values_, absmax_, code_;
};

/// Compares one step of a rule at the edges of blocks, with averages as numbers and as codes.
inline void compare_updates(UpdateRule rule, const std::vector<bool>& signs, const UpdateNumbers& numbers) {
  Bench bench;
  for (const DType dtype : kFloats)
    for (const std::int64_t blocksize : {0, 256, 2048})
      for (const std::int64_t count : {1, 255, 257, 2049, 4097}) {
        CAPTURE(blocksize);
        CAPTURE(count);
        Twin p(dtype, {count}), grad(dtype, {count});
        bench.randomize(p), bench.randomize(grad);
        std::vector<std::unique_ptr<TwinAverage>> averages;
        std::vector<Twin*> written{&p};
        for (const bool sign : signs) {
          averages.push_back(std::make_unique<TwinAverage>(bench, count, blocksize, sign));
          for (Twin* twin : averages.back()->written()) written.push_back(twin);
        }
        bench.compare(
            [&](Kernels& on, const auto& at) {
              std::vector<Average> arrays;
              for (const auto& average : averages) arrays.push_back(average->at(at));
              optimizers(on).update(0, rule, at(p), at(grad), arrays, numbers);
            },
            written, tolerance_of(dtype));
      }
}

}  // namespace qlp::test
