#!/bin/sh
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
#
# Runs the tests that need parts of 3D Slicer (label slicer): installs them from PyPI into an environment of Python below
# the build folder, about 1 GB. Usage: run_slicer_tests.sh BUILD
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "${1:?usage: run_slicer_tests.sh BUILD}" && pwd)
environment=$build/slicer-environment
if ! "$environment/bin/python" -c 'import slicer_core, ctk_cli, pytest, PySide6' 2>/dev/null; then
  python3 -m venv --clear "$environment"
  "$environment/bin/pip" install -q --disable-pip-version-check -r "$root/test/slicer/requirements.txt"
fi
cd "$build"
exec ctest -L slicer --output-on-failure
