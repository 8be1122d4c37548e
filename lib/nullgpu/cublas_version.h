// The version of cuBLAS and cuBLASLt, which is one.
#pragma once

namespace nullgpu {

/// libraryPropertyType: 0 major, 1 minor, 2 patch. A status of cuBLAS.
int cublas_property(int type, int* value);
/// 130100 for 13.1.0.
int cublas_version();

}  // namespace nullgpu
