// Host memory of a plan in a sentence.
#pragma once

#include <string>

#include "estimate/host_ledger.h"

namespace qlp {

/// "host 9.41 per node, most in load: rank 0 up to 5.54, others up to 0.00 each, processes 8 x 0.48; ...", in GiB.
std::string host_text(const HostReport& host);

}  // namespace qlp
