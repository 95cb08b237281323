#!/bin/sh
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
#
# The engine, the program and the Python package on 64-bit ARM: cross-compiles them and the tests with Debian's compiler, runs the
# tests under qemu, and compares the results with those of this machine:
# test_aarch64.sh [BUILD_FOLDER [CTEST_ARGUMENTS...]]
# Environment:
#   CHUNKWISE_PROGRAM   a program for this machine: the results of both programs must have the same bytes
#   CHUNKWISE_PYTHON    a Python of this machine that has the package: so must those of the packages
#   CHUNKWISE_TARGETS   what to build besides the wheel: "chunkwise test/all"
# Debian's packages for ARM (the libraries of the program, and Python) are unpacked in the build folder. ITK's filters are left
# out. Tests take some ten times as long under qemu. The wheel is BUILD_FOLDER/dist/*.whl, compiled as a quick build.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
build=${1:-$root/build-aarch64}
[ $# -eq 0 ] || shift
toolchain=$root/CMake/toolchains/aarch64-linux.cmake
"$root/scripts/install_packages.sh" g++-aarch64-linux-gnu qemu-user cmake ninja-build libgtest-dev python3 python3-venv
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
    nlohmann-json3-dev python3.11-minimal libpython3.11-stdlib libpython3.11-dev libffi8
  # The C and C++ libraries are those of the compiler.
  for package in "$apt"/cache/archives/*.deb; do
    case ${package##*/} in libc6* | libc-* | libcrypt* | libgcc* | libstdc* | linux-*) continue ;; esac
    dpkg-deb -x "$package" "$libraries"
  done
  touch "$libraries/unpacked"
fi
paths=$libraries/usr/lib/aarch64-linux-gnu:$libraries/lib/aarch64-linux-gnu
emulate() {
  qemu-aarch64 -L /usr/aarch64-linux-gnu -E "LD_LIBRARY_PATH=$paths" "$@"
}

# The wheel as pip builds it, in a folder where the program and the tests are built, too: the engine is compiled once.
cross_compile /usr/src/googletest googletest install -DINSTALL_GTEST=ON -DBUILD_GMOCK=OFF
python3 -m venv "$build/tools"
"$build/tools/bin/pip" install -q --disable-pip-version-check scikit-build-core nanobind auditwheel
rm -rf "$build/dist"
PATH=$build/tools/bin:$PATH _PYTHON_HOST_PLATFORM=linux-aarch64 "$build/tools/bin/pip" wheel -v --no-build-isolation --no-deps \
  -w "$build/dist" --config-settings="build-dir=$build/chunkwise" --config-settings="cmake.define.CMAKE_TOOLCHAIN_FILE=$toolchain" \
  --config-settings="cmake.define.CHUNKWISE_TARGET_ROOT=$libraries" --config-settings="cmake.define.Python_INCLUDE_DIR=$libraries/usr/include/python3.11" \
  --config-settings="cmake.define.GTest_DIR=$build/prefix/lib/cmake/GTest" --config-settings=cmake.define.CMAKE_GTEST_DISCOVER_TESTS_DISCOVERY_MODE=PRE_TEST \
  --config-settings=cmake.define.CHUNKWISE_QUICK_BUILD=ON --config-settings=cmake.define.CHUNKWISE_BUILD_TESTING=ON --config-settings=cmake.define.CHUNKWISE_BUILD_PROGRAM=ON \
  --config-settings=cmake.define.CHUNKWISE_BUILD_EXAMPLES=ON "$root"
"$build/tools/bin/auditwheel" show "$build"/dist/*.whl

# The package in a Python for ARM.
packages=$build/packages
rm -rf "$packages"
"$build/tools/bin/pip" install -q --disable-pip-version-check --target "$packages" --python-version 3.11 --only-binary=:all: \
  --platform manylinux_2_28_aarch64 numpy nanobind-backend
"$build/tools/bin/pip" install -q --disable-pip-version-check --target "$packages" --python-version 3.11 --no-deps \
  --platform linux_aarch64 "$build"/dist/*.whl
python_arm64() {
  emulate -E "PYTHONHOME=$libraries/usr" -E "PYTHONPATH=$packages" "$libraries/usr/bin/python3.11" "$@"
}
python_arm64 -c '
import platform, numpy as np, chunkwise
assert chunkwise.mean(np.ones((9, 9), "float32"), radius=2).min() == 1
print("chunkwise", chunkwise.__version__, "on", platform.machine())'
if [ -n "${CHUNKWISE_PYTHON:-}" ]; then
  rm -f "$build/results.npz"
  "$CHUNKWISE_PYTHON" "$root/scripts/compare_packages.py" "$build/results.npz"
  python_arm64 "$root/scripts/compare_packages.py" "$build/results.npz"
fi

# shellcheck disable=SC2086 -- several words
PATH=$build/tools/bin:$PATH cmake --build "$build/chunkwise" --target ${CHUNKWISE_TARGETS:-chunkwise test/all}
if [ -n "${CHUNKWISE_PROGRAM:-}" ]; then
  "$root/scripts/compare_programs.py" "$CHUNKWISE_PROGRAM" qemu-aarch64 -L /usr/aarch64-linux-gnu -E "LD_LIBRARY_PATH=$paths" \
    "$build/chunkwise/program/chunkwise"
fi
cd "$build/chunkwise"
# The others are about this machine: Python, packages, documents. Death tests start themselves again, without qemu.
exec ctest --output-on-failure --parallel "$(nproc)" --exclude-regex '^(chunkwise_python_test|Docs|Layers|Packaging)|DeathTest' "$@"
