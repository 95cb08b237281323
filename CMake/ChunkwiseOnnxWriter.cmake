# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
#
# Tests write ONNX files through protobuf, where it is found. The library reads them without it.
set(CHUNKWISE_HAS_ONNX_WRITER OFF)
if(CHUNKWISE_BUILD_NETWORKS)
  # Its own package first: newer versions need libraries that CMake's module does not know.
  find_package(Protobuf CONFIG QUIET)
  if(NOT TARGET protobuf::libprotobuf-lite)
    find_package(Protobuf QUIET)
  endif()
  if(TARGET protobuf::libprotobuf-lite AND TARGET protobuf::protoc)
    set(CHUNKWISE_HAS_ONNX_WRITER ON)
  else()
    message(STATUS "Tests of ONNX files are not built: protobuf (libprotobuf-dev, protobuf-compiler) is not here")
  endif()
endif()

# chunkwise_add_onnx_writer(TARGET): compiles the messages of the format into a test.
function(chunkwise_add_onnx_writer target)
  set(folder ${Chunkwise_SOURCE_DIR}/test/network)
  set(generated ${CMAKE_CURRENT_BINARY_DIR}/${target}-onnx)
  file(MAKE_DIRECTORY ${generated})
  add_custom_command(OUTPUT ${generated}/chunkwiseOnnx.pb.cc ${generated}/chunkwiseOnnx.pb.h
    COMMAND protobuf::protoc --proto_path=${folder} --cpp_out=${generated} ${folder}/chunkwiseOnnx.proto
    DEPENDS ${folder}/chunkwiseOnnx.proto
    VERBATIM)
  target_sources(${target} PRIVATE ${generated}/chunkwiseOnnx.pb.cc ${generated}/chunkwiseOnnx.pb.h)
  target_include_directories(${target} SYSTEM PRIVATE ${generated})
  target_link_libraries(${target} PRIVATE protobuf::libprotobuf-lite)
  if(NOT MSVC)
    set_source_files_properties(${generated}/chunkwiseOnnx.pb.cc PROPERTIES COMPILE_OPTIONS -w)
  endif()
endfunction()
