// Parts that several reports share, as JSON.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/diagnostic.h"
#include "estimate/rank_ledger.h"

namespace qlp {

inline constexpr std::string_view kSchemaVersion = "1.0";

/// The fields that every report begins with: the version of the schema, and of the program.
nlohmann::ordered_json opening_json(std::string_view tool_version);

/// Of a ledger, of categories and of a peak: whole bytes in fields that end in _bytes.
nlohmann::ordered_json figures_json(const LedgerFigures& figures);
nlohmann::ordered_json categories_json(const CategoryBytes& categories);
nlohmann::ordered_json peak_json(const PeakReport& peak);
/// The largest forty.
nlohmann::ordered_json inventory_json(const std::vector<InventoryItem>& items);
/// A term outside the framework's allocator each.
nlohmann::ordered_json outside_json(const std::vector<OutsideTerm>& terms);
nlohmann::ordered_json diagnostics_json(const Diagnostics& diagnostics);

/// As a file holds it. Names of files need not be UTF-8: what is none gives way to U+FFFD.
std::string document_text(const nlohmann::ordered_json& document);

}  // namespace qlp
