#!/usr/bin/env python3
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Runs the program under valgrind's memcheck: every subcommand once, every format written and read, the seeds of the tests
with damaged files and some of their mutants.

Usage: run_valgrind.py PROGRAM [PATTERN [FORMATS]]. Each command whose name has the regular expression must end with its
usual status and without an error of memory, in the program and in FORMATS, the program ChunkwiseFormats that it starts for
HDF5 and DICOM. Errors within other libraries are reported too; leaks are not.
"""
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "test" / "program"))

from adversary import support  # noqa: E402

MUTANTS = 2
FORMATS = None


def check(name, arguments, may_fail=False):
    with tempfile.TemporaryDirectory() as folder:
        logs = Path(folder) / "logs"
        logs.mkdir()
        valgrind = ["valgrind", "-q", "--fair-sched=yes", f"--log-file={logs}/%p"]
        # Another valgrind watches the process that reads HDF5 and DICOM.
        formats = Path(folder) / "formats"
        formats.write_text(f'#!/bin/sh\nexec {" ".join(valgrind)} {FORMATS} "$@"\n')
        formats.chmod(0o755)
        result = subprocess.run([*valgrind, support.PROGRAM, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True, errors="replace", timeout=900,
                                env={**os.environ, **({"CHUNKWISE_FORMATS_MODULE": str(formats)} if FORMATS else {})})
        said = "".join(log.read_text(errors="replace") for log in sorted(logs.iterdir()))
    # Remarks on large mappings are no errors.
    errors = [line for line in said.splitlines() if not re.search(r"==\d+== (Warning: set address range|\s*$)", line)]
    allowed = (0, 1, 2) if may_fail else (0,)
    if result.returncode in allowed and not errors:
        print("ok", name, "with", result.returncode, flush=True)
        return True
    print("FAILED", name, "with", result.returncode, flush=True)
    print("\n".join(errors)[:6000], result.stderr[-1000:], sep="\n", flush=True)
    return False


def commands(folder):
    from adversary.mutants import Mutants, mutate
    from adversary.subcommands import OTHERS, REQUIRED, Inputs
    inputs = Inputs(folder, size=(9, 8, 7))
    for name, options in REQUIRED.items():
        yield name, [name, inputs.path, folder / f"{name}.mha", "--threads", 2, *inputs.arguments(options)], False
        yield (name + " in blocks",
               [name, inputs.path, folder / f"{name}2.mha", "--divisions", 3, *inputs.arguments(options)], True)
    for ending in support.written_formats():
        file = folder / f"written.{ending.lstrip('.')}"
        yield "write " + ending, ["identity", inputs.path, file], True
        yield "read " + ending, ["identity", file, folder / "read.mha"], True
        yield "read a damaged " + ending, ["identity", damaged(file), folder / "read.mha"], True
    mutants = Mutants()
    mutants.folder = folder
    for seed in mutants.seeds():
        yield "read the seed " + seed.name, ["identity", seed, folder / "read.mha"], False
        content = seed.read_bytes()
        for number in range(MUTANTS):
            seed.write_bytes(mutate(content, number, seed.name))
            yield f"read mutant {number} of {seed.name}", ["identity", seed, folder / "read.mha"], True
        seed.write_bytes(content)
    yield "statistics", ["statistics", inputs.path], False
    labels = folder / "label.mha"
    yield "measure", ["measure", labels, inputs.path, "--quantiles", "0.5", "--contacts", folder / "contacts.csv"], False
    yield "filter-labels", ["filter-labels", labels, folder / "kept.mha", "--min-size", 2, "--relabel"], False
    for name in OTHERS:
        if name not in ("statistics", "measure", "filter-labels", "plan", "network-info", "completion"):
            yield name, [name], True


def damaged(file):
    other = file.with_name("damaged" + "".join(file.suffixes))
    content = bytearray(file.read_bytes() if file.exists() else b"")
    for at in range(40, len(content), 97):
        content[at] ^= 0x11
    other.write_bytes(content[: max(1, len(content) - 5)])
    return other


def main():
    global FORMATS
    if len(sys.argv) not in (2, 3, 4):
        sys.exit(__doc__)
    pattern = sys.argv[2] if len(sys.argv) > 2 else ""
    FORMATS = Path(sys.argv[3]).resolve() if len(sys.argv) > 3 else None
    support.PROGRAM = str(Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as folder:
        ended = {}
        # One after the other: each command's files are made just before it.
        for name, arguments, may_fail in commands(Path(folder)):
            if re.search(pattern, name):
                ended[name] = check(name, arguments, may_fail)
    failed = [name for name, is_well in ended.items() if not is_well]
    print(len(ended), "commands,", len(failed), "failed:", *failed)
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
