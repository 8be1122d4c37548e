#include "config/named_file.h"

#include <utility>

#include "config/json_parser.h"
#include "config/yaml_parser.h"

namespace qlp {
namespace {

bool looks_like_json(const std::string& text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  return first != std::string::npos && text[first] == '{';
}

}  // namespace

NodePtr read_map(const std::string& path, const KeyPlace& named, const FileReader& files, Findings& findings) {
  auto text = read_text(path, files);
  if (!text) {
    for (Diagnostic& error : text.error()) error.key_path = named.path, error.position = named.position;
    findings.append(std::move(text.error()));
    return nullptr;
  }
  auto root = looks_like_json(*text) ? parse_json(*text, path) : parse_yaml(*text, path);
  if (root) return *root;
  findings.append(std::move(root.error()));
  return nullptr;
}

}  // namespace qlp
