#!/bin/sh
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
#
# Installs a package of make_deb.sh in a bare Debian 12 and uses it there: test_deb.sh PACKAGE [folder for the system].
# As root, with debootstrap and a Debian mirror. Ends with 77, "skipped", where that cannot be had.
set -eu
package=$(realpath "$1")
system=${2:-$(mktemp -d)}
root=$(cd "$(dirname "$0")/.." && pwd)
[ "$(id -u)" -eq 0 ] || { echo "skipped: a system of its own needs root"; exit 77; }
command -v debootstrap >/dev/null || { echo "skipped: debootstrap is not here"; exit 77; }
mirror=$(sed -n 's/^deb \(\[[^]]*\] \)\?\([a-z]*:[^ ]*\) bookworm .*/\2/p; s/^URIs: *\([^ ]*\).*/\1/p' /etc/apt/sources.list \
  /etc/apt/sources.list.d/* 2>/dev/null | head -1)
if [ ! -x "$system/usr/bin/apt-get" ]; then
  debootstrap --variant=minbase bookworm "$system" ${mirror:+"$mirror"} >"$system.log" 2>&1 ||
    { tail -3 "$system.log"; echo "skipped: no Debian 12 could be made"; exit 77; }
fi
# The ways to packages that this machine has.
cp -r /etc/apt/apt.conf.d/. "$system/etc/apt/apt.conf.d/" 2>/dev/null || true
cp "$package" "$system/srv/chunkwise.deb"
mkdir -p "$system/srv/source/test" "$system/srv/source/examples"
cp -r "$root/test/consumer" "$system/srv/source/test/"
cp -r "$root/examples/engine" "$system/srv/source/examples/"
# /proc is there as long as a command runs.
inside() { unshare --mount sh -c 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"' "$system" env DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"; }
inside apt-get update -qq
inside apt-get install -y -qq --no-install-recommends /srv/chunkwise.deb >"$system.log" 2>&1 || { tail -5 "$system.log"; exit 1; }
# The program, its completion and its manual page.
inside sh -euc '
  cd /srv
  printf "ObjectType = Image\nNDims = 3\nDimSize = 4 4 4\nElementType = MET_UCHAR\nElementDataFile = LOCAL\n%064d" 7 >in.mha
  chunkwise --version
  chunkwise devices
  chunkwise median in.mha out.mha --radius 1
  chunkwise identity in.mha copy.mha
  tail -c 64 in.mha >a; tail -c 64 copy.mha >b; cmp a b
  chunkwise statistics out.mha --json
  bash -c "source /usr/share/bash-completion/completions/chunkwise; COMP_WORDS=(chunkwise medi); COMP_CWORD=1; _chunkwise; test \"\${COMPREPLY[*]}\" = median"
  chunkwise slicer-modules modules; modules/ChunkwiseMedian --xml | head -1
  cd /usr/share/doc/Chunkwise
  ls'
# minbase leaves documents out only where it is told so.
inside test -e /usr/share/man/man1/chunkwise.1
# A project that uses the engine, and removal without a rest.
inside apt-get install -y -qq --no-install-recommends g++ cmake make >"$system.log" 2>&1
inside sh -euc 'rm -rf /srv/build && cmake -S /srv/source/test/consumer/engine -B /srv/build -DCMAKE_BUILD_TYPE=Release >/dev/null && cmake --build /srv/build && /srv/build/engine'
inside apt-get remove -y -qq chunkwise >"$system.log" 2>&1
inside sh -euc '! command -v chunkwise && ! ls -d /usr/include/Chunkwise /usr/lib/*/libChunkwise* 2>/dev/null'
echo "The package works in a bare Debian 12."
