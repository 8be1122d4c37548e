#include "cuda/kernels.h"

#include <stdexcept>
#include <vector>

#include <cuda_runtime_api.h>

#include "adamw.h"
#include "attention.h"
#include "cross_entropy.h"
#include "cuda/cuda_error.h"
#include "cuda/view.h"
#include "elementwise.h"
#include "fill.h"
#include "gated.h"
#include "gemm.h"
#include "gemm_4bit.h"
#include "grouped_gemm.h"
#include "quantize_4bit.h"
#include "quantize_8bit.h"
#include "reduce.h"
#include "rms_norm.h"
#include "rotary.h"
#include "routing.h"
#include "rows.h"
#include "softmax.h"

namespace qlp {
namespace {

// The operations of tensor/kernels.h under the same numbers as those of kernels/.
template <class To, class From>
constexpr bool same(From from, To to) {
  return static_cast<int>(from) == static_cast<int>(to);
}
static_assert(same(Unary::is_inf, kernels::Unary::is_inf) && same(Unary::select, kernels::Unary::select) &&
              same(Binary::pass_within, kernels::Binary::pass_within) && same(Binary::equal, kernels::Binary::equal) &&
              same(Reduce::max_abs, kernels::Reduce::max_abs));

float* floats(const Array& array) { return reinterpret_cast<float*>(array.data); }
std::uint8_t* codes_of(const Array& array) { return reinterpret_cast<std::uint8_t*>(array.data); }
const std::int64_t* numbers_of(const Array& array) { return reinterpret_cast<const std::int64_t*>(array.data); }

std::int64_t* integers(const Array& array) { return reinterpret_cast<std::int64_t*>(array.data); }
std::int32_t* ends_of(const Array& array) { return reinterpret_cast<std::int32_t*>(array.data); }

kernels::AdamWNumbers of(const AdamWNumbers& n) { return {n.lr, n.beta1, n.beta2, n.eps, n.weight_decay, n.step}; }

kernels::Attention attention_of(const Array& out, const Array& lse, const Array& q, const Array& k, const Array& v,
                                const Array& mask, const AttentionOptions& options) {
  kernels::Attention of{
      view_of(q),     view_of(k),    view_of(v), view_of(out), {}, {}, static_cast<float>(options.scale),
      options.causal, options.window};
  if (lse.numel() != 0) of.lse = view_of(lse);
  if (mask.given()) of.mask = view_of(mask, {q.size(0), q.size(1), q.size(2), k.size(2)});
  return of;
}

}  // namespace

CudaKernels::CudaKernels(CudaStreams& streams, MatrixProducts* products, Kernels& host)
    : streams_(streams), products_(products), host_(host) {
  void* data = nullptr;
  check(cudaMalloc(&data, kMaxStreams * kernels::kReduceScratch * sizeof(float)), "taking memory for reductions");
  scratch_ = static_cast<float*>(data);
}

CudaKernels::~CudaKernels() { cudaFree(scratch_); }

void CudaKernels::fill(StreamId stream, const Array& out, double value) {
  check(kernels::fill(view_of(out), value, streams_[stream]), "fill");
}

void CudaKernels::arange(StreamId stream, const Array& out, double start) {
  check(kernels::arange(view_of(out), start, streams_[stream]), "arange");
}

void CudaKernels::causal_band(StreamId stream, const Array& out, std::int64_t window, double inside, double outside) {
  check(kernels::causal_band(view_of(out), window, inside, outside, streams_[stream]), "causal_band");
}

void CudaKernels::random_uniform(StreamId stream, const Array& out, std::uint64_t key, std::uint64_t first, double low,
                                 double high) {
  check(kernels::random_uniform(view_of(out), key, first, low, high, streams_[stream]), "random_uniform");
}

void CudaKernels::bernoulli(StreamId stream, const Array& out, std::uint64_t key, std::uint64_t first,
                            double probability) {
  check(kernels::bernoulli(view_of(out), key, first, probability, streams_[stream]), "bernoulli");
}

void CudaKernels::upload(StreamId stream, void* to, const void* from, std::uint64_t bytes) {
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, streams_[stream]), "a copy to the device");
  streams_.finish(stream);  // the source may go
}

void CudaKernels::download(StreamId stream, void* to, const void* from, std::uint64_t bytes) {
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, streams_[stream]), "a copy to the host");
  streams_.finish(stream);
}

void CudaKernels::poison(StreamId stream, void* data, std::uint64_t bytes) {
  check(cudaMemsetAsync(data, 0xff, bytes, streams_[stream]), "filling memory");
}

void CudaKernels::unary(StreamId stream, Unary op, const Array& out, const Array& x, double p, double q) {
  if (op == Unary::copy && (!on_device(out) || !on_device(x))) return copy_across(stream, out, x);
  check(kernels::unary(static_cast<kernels::Unary>(op), view_of(out), view_of(x, out.shape), p, q, streams_[stream]),
        "an operation on each element");
}

void CudaKernels::binary(StreamId stream, Binary op, const Array& out, const Array& x, const Array& y, double p) {
  check(kernels::binary(static_cast<kernels::Binary>(op), view_of(out), view_of(x, out.shape), view_of(y, out.shape), p,
                        streams_[stream]),
        "an operation on pairs of elements");
}

void CudaKernels::reduce(StreamId stream, Reduce op, const Array& out, const Array& x, double factor) {
  float* const scratch = scratch_ + stream * kernels::kReduceScratch;
  check(kernels::reduce(static_cast<kernels::Reduce>(op), view_of(out), view_of(x), factor, scratch, streams_[stream]),
        "a reduction");
}

void CudaKernels::flag_non_finite(StreamId stream, const Array& flag, const Array& x) {
  check(kernels::flag_non_finite(floats(flag), view_of(x), streams_[stream]), "flag_non_finite");
}

void CudaKernels::gemm(StreamId stream, const Array& out, const Array& a, const Array& b, double alpha, double beta) {
  if (products_ && products_->gemm(stream, out, a, b, alpha, beta)) return;
  check(kernels::gemm(batched(out), batched(a), batched(b), alpha, beta, streams_[stream]), "a matrix product");
}

void CudaKernels::gather_rows(StreamId stream, const Array& out, const Array& table, const Array& index) {
  check(kernels::gather_rows(view_of(out), view_of(table), numbers_of(index), streams_[stream]), "gather_rows");
}

void CudaKernels::scatter_add_rows(StreamId stream, const Array& out, const Array& rows, const Array& index) {
  check(kernels::scatter_add_rows(view_of(out), view_of(rows), numbers_of(index), streams_[stream]),
        "scatter_add_rows");
}

void CudaKernels::softmax(StreamId stream, const Array& out, const Array& x, bool log) {
  check(kernels::softmax(view_of(out), view_of(x), log, streams_[stream]), "softmax");
}

void CudaKernels::softmax_backward(StreamId stream, const Array& out, const Array& grad, const Array& y, bool log) {
  check(kernels::softmax_backward(view_of(out), view_of(grad, out.shape), view_of(y), log, streams_[stream]),
        "softmax_backward");
}

void CudaKernels::nll_loss(StreamId stream, const Array& loss, const Array& total_weight,
                           const Array& log_probabilities, const Array& labels, bool mean) {
  check(kernels::nll_loss(view_of(loss), view_of(total_weight), view_of(log_probabilities), view_of(labels), mean,
                          streams_[stream]),
        "nll_loss");
}

void CudaKernels::nll_loss_backward(StreamId stream, const Array& out, const Array& grad, const Array& labels,
                                    const Array& total_weight, bool mean) {
  check(kernels::nll_loss_backward(view_of(out), view_of(grad), view_of(labels), view_of(total_weight), mean,
                                   streams_[stream]),
        "nll_loss_backward");
}

void CudaKernels::cross_entropy_in_place(StreamId stream, const Array& losses, const Array& logits,
                                         const Array& labels) {
  check(kernels::cross_entropy_in_place(view_of(losses), view_of(logits), view_of(labels), streams_[stream]),
        "cross_entropy_in_place");
}

void CudaKernels::rms_norm(StreamId stream, const Array& out, const Array& rstd, const Array& x, const Array& gain,
                           double eps, double offset) {
  check(kernels::rms_norm(view_of(out), floats(rstd), view_of(x), view_of(gain), eps, offset, streams_[stream]),
        "rms_norm");
}

void CudaKernels::rms_norm_backward(StreamId stream, const Array& dx, const Array& dgain, const Array& grad,
                                    const Array& x, const Array& gain, const Array& rstd, double offset) {
  const kernels::View sums = dgain.given() ? view_of(dgain) : kernels::View{};
  check(kernels::rms_norm_backward(view_of(dx), sums, view_of(grad), view_of(x), view_of(gain), floats(rstd), offset,
                                   streams_[stream]),
        "rms_norm_backward");
}

void CudaKernels::gated_product(StreamId stream, const Array& out, const Array& gate, const Array& up, bool gelu) {
  check(kernels::gated_product(view_of(out), view_of(gate, out.shape), view_of(up, out.shape), gelu, streams_[stream]),
        "gated_product");
}

void CudaKernels::gated_product_backward(StreamId stream, const Array& gate, const Array& up, const Array& grad,
                                         bool gelu) {
  check(kernels::gated_product_backward(view_of(gate), view_of(up, gate.shape), view_of(grad, gate.shape), gelu,
                                        streams_[stream]),
        "gated_product_backward");
}

void CudaKernels::rotate_in_place(StreamId stream, const Array& x, const Array& cos, const Array& sin, bool inverse) {
  check(kernels::rotate_in_place(view_of(x), view_of(cos, x.shape), view_of(sin, x.shape), inverse, streams_[stream]),
        "rotate_in_place");
}

void CudaKernels::attention(StreamId stream, const Array& out, const Array& lse, const Array& q, const Array& k,
                            const Array& v, const Array& mask, const AttentionOptions& options) {
  check(kernels::attention(attention_of(out, lse, q, k, v, mask, options), streams_[stream]), "attention");
}

void CudaKernels::attention_backward(StreamId stream, const Array& dq, const Array& dk, const Array& dv,
                                     const Array& grad, const Array& out, const Array& lse, const Array& q,
                                     const Array& k, const Array& v, const Array& mask,
                                     const AttentionOptions& options) {
  check(kernels::attention_backward(attention_of(out, lse, q, k, v, mask, options),
                                    {view_of(grad), view_of(dq), view_of(dk), view_of(dv)}, streams_[stream]),
        "attention_backward");
}

void CudaKernels::quantize_4bit(StreamId stream, const Array& packed, const Blockwise& statistics, const Array& x,
                                bool nf4) {
  check(kernels::quantize_4bit(codes_of(packed), floats(statistics.absmax), dense_view_of(x), statistics.blocksize, nf4,
                               streams_[stream]),
        "quantize_4bit");
}

void CudaKernels::dequantize_4bit(StreamId stream, const Array& out, const Array& packed, const Blockwise& statistics) {
  check(kernels::dequantize_4bit(dense_view_of(out), codes_of(packed), floats(statistics.absmax),
                                 floats(statistics.code), statistics.blocksize, streams_[stream]),
        "dequantize_4bit");
}

void CudaKernels::gemm_4bit(StreamId stream, const Array& out, const Array& x, const FourBitArrays& weight) {
  kernels::FourBitWeight packed;
  packed.packed = codes_of(weight.packed), packed.code = floats(weight.code);
  packed.rows = weight.shape[0], packed.columns = weight.shape[1];
  if (weight.absmax.dtype == DType::uint8) {
    packed.absmax_codes = codes_of(weight.absmax), packed.offset = floats(weight.offset);
    packed.nested_absmax = floats(weight.nested_absmax), packed.nested_code = floats(weight.nested_code);
  } else {
    packed.absmax = floats(weight.absmax);
  }
  check(kernels::gemm_4bit(view_of(out), view_of(x), packed, streams_[stream]), "gemm_4bit");
}

void CudaKernels::quantize_8bit(StreamId stream, const Array& out, const Blockwise& statistics, const Array& x) {
  check(kernels::quantize_8bit(codes_of(out), floats(statistics.absmax), floats(statistics.code), dense_view_of(x),
                               statistics.blocksize, streams_[stream]),
        "quantize_8bit");
}

void CudaKernels::dequantize_8bit(StreamId stream, const Array& out, const Array& codes, const Blockwise& statistics) {
  check(kernels::dequantize_8bit(dense_view_of(out), codes_of(codes), floats(statistics.absmax),
                                 floats(statistics.code), statistics.blocksize, streams_[stream]),
        "dequantize_8bit");
}

void CudaKernels::topk(StreamId stream, const Array& values, const Array& indices, const Array& x) {
  check(kernels::topk(view_of(values), view_of(indices), view_of(x), streams_[stream]), "topk");
}

void CudaKernels::gather_last(StreamId stream, const Array& out, const Array& x, const Array& indices) {
  check(kernels::gather_last(view_of(out), view_of(x), view_of(indices), streams_[stream]), "gather_last");
}

void CudaKernels::scatter_last(StreamId stream, const Array& out, const Array& values, const Array& indices) {
  check(kernels::scatter_last(view_of(out), view_of(values), view_of(indices), streams_[stream]), "scatter_last");
}

void CudaKernels::gather_elements(StreamId stream, const Array& out, const Array& x, const Array& rows,
                                  const Array& columns) {
  check(kernels::gather_elements(view_of(out), view_of(x), numbers_of(rows), numbers_of(columns), streams_[stream]),
        "gather_elements");
}

void CudaKernels::put_elements(StreamId stream, const Array& out, const Array& values, const Array& rows,
                               const Array& columns) {
  check(kernels::put_elements(view_of(out), view_of(values), numbers_of(rows), numbers_of(columns), streams_[stream]),
        "put_elements");
}

void CudaKernels::sort(StreamId stream, const Array& values, const Array& order, const Array& x) {
  check(kernels::sort(integers(values), integers(order), integers(x), x.numel(), streams_[stream]), "sort");
}

void CudaKernels::divide(StreamId stream, const Array& out, const Array& x, std::int64_t divisor) {
  check(kernels::divide(integers(out), integers(x), divisor, x.numel(), streams_[stream]), "divide");
}

void CudaKernels::count_groups(StreamId stream, const Array& counts, const Array& ends, const Array& keys) {
  check(kernels::count_groups(ends_of(counts), ends_of(ends), ends_of(keys), keys.numel(), counts.numel(),
                              streams_[stream]),
        "count_groups");
}

void CudaKernels::grouped_gemm(StreamId stream, const Array& out, const Array& a, const Array& b, const Array& ends) {
  check(kernels::grouped_gemm(view_of(out), view_of(a), view_of(b), ends_of(ends), streams_[stream]),
        "a product of groups");
}

void CudaKernels::grouped_outer(StreamId stream, const Array& out, const Array& a, const Array& b, const Array& ends) {
  check(kernels::grouped_outer(view_of(out), view_of(a), view_of(b), ends_of(ends), streams_[stream]),
        "a product of groups");
}

void CudaKernels::quantize_rows_8bit(StreamId stream, const Array& out, const Array& scales, const Array& x) {
  check(kernels::quantize_rows_8bit(reinterpret_cast<std::int8_t*>(out.data), floats(scales), view_of(x),
                                    streams_[stream]),
        "quantize_rows_8bit");
}

void CudaKernels::adamw(StreamId stream, const Array& parameter, const Array& grad, const Array& exp_avg,
                        const Array& exp_avg_sq, const AdamWNumbers& numbers) {
  check(kernels::adamw(view_of(parameter), view_of(grad), view_of(exp_avg), view_of(exp_avg_sq), of(numbers),
                       streams_[stream]),
        "adamw");
}

void CudaKernels::adamw_8bit(StreamId stream, const Array& parameter, const Array& grad, const Array& exp_avg,
                             const Blockwise& first, const Array& exp_avg_sq, const Blockwise& second,
                             const AdamWNumbers& numbers) {
  check(kernels::adamw_8bit(view_of(parameter), view_of(grad),
                            {codes_of(exp_avg), floats(first.absmax), floats(first.code)},
                            {codes_of(exp_avg_sq), floats(second.absmax), floats(second.code)}, first.blocksize,
                            of(numbers), streams_[stream]),
        "adamw_8bit");
}

bool CudaKernels::on_device(const Array& array) {
  cudaPointerAttributes attributes{};
  check(cudaPointerGetAttributes(&attributes, array.data), "asking where memory is");
  return attributes.type == cudaMemoryTypeDevice || attributes.type == cudaMemoryTypeManaged;
}

/// Between the host and the device: bytes as they are where both lie densely, with the cast on the host.
void CudaKernels::copy_across(StreamId stream, const Array& out, const Array& in) {
  const bool up = on_device(out);
  const Array &device = up ? out : in, &host = up ? in : out;
  const auto bytes = bytes_of(device.shape, device.dtype).count();
  if (bytes == 0) return;
  if (!is_contiguous(device.shape, device.strides))
    throw std::logic_error("a copy between host and device of an array that has gaps");
  std::vector<std::byte> cast;
  std::byte* data = host.data;
  const bool as_it_is =
      host.dtype == device.dtype && host.shape == device.shape && is_contiguous(host.shape, host.strides);
  if (!as_it_is) cast.resize(bytes), data = cast.data();
  const Array between{data, device.dtype, device.shape, contiguous_strides(device.shape)};
  if (!as_it_is && up) host_.unary(stream, Unary::copy, between, host, 0, 0);
  if (up)
    upload(stream, device.data, data, bytes);
  else
    download(stream, data, device.data, bytes);
  if (!as_it_is && !up) host_.unary(stream, Unary::copy, host, between, 0, 0);
}

}  // namespace qlp
