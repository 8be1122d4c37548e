// dlopen() and dlsym() of the program. The driver's libraries are always this one, also where a real driver is
// installed. The other libraries load as they are (their presence is what programs look for, and version numbers are
// asked of them), but a name that the null GPU knows is found here, whatever library it is asked of.
#pragma once

#include <optional>

namespace nullgpu {

void* real_dlsym(void* handle, const char* name);
/// A function of a library that is loaded already (by its soname); null: it is not, or has none.
void* real_entry_point(const char* library, const char* name);

namespace detail {
/// Set while a real library is asked: what it calls in turn comes here, and must not ask it again.
bool& asking();
}  // namespace detail

/// What the real library answers, where it is loaded and needs no GPU for that (version numbers).
template <class Answer, class... Arguments>
std::optional<Answer> ask_real(const char* library, const char* name, Arguments... arguments) {
  using Function = Answer (*)(Arguments...);
  if (detail::asking()) {
    return std::nullopt;
  }
  const auto function = reinterpret_cast<Function>(real_entry_point(library, name));
  if (function == nullptr) {
    return std::nullopt;
  }
  detail::asking() = true;
  const Answer answer = function(arguments...);
  detail::asking() = false;
  return answer;
}
bool is_loaded(const char* library);
/// Loads a library from the folder of one that is loaded; whether it is there.
bool load_beside(const char* loaded, const char* library);

/// What this library exports under that name; null: nothing.
void* own_entry_point(const char* name);
/// "libcuda.so.1" and its like, with or without a folder.
bool is_driver_library(const char* path);

}  // namespace nullgpu
