#!/bin/sh
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
#
# The engine on Windows x86-64: cross-compiles the engine and its tests with mingw-w64, and runs them under Wine:
# test_windows.sh [BUILD_FOLDER [CTEST_ARGUMENTS...]]
# The program needs ITK and POSIX, so it is not built.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
build=${1:-$root/build-windows}
[ $# -eq 0 ] || shift
toolchain=$root/CMake/toolchains/windows-x86-64.cmake
"$root/scripts/install_packages.sh" g++-mingw-w64-x86-64-posix wine64 cmake ninja-build libgtest-dev
. "$root/scripts/cross_compile.sh"
# Wine looks for libraries there: those of GCC, of threads and of this build.
gcc=$(dirname "$(x86_64-w64-mingw32-g++-posix -print-file-name=libstdc++-6.dll)")
export WINEPATH="Z:$gcc;Z:/usr/x86_64-w64-mingw32/lib;Z:$build/chunkwise/src"
# Wine keeps its files below the build folder, and its own messages to itself.
export WINEPREFIX="$build/wine" WINEDEBUG=-all
cross_compile_tests
cd "$build/chunkwise"
exec ctest --output-on-failure --parallel "$(nproc)" --exclude-regex '^(chunkwise_python_test|Docs|Layers|Packaging)' "$@"
