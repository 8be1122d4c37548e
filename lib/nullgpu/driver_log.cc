// The CUDA driver: its log of errors (CUDA 12.9 and newer; cuda.h), in which nothing ever stands.
#include <cstddef>
#include <cstdio>

#include "nullgpu/entry.h"

using namespace nullgpu;

QLP_EXPORT int cuLogsRegisterCallback(void* callback, void* /*data*/, void** handle) {
  return driver(__func__, [&] {
    if (callback == nullptr) {
      return invalid_value;
    }
    if (handle != nullptr) {
      *handle = new char{};
    }
    return ok;
  });
}

QLP_EXPORT int cuLogsUnregisterCallback(void* handle) {
  return driver(__func__, [&] {
    delete static_cast<char*>(handle);
    return handle == nullptr ? invalid_value : ok;
  });
}

QLP_EXPORT int cuLogsCurrent(unsigned* iterator, unsigned /*flags*/) {
  return driver(__func__, [&] {
    if (iterator == nullptr) {
      return invalid_value;
    }
    *iterator = 0;
    return ok;
  });
}

QLP_EXPORT int cuLogsDumpToFile(unsigned* /*iterator*/, const char* path, unsigned /*flags*/) {
  return driver(__func__, [&] {
    std::FILE* file = path == nullptr ? nullptr : std::fopen(path, "w");
    if (file == nullptr) {
      return invalid_value;
    }
    std::fclose(file);
    return ok;
  });
}

QLP_EXPORT int cuLogsDumpToMemory(unsigned* /*iterator*/, char* buffer, std::size_t* size, unsigned /*flags*/) {
  return driver(__func__, [&] {
    if (buffer == nullptr || size == nullptr) {
      return invalid_value;
    }
    if (*size != 0) {
      buffer[0] = '\0';
    }
    *size = 0;
    return ok;
  });
}
