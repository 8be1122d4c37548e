// Where the kernels under test run: the emulation beside this file, or a GPU.
#pragma once

#include <functional>
#include <memory>

#include "cuda/matrix_products.h"
#include "cuda/streams.h"

namespace qlp::test {

/// The library that the machine has for matrix products; none: the kernel of our own makes all of them.
std::unique_ptr<MatrixProducts> make_products(CudaStreams& streams);

/// Runs `launches` for every order in which the machine can be made to run threads and blocks: a GPU has one of its
/// own.
void in_every_order(const std::function<void()>& launches);

}  // namespace qlp::test
