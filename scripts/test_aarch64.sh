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
toolchain=$root/CMake/toolchains/aarch64-linux.cmake
"$root/scripts/install_packages.sh" g++-aarch64-linux-gnu qemu-user cmake ninja-build libgtest-dev
. "$root/scripts/cross_compile.sh"
cross_compile_tests
cd "$build/chunkwise"
# The others are about this machine: Python, packages, documents.
exec ctest --output-on-failure --parallel "$(nproc)" --exclude-regex '^(chunkwise_python_test|Docs|Layers|Packaging)' "$@"
