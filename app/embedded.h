// Scripts that are part of the program (app/CMakeLists.txt makes the definitions from the files).
#pragma once

#include <string_view>

namespace qlp::app {

std::string_view meta_names_script();  ///< app/meta_names.py
std::string_view python_env_script();  ///< scripts/python_env.py

}  // namespace qlp::app
