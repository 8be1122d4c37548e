#include "estimate/report.h"

namespace qlp {

std::string PlanReport::reason() const {
  std::string text;
  for (const Diagnostic& refusal : refusals) {
    if (!text.empty()) text += "; ";
    text += refusal.message;
    if (!refusal.hint.empty()) text += " (" + refusal.hint + ")";
  }
  return text;
}

}  // namespace qlp
