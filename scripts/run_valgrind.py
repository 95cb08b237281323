#!/usr/bin/env python3
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Runs the program under valgrind's memcheck: every subcommand once, every format written and read, damaged files.

Usage: run_valgrind.py PROGRAM. Each command must end with its usual status and without an error of memory. Errors within
other libraries are reported too: leaks are not.
"""
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "test" / "program"))

from adversary import support  # noqa: E402

FOUND = 86


def check(name, arguments, may_fail=False):
    command = ["valgrind", "-q", f"--error-exitcode={FOUND}", "--fair-sched=yes", support.PROGRAM, *map(str, arguments)]
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=900)
    allowed = (0, 1, 2) if may_fail else (0,)
    if result.returncode in allowed and "==" + "ERROR" not in result.stderr:
        print("ok", name, flush=True)
        return True
    print("FAILED", name, "with", result.returncode, flush=True)
    print(result.stderr[-4000:], flush=True)
    return False


def commands(folder):
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
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    support.PROGRAM = str(Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as folder:
        failed = [name for name, arguments, may_fail in commands(Path(folder)) if not check(name, arguments, may_fail)]
    print(len(failed), "failed:", *failed)
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
