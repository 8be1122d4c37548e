// Trainer.save_model(): the state dict is gathered, and the first rank writes files (transformers trainer.py, _save;
// modeling_utils.py, save_pretrained; peft save_and_load.py; safetensors torch.py).
#pragma once

#include <cstdint>

#include "nn/causal_lm.h"
#include "optim/optimizer.h"
#include "shard/sharding_runtime.h"

namespace qlp {

struct SaveOptions {
  bool adapter_only = false;     ///< PeftModel.save_pretrained writes what was added to the base
  bool writes = true;            ///< the first rank
  std::uint64_t file_bytes = 0;  ///< max_shard_size: a file that grows past it is closed
  bool gathers_model = true;     ///< else save_model() has DeepSpeed write its own checkpoint (ZeRO-3)
  bool in_shards = false;        ///< a checkpoint of FSDP is a SHARDED_STATE_DICT: there is no whole model in it
};

void save_model(Context& ctx, CausalLm& model, ShardingRuntime& runtime, Optimizer& optimizer,
                const SaveOptions& options);
/// Trainer._save_checkpoint(): the model, and what training goes on from.
void save_checkpoint(Context& ctx, CausalLm& model, ShardingRuntime& runtime, Optimizer& optimizer,
                     const SaveOptions& options);

}  // namespace qlp
