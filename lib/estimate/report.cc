#include "estimate/report.h"

#include <algorithm>

namespace qlp {

LedgerFigures larger(const LedgerFigures& a, const LedgerFigures& b) {
  return {.requested = std::max(a.requested, b.requested),
          .allocated = std::max(a.allocated, b.allocated),
          .active = std::max(a.active, b.active),
          .reserved = std::max(a.reserved, b.reserved)};
}

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
