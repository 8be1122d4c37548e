#include "step/load_order.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <utility>

#include "nn/initial_values.h"

namespace qlp {
namespace {

/// A text that sorts as the name does in natural order: "layers.2" before "layers.10".
std::string natural_key(const std::string& name) {
  constexpr std::size_t kDigits = 6;
  std::string key;
  for (std::size_t i = 0; i < name.size();) {
    std::size_t end = i;
    while (end < name.size() && std::isdigit(static_cast<unsigned char>(name[end]))) ++end;
    if (end > i) {
      if (end - i < kDigits) key.append(kDigits - (end - i), '0');
      key.append(name, i, end - i);
      i = end;
    } else {
      key += name[i++];
    }
  }
  return key;
}

using Named = std::pair<std::string, Parameter*>;

}  // namespace

bool in_checkpoint(const Parameter& parameter) {
  switch (parameter.role) {
    case ParamRole::lora_a:
    case ParamRole::lora_b:
    case ParamRole::dora_magnitude:
    case ParamRole::modules_to_save:
    case ParamRole::lora_bias:
    case ParamRole::trainable_tokens:
      return false;
    default:
      return true;
  }
}

bool is_stack(const Parameter& parameter) {
  return parameter.role == ParamRole::base_weight && parameter.shape.rank() == 3;
}

std::vector<Parameter*> load_order(CausalLm& model, DType dtype, Loader loader, bool mxfp4) {
  std::vector<Named> names;
  std::size_t file_start = 0;
  std::uint64_t file_bytes = 0;
  const auto sort_file = [&] { std::sort(names.begin() + static_cast<std::ptrdiff_t>(file_start), names.end()); };
  for (Parameter* parameter : model.parameters()) {
    if (!in_checkpoint(*parameter)) continue;
    const std::uint64_t bytes = bytes_of(parameter->shape, dtype).count();
    if (loader == Loader::by_file && file_bytes && file_bytes + bytes > kCheckpointFileBytes.count()) {
      sort_file();
      file_start = names.size(), file_bytes = 0;
    }
    std::string name = checkpoint_name(*parameter) + (mxfp4 && is_stack(*parameter) ? "_blocks" : "");
    names.emplace_back(loader == Loader::by_name ? natural_key(name) : std::move(name), parameter);
    file_bytes += bytes;
  }
  if (loader == Loader::by_file) sort_file();
  if (loader == Loader::by_name) std::sort(names.begin(), names.end());
  std::vector<Parameter*> order;
  for (const auto& [name, parameter] : names) order.push_back(parameter);
  return order;
}

}  // namespace qlp
