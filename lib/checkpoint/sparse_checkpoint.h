// A checkpoint with the right names, shapes and sizes and no weights: every file of it, ready to be written.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/shards.h"
#include "checkpoint/stored_tensor.h"
#include "checkpoint/tokenizer.h"
#include "config/text_node.h"

namespace qlp {

struct SparseCheckpoint {
  std::vector<ShardFile> shards;
  std::vector<TextFile> texts;  ///< config, generation config, index; GPTQ's config
  std::size_t tensors = 0;
  Bytes size;  ///< of all tensors
};

/// `config` as it goes to disk (as_stored).
SparseCheckpoint sparse_checkpoint(const TextNode& config, const std::vector<StoredTensor>& tensors, Bytes shard_size);

/// The tokenizer that goes with it; none where the config names no vocabulary that one could be made for.
std::vector<TextFile> tokenizer_for(const TextNode& config);

/// Elements of all tensors that are no quantization's.
std::uint64_t count_elements(const std::vector<StoredTensor>& tensors);

}  // namespace qlp
