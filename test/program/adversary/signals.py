# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Runs that are ended by signals: they die by them, and what has the final name is whole."""
import gzip
import json
import os
import random
import shutil
import signal
import struct
import subprocess
import time

from adversary import support
from adversary.support import EXHAUSTIVE, ProgramTest, files_of, noise, read, write, write_sparse

DEADLY = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
RUNS = 100 if not EXHAUSTIVE else 600


class Signals(ProgramTest):
    def start(self, *arguments, ignored=(), **options):
        def prepare():
            # A test under nohup, or in the background of a shell, would pass on what that ignores.
            for number in DEADLY:
                signal.signal(number, signal.SIG_IGN if number in ignored else signal.SIG_DFL)

        process = subprocess.Popen([support.PROGRAM, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True, preexec_fn=prepare, **options)

        def stop():
            if process.poll() is None:
                process.kill()
            process.communicate()

        self.addCleanup(stop)
        return process

    def end(self, process, timeout=60):
        try:
            _, error = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            self.fail(f"does not end: {process.args}")
        return process.returncode, error

    def wait_for_unfinished(self, process):
        """Waits until the output is being written: under another name, in a separate folder."""
        deadline = time.monotonic() + support.HANGS
        while not any(p.is_file() for f in self.folder.glob(".*") for p in [f, *f.rglob("*")]):
            self.assertIsNone(process.poll(), "the run ended before it could be interrupted")
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.002)

    def test_without_any_thread(self):
        """The signal is then seen by the run itself, while it computes."""
        library = os.environ.get("CHUNKWISE_TEST_FAILING_THREADS")
        if not library or os.environ.get("LD_PRELOAD"):
            self.skipTest("CHUNKWISE_TEST_FAILING_THREADS is not set, or LD_PRELOAD is taken")
        source = write_sparse(self.folder / "large.mha", (512, 512, 256), "float32")
        environment = {**os.environ, "LD_PRELOAD": library, "CHUNKWISE_TEST_FIRST_FAILING_THREAD": "0"}
        for words in (("median", "--radius=4"), ("h-maxima", "--height=3", "--memory=400M")):
            for code in DEADLY:
                with self.subTest(subcommand=words[0], signal=code):
                    process = self.start(words[0], source, self.out, *words[1:], env=environment)
                    self.wait_for_unfinished(process)
                    time.sleep(0.2)
                    os.kill(process.pid, code)
                    status, error = self.end(process)
                    self.assertEqual(status, -code, error)
                    self.assertEqual(files_of(self.folder), ["large.mha"])

    def test_random_moments(self):
        source = write(self.folder / "in.mha", noise((120, 110, 60), "int16", 1))
        generator = random.Random(3)
        cases = [("mha", ("--divisions=30",)), ("mha", ()), ("mhd", ("--divisions=30",)), ("nii.gz", ()), ("nrrd", ())]
        whole, seconds = {}, {}
        for ending, options in cases:
            out = self.folder / ("out." + ending)
            began = time.monotonic()
            self.assert_runs("mean", source, out, "--radius=3", *options)
            seconds[ending, options] = time.monotonic() - began
            whole[ending, options] = {n: (self.folder / n).read_bytes() for n in files_of(self.folder) if n.startswith("out.")}
            for name in whole[ending, options]:
                (self.folder / name).unlink()
        statuses = []
        for number in range(RUNS):
            case = cases[number % len(cases)]
            ending, options = case
            code = (*DEADLY, signal.SIGKILL)[number // len(cases) % 4]
            old = {name: b"old " + name.encode() for name in whole[case]} if generator.random() < 0.5 and ending != "mhd" else {}
            for name, content in old.items():
                (self.folder / name).write_bytes(content)
            process = self.start("mean", source, self.folder / ("out." + ending), "--radius=3", *options)
            time.sleep(generator.uniform(0, 1.1 * seconds[case]))
            process.send_signal(code)
            status, error = self.end(process)
            statuses.append(status)
            now = {n: (self.folder / n).read_bytes() for n in files_of(self.folder) if n.startswith("out.")}
            with self.subTest(run=number, ending=ending, signal=code.name, status=status, error=error):
                self.assertIn(status, (0, -code))
                if status == 0:
                    self.assertEqual(now.keys(), whole[case].keys())
                # The header of a pair comes last, and the file that it names is there then.
                for name, content in now.items():
                    self.assertIn(content, (whole[case][name], old.get(name)), f"{name} is not whole")
                if code != signal.SIGKILL:
                    self.assertEqual([n for n in files_of(self.folder) if n.startswith(".")], [])
            for name in now:
                (self.folder / name).unlink()
            if code == signal.SIGKILL:
                for name in reversed(files_of(self.folder)):
                    path = self.folder / name
                    if name.startswith("."):
                        path.rmdir() if path.is_dir() else path.unlink()
        self.assertGreater(sum(status != 0 for status in statuses), RUNS // 5, "too few runs were interrupted")

    def test_levels_of_a_store_at_random_moments(self):
        """It is as it was, or has all of them; where levels are replaced it may have its first one alone."""
        def contents(folder):
            return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}

        image = write(self.folder / "in.mha", noise((520, 60, 10), "uint16", 1))
        stores = self.folder / "stores"
        for version in ("0.4", "0.5"):
            stores.mkdir()
            store, whole = stores / "a.ome.zarr", self.folder / "b.ome.zarr"
            self.assert_runs("identity", image, store, "--zarr", version)
            before = contents(store)
            self.assert_runs("identity", image, whole, "--zarr", f"{version},pyramid=max")
            self.assert_runs("pyramid", store, "--method=max")
            made = contents(store)
            expected = contents(whole)
            metadata = "zarr.json" if version == "0.5" else ".zattrs"
            self.assertEqual({n: c for n, c in made.items() if n != metadata}, {n: c for n, c in expected.items() if n != metadata})
            description = [json.loads(each[metadata]) for each in (made, expected)]
            for each in description:
                (each if version == "0.4" else each["attributes"]["ome"])["multiscales"][0].pop("name")
            self.assertEqual(*description)
            self.assert_refused("pyramid", store, names="--overwrite", status=2)
            self.assertEqual(contents(store), made)
            thin = ("pyramid", store, "--overwrite", "--zarr=chunks=64x64x2")
            self.assert_runs(*thin)
            once = contents(store)
            self.assert_runs(*thin, "--memory=200M", "--divisions=5")
            self.assertEqual(contents(store), once)
            self.assert_runs("pyramid", store, "--overwrite", "--method=min")
            replaced = contents(store)
            generator = random.Random(3)
            for number in range(RUNS // 8):
                old, new, words = [(before, made, ("--method=max",)), (made, replaced, ("--method=min", "--overwrite"))][number % 2]
                shutil.rmtree(stores)
                for name, content in old.items():
                    (store / name).parent.mkdir(parents=True, exist_ok=True)
                    (store / name).write_bytes(content)
                code = (*DEADLY, signal.SIGKILL)[number // 2 % 4]
                process = self.start("pyramid", store, *words)
                time.sleep(generator.uniform(0.01, 0.08))
                process.send_signal(code)
                status, error = self.end(process)
                now = contents(store)
                with self.subTest(version=version, run=number, signal=code.name, status=status, error=error):
                    self.assertIn(status, (0, -code))
                    if status == 0:
                        self.assertEqual(now, new)
                    elif now[metadata] == old[metadata]:
                        self.assertEqual({n: c for n, c in now.items() if n in old}, old)
                    else:
                        self.assertIn(now[metadata], (new[metadata], *([] if old is before else [now[metadata]])))
                    self.assertEqual({n: c for n, c in now.items() if n.startswith("0/")},
                                     {n: c for n, c in before.items() if n.startswith("0/")})
                    if code != signal.SIGKILL:
                        self.assertEqual(list(stores.iterdir()), [store])
                    self.assert_runs("pyramid", store, "--method=min", "--overwrite")
                    self.assertTrue(contents(store) == replaced)
            shutil.rmtree(stores)
            shutil.rmtree(whole)

    def test_a_long_run_dies_by_the_signal(self):
        """Uninterrupted they would take minutes."""
        large = write_sparse(self.folder / "large.mha", (2000, 2000, 8000), "uint16")
        small = write(self.folder / "in.mha", noise((200, 200, 200), "uint8"))
        long_ones = {
            "statistics": ("statistics", large),
            "filter-labels": ("filter-labels", large, self.out, "--keep-largest=1"),
            "measure": ("measure", large, "--out", self.folder / "out.csv"),
            "nlm": ("nlm", small, self.out, "--radius=9", "--patch=2", "--strength=9", "--memory=1G"),
            "median": ("median", small, self.out, "--radius=60", "--memory=1G", "--output-type=float64"),
        }
        for name, arguments in long_ones.items():
            for code in DEADLY:
                with self.subTest(run=name, signal=code.name):
                    process = self.start(*arguments)
                    time.sleep(0.4)
                    self.assertIsNone(process.poll(), "ended too early")
                    process.send_signal(code)
                    status, error = self.end(process, 60)
                    self.assertEqual(status, -code, error)
                    self.assertLessEqual(len(error.splitlines()), 1)
                    self.assertEqual([n for n in files_of(self.folder) if n.startswith((".", "out."))], [])

    def test_reading_a_compressed_image_dies_by_the_signal(self):
        # A gigabyte of zeros, as members of one compressed file.
        slices = 256
        header = bytearray(352)
        struct.pack_into("<i", header, 0, 348)
        struct.pack_into("<8h", header, 40, 3, 2048, 2048, slices, 1, 1, 1, 1)
        struct.pack_into("<2h", header, 70, 2, 8)
        struct.pack_into("<8f", header, 76, 1, 1, 1, 1, 0, 0, 0, 0)
        struct.pack_into("<f", header, 108, 352)
        header[344:348] = b"n+1\0"
        path = self.folder / "zeros.nii.gz"
        part = gzip.compress(bytes(2048 * 2048 * 16))
        path.write_bytes(gzip.compress(bytes(header)) + part * (slices // 16))
        process = self.start("statistics", path)
        time.sleep(0.4)
        if process.poll() is not None:
            self.assertEqual(process.returncode, 0, process.communicate())
            self.skipTest("this machine reads a gigabyte in less than 0.4 s")
        process.terminate()
        self.assertEqual(self.end(process)[0], -signal.SIGTERM)

    def test_a_shells_loop_ends(self):
        """bash ends a script at SIGINT only if the command died by it."""
        small = write(self.folder / "in.mha", noise((200, 200, 200), "uint8"))
        script = 'for i in 1 2 3; do "$@"; echo after; done'
        process = subprocess.Popen(
            ["bash", "-c", script, "bash", support.PROGRAM, "nlm", small, self.out, "--radius=9", "--strength=9"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        time.sleep(0.5)
        os.killpg(process.pid, signal.SIGINT)
        try:
            out, _ = process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, _ = process.communicate()
            self.fail(f"the loop goes on: {out}")
        self.assertEqual(out, "")

    def test_what_was_ignored_stays_ignored(self):
        """As under nohup, and in the background of a script."""
        source = write(self.folder / "in.mha", noise((100, 100, 100), "uint8"))
        for code in (signal.SIGHUP, signal.SIGINT):
            with self.subTest(signal=code.name):
                process = self.start("median", source, self.out, "--radius=6", "--divisions=20", ignored=[code])
                self.wait_for_unfinished(process)
                process.send_signal(code)
                status, error = self.end(process)
                self.assertEqual(status, 0, error)
                self.assertEqual(read(self.out).size, (100, 100, 100))
                self.out.unlink()

    def start_long(self, out):
        source = self.folder / "in.mha"
        if not source.exists():
            write(source, noise((160, 160, 160), "uint8"))
        process = self.start("nlm", source, out, "--radius=6", "--strength=9", "--divisions=160")
        self.wait_for_unfinished(process)
        return process

    def test_what_a_killed_run_leaves_is_removed_by_the_next(self):
        tiny = write(self.folder / "tiny.mha", noise((5, 4, 3), "uint8"))
        for next_out in ("next.mha", "out.mha", "next.mhd"):
            self.out.unlink(missing_ok=True)
            process = self.start_long(self.out)
            process.kill()
            self.end(process)
            with self.subTest(next=next_out):
                self.assertFalse(self.out.exists())
                self.assertTrue([n for n in files_of(self.folder) if n.startswith(".")])
                self.assert_runs("identity", tiny, self.folder / next_out)
                self.assertEqual([n for n in files_of(self.folder) if n.startswith(".")], [])

    def test_what_a_run_is_writing_is_not_removed_by_another(self):
        tiny = write(self.folder / "tiny.mha", noise((5, 4, 3), "uint8"))
        process = self.start_long(self.out)
        writing = [n for n in files_of(self.folder) if n.startswith(".")]
        mine = self.folder / ".somebody.elses"
        mine.mkdir()
        (mine / "file").write_bytes(b"precious")
        for name in ("next.mha", "out.mha"):
            self.assert_runs("identity", tiny, self.folder / name)
        self.assertLessEqual(set(writing), set(files_of(self.folder)))
        self.assertEqual((mine / "file").read_bytes(), b"precious")
        process.terminate()
        self.assertEqual(self.end(process)[0], -signal.SIGTERM)
        self.assertEqual([n for n in files_of(self.folder) if n.startswith(".") and "somebody" not in n], [])
