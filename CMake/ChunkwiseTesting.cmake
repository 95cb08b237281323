# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
#
# Included by test/ and benchmark/, in all three ways of building.
if(NOT CHUNKWISE_USE_ITK)
  set(CHUNKWISE_TEST_LIBRARIES)
elseif(CHUNKWISE_BUILD_MODE STREQUAL "Plain")
  set(CHUNKWISE_TEST_LIBRARIES ${ITK_LIBRARIES})
else()
  itk_module_test()
  set(CHUNKWISE_TEST_LIBRARIES ${Chunkwise-Test_LIBRARIES})
endif()
# In an ITK source tree the tests are a separate scope.
if(NOT CMAKE_CXX_STANDARD OR CMAKE_CXX_STANDARD LESS 17)
  set(CMAKE_CXX_STANDARD 17)
endif()
# Tests see the headers that are not installed, and those of other tests.
include(${Chunkwise_SOURCE_DIR}/src/sources.cmake)
include(${Chunkwise_SOURCE_DIR}/CMake/ChunkwiseOnnxWriter.cmake)
set(Chunkwise_TEST_FOLDERS ${Chunkwise_PRIVATE_FOLDERS})
if(CHUNKWISE_BUILD_NETWORKS)
  list(APPEND Chunkwise_TEST_FOLDERS ${Chunkwise_NETWORK_FOLDERS})
endif()
list(TRANSFORM Chunkwise_TEST_FOLDERS PREPEND ${Chunkwise_SOURCE_DIR}/src/)
foreach(folder support operations window convolution rank table reconstruction statistics objects thresholds network itk dropin)
  list(APPEND Chunkwise_TEST_FOLDERS ${Chunkwise_SOURCE_DIR}/test/${folder})
endforeach()
if(CHUNKWISE_BUILD_MODE STREQUAL "Plain")
  set(Chunkwise_ENGINE_TARGET ChunkwiseEngine)
else()
  set(Chunkwise_ENGINE_TARGET Chunkwise)
endif()
# The libraries that tests and benchmarks link: the engine, and networks if they are built.
set(Chunkwise_TESTED_LIBRARIES ${Chunkwise_ENGINE_TARGET})
if(CHUNKWISE_BUILD_NETWORKS)
  list(PREPEND Chunkwise_TESTED_LIBRARIES ChunkwiseNetwork)
endif()
find_package(GTest REQUIRED)
find_package(Threads REQUIRED)
include(GoogleTest)

# FFTW is GPL: only tests and benchmarks link it.
if(CHUNKWISE_COMPARE_WITH_FFTW AND NOT TARGET chunkwise_fftw)
  find_package(PkgConfig REQUIRED)
  pkg_check_modules(ChunkwiseFFTW REQUIRED IMPORTED_TARGET GLOBAL fftw3 fftw3f)
  add_library(chunkwise_fftw INTERFACE)
  target_compile_definitions(chunkwise_fftw INTERFACE CHUNKWISE_HAS_FFTW)
  target_link_libraries(chunkwise_fftw INTERFACE fftw3f_threads fftw3_threads PkgConfig::ChunkwiseFFTW)
endif()

# The cost of tests that take the longest: ctest begins with them, so that no processor waits for one at the end.
set(CHUNKWISE_LONG_TEST 1000)

# chunkwise_compile_fast(TARGET): a test is templates over all kinds, which take four times as long to compile for speed
# as they do so. The code that it tests is in optimized libraries.
function(chunkwise_compile_fast target)
  if(NOT MSVC)
    target_compile_options(${target} PRIVATE $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>>:-Og>)
  endif()
endfunction()

# chunkwise_add_test(NAME SOURCES source... [LABEL label] [LIBRARIES library...]): one GoogleTest program.
function(chunkwise_add_test name)
  cmake_parse_arguments(arg "" "LABEL" "SOURCES;LIBRARIES" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  chunkwise_compile_fast(${name})
  target_include_directories(${name} PRIVATE ${Chunkwise_TEST_FOLDERS})
  target_link_libraries(${name} PRIVATE
    ${Chunkwise_TESTED_LIBRARIES} ${arg_LIBRARIES} GTest::gtest GTest::gtest_main Threads::Threads)
  if(NOT CHUNKWISE_BUILD_MODE STREQUAL "Plain")
    itk_module_target_label(${name})
  endif()
  set(properties TIMEOUT 600)
  if(arg_LABEL)
    list(APPEND properties LABELS "${arg_LABEL}")
  endif()
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES ${properties})
endfunction()

# chunkwise_headers_with(HEADER RESULT header...): those of the headers that include HEADER, themselves or through others.
function(chunkwise_headers_with header result)
  foreach(each IN LISTS ARGN)
    file(STRINGS ${Chunkwise_SOURCE_DIR}/include/${each} includes_${each} REGEX "^#include \"")
  endforeach()
  set(found ${header})
  set(before)
  while(NOT "${found}" STREQUAL "${before}")
    set(before ${found})
    foreach(each IN LISTS ARGN)
      foreach(include IN LISTS includes_${each})
        string(REGEX REPLACE "^#include \"([^\"]*)\".*" "\\1" include ${include})
        if(include IN_LIST found AND NOT each IN_LIST found)
          list(APPEND found ${each})
        endif()
      endforeach()
    endforeach()
  endwhile()
  list(REMOVE_ITEM found ${header})
  set(${result} ${found} PARENT_SCOPE)
endfunction()

# chunkwise_add_header_library(NAME header...): compiles each header by itself, twice included.
function(chunkwise_add_header_library name)
  set(sources)
  foreach(header IN LISTS ARGN)
    set(source ${CMAKE_CURRENT_BINARY_DIR}/headers/${header}.cxx)
    file(GENERATE OUTPUT ${source} CONTENT "#include \"${header}\"\n#include \"${header}\"\n")
    list(APPEND sources ${source})
  endforeach()
  add_library(${name} OBJECT ${sources})
  target_link_libraries(${name} PRIVATE ${Chunkwise_LIBRARIES} ${CHUNKWISE_TEST_LIBRARIES})
endfunction()

# chunkwise_add_header_test(): every public header compiles by itself. ITK's macros have a test of the kind, so this one
# is for plain builds. A header that includes the filters' base sees all that the base sees, so that is compiled ahead for them:
# it is no more than they ask for.
function(chunkwise_add_header_test)
  file(GLOB headers RELATIVE ${Chunkwise_SOURCE_DIR}/include CONFIGURE_DEPENDS ${Chunkwise_SOURCE_DIR}/include/*.h)
  if(NOT CHUNKWISE_BUILD_NETWORKS)
    list(FILTER headers EXCLUDE REGEX "^(chunkwise|itkSlidingWindow)Network")
  endif()
  if(CHUNKWISE_USE_ITK)
    chunkwise_headers_with(itkChunkwiseImageToImageFilter.h filters ${headers})
    list(REMOVE_ITEM headers ${filters})
    chunkwise_add_header_library(ChunkwiseFilterHeaderTest ${filters})
    target_precompile_headers(ChunkwiseFilterHeaderTest PRIVATE <itkChunkwiseImageToImageFilter.h>)
  else()
    list(FILTER headers EXCLUDE REGEX "^itk")
  endif()
  chunkwise_add_header_library(ChunkwiseHeaderTest ${headers})
endfunction()

# chunkwise_add_packaging_tests(): that an installed package serves a user's project, and what no compiler checks.
function(chunkwise_add_packaging_tests)
  # A consumer has no sanitizer, whose library must come first.
  if(NOT CHUNKWISE_SANITIZERS)
    add_test(NAME Packaging.InstalledPackageServesAConsumer
      COMMAND ${CMAKE_COMMAND}
        -D BUILD_DIR=${PROJECT_BINARY_DIR}
        -D WORK_DIR=${CMAKE_CURRENT_BINARY_DIR}/consumer
        -D SOURCE_DIR=${Chunkwise_SOURCE_DIR}/test/consumer
        -D CONFIG=$<CONFIG>
        -D GENERATOR=${CMAKE_GENERATOR}
        -D COMPILER=${CMAKE_CXX_COMPILER}
        "-DCXX_FLAGS=${CMAKE_CXX_FLAGS}"
        -D USE_ITK=${CHUNKWISE_USE_ITK}
        -D ITK_DIR=${ITK_DIR}
        -D DROP_IN_EXAMPLE=$<$<TARGET_EXISTS:chunkwise_drop_in_example>:$<TARGET_FILE:chunkwise_drop_in_example>>
        -P ${Chunkwise_SOURCE_DIR}/test/consumer/run.cmake)
    set_tests_properties(Packaging.InstalledPackageServesAConsumer PROPERTIES TIMEOUT 600 COST ${CHUNKWISE_LONG_TEST})
  endif()
  # GPL stays out of what is distributed, and what is opened at run time is no condition of it.
  if(UNIX AND NOT APPLE)
    set(linked)
    foreach(target ChunkwiseEngine ChunkwiseNetwork Chunkwise ChunkwiseCuda chunkwise)
      list(APPEND linked "$<$<TARGET_EXISTS:${target}>:$<TARGET_FILE:${target}>>")
    endforeach()
    add_test(NAME Packaging.NothingLinksFftwOrCufft COMMAND ${Chunkwise_SOURCE_DIR}/scripts/check_links.sh ${linked})
    set_tests_properties(Packaging.NothingLinksFftwOrCufft PROPERTIES SKIP_RETURN_CODE 77)
  endif()
  add_test(NAME Layers.DependenciesPointOneWay
    COMMAND ${Chunkwise_SOURCE_DIR}/scripts/check_layers.sh)
  add_test(NAME Layers.FormatIsThatOfTheSettings
    COMMAND ${Chunkwise_SOURCE_DIR}/scripts/check_format.sh)
  set_tests_properties(Layers.FormatIsThatOfTheSettings PROPERTIES SKIP_RETURN_CODE 77)
  find_package(Python3 COMPONENTS Interpreter)
  if(Python3_Interpreter_FOUND)
    set(script ${Chunkwise_SOURCE_DIR}/scripts/benchmarks.py)
    add_test(NAME Docs.DrawingsAreMadeByTheirScript
      COMMAND ${Python3_EXECUTABLE} ${Chunkwise_SOURCE_DIR}/scripts/make_drawings.py --check)
    add_test(NAME Layers.FunctionsAreShort COMMAND ${Python3_EXECUTABLE} ${Chunkwise_SOURCE_DIR}/scripts/check_functions.py)
    add_test(NAME Docs.EnglishIsPlain COMMAND ${Python3_EXECUTABLE} ${Chunkwise_SOURCE_DIR}/scripts/check_english.py)
    add_test(NAME Docs.BenchmarksAreMadeFromTheirResults COMMAND ${Python3_EXECUTABLE} ${script} --check)
    add_test(NAME Docs.BenchmarksScriptKeepsItsRules
      COMMAND ${Python3_EXECUTABLE} ${Chunkwise_SOURCE_DIR}/test/benchmark/benchmarksTest.py ${script})
  endif()
endfunction()
