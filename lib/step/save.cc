#include "step/save.h"

#include <utility>
#include <vector>

#include "step/load_order.h"
#include "tensor/factories.h"

namespace qlp {
namespace {

/// safetensors takes everything of a file to the host before it writes (_to_ndarray, kept alive until then).
void write_files(Context& ctx, const StateDict& state_dict, const SaveOptions& options) {
  std::vector<Tensor> file;
  std::uint64_t bytes = 0;
  for (const StateDictEntry& entry : state_dict.entries) {
    if (options.adapter_only && in_checkpoint(*entry.parameter)) continue;
    const std::uint64_t more = bytes_of(entry.tensor.shape(), entry.tensor.dtype()).count();
    if (!options.adapter_only && bytes != 0 && bytes + more > options.file_bytes) file.clear(), bytes = 0;
    bytes += more;
    file.push_back(entry.tensor.on_host() ? entry.tensor : to_host(ctx, entry.tensor));
  }
}

}  // namespace

void save_model(Context& ctx, CausalLm& model, ShardingRuntime& runtime, Optimizer& optimizer,
                const SaveOptions& options) {
  const Scoped grad_mode(ctx.grad_enabled, false);
  if (!options.gathers_model) return runtime.save_training_state(ctx, model, optimizer, {.first = options.writes});
  const StateDict state_dict = runtime.state_dict(ctx, model, options.writes);
  if (options.writes) write_files(ctx, state_dict, options);
}

void save_checkpoint(Context& ctx, CausalLm& model, ShardingRuntime& runtime, Optimizer& optimizer,
                     const SaveOptions& options) {
  const Scoped grad_mode(ctx.grad_enabled, false);
  if (!options.in_shards) save_model(ctx, model, runtime, optimizer, options);
  runtime.save_training_state(
      ctx, model, optimizer,
      {.adapter_only = options.adapter_only, .sharded = options.in_shards, .first = options.writes});
}

}  // namespace qlp
