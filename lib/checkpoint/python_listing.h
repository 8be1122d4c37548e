// The tensors of a model as the user's own transformers names them: what app/meta_names.py prints.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "checkpoint/stored_tensor.h"

namespace qlp {

struct PythonListing {
  std::string transformers;  ///< its version
  std::string model_class;
  std::vector<StoredTensor> tensors;
};

/// `weights` is the dtype of floating parameters. Errors: "bad-listing"; "python-failed" with the reason that the
/// script gives.
Result<PythonListing> read_python_listing(std::string_view text, DType weights);

}  // namespace qlp
