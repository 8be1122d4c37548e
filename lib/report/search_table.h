// What a search found, for people: a row for each plan, or a grid of plans and the values that were gone along.
#pragma once

#include <string>

#include "estimate/search.h"
#include "report/table.h"

namespace qlp {

std::string search_table(const SearchReport& report, const TableOptions& options = {});

}  // namespace qlp
