// Quantizing a weight that lies on the GPU, as bitsandbytes does while a model is loaded.
#pragma once

#include "quant/quant_behaviour.h"
#include "quant/quant_state.h"

namespace qlp {

struct QuantizedWeight {
  Tensor packed;  ///< [packed_count, 1] of the storage dtype; [N, K] of int8
  QuantState state;
};

/// Quantizes the weights of one model while it is loaded.
class WeightQuantizer {
 public:
  virtual ~WeightQuantizer() = default;
  /// Leaves the weight as it is: its memory is the caller's.
  virtual QuantizedWeight quantize(Context& ctx, const Tensor& weight) = 0;
};

/// bitsandbytes' 4-bit types. Keeps what bitsandbytes keeps for the whole process: the table of the second
/// quantization, on the GPU from the first weight with double quant on. So it must live as long as the model does.
class FourBitQuantizer final : public WeightQuantizer {
 public:
  FourBitQuantizer(FourBitFormat format, QuantBehaviour behaviour) : format_(format), behaviour_(behaviour) {}

  const FourBitFormat& format() const { return format_; }

  /// functional.quantize_4bit of a float weight.
  QuantizedWeight quantize(Context& ctx, const Tensor& weight) override;

 private:
  /// quantize_blockwise of the absmax values, which are freed on the way.
  void quantize_statistics(Context& ctx, Tensor absmax, QuantState& state);

  FourBitFormat format_;
  QuantBehaviour behaviour_;
  Tensor dynamic_map_;
};

/// Int8Params.to(device) of a weight on the host (nn/modules.py): a scale for each row, from a copy in float16.
class EightBitQuantizer final : public WeightQuantizer {
 public:
  QuantizedWeight quantize(Context& ctx, const Tensor& weight) override;
};

}  // namespace qlp
