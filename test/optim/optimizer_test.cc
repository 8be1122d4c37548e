#include "optim/optimizer.h"

#include <algorithm>
#include <string>

#include <doctest/doctest.h>

#include "optim/optimizer_job.h"
#include "optim/optimizer_names.h"

using namespace qlp;
using test::OptimizerJob;

TEST_CASE("optim/optimizer: what all vectors have alike is what is there after a step") {
  const Shape shape{5000};
  for (const OptimizerName& row : kOptimizerNames) {
    CAPTURE(std::string(row.name));
    if (std::holds_alternative<Muon>(row.kind) || std::holds_alternative<Lomo>(row.kind)) continue;  // no vectors
    if (std::holds_alternative<Apollo>(row.kind)) continue;  // groups of its own
    for (const DType dtype : {DType::bfloat16, DType::float32}) {
      OptimizerJob job({{shape, dtype}});
      job.make(row.kind, {{0}});
      const StatesAlike alike = job.optimizer->states_alike(dtype);
      job.step();
      if (alike.count == 0) continue;
      const auto entries = job.optimizer->state();
      REQUIRE(entries.size() == 1);
      const auto& state = entries.front().state;
      CHECK(std::ranges::count_if(state, [&](const Tensor& tensor) {
              return tensor.shape() == shape && tensor.dtype() == alike.dtype;
            }) == static_cast<std::ptrdiff_t>(alike.count));
    }
  }
}

TEST_CASE("optim/optimizer: few bits, pages and AdEMAMix's pair are not alike for all") {
  const auto alike = [](const char* name) {
    OptimizerJob job({{{10}, DType::bfloat16}});
    job.make(named_optimizer(name).kind, {{0}});
    return job.optimizer->states_alike(DType::bfloat16);
  };
  for (const char* name : {"adamw_8bit", "paged_adamw_32bit", "ademamix", "adamw_torch_8bit", "sgd"})
    CHECK(alike(name).count == 0);
  CHECK(alike("adamw_torch").count == 2);
  CHECK(alike("adamw_torch").dtype == DType::bfloat16);
  CHECK(alike("lion_32bit").count == 1);
  CHECK(alike("adafactor").dtype == DType::float32);
}

TEST_CASE("optim/optimizer: a step on one parameter") {
  OptimizerJob job({{{100}, DType::float32}, {{50}, DType::float32}});
  job.make(AdamW{}, {{0, 1}});
  job.optimizer->step_alone(job.dry.ctx, job.parameters.front());
  CHECK(job.optimizer->state().size() == 1);
}
