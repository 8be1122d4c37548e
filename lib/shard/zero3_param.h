// One parameter under ZeRO stage 3: the part of this rank, and the whole while a module needs it
// (deepspeed/runtime/zero/partition_parameters.py, 0.18.3).
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>

#include "nn/module.h"
#include "shard/zero3_options.h"

namespace qlp {

class Zero3Gather;

/// ZeroParamStatus: whether the whole is there.
enum class Zero3Status : std::uint8_t { available, not_available, inflight };

/// Which modules DeepSpeed takes for leaves by itself (leaf_module_config.py, DEFAULT_LEAF_MODULE_CLASSES).
inline bool is_leaf_module(const Module& module) { return module.kind() == ModuleKind::mixture; }

class Zero3Param {
 public:
  /// Cuts a parameter that is whole on the GPU: from now on its tensor is empty between uses.
  Zero3Param(Context& ctx, Parameter& parameter, std::size_t id, const Zero3Options& options);
  ~Zero3Param();
  Zero3Param(const Zero3Param&) = delete;
  Zero3Param& operator=(const Zero3Param&) = delete;

  Parameter& parameter() const { return *parameter_; }
  const Tensor& tensor() const { return parameter_->tensor; }
  bool trainable() const { return parameter_->trainable; }
  std::size_t id() const { return id_; }
  const Shape& shape() const { return shape_; }
  std::int64_t numel() const { return shape_.numel(); }
  std::int64_t partition_numel() const { return partition_numel_; }
  /// How much of the partition this rank has: that of the last ones may be padding.
  bool holds_data() const;

  /// ds_tensor: this rank's part, flat, with padding.
  const Tensor& partition() const { return partition_; }
  DType dtype() const { return dtype_; }
  /// Of what this rank keeps of it.
  Category category() const { return category_; }
  /// ds_secondary_tensor (hpZ): this rank's part of the second copy, while it is up to date.
  const Tensor& secondary() const { return secondary_; }
  /// The optimizer has changed the parameter: the second copy is made anew when the whole goes next time.
  void drop_secondary() { secondary_.reset(); }
  /// The part moves: into a flat buffer of several, or away from where it was.
  void set_partition(Tensor part) { partition_ = std::move(part); }

  /// The whole parameter is `data` from now on, of at least as many elements.
  void show(const Tensor& data);
  /// Gathered at once, on the current stream (_allgather_params).
  void all_gather(Context& ctx);
  /// The parts of this rank become what the whole parameter holds there.
  void partition_whole(Context& ctx) const;
  /// free_param: the whole goes.
  void free(Context& ctx);

  Zero3Status status = Zero3Status::available;
  bool persists = false;          ///< never freed while training; partitioned for the optimizer's step
  std::set<const Module*> users;  ///< ds_active_sub_modules
  const Module* leaf = nullptr;   ///< ds_z3_leaf_module: gathered as a whole with what is below it; none of most
  Ref<Zero3Gather> inflight;      ///< the gathering that it waits for

 private:
  void keep_secondary(Context& ctx);
  void fill_part(Context& ctx, const Tensor& part, std::int64_t place) const;

  Parameter* parameter_;
  std::size_t id_;
  const Zero3Options* options_;
  Shape shape_;
  DType dtype_;
  Category category_;
  std::int64_t partition_numel_;
  Tensor partition_, secondary_;
};

/// The part on the GPU: a copy if it is kept on the host.
Tensor partition_on_device(Context& ctx, const Zero3Param& param);

}  // namespace qlp
