#!/bin/sh
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
#
# The engine and the program on 64-bit ARM: cross-compiles them and the tests with Debian's compiler, runs the tests under qemu, and
# compares the bytes of the program's results with those of a program for this machine:
# test_aarch64.sh [BUILD_FOLDER [CTEST_ARGUMENTS...]]
# CHUNKWISE_PROGRAM names that program; without it nothing is compared. The program's libraries for ARM are unpacked in the build folder. ITK's
# filters are left out. Tests take some ten times as long under qemu.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
build=${1:-$root/build-aarch64}
[ $# -eq 0 ] || shift
toolchain=$root/CMake/toolchains/aarch64-linux.cmake
"$root/scripts/install_packages.sh" g++-aarch64-linux-gnu qemu-user cmake ninja-build libgtest-dev
. "$root/scripts/cross_compile.sh"

# apt with separate folders, so that this machine learns of no other architecture.
apt=$build/apt
libraries=$build/arm64
if [ ! -e "$libraries/unpacked" ]; then
  mkdir -p "$apt/state/lists/partial" "$apt/cache/archives/partial" "$libraries"
  : >"$apt/status"
  apt_arm64() {
    apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o "Dir::State=$apt/state" -o "Dir::State::status=$apt/status" \
      -o "Dir::Cache=$apt/cache" "$@"
  }
  apt_arm64 update
  apt_arm64 install --download-only --no-install-recommends zlib1g-dev libtiff-dev libexpat1-dev libpng-dev libjpeg-dev libcli11-dev \
    nlohmann-json3-dev
  # The C and C++ libraries are those of the compiler.
  for package in "$apt"/cache/archives/*.deb; do
    case ${package##*/} in libc6* | libc-* | libcrypt* | libgcc* | libstdc* | linux-*) continue ;; esac
    dpkg-deb -x "$package" "$libraries"
  done
  touch "$libraries/unpacked"
fi

CHUNKWISE_TARGETS=${CHUNKWISE_TARGETS:-test/all chunkwise}
cross_compile_tests -DCHUNKWISE_BUILD_PROGRAM=ON "-DCHUNKWISE_TARGET_ROOT=$libraries"
if [ -n "${CHUNKWISE_PROGRAM:-}" ]; then
  "$root/scripts/compare_programs.py" "$CHUNKWISE_PROGRAM" qemu-aarch64 -L /usr/aarch64-linux-gnu -E \
    "LD_LIBRARY_PATH=$libraries/usr/lib/aarch64-linux-gnu:$libraries/lib/aarch64-linux-gnu" "$build/chunkwise/program/chunkwise"
fi
cd "$build/chunkwise"
# The others are about this machine: Python, packages, documents. Death tests start themselves again, without qemu.
exec ctest --output-on-failure --parallel "$(nproc)" --exclude-regex '^(chunkwise_python_test|Docs|Layers|Packaging)|DeathTest' "$@"
