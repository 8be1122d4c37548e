// In place of a CUDA runtime of one major version: its soname, its symbol version, and answers that show when the null
// GPU was passed by. FAKE_VERSION is what it says of itself.
#define QLP_FAKE extern "C" __attribute__((visibility("default")))

QLP_FAKE int cudaRuntimeGetVersion(int* version) {
  *version = FAKE_VERSION;
  return 0;
}

QLP_FAKE int cudaGetDeviceProperties() { return 35; }  // no driver
QLP_FAKE int cudaGetDeviceProperties_v2() { return 35; }
QLP_FAKE int cudaFuncGetAttributes() { return 35; }
QLP_FAKE int cudaStreamGetCaptureInfo() { return 35; }
QLP_FAKE int cudaGetDriverEntryPoint() { return 35; }
QLP_FAKE int cudaMalloc() { return 35; }
