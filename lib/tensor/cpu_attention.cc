#include <cmath>
#include <vector>

#include "tensor/cpu_kernels.h"
#include "tensor/cpu_rows.h"

namespace qlp {
namespace {

using namespace cpu;

using Numbers = std::vector<double>;

std::size_t at(std::int64_t row, std::int64_t column, std::int64_t width) {
  return static_cast<std::size_t>(row * width + column);
}

/// The rows of one head [S, D] of an array [B, H, S, D].
std::byte* head_row(const Array& array, std::int64_t b, std::int64_t h, std::int64_t row) {
  return array.data + (b * array.stride(0) + h * array.stride(1) + row * array.stride(2)) *
                          static_cast<std::int64_t>(size_of(array.dtype));
}
void load_head(Numbers& out, const Array& array, std::int64_t b, std::int64_t h) {
  const std::int64_t rows = array.size(2), width = array.size(3);
  const std::int64_t step = array.stride(3) * static_cast<std::int64_t>(size_of(array.dtype));
  out.resize(static_cast<std::size_t>(rows * width));
  for (std::int64_t i = 0; i < rows; ++i)
    load_row(out.data() + i * width, head_row(array, b, h, i), array.dtype, step, width);
}
void store_head(const Array& array, std::int64_t b, std::int64_t h, const Numbers& from) {
  const std::int64_t rows = array.size(2), width = array.size(3);
  const std::int64_t step = array.stride(3) * static_cast<std::int64_t>(size_of(array.dtype));
  for (std::int64_t i = 0; i < rows; ++i)
    store_row(head_row(array, b, h, i), array.dtype, step, from.data() + i * width, width);
}

/// What a query may look at, and how much is added to its scores.
class Visible {
 public:
  Visible(const Array& mask, const AttentionOptions& options, std::int64_t b, std::int64_t rows, std::int64_t columns)
      : mask_(mask), options_(options), batch_(mask.given() && mask.size(0) > 1 ? b : 0), ahead_(columns - rows) {}

  /// -inf: not seen.
  double bias(std::int64_t row, std::int64_t column) const {
    if (options_.causal && column > row + ahead_) return -INFINITY;
    if (options_.window && row + ahead_ - column >= options_.window) return -INFINITY;
    if (!mask_.given()) return 0;
    const std::int64_t offset = batch_ * mask_.stride(0) + row * mask_.stride(2) + column * mask_.stride(3);
    const double value =
        load_number(mask_.data + offset * static_cast<std::int64_t>(size_of(mask_.dtype)), mask_.dtype);
    if (mask_.dtype == DType::boolean) return value != 0 ? 0 : -INFINITY;
    return value;
  }

 private:
  const Array& mask_;
  const AttentionOptions& options_;
  std::int64_t batch_;
  std::int64_t ahead_;  ///< keys from before the first query
};

double dot(const double* a, const double* b, std::int64_t n) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}
void add_scaled(double* sum, const double* x, double factor, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) sum[i] += factor * x[i];
}

}  // namespace

void CpuKernels::attention(StreamId, const Array& out, const Array& lse, const Array& q, const Array& k, const Array& v,
                           const Array& mask, const AttentionOptions& options) {
  for (const Array* array : {&out, &lse, &q, &k, &v}) require_memory(*array);
  const std::int64_t heads = q.size(1), group = heads / k.size(1), rows = q.size(2), columns = k.size(2);
  const std::int64_t width = q.size(3);
  Numbers queries, keys, values, result(static_cast<std::size_t>(rows * width)),
      scores(static_cast<std::size_t>(columns));
  for (std::int64_t b = 0; b < q.size(0); ++b) {
    const Visible visible(mask, options, b, rows, columns);
    for (std::int64_t h = 0; h < heads; ++h) {
      load_head(queries, q, b, h), load_head(keys, k, b, h / group), load_head(values, v, b, h / group);
      std::fill(result.begin(), result.end(), 0.0);
      for (std::int64_t i = 0; i < rows; ++i) {
        double max = -INFINITY, sum = 0;
        for (std::int64_t j = 0; j < columns; ++j) {
          double score = visible.bias(i, j);
          if (score != -INFINITY)
            score += options.scale * dot(&queries[at(i, 0, width)], &keys[at(j, 0, width)], width);
          scores[static_cast<std::size_t>(j)] = score;
          max = std::max(max, score);
        }
        for (std::int64_t j = 0; j < columns && max != -INFINITY; ++j) {
          const double weight = std::exp(scores[static_cast<std::size_t>(j)] - max);
          sum += weight;
          if (weight != 0) add_scaled(&result[at(i, 0, width)], &values[at(j, 0, width)], weight, width);
        }
        for (std::int64_t d = 0; d < width && sum > 0; ++d) result[at(i, d, width)] /= sum;
        if (lse.numel() == 0) continue;
        store_as(lse.data + (b * lse.stride(0) + h * lse.stride(1) + i * lse.stride(2)) * 4,
                 static_cast<float>(max + std::log(sum)));
      }
      store_head(out, b, h, result);
    }
  }
}

void CpuKernels::attention_backward(StreamId, const Array& dq, const Array& dk, const Array& dv, const Array& grad,
                                    const Array& out, const Array& lse, const Array& q, const Array& k, const Array& v,
                                    const Array& mask, const AttentionOptions& options) {
  for (const Array* array : {&dq, &dk, &dv, &grad, &out, &lse, &q, &k, &v}) require_memory(*array);
  const std::int64_t kv_heads = k.size(1), group = q.size(1) / kv_heads, rows = q.size(2), columns = k.size(2);
  const std::int64_t width = q.size(3);
  Numbers queries, keys, values, results, grads, d_queries, d_keys, d_values;
  for (std::int64_t b = 0; b < q.size(0); ++b) {
    const Visible visible(mask, options, b, rows, columns);
    for (std::int64_t kv = 0; kv < kv_heads; ++kv) {
      load_head(keys, k, b, kv), load_head(values, v, b, kv);
      d_keys.assign(keys.size(), 0), d_values.assign(values.size(), 0);
      for (std::int64_t h = kv * group; h < (kv + 1) * group; ++h) {
        load_head(queries, q, b, h), load_head(results, out, b, h), load_head(grads, grad, b, h);
        d_queries.assign(queries.size(), 0);
        for (std::int64_t i = 0; i < rows; ++i) {
          const std::size_t row = at(i, 0, width);
          const double log_sum =
              load_as<float>(lse.data + (b * lse.stride(0) + h * lse.stride(1) + i * lse.stride(2)) * 4);
          const double delta = dot(&grads[row], &results[row], width);
          for (std::int64_t j = 0; j < columns; ++j) {
            const double bias = visible.bias(i, j);
            if (bias == -INFINITY || log_sum == -INFINITY) continue;
            const std::size_t column = at(j, 0, width);
            const double score = bias + options.scale * dot(&queries[row], &keys[column], width);
            const double weight = std::exp(score - log_sum);
            const double d_score = weight * (dot(&grads[row], &values[column], width) - delta) * options.scale;
            add_scaled(&d_values[column], &grads[row], weight, width);
            add_scaled(&d_queries[row], &keys[column], d_score, width);
            add_scaled(&d_keys[column], &queries[row], d_score, width);
          }
        }
        store_head(dq, b, h, d_queries);
      }
      store_head(dk, b, kv, d_keys), store_head(dv, b, kv, d_values);
    }
  }
}

}  // namespace qlp
