#include "nn/module.h"

#include <algorithm>

namespace qlp {

std::vector<Parameter*> Module::parameters() {
  std::vector<Parameter*> all;
  visit([&](Module& module) {
    for (const auto& parameter : module.parameters_) all.push_back(parameter.get());
  });
  return all;
}

Parameter& Module::add_parameter(std::string leaf, ParamRole role, Shape shape) {
  auto parameter = std::make_unique<Parameter>();
  parameter->name = name_.empty() ? std::move(leaf) : name_ + "." + leaf;
  parameter->role = role;
  parameter->shape = shape;
  parameters_.push_back(std::move(parameter));
  return *parameters_.back();
}

}  // namespace qlp
