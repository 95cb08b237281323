# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
#
# Builds in which sanitizers watch everything but the libraries of others. See "Sanitizers" in CONTRIBUTING.md.
set(CHUNKWISE_SANITIZERS "" CACHE STRING "Compile with sanitizers: address;undefined, or thread")
if(CHUNKWISE_SANITIZERS)
  if(MSVC)
    message(FATAL_ERROR "CHUNKWISE_SANITIZERS needs GCC or Clang")
  endif()
  foreach(_sanitizer IN LISTS CHUNKWISE_SANITIZERS)
    if(NOT _sanitizer MATCHES "^(address|undefined|thread|leak)$")
      message(FATAL_ERROR "CHUNKWISE_SANITIZERS: ${_sanitizer} is none of address, undefined, thread and leak")
    endif()
  endforeach()
  if("thread" IN_LIST CHUNKWISE_SANITIZERS AND "address" IN_LIST CHUNKWISE_SANITIZERS)
    message(FATAL_ERROR "CHUNKWISE_SANITIZERS: address and thread exclude each other")
  endif()
  string(REPLACE ";" "," _sanitizers "${CHUNKWISE_SANITIZERS}")
  # After the flags of the build type. -O1 keeps stack traces readable, and compiles in half the time.
  add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-fsanitize=${_sanitizers}>
    $<$<COMPILE_LANGUAGE:C,CXX>:-fno-sanitize-recover=undefined>
    $<$<COMPILE_LANGUAGE:C,CXX>:-fsanitize-recover=vptr,pointer-overflow> $<$<COMPILE_LANGUAGE:C,CXX>:-fno-omit-frame-pointer>
    $<$<COMPILE_LANGUAGE:C,CXX>:-O1> $<$<COMPILE_LANGUAGE:C,CXX>:-g1>)
  add_link_options(-fsanitize=${_sanitizers})
endif()

# Lets ctest start all tests with the options and suppressions of the sanitizers. The program ends with 1 and 2 itself.
function(chunkwise_set_sanitizer_options)
  if(NOT CHUNKWISE_SANITIZERS)
    return()
  endif()
  set(folder ${Chunkwise_SOURCE_DIR}/test/sanitizers)
  set(file ${CMAKE_BINARY_DIR}/sanitizerOptions.cmake)
  file(WRITE ${file} "set(ENV{ASAN_OPTIONS} \"detect_leaks=1:detect_stack_use_after_return=1:strict_init_order=1:\
allocator_may_return_null=1:exitcode=86\")
set(ENV{LSAN_OPTIONS} \"suppressions=${folder}/leaks.txt:print_suppressions=0\")
set(ENV{UBSAN_OPTIONS} \"print_stacktrace=1:halt_on_error=1:exitcode=86:suppressions=${folder}/undefined.txt\")
set(ENV{TSAN_OPTIONS} \"suppressions=${folder}/threads.txt:halt_on_error=1:second_deadlock_stack=1:die_after_fork=0\")
")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${file})
endfunction()
