#!/bin/sh
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
#
# Builds everything and runs the tests. Installs what is missing with apt (as root or with sudo). CUDA code is compiled
# where there is nvcc; tests that need a GPU skip themselves where there is none. Environment:
#   CHUNKWISE_BUILD_DIR           where to build (build-tests)
#   CHUNKWISE_CUDA_ARCHITECTURES  what to compile CUDA code for (the GPU that is here, else one architecture)
#   CHUNKWISE_SANITIZERS          compile with these, without CUDA: "address;undefined", or "thread"
#   CHUNKWISE_PART                run a part of the tests alone: 2/4 is every fourth from the second
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
build=${CHUNKWISE_BUILD_DIR:-$root/build-tests}

# FFTW is for the module with its transforms, and for Debian's ITK, whose FFT module links it and only recommends the
# package.
"$root/scripts/install_packages.sh" g++ cmake ninja-build libinsighttoolkit5-dev libgdcm-tools libcli11-dev nlohmann-json3-dev \
  libprotobuf-dev protobuf-compiler zlib1g-dev libisal-dev libtiff-dev libpng-dev libjpeg-dev libexpat1-dev libblosc-dev libzstd-dev liblz4-dev libgtest-dev libfftw3-dev libonnx-testdata mricron-data \
  python3 python3-dev python3-venv

if [ -d /usr/local/cuda/bin ]; then
  PATH=$PATH:/usr/local/cuda/bin
fi
if [ -n "${CHUNKWISE_SANITIZERS:-}" ]; then
  set -- -DCHUNKWISE_USE_CUDA=OFF "-DCHUNKWISE_SANITIZERS=$CHUNKWISE_SANITIZERS"
elif command -v nvcc >/dev/null; then
  if nvidia-smi >/dev/null 2>&1; then
    architectures=${CHUNKWISE_CUDA_ARCHITECTURES:-native}
  else
    architectures=${CHUNKWISE_CUDA_ARCHITECTURES:-90-real}
    echo "nvcc is here but no GPU: the CUDA backend is compiled, and tests that need a GPU skip themselves."
  fi
  set -- -DCHUNKWISE_USE_CUDA=ON "-DCMAKE_CUDA_ARCHITECTURES=$architectures"
else
  echo "nvcc is not here: the CUDA backend is not compiled, the CPU backend is tested alone."
  set -- -DCHUNKWISE_USE_CUDA=OFF
fi

cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_UNITY_BUILD=ON -DCHUNKWISE_BUILD_TESTING=ON \
  -DCHUNKWISE_USE_FFTW=ON "$@"
cmake --build "$build"
cd "$build"
# Some tests wait more than they compute.
part=${CHUNKWISE_PART:-1/1}
ctest --output-on-failure --parallel "$(($(nproc) + 1))" --tests-information "${part%/*},,${part#*/}"
