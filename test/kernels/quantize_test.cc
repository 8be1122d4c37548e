#include <array>

#include "kernels/bench.h"

namespace qlp::test {
namespace {

// The codes of bitsandbytes (functional.py, get_4bit_type).
const std::vector<double> kNf4{-1.0,
                               -0.6961928009986877,
                               -0.5250730514526367,
                               -0.39491748809814453,
                               -0.28444138169288635,
                               -0.18477343022823334,
                               -0.09105003625154495,
                               0.0,
                               0.07958029955625534,
                               0.16093020141124725,
                               0.24611230194568634,
                               0.33791524171829224,
                               0.44070982933044434,
                               0.5626170039176941,
                               0.7229568362236023,
                               1.0};
const std::vector<double> kFp4{0, 0.0052083333,  0.66666667,  1,  0.33333333,  0.5,  0.16666667,  0.25,
                               0, -0.0052083333, -0.66666667, -1, -0.33333333, -0.5, -0.16666667, -0.25};

/// 256 ascending values that are densest around zero, as those of the dynamic map.
std::vector<double> ascending(bool is_signed) {
  std::vector<double> code;
  for (int i = 0; i < 256; ++i) {
    const double x = is_signed ? (i - 127) / 128.0 : i / 255.0;
    code.push_back(x * (x < 0 ? -x : x));
  }
  code.back() = 1;
  return code;
}

Blockwise on(const auto& at, const Twin& absmax, const Twin& code, std::int64_t blocksize) {
  return {at(absmax), at(code), blocksize};
}

TEST_CASE("kernels/quantize: 4 bits and back, for sizes at the edges of blocks, bit for bit as on the host") {
  Bench bench;
  Twin code(DType::float32, {16});
  for (const bool nf4 : {true, false}) {
    bench.set(code, nf4 ? kNf4 : kFp4);
    for (const DType dtype : kFloats)
      for (const std::int64_t count : {1, 2, 63, 64, 65, 127, 1000})
        for (const std::int64_t blocksize : {64, 128}) {
          Twin x(dtype, {count}), packed(DType::uint8, {(count + 1) / 2}), out(dtype, {count});
          Twin absmax(DType::float32, {(count + blocksize - 1) / blocksize});
          bench.randomize(x, -0.1, 0.1);
          bench.compare(
              [&](Kernels& k, const auto& at) {
                k.quantize_4bit(0, at(packed), on(at, absmax, code, blocksize), at(x), nf4);
              },
              {&packed, &absmax}, 0);
          bench.compare(
              [&](Kernels& k, const auto& at) {
                k.dequantize_4bit(0, at(out), at(packed), on(at, absmax, code, blocksize));
              },
              {&out}, 0);
        }
  }
}

TEST_CASE("kernels/quantize: every code of 4 bits is its own nearest, and a byte holds the first in its high half") {
  Bench bench;
  for (const bool nf4 : {true, false}) {
    const auto& values = nf4 ? kNf4 : kFp4;
    Twin x(DType::float32, {64}), packed(DType::uint8, {32}), absmax(DType::float32, {1}), code(DType::float32, {16});
    std::vector<double> numbers(64, 0.0);
    for (std::size_t i = 0; i < 16; ++i) numbers[i] = 3 * values[i];
    bench.set(x, numbers), bench.set(code, values);
    bench.device().quantize_4bit(0, packed.device, {absmax.device, code.device, 64}, x.device, nf4);
    CHECK(bench.on_device(absmax)[0] == 3);
    const auto bytes = bench.on_device(packed);
    for (unsigned i = 0; i < 8; ++i) {
      if (!nf4 && i == 4) continue;  // -0 has the code of 0
      CHECK(bytes[i] == ((2 * i) << 4U | (2 * i + 1)));
    }
  }
}

TEST_CASE("kernels/quantize: a block of zeros stays zero") {
  Bench bench;
  Twin x(DType::bfloat16, {64}), packed(DType::uint8, {32}), absmax(DType::float32, {1}), code(DType::float32, {16});
  Twin out(DType::bfloat16, {64});
  bench.set(x, std::vector<double>(64, 0.0)), bench.set(code, kNf4);
  bench.compare(
      [&](Kernels& k, const auto& at) { k.quantize_4bit(0, at(packed), on(at, absmax, code, 64), at(x), true); },
      {&packed, &absmax}, 0);
  bench.compare(
      [&](Kernels& k, const auto& at) { k.dequantize_4bit(0, at(out), at(packed), on(at, absmax, code, 64)); }, {&out},
      0);
}

TEST_CASE("kernels/quantize: 8 bits and back, for sizes at the edges of blocks, bit for bit as on the host") {
  Bench bench;
  Twin code(DType::float32, {256});
  for (const bool is_signed : {true, false}) {
    bench.set(code, ascending(is_signed));
    for (const std::int64_t count : {1, 255, 256, 257, 1000})
      for (const std::int64_t blocksize : {256, 2048}) {
        Twin x(DType::float32, {count}), codes(DType::uint8, {count}), out(DType::float32, {count});
        Twin absmax(DType::float32, {(count + blocksize - 1) / blocksize});
        bench.randomize(x, is_signed ? -3 : 0, 3);
        bench.compare(
            [&](Kernels& k, const auto& at) { k.quantize_8bit(0, at(codes), on(at, absmax, code, blocksize), at(x)); },
            {&codes, &absmax}, 0);
        bench.compare(
            [&](Kernels& k, const auto& at) {
              k.dequantize_8bit(0, at(out), at(codes), on(at, absmax, code, blocksize));
            },
            {&out}, 0);
      }
  }
}

TEST_CASE("kernels/quantize: a product with a packed weight, its statistics plain or quantized again") {
  Bench bench;
  for (const auto& [m, n, k] : {std::array{1, 17, 64}, {20, 33, 128}}) {
    Twin weight(DType::bfloat16, {n, k}), packed(DType::uint8, {n * k / 2}), code(DType::float32, {16});
    const std::int64_t blocks = n * k / 64;
    Twin absmax(DType::float32, {blocks}), x(DType::bfloat16, {m, k}), out(DType::bfloat16, {m, n});
    bench.randomize(weight), bench.randomize(x), bench.set(code, kNf4);
    bench.compare([&](Kernels& on_,
                      const auto& at) { on_.quantize_4bit(0, at(packed), on(at, absmax, code, 64), at(weight), true); },
                  {&packed, &absmax}, 0);
    bench.compare(
        [&](Kernels& on_, const auto& at) {
          on_.gemm_4bit(0, at(out), at(x), {at(packed), at(absmax), at(code), {}, {}, {}, {n, k}});
        },
        {&out}, 1.0 / 64);
    Twin codes(DType::uint8, {blocks}), nested(DType::float32, {1}), map(DType::float32, {256}),
        offset(DType::float32, {});
    bench.randomize(codes, 0, 255.9), bench.set(nested, {0.1}), bench.set(map, ascending(true)),
        bench.set(offset, {0.8});
    bench.compare(
        [&](Kernels& on_, const auto& at) {
          on_.gemm_4bit(0, at(out), at(x), {at(packed), at(codes), at(code), at(offset), at(nested), at(map), {n, k}});
        },
        {&out}, 1.0 / 64);
  }
}

}  // namespace
}  // namespace qlp::test
