// Versions of cuSOLVER that ask for different workspaces.
#pragma once

#include <cstdint>

namespace qlp {

/// Of CUDA 12.1, 12.4, 12.6, and of 12.8 and all later ones.
enum class CuSolver : std::uint8_t { v11_4_5, v11_6_1, v11_7_1, v11_7_3 };

}  // namespace qlp
