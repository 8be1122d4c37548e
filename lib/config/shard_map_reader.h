// The plan of a shard map, as export --to torch --json writes it.
#pragma once

#include <optional>

#include "config/launch_file.h"
#include "config/text_node.h"

namespace qlp {

/// Plan, options, ranks and mesh; what becomes of each parameter follows from them. None where it has errors.
std::optional<LaunchFile> read_shard_map(const TextNode& root, const std::string& file, Findings& findings);

}  // namespace qlp
