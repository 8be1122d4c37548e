// A YAML or JSON file that another file names.
#pragma once

#include <string>

#include "config/file_reader.h"
#include "config/findings.h"
#include "config/text_node.h"

namespace qlp {

/// What the file holds, JSON where it begins with a brace. Null where it has errors: one that cannot be read is an
/// error of the key that names it.
NodePtr read_map(const std::string& path, const KeyPlace& named, const FileReader& files, Findings& findings);

}  // namespace qlp
