#!/bin/sh
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
#
# Makes a Debian package of library, program and development files: make_deb.sh [folder for it, the build folder].
# Installs what is missing with apt (as root or with sudo). Environment:
#   CHUNKWISE_BUILD_DIR  where to build (build-deb)
#   CHUNKWISE_CUDA       ON or OFF (OFF): with the CUDA backend, which needs nvcc here, and no GPU there
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
build=${CHUNKWISE_BUILD_DIR:-$root/build-deb}
target=$(realpath -m "${1:-$build}")
"$root/scripts/install_packages.sh" g++ cmake ninja-build libinsighttoolkit5-dev libgdcm-tools libcli11-dev nlohmann-json3-dev \
  zlib1g-dev libtiff-dev libpng-dev libjpeg-dev libexpat1-dev libblosc-dev libzstd-dev liblz4-dev libfftw3-dev dpkg-dev file
cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCHUNKWISE_BUILD_TESTING=OFF \
  -DCMAKE_INSTALL_PREFIX=/usr "-DCHUNKWISE_USE_CUDA=${CHUNKWISE_CUDA:-OFF}" ${CMAKE_CXX_COMPILER_LAUNCHER:+"-DCMAKE_CXX_COMPILER_LAUNCHER=$CMAKE_CXX_COMPILER_LAUNCHER"}
cmake --build "$build"
(cd "$build" && cpack -G DEB -B "$target")
