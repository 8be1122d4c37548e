#include "kernels/bench.h"

namespace qlp::test {
namespace {

TEST_CASE("kernels/cross_entropy: from log probabilities, mean and sum, without the labels that do not count") {
  Bench bench;
  std::vector<double> labels;
  for (int n = 0; n < 300; ++n) labels.push_back(n % 3 == 0 ? -100 : n % 40);
  Twin x(DType::float32, {300, 40}), label(DType::int64, {300});
  Twin loss(DType::float32, {}), weight(DType::float32, {}), grad(DType::float32, {}), dx(DType::float32, {300, 40});
  bench.randomize(x, -5, 0), bench.set(label, labels), bench.set(grad, {0.75});
  for (const bool mean : {true, false}) {
    bench.compare([&](Kernels& k, const auto& at) { k.nll_loss(0, at(loss), at(weight), at(x), at(label), mean); },
                  {&loss, &weight}, 1e-5);
    bench.compare(
        [&](Kernels& k, const auto& at) { k.nll_loss_backward(0, at(dx), at(grad), at(label), at(weight), mean); },
        {&dx}, 1e-6);
  }
}

TEST_CASE("kernels/cross_entropy: in place, for vocabularies at the edges of blocks") {
  Bench bench;
  for (const DType dtype : kFloats)
    for (const std::int64_t vocabulary : {2, 255, 256, 257, 1000}) {
      Twin logits(dtype, {4, vocabulary}), label(DType::int64, {4}), losses(DType::float32, {4});
      bench.randomize(logits, -10, 10);
      bench.set(label, {0, -100, 1, static_cast<double>(vocabulary - 1)});
      bench.compare([&](Kernels& k, const auto& at) { k.cross_entropy_in_place(0, at(losses), at(logits), at(label)); },
                    {&losses, &logits}, tolerance_of(dtype));
    }
}

}  // namespace
}  // namespace qlp::test
