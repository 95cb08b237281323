#!/bin/sh
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
#
# Lies in the bundle that make_gpu_bundle.sh builds. Runs the GPU tests, then the same under each tool of
# compute-sanitizer, then the benchmarks and, where CuPy and torch are installed, theirs; these leave their figures in
# results/, for benchmarks.py --add. The exit status says whether everything passed. Environment:
#   CHUNKWISE_STEPS             which of "tests sanitizer benchmarks devices" to run (all but the last, which compares one
#                               device with several, from 32 GiB of the host's memory)
#   CHUNKWISE_SANITIZER_FILTER  --gtest_filter of the sanitizer runs (*): these are slow
#   CHUNKWISE_SANITIZER_TOOLS   (memcheck racecheck initcheck synccheck)
#   CHUNKWISE_FORCE_PTX         1: the driver compiles all kernels from PTX, as where a GPU is newer than the bundle; which
#                               needs PTX (CHUNKWISE_CUDA_ARCHITECTURES=75-virtual of make_gpu_bundle.sh), and minutes more
set -u
cd "$(dirname "$0")" || exit 2
steps=${CHUNKWISE_STEPS:-tests sanitizer benchmarks}
tools=${CHUNKWISE_SANITIZER_TOOLS:-memcheck racecheck initcheck synccheck}
filter=${CHUNKWISE_SANITIZER_FILTER:-*}
failed=
if [ "${CHUNKWISE_FORCE_PTX:-0}" = 1 ]; then
  # All compiled code is kept for the programs after it.
  export CUDA_FORCE_PTX_JIT=1 CUDA_CACHE_MAXSIZE="${CUDA_CACHE_MAXSIZE:-4294967296}"
fi

# check NAME COMMAND...: runs it and keeps the name if it fails.
check() {
  name=$1
  shift
  echo "== $name"
  if ! "$@"; then
    failed="$failed
  $name"
  fi
}

# A machine without a GPU would pass by skipping every test.
if ! nvidia-smi -L; then
  echo "run_gpu_tests.sh: no GPU here" >&2
  exit 1
fi

for step in $steps; do
  case $step in
    tests)
      for program in bin/*_test; do
        check "$program" "$program" --gtest_brief=1
      done
      ;;
    sanitizer)
      sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null)
      if [ -z "$sanitizer" ]; then
        check "compute-sanitizer is not installed" false
        continue
      fi
      for tool in $tools; do
        for program in bin/*_test; do
          check "$tool $program" "$sanitizer" --tool "$tool" --error-exitcode 86 "$program" --gtest_brief=1 \
            "--gtest_filter=$filter"
        done
      done
      ;;
    benchmarks)
      mkdir -p results
      # The commit that the bundle was built from.
      CHUNKWISE_BENCHMARK_COMMIT=${CHUNKWISE_BENCHMARK_COMMIT:-$(cat commit 2>/dev/null)}
      export CHUNKWISE_BENCHMARK_COMMIT
      for program in bin/*_benchmark; do
        case $program in
          *cpu_benchmark) ;;
          *) check "$program" timeout 600 "$program" --csv "results/$(basename "$program").csv" ;;
        esac
      done
      # Tiles of a table wait for each other: that a wait never ends shows, if at all, in one of some thousand tables.
      for run in 1 2 3 4 5 6 7 8 9; do
        check "tables, run $run" timeout 60 bin/chunkwise_sat_benchmark alone
      done
      if command -v python3 >/dev/null; then
        for peers in gpu_peers varying_peers; do
          check $peers.py python3 $peers.py --csv results/$peers.csv
        done
        mkdir -p images
        check "images of filters" bin/chunkwise_filter_benchmark --images images
        check filter_peers.py python3 filter_peers.py images --csv results/filter_peers.csv
        rm -r images
      fi
      ;;
    devices)
      mkdir -p results
      { lscpu; numactl --hardware; nvidia-smi topo -m; } >results/machine.txt 2>&1
      check "one device beside all" timeout 600 bin/chunkwise_gpu_benchmark large-links large-copies large large-table \
        large-convolution large-pinned large-table-pinned --csv results/devices.csv
      check "reconstruction on two devices" timeout 300 bin/chunkwise_large_reconstruction_benchmark 51200 2048 0 4 3 0 \
        --csv results/devices-reconstruction.csv
      ;;
    *)
      check "$step is no step" false
      ;;
  esac
done

if [ -n "$failed" ]; then
  echo "FAILED:$failed"
  exit 1
fi
echo "All passed."
