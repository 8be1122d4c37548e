// A model as it is saved: whole weights under their names (accelerator.get_state_dict).
#pragma once

#include <vector>

#include "nn/causal_lm.h"
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

/// The embedding's weight where the head has none of its own, which then has two names; null else, and on stages of a
/// pipeline that have one of them only.
const Parameter* tied_table(CausalLm& model);

/// How training is saved so that it can go on.
struct TrainingStateRequest {
  bool adapter_only = false;  ///< what is frozen stays out
  bool sharded = false;       ///< FSDP's SHARDED_STATE_DICT: every rank writes its part
  bool first = true;          ///< the first rank, which else writes for all
};

/// torch.save(): what is on the GPU goes to the host one after the other, and from there into the file.
void write_tensors(Context& ctx, const std::vector<Tensor>& tensors);

/// torch.distributed.checkpoint.save(): what is on the GPU goes to page-locked memory by copies that nobody waits for,
/// and stays there until the file is closed (checkpoint/filesystem.py, _write_files_from_queue, 2.14).
void write_chunks(Context& ctx, const std::vector<Tensor>& chunks);

/// state_dict() packs each quant state as one tensor and clones its nested table on the way (bitsandbytes
/// functional.py, QuantState.as_dict).
std::vector<Tensor> cloned_nested_codes(Context& ctx, Module& module);

}  // namespace qlp
