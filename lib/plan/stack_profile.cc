#include "plan/stack_profile.h"

namespace qlp {
namespace {

QuantBehaviour quant_behaviour(const Version& bitsandbytes) {
  return {.fused_gemm = bitsandbytes >= Version{0, 50, 0},
          .own_statistics = bitsandbytes >= Version{0, 46, 0},
          .honours_compute_dtype = bitsandbytes >= Version{0, 48, 0},
          .bias_in_compute_dtype = bitsandbytes >= Version{0, 50, 0},
          .keeps_input = bitsandbytes < Version{0, 43, 2}};
}

}  // namespace

StackProfile::StackProfile(const StackVersions& versions)
    : torch(versions),
      models(versions),
      trainer(versions),
      peft(versions),
      optimizers(versions),
      fsdp1(versions),
      fsdp2(versions),
      zero(versions),
      load(load_behaviour(versions)),
      quant(quant_behaviour(versions.bitsandbytes)) {}

}  // namespace qlp
