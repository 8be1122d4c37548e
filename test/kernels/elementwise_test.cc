#include <vector>

#include "kernels/bench.h"

namespace qlp::test {
namespace {

constexpr Unary kUnaries[] = {
    Unary::copy,         Unary::add,    Unary::mul,       Unary::neg,        Unary::abs,        Unary::square,
    Unary::cube,         Unary::sqrt,   Unary::rsqrt,     Unary::reciprocal, Unary::cos,        Unary::sin,
    Unary::tanh,         Unary::silu,   Unary::gelu_tanh, Unary::at_most,    Unary::at_least,   Unary::select,
    Unary::not_negative, Unary::is_nan, Unary::is_inf,    Unary::sigmoid,    Unary::log_sigmoid};
constexpr Binary kBinaries[] = {Binary::add,
                                Binary::mul,
                                Binary::div,
                                Binary::logical_or,
                                Binary::logical_and,
                                Binary::less_equal,
                                Binary::greater,
                                Binary::equal,
                                Binary::silu_backward,
                                Binary::gelu_tanh_backward,
                                Binary::tanh_backward,
                                Binary::masked,
                                Binary::sigmoid_backward,
                                Binary::pass_at_most,
                                Binary::pass_within};

TEST_CASE("kernels/elementwise: every operation of one operand, at the edges of blocks, for every float type") {
  Bench bench;
  for (const DType dtype : kFloats)
    for (const std::int64_t count : {1, 255, 256, 257, 700}) {
      Twin x(dtype, {count}), out(dtype, {count});
      bench.randomize(x, -0.5, 4);  // below zero a root is no number, on both
      for (const Unary op : kUnaries)
        bench.compare([&](Kernels& k, const auto& at) { k.unary(0, op, at(out), at(x), 0.75, -0.5); }, {&out},
                      tolerance_of(dtype));
    }
}

TEST_CASE("kernels/elementwise: every operation of two operands, at the edges of blocks, for every float type") {
  Bench bench;
  for (const DType dtype : kFloats)
    for (const std::int64_t count : {1, 255, 256, 257, 700}) {
      Twin x(dtype, {count}), y(dtype, {count}), out(dtype, {count});
      bench.randomize(x), bench.randomize(y, 0.5, 3);
      for (const Binary op : kBinaries)
        bench.compare([&](Kernels& k, const auto& at) { k.binary(0, op, at(out), at(x), at(y), 0.75); }, {&out},
                      tolerance_of(dtype));
    }
}

TEST_CASE("kernels/elementwise: operands broadcast, results have gaps, and nothing is written beside them") {
  Bench bench;
  Twin x(DType::bfloat16, {3, 1, 7}), y(DType::float32, {5, 1});
  Twin out(DType::float32, {3, 5, 16}, {3, 5, 7}, {80, 16, 2});  // every second of 16 columns
  bench.randomize(x), bench.randomize(y);
  bench.compare([&](Kernels& k, const auto& at) { k.binary(0, Binary::add, at(out), at(x), at(y), 2); }, {&out}, 1e-6);
  Twin turned(DType::float16, {7, 5, 3}, {3, 5, 7}, {1, 3, 15});
  bench.compare([&](Kernels& k, const auto& at) { k.unary(0, Unary::copy, at(turned), at(out), 0, 0); }, {&turned},
                tolerance_of(DType::float16));
}

TEST_CASE("kernels/elementwise: a result may take the place of an operand") {
  Bench bench;
  Twin x(DType::bfloat16, {300}), y(DType::bfloat16, {300});
  bench.randomize(x), bench.randomize(y);
  bench.compare([&](Kernels& k, const auto& at) { k.binary(0, Binary::mul, at(x), at(x), at(y), 1); }, {&x}, 1.0 / 128);
}

TEST_CASE("kernels/elementwise: casts between all types keep every number that both can hold") {
  Bench bench;
  const std::vector<double> values{0, 1, 2, 3, 17, 100};
  for (const auto& from : kDTypes)
    for (const auto& to : kDTypes) {
      Twin x(from.dtype, {6}), out(to.dtype, {6});
      bench.set(x, from.dtype == DType::boolean ? std::vector<double>{0, 1, 1, 0, 1, 0} : values);
      bench.compare([&](Kernels& k, const auto& at) { k.unary(0, Unary::copy, at(out), at(x), 0, 0); }, {&out}, 0);
    }
  Twin large(DType::int64, {2}), same(DType::int64, {2});
  bench.set(large, {4503599627370497, -4503599627370495});  // float32 holds neither
  bench.compare([&](Kernels& k, const auto& at) { k.unary(0, Unary::copy, at(same), at(large), 0, 0); }, {&same}, 0);
}

TEST_CASE("kernels/elementwise: 16-bit numbers are rounded as on the host, bit for bit") {
  Bench bench;
  // Halfway between neighbours, past the largest, below the smallest, subnormal.
  const std::vector<double> values{1.00390625, 1.01171875, 65504,  65519.996,   65520, 3.4e38, 1e-8,     5.9604645e-8,
                                   8.9e-8,     6.097e-5,   6.1e-5, -1.00390625, -6e-8, 0,      -2.98e-8, 1.0004883};
  Twin x(DType::float32, {16}), out(DType::float16, {16}), brain(DType::bfloat16, {16});
  bench.set(x, values);
  bench.compare([&](Kernels& k, const auto& at) { k.unary(0, Unary::copy, at(out), at(x), 0, 0); }, {&out}, 0);
  bench.compare([&](Kernels& k, const auto& at) { k.unary(0, Unary::copy, at(brain), at(x), 0, 0); }, {&brain}, 0);
}

TEST_CASE("kernels/elementwise: what is no number or infinite is found, and passes through") {
  Bench bench;
  Twin x(DType::float32, {4}), y(DType::float32, {4}), out(DType::boolean, {4}), copy(DType::bfloat16, {4});
  bench.set(x, {0, 1, -1, 0}), bench.set(y, {0, 0, 0, 1});
  Twin odd(DType::float32, {4});  // nan, inf, -inf, 0
  bench.compare([&](Kernels& k, const auto& at) { k.binary(0, Binary::div, at(odd), at(x), at(y), 0); }, {&odd}, 0);
  bench.compare([&](Kernels& k, const auto& at) { k.unary(0, Unary::is_nan, at(out), at(odd), 0, 0); }, {&out}, 0);
  bench.compare([&](Kernels& k, const auto& at) { k.unary(0, Unary::is_inf, at(out), at(odd), 0, 0); }, {&out}, 0);
  bench.compare([&](Kernels& k, const auto& at) { k.unary(0, Unary::copy, at(copy), at(odd), 0, 0); }, {&copy}, 0);
  Twin capped(DType::float32, {4});
  bench.compare([&](Kernels& k, const auto& at) { k.unary(0, Unary::at_most, at(capped), at(odd), 0.5, 0); }, {&capped},
                0);
}

TEST_CASE("kernels/elementwise: one element that is not finite raises the flag, and none leaves it as it was") {
  Bench bench;
  Twin x(DType::float16, {600}), flag(DType::float32, {1});
  bench.randomize(x);
  for (const double before : {0.0, 1.0}) {
    bench.set(flag, {before});
    bench.compare([&](Kernels& k, const auto& at) { k.flag_non_finite(0, at(flag), at(x)); }, {&flag}, 0);
    CHECK(bench.on_device(flag)[0] == before);
  }
  std::vector<double> values(600, 1.0);
  values[513] = 1e6;  // infinite in 16 bits
  bench.set(x, values), bench.set(flag, {0});
  bench.compare([&](Kernels& k, const auto& at) { k.flag_non_finite(0, at(flag), at(x)); }, {&flag}, 0);
  CHECK(bench.on_device(flag)[0] == 1);
}

TEST_CASE("kernels/elementwise: between host and device, cast on the way") {
  Bench bench;
  Twin x(DType::float32, {37}), y(DType::bfloat16, {37});
  bench.randomize(x);
  bench.device().unary(0, Unary::copy, y.device, x.cpu, 0, 0);
  bench.host().unary(0, Unary::copy, y.cpu, x.cpu, 0, 0);
  CHECK(bench.on_device(y) == bench.on_host(y));
  Twin z(DType::float32, {37});
  bench.device().unary(0, Unary::copy, z.cpu, y.device, 0, 0);
  CHECK(bench.on_host(z) == bench.on_host(y));
}

TEST_CASE("kernels/elementwise: nothing to do for no elements") {
  Bench bench;
  Twin x(DType::float32, {0, 4}), out(DType::float32, {0, 4});
  bench.compare([&](Kernels& k, const auto& at) { k.unary(0, Unary::neg, at(out), at(x), 0, 0); }, {&out}, 0);
}

}  // namespace
}  // namespace qlp::test
