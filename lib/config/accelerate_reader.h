// The file that `accelerate config` writes and `accelerate launch` reads.
#pragma once

#include <optional>
#include <string>

#include "config/launch_file.h"
#include "config/text_node.h"

namespace qlp {

/// With the defaults of `accelerate launch` (accelerate/commands/launch.py 1.15). `file` is for messages, and
/// deepspeed_config_file is relative to its folder.
std::optional<LaunchFile> read_accelerate(const TextNode& root, const std::string& file, const FileReader& files,
                                          Findings& findings);

}  // namespace qlp
