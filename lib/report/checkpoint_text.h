// What was written as a checkpoint, for people and machines.
#pragma once

#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "base/dtype.h"

namespace qlp {

struct CheckpointSummary {
  std::string directory, model;
  std::string model_class;  ///< architectures of the config
  std::string names_from;   ///< "qlora-plan", or "transformers 5.24.0"
  std::string format;       ///< "plain", "bnb-4bit", ...
  DType dtype = DType::bfloat16;
  std::uint64_t parameters = 0;  ///< before they are quantized
  std::size_t tensors = 0, files = 0;
  Bytes size;             ///< that the files say
  Bytes disk;             ///< that they take
  std::string tokenizer;  ///< "written", "copied", "none"
};

std::string checkpoint_text(const CheckpointSummary& summary);
std::string checkpoint_json(const CheckpointSummary& summary);

}  // namespace qlp
