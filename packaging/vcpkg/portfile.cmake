# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
# All libraries are shared.
vcpkg_check_linkage(ONLY_DYNAMIC_LIBRARY)

vcpkg_from_github(
  OUT_SOURCE_PATH SOURCE_PATH
  REPO chunkwise/chunkwise
  REF "v${VERSION}"
  # The hash of the tag's archive, which exists after the release.
  SHA512 0
  HEAD_REF main
)

vcpkg_check_features(OUT_FEATURE_OPTIONS FEATURE_OPTIONS
  FEATURES
    cuda CHUNKWISE_USE_CUDA
    itk CHUNKWISE_USE_ITK
    networks CHUNKWISE_BUILD_NETWORKS
    tools CHUNKWISE_BUILD_EXAMPLES
)
if("cuda" IN_LIST FEATURES)
  vcpkg_find_cuda(OUT_CUDA_TOOLKIT_ROOT CUDA_ROOT)
  list(APPEND FEATURE_OPTIONS "-DCMAKE_CUDA_COMPILER=${CUDA_ROOT}/bin/nvcc")
endif()

vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS
    ${FEATURE_OPTIONS}
    -DCHUNKWISE_BUILD_TESTING=OFF
    -DCHUNKWISE_BUILD_DROP_IN=OFF
    -DCHUNKWISE_BUILD_PYTHON=OFF
    -DCHUNKWISE_USE_FFTW=OFF
)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/Chunkwise PACKAGE_NAME Chunkwise)
if("tools" IN_LIST FEATURES)
  vcpkg_copy_tools(TOOL_NAMES chunkwise AUTO_CLEAN)
endif()

# Headers are the same in both configurations; the documents of the project are not part of a port.
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share" "${CURRENT_PACKAGES_DIR}/share/doc")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
