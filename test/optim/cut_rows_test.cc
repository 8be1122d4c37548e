#include "optim/cut_rows.h"

#include <doctest/doctest.h>

#include "quant/recorder.h"

using namespace qlp;
using test::DryDevice;
using test::Events;

namespace {

Events gathering(std::int64_t own, const CutRows& rows) {
  DryDevice dry;
  const Tensor part = dry.tensor({own, 100}, DType::float32);
  dry.recorder.take();
  const Tensor whole = all_rows(dry.ctx, part, rows);
  CHECK(whole.shape() == Shape{rows.whole, 100});
  return dry.recorder.take();
}

}  // namespace

// As recorded with torch 2.8.0 and 2.14.1: ranks with fewer rows fill theirs up, and the whole has room for all.
TEST_CASE("optim/cut_rows: ten rows of three ranks") {
  const CutRows rows{.group = {.size = 3}, .whole = 10};
  CHECK(rows.most() == 4);
  CHECK_FALSE(rows.even());
  CHECK(gathering(4, rows) == Events{4800});
  CHECK(gathering(2, rows) == Events{1600, 4800, -1600});
}

TEST_CASE("optim/cut_rows: only what is cut has rows") {
  DryDevice dry;
  const Tensor cut = dry.tensor({4, 100}, DType::float32), whole = dry.tensor({4, 100}, DType::float32);
  const CutParameters parameters({{cut, {.group = {.size = 3}, .whole = 10, .first = 4}}});
  REQUIRE(parameters.rows_of(cut));
  CHECK(parameters.rows_of(cut)->first == 4);
  CHECK_FALSE(parameters.rows_of(whole));
}
