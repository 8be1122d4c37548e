// axolotl's YAML.
#pragma once

#include "config/foreign_file.h"

namespace qlp {

/// With the defaults of axolotl 0.18 (src/axolotl/utils/schemas, loaders/model.py).
NodePtr read_axolotl(const TextNode& root, const ForeignContext& context, Findings& findings);

}  // namespace qlp
