// Descriptions of models, each from its own source, to ModelSpec.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "config/file_reader.h"
#include "config/map_reader.h"
#include "config/model_catalogue.h"
#include "config/text_node.h"
#include "model/model_spec.h"
#include "plan/job_spec.h"

namespace qlp {

struct ModelDocument {
  ModelSpec model;
  /// Of a checkpoint that is stored quantized (bitsandbytes 4-bit).
  std::optional<QuantizationSpec> quantization;
  Diagnostics notes;
};

/// A Hugging Face config.json, or a directory that holds one. Values of `overrides` (a map, may be null) replace those
/// of the file. Keys that say nothing about memory are passed over; what the file leaves out is what the model class
/// would put there, with a note ("class-default"); hidden_size, num_hidden_layers and num_attention_heads must be
/// there. Errors: "cannot-read", "json-syntax", "unsupported-model", "missing-key", "wrong-type", "out-of-range",
/// "inconsistent-shapes", "not-supported".
/// In a directory with safetensors headers or an index, what they hold is compared with the count from the shapes:
/// equal, or larger by a second copy of a tied embedding; anything else is a warning ("parameter-count").
Result<ModelDocument> read_model_config(const std::string& path, const FileReader& files, const TextNode* overrides);

/// The same from a file that was parsed already.
Result<ModelDocument> model_from_config(const TextNode& config, const std::string& name);

/// Shapes spelled out under the names of config.json, strictly: the `model` section of a job, or a file of
/// configs/models. Reads its keys from `map` but does not finish it; errors and defaults go to its findings.
ModelSpec read_shapes(MapReader& map);

/// The shapes of a model that is known by name.
Result<ModelSpec> catalogue_spec(const CatalogueModel& model);

/// `base` with the keys of `changes` replaced or added.
NodePtr overlaid(const TextNode& base, const TextNode& changes);

}  // namespace qlp
