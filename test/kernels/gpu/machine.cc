#include "kernels/machine.h"

#include "cuda/cublas_products.h"

namespace qlp::test {

std::unique_ptr<MatrixProducts> make_products(CudaStreams& streams) {
  return std::make_unique<CublasProducts>(streams);
}

void in_every_order(const std::function<void()>& launches) { launches(); }

}  // namespace qlp::test
