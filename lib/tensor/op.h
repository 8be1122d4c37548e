// The operations that make tensors, under the names that PyTorch's profiler and memory history print.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace qlp {

// clang-format off
#define QLP_OPS(X)                                                                                              \
  X(empty) X(empty_like) X(zeros) X(ones_like) X(arange) X(to_copy) X(clone) X(contiguous) X(add) X(sub) X(mul) \
  X(div) X(neg) X(pow) X(rsqrt) X(mean) X(sum) X(cat) X(stack) X(cos) X(sin) X(tanh) X(silu) X(gelu)            \
  X(rms_norm) X(eq) X(softmax) X(log_softmax) X(nll_loss) X(bmm) X(mm) X(addmm) X(embedding)                    \
  X(embedding_backward) X(native_dropout) X(masked_scale) X(scaled_dot_product_flash)                           \
  X(scaled_dot_product_efficient) X(flash_backward) X(efficient_backward) X(slice_backward) X(silu_backward)    \
  X(gelu_backward) X(tanh_backward) X(softmax_backward) X(log_softmax_backward) X(nll_loss_backward)            \
  X(cublas_workspace) X(quantize_4bit) X(dequantize_4bit) X(quantize_blockwise) X(dequantize_blockwise)         \
  X(clip_grad_norm) X(foreach_norm) X(foreach_sqrt) X(optimizer_state) X(parameter) X(buffer) X(input)          \
  X(all_gather) X(reduce_scatter) X(all_reduce) X(broadcast) X(flat_parameter) X(mixed_precision_shard)         \
  X(unsharded_parameter) X(ddp_bucket) X(linear_norm) X(eye) X(where) X(index_select) X(pad) X(ne) X(warmup)    \
  X(reciprocal) X(clamp) X(max) X(sort) X(abs) X(foreach_mul) X(topk) X(index) X(index_put) X(histc) X(cumsum)  \
  X(grouped_mm) X(baddbmm) X(recv) X(logical_or) X(ipg_bucket) X(grads_in_partition) X(lerp) X(ge) X(any) \
  X(all_to_all) X(masked_fill) X(nonzero) X(index_copy) X(sigmoid) X(sigmoid_backward) X(gather) \
  X(linalg_svd) X(diag)
// clang-format on

enum class Op : std::uint16_t {
#define QLP_OP(name) name,
  QLP_OPS(QLP_OP)
#undef QLP_OP
};

inline constexpr std::string_view kOpNames[] = {
#define QLP_OP(name) #name,
    QLP_OPS(QLP_OP)
#undef QLP_OP
};
#undef QLP_OPS

constexpr std::string_view name_of(Op op) { return kOpNames[static_cast<std::size_t>(op)]; }

}  // namespace qlp
