#include "tensor/storage.h"

#include <utility>

#include <doctest/doctest.h>

#include "quant/recorder.h"

using namespace qlp;

TEST_CASE("tensor/storage: only what is on the device takes memory of it, the host's books have the rest") {
  const struct {
    Place place;
    std::uint64_t device, pageable, pinned, mapped;
  } cases[] = {{Place::device, 400, 0, 0, 0},
               {Place::host, 0, 400, 0, 0},
               {Place::pinned, 0, 0, 512, 0},
               {Place::mapped, 0, 0, 0, 400},
               {Place::meta, 0, 0, 0, 0}};
  for (const auto& expected : cases) {
    test::DryDevice dry;
    const auto before = dry.allocator.stats().requested.current;
    const Scoped place(dry.ctx.place, expected.place);
    Tensor tensor = empty(dry.ctx, {100}, DType::float32, Op::empty);
    CHECK(dry.allocator.stats().requested.current - before == expected.device);
    const HostFigures& host = dry.device.host().now();
    CHECK(host.pageable == expected.pageable);
    CHECK(host.pinned == expected.pinned);
    CHECK(host.mapped == expected.mapped);
    CHECK(tensor.on_host() == (expected.place != Place::device));
    tensor.reset();
    CHECK(dry.allocator.stats().requested.current == before);
    CHECK(host.pageable + host.mapped == 0);
    CHECK(host.pinned == expected.pinned);  // kept by the caching host allocator
  }
}

TEST_CASE("tensor/storage: a host storage is resized on the host's books") {
  test::DryDevice dry;
  const Scoped place(dry.ctx.place, Place::host);
  const Tensor tensor = empty(dry.ctx, {100}, DType::float32, Op::empty);
  tensor.storage().resize(0, 0);
  CHECK(dry.device.host().now().pageable == 0);
  tensor.storage().resize(800, 0);
  CHECK(dry.device.host().now().pageable == 800);
}

TEST_CASE("tensor/storage: copies go where they are asked to, under the label of the original") {
  test::DryDevice dry;
  const auto gradients = [&dry] {
    return dry.device.host().now().categories[static_cast<std::size_t>(Category::gradients)];
  };
  const Tensor original = [&dry] {
    const Scoped category(dry.ctx.category, Category::gradients);
    return empty(dry.ctx, {100}, DType::float32, Op::empty);
  }();
  Tensor host = to_host(dry.ctx, original);
  CHECK(host.storage().place() == Place::host);
  CHECK(gradients() == 400);
  const Tensor pinned = pin_memory(dry.ctx, host);
  CHECK(pinned.storage().place() == Place::pinned);
  CHECK(gradients() == 800);
  CHECK(pin_memory(dry.ctx, pinned).is(pinned));
  host.storage().set_label({Category::activations, 0, 0});
  CHECK(gradients() == 400);
  host.reset();
  CHECK(dry.device.host().now().pageable == 0);
  CHECK_FALSE(to_device(dry.ctx, pinned).on_host());
  CHECK(empty_like(dry.ctx, pinned, Op::empty_like).storage().place() == Place::host);
}
