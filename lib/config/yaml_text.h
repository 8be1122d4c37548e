// Texts as YAML reads them back.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace qlp {

/// In double quotes unless it is a plain word.
std::string yaml_text(std::string_view text);
/// "[a, "b c"]"
std::string yaml_list(const std::vector<std::string>& texts);

}  // namespace qlp
