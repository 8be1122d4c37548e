// A program that is run for its answer.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "base/subprocess.h"

namespace qlp::app {

struct ChildAnswer {
  ProgramEnd end;
  std::string output;  ///< what it wrote to stdout; its stderr is ours
};

/// Runs the program with our environment and `more` ("NAME=value") on top of it, to its end. The error says why it did
/// not start.
Result<ChildAnswer, std::string> run_for_answer(std::vector<std::string> command,
                                                const std::vector<std::string>& more = {});

}  // namespace qlp::app
