// When parameters are gathered, fetched ahead and freed under ZeRO stage 3: by the trace of the modules that ran in the
// iteration before (deepspeed/runtime/zero/partitioned_param_coordinator.py, 0.18.3).
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "shard/zero3_gather.h"

namespace qlp {

class Zero3Coordinator {
 public:
  /// `params` are all parameters below `root`, in the order of named_parameters(). Mixtures of experts are leaves: what
  /// is below them is theirs (z3_leaf_module.py).
  Zero3Coordinator(Module& root, const std::vector<Zero3Param*>& params, const Zero3Options& options);
  Zero3Coordinator(const Zero3Coordinator&) = delete;
  Zero3Coordinator& operator=(const Zero3Coordinator&) = delete;

  /// A forward pass of the whole model begins: the trace of the iteration that ended is used from now on.
  void reset_step(Context& ctx);
  /// A module is about to run, forward or backward: its parameters become whole, and those that come next are fetched
  /// ahead. A module that has no parameters and no object here is null.
  void fetch(Context& ctx, const Module* module);
  /// A module has run: its parameters are freed unless they are needed again soon.
  void release(Context& ctx, const Module& module);
  /// Frees everything (partition_all_parameters).
  void release_all(Context& ctx);
  /// A module reads the parameter of another one: in the forward pass that gathers it if it is not there, and from then
  /// on it counts as the module's own (ZeROOrderedDict, register_external_parameter).
  void read_outside(Context& ctx, const Module& reader, const Parameter& parameter);
  /// The parameters that a module reads: its own, and those that it shares; of a leaf all that are below it.
  const std::vector<Zero3Param*>& params_of(const Module* module) const;
  /// The parameter that this tensor is; null for any other.
  Zero3Param* param_of(const Tensor& tensor) const;

 private:
  enum class Trace : std::uint8_t { invalid, record, complete };
  struct Use {
    Zero3Param* param;
    std::int64_t step;
  };

  void check_trace(Context& ctx, const Module* module);
  void make_param_order();
  void add_below(Module& root);
  void begin_all(Context& ctx, const std::vector<Zero3Param*>& params);
  void prefetch(Context& ctx, const std::vector<Zero3Param*>& fetched);
  void gather(Context& ctx, const std::vector<Zero3Param*>& params);
  void release(Context& ctx, Zero3Param& param);
  void finish_inflight(Context& ctx);
  const std::vector<Zero3Param*>& params_to_release(const Module& module);
  const std::vector<Zero3Param*>& own_params_of(const Module* module) const;
  const std::vector<Zero3Param*>& params_below(const Module* module) const;
  std::int64_t last_fetched_for(const Zero3Param& param) const;

  Zero3Options options_;
  std::vector<Zero3Param*> all_;
  std::unordered_map<const Parameter*, Zero3Param*> by_parameter_;
  std::unordered_map<const TensorImpl*, Zero3Param*> by_tensor_;
  std::unordered_map<const Module*, std::vector<Zero3Param*>> of_module_;
  std::unordered_map<const Module*, std::vector<Zero3Param*>> below_;  ///< of models with leaves
  Trace trace_ = Trace::invalid;
  std::int64_t step_ = 0;
  std::vector<const Module*> module_order_;
  std::vector<Use> param_order_;
  std::deque<Use> queue_;  ///< uses to come, fetched from the front
  std::unordered_map<const Zero3Param*, std::int64_t> last_fetched_for_;
  std::int64_t available_ = 0;        ///< elements, as the library counts them
  std::int64_t ongoing_fetches_ = 0;  ///< whose events have not been waited for
  std::map<std::pair<const Module*, std::int64_t>, std::vector<Zero3Param*>> to_release_;  ///< kept for good
};

}  // namespace qlp
