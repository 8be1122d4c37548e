// The answer to a job: what every plan takes on each rank, and why. Plain values; report/ turns them into text.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/diagnostic.h"
#include "base/dtype.h"
#include "base/shape.h"
#include "estimate/finding.h"
#include "estimate/step_report.h"
#include "estimate/verification.h"
#include "memory/category.h"
#include "plan/job_spec.h"
#include "plan/sharding_plan.h"

namespace qlp {

using CategoryBytes = std::array<Bytes, kCategoryNames.size()>;  ///< allocated bytes by Category

/// requested <= allocated <= active <= reserved, at one moment or as peaks over a span.
struct LedgerFigures {
  Bytes requested, allocated, active, reserved;
  friend bool operator==(const LedgerFigures&, const LedgerFigures&) = default;
};

/// Of each figure the larger one.
LedgerFigures larger(const LedgerFigures& a, const LedgerFigures& b);

/// The ledger of one rank over a span of the run (the whole of it, or the training steps alone).
struct PeakReport {
  /// The segments that the rank may come to hold.
  Bytes reserved_at_worst() const { return slowest ? std::max(slowest->reserved, figures.reserved) : figures.reserved; }
  /// The segments that it holds on this device.
  Bytes reserved_here() const { return reserved_when_limited.value_or(reserved_at_worst()); }

  /// What the device would have to hold if nothing stopped the rank.
  Bytes device_used_freely() const { return reserved_at_worst() + Bytes{device_used}.remove(reserved_here()); }

  std::string phase;                     ///< of the allocated peak: "backward", ...
  std::string phase_label;               ///< the exact one: "micro2.backward"
  LedgerFigures figures;                 ///< on a GPU that never lags
  std::optional<LedgerFigures> slowest;  ///< on one that lags as far as it can, where blocks wait for streams
  /// By replay with what the device leaves to the allocator: where free-running it takes more, and still runs.
  std::optional<Bytes> reserved_when_limited;
  Bytes device_used;                       ///< reserved_here + outside terms that fit + used_by_others
  std::optional<Bytes> required_reserved;  ///< least reserved with which it runs, by replay
  std::optional<Bytes> required_device;
  Bytes capacity;
  ByteDelta headroom;
  CategoryBytes categories{};
};

/// One live tensor (block) at a peak, or several that share module, op, shape of use.
struct InventoryItem {
  Category category = Category::activations;
  std::string op;      ///< maker: "aten::mul", "all_gather", "bnb::dequantize_4bit"
  std::string module;  ///< "model.layers.3.self_attn.q_proj"
  std::string tensor;  ///< "weight", "exp_avg"; empty for a temporary that its op names well enough
  std::uint64_t count = 1;
  Bytes requested;
  Bytes allocated;
};

/// One phase: the peaks since the last one, and what is held at its end.
struct PhaseReport {
  std::string
      name;  ///< load, adapter, prepare, micro1.forward, micro1.backward, step1.optimizer, step1.zero_grad, ..., end
  std::string phase;  ///< the glossary's word: load, adapter, prepare, forward, backward, optimizer_step, zero_grad
  LedgerFigures peak{};
  LedgerFigures held{};
  Bytes host_peak{};  ///< of the process's tensors, pinned blocks included
  Bytes host_held{};
  CategoryBytes categories{};              ///< of the phase's allocated peak
  std::vector<InventoryItem> inventory{};  ///< of that peak, largest first; only where it was asked for
};

/// A term outside the framework's allocator, with its source.
struct OutsideTerm {
  std::string name;  ///< cuda_context, nccl, library_overhead, paged_optimizer_state
  Bytes bytes;
  std::string source;
  bool managed = false;   ///< CUDA moves it to the host where the device is full: it takes what room there is
  bool measured = false;  ///< on the machine in question, no model
};

struct RankReport {
  std::int64_t rank = 0;
  PeakReport peak;           ///< over the whole run, load included
  PeakReport training_peak;  ///< from the first forward on
  LedgerFigures persistent;  ///< held after the last step
  CategoryBytes persistent_categories{};
  std::vector<PhaseReport> phases;
  std::vector<InventoryItem> top_tensors;  ///< of the whole run's allocated peak, largest first
};

/// Host memory of one process when it holds the most.
struct HostRank {
  std::string phase;           ///< of the peak: "load", "micro1.backward", ...
  Bytes peak;                  ///< tensors in pageable memory, and blocks of pinned memory
  Bytes pinned;                ///< the part that is page-locked, kept free blocks included
  Bytes mapped;                ///< most of checkpoint files that it has mapped; not in `peak`
  CategoryBytes categories{};  ///< of the tensors; pinned blocks are larger
};

struct HostReport {
  HostRank rank0;                  ///< the first process of each node
  std::optional<HostRank> others;  ///< absent where they hold the same
  std::int64_t processes = 1;      ///< of a node, one for each GPU that is used
  Bytes process;                   ///< of each process beside its tensors
  Bytes per_node;                  ///< sum over the processes of a node, in the phase in which it is largest
  std::string per_node_phase;
  Bytes page_cache;  ///< files that the processes of a node share; the system may drop them, so not in `per_node`
};

struct PlanReport {
  NamedPlan plan;
  Diagnostics refusals;  ///< why it cannot run; none where it can
  bool applicable() const { return refusals.empty(); }
  std::string reason() const;  ///< the refusals in one sentence, each with its fix
  bool fits = false;
  bool cache_given_back = false;  ///< fits only because PyTorch gives its cache back
  std::vector<RankReport> ranks;  ///< the worst first; one entry where all ranks are alike
  std::vector<OutsideTerm> outside;
  std::optional<HostReport> host;     ///< where rank 0 was played
  Communication communication;        ///< of one rank in an optimizer step
  std::optional<StepTime> step_time;  ///< none where the GPU's rates are unknown
  Diagnostics diagnostics;
};

struct ParameterCounts {
  std::uint64_t total = 0;  ///< adapters included
  std::uint64_t trainable = 0;
};

/// What a scheduler must give the recommended plan.
struct Resources {
  std::int64_t gpus = 0;
  std::int64_t nodes = 0;
  std::int64_t gpus_per_node = 0;
  Bytes gpu_memory;                             ///< on CUDA's scale, margin included
  std::optional<std::uint64_t> gpu_memory_mib;  ///< on nvidia-smi's scale, which labels of machines use
  std::optional<Bytes> host_memory_per_node;
};

struct Report {
  JobSpec job;
  ParameterCounts parameters;
  std::vector<PlanReport> plans;  ///< in the job's order
  std::optional<std::string> recommended;
  std::optional<Resources> resources;            ///< of the recommended plan
  Diagnostics diagnostics;                       ///< of the job: defaults used, warnings
  std::optional<std::vector<Finding>> findings;  ///< of `check`, errors first
  std::optional<Verification> verification;      ///< of `verify`
};

}  // namespace qlp
