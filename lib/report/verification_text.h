// A verification as people read it: measured beside predicted, or how each rank failed.
#pragma once

#include <string>

#include "estimate/verification.h"

namespace qlp {

struct VerificationTextOptions {
  bool colors = false;
  bool brief = false;    ///< the verdict and one row for each rank
  bool verbose = false;  ///< the phases of every rank, and how each figure was measured
};

std::string verification_text(const Verification& verification, const VerificationTextOptions& options = {});

}  // namespace qlp
