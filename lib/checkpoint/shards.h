// Tensors cut into safetensors files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/stored_tensor.h"

namespace qlp {

/// Bytes that are at some place of a file; all the others are zeros.
struct FilePiece {
  std::uint64_t offset = 0;
  std::string bytes;
};

struct ShardFile {
  std::string name;  ///< "model-00001-of-00003.safetensors"
  std::uint64_t size = 0;
  std::vector<FilePiece> pieces;  ///< the header first
  std::vector<std::string> tensors;
};

/// Fills files in the order of the tensors, up to `shard_size` of weights each; a larger tensor has a file of its own.
/// Within a file wider element types come first, then names in order, as safetensors writes it: so each is aligned.
std::vector<ShardFile> cut_into_shards(const std::vector<StoredTensor>& tensors, Bytes shard_size);

/// model.safetensors.index.json
std::string shard_index(const std::vector<ShardFile>& shards, Bytes total);

}  // namespace qlp
