// What parameters become in two steps, against the libraries' own classes on the same numbers: torch 2.14.1,
// transformers 5.24.0 (Adafactor as the Trainer makes it), schedulefree 1.4.1, bitsandbytes 0.50.2 (the classes of
// bnb.optim on the CPU, in 32 bits), torch-optimi 0.3.3.
#include <cmath>

#include <doctest/doctest.h>

#include "optim/optimizer.h"
#include "tensor/cpu_device.h"

namespace qlp {
namespace {

using Numbers = std::vector<double>;

/// Two steps at a rate of 0.1.
Numbers after_two_steps(const OptimizerKind& kind, const Shape& shape, const Numbers& values, const Numbers& grad) {
  test::CpuDevice cpu;
  const Scoped no_grad(cpu.ctx.grad_enabled, false);
  const Tensor parameter = cpu.tensor(shape, values, DType::float32);
  const auto optimizer = make_optimizer(cpu.ctx, kind, {{parameter}});
  optimizer->set_lr(0.1);
  for (const bool first : {true, false}) {
    Numbers next = grad;
    for (double& g : next) g = first ? g : 0.1 - g / 2;
    set_grad(parameter, cpu.tensor(shape, next, DType::float32));
    optimizer->step(cpu.ctx);
  }
  return cpu.numbers(parameter);
}

void check(const OptimizerKind& kind, const Numbers& expected, double tolerance = 1e-6) {
  const Numbers values{1, -2, 0.5, 0.25, -0.75, 3}, grad{0.5, -0.25, 0.125, -1, 2, 0.75};
  const bool matrix = expected.size() == 6;
  const auto count = static_cast<std::ptrdiff_t>(expected.size());
  const Numbers updated =
      after_two_steps(kind, matrix ? Shape{2, 3} : Shape{3}, Numbers(values.begin(), values.begin() + count),
                      Numbers(grad.begin(), grad.begin() + count));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CAPTURE(i);
    CHECK(updated[i] == doctest::Approx(expected[i]).epsilon(tolerance));
  }
}

}  // namespace

TEST_CASE("optim/updates: parameters become what the libraries make of them") {
  check(Adagrad{}, {0.9287348, -1.9668964, 0.3712652, 0.2985504, -0.8089635, 2.9344256});
  check(RmsProp{}, {0.2886753, -1.6708205, -0.7886741, 0.7336022, -1.3379183, 2.345782});
  check(Adafactor{}, {0.9010711, -2.0160964, 0.4072866, 0.262386, -0.7806354, 2.9603243});
  check(Adafactor{}, {0.9434216, -1.995353, 0.3565784});
  constexpr double kInBfloat16 = 0.01;  // where its products are
  check(Muon{}, {0.9024516, -2.0566719, 0.3882883, 0.1755113, -0.7567157, 2.8951046}, kInBfloat16);
  check(ScheduleFree{}, {0.9223551, -1.9520346, 0.3776449, 0.3099769, -0.8180758, 2.9267819});
  using Algorithm = Bitsandbytes::Algorithm;
  check(Bitsandbytes{Algorithm::lion}, {1, -2, 0.3, 0.25, -0.75, 3});
  check(Bitsandbytes{Algorithm::rmsprop}, {0.2886752, -1.6708205, -0.7886741, 0.7336021, -1.3379182, 2.345782});
  check(Bitsandbytes{Algorithm::ademamix}, {0.8571178, -1.8999448, 0.3142923, 0.369224, -0.8806349, 2.8626301});
  check(StableAdamW{}, {0.8572151, -1.9, 0.3144303, 0.3691498, -0.8805495, 2.8627222});
  check(ScheduleFree{ScheduleFree::Base::sgd}, {0.95825, -1.987375, 0.4854375, 0.317, -0.9005, 2.940125});
}

TEST_CASE("optim/updates: averages in pages are as good as any, in codes they are near") {
  using Algorithm = Bitsandbytes::Algorithm;
  constexpr std::int64_t kCount = 100000;  // from which on bitsandbytes pages
  const auto wave = [](double scale, double step) {
    Numbers numbers;
    for (std::int64_t i = 0; i < kCount; ++i) numbers.push_back(scale * std::sin(step * static_cast<double>(i)));
    return numbers;
  };
  const Numbers values = wave(1, 0.7), grad = wave(0.3, 1.1);
  for (const auto algorithm : {Algorithm::adamw, Algorithm::lion, Algorithm::rmsprop, Algorithm::ademamix}) {
    CAPTURE(static_cast<int>(algorithm));
    const auto after = [&](int bits, bool paged) {
      return after_two_steps(Bitsandbytes{algorithm, bits, paged}, {kCount}, values, grad);
    };
    const Numbers whole = after(32, false), codes = after(8, false);
    CHECK(after(32, true) == whole);
    CHECK(after(8, true) == codes);
    double difference = 0;
    for (std::size_t i = 0; i < whole.size(); ++i) difference += std::abs(whole[i] - codes[i]) / kCount;
    CHECK(difference < 0.02);
  }
}

}  // namespace qlp
