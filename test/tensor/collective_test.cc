#include "tensor/collective.h"

#include <doctest/doctest.h>

#include "quant/recorder.h"

using namespace qlp;
using test::DryDevice;

TEST_CASE("tensor/collective: is recorded in the phase that runs") {
  DryDevice dry;
  const RankGroup group{MeshAxis::dp_shard, 4, 2};
  dry.timeline.begin_phase("second", dry.allocator.stats());
  all_gather(dry.ctx, group, dry.tensor({3, 5}, DType::bfloat16), Tensor());
  communicate(dry.ctx, Collective::broadcast, {MeshAxis::tp, 2}, 7);
  dry.timeline.begin_phase("third", dry.allocator.stats());
  const auto work = dry.device.take_work();
  REQUIRE(work.size() == 3);
  CHECK(work[0].collectives.empty());
  REQUIRE(work[1].collectives.size() == 2);
  CHECK(work[1].collectives[0].kind == Collective::all_gather);
  CHECK(work[1].collectives[0].group == group);
  CHECK(work[1].collectives[0].bytes == 30);
  CHECK(work[1].collectives[1].bytes == 7);
  CHECK(work[2].collectives.empty());
}

TEST_CASE("tensor/collective: one rank alone, and what is given up, send nothing") {
  DryDevice dry;
  communicate(dry.ctx, Collective::all_reduce, {MeshAxis::world, 1}, 100);
  const Scoped abandoned(dry.ctx.abandoned, true);
  communicate(dry.ctx, Collective::all_reduce, {MeshAxis::world, 8}, 100);
  CHECK(dry.device.work().collectives.empty());
}

TEST_CASE("tensor/collective: copies between host and GPU are counted by direction") {
  DryDevice dry;
  const Tensor on_device = dry.tensor({10}, DType::float32);
  const Tensor on_host = to_host(dry.ctx, on_device);
  CHECK(dry.device.work().device_to_host_bytes == 40);
  to_device(dry.ctx, on_device);  // is there already
  CHECK(dry.device.work().host_to_device_bytes == 0);
  to_device(dry.ctx, on_host);
  to_host(dry.ctx, on_host);
  copy_to_device(dry.ctx, 2);
  CHECK(dry.device.work().host_to_device_bytes == 42);
  CHECK(dry.device.work().device_to_host_bytes == 40);
}
