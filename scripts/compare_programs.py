#!/usr/bin/env python3
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Runs every filter with two builds of the program and compares the bytes of their results.

    compare_programs.py PROGRAM COMMAND...

COMMAND starts the other build, for example one for another processor: qemu-aarch64 -L /usr/aarch64-linux-gnu chunkwise. Each
filter runs over images of four pixel types. Both builds must refuse the same ones. Filters through Fourier transforms and networks promise
a bound, not bits: their voxels may differ by 0.0001 of the largest one. The exit status is 1 if a result differs by more.
"""
import concurrent.futures as futures
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
KINDS = ("uint8", "int16", "float32", "float64")
# They promise the same bits on one processor.
DECONVOLUTIONS = ("deconvolve", "deconvolve-varying")


def run(command, name, options, inputs, out):
    done = subprocess.run([*command, name, inputs.path, out, *inputs.arguments(options), "--quiet"], capture_output=True, text=True,
                          check=False)
    return done.returncode, out.read_bytes() if done.returncode == 0 else done.stderr


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.path.insert(0, str(ROOT / "test/program"))
    from adversary import support
    support.PROGRAM = sys.argv[1]
    from adversary import subcommands
    bounded = {*DECONVOLUTIONS, *(name for name, row in subcommands.table().items() if not row["promisesBits"])}
    counts = {"equal": 0, "close": 0, "refused": 0, "different": 0}

    def compare(folder, inputs, name, options):
        ours, theirs = (run(command, name, options, inputs, folder / f"{name}-{number}.mha")
                        for number, command in enumerate(([sys.argv[1]], sys.argv[2:])))
        if ours == theirs:
            counts["refused" if ours[0] else "equal"] += 1
            return
        if name in bounded and ours[0] == theirs[0] == 0:
            images = [support.read(folder / f"{name}-{number}.mha").values for number in (0, 1)]
            if max(abs(a - b) for a, b in zip(*images)) <= 0.0001 * max(map(abs, images[0])):
                counts["close"] += 1
                return
        counts["different"] += 1
        print(f"{name} of {folder.name} differs:", *(each[1][-200:] if each[0] else f"{len(each[1])} bytes" for each in (ours, theirs)),
              flush=True)

    with tempfile.TemporaryDirectory() as root, futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        calls = []
        for kind in KINDS:
            folder = pathlib.Path(root) / kind
            folder.mkdir()
            inputs = subcommands.Inputs(folder, (21, 18, 13), kind)
            calls += [pool.submit(compare, folder, inputs, name, options) for name, options in subcommands.REQUIRED.items()]
        for call in calls:
            call.result()
    print(f"{counts['equal']} results have the same bytes, {counts['close']} of filters that promise a bound are close, "
          f"{counts['refused']} runs are refused by both builds, {counts['different']} results differ")
    sys.exit(bool(counts["different"]))


if __name__ == "__main__":
    main()
