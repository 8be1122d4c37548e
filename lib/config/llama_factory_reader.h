// LLaMA-Factory's YAML.
#pragma once

#include "config/foreign_file.h"

namespace qlp {

/// With the defaults of LLaMA-Factory at ff6d4d1 (src/llamafactory/hparams, model/adapter.py, model/model_utils).
NodePtr read_llama_factory(const TextNode& root, const ForeignContext& context, Findings& findings);

}  // namespace qlp
