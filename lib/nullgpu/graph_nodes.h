// Nodes that a program adds to a graph by itself.
#pragma once

#include <cstddef>

namespace nullgpu {

/// cudaGraphAddNode: `parameters` is the runtime's cudaGraphNodeParams. Conditional nodes alone are implemented.
int add_graph_node(void** node, void* graph, void* const* after, std::size_t count, void* parameters);

}  // namespace nullgpu
