#!/bin/sh
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
#
# Compares the sources with what clang-format makes of them. The settings are for version 19 alone: other versions
# format differently. Exit status 77: skipped, it is not installed.
set -u
cd "$(dirname "$0")/.." || exit 2
if ! command -v clang-format-19 >/dev/null; then
  echo 'Skipped: clang-format-19 is not installed.'
  exit 77
fi
find include src cuda test program examples benchmark python fuzz -type f \
  \( -name '*.h' -o -name '*.hxx' -o -name '*.cxx' -o -name '*.cu' -o -name '*.cuh' \) -print0 |
  xargs -0 clang-format-19 --dry-run --Werror --style=file
