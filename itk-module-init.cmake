# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
#
# CUDA is optional: without a compiler the module builds with its CPU backend alone. A language must be enabled at the
# top of a build, which is why ITK reads this file before the module's own CMakeLists.txt.
option(CHUNKWISE_USE_CUDA "Build the CUDA backend where there is a CUDA compiler" ON)
if(CHUNKWISE_USE_CUDA)
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
      # Native code for A100 and H100 class devices, which the other devices of those generations run too, and PTX that
      # the driver compiles for all else from Turing on.
      set(CMAKE_CUDA_ARCHITECTURES 75-virtual 80-real 90-real)
    endif()
    enable_language(CUDA)
    find_package(CUDAToolkit REQUIRED)
  else()
    message(STATUS "Chunkwise: no CUDA compiler found, the CUDA backend is not built")
  endif()
endif()
