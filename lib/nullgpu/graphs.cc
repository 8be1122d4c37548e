#include "nullgpu/graphs.h"

#include <algorithm>
#include <mutex>
#include <pthread.h>
#include <unordered_set>
#include <utility>

#include "nullgpu/books.h"
#include "nullgpu/calls.h"
#include "nullgpu/status.h"
#include "nullgpu/streams.h"

namespace nullgpu {
namespace {

struct Registry {
  std::unordered_set<Graph*> graphs;
  std::unordered_set<GraphExec*> execs;
  std::unordered_set<Capture*> captures;
  unsigned long long next_capture = 1;
};

Registry& registry() {
  static Registry* const kRegistry = new Registry;
  return *kRegistry;
}

using Guard = std::lock_guard<Books>;

std::uintptr_t this_thread() { return static_cast<std::uintptr_t>(pthread_self()); }

thread_local int t_mode = 0;

// Every node must come before what the origin would do next.
bool all_joined(const Capture& capture) {
  std::unordered_set<const GraphNode*> reached;
  std::vector<const GraphNode*> open(capture.origin->frontier.begin(), capture.origin->frontier.end());
  while (!open.empty()) {
    const GraphNode* node = open.back();
    open.pop_back();
    if (reached.insert(node).second) {
      open.insert(open.end(), node->after.begin(), node->after.end());
    }
  }
  return std::all_of(capture.graph->nodes.begin(), capture.graph->nodes.end(),
                     [&](const auto& node) { return reached.contains(node.get()); });
}

// What has been done is in order: a body comes where its node stands.
void add_steps(const Graph& graph, GraphExec& exec) {
  exec.releases.push_back(graph.releases);
  for (const auto& node : graph.nodes) {
    exec.steps.push_back({node->type, node->work});
    for (const Graph* body : node->bodies) {
      add_steps(*body, exec);
    }
  }
}

void close(Capture* capture) {
  for (Stream* member : capture->members) {
    member->capture = nullptr;
    member->frontier.clear();
  }
  registry().captures.erase(capture);
  // Events may still name it: a capture is small, and is kept.
}

}  // namespace

Releases::~Releases() {
  for (const auto& function : functions) {
    function();
  }
}

int begin_capture(void* stream, int mode, Graph* into, std::vector<GraphNode*> after) {
  const Guard guard(Books::get());
  Stream* const s = find_stream(stream);
  if (s == nullptr || mode < 0 || mode > 2) {
    return s == nullptr ? invalid_handle : invalid_value;
  }
  if (reinterpret_cast<std::uintptr_t>(stream) <= 1) {
    return capture_unsupported;  // the legacy stream cannot be captured
  }
  if (s->capture != nullptr) {
    return invalid_value;
  }
  Registry& r = registry();
  auto* capture = new Capture{r.next_capture++, mode, s, this_thread(), into, false, false, {s}};
  if (into == nullptr) {
    capture->graph = new_graph();
    capture->owns_graph = true;
  }
  r.captures.insert(capture);
  s->capture = capture;
  s->frontier = std::move(after);
  return ok;
}

int end_capture(void* stream, Graph** graph) {
  const Guard guard(Books::get());
  Stream* const s = find_stream(stream);
  if (s == nullptr || graph == nullptr) {
    return s == nullptr ? invalid_handle : invalid_value;
  }
  *graph = nullptr;
  Capture* const capture = s->capture;
  if (capture == nullptr) {
    return invalid_value;
  }
  if (capture->origin != s) {
    return capture_unmatched;
  }
  if (capture->mode != 2 && capture->thread != this_thread()) {
    return capture_wrong_thread;
  }
  int status = ok;
  if (capture->invalid) {
    status = capture_invalidated;
  } else if (!all_joined(*capture)) {
    status = capture_unjoined;
  }
  close(capture);
  if (status == ok) {
    *graph = capture->graph;
  } else if (capture->owns_graph) {
    destroy_graph(capture->graph);
  }
  return status;
}

void abandon_capture(Stream& stream) {
  Capture* const capture = stream.capture;
  capture->invalid = true;
  std::erase(capture->members, &stream);
  if (capture->origin == &stream) {
    close(capture);
    if (capture->owns_graph) {
      destroy_graph(capture->graph);
    }
  }
}

void invalidate_capture(Capture& capture) { capture.invalid = true; }

int join_capture(Stream& stream, Capture& capture, const std::vector<GraphNode*>& frontier) {
  if (!registry().captures.contains(&capture)) {
    return capture_invalidated;
  }
  if (stream.capture == nullptr) {
    stream.capture = &capture;
    stream.frontier.clear();
    capture.members.push_back(&stream);
  } else if (stream.capture != &capture) {
    capture.invalid = true;
    stream.capture->invalid = true;
    return capture_merge;
  }
  for (GraphNode* node : frontier) {
    if (std::find(stream.frontier.begin(), stream.frontier.end(), node) == stream.frontier.end()) {
      stream.frontier.push_back(node);
    }
  }
  return ok;
}

int capture_node(Stream& stream, NodeType type, std::function<void()> work) {
  const Guard guard(Books::get());
  if (stream.capture == nullptr) {
    return capture_invalidated;
  }
  if (stream.capture->invalid) {
    return capture_invalidated;
  }
  stream.frontier = {add_node(*stream.capture->graph, type, stream.frontier, std::move(work))};
  return ok;
}

int capture_state(void* stream, const CaptureState& out) {
  const Guard guard(Books::get());
  const Stream* s = find_stream(stream);
  if (s == nullptr || out.status == nullptr) {
    return s == nullptr ? invalid_handle : invalid_value;
  }
  *out.status = s->capture == nullptr ? 0 : s->capture->invalid ? 2 : 1;
  const auto put = [](auto* to, auto value) {
    if (to != nullptr) {
      *to = value;
    }
  };
  put(out.edges, static_cast<const void*>(nullptr));
  if (*out.status != 1) {
    return ok;
  }
  put(out.id, s->capture->id);
  put(out.graph, static_cast<void*>(s->capture->graph));
  put(out.after, s->frontier.data());
  put(out.count, s->frontier.size());
  return ok;
}

std::vector<GraphNode*> nodes_of(void* const* nodes, std::size_t count) {
  std::vector<GraphNode*> result;
  for (std::size_t i = 0; i < count && nodes != nullptr; ++i) {
    result.push_back(static_cast<GraphNode*>(nodes[i]));
  }
  return result;
}

int update_frontier(void* stream, const std::vector<GraphNode*>& after, bool instead) {
  const Guard guard(Books::get());
  Stream* const s = find_stream(stream);
  if (s == nullptr || s->capture == nullptr) {
    return s == nullptr ? invalid_handle : invalid_value;
  }
  if (instead) {
    s->frontier.clear();
  }
  s->frontier.insert(s->frontier.end(), after.begin(), after.end());
  return ok;
}

int forbid_in_capture() {
  const Guard guard(Books::get());
  if (t_mode == 2) {
    return ok;
  }
  int status = ok;
  for (Capture* capture : registry().captures) {
    if (capture->mode == 0 || (capture->mode == 1 && capture->thread == this_thread())) {
      capture->invalid = true;
      status = capture_unsupported;
    }
  }
  return status;
}

int exchange_capture_mode(int mode) { return std::exchange(t_mode, mode); }

Graph* new_graph() {
  const Guard guard(Books::get());
  return *registry().graphs.insert(new Graph).first;
}

Graph* find_graph(void* handle) {
  const Guard guard(Books::get());
  auto* graph = static_cast<Graph*>(handle);
  return registry().graphs.contains(graph) ? graph : nullptr;
}

int destroy_graph(void* handle) {
  Graph* graph = nullptr;
  std::vector<Graph*> bodies;  // what they release runs code of the program, as the graph's own does: without the lock
  {
    const Guard guard(Books::get());
    graph = find_graph(handle);
    if (graph == nullptr) {
      return invalid_value;
    }
    registry().graphs.erase(graph);
    for (const auto& node : graph->nodes) {
      bodies.insert(bodies.end(), node->bodies.begin(), node->bodies.end());
    }
  }
  for (Graph* body : bodies) {
    destroy_graph(body);
  }
  delete graph;
  return ok;
}

Graph* clone(const Graph& graph) {
  const Guard guard(Books::get());
  Graph* made = new_graph();
  for (const auto& node : graph.nodes) {
    GraphNode* copy = add_node(*made, node->type, {}, node->work);
    for (const Graph* body : node->bodies) {
      copy->bodies.push_back(clone(*body));
    }
  }
  return made;
}

GraphNode* add_node(Graph& graph, NodeType type, std::vector<GraphNode*> after, std::function<void()> work) {
  const Guard guard(Books::get());
  graph.nodes.push_back(std::make_unique<GraphNode>(GraphNode{type, std::move(work), std::move(after)}));
  return graph.nodes.back().get();
}

GraphNode* add_conditional_node(Graph& graph, std::vector<GraphNode*> after, std::size_t bodies) {
  const Guard guard(Books::get());
  GraphNode* node = add_node(graph, NodeType::conditional, std::move(after), {});
  for (std::size_t i = 0; i < bodies; ++i) {
    node->bodies.push_back(new_graph());
  }
  return node;
}

GraphExec* instantiate(const Graph& graph) {
  const Guard guard(Books::get());
  auto* exec = new GraphExec;
  add_steps(graph, *exec);
  return *registry().execs.insert(exec).first;
}

GraphExec* find_exec(void* handle) {
  const Guard guard(Books::get());
  auto* exec = static_cast<GraphExec*>(handle);
  return registry().execs.contains(exec) ? exec : nullptr;
}

int destroy_exec(void* handle) {
  GraphExec* exec = nullptr;
  {
    const Guard guard(Books::get());
    exec = find_exec(handle);
    if (exec == nullptr) {
      return invalid_value;
    }
    registry().execs.erase(exec);
  }
  delete exec;
  return ok;
}

int launch(void* exec, void* stream) {
  const Guard guard(Books::get());
  const GraphExec* const e = find_exec(exec);
  if (e == nullptr) {
    return invalid_value;
  }
  for (const GraphExec::Step& step : e->steps) {
    if (step.type == NodeType::host) {
      submit_host_function(stream, step.work);
    } else if (step.work) {
      step.work();
    }
    if (step.type == NodeType::kernel) {
      count_launch();
    }
  }
  return find_stream(stream) == nullptr ? invalid_handle : ok;
}

}  // namespace nullgpu
