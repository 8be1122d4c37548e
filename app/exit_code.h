// How the program ends; scripts and schedulers act on it.
#pragma once

#include <cstdint>

namespace qlp::app {

enum class ExitCode : std::uint8_t {
  fits = 0,          ///< answered, and it fits; checked, and nothing is wrong
  nothing_fits = 1,  ///< answered: nothing fits; a check failed
  bad_input = 2,     ///< usage or input error
  environment = 3,   ///< the environment cannot do it: output that cannot be written, later a missing GPU
  internal = 4,      ///< please report
  interrupted = 130,
};

}  // namespace qlp::app
