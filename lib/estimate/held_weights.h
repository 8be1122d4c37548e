// What a rank holds of a job's weights, in closed form: what the closed forms of all plans share.
#pragma once

#include <cstdint>
#include <vector>

#include "base/shape.h"
#include "estimate/optimizer_state.h"
#include "estimate/rank_ledger.h"
#include "estimate/weight_list.h"
#include "plan/job_spec.h"
#include "quant/quant_behaviour.h"

namespace qlp {

/// What a rank holds, and what its optimizer is given.
struct Held {
  CategoryBytes sums{};
  std::vector<TrainedShape> trained;
  std::vector<TrainedShape> frozen{};  ///< parts that FSDP1 makes of what is frozen
};

inline Bytes& of(CategoryBytes& sums, Category category) { return sums[static_cast<std::size_t>(category)]; }
inline Bytes& of(Held& held, Category category) { return of(held.sums, category); }

inline Category category_of(const ListedWeight& weight) {
  return weight.added() ? Category::adapter : Category::parameters;
}

/// The bias of a 4-bit layer takes on another dtype for good when it is first used (Linear4bit.forward).
inline DType dtype_in_use(const JobSpec& job, const QuantBehaviour& quant, const ListedWeight& weight) {
  if (!job.quantization || weight.kind != WeightKind::bias) return weight.dtype;
  if (job.quantization->eight_bit()) return weight.input;
  const bool configured = quant.honours_compute_dtype || weight.input == DType::float16;
  return quant.bias_in_compute_dtype && configured ? job.quantization->compute_dtype : weight.input;
}

/// A trained weight in a dtype, of which the rank has some rows.
inline TrainedShape shape_of(const ListedWeight& weight, std::int64_t rows, DType dtype) {
  return {.rows = rows,
          .width = weight.width,
          .whole_rows = weight.rows,
          .vector = weight.vector,
          .dtype = dtype,
          .embedding = weight.embedding,
          .projected = weight.projected};
}

}  // namespace qlp
