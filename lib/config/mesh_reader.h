// The mesh of a job file's cluster, and of an exported shard map.
#pragma once

#include "config/map_reader.h"
#include "plan/job_spec.h"

namespace qlp {

/// The section "mesh" of `map`: what it leaves out, and all of it where there is none, is as in `fallback`.
Mesh read_mesh(MapReader& map, const Mesh& fallback);

}  // namespace qlp
