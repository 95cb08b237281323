#!/bin/sh
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
#
# Installs those of the named Debian packages that are missing, as root or with sudo. If apt is missing, it names the
# packages and goes on: the build then says what it lacks.
set -eu
if ! command -v dpkg-query >/dev/null; then
  echo "No apt here. Needed, by their Debian names: $*"
  exit 0
fi
missing=
for package in "$@"; do
  if ! dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed'; then
    missing="$missing $package"
  fi
done
[ -n "$missing" ] || exit 0
sudo=
if [ "$(id -u)" -ne 0 ]; then
  sudo=sudo
fi
echo "Installing:$missing"
export DEBIAN_FRONTEND=noninteractive
$sudo apt-get update -qq
# Word splitting is meant: one argument a package.
# shellcheck disable=SC2086
$sudo apt-get install -y -qq --no-install-recommends $missing >/dev/null
