#include "shard/loopback_communicator.h"

#include <vector>

#include <doctest/doctest.h>

#include "tensor/cpu_kernels.h"

namespace qlp {
namespace {

using Floats = std::vector<float>;

TEST_CASE("shard/loopback_communicator: what the others would send is made of what the rank has") {
  CpuKernels kernels;
  LoopbackCommunicator wire(kernels, 1);
  const RankGroup all{MeshAxis::world, 3};
  const DType dtype = DType::float32;
  CHECK(wire.rank() == 1);

  Floats own{1, 2}, gathered(6);
  wire.all_gather(0, all, gathered.data(), own.data(), 2, dtype);
  CHECK(gathered == Floats{1, 2, 1, 2, 1, 2});
  Floats whole{0, 0, 8, 9, 0, 0}, mine(2);
  wire.reduce_scatter(0, all, mine.data(), whole.data(), 2, dtype, ReduceOp::sum);
  CHECK(mine == Floats{8, 9});
  wire.reduce_scatter(0, all, whole.data() + 2, whole.data(), 2, dtype, ReduceOp::average);
  CHECK(whole == Floats{0, 0, 8, 9, 0, 0});
  wire.all_gather(0, all, whole.data(), whole.data() + 2, 2, dtype);
  CHECK(whole == Floats{8, 9, 8, 9, 8, 9});
  wire.all_reduce(0, all, own.data(), 2, dtype, ReduceOp::sum);
  CHECK(own == Floats{1, 2});
  wire.broadcast(0, all, own.data(), 2, dtype, 1);
  CHECK(own == Floats{1, 2});
  Floats parts(6);
  wire.all_to_all(0, all, parts.data(), {2, 2, 2}, whole.data(), {2, 2, 2}, dtype);
  CHECK(parts == whole);
  wire.all_to_all(0, all, parts.data(), {1, 2, 3}, whole.data(), {1, 3, 2}, dtype);
  CHECK(parts == Floats{8, 0, 0, 0, 0, 0});
}

TEST_CASE("shard/loopback_communicator: what would come from another rank alone is zero") {
  CpuKernels kernels;
  LoopbackCommunicator wire(kernels, 1);
  const RankGroup all{MeshAxis::world, 3};
  Floats data{1, 2};
  wire.broadcast(0, all, data.data(), 2, DType::float32, 0);
  CHECK(data == Floats{0, 0});
  data = {1, 2};
  wire.send(0, all, data.data(), 2, DType::float32, 0);
  wire.barrier(all);
  CHECK(data == Floats{1, 2});
  wire.recv(0, all, data.data(), 2, DType::float32, 2);
  CHECK(data == Floats{0, 0});
}

}  // namespace
}  // namespace qlp
