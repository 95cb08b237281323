# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
#
# 64-bit ARM with Debian's cross compiler; its programs run under qemu-user. See scripts/test_aarch64.sh. CHUNKWISE_TARGET_ROOT is a
# folder with the files of packages for arm64: the libraries of the program.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(_folders ${CHUNKWISE_TARGET_ROOT}/usr/lib/aarch64-linux-gnu:${CHUNKWISE_TARGET_ROOT}/lib/aarch64-linux-gnu)
if(CHUNKWISE_TARGET_ROOT)
  # Python's header includes one of the architecture's folder.
  set(CMAKE_CXX_FLAGS_INIT "-idirafter ${CHUNKWISE_TARGET_ROOT}/usr/include")
endif()
set(CMAKE_EXE_LINKER_FLAGS_INIT -Wl,-rpath-link,${_folders})
set(CMAKE_CROSSCOMPILING_EMULATOR "qemu-aarch64;-L;/usr/aarch64-linux-gnu;-E;LD_LIBRARY_PATH=${_folders}")
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES CHUNKWISE_TARGET_ROOT)
set(CMAKE_FIND_ROOT_PATH ${CMAKE_INSTALL_PREFIX} ${CHUNKWISE_TARGET_ROOT} /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
