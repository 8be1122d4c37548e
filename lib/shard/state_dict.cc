#include "shard/state_dict.h"

#include "tensor/collective.h"
#include "tensor/factories.h"

namespace qlp {

const Parameter* tied_table(CausalLm& model) {
  const CausalLmParts& parts = model.parts();
  if (!parts.embedding || !parts.head) return nullptr;
  const Parameter& embedding = parts.embedding->weight();
  return &embedding == &parts.head->weight() ? &embedding : nullptr;
}

std::vector<Tensor> cloned_nested_codes(Context& ctx, Module& module) {
  std::vector<Tensor> clones;
  for (const Parameter* parameter : module.parameters())
    if (parameter->quant && parameter->quant->double_quant)
      clones.push_back(empty_like(ctx, parameter->quant->nested_code, Op::clone));
  return clones;
}

void write_tensors(Context& ctx, const std::vector<Tensor>& tensors) {
  for (const Tensor& tensor : tensors)
    if (!tensor.on_host()) const Tensor copy = to_host(ctx, tensor);
}

void write_chunks(Context& ctx, const std::vector<Tensor>& chunks) {
  std::vector<Tensor> written;
  for (const Tensor& chunk : chunks) {
    if (chunk.on_host()) continue;
    copy_to_host(ctx, bytes_of(chunk.shape(), chunk.dtype()).count());
    written.push_back(pin_memory(ctx, chunk));
  }
}

}  // namespace qlp
