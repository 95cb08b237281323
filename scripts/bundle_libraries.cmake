# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
#
# Copies the libraries that programs need, and theirs, except those of the C and C++ runtimes: every machine has them,
# and they must fit its driver. Or, with CHECK, makes sure that all of them are found in the folder.
#
# Usage: cmake -D PROGRAMS=FOLDER -D LIBRARIES=FOLDER [-D CHECK=ON] -P bundle_libraries.cmake
cmake_minimum_required(VERSION 3.16)
file(GLOB programs "${PROGRAMS}/*" "${LIBRARIES}/ChunkwiseFormats")
file(GLOB modules "${LIBRARIES}/libChunkwiseCuda.so")
file(GET_RUNTIME_DEPENDENCIES
  EXECUTABLES ${programs}
  MODULES ${modules}
  RESOLVED_DEPENDENCIES_VAR libraries
  UNRESOLVED_DEPENDENCIES_VAR missing
  PRE_EXCLUDE_REGEXES "^(ld-linux.*|lib(c|m|dl|rt|pthread|stdc\\+\\+|gcc_s))\\.so")
if(missing)
  message(FATAL_ERROR "the bundle lacks ${missing}")
endif()
if(CHECK)
  get_filename_component(folder "${LIBRARIES}" REALPATH)
  foreach(library IN LISTS libraries)
    get_filename_component(library "${library}" REALPATH)
    if(NOT library MATCHES "^${folder}/")
      message(FATAL_ERROR "a program of the bundle finds ${library} outside it")
    endif()
  endforeach()
else()
  # Under the names by which they are asked for.
  execute_process(COMMAND ${CMAKE_COMMAND} -E copy ${libraries} "${LIBRARIES}" RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "the libraries could not be copied")
  endif()
endif()
