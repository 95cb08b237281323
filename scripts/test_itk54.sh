#!/bin/sh
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
#
# The drop-in with ITK 5.4: makes a bare Debian 13, builds engine, stand-ins, tests and example there, and runs them:
# test_itk54.sh FOLDER_FOR_THE_SYSTEM [JOBS]
# As root, with debootstrap and a Debian mirror; some 3 GB, and 20 minutes of two cores. A second run goes on with what is
# there. Ends with 77, "skipped", where a system cannot be made.
set -eu
mkdir -p "${1:?usage: test_itk54.sh FOLDER [JOBS]}"
system=$(cd "$1" && pwd)
jobs=${2:-2}
root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/scripts/debian_13.sh"
install_inside g++ cmake ninja-build libinsighttoolkit5-dev libgtest-dev zlib1g-dev libtiff-dev libpng-dev libjpeg-dev libexpat1-dev nlohmann-json3-dev libblosc-dev libzstd-dev liblz4-dev libfftw3-dev python3
inside sh -euc "cmake -S /srv/source -B /srv/build -G Ninja -DCMAKE_BUILD_TYPE=Release -DCHUNKWISE_USE_CUDA=OFF >/srv/cmake.log 2>&1
  cd /srv/build
  ninja -j$jobs ChunkwiseDropInPlugin chunkwise_other_version_plugin chunkwise_drop_in_test chunkwise_drop_in_example chunkwise_drop_in_library
  ctest -R 'DropIn|drop_in' --output-on-failure"
