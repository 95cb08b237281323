# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""--memory is kept by every subcommand, what a refusal says is enough and not much too much, and the limit of the group
that the program runs in is the memory that there is."""
import os
import re

from adversary.subcommands import REQUIRED, Inputs, all_subcommands
from adversary.support import EXHAUSTIVE, MIB, ProgramTest, noise, own_mounts, read, run, write, write_sparse

SIZE = (256, 256, 256) if EXHAUSTIVE else (128, 128, 128)
# The memory that a run asks for suffices; no more than this many times less would.
MOST_TOO_MUCH = 1.3


class Memory(ProgramTest):
    def needed(self, result):
        found = re.search(r"needs (?:at least )?([\d.]+) (MiB|GiB)", result.stderr) or re.search(
            r"([\d.]+) (MiB|GiB) that .* needs", result.stderr)
        self.assertTrue(found, f"does not say what it needs: {result}")
        return float(found.group(1)) * (1024 if found.group(2) == "GiB" else 1)

    def run_with(self, words, mebibytes):
        """MiB may have a fraction: 1.5M is a size."""
        self.out.unlink(missing_ok=True)
        # The least memory lets some filters take long, beside other tests.
        result, peak = self.measured(*words, f"--memory={mebibytes:g}M", timeout=400)
        if result.returncode == 0:
            self.assertLessEqual(peak / MIB, mebibytes, f"peak memory: {result}")
        return result

    def test_every_subcommand_under_three_budgets(self):
        inputs = Inputs(self.folder, SIZE, "uint8")
        for subcommand in all_subcommands(self):
            options = dict(REQUIRED[subcommand])
            if subcommand.endswith("-by-reconstruction"):
                options["preserve-intensities"] = None
            words = [subcommand, inputs.path, self.out, *inputs.arguments(options)]
            with self.subTest(subcommand=subcommand):
                refused = run(*words, "--memory=1M")
                self.assert_failed(refused, "--memory")
                least = self.needed(refused)
                result = self.run_with(words, least)
                self.assertEqual(result.returncode, 0, f"{least} MiB, as it says, are not enough: {result}")
                expected = self.out.read_bytes()
                less = self.run_with(words, least / MOST_TOO_MUCH)
                self.assertNotEqual(less.returncode, 0, f"asks for {least} MiB, and less would do: {less}")
                for factor in (1.25, 2.5):
                    result = self.run_with(words, int(least * factor))
                    self.assertEqual(result.returncode, 0, str(result))
                    if subcommand in ("convolve-image", "convolve-varying", "network"):
                        # Transforms have a bound instead of bits.
                        self.out.with_name("least.mha").write_bytes(expected)
                        values, wanted = read(self.out).values, read(self.out.with_name("least.mha")).values
                        worst = max(abs(a - b) for a, b in zip(values, wanted))
                        self.assertLessEqual(worst, 3e-5 * max(map(abs, wanted)), "the result depends on the budget")
                    else:
                        self.assertEqual(self.out.read_bytes(), expected, "the result depends on the budget")

    def test_deconvolution_with_a_large_kernel(self):
        """Slabs and spectra of kernels are as large as images."""
        source = write(self.folder / "in.mha", noise((160, 160, 160), "uint8"))
        kernel = write(self.folder / "kernel.mha", noise((33, 33, 33), "uint8"))
        words = ["deconvolve", source, self.out, f"--kernel={kernel}", "--iterations=1", "--backend=cpu"]
        refused = run(*words, "--memory=1M")
        self.assert_failed(refused, "--memory")
        for factor in (1, 1.15, 1.25):
            result = self.run_with(words, int(self.needed(refused) * factor))
            self.assertEqual(result.returncode, 0, str(result))

    def test_formats_that_are_not_streamed(self):
        """A whole image is held, or the run refused; never more than allowed."""
        source = write(self.folder / "in.mha", noise((200, 200, 100), "int16"))
        for ending in ("nii.gz", "nrrd", "nii", "tif", "h5", "vtk", "mrc"):
            out = self.folder / ("o." + ending)
            self.assert_runs("identity", source, out)
            for words in (("identity", source, self.folder / ("o2." + ending)), ("mean", out, self.out, "--radius=1")):
                with self.subTest(ending=ending, words=words[0]):
                    refused = run(*words, "--memory=1M")
                    self.assert_failed(refused)
                    for mebibytes in (self.needed(refused), 1.5 * self.needed(refused), 150):
                        result = self.run_with(words, mebibytes)
                        if result.returncode:
                            self.assert_failed(result, "in pieces" if "in pieces" in result.stderr else None)

    def test_shards_larger_than_the_memory(self):
        """Memory follows from chunks, not from shards, which are written while their chunks come."""
        source = write(self.folder / "in.mha", noise((256, 256, 512), "uint16"))
        store, again = self.folder / "out.ome.zarr", self.folder / "again.ome.zarr"
        layout = "--zarr=chunks=32x32x16,shards=256x256x512"
        # A layer of chunks has 32 MiB. With a whole one, or two, copies would take 104 MiB and means 136.
        thick = layout.replace("32x32x16", "32x32x256")
        for name, more, most in (("identity", [layout], 96), ("mean", ["--radius=1", layout], 96),
                                 ("mean", ["--radius=1", layout + ",pyramid=mean"], 128),
                                 ("identity", [thick], 90), ("mean", ["--radius=1", thick], 90)):
            with self.subTest(name=name, more=more):
                refused = run(name, source, store, *more, "--memory=1M")
                self.assert_failed(refused, "--memory")
                least = self.needed(refused)
                # The shard has 64 MiB; with the image in memory too that would be 128.
                self.assertLess(least, most)
                result, peak = self.measured(name, source, store, *more, f"--memory={least:g}M")
                self.assertEqual(result.returncode, 0, f"{least} MiB, as it says, are not enough: {result}")
                self.assertLessEqual(peak / MIB, least)
                self.assert_runs(name, source, again, *more, "--memory=2G")
                files = [{path.relative_to(folder): path.read_bytes() for path in folder.rglob("c/*/*/*")} for folder in (store, again)]
                self.assertEqual(*files)
                self.assertGreater(len(files[0]), 0)

    def test_sizes(self):
        source = write(self.folder / "in.mha", noise((20, 20, 20), "uint8"))
        for size in ("1.5G", "1500M", "1.5g", "0.5G", "1536MiB", "2GB", "1000000k", "2147483648"):
            with self.subTest(size=size):
                self.assert_runs("mean", source, self.out, "--radius=1", f"--memory={size}")

    def test_the_limit_of_its_group_is_the_memory_there_is(self):
        """The files of a group with a limit of 200 MiB are shown to the program instead of the machine's."""
        large = write_sparse(self.folder / "large.mha", (512, 512, 1024), "uint8")
        limit = 200 * MIB
        for version, files, group, mount in (
            (2, {"box/memory.max": limit, "box/memory.current": MIB, "box/memory.high": "max", "box/memory.stat": "file 0",
                 "cgroup.controllers": "memory"}, "0::/box", "- cgroup2 cgroup2 rw"),
            (1, {"memory/box/memory.limit_in_bytes": limit, "memory/box/memory.usage_in_bytes": MIB,
                 "memory/box/memory.stat": "total_inactive_file 0"}, "4:memory:/box", "- cgroup cgroup rw,memory"),
        ):
            with self.subTest(version=version):
                fake = self.folder / f"group{version}"
                for name, content in files.items():
                    (fake / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
                    (fake / "tree" / name).write_text(f"{content}\n")
                (fake / "cgroup").write_text(group + "\n")
                place = "/sys/fs/cgroup" + ("/memory" if version == 1 else "")
                (fake / "mountinfo").write_text(f"30 20 0:26 / {place} rw,nosuid shared:9 {mount}\n")
                before = own_mounts(
                    'mount --bind "$0/tree" /sys/fs/cgroup && mount --bind "$0/cgroup" /proc/$$/cgroup && '
                    'mount --bind "$0/mountinfo" /proc/$$/mountinfo', fake)
                if not before:
                    self.skipTest("mounting is not allowed here")
                result, peak = self.measured("identity", large, self.out, "--verbose", before=before)
                self.assertEqual(result.returncode, 0, str(result))
                self.assertLess(peak, limit, str(result))
                self.out.unlink()

    def test_within_a_real_group(self):
        """CHUNKWISE_TEST_CGROUP names a folder of the cgroup file system in which the test may make a group."""
        parent = os.environ.get("CHUNKWISE_TEST_CGROUP")
        if not parent:
            self.skipTest("CHUNKWISE_TEST_CGROUP names no group")
        group = os.path.join(parent, f"chunkwise-test-{os.getpid()}")
        os.mkdir(group)
        self.addCleanup(os.rmdir, group)
        limit = 250 * MIB
        name = "memory.max" if os.path.exists(os.path.join(group, "memory.max")) else "memory.limit_in_bytes"
        with open(os.path.join(group, name), "w") as file:
            file.write(str(limit))

        def enter():
            with open(os.path.join(group, "cgroup.procs"), "w") as file:
                file.write(str(os.getpid()))

        large = write_sparse(self.folder / "large.mha", (512, 512, 2048), "uint8")
        for words in (("identity",), ("mean", "--radius=2"), ("h-maxima", "--height=2")):
            with self.subTest(subcommand=words[0]):
                result, peak = self.measured(words[0], large, self.out, *words[1:], preexec_fn=enter)
                self.assertEqual(result.returncode, 0, str(result))
                self.assertLess(peak, limit)
