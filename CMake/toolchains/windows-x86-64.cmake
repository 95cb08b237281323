# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
#
# Windows with mingw-w64's GCC and POSIX threads; its programs run under Wine. See scripts/test_windows.sh.
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(CMAKE_C_COMPILER x86_64-w64-mingw32-gcc-posix)
set(CMAKE_CXX_COMPILER x86_64-w64-mingw32-g++-posix)
set(CMAKE_RC_COMPILER x86_64-w64-mingw32-windres)
find_program(CHUNKWISE_WINE NAMES wine64 wine PATHS /usr/lib/wine)
if(CHUNKWISE_WINE)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${CHUNKWISE_WINE})
endif()
set(CMAKE_FIND_ROOT_PATH ${CMAKE_INSTALL_PREFIX} /usr/x86_64-w64-mingw32)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
# GCC aligns the stack to 16 bytes on Windows, and loads 32 and 64 bytes from it as if they were aligned. The assembler makes
# these loads unaligned, which are as fast.
set(CMAKE_CXX_FLAGS_INIT -Wa,-muse-unaligned-vector-move)
