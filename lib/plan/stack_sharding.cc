#include "plan/stack_sharding.h"

namespace qlp {

Fsdp2Behaviour Fsdp2Stack::behaviour() const {
  return {.root_obeys_reshard = torch_ >= Version{2, 8, 0},
          .copies_on_one_rank = torch_ >= Version{2, 9, 0},
          .keeps_recomputed = torch_ >= Version{2, 10, 0},
          .drops_reduced_early = torch_ >= Version{2, 12, 0},
          .casts_everywhere = torch_ >= Version{2, 14, 0},
          .reduces_norms_first = torch_ >= Version{2, 14, 0}};
}

Fsdp2Upcast Fsdp2Stack::upcast() const {
  return accelerate_ >= Version{1, 14, 0}   ? Fsdp2Upcast::trained_parameters
         : accelerate_ >= Version{1, 13, 0} ? Fsdp2Upcast::lost
                                            : Fsdp2Upcast::whole_model;
}

}  // namespace qlp
