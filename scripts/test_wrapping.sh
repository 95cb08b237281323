#!/bin/sh
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
#
# ITK's own Python wrapping: makes a bare Debian 13, builds ITK 5.4 with Python there from Debian's source package (the newest
# 5.4 that the mirror has), Chunkwise as an external module of it, and runs wrapping/test:
# test_wrapping.sh FOLDER_FOR_THE_SYSTEM [JOBS]
# As root, with debootstrap and a Debian mirror; some 8 GB, and an hour of two cores. A second run goes on with what is there.
# Ends with 77, "skipped", where a system cannot be made.
#
# Few types and modules, or it would take hours. GCC 12: CastXML reads the headers of GCC 14 as another standard than that of
# the build, and fails.
set -eu
mkdir -p "${1:?usage: test_wrapping.sh FOLDER [JOBS]}"
system=$(cd "$1" && pwd)
jobs=${2:-2}
root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/scripts/debian_13.sh"
install_inside g++-12 cmake ninja-build castxml swig python3-dev python3-numpy zlib1g-dev libeigen3-dev dpkg-dev xz-utils
inside sh -euc "cd /srv
  if [ ! -d itk ]; then
    awk '/^deb / { print \"deb-src\", \$2, \"sid main\" }' /etc/apt/sources.list >/etc/apt/sources.list.d/sid.list
    apt-get update -qq
    apt-get source -qq --download-only insighttoolkit5
    mkdir itk.part
    tar -C itk.part --strip-components=1 -xJf insighttoolkit5_5.4*.orig.tar.xz
    mv itk.part itk
  fi
  compilers='-DCMAKE_C_COMPILER=gcc-12 -DCMAKE_CXX_COMPILER=g++-12'
  cmake -S itk -B itk-build -G Ninja \$compilers -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O0 -DCMAKE_C_FLAGS_DEBUG=-O0 \
    -DCMAKE_CXX_STANDARD=17 -DBUILD_SHARED_LIBS=ON -DBUILD_TESTING=OFF -DBUILD_EXAMPLES=OFF \
    -DITK_BUILD_DEFAULT_MODULES=OFF -DITKGroup_Core=OFF -DModule_ITKMesh=ON -DModule_ITKBridgeNumPy=ON \
    -DITK_WRAP_PYTHON=ON -DITK_USE_SYSTEM_CASTXML=ON -DITK_USE_SYSTEM_SWIG=ON -DITK_WRAP_DOC=OFF '-DITK_WRAP_IMAGE_DIMS=2;3' \
    -DITK_WRAP_unsigned_char=ON -DITK_WRAP_unsigned_short=OFF -DITK_WRAP_short=OFF -DITK_WRAP_float=ON -DITK_WRAP_double=OFF \
    -DITK_USE_SYSTEM_ZLIB=ON -DITK_USE_SYSTEM_EIGEN=ON >itk.log 2>&1 || { tail itk.log; exit 1; }
  ninja -C itk-build -j$jobs >>itk.log 2>&1 || { tail itk.log; exit 1; }
  cmake -S source -B module -G Ninja \$compilers -DITK_DIR=/srv/itk-build -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=OFF \
    -DCHUNKWISE_BUILD_EXAMPLES=OFF -DCHUNKWISE_USE_CUDA=OFF -DITK_USE_KWSTYLE=OFF -DITK_USE_SYSTEM_CASTXML=ON -DITK_USE_SYSTEM_SWIG=ON >module.log 2>&1 || { tail module.log; exit 1; }
  ninja -C module -j$jobs >>module.log 2>&1 || { tail module.log; exit 1; }
  PYTHONPATH=/srv/itk-build/Wrapping/Generators/Python:/srv/itk-build/lib python3 source/wrapping/test/itkChunkwisePythonTest.py"
