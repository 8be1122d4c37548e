// Which modules below a root become FSDP1 units (torch/distributed/fsdp/wrap.py, _recursive_wrap).
#pragma once

#include <unordered_set>

#include "nn/module.h"
#include "shard/fsdp1_options.h"

namespace qlp {

using WrappedModules = std::unordered_set<const Module*>;

WrappedModules modules_to_wrap(Module& root, const Fsdp1Options& options);

}  // namespace qlp
