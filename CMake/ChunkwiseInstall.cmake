# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
#
# Installs what find_package(Chunkwise) needs; plain builds only, the others install through ITK's macros.
include(CMakePackageConfigHelpers)

set(_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Chunkwise)
set(_header_dir ${CMAKE_INSTALL_INCLUDEDIR}/Chunkwise)

# Two sets of targets, so that a project can have the engine where there is no ITK.
foreach(library IN LISTS Chunkwise_LIBRARIES)
  if(library STREQUAL "ChunkwiseEngine" OR library STREQUAL "ChunkwiseNetwork")
    set(_set ChunkwiseEngineTargets)
  else()
    set(_set ChunkwiseTargets)
  endif()
  install(TARGETS ${library} EXPORT ${_set}
    RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
    INCLUDES DESTINATION ${_header_dir})
endforeach()
install(EXPORT ChunkwiseEngineTargets NAMESPACE Chunkwise:: DESTINATION ${_package_dir})
if(CHUNKWISE_USE_ITK)
  install(EXPORT ChunkwiseTargets NAMESPACE Chunkwise:: DESTINATION ${_package_dir})
endif()
# Headers of networks go with their library.
set(_without_networks)
if(NOT CHUNKWISE_BUILD_NETWORKS)
  set(_without_networks PATTERN "chunkwiseNetwork*" EXCLUDE PATTERN "itkSlidingWindowNetwork*" EXCLUDE)
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ DESTINATION ${_header_dir} FILES_MATCHING PATTERN "chunkwise*.h"
  ${_without_networks})
if(TARGET ChunkwiseDropIn)
  install(TARGETS ChunkwiseDropIn EXPORT ChunkwiseTargets
    RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    INCLUDES DESTINATION ${_header_dir})
endif()
if(TARGET ChunkwiseDropInPlugin)
  install(TARGETS ChunkwiseDropInPlugin LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/${CHUNKWISE_PLUGIN_FOLDER})
endif()
if(TARGET ChunkwiseIO)
  install(TARGETS ChunkwiseIO EXPORT ChunkwiseTargets
    RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    INCLUDES DESTINATION ${_header_dir})
endif()
if(CHUNKWISE_USE_ITK)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ DESTINATION ${_header_dir} FILES_MATCHING PATTERN "itk*.h*"
    ${_without_networks})
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
# The program, with what it says of itself: completions and a manual page, made by running it.
if(TARGET chunkwise)
  install(TARGETS chunkwise RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  # It finds the engine beside itself, wherever the prefix is moved to.
  file(RELATIVE_PATH _libraries /${CMAKE_INSTALL_BINDIR} /${CMAKE_INSTALL_LIBDIR})
  set_target_properties(chunkwise PROPERTIES INSTALL_RPATH "$ORIGIN/${_libraries}")
  if(NOT CMAKE_CROSSCOMPILING)
    set(_made ${PROJECT_BINARY_DIR}/made)
    file(MAKE_DIRECTORY ${_made})
    add_custom_command(OUTPUT ${_made}/chunkwise.bash ${_made}/_chunkwise ${_made}/chunkwise.1
      COMMAND chunkwise completion bash > ${_made}/chunkwise.bash
      COMMAND chunkwise completion zsh > ${_made}/_chunkwise
      COMMAND chunkwise man > ${_made}/chunkwise.1
      DEPENDS chunkwise VERBATIM)
    add_custom_target(chunkwise_made ALL DEPENDS ${_made}/chunkwise.bash ${_made}/_chunkwise ${_made}/chunkwise.1)
    install(FILES ${_made}/chunkwise.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME chunkwise)
    install(FILES ${_made}/_chunkwise DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
    install(FILES ${_made}/chunkwise.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  endif()
endif()
# The documents, and what they cite.
install(FILES
  ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/CHANGELOG.md
  ${PROJECT_SOURCE_DIR}/CONTRIBUTING.md
  DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/slicer DESTINATION ${CMAKE_INSTALL_DOCDIR}
  PATTERN "Testing" EXCLUDE PATTERN "__pycache__" EXCLUDE)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples/engine ${PROJECT_SOURCE_DIR}/examples/network
  DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples PATTERN "*.py" EXCLUDE)

# cpack -G DEB: library, program and development files in one package. It depends on the libraries of the machine that
# built it, which dpkg-shlibdeps finds.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME chunkwise)
set(CPACK_PACKAGE_VENDOR "The Chunkwise Contributors")
set(CPACK_PACKAGE_CONTACT "The Chunkwise Contributors <chunkwise@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Boundary-exact image filters for images of any size")
set(CPACK_PACKAGE_DESCRIPTION "ITK filters, a program and a library that stream images larger than the memory of a GPU \
through all GPUs of the machine, or through the CPU where there is none, with the same result.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/src ${PROJECT_BINARY_DIR}/cuda)
if(CHUNKWISE_USE_ITK)
  set(CPACK_DEBIAN_PACKAGE_RECOMMENDS libinsighttoolkit5-dev)
endif()
include(CPack)
