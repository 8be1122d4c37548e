// Ranks that share layers without data parallelism beside it (transformers distributed/tensor_parallel.py, 5.24): the
// layers themselves do all the work until the model is saved.
#pragma once

#include "shard/sharding_runtime.h"

namespace qlp {

class TensorParallelRuntime final : public ShardingRuntime {
 public:
  StateDict state_dict(Context& ctx, CausalLm& model, bool keeps) override;
};

}  // namespace qlp
