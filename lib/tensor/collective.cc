#include "tensor/collective.h"

namespace qlp {

void communicate(Context& ctx, Collective kind, const RankGroup& group, std::uint64_t bytes) {
  if (group.size == 1 || ctx.abandoned) return;
  ctx.device.work().collectives.push_back({kind, group, bytes});
}

void communicate(Context& ctx, Collective kind, const RankGroup& group, const Tensor& whole) {
  communicate(ctx, kind, group, bytes_of(whole.shape(), whole.dtype()).count());
}

void copy_to_device(Context& ctx, std::uint64_t bytes) { ctx.device.work().host_to_device_bytes += bytes; }

void copy_to_host(Context& ctx, std::uint64_t bytes) { ctx.device.work().device_to_host_bytes += bytes; }

}  // namespace qlp
