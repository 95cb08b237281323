#!/usr/bin/env python3
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""The tables that scripts/benchmarks.py makes of results, and the results that it refuses: benchmarksTest.py
scripts/benchmarks.py."""
import csv
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = sys.argv.pop(1)
COLUMNS = ["device", "date", "commit", "capability", "row", "ours", "unit", "peer", "peer_name", "limit", "limit_name",
           "target"]
GOOD = ["A GPU", "2026-11-21", "0faa902", "window", "mean, radius 2; 512^3 float32", "0.5", "ms", "4", "CuPy", "0.25",
        "device copy", "1.2"]


class BenchmarksTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)
        (self.root / "benchmark" / "results").mkdir(parents=True)
        (self.root / "docs").mkdir()

    def write(self, *rows, path="benchmark/results/window.csv"):
        with open(self.root / path, "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([COLUMNS, *rows])

    def run_script(self, *arguments):
        return subprocess.run([sys.executable, SCRIPT, "--root", self.root, *arguments], capture_output=True, text=True)

    def page(self):
        done = self.run_script()
        self.assertEqual(done.returncode, 0, done.stderr)
        return (self.root / "docs" / "benchmarks.md").read_text(encoding="utf-8")

    def changed(self, **fields):
        return [fields.get(name, value) for name, value in zip(COLUMNS, GOOD)]

    def test_a_line_has_ours_both_ratios_and_whether_the_target_is_met(self):
        self.write(GOOD)
        self.assertIn("| mean, radius 2 | 512^3 float32 | 0.5 ms | 8 (CuPy) | 2 (device copy) | 1.2 ms: met |",
                      self.page())

    def test_a_line_shows_the_case_that_misses_its_target(self):
        self.write(GOOD, self.changed(row="mean, radius 2; 512^3 uint16", ours="2", peer="", peer_name=""))
        self.assertIn("| mean, radius 2 | 512^3 uint16 (of 2) | 2 ms | 8 (CuPy) | 8 (device copy) | "
                      "1.2 ms: **missed** (1 of 2 met) |", self.page())

    def test_targets_are_relative_to_peer_and_limit_too(self):
        verdicts = {"peer/8": "met", "peer/9": "**missed**", "limit*2": "met", "limit*1.9": "**missed**"}
        for target, verdict in verdicts.items():
            self.write(self.changed(target=target))
            self.assertIn(f": {verdict} |", self.page(), target)

    def test_of_rates_more_is_better(self):
        self.write(self.changed(unit="GB/s", ours="40", limit="50", target="limit*0.7", peer="", peer_name=""))
        self.assertIn("| 40 GB/s |  | 0.8 (device copy) | 0.7 x limit: met |", self.page())

    def test_a_range_counts_as_its_middle(self):
        self.write(self.changed(limit="0.2..0.3"))
        self.assertIn("| 2 (device copy) |", self.page())

    def test_what_cannot_be_used_is_refused_with_its_line(self):
        for field, value in (("ours", "fast"), ("ours", ""), ("ours", "-1"), ("ours", "nan"), ("peer", "1..2..3"),
                             ("limit", "3..2"), ("unit", "fortnights"), ("date", "21.11.2026"), ("date", "2026-13-01"),
                             ("date", "20261121"), ("commit", "main"), ("capability", "rank"), ("row", "mean"),
                             ("target", "soon"), ("target", "peer-1"), ("peer_name", ""), ("device", "")):
            with self.subTest(field=field, value=value):
                self.write(self.changed(row="another; one"), self.changed(**{field: value}))
                done = self.run_script()
                self.assertNotEqual(done.returncode, 0)
                self.assertIn("window.csv:3:", done.stderr)
                self.assertNotIn("Traceback", done.stderr)

    def test_other_columns_a_short_row_a_row_twice_and_an_unknown_file_are_refused(self):
        self.write(GOOD[:-1])
        self.assertIn("window.csv:2:", self.run_script().stderr)
        self.write(GOOD, GOOD)
        self.assertIn("twice", self.run_script().stderr)
        (self.root / "benchmark/results/window.csv").write_text("device,date\n", encoding="utf-8")
        self.assertIn("columns", self.run_script().stderr)
        self.write()
        self.write(GOOD, path="benchmark/results/windows.csv")
        self.assertIn("windows", self.run_script().stderr)

    def test_check_fails_when_the_page_is_not_that_of_the_results(self):
        self.write(GOOD)
        self.page()
        self.assertEqual(self.run_script("--check").returncode, 0)
        self.write(self.changed(ours="0.51"))
        self.assertNotEqual(self.run_script("--check").returncode, 0)

    def test_a_new_row_replaces_that_of_the_same_name_and_keeps_its_target(self):
        self.write(GOOD)
        self.write(self.changed(date="2026-12-01", ours="0.4", target=""),
                   self.changed(row="new; one", capability="rank"), path="new.csv")
        self.assertEqual(self.run_script("--add", str(self.root / "new.csv")).returncode, 0)
        page = (self.root / "docs" / "benchmarks.md").read_text(encoding="utf-8")
        self.assertIn("| 0.4 ms | 10 (CuPy) | 1.6 (device copy) | 1.2 ms: met |", page)
        self.assertIn("| new | one |", page)
        self.assertEqual(self.run_script("--check").returncode, 0)

    def test_a_peers_row_takes_ours_from_the_row_of_the_same_name(self):
        self.write(GOOD)
        self.write(self.changed(ours="0.4", peer="", peer_name="", target=""), path="ours.csv")
        self.write(self.changed(ours="", peer="6", limit="", limit_name="", target=""), path="peer.csv")
        new = [str(self.root / name) for name in ("peer.csv", "ours.csv")]
        self.assertEqual(self.run_script("--add", *new).returncode, 0)
        page = (self.root / "docs" / "benchmarks.md").read_text(encoding="utf-8")
        self.assertIn("| 0.4 ms | 15 (CuPy) | 1.6 (device copy) | 1.2 ms: met |", page)
        self.assertIn("without ours", self.run_script("--add", new[0]).stderr)

    def test_of_a_row_that_a_benchmark_wrote_twice_the_later_counts(self):
        self.write(GOOD)
        self.write(self.changed(ours="0.6"), self.changed(ours="0.4"), path="new.csv")
        self.assertEqual(self.run_script("--add", str(self.root / "new.csv")).returncode, 0)
        self.assertIn("| 0.4 ms |", (self.root / "docs" / "benchmarks.md").read_text(encoding="utf-8"))


unittest.main()
