# The device code: kernels/*.cu (qlp::kernels, knows nothing of lib/) and lib/cuda/*.cc (qlp::cuda, with cuBLASLt and
# NCCL), which lib/CMakeLists.txt makes a library that the program opens when it is asked to.
# With QLP_CUDA=AUTO it is built where toolkit and NCCL are found; ON makes their absence an error.
# QLP_CUDA_FOUND tells the rest of the build.

set(QLP_CUDA_FOUND OFF)
file(GLOB qlp_kernel_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/kernels/*.cu)
file(GLOB qlp_cuda_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/lib/cuda/*.cc)
if(NOT QLP_CUDA OR NOT (qlp_kernel_sources OR qlp_cuda_sources))
  return()
endif()

# Machine code for Ampere and Ada (8.x) and for Hopper, and PTX for what comes after: more takes longer to build and runs
# no faster. Never "native": the machine that builds need not have a GPU.
if(NOT CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 80-real 90)
endif()
if(QLP_CCACHE AND NOT CMAKE_CUDA_COMPILER_LAUNCHER)
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${QLP_CCACHE})
endif()

include(CheckLanguage)
check_language(CUDA)
find_package(CUDAToolkit)
find_package(NCCL)
if(NOT (CMAKE_CUDA_COMPILER AND CUDAToolkit_FOUND AND NCCL_FOUND))
  if(QLP_CUDA STREQUAL "AUTO")
    message(STATUS "CUDA toolkit or NCCL not found: built without device code")
    return()
  endif()
  message(FATAL_ERROR "QLP_CUDA=${QLP_CUDA}, but nvcc, the CUDA toolkit or NCCL was not found")
endif()

enable_language(CUDA)
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_EXTENSIONS OFF)
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION) # CMake 3.25 does not know that nvcc 12 and later take it
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
endif()
set(QLP_CUDA_FOUND ON)

if(qlp_kernel_sources)
  add_library(qlp_kernels STATIC ${qlp_kernel_sources})
  add_library(qlp::kernels ALIAS qlp_kernels)
  set_property(TARGET qlp_kernels PROPERTY POSITION_INDEPENDENT_CODE ON)
  target_include_directories(qlp_kernels PUBLIC ${PROJECT_SOURCE_DIR}/kernels)
  target_link_libraries(qlp_kernels PUBLIC CUDA::cudart PRIVATE qlp_settings)
endif()
