#include "cuda/cublas_products.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <optional>

namespace qlp {
namespace {

void check(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_ALLOC_FAILED)
    throw DeviceFull(std::string(what) + ": " + cublasLtGetStatusString(status));
  if (status != CUBLAS_STATUS_SUCCESS) throw CublasError(status, what);
}

/// A handle of cuBLASLt with the function that ends it.
template <class Handle, auto kDestroy>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, decltype([](Handle handle) { kDestroy(handle); })>;
using Layout = Owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using Operation = Owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using Preference = Owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

std::optional<cudaDataType_t> type_of(DType dtype) {
  switch (dtype) {
    case DType::float32:
      return CUDA_R_32F;
    case DType::float16:
      return CUDA_R_16F;
    case DType::bfloat16:
      return CUDA_R_16BF;
    default:
      return std::nullopt;
  }
}

/// A matrix of ours, whose rows follow each other, is to cuBLAS a matrix whose columns do: its transpose.
struct Matrix {
  cudaDataType_t type;
  std::int64_t rows, columns;  ///< to cuBLAS, as it lies
  std::int64_t leading;        ///< from one column to the next
  std::int64_t batches, batch_stride;
  bool turned;  ///< to be transposed once more
};

std::optional<Matrix> matrix_of(const Array& array) {
  const auto type = type_of(array.dtype);
  if (!type) return std::nullopt;
  const std::int64_t down = array.size(-2), across = array.size(-1);
  const bool batched = array.shape.rank() == 3 && array.size(0) > 1;
  Matrix out{*type, across, down, std::max<std::int64_t>(array.stride(-2), across), 1, 0, false};
  if (batched) out.batches = array.size(0), out.batch_stride = array.stride(0);
  const auto fits = [](std::int64_t unit, std::int64_t units, std::int64_t step, std::int64_t steps) {
    return (unit == 1 || units == 1) && (step >= units || steps == 1);
  };
  if (fits(array.stride(-1), across, array.stride(-2), down)) return out;
  if (!fits(array.stride(-2), down, array.stride(-1), across)) return std::nullopt;
  out.rows = down, out.columns = across, out.leading = std::max<std::int64_t>(array.stride(-1), down),
  out.turned = true;
  return out;
}

Layout layout_of(const Matrix& m) {
  cublasLtMatrixLayout_t made = nullptr;
  check(cublasLtMatrixLayoutCreate(&made, m.type, static_cast<std::uint64_t>(m.rows),
                                   static_cast<std::uint64_t>(m.columns), m.leading),
        "a matrix layout");
  Layout layout(made);
  const auto batches = static_cast<std::int32_t>(m.batches);
  check(cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batches, sizeof batches),
        "the size of a batch");
  check(cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &m.batch_stride,
                                         sizeof m.batch_stride),
        "the stride of a batch");
  return layout;
}

Operation operation_of(const Matrix& first, const Matrix& second) {
  cublasLtMatmulDesc_t made = nullptr;
  check(cublasLtMatmulDescCreate(&made, CUBLAS_COMPUTE_32F, CUDA_R_32F), "a matrix product");
  Operation operation(made);
  const cublasOperation_t a = first.turned ? CUBLAS_OP_T : CUBLAS_OP_N, b = second.turned ? CUBLAS_OP_T : CUBLAS_OP_N;
  check(cublasLtMatmulDescSetAttribute(made, CUBLASLT_MATMUL_DESC_TRANSA, &a, sizeof a), "a transposition");
  check(cublasLtMatmulDescSetAttribute(made, CUBLASLT_MATMUL_DESC_TRANSB, &b, sizeof b), "a transposition");
  return operation;
}

/// Bytes to which an address is aligned, as far as cuBLAS cares.
std::uint32_t alignment_of(const void* data) {
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  return std::uint32_t{1} << std::min(8, std::countr_zero(address | 256U));
}

}  // namespace

CublasProducts::CublasProducts(CudaStreams& streams) : streams_(streams) {
  check(cublasLtCreate(&handle_), "making a handle of cuBLASLt");
}

CublasProducts::~CublasProducts() { cublasLtDestroy(handle_); }

bool CublasProducts::gemm(StreamId stream, const Array& out, const Array& a, const Array& b, double alpha,
                          double beta) {
  if (out.numel() == 0 || a.numel() == 0) return false;
  const bool types = a.dtype == b.dtype && (out.dtype == a.dtype || out.dtype == DType::float32);
  const auto first = matrix_of(b), second = matrix_of(a), result = matrix_of(out);  // out^T = b^T a^T
  if (!types || !first || !second || !result || result->turned) return false;
  Matrix left = *first, right = *second;
  left.batches = right.batches = result->batches;  // one operand for all has a stride of 0

  const Operation operation = operation_of(left, right);
  const Layout left_layout = layout_of(left), right_layout = layout_of(right), result_layout = layout_of(*result);
  const Workspace& workspace = workspaces_.at(stream);
  const std::uint32_t aligned[] = {alignment_of(b.data), alignment_of(a.data), alignment_of(out.data)};
  const Key key{result->rows,         result->columns,   a.size(-1),
                result->type,         left.type,         left.turned,
                right.turned,         left.leading,      right.leading,
                result->leading,      left.batch_stride, right.batch_stride,
                result->batch_stride, result->batches,   aligned[0],
                aligned[1],           aligned[2],        static_cast<std::int64_t>(workspace.bytes)};
  auto known = algorithms_.find(key);
  if (known == algorithms_.end()) {
    cublasLtMatmulPreference_t made = nullptr;
    check(cublasLtMatmulPreferenceCreate(&made), "a preference");
    const Preference preference(made);
    const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
      check(cublasLtMatmulPreferenceSetAttribute(made, attribute, &value, sizeof value), "a preference");
    };
    set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace.bytes);
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, aligned[0]);
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, aligned[1]);
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, aligned[2]);
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, aligned[2]);
    cublasLtMatmulHeuristicResult_t found{};
    int count = 0;
    const auto status =
        cublasLtMatmulAlgoGetHeuristic(handle_, operation.get(), left_layout.get(), right_layout.get(),
                                       result_layout.get(), result_layout.get(), made, 1, &found, &count);
    if (status == CUBLAS_STATUS_NOT_SUPPORTED || count == 0) return false;
    check(status, "looking for an algorithm");
    known = algorithms_.emplace(key, found.algo).first;
  }
  const auto factor = static_cast<float>(alpha), kept = static_cast<float>(beta);
  check(cublasLtMatmul(handle_, operation.get(), &factor, b.data, left_layout.get(), a.data, right_layout.get(), &kept,
                       out.data, result_layout.get(), out.data, result_layout.get(), &known->second, workspace.data,
                       workspace.bytes, streams_[stream]),
        "a matrix product");
  return true;
}

}  // namespace qlp
