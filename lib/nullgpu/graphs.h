// Stream capture and graphs: what was captured is kept in order and done at every launch of the graph, as far as
// anything is done here (small copies, memsets, host functions).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace nullgpu {

struct Stream;

enum class NodeType : int { kernel = 0, memcpy = 1, memset = 2, host = 3, graph = 4, empty = 5, conditional = 13 };

struct Graph;

struct GraphNode {
  NodeType type;
  std::function<void()> work;
  std::vector<GraphNode*> after;
  std::vector<Graph*> bodies;  // of a conditional node, each of which runs once; gone with the graph
};

/// Functions that are called when the graph and all that was instantiated from it are gone.
struct Releases {
  std::vector<std::function<void()>> functions;
  Releases() = default;
  Releases(const Releases&) = delete;
  Releases& operator=(const Releases&) = delete;
  ~Releases();
};

struct Graph {
  std::vector<std::unique_ptr<GraphNode>> nodes;
  std::shared_ptr<Releases> releases = std::make_shared<Releases>();
};

struct GraphExec {
  struct Step {
    NodeType type;
    std::function<void()> work;
  };
  std::vector<Step> steps;
  std::vector<std::shared_ptr<Releases>> releases;
};

struct Capture {
  unsigned long long id;
  int mode;  // 0 global, 1 thread-local, 2 relaxed
  Stream* origin;
  std::uintptr_t thread;
  Graph* graph;
  bool owns_graph;
  bool invalid = false;
  std::vector<Stream*> members;
};

/// All with the books locked by themselves; statuses of the runtime.
int begin_capture(void* stream, int mode, Graph* into, std::vector<GraphNode*> after);
int end_capture(void* stream, Graph** graph);
void abandon_capture(Stream& stream);
void invalidate_capture(Capture& capture);
int join_capture(Stream& stream, Capture& capture, const std::vector<GraphNode*>& frontier);
int capture_node(Stream& stream, NodeType type, std::function<void()> work);
/// What the next captured node depends on, in place of what it did or besides.
int update_frontier(void* stream, const std::vector<GraphNode*>& after, bool instead);
/// What a stream's capture is: status (0 none, 1 active, 2 invalidated) and, where it is active, the rest; each may be
/// null. The nodes are valid until the next call for that stream.
struct CaptureState {
  int* status;
  unsigned long long* id;
  void** graph;
  GraphNode* const** after;
  const void** edges;
  std::size_t* count;
};
int capture_state(void* stream, const CaptureState& out);
std::vector<GraphNode*> nodes_of(void* const* nodes, std::size_t count);
/// What may not be called while a stream is captured (cudaMalloc and the like): invalidates those captures.
int forbid_in_capture();
int exchange_capture_mode(int mode);

Graph* new_graph();
Graph* find_graph(void* handle);
int destroy_graph(void* handle);
/// Without what it depends on: nodes are done in their order.
Graph* clone(const Graph& graph);
GraphNode* add_node(Graph& graph, NodeType type, std::vector<GraphNode*> after, std::function<void()> work);
/// A conditional node; its bodies are there to be filled.
GraphNode* add_conditional_node(Graph& graph, std::vector<GraphNode*> after, std::size_t bodies);
GraphExec* instantiate(const Graph& graph);
GraphExec* find_exec(void* handle);
int destroy_exec(void* handle);
int launch(void* exec, void* stream);

}  // namespace nullgpu
