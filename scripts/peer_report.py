# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Prints the times of peers and, with --csv FILE, writes them in the columns of benchmark/results, without ours:
benchmarks.py --add takes that from the benchmark's row of the same name."""

import argparse
import csv
import datetime
import os

COLUMNS = "device,date,commit,capability,row,ours,unit,peer,peer_name,limit,limit_name,target".split(",")


def parse_arguments(description, name, **of_values):
    """The arguments: --csv, and any number of values."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(name, nargs="*", **of_values)
    parser.add_argument("--csv", metavar="FILE")
    return parser.parse_args()


class PeerReport:
    def __init__(self, path, device):
        self.device = os.environ.get("CHUNKWISE_BENCHMARK_DEVICE") or device
        today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
        self.date = os.environ.get("CHUNKWISE_BENCHMARK_DATE") or today
        self.commit = os.environ.get("CHUNKWISE_BENCHMARK_COMMIT", "")
        self.file = open(path, "w", newline="", encoding="utf-8") if path else None
        if self.file:
            csv.writer(self.file, lineterminator="\n").writerow(COLUMNS)

    def add(self, capability, row, milliseconds, peer, note=""):
        print(f"{row:68} {milliseconds:10.4g} ms  {peer}  {note}".rstrip(), flush=True)
        if self.file:
            fields = [self.device, self.date, self.commit, capability, row, "", "ms", f"{milliseconds:.4g}", peer]
            csv.writer(self.file, lineterminator="\n").writerow([*fields, "", "", ""])
            self.file.flush()
