# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
#
# Options of all three ways of building.
option(CHUNKWISE_QUICK_BUILD
  "Compile for speed only what the Gaussian, convolutions and other loops over rows need, and the rest in a third of the time" OFF)
if(CHUNKWISE_QUICK_BUILD)
  string(REGEX REPLACE "-O[2-3s]" "-O1" CMAKE_CXX_FLAGS_RELEASE "${CMAKE_CXX_FLAGS_RELEASE}")
endif()

if(DEFINED CMAKE_CUDA_COMPILER AND CMAKE_CUDA_COMPILER AND CHUNKWISE_USE_CUDA)
  set(CHUNKWISE_HAS_CUDA ON)
else()
  set(CHUNKWISE_HAS_CUDA OFF)
endif()

# The engine opens modules by these names (chunkwiseLibraryFile.cxx); those of CMake differ on Windows and macOS.
set(CHUNKWISE_MODULE_PREFIX lib)
if(WIN32)
  set(CHUNKWISE_MODULE_PREFIX "")
endif()

# The folder of the generated export header: ITK's macros write it themselves in the first two ways.
if(CHUNKWISE_BUILD_MODE STREQUAL "Remote")
  set(CHUNKWISE_EXPORT_HEADER_DIR ${ITKCommon_BINARY_DIR})
else()
  set(CHUNKWISE_EXPORT_HEADER_DIR ${PROJECT_BINARY_DIR}/include)
endif()

message(STATUS "Chunkwise ${PROJECT_VERSION}: ${CHUNKWISE_BUILD_MODE} build, CUDA ${CHUNKWISE_HAS_CUDA}, ITK ${CHUNKWISE_USE_ITK}, networks ${CHUNKWISE_BUILD_NETWORKS}")
