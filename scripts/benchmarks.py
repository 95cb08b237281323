#!/usr/bin/env python3
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Makes docs/benchmarks.md from benchmark/results/*.csv.

    benchmarks.py               writes the page
    benchmarks.py --check       says whether the page is what it would write, and every row parses
    benchmarks.py --add FILE... takes rows that benchmarks wrote with --csv into the results: each replaces the row of
                                the same device, name and peer, and keeps its target. Rows of peers alone, without
                                ours, take that of the row of the same name in these files. Then writes the page

A row's name is "what is computed; sizes and kind". Figures are numbers or ranges such as 3.6..4.5. A target is the most
(of rates: the least) that ours may be: a number in the row's unit, or relative as in peer/15 or limit*1.3.
"""
import argparse
import csv
import datetime
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
COLUMNS = ["device", "date", "commit", "capability", "row", "ours", "unit", "peer", "peer_name", "limit", "limit_name",
           "target"]
# Whether less is better. "1" are pure numbers, such as errors; "ratio" is over something that the row names.
LESS_IS_BETTER = {"s": True, "ms": True, "us": True, "ns": True, "GB": True, "MB": True, "MiB": True, "1": True,
                  "ratio": True, "%": False, "GB/s": False, "Mvoxel/s": False}
CAPABILITIES = {
    "window": "Windows: means, extrema, deviations",
    "rank": "Ranks",
    "convolution": "Convolutions",
    "deconvolution": "Deconvolution",
    "reconstruction": "Morphological reconstruction",
    "table": "Summed-area tables and statistics of boxes",
    "statistics": "Statistics and histograms",
    "objects": "Objects: components, distances, thresholds",
    "derivatives": "Derivatives",
    "enhancement": "Enhancement",
    "resampling": "Resampling",
    "network": "Networks",
    "host-to-host": "Host to host",
    "file-to-file": "File to file",
    "array": "Arrays from Python",
    "cpu": "CPU",
}
NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?")
TARGET = re.compile(r"(peer|limit)([*/])([0-9]+(?:\.[0-9]+)?)")
PAGE = """# Benchmarks

`scripts/benchmarks.py` makes this page from [benchmark/results](../benchmark/results), which holds every figure with
its device, date and commit. Attempts and their results: [notes](notes).

* Ours and the peer run one after the other on the same image and machine. A figure is the median of several repetitions
  after one that warms up; on a CPU that others use, the best of several.
* On the GPU images lie in the device's memory, ten launches between two synchronizations, unless it says "host to
  host": from pageable memory to pageable memory, everything included but the first use of the device.
* The limit is what cannot be beaten: a copy of the image on that device, or its bytes over the measured link.
* Images are uniformly random unless a row says otherwise: `ch2` and `ch2better` are the T1 brain volumes of Debian's
  package `mricron-data`, smoothed noise is what reconstructions get.
* The tests check the results; they run on the same machine before the benchmarks.

A line is a computation, its figure that of the hardest case: the nearest to its target, or beyond it. *Peer* says how
many times as fast as the peer ours is, *Limit* how many times the limit it takes (of rates the part that it reaches),
each in the worst of the cases. A target of "15 x peer" is to be 15 times as fast; one of "1.3 x limit" is to take at
most 1.3 times as long. Figures with nothing to compare them with are in the CSV files alone.

To repeat: `scripts/make_gpu_bundle.sh` makes a folder whose `run_gpu_tests.sh` runs the benchmarks on a machine with a
GPU and writes their rows to `results/`; `scripts/run_tests.sh` builds those of the CPU, each of which takes
`--csv FILE`. `scripts/benchmarks.py --add FILE...` takes such rows in.
"""


class BadRow(Exception):
    pass


def figure(text):
    """A number, or the middle of a range."""
    parts = text.split("..")
    if len(parts) > 2 or not all(NUMBER.fullmatch(part) for part in parts):
        raise BadRow(f"{text!r} is no figure")
    ends = [float(part) for part in parts]
    if not 0 < ends[0] <= ends[-1] < float("inf"):
        raise BadRow(f"{text!r} is no figure above 0")
    return sum(ends) / len(ends)


def check_row(row, capability):
    """Raises BadRow unless the row, a dictionary by COLUMNS, can be used."""
    if row["capability"] != capability:
        raise BadRow(f"capability {row['capability']!r} in {capability}.csv")
    for name in ("device", "date", "row", "ours", "unit"):
        if not row[name]:
            raise BadRow(f"no {name}")
    if not re.fullmatch(r"[^;|]+; [^;|]+", row["row"]):
        raise BadRow(f"the name {row['row']!r} is not 'what; sizes and kind'")
    try:
        if datetime.date.fromisoformat(row["date"]).isoformat() != row["date"]:
            raise ValueError
    except ValueError:
        raise BadRow(f"{row['date']!r} is no ISO date") from None
    if not re.fullmatch(r"([0-9a-f]{7,40})?", row["commit"]):
        raise BadRow(f"{row['commit']!r} is no commit")
    if row["unit"] not in LESS_IS_BETTER:
        raise BadRow(f"unit {row['unit']!r} is not known")
    figure(row["ours"])
    for name in ("peer", "limit"):
        if row[name]:
            figure(row[name])
        if bool(row[name]) != bool(row[name + "_name"]):
            raise BadRow(f"{name} and its name go together")
    if row["target"]:
        bound_of(row)


def bound_of(row):
    """The row's target, in its unit."""
    relative = TARGET.fullmatch(row["target"])
    if not relative:
        return figure(row["target"])
    if not row[relative[1]]:
        raise BadRow(f"target {row['target']!r} without a {relative[1]}")
    base, factor = figure(row[relative[1]]), figure(relative[3])
    return base * factor if relative[2] == "*" else base / factor


def read_rows(path, capability=None):
    """The rows of a file: of results, where each is there once, or without a capability of benchmarks."""
    rows = []
    seen = set()
    with open(path, newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file, strict=True)
        if reader.fieldnames != COLUMNS:
            raise SystemExit(f"{path}: the columns are not {','.join(COLUMNS)}")
        for row in reader:
            try:
                if None in row or None in row.values():
                    raise BadRow("the number of fields differs from that of the columns")
                if row["capability"] not in CAPABILITIES:
                    raise BadRow(f"capability {row['capability']!r} is not known")
                if capability or row["ours"]:
                    check_row(row, capability or row["capability"])
                if capability and key_of(row) in seen:
                    raise BadRow("the row is there twice")
                seen.add(key_of(row))
            except BadRow as error:
                raise SystemExit(f"{path}:{reader.line_num}: {error}") from None
            rows.append(row)
    return rows


def key_of(row):
    return row["device"], row["row"], row["peer_name"]


def read_results(folder):
    unknown = {path.stem for path in folder.glob("*.csv")} - set(CAPABILITIES)
    if unknown:
        raise SystemExit(f"{folder}: no capability is called {', '.join(sorted(unknown))}")
    paths = {name: folder / f"{name}.csv" for name in CAPABILITIES}
    return {name: read_rows(path, name) for name, path in paths.items() if path.exists()}


def write_rows(path, rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def add(results, new):
    ours = {(row["device"], row["row"]): row["ours"] for row in new if row["ours"]}
    for row in new:
        same = (row["device"], row["row"])
        row = {**row, "ours": row["ours"] or ours.get(same, "")}
        if not row["ours"]:
            raise SystemExit(f"{row['row']} on {row['device']}: a peer's figure without ours")
        rows = results.setdefault(row["capability"], [])
        at = next((i for i, old in enumerate(rows) if key_of(old) == key_of(row)), None)
        if at is not None:
            row["target"] = row["target"] or rows[at]["target"]
        try:
            check_row(row, row["capability"])
        except BadRow as error:
            raise SystemExit(f"{row['row']}: {error}") from None
        if at is None:
            rows.append(row)
        else:
            rows[at] = row


def over(row, bound):
    """How many times as much as the bound ours takes; of rates how many times less it gives."""
    ours = figure(row["ours"])
    return ours / bound if LESS_IS_BETTER[row["unit"]] else bound / ours


def is_met(row):
    """Figures have three digits, so that what is beyond is no miss."""
    return float(f"{over(row, bound_of(row)):.3g}") <= 1


def times_peer(row):
    return 1 / over(row, figure(row["peer"]))


def hardness(row):
    """The hardest of several rows has the largest: with a target before those without, then with a peer."""
    if row["target"]:
        return 3, over(row, bound_of(row))
    if row["peer"]:
        return 2, 1 / times_peer(row)
    if row["limit"]:
        return 1, over(row, figure(row["limit"]))
    return 0, 0


def ratio_text(value, name):
    return f"{value:.3g} ({name})" if value < 100 else f"{value:.0f} ({name})"


def target_text(row):
    relative = TARGET.fullmatch(row["target"])
    if not relative:
        return row["target"] if row["unit"] == "1" else f"{row['target']} {row['unit']}"
    if relative[1] == "peer" and relative[2] == "*":
        return f"{relative[3]} x the peer's time"
    return f"{relative[3]} x {relative[1]}"


def line_of(what, rows):
    """A line of a table: the hardest case of a computation, and what is worst of all its cases."""
    hardest = max(rows, key=hardness)
    cases = len({row["row"] for row in rows})
    case = hardest["row"].split("; ")[1] + (f" (of {cases})" if cases > 1 else "")
    ours = hardest["ours"].replace("..", " to ") + ("" if hardest["unit"] == "1" else f" {hardest['unit']}")
    # The first of several peers of a case.
    main = {}
    for row in rows:
        if row["peer"]:
            main.setdefault(row["row"], row)
    peer = min(main.values(), key=times_peer, default=None)
    limit = max((row for row in rows if row["limit"]), key=lambda row: over(row, figure(row["limit"])), default=None)
    with_target = [row for row in rows if row["target"]]
    target = ""
    if with_target:
        met = sum(map(is_met, with_target))
        target = f"{target_text(hardest)}: {'met' if is_met(hardest) else '**missed**'}"
        if 0 < met < len(with_target):
            target += f" ({met} of {len(with_target)} met)"
    return "| " + " | ".join([
        what, case, ours,
        ratio_text(times_peer(peer), peer["peer_name"]) if peer else "",
        ratio_text(figure(limit["ours"]) / figure(limit["limit"]), limit["limit_name"]) if limit else "",
        target,
    ]) + " |"


def table_of(rows):
    """The lines of a capability's table: for each device, each computation that has something to be compared with."""
    devices = {}
    for row in rows:
        if hardness(row)[0] > 0:
            what = row["row"].split("; ")[0]
            devices.setdefault(row["device"], {}).setdefault(what, []).append(row)
    lines = ["| | Case | Ours | Peer | Limit | Target |", "|---|---|---|---|---|---|"]
    for device, computations in devices.items():
        lines.append(f"| **{device}** | | | | | |")
        lines += [line_of(what, cases) for what, cases in computations.items()]
    return lines


def make_page(results):
    lines = PAGE.splitlines()
    for capability, rows in results.items():
        with_target = [row for row in rows if row["target"]]
        met = sum(is_met(row) for row in with_target)
        dates = sorted({row["date"] for row in rows})
        span = dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"
        lines += ["", f"## {CAPABILITIES[capability]}", "",
                  f"{met} of {len(with_target)} targets met. {len(rows)} figures of {span}: "
                  f"[{capability}.csv](../benchmark/results/{capability}.csv).", "", *table_of(rows)]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; status 1 if the page is not up to date")
    parser.add_argument("--add", nargs="+", metavar="FILE", default=[], help="rows to take into the results")
    parser.add_argument("--root", type=pathlib.Path, default=ROOT, help="the folder with benchmark/results and docs")
    options = parser.parse_args()
    folder = options.root / "benchmark" / "results"
    page = options.root / "docs" / "benchmarks.md"
    results = read_results(folder)
    if options.check:
        if page.read_text(encoding="utf-8") != make_page(results):
            sys.exit(f"{page} is not what {folder} says: run scripts/benchmarks.py")
        print(f"{page}: made from {sum(map(len, results.values()))} figures")
        return
    if options.add:
        add(results, [row for path in options.add for row in read_rows(path)])
        for capability, rows in results.items():
            write_rows(folder / f"{capability}.csv", rows)
        results = read_results(folder)
    page.write_text(make_page(results), encoding="utf-8")


if __name__ == "__main__":
    main()
