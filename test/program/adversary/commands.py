# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Command lines: what a run reads is never replaced, threads that the system does not start are done without, and no
words, however odd, end in more than a line that says what is wrong."""
import json
import os
import random
import re
import resource
import shutil
import stat
import struct
import time

from adversary import networks
from adversary.subcommands import REQUIRED, Inputs, all_subcommands
from adversary.support import (
    EXHAUSTIVE, MIB, Image, ProgramTest, files_of, help_of, listed_options, noise, read, run, write, write_sparse)

NOBODY = 65534
# An image that was changed a moment ago is computed again, whatever its record says.
GRAIN = 2.1
# Built beside the tests: the program finds that the system starts no more threads.
FAILING_THREADS = os.environ.get("CHUNKWISE_TEST_FAILING_THREADS")


def contents(folder):
    return {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def external_model(path):
    """A model whose weights are in a file beside it."""
    (path.parent / "weights.bin").write_bytes(struct.pack("<27f", *networks.weights(27)))
    entry = networks.field(1, "location") + networks.field(2, "weights.bin")
    tensor = (b"".join(networks.field(1, extent) for extent in (1, 1, 3, 3, 3)) + networks.field(2, 1)
              + networks.field(8, "w") + networks.field(13, entry) + networks.field(14, 1))
    convolution = networks.node("Conv", ["in", "w"], "out", pads=[1] * 6, kernel_shape=[3, 3, 3])
    path.write_bytes(networks.model([convolution], [tensor]))
    return path


class Replaced(ProgramTest):
    """No file that a run writes replaces one that it reads."""

    def setUp(self):
        super().setUp()
        self.inputs = Inputs(self.folder)
        self.files = self.inputs.files
        self.first = self.inputs.path
        self.second = write(self.folder / "b.mha", self.inputs.with_geometry(noise((14, 12, 11), "uint8", 12)))
        self.images = (self.first, self.second)

    def assert_kept(self, *words, names=()):
        before = contents(self.folder)
        result = run(*words)
        self.assertEqual(result.returncode, 2, str(result))
        self.assert_failed(result, names)
        self.assertEqual(contents(self.folder), before, str(result))
        return result

    def test_second_inputs_of_a_batch(self):
        copy = lambda name, new: (self.folder / new).write_bytes(self.files[name].read_bytes()) and self.folder / new
        for subcommand, option, file in (
            ("mean", "mask", copy("radii", "xin.mha")), ("mean", "weight", copy("certainty", "xb.mha")),
            ("convolve-image", "kernel", copy("kernel", "yin.mha")),
            ("convolve-varying", "kernels", copy("kernels", "yb.mha")),
            ("difference", "minus", copy("second", "zb.mha")), ("reconstruct", "marker", copy("marker", "zin.mha")),
            ("box", "radius-image", copy("radii", "wb.mha")),
        ):
            options = {**REQUIRED[subcommand], option: str(file)}
            with self.subTest(subcommand=subcommand, option=option):
                pattern = self.folder / (file.name[0] + "{stem}.mha")
                self.assert_kept(subcommand, *self.images, "--out", pattern, *self.inputs.arguments(options),
                                 names=(file.name, "--" + option, "replace"))
        kernel = copy("kernel", "vb.mha")
        self.assert_kept("sequence", *self.images, "--out", self.folder / "v{stem}.mha",
                         "--step", f"convolve-image --kernel {kernel}", names=("vb.mha", "--kernel"))

    def test_every_file_that_an_option_reads(self):
        victim, seen = self.folder / "xin.mha", 0
        for subcommand in all_subcommands(self):
            for option in re.findall(r"(?m)^ +--([a-z][\w-]*) FILE", help_of(subcommand)):
                if option == "returnparameterfile":
                    continue
                victim.write_bytes(self.files["radii"].read_bytes())
                options = {name: value for name, value in REQUIRED[subcommand].items() if name != option}
                seen += 1
                with self.subTest(subcommand=subcommand, option=option):
                    self.assert_kept(subcommand, *self.images, "--out", self.folder / "x{stem}.mha", f"--{option}={victim}",
                                     *self.inputs.arguments(options), names=("xin.mha", "--" + option, "replace"))
        self.assertGreater(seen, 50)

    def test_stores_of_a_batch(self):
        """A store is replaced as a whole, whatever of it is read."""
        stores = {}
        for name, image in (("a", self.first), ("xa", self.second), ("kernel", self.files["kernel"]), ("radii", self.files["radii"])):
            stores[name] = self.folder / f"{name}.ome.zarr"
            self.assert_runs("identity", image, stores[name])
        self.assert_kept("mean", stores["a"], stores["xa"], "--out", self.folder / "x{name}", "--radius=1", names=("xa.ome.zarr", "IN", "replace"))
        pattern = (self.first, self.second, "--out")
        (self.folder / "kernel.ome.zarr").rename(self.folder / "zin.ome.zarr")
        (self.folder / "radii.ome.zarr").rename(self.folder / "yb.ome.zarr")
        self.assert_kept("convolve-image", *pattern, self.folder / "z{stem}.ome.zarr", "--kernel", self.folder / "zin.ome.zarr", names=("zin.ome.zarr", "--kernel"))
        self.assert_kept("convolve-image", self.first, self.folder / "zin.ome.zarr", "--kernel", self.folder / "zin.ome.zarr" / "0", names=("zin.ome.zarr", "--kernel"))
        self.assert_kept("mean", *pattern, self.folder / "y{stem}.ome.zarr", "--radius=1", "--mask", self.folder / "yb.ome.zarr", names=("yb.ome.zarr", "--mask"))

    def test_files_of_grids_and_numbers(self):
        """They are read again for each image of a batch."""
        reference = self.folder / "xin.mha"
        reference.write_bytes(self.files["second"].read_bytes())
        matrix = self.folder / "yb.mha"
        matrix.write_text("1 0 0 0.5\n0 1 0 0\n0 0 1 0\n")
        for option, file in (("reference", reference), ("affine", matrix)):
            with self.subTest(option=option):
                self.assert_kept("resample", *self.images, "--out", self.folder / (file.name[0] + "{stem}.mha"), "--scale=1" if option == "affine" else "--no-antialias",
                                 f"--{option}={file}", names=(file.name, "--" + option, "replace"))
                self.assert_kept("resample", self.first, file, f"--{option}={file}", "--scale=1" if option == "affine" else "--no-antialias",
                                 names=(file.name, "--" + option, "replace"))

    def test_steps_of_a_chain(self):
        """Neither a later step nor a table may replace what a step reads."""
        mask, kernel = self.files["radii"], self.files["kernel"]
        store = self.folder / "mask.ome.zarr"
        self.assert_runs("identity", mask, store)
        pairs = "".join(f"{label},0\n" for label in range(1, 9))
        (self.folder / "pairs.csv").write_text(pairs)
        identity = ("--step", "identity")
        for words, names in (
            ((mask, "--step", f"mean --radius 1 --mask {mask}", *identity), ("OUT", "radii.mha", "--mask")),
            ((kernel, "--step", f"convolve-image --kernel {kernel}", *identity), ("OUT", "kernel.mha", "--kernel")),
            ((store, "--step", f"mean --radius 1 --mask {store}", *identity), ("OUT", "mask.ome.zarr", "--mask")),
            ((self.folder / "pairs.csv", "--step", f"filter-labels --replace {self.folder}/pairs.csv", "--step", "measure"), ("OUT", "pairs.csv", "--replace")),
            ((self.second, *identity, "--step", f"measure {self.second}"), ("OUT", "b.mha", "INTENSITY")),
            ((self.first, *identity, "--step", "measure"), ("OUT", "in.mha", "IN")),
            ((self.out, *identity, "--step", f"measure --contacts {self.first}"), ("--contacts", "in.mha", "IN")),
            ((self.out, *identity, "--step", f"measure --contacts {self.out}"), ("--contacts", "OUT")),
            ((self.out, "--step", f"mean --radius 1 --mask {mask}", "--step", f"measure --contacts {mask}"), ("--contacts", "radii.mha", "--mask")),
            ((self.out, "--step", f"identity --returnparameterfile {self.first}", *identity), ("--returnparameterfile", "in.mha", "IN")),
            ((self.out, "--step", f"separate --table {self.first}", *identity), ("--table", "in.mha", "IN")),
            ((store, *identity, "--step", f"mean --radius 1 --mask {store}/0"), ("OUT", "mask.ome.zarr", "--mask")),
        ):
            with self.subTest(words=words[1:]):
                self.assert_kept("chain", self.first, *words, names=names)
        # A file that is missing is told before any step.
        result = run("chain", self.first, self.out, "--step", "median --radius 5", "--step", "mean --radius 1 --mask missing.mha")
        self.assert_failed(result, ("--step", "missing.mha"), 2)
        expected = self.folder / "expected.mha"
        self.assert_runs("mean", self.first, expected, "--radius=1", "--mask", mask)
        self.assert_runs("chain", self.first, self.first, *identity, "--step", f"mean --radius 1 --mask {mask}")
        self.assertEqual(read(self.first).values, read(expected).values)

    def test_levels_do_not_take_the_place_of_the_first(self):
        """An image whose first level is a number that is not 0, as where its finest levels were removed."""
        source = write(self.folder / "long.mha", noise((300, 5, 4), "uint8", 14))
        for version, old in (("0.4", "1"), ("0.5", "1"), ("0.5", "2")):
            with self.subTest(version=version, path=old):
                store = self.folder / f"{version}-{old}.ome.zarr"
                self.assert_runs("identity", source, store, "--zarr", version)
                (store / "0").rename(store / old)
                metadata = store / ("zarr.json" if version == "0.5" else ".zattrs")
                text = json.loads(metadata.read_text())
                ome = text["attributes"]["ome"] if version == "0.5" else text
                ome["multiscales"][0]["datasets"][0]["path"] = old
                metadata.write_text(json.dumps(text))
                first = contents(store / old)
                self.assert_runs("pyramid", store, "--overwrite")
                self.assertEqual(contents(store / old), first)
                self.assert_runs("identity", store, self.out)
                self.assertEqual(read(self.out).values, read(source).values)
                self.assertTrue((store / str(int(old) + 1)).is_dir())

    def test_models_and_the_weights_beside_them(self):
        model = external_model(self.folder / "external.onnx")
        self.assert_runs("network", self.first, self.out, "--model", model)
        for name, victim in (("in.mha", model), ("b.mha", self.folder / "weights.bin")):
            os.symlink(victim, self.folder / ("m" + name))
            with self.subTest(file=victim.name):
                self.assert_kept("network", *self.images, "--out", self.folder / "m{name}", "--model", model,
                                 names=("replace", victim.name, "--model"))
            os.unlink(self.folder / ("m" + name))
        target = self.folder / "weights.mha"
        os.symlink(self.folder / "weights.bin", target)
        self.assert_kept("network", self.first, target, "--model", model, names=("OUT", "weights.bin"))

    def test_data_of_images_in_two_files(self):
        image = self.inputs.with_geometry(noise((14, 12, 11), "uint8", 13, 0, 1))
        mask = write(self.folder / "mask.mhd", image, "xb.raw")
        self.assert_kept("mean", *self.images, "--out", self.folder / "x{stem}.mhd", "--radius=1", "--mask", mask,
                         names=("xb.raw", "--mask"))
        # An image of the batch has its voxels where the result of another one would be.
        later = write(self.folder / "later.mhd", image, "ub.raw")
        self.assert_kept("mean", self.second, later, "--out", self.folder / "u{stem}.mhd", "--radius=1", names="ub.raw")

    def test_other_names_of_one_file(self):
        mask = self.files["radii"]
        folder = self.folder / "links"
        folder.mkdir()
        os.symlink(self.folder, folder / "back")
        os.symlink(mask, folder / "soft.mha")
        os.link(mask, folder / "hard.mha")
        os.symlink("soft.mha", folder / "twice.mha")
        for out in (folder / "soft.mha", folder / "hard.mha", folder / "twice.mha", folder / "back" / "radii.mha",
                    folder / ".." / "radii.mha", str(self.folder) + "/.//radii.mha"):
            with self.subTest(out=str(out)):
                self.assert_kept("mean", self.first, out, "--radius=1", "--mask", mask, names=("OUT", "--mask"))
                self.assert_kept("mean", self.first, mask, "--radius=1", "--mask", out, names=("OUT", "--mask"))

    def test_one_image_may_be_written_anew_from_itself(self):
        expected = self.out
        self.assert_runs("mean", self.first, expected, "--radius=1", "--mask", self.files["radii"])
        self.assert_runs("mean", self.first, self.first, "--radius=1", "--mask", self.files["radii"])
        self.assertEqual(read(self.first).values, read(expected).values)

    def test_return_parameter_files(self):
        model = external_model(self.folder / "external.onnx")
        link = self.folder / "link.txt"
        os.symlink(self.first, link)
        words = ("mean", self.first, self.out, "--radius=1", "--mask", self.files["radii"])
        for file in (self.first, self.files["radii"], link, self.out, str(self.folder) + "/./out.mha"):
            with self.subTest(file=str(file)):
                self.assert_kept(*words, f"--returnparameterfile={file}", names="--returnparameterfile")
        pair = ("mean", self.first, self.folder / "pair.mhd", "--radius=1")
        self.assert_kept(*pair, f"--returnparameterfile={self.folder}/pair.raw", names="--returnparameterfile")
        self.assert_kept("network", self.first, self.out, "--model", model,
                         f"--returnparameterfile={self.folder}/weights.bin", names=("--returnparameterfile", "weights.bin"))
        self.assert_kept("convolve-image", self.first, self.out, "--kernel", self.files["kernel"],
                         f"--returnparameterfile={self.files['kernel']}", names=("--returnparameterfile", "kernel.mha"))

    def test_relative_names(self):
        """A file that is not there yet may be named from the folder that the program runs in, too."""
        words = ("mean", self.first, self.out, "--radius=1")
        before = contents(self.folder)
        result = run(*words, "--returnparameterfile=out.mha", cwd=self.folder)
        self.assert_failed(result, ("--returnparameterfile", "out.mha", "replace"), 2)
        self.assertEqual(contents(self.folder), before)
        self.assert_runs(*words, "--returnparameterfile=report.txt", cwd=self.folder)
        self.assertTrue((self.folder / "report.txt").read_text())

    def test_return_parameter_files_that_cannot_be_written(self):
        words = ("mean", self.first, self.out, "--radius=1")
        for file, why in ((self.folder / "none" / "r.txt", "no folder"), (self.folder, "folder"),
                          (self.first / "r.txt", "folder")):
            with self.subTest(file=str(file)):
                self.assert_kept(*words, f"--returnparameterfile={file}", names=("--returnparameterfile", why))
        if os.geteuid() == 0:
            locked = self.folder / "locked"
            locked.mkdir(mode=0o555)
            self.folder.chmod(0o777)
            result = run(*words, f"--returnparameterfile={locked}/r.txt", user=NOBODY, extra_groups=[])
            self.assert_failed(result, ("--returnparameterfile", "Permission"), 2)
            self.assertFalse(self.out.exists())
        self.assert_runs(*words, "--returnparameterfile=/dev/null")
        self.assert_runs(*words, f"--returnparameterfile={self.folder}/r.txt")
        self.assertIn(" = ", (self.folder / "r.txt").read_text())


class Threads(ProgramTest):
    def setUp(self):
        super().setUp()
        self.inputs = Inputs(self.folder)

    def commands(self):
        """One of each way that work goes, in several divisions, slabs or as a whole; compressed in several threads."""
        compressed = self.folder / "out.nii.gz"
        large = write(self.folder / "large.mha", noise((96, 96, 96), "uint8", 21))
        for subcommand, out, more in (
            ("mean", self.out, ("--divisions=3",)), ("mean", compressed, ()), ("sat", self.out, ("--divisions=3",)),
            ("gaussian", self.out, ()), ("opening-by-reconstruction", self.out, ()), ("regional-maxima", self.out, ()),
            ("entropy", self.out, ("--range=auto",)), ("convolve-image", self.out, ()), ("network", self.out, ()),
        ):
            yield (subcommand, self.inputs.path, out, *self.inputs.arguments(REQUIRED[subcommand]), *more), out
        yield ("statistics", self.inputs.path), None
        yield ("measure", self.inputs.path), None
        refused = run("h-maxima", large, self.out, "--height=40", "--memory=1M")
        least = re.search(r"needs (\d+) MiB", refused.stderr)
        yield ("h-maxima", large, self.out, "--height=40", f"--memory={int(least.group(1)) + 2}M"), self.out

    def result_of(self, words, out, **options):
        if out:
            out.unlink(missing_ok=True)
        result = run(*words, "--threads=5", timeout=60, **options)
        return result, (out.read_bytes() if out and out.exists() else result.stdout)

    def test_any_thread_may_be_missing(self):
        if not FAILING_THREADS or os.environ.get("LD_PRELOAD"):
            self.skipTest("CHUNKWISE_TEST_FAILING_THREADS is not set, or LD_PRELOAD is taken")
        for words, out in self.commands():
            expected = self.result_of(words, out)
            self.assertEqual(expected[0].returncode, 0, str(expected[0]))
            for first in (*range(8), *range(8, 40, 1 if EXHAUSTIVE else 7)):
                for count in (1, 1 << 20):
                    with self.subTest(words=words[0], first=first, count=count):
                        environment = {**os.environ, "LD_PRELOAD": FAILING_THREADS,
                                       "CHUNKWISE_TEST_FIRST_FAILING_THREAD": str(first),
                                       "CHUNKWISE_TEST_END_OF_FAILING_THREADS": str(first + count)}
                        result, data = self.result_of(words, out, env=environment)
                        self.assertEqual(result.returncode, 0, str(result))
                        self.assertEqual(data, expected[1], str(result))

    def test_limits_of_processes_and_of_address_space(self):
        def few_processes():
            resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))

        def little_space():
            resource.setrlimit(resource.RLIMIT_AS, (300 << 20, 300 << 20))

        words = ("mean", self.inputs.path, self.out, "--radius=1")
        self.assert_runs(*words)
        expected = self.out.read_bytes()
        result = run(*words, "--threads=100", preexec_fn=little_space, timeout=60)
        if result.returncode == 0:
            self.assertEqual(self.out.read_bytes(), expected)
        else:
            # A warning about threads may come first.
            self.assertEqual(result.returncode, 1, str(result))
            self.assertIn("memory", result.stderr.splitlines()[-1], str(result))
        if os.geteuid() != 0:
            self.skipTest("only root can run the program as a user without processes")
        self.folder.chmod(0o777)
        self.out.unlink()
        for threads in (1, 8):
            result = run(*words, f"--threads={threads}", preexec_fn=few_processes, timeout=60, user=NOBODY, extra_groups=[])
            self.assertEqual(result.returncode, 0, str(result))
            self.assertEqual(self.out.read_bytes(), expected)
            self.assertEqual("threads" in result.stderr, threads > 1, str(result))


class Memory(ProgramTest):
    def test_kernels_that_do_not_fit_are_refused_before_they_are_read(self):
        source = write(self.folder / "in.mha", noise((20, 20, 20), "uint8"))
        for subcommand, option, size in (("convolve-image", "kernel", (300, 300, 300)),
                                         ("convolve-varying", "kernels", (100, 100, 100, 27))):
            file = write_sparse(self.folder / "kernel.mha", size, "uint8")
            with self.subTest(subcommand=subcommand):
                result, peak = self.measured(subcommand, source, self.out, f"--{option}={file}", "--memory=100M",
                                             *(["--grid=3,3,3"] if option == "kernels" else []))
                self.assert_failed(result, ("--memory", "--" + option, "needs at least"), 1)
                self.assertLess(peak, 100 * MIB, str(result))
                self.assertNotIn("smaller", result.stderr)

    def test_no_memory_for_a_kernel_is_told_as_that(self):
        source = write(self.folder / "in.mha", noise((20, 20, 20), "uint8"))
        file = write_sparse(self.folder / "kernel.mha", (400, 400, 400), "uint8")

        def little_space():
            resource.setrlimit(resource.RLIMIT_AS, (400 << 20, 400 << 20))

        result = run("convolve-image", source, self.out, f"--kernel={file}", "--threads=1", "--memory=100G",
                     preexec_fn=little_space)
        self.assert_failed(result, ("--kernel", "memory"), 1)
        self.assertNotIn("smaller", result.stderr)


class Records(ProgramTest):
    def test_records_that_are_none(self):
        """A file at the place of a result's record is no reason to wait, to fail, or to treat anything as done."""
        source = write(self.folder / "in.mha", noise((9, 8, 7), "uint8"))
        time.sleep(GRAIN)
        words = ("mean", source, "--out", self.folder / "o{stem}.mha", "--radius=1")
        record = self.folder / ".chunkwise-done" / "oin.mha.json"
        record.parent.mkdir()
        whole = '{"made": {"read": []}, "written": []}'
        for name, make in (
            ("pipe", os.mkfifo), ("folder", os.mkdir), ("endless", lambda p: os.symlink("/dev/zero", p)),
            ("itself", lambda p: os.symlink(p, p)), ("empty", lambda p: p.touch()),
            ("deep", lambda p: p.write_text("[" * 1000000)), ("deep and whole", lambda p: p.write_text("[" * 100000 + "]" * 100000)),
            ("list", lambda p: p.write_text("[1]")), ("number", lambda p: p.write_text("1e99999")),
            ("nulls", lambda p: p.write_text('{"made": null, "written": null}')), ("other", lambda p: p.write_text(whole)),
            ("bytes", lambda p: p.write_bytes(bytes(range(256)))),
        ):
            with self.subTest(record=name):
                shutil.rmtree(record) if record.is_dir() and not record.is_symlink() else record.unlink(missing_ok=True)
                make(record)
                result = run(*words, "--json", timeout=20)
                self.assertEqual(result.returncode, 0, str(result))
                self.assertIn('"done"', result.stdout)


class Words(ProgramTest):
    def test_a_device_that_is_not_there_is_named_by_its_option(self):
        source = write(self.folder / "in.mha", noise((9, 8, 7), "uint8"))
        result = self.assert_refused("mean", source, self.out, "--radius=1", "--devices=77", names="--devices: ", status=2)
        self.assertNotRegex(result.stderr, r"\bDevices\b")

    def test_what_a_terminal_would_obey_is_not_sent_to_it(self):
        odd = "a\x1b[31m\x07\x9b7\x7fé.mha"
        source = write(self.folder / odd, noise((9, 8, 7), "uint8"))
        bad = self.folder / ("\x1b]0;title\x07" + "b.mha")
        bad.write_text("no image")
        missing = self.folder / "\x1b[2J.mha"
        for words in (
            ("mean", source, self.out, "--radius=1", "--verbose"), ("plan", "mean", source, self.out, "--radius=1"),
            ("plan", "mean", source, self.out, "--radius=1", "--json"), ("statistics", source), ("plan", "statistics", source),
            ("measure", source), ("plan", "measure", source),
            ("mean", bad, self.out, "--radius=1"), ("mean", missing, self.out, "--radius=1"),
            ("mean", source, self.out, "--radius=\x1b[31m1"), ("mean", source, self.out, "--\x1b[31m"), ("\x1b[31m",),
            ("mean", source, self.out, "--radius=1", "--output-type=\x1b[31m"), ("sequence", source, self.out, "--step=\x1b[31m"),
            ("mean", source, bad, "--out", self.folder / "\x1b[1m{stem}.mha", "--radius=1", "--verbose"),
            ("mean", source, self.folder / "\x1b[1m.tif", "--radius=1", "--output-type=int64"),
            ("mean", source, self.out, "--radius=1", "--returnparameterfile=/\x1b[31m/r"),
            ("network-info", bad), ("completion", "\x1b[31m"), ("--xml", "\x1b[31m"),
        ):
            with self.subTest(words=[ascii(str(w)) for w in words]):
                result = run(*words)
                self.assertIn(result.returncode, (0, 1, 2), str(result))
                self.assertNotRegex(result.stdout + result.stderr, "[\x00-\x09\x0b-\x1f\x7f-\x9f]")
        result = self.assert_runs("plan", "mean", source, self.out, "--radius=1")
        self.assertIn("a\\x1b[31m\\x07", result.stdout)
        self.assertIn("é", result.stdout)

    def test_random_words(self):
        """Run by a user who may write into the test's folder alone."""
        self.folder.chmod(0o777)
        inputs = Inputs(self.folder)
        os.mkfifo(self.folder / "pipe.mha")
        (self.folder / "empty.mha").touch()
        names = all_subcommands(self)
        options = {name: listed_options(name) for name in names}
        generator = random.Random(os.environ.get("CHUNKWISE_TEST_SEED", "39"))
        files = [str(inputs.path), *map(str, inputs.files.values()), str(self.out), str(self.folder), "pipe.mha", "empty.mha",
                 "/dev/null", "/dev/full", "/proc/self/mem", "none/o.mha", "o.nii.gz", "o.mhd", "o", "{stem}.mha", "{", ".",
                 "a" * 300 + ".mha", "\udcff.mha", "*.mha", "[", "p%d%s%n.mha", "-", "o.mha/"]
        values = ["", "0", "1", "2", "-1", "1,1,1", "1,2", ",", "nan", "inf", "-0", "1e999", "1e-999", "99999999999999999999",
                  "0x10", "1.5", "auto", "uint8", "float64", "mirror", "constant", "fft", "cpu", "\udcff", "\n", "a" * 5000,
                  "1," * 3000 + "1", "512K", "1T", "0,0,0,1,1,1", "on", "{name}", "--", "=", "mean --radius 1",
                  "uint8,5,5", "uint8,9999999999,9999999999", "uint8,2,2,offset=-1", "\x1b[31m", "%s%n"]
        others = ["measure", "filter-labels", "fill-label-holes", "separate", "pyramid", "chain", "statistics", "devices", "formats", "man", "plan", "network-info", "completion", "slicer-modules",
                  "fiji-scripts", "--xml", "--help", "--version", "help", ""]

        def option(subcommand):
            name = "--" + generator.choice(options[subcommand])
            value = generator.choice(generator.choice((files, values, values)))
            return [name + "=" + value] if generator.random() < 0.7 else [name, value] if generator.random() < 0.7 else [name]

        for number in range(2000 if EXHAUSTIVE else 200):
            subcommand = generator.choice(names)
            words = ["plan"] if generator.random() < 0.2 else []
            words.append(subcommand if generator.random() < 0.8 else generator.choice(others))
            if generator.random() < 0.8:
                words += [str(inputs.path), "o.mha"]
            else:
                words += [generator.choice(files) for _ in range(generator.randrange(4))]
            if generator.random() < 0.7:
                words += inputs.arguments(REQUIRED[subcommand])
            for _ in range(generator.randrange(4)):
                words += option(subcommand)
            if generator.random() < 0.1:
                generator.shuffle(words)
            with self.subTest(number=number, words=ascii(words)[:600]):
                user = {"user": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
                result = run(*words, "--threads=2" if generator.random() < 0.5 else "--quiet", timeout=30, cwd=self.folder, **user)
                self.assertIn(result.returncode, (0, 1, 2), str(result))
                if result.returncode:
                    lines = [line for line in result.stderr.splitlines() if not line.startswith("chunkwise: warning: ")]
                    if not any(word.startswith("--out") for word in words):
                        self.assertEqual(len(lines), 1 + (len(lines) - 1) * ("--verbose" in words), str(result))
                    self.assertTrue(lines and lines[-1].startswith("chunkwise: "), str(result))
                    self.assertNotRegex(lines[-1], r"basic_string|std::|vector::|Resource temporarily|bad_alloc|\bSet[A-Z]|itk::")
                self.assertTrue(stat.S_ISFIFO(os.stat(self.folder / "pipe.mha").st_mode))
