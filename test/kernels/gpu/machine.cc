#include "kernels/machine.h"

namespace qlp::test {

void in_every_order(const std::function<void()>& launches) { launches(); }

}  // namespace qlp::test
