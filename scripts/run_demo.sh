#!/bin/sh
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
#
# The main job on real data: streams a block of a human brain volume through a wide Gaussian, under a memory budget
# smaller than the image, once for each of three boundary modes, and draws what the boundary does.
#
# Takes three to four minutes on two cores: installs what is missing with apt (as root or with sudo), and builds a small program,
# without ITK and networks, and compiled for speed only where Gaussians and convolutions need it. Environment:
#   CHUNKWISE_BUILD_DIR   where to build (build-demo)
#   CHUNKWISE_DEMO_DIR    where the images and the figure go (BUILD_DIR/demo)
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
build=${CHUNKWISE_BUILD_DIR:-$root/build-demo}
demo=${CHUNKWISE_DEMO_DIR:-$build/demo}
sigma=5
memory=168M

begin=$(date +%s)
"$root/scripts/install_packages.sh" g++ cmake ninja-build libcli11-dev nlohmann-json3-dev zlib1g-dev libtiff-dev libpng-dev libjpeg-dev \
  libexpat1-dev
# The volume and what draws the picture are installed while the program is compiled. sudo may ask for a password.
pictures="mricron-data python3 python3-pil fonts-dejavu-core"
installing=
if [ "$(id -u)" -eq 0 ]; then
  # shellcheck disable=SC2086 -- several words
  "$root/scripts/install_packages.sh" $pictures &
  installing=$!
else
  # shellcheck disable=SC2086
  "$root/scripts/install_packages.sh" $pictures
fi
volume=/usr/share/mricron/templates/ch2better.nii.gz

mkdir -p "$demo"
# The CUDA backend only where it can be used: it is most of the build.
cuda=OFF
# Only the targets that the demo runs.
targets=chunkwise
architectures=
if [ -d /usr/local/cuda/bin ]; then
  PATH=$PATH:/usr/local/cuda/bin
fi
if command -v nvcc >/dev/null && nvidia-smi >/dev/null 2>&1; then
  cuda=ON
  architectures=-DCMAKE_CUDA_ARCHITECTURES=native
  targets="chunkwise ChunkwiseCuda"
fi
log=$build/demo-build.log

# Shows how far the build is: on a terminal as ninja does, else by a line every 15 seconds.
build_program() {
  if [ -t 1 ]; then
    # shellcheck disable=SC2086 -- several words
    cmake --build "$build" --target $targets
    return
  fi
  # shellcheck disable=SC2086
  cmake --build "$build" --target $targets >"$log" 2>&1 &
  compiling=$!
  # Background processes do not receive an interrupt.
  trap 'kill $compiling; exit 130' INT TERM
  seconds=0
  while kill -0 $compiling 2>/dev/null; do
    sleep 1
    seconds=$((seconds + 1))
    if [ $((seconds % 15)) -eq 0 ]; then
      echo "  $(grep -o '^\[[0-9]*/[0-9]*\]' "$log" | tail -n 1) after $seconds seconds"
    fi
  done
  trap - INT TERM
  if ! wait $compiling; then
    tail -n 40 "$log"
    return 1
  fi
}

echo "Building the program in $build for this machine's instruction set alone (CUDA $cuda)"
if ! cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_UNITY_BUILD=ON -DCHUNKWISE_BUILD_TESTING=OFF \
  -DCHUNKWISE_QUICK_BUILD=ON -DCHUNKWISE_USE_ITK=OFF -DCHUNKWISE_BUILD_PROGRAM=ON -DCHUNKWISE_BUILD_NETWORKS=OFF \
  -DCHUNKWISE_CPU_LEVELS=native -DCHUNKWISE_USE_CUDA=$cuda $architectures >"$log" 2>&1; then
  tail -n 40 "$log"
  exit 1
fi
build_program
[ -z "$installing" ] || wait "$installing"

# Tissue reaches the sides of the block: at a border of background all boundaries would agree. As doubles it is larger
# than the budget, of which the program itself takes some 40 MiB.
/usr/bin/python3 "$root/scripts/crop_volume.py" "$volume" "$demo/block.mha" 24:276 34:336 10:316
for boundary in renormalized constant zero-flux; do
  echo
  echo "== chunkwise gaussian --sigma $sigma --boundary $boundary --memory $memory"
  "$build/program/chunkwise" gaussian "$demo/block.mha" "$demo/$boundary.mha" \
    --sigma $sigma --boundary $boundary --memory $memory --overwrite --verbose
done

echo
/usr/bin/python3 "$root/scripts/figure.py" "$demo/figure.png" "$demo/block.mha" "$demo/renormalized.mha" \
  "$demo/constant.mha" "$demo/zero-flux.mha" --caption \
  "Gaussian, sigma $sigma mm = 10 voxels along each axis, streamed with a memory budget of $memory; 252 x 302 x 306 \
voxels of 0.5 mm, 178 MiB; middle axial slice"
echo "The program is $build/program/chunkwise. Filters other than Gaussians and convolutions run faster in the build of
docs/building.md, which also has networks and reads DICOM, HDF5 and NRRD. All this took $(($(date +%s) - begin)) seconds."
