// What differs between versions of bitsandbytes in 4-bit layers. Set from the stack's versions in plan/.
#pragma once

namespace qlp {

struct QuantBehaviour {
  /// 0.50.0 on: a fused kernel multiplies where a heuristic says so; elsewhere the weight is dequantized straight into
  /// the dtype of the input (backends/cuda/ops.py, gemm_4bit). Before, into the dtype it had, then cast.
  bool fused_gemm = true;
  /// 0.46.0 on: absmax - offset is a tensor of its own, and each weight has its own copy of the table of the second
  /// quantization. Before, the offset is taken off in place and the process has one table (functional.py).
  bool own_statistics = true;
  /// 0.48.0 on: bnb_4bit_compute_dtype counts. Before, the dtype of the first input takes its place unless that is
  /// float16 (nn/modules.py, Linear4bit.set_compute_type).
  bool honours_compute_dtype = true;
  /// 0.50.0 on: a stored bias takes on the compute dtype. Before, that of the layer's input (Linear4bit.forward).
  bool bias_in_compute_dtype = true;
  /// Before 0.43.2: the function keeps its input until the graph goes, as an attribute that no hook sees
  /// (autograd/_functions.py, MatMul4Bit).
  bool keeps_input = false;

  friend bool operator==(const QuantBehaviour&, const QuantBehaviour&) = default;
};

}  // namespace qlp
