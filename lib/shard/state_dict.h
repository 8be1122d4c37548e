// A model as it is saved: whole weights under their names (accelerator.get_state_dict).
#pragma once

#include <vector>

#include "nn/module.h"
#include "tensor/context.h"

namespace qlp {

struct StateDictEntry {
  const Parameter* parameter = nullptr;
  Tensor tensor;
};

struct StateDict {
  std::vector<StateDictEntry> entries;
  std::vector<Tensor> clones;  ///< that were made on the way and live as long
};

/// state_dict() packs each quant state as one tensor and clones its nested table on the way (bitsandbytes
/// functional.py, QuantState.as_dict).
std::vector<Tensor> cloned_nested_codes(Context& ctx, Module& module);

}  // namespace qlp
