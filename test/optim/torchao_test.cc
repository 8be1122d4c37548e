#include <cmath>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "optim/optimizer_job.h"
#include "tensor/cpu_device.h"

using namespace qlp;
using test::Events;
using test::OptimizerJob;

namespace {

constexpr std::int64_t kLarge = 8192, kSmall = 4095, kScales = kLarge / 256 * 4;

OptimizerJob large_and_small() {
  return OptimizerJob({{{128, 64}, DType::bfloat16}, {{kSmall}, DType::bfloat16}, {{kLarge + 1}, DType::bfloat16}});
}

/// Two steps on 4096 parameters.
std::vector<double> after_two_steps(const OptimizerKind& kind) {
  test::CpuDevice cpu;
  const Scoped no_grad(cpu.ctx.grad_enabled, false);
  std::vector<double> values(4096), grad(4096);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<double>(i)), grad[i] = values[i] / 2;
  const Tensor parameter = cpu.tensor({16, 256}, values, DType::float32);
  const auto optimizer = make_optimizer(cpu.ctx, kind, {{parameter}});
  optimizer->set_lr(0.1);
  for (int step = 0; step < 2; ++step) {
    set_grad(parameter, cpu.tensor({16, 256}, grad, DType::float32));
    optimizer->step(cpu.ctx);
  }
  return cpu.numbers(parameter);
}

}  // namespace

TEST_CASE("optim/torchao: 8 bits, a scale for each 256 elements and values of its own for each tensor") {
  OptimizerJob job = large_and_small();
  CHECK(job.make(Torchao{8}, {{0, 1, 2}}).empty());
  // What fills no whole blocks stays like the parameter.
  CHECK(job.step() == Events{kLarge, kScales, 1024, kLarge, kScales, 1024, 2 * kSmall, 2 * kSmall, 2 * (kLarge + 1),
                             2 * (kLarge + 1)});
  CHECK(job.step().empty());
}

// Seen in the allocator's history of torch 2.14.1: Llama 3.2 1B, whose embedding takes 24 bytes an element for a while.
TEST_CASE("optim/torchao: codes of 4 bits are packed from float32 values and int64 codes of both averages") {
  OptimizerJob job = large_and_small();
  job.make(Torchao{4}, {{0}});
  const Events packing{kScales,     kScales,     4 * kLarge, 4 * kLarge,  8 * kLarge,  8 * kLarge,
                       -4 * kLarge, -8 * kLarge, -kScales,   -4 * kLarge, -8 * kLarge, -kScales};
  Events first{kLarge / 2, kScales, 64, kLarge / 2, kScales, 64};
  first.insert(first.end(), packing.begin(), packing.end());
  CHECK(job.step() == first);
  CHECK(job.step() == packing);
}

TEST_CASE("optim/torchao: in 8 bits a step comes near AdamW's") {
  const auto exact = after_two_steps(AdamW{}), coded = after_two_steps(Torchao{8});
  REQUIRE(coded.size() == exact.size());
  double apart = 0;  // on average; small elements of a block have coarse codes
  for (std::size_t i = 0; i < exact.size(); ++i) apart += std::abs(coded[i] - exact[i]) / 4096;
  CHECK(apart < 0.002);
  CHECK(apart > 0);
}
