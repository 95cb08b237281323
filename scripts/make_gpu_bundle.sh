#!/bin/sh
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
#
# Builds a folder that runs the GPU tests and benchmarks on a machine with a GPU and nothing else: no ITK, no compiler,
# no network. On that machine: bundle/run_gpu_tests.sh.
#
# Usage: make_gpu_bundle.sh [bundle folder, build-bundle/bundle]. Environment:
#   CHUNKWISE_BUILD_DIR           where to build (build-bundle)
#   CHUNKWISE_CUDA_ARCHITECTURES  what to compile CUDA code for (90-real)
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
build=${CHUNKWISE_BUILD_DIR:-$root/build-bundle}
bundle=${1:-$build/bundle}

# FFTW is for Debian's ITK, whose FFT module links it and only recommends the package.
"$root/scripts/install_packages.sh" g++ cmake ninja-build libinsighttoolkit5-dev libgdcm-tools libcli11-dev nlohmann-json3-dev \
  libprotobuf-dev protobuf-compiler zlib1g-dev libtiff-dev libpng-dev libjpeg-dev libexpat1-dev libblosc-dev libzstd-dev liblz4-dev libgtest-dev libfftw3-dev patchelf python3-minimal
if [ -d /usr/local/cuda/bin ]; then
  PATH=$PATH:/usr/local/cuda/bin
fi
if ! command -v nvcc >/dev/null; then
  echo "make_gpu_bundle.sh: nvcc is needed" >&2
  exit 1
fi

cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCHUNKWISE_BUILD_TESTING=ON -DCHUNKWISE_USE_CUDA=ON \
  "-DCMAKE_CUDA_ARCHITECTURES=${CHUNKWISE_CUDA_ARCHITECTURES:-90-real}"
cmake --build "$build"

rm -rf "$bundle"
mkdir -p "$bundle/bin" "$bundle/lib"

# The programs of the tests labelled gpu, the benchmarks, and the program.
(cd "$build" && ctest --show-only=json-v1 -L gpu) | /usr/bin/python3 -c '
import json, sys
print("\n".join(sorted({test["command"][0] for test in json.load(sys.stdin)["tests"] if "command" in test})))
' >"$build/gpu-programs"
if [ ! -s "$build/gpu-programs" ]; then
  echo "make_gpu_bundle.sh: there are no tests labelled gpu" >&2
  exit 1
fi
xargs cp -t "$bundle/bin" <"$build/gpu-programs"
find "$build" -type f -name 'chunkwise*_benchmark' -perm -u+x -exec cp -t "$bundle/bin" {} +
cp "$build/program/chunkwise" "$bundle/bin"

# The CUDA backend is opened, and the program that reads HDF5 and DICOM started, at run time, beside the library.
find "$build" \( -name 'libChunkwiseCuda.so' -o -name ChunkwiseFormats -type f \) -exec cp -L {} "$bundle/lib" \;
if [ ! -e "$bundle/lib/libChunkwiseCuda.so" ]; then
  echo "make_gpu_bundle.sh: the CUDA backend was not built" >&2
  exit 1
fi
libraries() {
  cmake -D "PROGRAMS=$bundle/bin" -D "LIBRARIES=$bundle/lib" "$@" -P "$root/scripts/bundle_libraries.cmake"
}
libraries

for file in "$bundle"/bin/*; do
  strip "$file"
  patchelf --set-rpath "\$ORIGIN/../lib" "$file"
done
for file in "$bundle"/lib/*; do
  chmod u+w "$file"
  strip "$file"
  patchelf --set-rpath "\$ORIGIN" "$file"
done
libraries -D CHECK=ON
cp "$root/scripts/run_gpu_tests.sh" "$root/scripts/gpu_peers.py" "$root/scripts/varying_peers.py" "$root/scripts/filter_peers.py" \
  "$root/scripts/peer_report.py" "$bundle"
# For the benchmarks' figures.
git -C "$root" rev-parse --short=7 HEAD >"$bundle/commit" 2>/dev/null || true
du -sh "$bundle"
