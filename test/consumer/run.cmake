# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
#
# Installs BUILD_DIR into an empty prefix, moves the prefix, and builds and runs the consumer and the C++
# example of docs/start.md with what is there. The README shows lines of that example.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    string(REPLACE ";" " " command "${ARGN}")
    message(FATAL_ERROR "${command}\nfailed (${status}):\n${output}")
  endif()
  message(STATUS "${output}")
endfunction()

file(REMOVE_RECURSE ${WORK_DIR})
file(MAKE_DIRECTORY ${WORK_DIR})

if(NOT USE_ITK)
  run(${CMAKE_COMMAND} --install ${BUILD_DIR} --config ${CONFIG} --prefix ${WORK_DIR}/staged)
  file(RENAME ${WORK_DIR}/staged ${WORK_DIR}/prefix)
  run(${CMAKE_COMMAND} -G ${GENERATOR} -S ${SOURCE_DIR}/engine -B ${WORK_DIR}/engine
    -D CMAKE_BUILD_TYPE=${CONFIG}
    -D CMAKE_CXX_COMPILER=${COMPILER}
    -D CMAKE_PREFIX_PATH=${WORK_DIR}/prefix
    -D CMAKE_FIND_USE_PACKAGE_REGISTRY=OFF)
  run(${CMAKE_COMMAND} --build ${WORK_DIR}/engine --config ${CONFIG})
  run(${WORK_DIR}/engine/engine)
  if(EXISTS ${WORK_DIR}/engine/networks)
    run(${WORK_DIR}/engine/networks)
  endif()
  return()
endif()

# read_cpp_block(FILE VARIABLE): the first C++ block of a page.
function(read_cpp_block file variable)
  file(READ ${SOURCE_DIR}/../../${file} page)
  string(FIND "${page}" "```cpp\n" begin)
  if(begin EQUAL -1)
    message(FATAL_ERROR "${file} has no C++ block.")
  endif()
  math(EXPR begin "${begin} + 7")
  string(SUBSTRING "${page}" ${begin} -1 page)
  string(FIND "${page}" "```" end)
  string(SUBSTRING "${page}" 0 ${end} block)
  set(${variable} "${block}" PARENT_SCOPE)
endfunction()

read_cpp_block(docs/start.md example)
file(WRITE ${WORK_DIR}/start.cxx "${example}")
read_cpp_block(README.md shown)
# The README leaves out the budget, which is optional.
string(REGEX REPLACE "[^\n]*SetDeviceMemoryBudget[^\n]*\n" "" program "${example}")
string(FIND "${program}" "${shown}" found)
if(found EQUAL -1)
  message(FATAL_ERROR "The README's C++ block is not a part of the example of docs/start.md.")
endif()

run(${CMAKE_COMMAND} --install ${BUILD_DIR} --config ${CONFIG} --prefix ${WORK_DIR}/staged)
# A package that still works elsewhere holds no path of the place it was installed to.
file(RENAME ${WORK_DIR}/staged ${WORK_DIR}/prefix)
run(${CMAKE_COMMAND} -G ${GENERATOR} -S ${SOURCE_DIR} -B ${WORK_DIR}/build
  -D CMAKE_BUILD_TYPE=${CONFIG}
  -D CMAKE_CXX_COMPILER=${COMPILER}
  -D CMAKE_CXX_FLAGS=${CXX_FLAGS}
  -D CMAKE_PREFIX_PATH=${WORK_DIR}/prefix
  -D CMAKE_FIND_USE_PACKAGE_REGISTRY=OFF
  -D ITK_DIR=${ITK_DIR}
  -D START_EXAMPLE=${WORK_DIR}/start.cxx)
run(${CMAKE_COMMAND} --build ${WORK_DIR}/build --config ${CONFIG})
run(${WORK_DIR}/build/consumer)
if(EXISTS ${WORK_DIR}/build/file_to_file)
  execute_process(COMMAND ${WORK_DIR}/build/file_to_file WORKING_DIRECTORY ${WORK_DIR} RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "file_to_file failed (${status})")
  endif()
endif()

# The engine alone, from the same package.
run(${CMAKE_COMMAND} -G ${GENERATOR} -S ${SOURCE_DIR}/engine -B ${WORK_DIR}/engine
  -D CMAKE_BUILD_TYPE=${CONFIG}
  -D CMAKE_CXX_COMPILER=${COMPILER}
  -D CMAKE_PREFIX_PATH=${WORK_DIR}/prefix
  -D CMAKE_FIND_USE_PACKAGE_REGISTRY=OFF)
run(${CMAKE_COMMAND} --build ${WORK_DIR}/engine --config ${CONFIG})
run(${WORK_DIR}/engine/engine)
if(EXISTS ${WORK_DIR}/engine/networks)
  run(${WORK_DIR}/engine/networks)
endif()

# The plug-in, in a separate folder, serves a program that knows nothing of Chunkwise.
if(DROP_IN_EXAMPLE)
  file(GLOB_RECURSE plugins ${WORK_DIR}/prefix/*/chunkwise/itk-*/*)
  list(LENGTH plugins count)
  if(NOT count EQUAL 1)
    message(FATAL_ERROR "not one plug-in in a folder of its own: ${plugins}")
  endif()
  get_filename_component(folder ${plugins} DIRECTORY)
  string(REPEAT "abcdefgh" 64 voxels)
  file(WRITE ${WORK_DIR}/volume.mha
    "ObjectType = Image\nNDims = 3\nDimSize = 8 8 8\nElementType = MET_UCHAR\nElementDataFile = LOCAL\n${voxels}")
  set(ENV{ITK_AUTOLOAD_PATH} ${folder})
  set(ENV{CHUNKWISE_DROP_IN_REPORT} ${WORK_DIR}/report.txt)
  set(ENV{CHUNKWISE_DROP_IN_SMALLEST} 0)
  run(${DROP_IN_EXAMPLE} ${WORK_DIR}/volume.mha)
  unset(ENV{ITK_AUTOLOAD_PATH})
  file(STRINGS ${WORK_DIR}/report.txt served REGEX "\tserved\t")
  list(LENGTH served count)
  if(NOT count EQUAL 4)
    message(FATAL_ERROR "The installed plug-in served ${count} of 4 filters.")
  endif()
endif()

# 4 x 4 x 4 voxels, one character each.
string(REPEAT "abcdefgh" 8 voxels)
file(WRITE ${WORK_DIR}/input.mha
  "ObjectType = Image\nNDims = 3\nDimSize = 4 4 4\nElementType = MET_UCHAR\nElementDataFile = LOCAL\n${voxels}")
run(${WORK_DIR}/build/start/start ${WORK_DIR}/input.mha ${WORK_DIR}/output.mha)
if(NOT EXISTS ${WORK_DIR}/output.mha)
  message(FATAL_ERROR "The example of docs/start.md wrote no image.")
endif()
