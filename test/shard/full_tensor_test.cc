#include "shard/full_tensor.h"

#include <doctest/doctest.h>

#include "quant/recorder.h"

using namespace qlp;
using test::DryDevice;
using test::Events;

namespace {

/// Of two linear layers of 768 rows that are one, of which each of four ranks has a quarter.
Events events_of(DryDevice& dry, int cut_dim, std::int64_t fused_parts, const Shape& part) {
  Parameter parameter;
  parameter.mesh = LayerMesh::tp, parameter.parts = 4;
  parameter.cut_dim = cut_dim, parameter.fused_parts = fused_parts;
  const Tensor own = dry.tensor(part, DType::bfloat16);
  dry.recorder.take();
  const Tensor whole = full_tensor(dry.ctx, parameter, own);
  CHECK(whole.shape() == part.with(cut_dim, part[cut_dim] * 4));
  return dry.recorder.take();
}

}  // namespace

// As recorded with torch 2.14.1 and transformers 5.24.0: layers of Qwen 3 MoE with 16 experts.
TEST_CASE("shard/full_tensor: rows lie as they are gathered, columns are joined") {
  DryDevice dry;
  CHECK(events_of(dry, 0, 0, {1024, 2048}) == Events{16777216});
  CHECK(events_of(dry, 1, 0, {2048, 1024}) == Events{16777216, 16777216, -16777216});
  CHECK(events_of(dry, 2, 1, {16, 2048, 192}) == Events{50331648, 50331648, -50331648});
}

TEST_CASE("shard/full_tensor: pieces of tensors that are one are put in order by indices") {
  DryDevice dry;
  const Events events = events_of(dry, 1, 2, {16, 384, 2048});
  Events expected{12288, 3072, 3072, 3072, 3072, 100663296, 100663296, -100663296};
  for (int rank = 0; rank < 4; ++rank) expected.insert(expected.end(), {3072, 3072, -3072});
  for (const std::int64_t event : {12288, 12288, 12288, 12288, 12288, -12288, -12288, 12288, 100663296})
    expected.push_back(event);
  CHECK(Events(events.begin(), events.begin() + static_cast<std::ptrdiff_t>(expected.size())) == expected);
  std::int64_t kept = 0;
  for (const std::int64_t event : events) kept += event;
  CHECK(kept == 100663296);
}
