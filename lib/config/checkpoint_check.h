// What a checkpoint on disk holds, beside what its config.json says.
#pragma once

#include <string>

#include "base/diagnostic.h"
#include "config/file_reader.h"
#include "model/model_spec.h"

namespace qlp {

/// Compares the parameters in the safetensors headers of a directory (or, where shards are missing, the total_size of
/// its index) with the closed count of the shapes. A note says what was compared; a warning "parameter-count" gives
/// both figures where they differ by anything but a second copy of a tied embedding. Nothing where the directory has
/// neither, or where the weights are stored quantized.
Diagnostics check_checkpoint(const std::string& directory, const ModelSpec& spec, bool quantized,
                             const FileReader& files);

}  // namespace qlp
