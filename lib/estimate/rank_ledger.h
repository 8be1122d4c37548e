// What one rank takes: its memory in every ledger at the peaks, phase by phase, and the tensors that make them. Plain
// values.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "memory/category.h"

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

}  // namespace qlp
