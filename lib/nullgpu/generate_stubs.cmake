# cmake -DOUT=stubs.cc -DLISTS=entry_points -P generate_stubs.cmake
# A weak definition of every name in the lists: the sources' own, where there is one, takes its place when they are linked.
#   name             answers "not supported", is counted and named in the report
#   name launch      all its results lie on the device: accepted and not run
#   name size int@5  a query for the size of a workspace, which is told to be 0 at argument 5 (counted from 0, without
#                    floating-point ones): int or size_t, or several as in size_t@11,size_t@12
#   name versioned   versions.cc has it
# ..._ptsz and ..._ptds (per-thread default stream) do what the name without does, as streams differ in nothing else here.

cmake_minimum_required(VERSION 3.22)
file(GLOB lists ${LISTS}/*.txt)
set(body "// Made by generate_stubs.cmake.\n#include <cstddef>\n\n#include \"nullgpu/calls.h\"\n\nusing std::size_t;\n\n#define QLP_WEAK extern \"C\" __attribute__((weak, visibility(\"default\")))\n\n")
foreach(list IN LISTS lists)
  file(STRINGS ${list} lines)
  set(names ${lines})
  list(TRANSFORM names REPLACE " .*" "")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE " .*" "" name "${line}")
    if(line MATCHES " versioned$")
      continue()
    elseif(line MATCHES " launch$")
      string(APPEND body "QLP_WEAK int ${name}() { return nullgpu::launch_call(__func__); }\n")
      continue()
    elseif(line MATCHES " size (.*)$")
      string(REPLACE "," ";" sizes "${CMAKE_MATCH_1}")
      set(parameters "")
      set(outputs "")
      set(at 0)
      foreach(size IN LISTS sizes)
        string(REGEX MATCH "^(.*)@([0-9]+)$" size "${size}")
        while(at LESS CMAKE_MATCH_2)
          string(APPEND parameters "void*, ")
          math(EXPR at "${at} + 1")
        endwhile()
        string(APPEND parameters "${CMAKE_MATCH_1}* s${at}, ")
        string(APPEND outputs ", s${at}")
        math(EXPR at "${at} + 1")
      endforeach()
      string(REGEX REPLACE ", $" "" parameters "${parameters}")
      string(APPEND body "QLP_WEAK int ${name}(${parameters}) { return nullgpu::size_call(__func__${outputs}); }\n")
      continue()
    elseif(name MATCHES "^(.*)_(ptsz|ptds)$")
      set(base ${CMAKE_MATCH_1})
      if(base IN_LIST names AND NOT "${base} versioned" IN_LIST lines)
        string(APPEND body "QLP_ALIAS(${name}, ${base})\n")
        continue()
      endif()
    endif()
    string(APPEND body "QLP_WEAK int ${name}() { return nullgpu::unsupported_call(__func__); }\n")
  endforeach()
endforeach()
string(REPLACE "#define QLP_WEAK" "#if defined(__x86_64__)
#define QLP_JUMP \"jmp \"
#define QLP_PLT \"@PLT\"
#else
#define QLP_JUMP \"b \"
#define QLP_PLT \"\"
#endif
#define QLP_ALIAS(name, base) \\
  __asm__(\".weak \" #name \"\\n.type \" #name \", STT_FUNC\\n\" #name \":\\n\" QLP_JUMP #base QLP_PLT \"\\n.size \" #name \", .-\" #name);
#define QLP_WEAK" body "${body}")
file(WRITE ${OUT} "// NOLINTBEGIN(readability-identifier-naming,bugprone-reserved-identifier)\n${body}// NOLINTEND\n")
