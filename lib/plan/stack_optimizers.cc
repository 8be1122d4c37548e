#include "plan/stack_optimizers.h"

namespace qlp {
namespace {

/// That a wheel of PyPI requires (nvidia-cusolver-cu12 and -cu13 in its metadata).
CuSolver cusolver_of(const Version& torch) {
  return torch < Version{2, 5, 0}   ? CuSolver::v11_4_5
         : torch < Version{2, 7, 0} ? CuSolver::v11_6_1
         : torch < Version{2, 8, 0} ? CuSolver::v11_7_1
                                    : CuSolver::v11_7_3;
}

}  // namespace

/// Blocks of 256: bitsandbytes 0.44 (optim/optimizer.py). 32 bits for embeddings: until transformers 4.52 the Trainer
/// asked for a class that it no longer made (huggingface/transformers 37331). Torchao's own 128 in 4 bits: the Trainer
/// asks for 256 from 5.0 on (huggingface/transformers 42972).
OptimizerBehaviour OptimizerStack::behaviour() const {
  return {.bnb_blocksize = bitsandbytes_ >= Version{0, 44, 0} ? 256 : 2048,
          .bnb_spares_embeddings = transformers_ >= Version{4, 52, 0},
          .torchao_4bit_block = transformers_ >= Version{5, 0, 0} ? 256 : 128,
          .bnb_galore_norm = bitsandbytes_ >= Version{0, 50, 0},
          .cusolver = cusolver_of(torch_)};
}

}  // namespace qlp
