#include <cmath>

#include "ademamix.h"
#include "update_by_blocks.cuh"

namespace qlp::kernels {
namespace {

struct AdEmaMix {
  static constexpr int kAverages = 3;
  float lr, beta1, one_minus_beta1, beta2, one_minus_beta2, beta3, one_minus_beta3, alpha, eps, decay;
  float correction, root_correction;  ///< 1 - beta1^step, sqrt(1 - beta2^step)

  __device__ float operator()(float p, float g, float (&average)[kAverages]) const {
    float &fast = average[0], &slow = average[1], &squares = average[2];
    fast = fast * beta1 + one_minus_beta1 * g;
    slow = slow * beta3 + one_minus_beta3 * g;
    squares = squares * beta2 + one_minus_beta2 * g * g;
    return (p - lr * ((fast / correction + alpha * slow) / (sqrtf(squares) / root_correction + eps))) * decay;
  }
};

}  // namespace

cudaError_t ademamix(const View& parameter, const View& grad, const Average& fast, const Average& slow,
                     const Average& squares, std::int64_t blocksize, const AdEmaMixNumbers& n, cudaStream_t stream) {
  const auto step = static_cast<double>(n.step);
  const AdEmaMix rule{static_cast<float>(n.lr),
                      static_cast<float>(n.beta1),
                      static_cast<float>(1.0 - n.beta1),
                      static_cast<float>(n.beta2),
                      static_cast<float>(1.0 - n.beta2),
                      static_cast<float>(n.beta3),
                      static_cast<float>(1.0 - n.beta3),
                      static_cast<float>(n.alpha),
                      static_cast<float>(n.eps),
                      static_cast<float>(1.0 - n.lr * n.weight_decay),
                      static_cast<float>(1.0 - std::pow(n.beta1, step)),
                      static_cast<float>(std::sqrt(1.0 - std::pow(n.beta2, step)))};
  return update_by_blocks(parameter, grad, Averages<3>{{fast, slow, squares}}, blocksize, rule, stream);
}

}  // namespace qlp::kernels
