# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Rows of benchmark/results for the scripts beside this one, boxes of arrays, and processes that are timed."""
import csv
import datetime
import itertools
import os
import shutil
import subprocess
import sys
import time

COLUMNS = "device,date,commit,capability,row,ours,unit,peer,peer_name,limit,limit_name,target".split(",")
DEVICE = os.environ.get("CHUNKWISE_BENCHMARK_DEVICE", "CPU")


def make_row(capability, row, ours, *rest, device=DEVICE):
    """`ours` as text; `rest`: the columns after it."""
    return [device, datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
            os.environ.get("CHUNKWISE_BENCHMARK_COMMIT", ""), capability, row, ours, *rest]


def write_rows(path, rows):
    """Writes a table, if a path is given."""
    if path:
        with open(path, "w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows([COLUMNS, *rows])


def boxes_of(shape, extent):
    """The boxes of this extent that an array is made of, as slices."""
    for corner in itertools.product(*(range(0, n, step) for n, step in zip(shape, extent))):
        yield tuple(slice(at, min(at + step, n)) for at, n, step in zip(corner, shape, extent))


def measure(words, output):
    """Seconds of a process, seconds of processors, MiB at most, and what it printed. Removes the folder `output`."""
    begin = time.monotonic()
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    printed = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{words}: {process.returncode}")
    seconds = time.monotonic() - begin
    if output:
        shutil.rmtree(output)
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, printed.strip()
