// Every primitive on a GPU: arrays become views, which the launchers of kernels/ are given.
#pragma once

#include "cuda/matrix_products.h"
#include "cuda/streams.h"
#include "tensor/kernels.h"
#include "tensor/optimizer_kernels.h"
#include "tensor/routing_kernels.h"

namespace qlp {

/// All functions throw CudaError; they return before the work is done.
class CudaKernels final : public Kernels, public RoutingKernels, public OptimizerKernels {
 public:
  /// `products`: null, and the kernel of our own makes all of them. Both outlive this. `host`: for what is cast on its
  /// way to or from the host.
  CudaKernels(CudaStreams& streams, MatrixProducts* products, Kernels& host);
  ~CudaKernels() override;

  void fill(StreamId stream, const Array& out, double value) override;
  void arange(StreamId stream, const Array& out, double start) override;
  void causal_band(StreamId stream, const Array& out, std::int64_t window, double inside, double outside) override;
  void random_uniform(StreamId stream, const Array& out, std::uint64_t key, std::uint64_t first, double low,
                      double high) override;
  void bernoulli(StreamId stream, const Array& out, std::uint64_t key, std::uint64_t first,
                 double probability) override;
  void upload(StreamId stream, void* to, const void* from, std::uint64_t bytes) override;
  void download(StreamId stream, void* to, const void* from, std::uint64_t bytes) override;
  void poison(StreamId stream, void* data, std::uint64_t bytes) override;
  void unary(StreamId stream, Unary op, const Array& out, const Array& x, double p, double q) override;
  void binary(StreamId stream, Binary op, const Array& out, const Array& x, const Array& y, double p) override;
  void gated_product(StreamId stream, const Array& out, const Array& gate, const Array& up, bool gelu) override;
  void gated_product_backward(StreamId stream, const Array& gate, const Array& up, const Array& grad,
                              bool gelu) override;
  void reduce(StreamId stream, Reduce op, const Array& out, const Array& x, double factor) override;
  void flag_non_finite(StreamId stream, const Array& flag, const Array& x) override;
  void gemm(StreamId stream, const Array& out, const Array& a, const Array& b, double alpha, double beta) override;
  void gather_rows(StreamId stream, const Array& out, const Array& table, const Array& index) override;
  void scatter_add_rows(StreamId stream, const Array& out, const Array& rows, const Array& index) override;
  void softmax(StreamId stream, const Array& out, const Array& x, bool log) override;
  void softmax_backward(StreamId stream, const Array& out, const Array& grad, const Array& y, bool log) override;
  void nll_loss(StreamId stream, const Array& loss, const Array& total_weight, const Array& log_probabilities,
                const Array& labels, bool mean) override;
  void nll_loss_backward(StreamId stream, const Array& out, const Array& grad, const Array& labels,
                         const Array& total_weight, bool mean) override;
  void cross_entropy_in_place(StreamId stream, const Array& losses, const Array& logits, const Array& labels) override;
  void rms_norm(StreamId stream, const Array& out, const Array& rstd, const Array& x, const Array& gain, double eps,
                double offset) override;
  void rms_norm_backward(StreamId stream, const Array& dx, const Array& dgain, const Array& grad, const Array& x,
                         const Array& gain, const Array& rstd, double offset) override;
  void rotate_in_place(StreamId stream, const Array& x, const Array& cos, const Array& sin, bool inverse) override;
  void attention(StreamId stream, const Array& out, const Array& lse, const Array& q, const Array& k, const Array& v,
                 const Array& mask, const AttentionOptions& options) override;
  void attention_backward(StreamId stream, const Array& dq, const Array& dk, const Array& dv, const Array& grad,
                          const Array& out, const Array& lse, const Array& q, const Array& k, const Array& v,
                          const Array& mask, const AttentionOptions& options) override;
  void quantize_4bit(StreamId stream, const Array& packed, const Blockwise& statistics, const Array& x,
                     bool nf4) override;
  void dequantize_4bit(StreamId stream, const Array& out, const Array& packed, const Blockwise& statistics) override;
  void gemm_4bit(StreamId stream, const Array& out, const Array& x, const FourBitArrays& weight) override;
  void quantize_8bit(StreamId stream, const Array& out, const Blockwise& statistics, const Array& x) override;
  void dequantize_8bit(StreamId stream, const Array& out, const Array& codes, const Blockwise& statistics) override;
  void adamw(StreamId stream, const Array& parameter, const Array& grad, const Array& exp_avg, const Array& exp_avg_sq,
             const AdamWNumbers& numbers) override;
  void adamw_8bit(StreamId stream, const Array& parameter, const Array& grad, const Array& exp_avg,
                  const Blockwise& first, const Array& exp_avg_sq, const Blockwise& second,
                  const AdamWNumbers& numbers) override;

  void topk(StreamId stream, const Array& values, const Array& indices, const Array& x) override;
  void gather_last(StreamId stream, const Array& out, const Array& x, const Array& indices) override;
  void scatter_last(StreamId stream, const Array& out, const Array& values, const Array& indices) override;
  void gather_elements(StreamId stream, const Array& out, const Array& x, const Array& rows,
                       const Array& columns) override;
  void put_elements(StreamId stream, const Array& out, const Array& values, const Array& rows,
                    const Array& columns) override;
  void sort(StreamId stream, const Array& values, const Array& order, const Array& x) override;
  void divide(StreamId stream, const Array& out, const Array& x, std::int64_t divisor) override;
  void count_groups(StreamId stream, const Array& counts, const Array& ends, const Array& keys) override;
  void grouped_gemm(StreamId stream, const Array& out, const Array& a, const Array& b, const Array& ends) override;
  void grouped_outer(StreamId stream, const Array& out, const Array& a, const Array& b, const Array& ends) override;
  void quantize_rows_8bit(StreamId stream, const Array& out, const Array& scales, const Array& x) override;

  void update(StreamId stream, UpdateRule rule, const Array& parameter, const Array& grad,
              const std::vector<Average>& averages, const UpdateNumbers& numbers) override;
  void stable_adamw(StreamId stream, const Array& parameter, const Array& grad, const Array& exp_avg,
                    const Array& exp_avg_sq, const Array& compensation, const AdamWNumbers& numbers) override;
  std::shared_ptr<std::byte> managed_memory(std::uint64_t bytes) override;

 private:
  static bool on_device(const Array& array);
  void copy_across(StreamId stream, const Array& out, const Array& in);

  CudaStreams& streams_;
  MatrixProducts* products_;
  Kernels& host_;
  float* scratch_ = nullptr;  ///< of reductions, for each stream
};

}  // namespace qlp
