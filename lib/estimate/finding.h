// What `check` has to say about a job under a plan: a rule that it breaks, the evidence, the way out and its price.
#pragma once

#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/diagnostic.h"

namespace qlp {

/// The job with the fix made, run on the dry device.
struct PricedFix {
  std::string text;      ///< "set training.loss to liger"
  std::string plan;      ///< under which it was run
  Bytes peak_allocated;  ///< of the worst rank, over the whole run
  Bytes device_used;
  bool fits = false;
  std::optional<ByteDelta> saving;  ///< of the allocated peak; none where the job as it is cannot run
};

struct Finding {
  Severity severity = Severity::warning;
  std::string code;  ///< stable, kebab-case: "logits-dominate"
  std::string plan;
  std::string message;            ///< one sentence: what is wrong
  std::optional<Bytes> evidence;  ///< the bytes on a rank that it is about
  std::string hint;               ///< the fix in words, where none was run; may be empty
  std::string key_path;           ///< where the job file says it; may be empty
  std::optional<PricedFix> fix;   ///< the first of the fixes that helps
};

}  // namespace qlp
