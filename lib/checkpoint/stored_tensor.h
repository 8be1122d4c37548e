// One tensor of a checkpoint on disk.
#pragma once

#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/shape.h"

namespace qlp {

struct StoredTensor {
  std::string name;
  DType dtype = DType::bfloat16;
  Shape shape;
  bool linear = false;  ///< the weight [out, in] of a layer that formats with packed weights quantize
  std::string data;     ///< its bytes where they matter; empty: zeros, which take no room on the disk
};

inline Bytes bytes_of(const StoredTensor& tensor) { return bytes_of(tensor.shape, tensor.dtype); }

}  // namespace qlp
