# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
#
# Networks from ONNX files: whether protobuf is here, and how its compiler makes the sources of the format. Included by
# the library and by the tests, which are separate scopes in an ITK source tree.
option(CHUNKWISE_USE_ONNX "Read networks from ONNX files where protobuf is found" ON)
set(CHUNKWISE_HAS_ONNX OFF)
if(CHUNKWISE_USE_ONNX AND CHUNKWISE_BUILD_NETWORKS)
  # Its own package first: newer versions need libraries that CMake's module does not know.
  find_package(Protobuf CONFIG QUIET)
  if(NOT TARGET protobuf::libprotobuf-lite)
    find_package(Protobuf QUIET)
  endif()
  if(TARGET protobuf::libprotobuf-lite AND TARGET protobuf::protoc)
    set(CHUNKWISE_HAS_ONNX ON)
  endif()
  # A path, not a target, so that who links a static Chunkwise need not find protobuf.
  set(CHUNKWISE_PROTOBUF_LIBRARY protobuf::libprotobuf-lite)
  if(Protobuf_LITE_LIBRARY)
    set(CHUNKWISE_PROTOBUF_LIBRARY ${Protobuf_LITE_LIBRARY})
  endif()
endif()

# chunkwise_add_onnx_format(TARGET): compiles the messages of the format into a target, where nothing else sees them: not
# the library's users, who may have other versions of protobuf or of the format.
function(chunkwise_add_onnx_format target)
  set(proto ${Chunkwise_SOURCE_DIR}/src/${Chunkwise_ONNX_PROTO})
  get_filename_component(name ${proto} NAME_WE)
  get_filename_component(folder ${proto} DIRECTORY)
  set(generated ${CMAKE_CURRENT_BINARY_DIR}/${target}-onnx)
  file(MAKE_DIRECTORY ${generated})
  add_custom_command(OUTPUT ${generated}/${name}.pb.cc ${generated}/${name}.pb.h
    COMMAND protobuf::protoc --proto_path=${folder} --cpp_out=${generated} ${proto}
    DEPENDS ${proto}
    VERBATIM)
  target_sources(${target} PRIVATE ${generated}/${name}.pb.cc ${generated}/${name}.pb.h)
  target_include_directories(${target} SYSTEM PRIVATE ${generated})
  get_target_property(includes protobuf::libprotobuf-lite INTERFACE_INCLUDE_DIRECTORIES)
  if(includes)
    target_include_directories(${target} SYSTEM PRIVATE ${includes})
  endif()
  target_link_libraries(${target} PRIVATE ${CHUNKWISE_PROTOBUF_LIBRARY})
  if(NOT MSVC)
    set_source_files_properties(${generated}/${name}.pb.cc PROPERTIES COMPILE_OPTIONS "-w;-fvisibility=hidden")
  endif()
endfunction()
