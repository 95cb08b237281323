# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
#
# For scripts that compile for another system: sourced with `root` (of the sources), `build` (a folder) and `toolchain` (a file)
# set. `cross_compile SOURCE NAME TARGETS CMAKE_ARGUMENTS...` compiles targets of the sources in BUILD/NAME.
# Targets install to BUILD/prefix, where later calls find what they need.
mkdir -p "$build"
build=$(cd "$build" && pwd)
cross_compile() {
  source=$1
  folder=$build/$2
  target=$3
  shift 3
  cmake -S "$source" -B "$folder" -G Ninja "-DCMAKE_TOOLCHAIN_FILE=$toolchain" -DCMAKE_BUILD_TYPE=Release \
    "-DCMAKE_INSTALL_PREFIX=$build/prefix" "$@"
  # shellcheck disable=SC2086 -- several words
  cmake --build "$folder" --target $target
}
# GoogleTest from Debian's sources, and the engine with its tests (all, or those of the targets CHUNKWISE_TARGETS). ctest asks tests
# for their names, since a build for another system may be unable to.
cross_compile_tests() {
  cross_compile /usr/src/googletest googletest install -DINSTALL_GTEST=ON -DBUILD_GMOCK=OFF
  cross_compile "$root" chunkwise "${CHUNKWISE_TARGETS:-test/all}" -DCMAKE_UNITY_BUILD=ON -DCHUNKWISE_QUICK_BUILD=ON \
    -DCHUNKWISE_USE_ITK=OFF -DCHUNKWISE_USE_CUDA=OFF -DCMAKE_GTEST_DISCOVER_TESTS_DISCOVERY_MODE=PRE_TEST "$@"
}
