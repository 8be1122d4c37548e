# Programs that run with the null GPU preloaded: without sanitizers, as it is.

set(programs ${CMAKE_CURRENT_BINARY_DIR}/nullgpu)
set_property(SOURCE nullgpu/null_gpu.cc APPEND PROPERTY COMPILE_DEFINITIONS QLP_NULLGPU_PROGRAMS="${programs}"
                                                             QLP_NULLGPU_PRELOAD="$<TARGET_FILE:qlora_nullgpu>")
add_dependencies(qlp_tests qlora_nullgpu)

# One program for each runtime that has its own layouts, with a library in that runtime's place.
foreach(runtime 11.0=11070 12=12060 13=13020)
  string(REGEX MATCH "^([0-9]+)[^=]*" name ${runtime})
  set(major ${CMAKE_MATCH_1})
  string(REGEX REPLACE ".*=" "" version ${runtime})
  file(CONFIGURE OUTPUT ${programs}/cudart_${name}.map CONTENT "libcudart.so.${name} { global: cuda*; };\n")
  add_library(fake_cudart_${name} SHARED ${CMAKE_CURRENT_LIST_DIR}/programs/fake_cudart.cc)
  set_target_properties(fake_cudart_${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${programs} NO_SONAME ON)
  target_compile_definitions(fake_cudart_${name} PRIVATE FAKE_VERSION=${version})
  target_link_options(fake_cudart_${name} PRIVATE -Wl,--version-script=${programs}/cudart_${name}.map
                      -Wl,-soname,libcudart.so.${name})
  set_target_properties(fake_cudart_${name} PROPERTIES PREFIX "" OUTPUT_NAME libcudart SUFFIX .so.${name})
  add_executable(ask_cudart_${name} ${CMAKE_CURRENT_LIST_DIR}/programs/ask_runtime.cc)
  set_target_properties(ask_cudart_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${programs} BUILD_RPATH ${programs})
  target_compile_definitions(ask_cudart_${name} PRIVATE MAJOR=${major} RUNTIME="libcudart.so.${name}")
  target_link_libraries(ask_cudart_${name} PRIVATE fake_cudart_${name} ${CMAKE_DL_LIBS})
  add_dependencies(qlp_tests ask_cudart_${name})
endforeach()

add_executable(leave ${CMAKE_CURRENT_LIST_DIR}/programs/leave.cc)
set_target_properties(leave PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${programs} ENABLE_EXPORTS ON)
target_compile_features(leave PRIVATE cxx_std_20)
target_link_libraries(leave PRIVATE pthread)
add_dependencies(qlp_tests leave)

# And one that CUDA's own headers and libraries make, where these are.
find_package(CUDAToolkit QUIET)
find_package(NCCL QUIET)
if(CUDAToolkit_FOUND AND NCCL_FOUND AND TARGET CUDA::cublasLt)
  add_executable(real_cuda ${CMAKE_CURRENT_LIST_DIR}/programs/real_cuda.cc)
  set_target_properties(real_cuda PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${programs})
  target_link_libraries(real_cuda PRIVATE CUDA::cudart CUDA::cublas CUDA::cublasLt NCCL::NCCL ${CMAKE_DL_LIBS})
  target_compile_features(real_cuda PRIVATE cxx_std_20)
  add_dependencies(qlp_tests real_cuda)
  add_test(NAME nullgpu/real_cuda COMMAND real_cuda)
  set_tests_properties(
    nullgpu/real_cuda
    PROPERTIES LABELS unit TIMEOUT 60
               ENVIRONMENT
               "LD_PRELOAD=$<TARGET_FILE:qlora_nullgpu>;NULLGPU_NAME=NVIDIA H100 80GB HBM3;NULLGPU_SM=90;NULLGPU_BYTES=85021687808;NULLGPU_DEVICES=2")
endif()
