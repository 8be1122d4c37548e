#include "quant/codes.h"

#include <cmath>

#include <doctest/doctest.h>

#include "quant/dequantize.h"
#include "quant/quantize.h"
#include "tensor/cpu_device.h"

namespace qlp {

using test::CpuDevice;

TEST_CASE("quant/codes: the values of the published table come back as they are") {
  for (const bool nf4 : {true, false}) {
    CpuDevice cpu;
    const std::vector<double> table = nf4 ? nf4_values() : fp4_values();
    std::vector<double> values;
    for (int row = 0; row < 8; ++row)
      for (std::size_t i = 0; i < 16; ++i) values.push_back(table[i] * (row + 1));  // 64 have one absmax
    FourBitQuantizer quantizer({.nf4 = nf4}, {});
    const Tensor weight = cpu.tensor({2, 64}, values, DType::float32);
    const QuantizedWeight quantized = quantizer.quantize(cpu.ctx, weight);
    const std::vector<double> back = cpu.numbers(dequantize_4bit(cpu.ctx, quantized.packed, quantized.state));
    const auto last = back.size() / 2 - 16;  // the rows with the greatest absmax of each block
    for (std::size_t i = 0; i < 16; ++i) CHECK(back[last + i] == doctest::Approx(table[i] * 4).epsilon(1e-6));
    for (std::size_t i = 0; i < 16; ++i)
      CHECK(back[back.size() - 16 + i] == doctest::Approx(table[i] * 8).epsilon(1e-6));
  }
}

TEST_CASE("quant/codes: NormalFloat is the mean of neighbouring quantiles, over the greatest") {
  // Appendix E of the QLoRA paper: zero, one and minus one are among them, and there are eight above and seven below.
  const std::vector<double> values = nf4_values();
  CHECK(std::is_sorted(values.begin(), values.end()));
  CHECK(values.front() == -1);
  CHECK(values[7] == 0);
  CHECK(values.back() == 1);
}

TEST_CASE("quant/codes: the dynamic type has 256 values in seven decades") {
  for (const bool is_signed : {true, false}) {
    const std::vector<double> values = dynamic_values(is_signed);
    CHECK(values.size() == 256);
    CHECK(std::is_sorted(values.begin(), values.end()));
    CHECK(values.back() == 1);
    CHECK(values.front() == doctest::Approx(is_signed ? -0.99297 : 0).epsilon(1e-4));
  }
}

TEST_CASE("quant/codes: double quantization errs by what eight bits of the absmax lose") {
  CpuDevice cpu;
  const Tensor weight = cpu.random({64, 640}, -1, 1, DType::float32);
  FourBitQuantizer once({}, {}), twice({.double_quant = true}, {});
  const QuantizedWeight a = once.quantize(cpu.ctx, weight), b = twice.quantize(cpu.ctx, weight);
  const auto x = cpu.numbers(weight), one = cpu.numbers(dequantize_4bit(cpu.ctx, a.packed, a.state)),
             two = cpu.numbers(dequantize_4bit(cpu.ctx, b.packed, b.state));
  double error = 0, difference = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    error = std::max(error, std::abs(x[i] - one[i]));
    difference = std::max(difference, std::abs(one[i] - two[i]));
  }
  CHECK(error < 0.16);  // half of the widest step, 0.304, times an absmax of one
  CHECK(difference < 0.01);
}

}  // namespace qlp
