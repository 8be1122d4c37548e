#include "estimate/rank_ledger.h"

namespace qlp {

LedgerFigures larger(const LedgerFigures& a, const LedgerFigures& b) {
  return {.requested = std::max(a.requested, b.requested),
          .allocated = std::max(a.allocated, b.allocated),
          .active = std::max(a.active, b.active),
          .reserved = std::max(a.reserved, b.reserved)};
}

}  // namespace qlp
