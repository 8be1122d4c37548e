#include <cmath>
#include <stdexcept>
#include <vector>

#include "tensor/cpu_kernels.h"
#include "tensor/cpu_rows.h"

namespace qlp {
namespace {

using namespace cpu;

using Row = std::vector<double>;

double row_max(const Row& row) { return *std::max_element(row.begin(), row.end()); }

double sum_of_exp(const Row& row, double max) {
  double sum = 0;
  for (const double v : row) sum += std::exp(v - max);
  return sum;
}

/// Calls f(rows of the arrays in doubles) along the last dimension, and stores what it leaves in the first.
template <std::size_t N, class F>
void along_last(const std::array<const Array*, N>& arrays, F&& f) {
  const std::int64_t width = arrays[0]->size(-1);
  std::array<Array, N> columns;  // the first element of every row
  std::array<const Array*, N> firsts;
  std::array<std::int64_t, N> step;
  for (std::size_t n = 0; n < N; ++n) {
    columns[n] = *arrays[n];
    columns[n].shape = arrays[n]->shape.with(-1, 1);
    firsts[n] = &columns[n];
    step[n] = arrays[n]->stride(-1) * static_cast<std::int64_t>(size_of(arrays[n]->dtype));
  }
  std::array<Row, N> rows;
  for (Row& row : rows) row.resize(static_cast<std::size_t>(width));
  const Rows<N> walk = rows_of(firsts);
  for_each_row(firsts, walk, [&](const auto& at) {
    for (std::int64_t i = 0; i < walk.length; ++i) {
      for (std::size_t n = 1; n < N; ++n)
        load_row(rows[n].data(), at[n] + i * walk.inner[n], arrays[n]->dtype, step[n], width);
      f(rows);
      store_row(at[0] + i * walk.inner[0], arrays[0]->dtype, step[0], rows[0].data(), width);
    }
  });
}

std::int64_t label_at(const Array& labels, std::int64_t i, std::int64_t vocabulary) {
  const auto label = load_as<std::int64_t>(labels.data + i * 8);
  if (label >= vocabulary) throw std::logic_error("a label outside of the vocabulary");
  return label;
}

std::byte* element(const Array& array, std::int64_t row, std::int64_t column) {
  return array.data +
         (row * array.stride(0) + column * array.stride(1)) * static_cast<std::int64_t>(size_of(array.dtype));
}

}  // namespace

void CpuKernels::softmax(StreamId, const Array& out, const Array& x, bool log) {
  along_last<2>({&out, &x}, [log](auto& rows) {
    const double max = row_max(rows[1]), sum = sum_of_exp(rows[1], max);
    for (std::size_t i = 0; i < rows[0].size(); ++i) {
      const double v = rows[1][i] - max;
      rows[0][i] = log ? v - std::log(sum) : std::exp(v) / sum;
    }
  });
}

void CpuKernels::softmax_backward(StreamId, const Array& out, const Array& grad, const Array& y, bool log) {
  along_last<3>({&out, &grad, &y}, [log](auto& rows) {
    const auto& [result, g, value] = rows;
    double sum = 0;
    for (std::size_t i = 0; i < g.size(); ++i) sum += log ? g[i] : g[i] * value[i];
    for (std::size_t i = 0; i < g.size(); ++i)
      rows[0][i] = log ? g[i] - std::exp(value[i]) * sum : value[i] * (g[i] - sum);
  });
}

void CpuKernels::nll_loss(StreamId, const Array& loss, const Array& total_weight, const Array& log_probabilities,
                          const Array& labels, bool mean) {
  for (const Array* array : {&loss, &total_weight, &log_probabilities, &labels}) require_memory(*array);
  double sum = 0, count = 0;
  for (std::int64_t i = 0; i < labels.numel(); ++i) {
    const std::int64_t label = label_at(labels, i, log_probabilities.size(1));
    if (label < 0) continue;
    sum -= load_number(element(log_probabilities, i, label), log_probabilities.dtype);
    count += 1;
  }
  store_number(loss.data, loss.dtype, mean ? sum / count : sum);
  store_number(total_weight.data, total_weight.dtype, count);
}

void CpuKernels::nll_loss_backward(StreamId stream, const Array& out, const Array& grad, const Array& labels,
                                   const Array& total_weight, bool mean) {
  for (const Array* array : {&out, &grad, &labels, &total_weight}) require_memory(*array);
  const double divisor = mean ? load_number(total_weight.data, total_weight.dtype) : 1;
  const double each = -load_number(grad.data, grad.dtype) / divisor;
  fill(stream, out, 0);
  for (std::int64_t i = 0; i < labels.numel(); ++i) {
    const std::int64_t label = label_at(labels, i, out.size(1));
    if (label >= 0) store_number(element(out, i, label), out.dtype, each);
  }
}

void CpuKernels::cross_entropy_in_place(StreamId, const Array& losses, const Array& logits, const Array& labels) {
  for (const Array* array : {&losses, &logits, &labels}) require_memory(*array);
  const std::int64_t vocabulary = logits.size(1),
                     step = logits.stride(1) * static_cast<std::int64_t>(size_of(logits.dtype));
  Row row(static_cast<std::size_t>(vocabulary));
  for (std::int64_t i = 0; i < labels.numel(); ++i) {
    const std::int64_t label = label_at(labels, i, vocabulary);
    load_row(row.data(), element(logits, i, 0), logits.dtype, step, vocabulary);
    const double max = row_max(row), sum = sum_of_exp(row, max);
    const double loss = label < 0 ? 0 : max + std::log(sum) - row[static_cast<std::size_t>(label)];
    for (double& v : row) v = label < 0 ? 0 : std::exp(v - max) / sum;
    if (label >= 0) row[static_cast<std::size_t>(label)] -= 1;
    store_row(element(logits, i, 0), logits.dtype, step, row.data(), vocabulary);
    store_number(losses.data + i * losses.stride(0) * static_cast<std::int64_t>(size_of(losses.dtype)), losses.dtype,
                 loss);
  }
}

}  // namespace qlp
