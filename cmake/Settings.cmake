# How our own targets are compiled. They link qlp_settings PRIVATE; third-party code never sees it.

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, Debug or RelWithDebInfo" FORCE)
endif()

find_program(QLP_CCACHE ccache)
if(QLP_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${QLP_CCACHE})
endif()

# The standard headers that most sources include, read once: a fourth of the time of a cold build. A compiler cache gains
# more, and keeps little of what was built with them; clang-tidy cannot read GCC's.
set(qlp_standard_headers <algorithm> <array> <cstdint> <functional> <map> <memory> <optional> <set> <span> <stdexcept>
                         <string> <string_view> <utility> <variant> <vector>)
if(CMAKE_CXX_COMPILER_LAUNCHER OR CMAKE_CXX_CLANG_TIDY)
  set(CMAKE_DISABLE_PRECOMPILE_HEADERS ON)
endif()

# Most of what is left is reading our own headers and making what their templates say: the presets that people and CI
# build take eight files of a room at a time (CMAKE_UNITY_BUILD), in half of the time. So what is local to a file has a
# name of its own in its room. The other presets compile each file by itself and show where it lacks an include.

if(QLP_LTO)
  set(CMAKE_INTERPROCEDURAL_OPTIMIZATION ON)
endif()

add_library(qlp_settings INTERFACE)
target_compile_features(qlp_settings INTERFACE cxx_std_20)
set(CMAKE_CXX_EXTENSIONS OFF)

target_compile_options(
  qlp_settings
  INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wall
            -Wextra
            -Wpedantic
            -Wshadow
            -Wconversion
            -Wsign-conversion
            -Wnon-virtual-dtor
            -Wold-style-cast
            -Woverloaded-virtual
            -Wno-missing-field-initializers> # designated initialisers leave out what has a default
            $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${QLP_WERROR}>>:-Werror>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(qlp_settings INTERFACE -Wno-restrict) # false alarms in std::string (GCC bug 105651)
endif()
target_compile_definitions(qlp_settings INTERFACE $<$<CONFIG:Debug>:_GLIBCXX_ASSERTIONS>)

if(QLP_SANITIZE)
  target_compile_options(qlp_settings INTERFACE -fsanitize=${QLP_SANITIZE} -fno-sanitize-recover=all
                                                -fno-omit-frame-pointer)
  target_link_options(qlp_settings INTERFACE -fsanitize=${QLP_SANITIZE})
  if(QLP_SANITIZE MATCHES "address")
    # An access by a null pointer, or to an object that has gone, is reported all the same; to check for it at every call
    # of a member took an eighth of the compile time.
    target_compile_options(qlp_settings INTERFACE -fno-sanitize=null,vptr)
  endif()
endif()

# Reading jobs and writing reports is text, done once a run: half of its compile time was spent optimizing it.
add_library(qlp_text_settings INTERFACE) # after qlp_settings on the command line
target_compile_options(qlp_text_settings INTERFACE $<$<CONFIG:Release>:-O1> $<$<CONFIG:Debug>:-O0>)
