#include "model/slice.h"

#include <doctest/doctest.h>

using namespace qlp;

// transformers 5.24, distributed/pipeline_parallel.py: 32 layers over 3 ranks are [0, 11), [11, 22), [22, 32).
TEST_CASE("model/slice: the first stages have the layers that are left over") {
  const ModelSlice first{1, 3, 0}, second{1, 3, 1}, third{1, 3, 2};
  CHECK(first.first_layer(32) == 0);
  CHECK(first.end_layer(32) == 11);
  CHECK(second.first_layer(32) == 11);
  CHECK(second.end_layer(32) == 22);
  CHECK(third.first_layer(32) == 22);
  CHECK(third.end_layer(32) == 32);
  CHECK(first.first());
  CHECK(third.last());
}

TEST_CASE("model/slice: stages follow each other without gaps") {
  for (std::int64_t layers = 1; layers < 20; ++layers)
    for (std::int64_t stages = 1; stages <= layers; ++stages) {
      CHECK(ModelSlice{1, stages, 0}.first_layer(layers) == 0);
      CHECK(ModelSlice{1, stages, stages - 1}.end_layer(layers) == layers);
      for (std::int64_t stage = 1; stage < stages; ++stage)
        CHECK(ModelSlice{1, stages, stage - 1}.end_layer(layers) == ModelSlice{1, stages, stage}.first_layer(layers));
    }
}
