# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
#
# Installs what find_package(Chunkwise) needs; plain builds only, the others install through ITK's macros.
include(CMakePackageConfigHelpers)

set(_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Chunkwise)
set(_header_dir ${CMAKE_INSTALL_INCLUDEDIR}/Chunkwise)

# Two sets of targets, so that a project can have the engine where there is no ITK.
foreach(library IN LISTS Chunkwise_LIBRARIES)
  if(library STREQUAL "ChunkwiseEngine")
    set(_set ChunkwiseEngineTargets)
  else()
    set(_set ChunkwiseTargets)
  endif()
  install(TARGETS ${library} EXPORT ${_set}
    RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
    INCLUDES DESTINATION ${_header_dir})
  install(EXPORT ${_set} NAMESPACE Chunkwise:: DESTINATION ${_package_dir})
endforeach()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ DESTINATION ${_header_dir} FILES_MATCHING PATTERN "chunkwise*.h")
if(CHUNKWISE_USE_ITK)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ DESTINATION ${_header_dir} FILES_MATCHING PATTERN "itk*.h*")
endif()
install(FILES ${CHUNKWISE_EXPORT_HEADER_DIR}/ChunkwiseExport.h DESTINATION ${_header_dir})

configure_package_config_file(${PROJECT_SOURCE_DIR}/CMake/ChunkwiseConfig.cmake.in
  ${PROJECT_BINARY_DIR}/CMake/ChunkwiseConfig.cmake INSTALL_DESTINATION ${_package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/CMake/ChunkwiseConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/CMake/ChunkwiseConfig.cmake
  ${PROJECT_BINARY_DIR}/CMake/ChunkwiseConfigVersion.cmake
  DESTINATION ${_package_dir})
if(TARGET chunkwise)
  install(TARGETS chunkwise RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
