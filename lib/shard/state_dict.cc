#include "shard/state_dict.h"

#include "tensor/factories.h"

namespace qlp {

std::vector<Tensor> cloned_nested_codes(Context& ctx, Module& module) {
  std::vector<Tensor> clones;
  for (const Parameter* parameter : module.parameters())
    if (parameter->quant && parameter->quant->double_quant)
      clones.push_back(empty_like(ctx, parameter->quant->nested_code, Op::clone));
  return clones;
}

}  // namespace qlp
