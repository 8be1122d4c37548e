#include "checkpoint/rope_json.h"

#include <nlohmann/json.hpp>

#include "plan/job_names.h"

namespace qlp {

nlohmann::ordered_json rope_scaling_json(const RopeScaling& s) {
  nlohmann::ordered_json out{{"rope_type", name_of(s.rope_type)}, {"factor", s.factor}};
  if (s.rope_type == RopeStretch::llama3)
    out["low_freq_factor"] = s.low_freq_factor, out["high_freq_factor"] = s.high_freq_factor;
  if (s.rope_type == RopeStretch::yarn) {
    out["beta_fast"] = s.beta_fast, out["beta_slow"] = s.beta_slow, out["truncate"] = s.truncate;
    if (s.mscale) out["mscale"] = *s.mscale;
    if (s.mscale_all_dim) out["mscale_all_dim"] = *s.mscale_all_dim;
    if (s.attention_factor) out["attention_factor"] = *s.attention_factor;
  }
  if (s.original_max_position_embeddings) out["original_max_position_embeddings"] = *s.original_max_position_embeddings;
  return out;
}

}  // namespace qlp
