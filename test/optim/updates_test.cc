// What parameters become in a few steps, against the libraries' own classes on the same numbers: torch 2.14.1,
// transformers 5.24.0 (Adafactor as the Trainer makes it), schedulefree 1.4.1, grokadamw 0.1.2, bitsandbytes 0.50.2
// (the classes of bnb.optim on the CPU, in 32 bits), torch-optimi 0.3.3, torchao 0.18 (single_param_adam, not
// compiled).
#include <cmath>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "optim/optimizer.h"
#include "tensor/cpu_device.h"

namespace qlp {
namespace {

using Numbers = std::vector<double>;

struct Steps {
  int count = 2;
  double weight_decay = 0;
  bool in_second_group = false;
};

/// At a rate of 0.1, with two gradients in turn.
Numbers after_steps(const OptimizerKind& kind, const Shape& shape, const Numbers& values, const Numbers& grad,
                    const Steps& steps = {}) {
  test::CpuDevice cpu;
  const Scoped no_grad(cpu.ctx.grad_enabled, false);
  const Tensor parameter = cpu.tensor(shape, values, DType::float32);
  std::vector<ParameterGroup> groups{{parameter}};
  if (steps.in_second_group) groups.insert(groups.begin(), ParameterGroup{});
  const auto optimizer = make_optimizer(cpu.ctx, kind, std::move(groups));
  optimizer->set_lr(0.1);
  optimizer->set_weight_decays(std::vector(steps.in_second_group ? 2 : 1, steps.weight_decay));
  for (int step = 0; step < steps.count; ++step) {
    Numbers next = grad;
    for (double& g : next) g = step % 2 == 0 ? g : 0.1 - g / 2;
    set_grad(parameter, cpu.tensor(shape, next, DType::float32));
    optimizer->step(cpu.ctx);
  }
  return cpu.numbers(parameter);
}

void check(const OptimizerKind& kind, const Numbers& expected, double tolerance = 1e-6, const Steps& steps = {}) {
  const Numbers values{1, -2, 0.5, 0.25, -0.75, 3}, grad{0.5, -0.25, 0.125, -1, 2, 0.75};
  const bool matrix = expected.size() == 6;
  const auto count = static_cast<std::ptrdiff_t>(expected.size());
  const Numbers updated =
      after_steps(kind, matrix ? Shape{2, 3} : Shape{3}, Numbers(values.begin(), values.begin() + count),
                  Numbers(grad.begin(), grad.begin() + count), steps);
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
  check(Muon{}, {0.9024516, -2.0566719, 0.3882883, 0.1755113, -0.7567157, 2.8951046}, kInBfloat16,
        {.weight_decay = 0.1});  // as the class has it
  check(ScheduleFree{}, {0.9223551, -1.9520346, 0.3776449, 0.3099769, -0.8180758, 2.9267819});
  using Algorithm = Bitsandbytes::Algorithm;
  check(Bitsandbytes{Algorithm::lion}, {1, -2, 0.3, 0.25, -0.75, 3});
  check(Bitsandbytes{Algorithm::rmsprop}, {0.2886752, -1.6708205, -0.7886741, 0.7336021, -1.3379182, 2.345782});
  check(Bitsandbytes{Algorithm::ademamix}, {0.8571178, -1.8999448, 0.3142923, 0.369224, -0.8806349, 2.8626301});
  check(Lion{}, {1, -2, 0.3, 0.25, -0.75, 3});  // as bitsandbytes'
  check(StableAdamW{}, {0.8572151, -1.9, 0.3144303, 0.3691498, -0.8805495, 2.8627222});
  check(GrokAdamW{}, {0.8805619, -1.9339044, 0.3028855, 0.3345167, -0.8492925, 2.8902225});
  check(ScheduleFree{ScheduleFree::Base::sgd}, {0.95825, -1.987375, 0.4854375, 0.317, -0.9005, 2.940125});
}

TEST_CASE("optim/updates: weight decay, of the parameter or of its gradient") {
  const auto decays = [](const OptimizerKind& kind, const Numbers& expected) {
    check(kind, expected, 1e-6, {.weight_decay = 0.1});
  };
  decays(AdamW{}, {0.8383152, -1.8612, 0.3054803, 0.3631748, -0.8646244, 2.8040223});
  decays(Sgd{}, {0.9456, -1.95795, 0.473925, 0.284025, -0.843075, 2.8935499});
  decays(Adagrad{}, {0.9099504, -1.9077543, 0.3595074, 0.2954257, -0.8044482, 2.8985717});
  decays(RmsProp{}, {0.2436852, -1.2688951, -0.4283957, 0.6513667, -1.2605639, 2.0716043});
  decays(Adafactor{}, {0.8828923, -1.9767737, 0.3979694, 0.256575, -0.7647828, 2.9015462});
  decays(GrokAdamW{}, {0.861662, -1.8951044, 0.2939355, 0.3285417, -0.8333675, 2.8315227});
  decays(ScheduleFree{}, {0.9074601, -1.9216946, 0.3704724, 0.3055657, -0.8059421, 2.8809967});
  decays(ScheduleFree{ScheduleFree::Base::sgd}, {0.94308, -1.9566226, 0.4777837, 0.3125888, -0.8878163, 2.8942025});
}

// apollo_torch 1.0.3 with its random numbers replaced by ours, at TrainingArguments' betas and epsilon.
TEST_CASE("optim/updates: APOLLO scales gradients by what their projections become") {
  Apollo apollo{.low_rank = {.rank = 2, .update_proj_gap = 2}};
  check(apollo, {0.7463475, -1.8618727, 0.1369051, 0.4411366, -0.9716064, 2.7606986}, 1e-5, {.count = 4});
  check(apollo, {0.5942826, -1.5131519, 0.0881561, 0.3673734, -0.8021526, 2.2362599}, 1e-5,
        {.count = 4, .weight_decay = 0.5});
  const Steps projected{.count = 4, .in_second_group = true};
  check(apollo, {0.9450421, -1.0339175, -0.3096602, -0.1617137, -9.4567986, 7.0292907}, 1e-4, projected);
  const auto once = [](const Apollo& kind) {
    return after_steps(kind, {2, 1}, {1, 2}, {0.5, 1}, {.count = 1, .in_second_group = true});
  };
  const Numbers plain = once(apollo), doubled = once({.low_rank = {.rank = 2, .update_proj_gap = 2, .scale = 4}});
  for (std::size_t i = 0; i < 2; ++i)
    CHECK(doubled[i] - static_cast<double>(i + 1) ==
          doctest::Approx(2 * (plain[i] - static_cast<double>(i + 1))).epsilon(1e-4));
  apollo.scale_type = Apollo::Scale::tensor;
  check(apollo, {0.7508179, -2.0881786, 0.3313196, 0.3228245, -1.3211888, 2.6971502}, 1e-4, projected);
}

// galore_torch 1.0 on torch's SVD of the CPU.
TEST_CASE("optim/updates: GaLore trains in the space of singular vectors") {
  using enum ProjectionSide;
  constexpr auto kAdafactor = GaLore::Base::adafactor;
  const auto galore = [](LowRank low_rank, const Numbers& expected, GaLore::Base base = GaLore::Base::adamw) {
    low_rank.scale = GaLore::kScale;
    check(GaLore{.base = base, .low_rank = low_rank}, expected, 1e-4, {.count = 3, .in_second_group = true});
  };
  galore({.rank = 1}, {0.9927473, -1.992126, 0.5082732, 0.2931105, -0.796804, 2.9508231});
  galore({.rank = 1, .proj_type = reverse_std}, {0.9817918, -1.9657025, 0.5122434, 0.2710624, -0.7896734, 2.9858375});
  galore({.rank = 2}, {0.9358597, -2.0658202, 0.4479467, 0.2835401, -0.8092018, 2.9406743});
  galore({.rank = 2, .proj_type = right}, {0.9360442, -1.9776257, 0.4776086, 0.2137426, -0.8046127, 2.9424415});
  galore({.rank = 2, .proj_type = full}, {0.9690006, -2.0318775, 0.4606654, 0.2400761, -0.80221, 2.9594042});
  galore({.rank = 1}, {0.9948456, -1.9942646, 0.5061331, 0.2806379, -0.7840923, 2.9635441}, kAdafactor);
  galore({.rank = 2, .proj_type = full}, {0.9406512, -2.0222225, 0.4505649, 0.2313607, -0.7564921, 2.9847989},
         kAdafactor);
}

TEST_CASE("optim/updates: schedule-free RAdam trains nothing until it trusts its variance") {
  const ScheduleFree radam{ScheduleFree::Base::radam};
  check(radam, {1, -2, 0.5, 0.25, -0.75, 3}, 1e-12, {.count = 4});
  check(radam, {0.9978293, -1.9981991, 0.4978293, 0.252007, -0.7520978, 2.997859}, 1e-6, {.count = 5});
  check(radam, {0.9963956, -1.9996448, 0.4929398, 0.2518121, -0.7526739, 2.9968159}, 1e-6, {.count = 8});
  check(radam, {0.9955523, -1.9979556, 0.4925196, 0.2515997, -0.7520388, 2.9942825}, 1e-6,
        {.count = 8, .weight_decay = 0.1});
}

TEST_CASE("optim/updates: averages of 4 bits, two in a byte") {
  Numbers values, grad;
  for (int i = 0; i < 4096; ++i) values.push_back(std::sin(0.7 * i)), grad.push_back(0.3 * std::sin(1.1 * i));
  const Numbers updated = after_steps(Torchao{4}, {4096}, values, grad);
  const std::vector<std::pair<std::size_t, double>> expected{{0, -0.0595413},  {1, 0.4879538},   {2, 0.8171825},
                                                             {3, 0.9290983},   {100, 0.8180228}, {1000, 0.3589403},
                                                             {4095, 1.0603592}};
  for (const auto& [i, value] : expected) CHECK(updated[i] == doctest::Approx(value).epsilon(1e-4));
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
      return after_steps(Bitsandbytes{algorithm, bits, paged}, {kCount}, values, grad);
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
