// Where the kernels under test run: the emulation beside this file, or a GPU.
#pragma once

#include <functional>

namespace qlp::test {

/// Runs `launches` for every order in which the machine can be made to run threads and blocks: a GPU has one of its
/// own.
void in_every_order(const std::function<void()>& launches);

}  // namespace qlp::test
