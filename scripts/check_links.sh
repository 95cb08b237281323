#!/bin/sh
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
#
# Checks that none of the given files links a library that is opened at run time or is under another license:
# FFTW (GPL), cuFFT and the driver. Usage: check_links.sh FILE... Exits with 77 where there is no readelf.
set -u
command -v readelf >/dev/null || exit 77
status=0
for file in "$@"; do
  case $file in
    '' | *.a) continue ;; # not built, or no file that links
  esac
  needed=$(readelf -d "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
  if [ -z "$needed" ]; then
    echo "$file: it needs no library at all, which cannot be"
    status=1
  fi
  for library in $(echo "$needed" | grep -iE 'fftw|cufft|libcuda\.so'); do
    echo "$file: it links $library"
    status=1
  done
done
[ $status -eq 0 ] && echo 'Links: neither FFTW nor cuFFT nor the driver.'
exit $status
