// The CUDA runtime: capture and graphs. Child graphs and changes to nodes have no implementation.
#include <algorithm>
#include <cstdio>
#include <mutex>
#include <unordered_set>

#include "nullgpu/books.h"
#include "nullgpu/entry.h"
#include "nullgpu/graphs.h"
#include "nullgpu/streams.h"

using namespace nullgpu;

namespace {

int instantiate_into(void** exec, void* graph) {
  const Graph* g = find_graph(graph);
  if (g == nullptr || exec == nullptr) {
    return invalid_value;
  }
  *exec = instantiate(*g);
  return ok;
}

}  // namespace

QLP_EXPORT int cudaStreamBeginCapture(void* stream, int mode) {
  return runtime(__func__, [&] { return begin_capture(stream, mode, nullptr, {}); });
}

QLP_EXPORT int cudaStreamBeginCaptureToGraph(void* stream, void* graph, void* const* after, const void*,
                                             std::size_t count, int mode) {
  return runtime(__func__, [&] {
    Graph* g = find_graph(graph);
    return g == nullptr ? static_cast<int>(invalid_value) : begin_capture(stream, mode, g, nodes_of(after, count));
  });
}

QLP_EXPORT int cudaStreamEndCapture(void* stream, void** graph) {
  return runtime(__func__, [&] {
    Graph* made = nullptr;
    const int status = end_capture(stream, &made);
    if (graph != nullptr) {  // torch gives none where it had named the graph before
      *graph = made;
    }
    return status;
  });
}

QLP_EXPORT int cudaStreamIsCapturing(void* stream, int* status) {
  return runtime(__func__, [&] {
    const Stream* s = find_stream(stream);
    if (s == nullptr || status == nullptr) {
      return s == nullptr ? invalid_handle : invalid_value;
    }
    *status = s->capture == nullptr ? 0 : s->capture->invalid ? 2 : 1;
    return ok;
  });
}

QLP_EXPORT int cudaThreadExchangeStreamCaptureMode(int* mode) {
  return runtime(__func__, [&] {
    if (mode == nullptr || *mode < 0 || *mode > 2) {
      return invalid_value;
    }
    *mode = exchange_capture_mode(*mode);
    return ok;
  });
}

QLP_EXPORT int cudaStreamUpdateCaptureDependencies_v2(void* stream, void** after, const void*, std::size_t count,
                                                      unsigned flags) {
  return runtime(__func__, [&] { return update_frontier(stream, nodes_of(after, count), flags == 1); });
}

QLP_EXPORT int cudaGraphCreate(void** graph, unsigned) {
  return runtime(__func__, [&] {
    *graph = new_graph();
    return ok;
  });
}

QLP_EXPORT int cudaGraphDestroy(void* graph) {
  return runtime(__func__, [&] { return destroy_graph(graph); });
}

QLP_EXPORT int cudaGraphClone(void** clone, void* graph) {
  return runtime(__func__, [&] {
    const Graph* g = find_graph(graph);
    if (g == nullptr) {
      return invalid_value;
    }
    *clone = nullgpu::clone(*g);
    return ok;
  });
}

QLP_EXPORT int cudaGraphInstantiate(void** exec, void* graph) {
  return runtime(__func__, [&] { return instantiate_into(exec, graph); });
}

QLP_EXPORT int cudaGraphInstantiateWithFlags(void** exec, void* graph, unsigned long long) {
  return runtime(__func__, [&] { return instantiate_into(exec, graph); });
}

QLP_EXPORT int cudaGraphExecDestroy(void* exec) {
  return runtime(__func__, [&] { return destroy_exec(exec); });
}

QLP_EXPORT int cudaGraphLaunch(void* exec, void* stream) {
  return runtime(__func__, [&] { return launch(exec, stream); });
}

QLP_EXPORT int cudaGraphUpload(void*, void*) {
  return runtime(__func__, [] { return ok; });
}

QLP_EXPORT int cudaGraphGetNodes(void* graph, void** nodes, std::size_t* count) {
  return runtime(__func__, [&] {
    const std::lock_guard guard(Books::get());
    const Graph* g = find_graph(graph);
    if (g == nullptr) {
      return invalid_value;
    }
    for (std::size_t i = 0; nodes != nullptr && i < *count; ++i) {
      nodes[i] = i < g->nodes.size() ? g->nodes[i].get() : nullptr;
    }
    if (nodes == nullptr || *count > g->nodes.size()) {
      *count = g->nodes.size();
    }
    return ok;
  });
}

QLP_EXPORT int cudaGraphNodeGetType(void* node, int* type) {
  return runtime(__func__, [&] {
    *type = static_cast<int>(static_cast<GraphNode*>(node)->type);
    return ok;
  });
}

QLP_EXPORT int cudaGraphAddEmptyNode(void** node, void* graph, void* const* after, std::size_t count) {
  return runtime(__func__, [&] {
    Graph* g = find_graph(graph);
    if (g == nullptr) {
      return invalid_value;
    }
    *node = add_node(*g, NodeType::empty, nodes_of(after, count), {});
    return ok;
  });
}

QLP_EXPORT int cudaGraphDebugDotPrint(void* graph, const char* path, unsigned) {
  return runtime(__func__, [&] {
    const std::lock_guard guard(Books::get());
    const Graph* g = find_graph(graph);
    std::FILE* file = g == nullptr ? nullptr : std::fopen(path, "w");
    if (file == nullptr) {
      return invalid_value;
    }
    std::fputs("digraph dot {\n", file);
    for (const auto& node : g->nodes) {
      std::fprintf(file, "\"%p\" [label=\"%d\"];\n", static_cast<void*>(node.get()), static_cast<int>(node->type));
      for (const GraphNode* before : node->after) {
        std::fprintf(file, "\"%p\" -> \"%p\";\n", static_cast<const void*>(before), static_cast<void*>(node.get()));
      }
    }
    std::fputs("}\n", file);
    std::fclose(file);
    return ok;
  });
}

// Objects of the program that a graph keeps alive.
namespace {

struct UserObject {
  void* data;
  void (*destroy)(void*);
  unsigned references;
};

void release(UserObject* object, unsigned count) {
  bool last = false;
  {
    const std::lock_guard guard(Books::get());
    object->references -= std::min(count, object->references);
    last = object->references == 0;
  }
  if (last) {
    object->destroy(object->data);
    delete object;
  }
}

}  // namespace

QLP_EXPORT int cudaUserObjectCreate(void** object, void* data, void (*destroy)(void*), unsigned references, unsigned) {
  return runtime(__func__, [&] {
    *object = new UserObject{data, destroy, references};
    return ok;
  });
}

QLP_EXPORT int cudaUserObjectRetain(void* object, unsigned count) {
  return runtime(__func__, [&] {
    const std::lock_guard guard(Books::get());
    static_cast<UserObject*>(object)->references += count;
    return ok;
  });
}

QLP_EXPORT int cudaUserObjectRelease(void* object, unsigned count) {
  return runtime(__func__, [&] {
    release(static_cast<UserObject*>(object), count);
    return ok;
  });
}

QLP_EXPORT int cudaGraphRetainUserObject(void* graph, void* object, unsigned count, unsigned flags) {
  return runtime(__func__, [&] {
    const std::lock_guard guard(Books::get());
    Graph* g = find_graph(graph);
    if (g == nullptr) {
      return invalid_value;
    }
    auto* o = static_cast<UserObject*>(object);
    if (flags != 1) {  // cudaGraphUserObjectMove takes over the caller's references
      o->references += count;
    }
    g->releases->functions.emplace_back([o, count] { release(o, count); });
    return ok;
  });
}
