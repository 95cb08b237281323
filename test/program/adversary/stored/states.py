# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Deconvolutions that end early and go on with --resume: the file is that of a run that nobody ended, in each format."""
import array
import json
import math
import os
import random
import shutil
import signal
import subprocess
import time

from adversary import support
from adversary.stored.resume import contents, sealed
from adversary.support import EXHAUSTIVE, Image, ProgramTest, files_of, own_mounts, run, write

SIZE = (48, 40, 800)
KERNEL = (9, 9, 9)
KILLS = 40 if EXHAUSTIVE else 2
ITERATIONS = 30
# A state is kept after a quarter of a second at the earliest; a run of one thread takes some seconds.
OPTIONS = ("--threads=1",)
CASES = {
    "slabs": ("out.mha", "--memory=96M", "--accelerate"),
    "memory": ("out.nrrd", "--relative-change=1e-9"),
    "compressed": ("out.nii.gz", "--background=10"),
    "tiff": ("out.tif", "--algorithm=landweber", "--relaxation=0.5"),
    "pair": ("out.mhd", "--memory=96M", "--saturation=60000"),
    "zarr": ("out.ome.zarr", "--memory=128M", "--zarr=chunks=32x32x32"),
}


class States(ProgramTest):
    def setUp(self):
        super().setUp()
        values = array.array("H", random.Random(3).randbytes(2 * math.prod(SIZE)))
        self.source = write(self.folder / "in.mha", Image(SIZE, "uint16", values))
        weights = [math.exp(-sum((i - 4) ** 2 for i in (x, y, z)) / 8) for z in range(9) for y in range(9) for x in range(9)]
        self.kernel = write(self.folder / "kernel.mha", Image(KERNEL, "float32", weights))

    def words(self, case, iterations=ITERATIONS):
        out, *options = CASES[case]
        return ("deconvolve", self.source, self.folder / out, f"--kernel={self.kernel}", f"--iterations={iterations}", *OPTIONS, *options)

    def unfinished(self, case):
        return self.folder / f".{CASES[case][0]}.unfinished"

    def files(self):
        """All but what a run that was killed has left of its output and of a new state, which the next run removes."""
        return [name for name in files_of(self.folder) if not name.startswith(".") or name.endswith((".unfinished", ".journal"))]

    def take(self, case):
        """The bytes of the output's files, which go."""
        out = self.folder / CASES[case][0]
        if out.is_dir():
            result = contents(out)
            shutil.rmtree(out)
            return result
        files = sorted(self.folder.glob("out.*"))
        result = {file.name: file.read_bytes() for file in files}
        for file in files:
            file.unlink()
        return result

    def whole(self, case, iterations=ITERATIONS):
        began = time.monotonic()
        report = json.loads(self.assert_runs(*self.words(case, iterations), "--json").stdout)
        return self.take(case), report["figures"], time.monotonic() - began

    def start(self, *words):
        process = subprocess.Popen([support.PROGRAM, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        self.addCleanup(lambda: (process.kill(), process.communicate()))
        return process

    def steps(self, case):
        journal = self.unfinished(case) / ".journal"
        try:
            return json.loads(journal.read_text().splitlines()[0])["planes"]
        except FileNotFoundError:
            return 0

    def wait_for_state(self, process, case, after=0):
        """Whether the run has kept a state of more steps; False if it ended before."""
        deadline = time.monotonic() + support.HANGS
        while self.steps(case) <= after:
            if process.poll() is not None:
                self.assertEqual(process.returncode, 0)
                return False
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.002)
        return True

    def end_early(self, case, number=signal.SIGKILL, iterations=ITERATIONS, least=1):
        for _ in range(20):
            process = self.start(*self.words(case, iterations), "--resume")
            if self.wait_for_state(process, case, max(self.steps(case), least - 1)):
                break
            # States are rare while the storage is slow: the run begins anew.
            process.communicate()
            self.take(case)
        else:
            self.fail("each run ended before it was ended")
        process.send_signal(number)
        process.communicate()
        self.assertEqual(process.returncode, -number)
        return self.steps(case)

    def assert_goes_on(self, case, expected, figures, least=1, iterations=ITERATIONS):
        report = json.loads(self.assert_runs(*self.words(case, iterations), "--resume", "--json").stdout)
        self.assertGreaterEqual(report["resumedIterations"], least)
        self.assertEqual(report["figures"], figures)
        self.assertEqual(self.take(case), expected)
        self.assertEqual(files_of(self.folder), ["in.mha", "kernel.mha"])

    def test_random_moments(self):
        generator = random.Random(5)
        for case in CASES if EXHAUSTIVE else ("slabs", "compressed"):
            with self.subTest(case=case):
                expected, figures, seconds = self.whole(case)
                resumed = 0
                for _ in range(KILLS):
                    process = self.start(*self.words(case), "--resume", "--json")
                    time.sleep(generator.uniform(0, 0.7 * seconds))
                    process.kill()
                    out, error = process.communicate()
                    self.assertIn(process.returncode, (0, -signal.SIGKILL), error)
                    if process.returncode == 0:
                        report = json.loads(out)
                        resumed += report["resumedIterations"] > 0
                        self.assertEqual(report["figures"], figures)
                    if any(self.folder.glob("out.*")):
                        # It may also have been killed after the output had its name.
                        self.assertEqual(self.take(case), expected)
                least = self.end_early(case)
                self.assert_goes_on(case, expected, figures, least)
                self.assertGreater(resumed, 0 if EXHAUSTIVE else -1)

    def test_each_format(self):
        for case in CASES:
            with self.subTest(case=case):
                expected, figures, _ = self.whole(case)
                self.assert_goes_on(case, expected, figures, self.end_early(case))

    def test_signals_keep_the_state_and_memory_may_differ(self):
        expected, figures, _ = self.whole("slabs")
        first = self.end_early("slabs", signal.SIGINT)
        second = self.end_early("slabs", signal.SIGTERM)
        self.assertGreater(second, first)
        others = [word for word in self.words("slabs") if not str(word).startswith(("--threads", "--memory"))]
        report = json.loads(self.assert_runs(*others, "--threads=2", "--resume", "--json").stdout)
        self.assertGreaterEqual(report["resumedIterations"], second)
        self.assertEqual(report["figures"], figures)
        self.assertEqual(self.take("slabs"), expected)
        self.assertEqual(files_of(self.folder), ["in.mha", "kernel.mha"])

    def test_other_numbers_of_iterations(self):
        done = self.end_early("slabs", least=2)
        before = self.files()
        self.assert_failed(run(*self.words("slabs", done - 1), "--resume"), ["--iterations", str(done - 1), f"{done} or more"])
        self.assertEqual(self.files(), before)
        # With more, also more than once.
        done = self.end_early("slabs", iterations=ITERATIONS + 10)
        expected, figures, _ = self.whole("slabs", ITERATIONS + 5)
        self.assert_goes_on("slabs", expected, figures, done, ITERATIONS + 5)
        # As many as are done already.
        done = self.end_early("slabs")
        expected, figures, _ = self.whole("slabs", done)
        self.assert_goes_on("slabs", expected, figures, done, done)

    def test_other_runs_are_refused(self):
        self.end_early("slabs")
        before = self.files()
        other = write(self.folder / "other.mha", support.read(self.source))
        kernel = support.read(self.kernel)
        kernel.values[0] += 1
        write(self.folder / "other-kernel.mha", kernel)
        words = self.words("slabs")
        parameters, backend = "the filter or its parameters", "the backend"
        cases = [
            ((*words[:3], f"--kernel={self.folder / 'other-kernel.mha'}", *words[4:]), parameters),
            ((*words[:-1],), parameters),
            ((*words, "--background=1"), parameters),
            ((*words, "--relative-change=0.1"), parameters),
            ((words[0], other, *words[2:]), "IN"),
            ((*words, f"--weight={other}"), "--weight"),
            ((*words, "--output-type=float64"), "the pixel types"),
            (("mean", *words[1:3], "--radius=1"), None),
        ]
        for changed, named in cases:
            with self.subTest(named=named, changed=changed[3:]):
                if named:
                    self.assert_failed(run(*changed, "--resume"), [named, "remove", self.unfinished("slabs").name])
                else:
                    self.assert_refused(*changed, "--resume", names=["OUT", "stores of Zarr"])
                self.assertEqual(self.files(), sorted([*before, "other.mha", "other-kernel.mha"]))
        os.utime(self.source)
        self.assert_failed(run(*words, "--resume"), ["other values of: IN;"])
        # Without --resume nothing is taken, and nothing lost.
        self.assert_runs(*words)
        self.assertTrue(self.unfinished("slabs").exists())

    def test_an_unfinished_store_of_another_filter(self):
        done = self.end_early("zarr")
        store = ("gaussian", self.source, self.folder / "out.ome.zarr", "--sigma=1", "--zarr=chunks=32x32x32", "--resume")
        self.assert_failed(run(*store), ["the filter or its parameters", "remove", self.unfinished("zarr").name])
        self.assertEqual(self.steps("zarr"), done)

    def test_states_that_are_damaged(self):
        expected, figures, _ = self.whole("slabs")
        # Zero steps would be no state.
        done = self.end_early("slabs", least=2)
        journal = self.unfinished("slabs") / ".journal"
        text = journal.read_text()
        entries = json.loads(text.splitlines()[0])
        state = self.unfinished("slabs") / f".state{entries['files']}"
        content = state.read_bytes()
        used = entries["bytes"]

        def assert_refused(*names):
            self.assert_failed(run(*self.words("slabs"), "--resume"), [*names, "remove", self.unfinished("slabs").name])
            self.assertFalse((self.folder / "out.mha").exists())

        generator = random.Random(1)
        for at in (0, used - 1, *(generator.randrange(used) for _ in range(20 if EXHAUSTIVE else 4))):
            with self.subTest(at=at):
                state.write_bytes(content[:at] + bytes([content[at] ^ 1 << generator.randrange(8)]) + content[at + 1:])
                assert_refused(".state", "is damaged")
        for length in (0, 1, used - 1):
            with self.subTest(length=length):
                state.write_bytes(content[:length])
                assert_refused(".state", "bytes")
        state.unlink()
        assert_refused(".state")
        state.mkdir()
        assert_refused(".state")
        state.rmdir()
        os.mkfifo(state)
        assert_refused(".state")
        state.unlink()
        state.write_bytes(content)
        for change in ({"bytes": used - 1}, {"bytes": used + 1}, {"bytes": 0}, {"bytes": -1}, {"bytes": 4}, {"bytes": 2**63 - 1}, {"bytes": 2**63},
                       {"files": 3}, {"files": 0}, {"files": -1}, {"planes": -1}, {"planes": "1"}, {"planes": done + 1}, {"planes": done - 1}):
            with self.subTest(change=change):
                journal.write_text(sealed(json.dumps({**entries, **change})))
                assert_refused(".unfinished")
        for damaged in (text[:-5], "", text.replace("planes", "panels")):
            with self.subTest(damaged=damaged[:40]):
                journal.write_text(damaged)
                assert_refused(".journal", "damaged")
        journal.write_text(text)
        self.assert_goes_on("slabs", expected, figures, done)

    def test_two_runs_at_once(self):
        expected, _, _ = self.whole("slabs")
        first = self.start(*self.words("slabs"), "--resume")
        self.assertTrue(self.wait_for_state(first, "slabs"), "the run ended before it was stopped")
        first.send_signal(signal.SIGSTOP)
        self.assert_failed(run(*self.words("slabs"), "--resume"), ["another run", self.unfinished("slabs").name])
        first.send_signal(signal.SIGCONT)
        self.assertEqual(first.wait(support.HANGS), 0)
        self.assertEqual(self.take("slabs"), expected)
        self.assertFalse(self.unfinished("slabs").exists())

    def test_links_in_place_of_the_folder_are_not_followed(self):
        (self.folder / "other").mkdir()
        self.unfinished("slabs").symlink_to(self.folder / "other")
        self.assert_failed(run(*self.words("slabs"), "--resume"), [self.unfinished("slabs").name, "no folder"])

    def test_a_full_disk(self):
        place = self.folder / "small"
        place.mkdir()
        before = own_mounts('mount -t tmpfs -o size=7500k none "$0"', place)
        if not before:
            self.skipTest("mounting is not allowed here")
        words = list(self.words("memory"))
        words[2] = place / "out.nrrd"
        script = 'program=$1; shift; "$program" "$@"; first=$?; ls -A "$0"; exit $first'
        result = run(*words, "--resume", before=[*before, "sh", "-c", script, place])
        self.assertEqual(result.returncode, 1, result)
        self.assertIn("room", result.stderr)
        self.assertEqual(result.stdout.split(), [])
