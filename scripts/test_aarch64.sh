#!/bin/sh
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
#
# The engine on 64-bit ARM: cross-compiles the engine and its tests with Debian's compiler, and runs them under qemu:
# test_aarch64.sh [BUILD_FOLDER [CTEST_ARGUMENTS...]]
# ITK's filters and the program need libraries for ARM, which this does not install. Tests take some ten times as long under qemu.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
build=${1:-$root/build-aarch64}
[ $# -eq 0 ] || shift
"$root/scripts/install_packages.sh" g++-aarch64-linux-gnu qemu-user cmake ninja-build libgtest-dev

mkdir -p "$build"
build=$(cd "$build" && pwd)
cat >"$build/toolchain.cmake" <<EOF
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR "qemu-aarch64;-L;/usr/aarch64-linux-gnu")
set(CMAKE_FIND_ROOT_PATH "$build/prefix" /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
EOF
cross_compile() {
  source=$1
  folder=$build/$2
  shift 2
  cmake -S "$source" -B "$folder" -G Ninja "-DCMAKE_TOOLCHAIN_FILE=$build/toolchain.cmake" -DCMAKE_BUILD_TYPE=Release \
    "-DCMAKE_INSTALL_PREFIX=$build/prefix" "$@"
  cmake --build "$folder"
}
cross_compile /usr/src/googletest googletest
cmake --install "$build/googletest"
cross_compile "$root" chunkwise -DCMAKE_UNITY_BUILD=ON -DCHUNKWISE_USE_ITK=OFF -DCHUNKWISE_USE_CUDA=OFF
cd "$build/chunkwise"
# The others are about this machine: Python, packages, documents.
exec ctest --output-on-failure --parallel "$(nproc)" --exclude-regex '^(chunkwise_python_test|Docs|Layers|Packaging)' "$@"
