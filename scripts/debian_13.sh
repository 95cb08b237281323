# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
#
# For scripts that work in a bare Debian 13: sourced with `root` (of the sources) and `system` (a folder) set. Makes the
# system as root, with debootstrap and a Debian mirror, or takes the one that is there. Ends with 77, "skipped", where it
# cannot be made. Then `inside COMMAND...` runs a command there, with the sources in /srv/source.
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
install_inside() {
  inside apt-get update -qq
  inside apt-get install -y -qq --no-install-recommends "$@" >"$system.log" 2>&1 || { tail -5 "$system.log"; exit 1; }
}
