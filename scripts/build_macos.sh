#!/bin/sh
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
#
# The engine on macOS with Apple's processors: cross-compiles and links the engine and its tests with Clang of the package
# ziglang. Nothing here runs them. Usage: build_macos.sh [BUILD_FOLDER]
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
build=${1:-$root/build-macos}
toolchain=$root/CMake/toolchains/macos-arm64.cmake
"$root/scripts/install_packages.sh" cmake ninja-build libgtest-dev python3 python3-venv
. "$root/scripts/cross_compile.sh"
tools=ziglang==0.15.1
if [ "$(cat "$build/zig/made-for" 2>/dev/null)" != "$tools" ]; then
  python3 -m venv --clear "$build/zig"
  "$build/zig/bin/pip" install -q --disable-pip-version-check "$tools"
  zig=$("$build/zig/bin/python3" -c 'import ziglang, os; print(os.path.join(os.path.dirname(ziglang.__file__), "zig"))')
  for command in cc c++ ar ranlib; do
    target=
    # Without optimization zig's Clang checks for undefined behavior, with functions that shared libraries lack.
    case $command in c*) target=' -target aarch64-macos -fno-sanitize=undefined' ;; esac
    printf '#!/bin/sh\nexec "%s" %s%s "$@"\n' "$zig" "$command" "$target" >"$build/zig/$command"
    chmod +x "$build/zig/$command"
  done
  echo "$tools" >"$build/zig/made-for"
fi
cross_compile_tests "-DCHUNKWISE_ZIG_FOLDER=$build/zig"
file=$build/chunkwise/src/libChunkwiseEngine.dylib
# The first word of a Mach-O file of 64 bits.
[ "$(od -An -tx4 -N4 "$file" | tr -d ' ')" = feedfacf ] || { echo "$file is no library of macOS"; exit 1; }
echo "Compiled and linked for macOS on arm64, not run: $file"
