// Names and texts of the statuses of the runtime and the driver, which share their numbers.
#pragma once

namespace nullgpu {

struct ErrorName {
  int status;
  const char* runtime;
  const char* driver;
  const char* text;
};

/// Of every status that the null GPU answers; others get the runtime's "unrecognized error code".
const ErrorName& error_name(int status);
/// Whether it is one of those.
bool has_error_name(int status);

}  // namespace nullgpu
