#include "lion.h"
#include "update_by_blocks.cuh"

namespace qlp::kernels {
namespace {

struct Lion {
  static constexpr int kAverages = 1;
  float lr, beta1, one_minus_beta1, beta2, one_minus_beta2, decay;

  __device__ float operator()(float p, float g, float (&average)[kAverages]) const {
    const float direction = average[0] * beta1 + one_minus_beta1 * g;
    average[0] = average[0] * beta2 + one_minus_beta2 * g;
    return p * decay - (direction > 0.0F ? lr : direction < 0.0F ? -lr : 0.0F);
  }
};

}  // namespace

cudaError_t lion(const View& parameter, const View& grad, const Average& exp_avg, std::int64_t blocksize,
                 const LionNumbers& n, cudaStream_t stream) {
  const Lion rule{static_cast<float>(n.lr),          static_cast<float>(n.beta1),
                  static_cast<float>(1.0 - n.beta1), static_cast<float>(n.beta2),
                  static_cast<float>(1.0 - n.beta2), static_cast<float>(1.0 - n.lr * n.weight_decay)};
  return update_by_blocks(parameter, grad, Averages<1>{{exp_avg}}, blocksize, rule, stream);
}

}  // namespace qlp::kernels
