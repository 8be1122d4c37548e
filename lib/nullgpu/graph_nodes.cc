// The CUDA runtime: nodes that are added by their parameters. What a conditional node asks lies on the device, where
// nothing is computed: each of its bodies runs once at every launch, that of an if as that of a while.
#include "nullgpu/graph_nodes.h"

#include <atomic>

#include "nullgpu/entry.h"
#include "nullgpu/graphs.h"

namespace nullgpu {
namespace {

// cudaGraphNodeParams with its conditional part (driver_types.h of CUDA 12.4 to 13.x).
struct NodeParameters {
  int type;
  int reserved[3];
  unsigned long long handle;
  int kind;  // if, while, switch
  unsigned size;
  Graph** bodies;
};

}  // namespace

int add_graph_node(void** node, void* graph, void* const* after, std::size_t count, void* parameters) {
  return runtime("cudaGraphAddNode", [&] {
    Graph* g = find_graph(graph);
    auto* given = static_cast<NodeParameters*>(parameters);
    if (g == nullptr || given == nullptr || node == nullptr) {
      return static_cast<int>(invalid_value);
    }
    if (static_cast<NodeType>(given->type) != NodeType::conditional) {
      return note_unsupported("cudaGraphAddNode");
    }
    if (given->size == 0) {
      return static_cast<int>(invalid_value);
    }
    GraphNode* made = add_conditional_node(*g, nodes_of(after, count), given->size);
    given->bodies = made->bodies.data();
    *node = made;
    return static_cast<int>(ok);
  });
}

}  // namespace nullgpu

QLP_EXPORT int cudaGraphConditionalHandleCreate(unsigned long long* handle, void* graph, unsigned, unsigned) {
  return nullgpu::runtime(__func__, [&] {
    static std::atomic<unsigned long long> next{1};
    if (handle == nullptr || nullgpu::find_graph(graph) == nullptr) {
      return nullgpu::invalid_value;
    }
    *handle = next++;
    return nullgpu::ok;
  });
}
