// The model that a checkpoint is written for, by whatever names it: a config.json or its folder, a job file, a name.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "checkpoint/weight_format.h"
#include "config/file_reader.h"
#include "config/text_node.h"
#include "model/model_spec.h"

namespace qlp {

struct CheckpointSource {
  std::string name;                              ///< for people
  NodePtr config;                                ///< config.json
  std::optional<ModelSpec> model;                ///< of the families whose layers are written down here
  Diagnostics unknown;                           ///< else why not
  std::optional<DType> dtype;                    ///< of the weights, where the source says it
  std::optional<QuantizationSpec> quantization;  ///< of a job
  std::string folder;                            ///< that may hold a tokenizer; empty for a name
};

/// `layers`: only so many. Errors: "unknown-model", those of the readers of jobs and JSON, and of with_layers.
Result<CheckpointSource> read_source(const std::string& word, std::optional<std::int64_t> layers,
                                     const FileReader& files);

/// The format in which the source itself is stored. Errors: "not-supported" for formats whose layout is not known
/// here.
Result<WeightFormat> stored_format(const CheckpointSource& source);

}  // namespace qlp
