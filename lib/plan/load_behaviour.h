// How the libraries of a stack load a model and put adapters on it.
#pragma once

#include <cstdint>

#include "plan/stack_versions.h"

namespace qlp {

/// How transformers' from_pretrained puts a checkpoint on the GPU.
enum class Loader : std::uint8_t {
  by_tensor,  ///< 4.48: in the order of the files, each tensor through accelerate's set_module_tensor_to_device
  by_file,    ///< 4.57: names sorted in each file, after one allocation of the whole size that warms the cache
  by_name,    ///< 5: all names in natural order, after the same warm-up
};

struct LoadBehaviour {
  Loader loader = Loader::by_name;
  /// Under FSDP's RAM-efficient loading a quantized weight goes to the host as soon as it is made. transformers
  /// modeling_utils.py, _load_state_dict_into_meta_model, until 4.57; in 5.24 every rank keeps the whole model on its
  /// GPU until it is cut (core_model_loading.py).
  bool takes_quantized_off_gpu = false;
  /// peft 0.19 on: adapters beside a 4-bit weight are made in the compute dtype; before, in the storage dtype if that
  /// is floating, else in float32 (tuners_utils.py, _move_adapter_to_device_of_base_layer).
  bool adapters_in_compute_dtype = true;
  bool casts_adapters = true;      ///< peft 0.12 on: get_peft_model knows autocast_adapter_dtype
  bool kbit_empties_cache = true;  ///< peft 0.20 on: prepare_model_for_kbit_training ends with empty_cache
};

constexpr LoadBehaviour load_behaviour(const StackVersions& versions) {
  return {.loader = versions.transformers >= Version{5, 0, 0}    ? Loader::by_name
                    : versions.transformers >= Version{4, 52, 0} ? Loader::by_file
                                                                 : Loader::by_tensor,
          .takes_quantized_off_gpu = versions.transformers < Version{5, 0, 0},
          .adapters_in_compute_dtype = versions.peft >= Version{0, 19, 0},
          .casts_adapters = versions.peft >= Version{0, 12, 0},
          .kbit_empties_cache = versions.peft >= Version{0, 20, 0}};
}

}  // namespace qlp
