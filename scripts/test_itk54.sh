#!/bin/sh
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
#
# The drop-in with ITK 5.4: makes a bare Debian 13, builds engine, stand-ins, tests and example there, and runs them:
# test_itk54.sh FOLDER_FOR_THE_SYSTEM [JOBS]
# As root, with debootstrap and a Debian mirror; some 3 GB, and 20 minutes of two cores. A second run goes on with what is
# there. Ends with 77, "skipped", where a system cannot be made.
set -eu
mkdir -p "${1:?usage: test_itk54.sh FOLDER [JOBS]}"
system=$(cd "$1" && pwd)
jobs=${2:-2}
root=$(cd "$(dirname "$0")/.." && pwd)
[ "$(id -u)" -eq 0 ] || { echo "skipped: a system of its own needs root"; exit 77; }
command -v debootstrap >/dev/null || { echo "skipped: debootstrap is not here"; exit 77; }
mirror=$(apt-get indextargets --format '$(REPO_URI)' "Codename: $(. /etc/os-release && echo "$VERSION_CODENAME")" \
  'Component: main' 2>/dev/null | head -1)
if [ ! -x "$system/usr/bin/apt-get" ]; then
  debootstrap --variant=minbase trixie "$system" ${mirror:+"$mirror"} >"$system.log" 2>&1 ||
    { tail -3 "$system.log"; echo "skipped: no Debian 13 could be made"; exit 77; }
fi
# The ways to packages that this machine has.
cp -r /etc/apt/apt.conf.d/. "$system/etc/apt/apt.conf.d/" 2>/dev/null || true
mkdir -p "$system/srv/source"
# /proc and the sources are there as long as a command runs.
inside() {
  unshare --mount sh -c 'mount -t proc proc "$0/proc" && mount --bind "$1" "$0/srv/source" && shift && exec chroot "$0" "$@"' \
    "$system" "$root" env DEBIAN_FRONTEND=noninteractive HOME=/srv PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"
}
inside apt-get update -qq
inside apt-get install -y -qq --no-install-recommends g++ cmake ninja-build libinsighttoolkit5-dev libgtest-dev zlib1g-dev \
  libtiff-dev libexpat1-dev python3 >"$system.log" 2>&1 || { tail -5 "$system.log"; exit 1; }
inside sh -euc "cmake -S /srv/source -B /srv/build -G Ninja -DCMAKE_BUILD_TYPE=Release -DCHUNKWISE_USE_CUDA=OFF >/srv/cmake.log 2>&1
  cd /srv/build
  ninja -j$jobs ChunkwiseDropInPlugin chunkwise_other_version_plugin chunkwise_drop_in_test chunkwise_drop_in_example chunkwise_drop_in_library
  ctest -R 'DropIn|drop_in' --output-on-failure"
