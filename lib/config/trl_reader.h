// The YAML of TRL's command line (trl sft --config), and of scripts that parse TRL's or transformers' own arguments.
#pragma once

#include "config/foreign_file.h"

namespace qlp {

/// With the defaults of TRL 1.16's SFTConfig, ModelConfig and SFTTrainer (trl/trainer).
NodePtr read_trl(const TextNode& root, const ForeignContext& context, Findings& findings);

}  // namespace qlp
