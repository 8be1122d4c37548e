#include "step/load_order.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <utility>

namespace qlp {
namespace {

// save_pretrained splits near 5 GB and checkpoints in the wild differ; within a file the order is by name.
constexpr std::uint64_t kFileBytes = 4'000'000'000;

/// The name in the checkpoint, which knows nothing of adapters.
std::string checkpoint_name(const Parameter& parameter) {
  constexpr std::string_view kBase = ".base_layer";
  std::string name = parameter.name;
  if (const auto at = name.find(kBase); at != std::string::npos) name.erase(at, kBase.size());
  return name;
}

/// "layers.2" before "layers.10".
bool natural_less(const std::string& a, const std::string& b) {
  std::size_t i = 0, j = 0;
  const auto number = [](const std::string& text, std::size_t& at) {
    std::uint64_t value = 0;
    while (at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])))
      value = value * 10 + static_cast<std::uint64_t>(text[at++] - '0');
    return value;
  };
  while (i < a.size() && j < b.size()) {
    if (std::isdigit(static_cast<unsigned char>(a[i])) && std::isdigit(static_cast<unsigned char>(b[j]))) {
      const auto left = number(a, i), right = number(b, j);
      if (left != right) return left < right;
    } else if (a[i++] != b[j++]) {
      return a[i - 1] < b[j - 1];
    }
  }
  return a.size() - i < b.size() - j;
}

using Named = std::pair<std::string, Parameter*>;

}  // namespace

bool in_checkpoint(const Parameter& parameter) {
  switch (parameter.role) {
    case ParamRole::lora_a:
    case ParamRole::lora_b:
    case ParamRole::dora_magnitude:
    case ParamRole::modules_to_save: return false;
    default: return true;
  }
}

std::vector<Parameter*> load_order(CausalLm& model, DType dtype, Loader loader) {
  std::vector<Named> names;
  std::size_t file_start = 0;
  std::uint64_t file_bytes = 0;
  const auto sort_file = [&] { std::sort(names.begin() + static_cast<std::ptrdiff_t>(file_start), names.end()); };
  for (Parameter* parameter : model.parameters()) {
    if (!in_checkpoint(*parameter)) continue;
    const std::uint64_t bytes = bytes_of(parameter->shape, dtype).count();
    if (loader == Loader::by_file && file_bytes && file_bytes + bytes > kFileBytes) {
      sort_file();
      file_start = names.size(), file_bytes = 0;
    }
    names.emplace_back(checkpoint_name(*parameter), parameter);
    file_bytes += bytes;
  }
  if (loader == Loader::by_file) sort_file();
  if (loader == Loader::by_name)
    std::sort(names.begin(), names.end(), [](const Named& a, const Named& b) { return natural_less(a.first, b.first); });
  std::vector<Parameter*> order;
  for (const auto& [name, parameter] : names) order.push_back(parameter);
  return order;
}

}  // namespace qlp
