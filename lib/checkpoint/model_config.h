// The config.json of a checkpoint that is written: from a file that is there, or made from the shapes of a model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/dtype.h"
#include "base/result.h"
#include "config/text_node.h"
#include "model/model_spec.h"

namespace qlp {

/// A config.json from which transformers makes this model, and from which model_from_config reads the spec back.
NodePtr config_of(const ModelSpec& spec);

/// The same model with only its first layers; lists with an entry per layer are cut with it. The language model of a
/// config with parts (text_config) is meant. Errors: "missing-key" where there is no count of layers, "out-of-range".
Result<NodePtr> with_layers(const TextNode& config, std::int64_t layers);

/// What goes to disk: the dtype of the weights; `quantization` (JSON, may be empty) in place of the file's own; no
/// auto_map, whose Python files would be missing.
Result<NodePtr> as_stored(const TextNode& config, DType dtype, const std::string& quantization);

/// The config without quantization_config, and with `auto_map` as it is: the shapes of the weights alone.
NodePtr without_quantization(const TextNode& config);

/// The block under one of the keys that checkpoints have for it; null pointer where there is none.
const TextNode* quantization_of(const TextNode& config);

/// A whole number of the config, or of its language model; of a list the first.
std::optional<std::int64_t> config_integer(const TextNode& config, std::string_view key);

/// JSON with two spaces of indent; scalars as they were read.
std::string json_text(const TextNode& node);

}  // namespace qlp
