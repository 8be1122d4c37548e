// A job's stack as pip pins it.
#pragma once

#include <string>
#include <vector>

#include "plan/stack_versions.h"

namespace qlp::app {

/// "torch==2.8.0", ... of every library.
inline std::vector<std::string> stack_requirements(const StackVersions& stack) {
  std::vector<std::string> out;
  const auto pin = [&](const char* library, const Version& version) {
    out.push_back(std::string(library) + "==" + to_string(version));
  };
  pin("torch", stack.torch), pin("transformers", stack.transformers), pin("peft", stack.peft);
  pin("accelerate", stack.accelerate), pin("bitsandbytes", stack.bitsandbytes), pin("deepspeed", stack.deepspeed);
  return out;
}

}  // namespace qlp::app
