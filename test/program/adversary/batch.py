# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""--out: several images in one process; finished results are left alone, and nothing stale is treated as finished."""
import json
import os
import re
import shutil
import signal
import subprocess
import time

from adversary import support
from adversary.subcommands import Inputs
from adversary.support import HANGS, Image, ProgramTest, files_of, noise, read, run, write

# Files that were changed a moment ago are computed again.
GRAIN = 2.1


class Batch(ProgramTest):
    def setUp(self):
        super().setUp()
        self.sources = self.folder / "in"
        self.results = self.folder / "out"
        self.sources.mkdir()
        for i, name in enumerate(("a.mha", "b.c.mha", "d.mha")):
            write(self.sources / name, noise((7, 6, 5), "int16", i + 1))
        self.pattern = str(self.sources / "*.mha")

    def words(self, *more, out=None):
        return ("median", self.pattern, "--out", out or self.results / "{stem}.mha", "--radius=1", *more)

    def states(self, *words):
        """The states of all images, in order, and the exit status."""
        result = run(*words, "--json")
        files = json.loads(result.stdout)["files"]
        return [f["status"] for f in files], result

    def expected(self, name, *options):
        self.assert_runs("median", self.sources / name, self.out, *(options or ("--radius=1",)))
        return read(self.out).values

    def test_all_are_what_one_by_one_gives(self):
        result = self.assert_runs(*self.words())
        self.assertEqual((result.stdout, result.stderr), ("", ""))
        for name in ("a.mha", "b.c.mha", "d.mha"):
            self.assertEqual(read(self.results / name).values, self.expected(name))
        images = sorted(self.sources.iterdir())
        other = self.folder / "other"
        # As a shell expands it, with one file twice, and a word that is a file and would be a pattern too.
        odd = write(self.sources / "[x]*.mha", noise((7, 6, 5), "int16", 9))
        self.assert_runs("median", *images, images[0], odd, "--out", other / "{parent}-{name}", "--radius=1")
        self.assertEqual(sorted(p.name for p in other.glob("*.mha")),
                         sorted("in-" + p.name for p in [*images, odd]))
        self.assert_runs("sequence", self.pattern, "--out", self.folder / "s-{stem}.nii.gz", "--step", "median --radius 1")
        self.assertTrue((self.folder / "s-b.c.nii.gz").exists())

    def test_what_fails_is_told_and_the_others_go_on(self):
        (self.sources / "b.c.mha").write_bytes((self.sources / "b.c.mha").read_bytes()[:-20])
        (self.sources / "c.mha").write_text("no image")
        write(self.sources / "e.mha", noise((9, 8), "int16", 4))
        result = run(*self.words("--axes=0,1,2"))
        self.assertEqual(result.returncode, 1, str(result))
        lines = result.stderr.splitlines()
        self.assertEqual(len(lines), 4, str(result))
        for line, name in zip(lines, ("b.c.mha", "c.mha", "e.mha", "3 of 5")):
            self.assertIn(name, line)
        self.assertEqual(sorted(p.name for p in self.results.glob("*.mha")), ["a.mha", "d.mha"])
        states, result = self.states(*self.words("--axes=0,1,2"))
        self.assertEqual(result.returncode, 1)
        self.assertEqual(states.count("failed"), 3)

    def test_what_is_done_is_left_alone(self):
        time.sleep(GRAIN)
        self.assertEqual(self.states(*self.words())[0], ["done"] * 3)
        stamps = [os.stat(p).st_mtime_ns for p in sorted(self.results.glob("*.mha"))]
        states, result = self.states(*self.words())
        self.assertEqual(result.returncode, 0)
        self.assertEqual(states, ["done before"] * 3)
        self.assertEqual([os.stat(p).st_mtime_ns for p in sorted(self.results.glob("*.mha"))], stamps)
        # Options that do not change a result may change.
        self.assertEqual(self.states(*self.words("--threads=1", "--divisions=2"))[0], ["done before"] * 3)
        self.assertEqual(self.states(*self.words("--redo"))[0], ["done"] * 3)

    def test_nothing_stale_is_taken_for_done(self):
        time.sleep(GRAIN)
        self.assert_runs(*self.words())
        first, second = self.results / "a.mha", self.results / "b.c.mha"

        def assert_again(which, *more):
            """These images are computed again, and are right then."""
            states, result = self.states(*self.words(*more))
            self.assertEqual(result.returncode, 0, str(result))
            self.assertEqual([i for i, s in enumerate(states) if s == "done"], which, str(result))
            for name in ("a.mha", "b.c.mha", "d.mha"):
                self.assertEqual(read(self.results / name).values, self.expected(name, "--radius=1", *more))

        # Other parameters, also earlier ones that come back.
        assert_again([0, 1, 2], "--boundary=mirror")
        assert_again([0, 1, 2])
        assert_again([0, 1, 2], "--output-type=float32")
        assert_again([0, 1, 2])
        # An input with other voxels, its size and its time as before.
        source = self.sources / "a.mha"
        stamp = os.stat(source)
        write(source, noise((7, 6, 5), "int16", 77))
        os.utime(source, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
        time.sleep(GRAIN)
        assert_again([0])
        # An input that another file replaced, with its time.
        write(self.folder / "new.mha", noise((7, 6, 5), "int16", 78))
        os.utime(self.folder / "new.mha", ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
        os.rename(self.folder / "new.mha", source)
        time.sleep(GRAIN)
        assert_again([0])
        # A result that was changed, cut, removed, or replaced.
        data = first.read_bytes()
        first.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
        second.write_bytes(second.read_bytes()[:-7])
        (self.results / "d.mha").unlink()
        assert_again([0, 1, 2])
        shutil.copy2(first, second)
        assert_again([1])
        # A record that was cut, or is of another image.
        records = self.results / ".chunkwise-done"
        (records / "a.mha.json").write_text((records / "a.mha.json").read_text()[:50])
        shutil.copy(records / "d.mha.json", records / "b.c.mha.json")
        assert_again([0, 1])
        assert_again([])

    def test_voxels_beside_headers_and_second_inputs_count(self):
        inputs = Inputs(self.folder)
        source = write(self.sources / "v.mhd", inputs.image, "v.raw")
        words = ("difference", source, "--out", self.results / "{stem}.mhd", "--minus", inputs.files["second"])
        time.sleep(GRAIN)
        self.assertEqual(self.states(*words)[0], ["done"])
        self.assertEqual(self.states(*words)[0], ["done before"])
        for change in (
            lambda: (self.sources / "v.raw").write_bytes((self.sources / "v.raw").read_bytes()[::-1]),
            lambda: write(inputs.files["second"], inputs.with_geometry(noise((14, 12, 11), "uint8", 55))),
            lambda: (self.results / "v.raw").write_bytes(bytes(os.path.getsize(self.results / "v.raw"))),
        ):
            change()
            time.sleep(GRAIN)
            self.assertEqual(self.states(*words)[0], ["done"])
            self.assertEqual(self.states(*words)[0], ["done before"])

    def test_files_of_numbers_and_grids_count(self):
        inputs = Inputs(self.folder)
        write(self.sources / "v.mha", inputs.image)
        matrix = self.folder / "matrix.txt"
        matrix.write_text("1 0 0 0.5\n0 1 0 0\n0 0 1 0\n")
        words = ("resample", self.sources / "v.mha", "--out", self.results / "{stem}.mha", "--affine", matrix, "--reference", inputs.files["second"])
        time.sleep(GRAIN)
        self.assertEqual(self.states(*words)[0], ["done"])
        self.assertEqual(self.states(*words)[0], ["done before"])
        for change in (
            lambda: matrix.write_text("1 0 0 1.5\n0 1 0 0\n0 0 1 0\n"),
            lambda: write(inputs.files["second"], noise((4, 3, 2), "uint8", 55)),
        ):
            change()
            time.sleep(GRAIN)
            self.assertEqual(self.states(*words)[0], ["done"])
            self.assertEqual(self.states(*words)[0], ["done before"])

    def test_an_input_that_was_changed_a_moment_ago_is_computed_again(self):
        write(self.sources / "a.mha", noise((7, 6, 5), "int16", 5))
        self.assert_runs(*self.words())
        self.assertEqual(self.states(*self.words())[0][0], "done")

    def test_wrong_command_lines_are_refused_before_work(self):
        a, b = self.sources / "a.mha", self.sources / "d.mha"
        for words, names in (
            (("median", a, b, "--radius=1", "--out", self.folder / "one.mha"), ("--out", "one name")),
            (("median", a, "--radius=1", "--out", a), ("--out", "replace")),
            (("median", a, b, "--radius=1", "--out", self.sources / "{name}"), ("--out", "replace")),
            (("median", a, "--radius=1", "--out", self.folder / "{what}.mha"), ("--out", "{what}", "{stem}")),
            (("median", self.folder / "*.none", "--radius=1", "--out", self.results / "{stem}.mha"), ("IN", "*.none")),
            (("median", a, b, self.out, "--radius=1"), ("--out", self.out.name)),
            (("median", a, self.out, "--radius=1", "--redo"), "--redo"),
            (("median", a, "--radius=1"), "OUT"),
            (("plan", "median", a, "--radius=1", "--out", self.results / "{stem}.mha"), "--out"),
            (("median", a, "--radius=1", "--out", self.results / "{stem}.mha", "--returnparameterfile=x"), "--returnparameterfile"),
            (("median", a, self.out, "--radius=1", "--json", "--progress=xml"), "--json"),
        ):
            with self.subTest(words=list(map(str, words))):
                self.assert_refused(*words, names=names, status=2)

    def test_memory_of_one_image_is_not_counted_again(self):
        """The second of two large images has as much memory as the first."""
        for name in ("l1", "l2", "l3"):
            support.write_sparse(self.sources / (name + ".mha"), (256, 256, 256), "float32")
        one = ("identity", self.sources / "l1.mha", self.out, "--divisions=1")
        needed = int(re.search(r"needs (\d+) MiB", run(*one, "--memory=1M").stderr).group(1))
        words = ("identity", str(self.sources / "l*.mha"), "--out", str(self.results / "{stem}.mha"), "--divisions=1",
                 f"--memory={needed + 16}M")
        states, result = self.states(*words)
        self.assertEqual(states, ["done"] * 3, str(result))
        peaks = [f["report"]["peakMemory"] for f in json.loads(result.stdout)["files"]]
        self.assertLess(max(peaks), needed + 16 << 20)

    def test_a_signal_ends_all(self):
        for i in range(6):
            support.write_sparse(self.sources / f"l{i}.mha", (128, 128, 128), "uint8")
        process = subprocess.Popen(
            [support.PROGRAM, "median", str(self.sources / "l*.mha"), "--out", str(self.results / "{stem}.mha"), "--radius=9",
             "--threads=1", "--divisions=64"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        end = time.monotonic() + HANGS
        while not list(self.results.glob(".l*")) and time.monotonic() < end:
            time.sleep(0.005)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate()
        self.assertEqual((process.returncode, error), (-signal.SIGINT, "chunkwise: interrupted\n"))
        self.assertLess(len(list(self.results.glob("*.mha"))), 6)
        self.assertEqual([f for f in files_of(self.results) if f.startswith(".l")], [])

    def test_json_of_everything(self):
        source = self.sources / "a.mha"
        report = json.loads(self.assert_runs("mean", source, self.out, "--radius=1", "--json", "--backend=cpu").stdout)
        self.assertEqual((report["backend"], report["voxels"], report["bytesWritten"] > 0), ("cpu", 210, True))
        plan = json.loads(self.assert_runs("plan", "mean", source, self.out, "--radius=1", "--json", "--divisions=2",
                                           "--region=1,1,1,2,3,4").stdout)
        self.assertEqual((plan["input"]["extent"], plan["output"]["extent"]), ([7, 6, 5], [2, 3, 4]))
        self.assertEqual((plan["input"]["type"], plan["divisions"]["count"]), ("int16", 2))
        statistics = json.loads(self.assert_runs("statistics", source, "--json").stdout)
        values = read(source).values
        self.assertEqual((statistics["voxels"], statistics["sum"], statistics["minimum"], statistics["maximum"]),
                         (210, sum(values), min(values), max(values)))
        self.assertEqual(json.loads(self.assert_runs("plan", "statistics", source, "--json").stdout)["divisions"]["count"], 1)
        devices = json.loads(self.assert_runs("devices", "--json").stdout)
        self.assertEqual(bool(devices["devices"]), devices["reasonForNone"] is None)
        self.assertGreater(devices["cpu"]["threads"], 0)
        most = 2 ** 64 - 1
        write(source, Image((2, 2), "uint64", [most, 1, 2, 3]))
        self.assertEqual(json.loads(self.assert_runs("statistics", source, "--json").stdout)["maximum"], most)
        write(source, Image((2, 2), "float32", [float("inf"), 1, 2, 3]))
        self.assertEqual(json.loads(self.assert_runs("statistics", source, "--json").stdout)["maximum"], "inf")
