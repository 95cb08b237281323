#!/bin/sh
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
#
# Runs all tests of the Python package, with the large packages that ctest does without: itk, SimpleITK, torch, xarray,
# Ray, MPI, napari.
# They take some 3 GB below the build folder. Usage: run_python_tests.sh BUILD_DIR [pytest's arguments]; the engine in
# BUILD_DIR is built already. Qt needs Debian's libegl1, libgl1 and libxkbcommon0, and no screen.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
build=$1
shift
exec python3 "$root/python/tests/run.py" "$build" "$build/python-all" itk SimpleITK xarray torch distributed mpi4py \
  mpich ray tensorstore napari PyQt6 -- "$@"
