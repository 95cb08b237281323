# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Tests of the chunkwise program: chunkwiseCommandLineTest.py PROGRAM [unittest arguments]."""
import array
import heapq
import json
import math
import os
import pty
import random
import re
import select
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from adversary.networks import small_model

PROGRAM = None

META_TYPES = {"B": "MET_UCHAR", "I": "MET_UINT", "h": "MET_SHORT", "H": "MET_USHORT", "f": "MET_FLOAT", "d": "MET_DOUBLE"}


def write_mha(path, size, kind, values, truncate=0):
    """A MetaImage of the given size (x first); `truncate` bytes are left out at its end."""
    header = (
        "ObjectType = Image\nNDims = {}\nBinaryData = True\nBinaryDataByteOrderMSB = False\nCompressedData = False\n"
        "ElementSpacing = {}\nDimSize = {}\nElementType = {}\nElementDataFile = LOCAL\n"
    ).format(len(size), " ".join(["0.5"] * len(size)), " ".join(map(str, size)), META_TYPES[kind])
    data = array.array(kind, values).tobytes()
    Path(path).write_bytes(header.encode() + data[: len(data) - truncate])


def read_voxels(path, kind):
    """The voxels of an uncompressed MetaImage, with its data inside or beside it."""
    content = Path(path).read_bytes()
    header, data = re.match(rb"(?s)(.*?ElementDataFile = [^\n]*\n)(.*)", content).groups()
    name = re.search(rb"ElementDataFile = (.*)\n", header).group(1).decode()
    if name != "LOCAL":
        data = (Path(path).parent / name).read_bytes()
    voxels = array.array(kind)
    voxels.frombytes(data)
    return voxels


def run(*arguments, **options):
    return subprocess.run(
        [PROGRAM, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )


class CommandLineTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.directory = Path(cls.folder.name)
        generator = random.Random(7)
        cls.small = cls.directory / "small.mha"
        cls.size = (23, 17, 19)
        cls.values = [generator.randrange(-1000, 1000) for _ in range(23 * 17 * 19)]
        write_mha(cls.small, cls.size, "h", cls.values)
        # 64 MiB: more than once what fits beside the program into the memory limits below.
        cls.large = cls.directory / "large.mha"
        plane = [generator.random() for _ in range(256 * 256 * 4)]
        write_mha(cls.large, (256, 256, 256), "f", plane * 64)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def setUp(self):
        self.work = tempfile.TemporaryDirectory(dir=self.directory)
        self.out = Path(self.work.name) / "out.mha"

    def tearDown(self):
        self.work.cleanup()

    def assert_runs(self, *arguments, **options):
        result = run(*arguments, **options)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def assert_fails(self, status, pattern, *arguments, **options):
        result = run(*arguments, **options)
        self.assertEqual(result.returncode, status, result.stderr)
        self.assertRegex(result.stderr, pattern)
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        return result

    def left_behind(self):
        return sorted(os.listdir(self.work.name))

    def test_identity_copies_the_voxels(self):
        self.assert_runs("identity", self.small, self.out)
        self.assertEqual(list(read_voxels(self.out, "h")), self.values)
        self.assert_runs("identity", self.small, self.out, "--output-type", "float32")
        self.assertEqual(list(read_voxels(self.out, "f")), [float(v) for v in self.values])

    def test_mean_is_the_rounded_mean_of_the_voxels_inside(self):
        self.assert_runs("mean", self.small, self.out, "--radius", "1,0,2")
        nx, ny, nz = self.size
        result = read_voxels(self.out, "h")
        for z in range(nz):
            for y in range(ny):
                for x in range(nx):
                    window = [
                        self.values[i + nx * (y + ny * k)]
                        for k in range(max(z - 2, 0), min(z + 3, nz))
                        for i in range(max(x - 1, 0), min(x + 2, nx))
                    ]
                    self.assertEqual(result[x + nx * (y + ny * z)], round_even(sum(window), len(window)))

    def test_summed_area_table(self):
        sums = list(self.values)
        slices = []
        nx, ny, nz = self.size
        for step, extent in ((1, nx), (nx, ny), (nx * ny, nz)):
            slices = list(sums)
            for i in range(len(sums)):
                sums[i] += sums[i - step] if i // step % extent else 0
        for divisions in (1, 5):
            self.assert_runs("sat", self.small, self.out, "--divisions", divisions)
            self.assertEqual(list(read_voxels(self.out, "q")), sums)
        self.assert_runs("sat", self.small, self.out, "--summed-axes", 2, "--output-type", "float64")
        self.assertEqual(read_voxels(self.out, "d").tolist(), slices)
        self.assert_runs("sat", self.small, self.out, "--squares")
        self.assertEqual(read_voxels(self.out, "q")[-1], sum(v * v for v in self.values))
        self.assert_fails(2, "int16", "sat", self.small, self.out, "--output-type", "int16", "--quiet")
        self.assert_fails(2, "uint32", "sat", self.small, self.out, "--output-type", "uint32")
        self.assert_fails(2, "--summed-axes", "sat", self.small, self.out, "--summed-axes", 4)
        self.assert_fails(2, "--step.*not a filter", "sequence", self.small, self.out, "--step", "sat")

    def test_box_with_a_radius_for_each_voxel(self):
        nx, ny, nz = self.size
        self.assert_runs("mean", self.small, self.out, "--radius", "2,1,3", "--output-type", "float32")
        expected = self.out.read_bytes()
        self.assert_runs("box", self.small, self.out, "--radius", "2,1,3")
        self.assertEqual(self.out.read_bytes(), expected)
        radii = [i * 7 % 6 - 1 for i in range(len(self.values))]
        radius_image = self.out.with_name("radii.mha")
        write_mha(radius_image, self.size, "h", radii)
        self.assert_runs(
            "box", self.small, self.out, "--statistic", "sum", "--radius", "3,2,4", "--radius-image", radius_image,
            "--output-type", "float64", "--divisions", 3,
        )
        result = read_voxels(self.out, "d")
        for i in range(0, len(self.values), 37):
            at = (i % nx, i // nx % ny, i // nx // ny)
            ranges = []
            for p, n, largest in zip(at, self.size, (3, 2, 4)):
                r = min(max(radii[i], 0), largest)
                ranges.append(range(max(p - r, 0), min(p + r + 1, n)))
            total = sum(self.values[x + nx * (y + ny * z)] for z in ranges[2] for y in ranges[1] for x in ranges[0])
            self.assertEqual(result[i], total)
        write_mha(radius_image, (nx, ny, nz - 1), "h", radii[: nx * ny * (nz - 1)])
        wrong = ("box", self.small, self.out, "--radius", 2, "--radius-image", radius_image)
        self.assert_fails(1, "--radius-image: .*voxels", *wrong)
        self.assert_fails(2, "--statistic", "box", self.small, self.out, "--radius", 1, "--statistic", "median")
        self.assert_fails(
            2, "not a filter", "sequence", self.small, self.out, "--step",
            "box --radius 1 --radius-image {}".format(self.small),
        )

    def test_windows_over_a_part_of_the_image(self):
        nx, ny, nz = self.size
        generator = random.Random(11)
        mask, weight, image = (self.out.with_name(name + ".mha") for name in ("mask", "weight", "image"))
        inside = [generator.randrange(5) // 4 * 9 for _ in self.values]
        weights = [generator.randrange(4) / 4 for _ in self.values]
        reals = [v if v % 5 else math.nan for v in map(float, self.values)]
        write_mha(mask, self.size, "h", inside)
        write_mha(weight, self.size, "f", weights)
        write_mha(image, self.size, "f", reals)
        cases = (
            (self.small, ("--mask", mask), inside, [1 if w else 0 for w in inside], self.values),
            (self.small, ("--weight", weight), weights, weights, self.values),
            (image, ("--ignore-nan",), weights, [0 if math.isnan(v) else 1 for v in reals], reals),
            (image, ("--ignore-nan", "--mask", mask), weights,
             [0 if math.isnan(v) or not w else 1 for v, w in zip(reals, inside)], reals),
        )
        for source, options, _, counts, values in cases:
            for divisions in (1, 6):
                with self.subTest(options=options, divisions=divisions):
                    self.assert_runs(
                        "mean", source, self.out, "--radius", 1, *options, "--output-type", "float64", "--empty-value", -7,
                        "--divisions", divisions)
                    result = read_voxels(self.out, "d")
                    empty = 0
                    for i in range(0, len(values), 13):
                        at = (i % nx, i // nx % ny, i // nx // ny)
                        window = [
                            x + nx * (y + ny * z)
                            for z in range(max(at[2] - 1, 0), min(at[2] + 2, nz))
                            for y in range(max(at[1] - 1, 0), min(at[1] + 2, ny))
                            for x in range(max(at[0] - 1, 0), min(at[0] + 2, nx))
                        ]
                        total = sum(counts[j] for j in window)
                        mean = sum(counts[j] * values[j] for j in window if counts[j]) / total if total else -7
                        empty += total == 0
                        self.assertAlmostEqual(result[i], mean, delta=1e-4)
                    self.assertEqual(empty > 0, options == ("--mask", mask) or len(options) > 2)
        usual = ("mean", self.small, self.out, "--radius", 1)
        self.out.unlink()
        weights[5000] = -0.25
        write_mha(weight, self.size, "f", weights)
        self.assert_fails(2, "--weight: a weight is negative", *usual, "--weight", weight)
        self.assertFalse(self.out.exists())
        write_mha(mask, (nx, ny, nz - 1), "h", inside[: nx * ny * (nz - 1)])
        self.assert_fails(1, "--mask: .*voxels", *usual, "--mask", mask)
        write_mha(mask, self.size, "h", inside)
        self.assert_fails(2, "--weight: it is given beside", *usual, "--mask", mask, "--weight", weight)
        self.assert_fails(2, "--mask: its voxels are float32.*--weight|--mask: its voxels are float32", *usual, "--mask", image)
        self.assert_fails(2, "--empty-value", *usual, "--empty-value", 3)
        self.assert_fails(2, "--ignore-nan: .*int16", *usual, "--ignore-nan")
        self.assert_fails(2, "--weights?: -1 is negative", "convolve", self.small, self.out, "--radius", "1,0,0", "--weights", "-1,0,2", "--mask", mask)
        self.assert_fails(2, "--mask", "log", self.small, self.out, "--sigma", 1, "--mask", mask)
        self.assertFalse(self.out.exists())

    def test_boundaries_differ_at_the_edge_and_agree_inside(self):
        inside = (12 + 23 * (8 + 17 * 9), 11 + 23 * (9 + 17 * 10))
        seen = {}
        for boundary in ("renormalized", "zero-flux", "mirror", "mirror-center", "periodic", "constant"):
            self.assert_runs("gaussian", self.small, self.out, "--sigma", "1", "--voxels", "--boundary", boundary)
            seen[boundary] = list(read_voxels(self.out, "h"))
        corners = [values[0] for values in seen.values()]
        self.assertEqual(len(set(corners)), len(corners), corners)
        for index in inside:
            self.assertEqual(len({values[index] for values in seen.values()}), 1)

    def test_sigma_is_physical_unless_voxels_are_asked_for(self):
        self.assert_runs("gaussian", self.small, self.out, "--sigma", "1")
        physical = self.out.read_bytes()
        self.assert_runs("gaussian", self.small, self.out, "--sigma", "2", "--voxels")
        self.assertEqual(self.out.read_bytes(), physical)

    def test_divisions_do_not_change_the_file(self):
        for command in (("mean", "--radius", 3), ("gaussian", "--sigma", 1.5)):
            self.assert_runs(command[0], self.small, self.out, *command[1:])
            whole = self.out.read_bytes()
            for divisions in (2, 3, 5, 7, 19, 1000):
                self.assert_runs(command[0], self.small, self.out, *command[1:], "--divisions", divisions)
                self.assertEqual(self.out.read_bytes(), whole, divisions)

    def test_header_and_raw_file_appear_together(self):
        self.out = self.out.with_suffix(".mhd")
        self.assert_runs("mean", self.small, self.out, "--radius", 1, "--divisions", 4)
        self.assertEqual(self.left_behind(), ["out.mhd", "out.raw"])
        self.assert_runs("identity", self.out, self.out.with_name("copy.mha"))
        self.assertEqual(read_voxels(self.out, "h"), read_voxels(self.out.with_name("copy.mha"), "h"))

    def memory_for(self, mebibytes, *command):
        """A budget, in MiB, that leaves so much beside the program itself, which takes more on some machines."""
        result = run(*command, "--memory", "1M")
        return mebibytes + int(re.search(r"needs (\d+) MiB", result.stderr).group(1))

    def assert_memory_is_kept(self, memory, result):
        self.assertLess(float(re.search(r"peak memory: ([\d.]+) MiB", result.stderr).group(1)), memory)

    def test_memory_is_kept_with_divisions(self):
        command = ("mean", self.large, self.out, "--radius", 2, "--divisions", 1)
        self.assert_fails(1, r"--memory: one of 1 division needs \d+ MiB", *command, "--memory", f"{self.memory_for(2, *command[:5])}M")
        self.assertFalse(self.out.exists())
        self.assert_runs(*command, "--memory", f"{self.memory_for(0, *command)}M")

    def test_memory_is_kept(self):
        command = ("mean", self.large, self.out, "--radius", 2)
        self.assert_runs(*command, "--divisions", 1)
        whole = self.out.read_bytes()
        memory = self.memory_for(64, *command)
        result = self.assert_runs(*command, "--memory", f"{memory}M", "--verbose")
        self.assertEqual(self.out.read_bytes(), whole)
        self.assertGreater(int(re.search(r"divisions: (\d+)", result.stderr).group(1)), 1)
        self.assert_memory_is_kept(memory, result)

    def test_memory_is_kept_by_windows_wider_than_a_piece(self):
        command = ("gaussian", self.large, self.out, "--sigma", 9)
        self.assert_runs(*command)
        whole = self.out.read_bytes()
        memory = self.memory_for(64, *command)
        result = self.assert_runs(*command, "--memory", f"{memory}M", "--verbose")
        self.assertEqual(self.out.read_bytes(), whole)
        self.assert_memory_is_kept(memory, result)

    def test_memory_is_kept_by_devices(self):
        if not re.search(r"^cuda \d", self.assert_runs("devices").stdout, re.MULTILINE):
            self.skipTest("no CUDA device")
        command = ("mean", self.large, self.out, "--radius", 2, "--backend", "cuda")
        memory = self.memory_for(65, *command)
        result = self.assert_runs(*command, "--memory", f"{memory}M", "--verbose")
        self.assertGreater(int(re.search(r"divisions: (\d+)", result.stderr).group(1)), 1)
        self.assert_memory_is_kept(memory, result)

    def test_voxels_without_a_header(self):
        values = [(x * 7919 + 13) % 60000 for x in range(7 * 5 * 4)]
        raw = Path(self.work.name) / "voxels.bin"
        for first, order, more in (b"", "<", ""), (b"header", ">", ",offset=6,big-endian,spacing=0.5:1:2.5"):
            raw.write_bytes(first + struct.pack(f"{order}{len(values)}H", *values))
            self.assert_runs("identity", raw, self.out, "--raw", "uint16,7,5,4" + more)
            self.assertEqual(list(read_voxels(self.out, "H")), values)
            self.assertIn(b"DimSize = 7 5 4\n", self.out.read_bytes())
            if more:
                self.assertIn(b"ElementSpacing = 0.5 1 2.5\n", self.out.read_bytes())
            shown = json.loads(self.assert_runs("statistics", raw, "--raw", "uint16,7,5,4" + more, "--json").stdout)
            self.assertEqual(shown["sum"], sum(values))
            self.out.unlink()
        for text, message in (
            ("uint16,7,5", "bytes"), ("uint16,7,5,4", "bytes"), ("uint16,7,5,4,offset=7", "bytes"),
        ):
            self.assert_fails(1, "IN.*voxels.bin.*" + message, "identity", raw, self.out, "--raw", text)
        for text in (
            "uint17,7,5,4", "uint16", "uint16,7", "uint16,0,5,4", "uint16,7,5,4,3,2,1", "uint16,7,5,4,offset",
            "uint16,7,5,4,offset=-1", "uint16,7,5,4,spacing=1:2", "uint16,7,5,4,spacing=1:0:1", "uint16,7,5,4,other",
            "uint16,7,5,4,big-endian=1", "uint16,3000000000,3000000000,3000000000", "uint16,7,x,4",
        ):
            self.assert_fails(2, "--raw", "identity", raw, self.out, "--raw", text)
        self.assertFalse(self.out.exists())

    def test_what_is_written_can_be_compressed(self):
        self.assert_runs("mean", self.large, self.out, "--radius", 1)
        whole = read_voxels(self.out, "f")
        plain = self.out.stat().st_size
        for ending in (".mha", ".nrrd", ".nii.gz"):
            small = self.out.with_name("small" + ending)
            compress = () if ending == ".nii.gz" else ("--compress",)
            self.assert_runs("mean", self.large, small, "--radius", 1, "--divisions", 5, *compress)
            self.assertLess(small.stat().st_size, 0.95 * plain)
            self.assert_runs("mean", small, self.out, "--radius", 0)
            self.assertEqual(read_voxels(self.out, "f"), whole)
            small.unlink()
        self.assert_fails(2, "OUT.*compressed", "mean", self.small, self.out.with_suffix(".mrc"), "--radius", 1, "--compress")

    def test_reconstructions_that_do_not_fit_go_in_slabs(self):
        generator = random.Random(11)
        image, marker = self.work.name + "/image.mha", self.work.name + "/marker.mha"
        plane = [generator.randrange(256) for _ in range(160 * 160)]
        values = [v for z in range(320) for v in plane[z * 31 % 9999:] + plane[: z * 31 % 9999]]
        write_mha(image, (160, 160, 320), "B", values)
        write_mha(marker, (160, 160, 320), "B", [v if v % 97 == 0 else 0 for v in values])
        for filter, *parameters in (
            ("h-maxima", "--height", 40), ("h-minima", "--height", 9), ("fill-holes",), ("regional-minima",),
            ("clear-border",), ("h-convex", "--height", 40, "--output-type", "float32"),
            ("closing-by-reconstruction", "--radius", 1), ("reconstruct", "--marker", marker),
        ):
            with self.subTest(filter=filter):
                command = (filter, image, self.out, *parameters, "--backend", "cpu")
                self.assert_runs(*command)
                whole = self.out.read_bytes()
                memory = self.memory_for(2, *command)
                result = self.assert_runs(*command, "--memory", f"{memory}M", "--verbose")
                self.assertEqual(self.out.read_bytes(), whole)
                self.assertIn("slabs: ", result.stderr)
                self.assert_memory_is_kept(memory, result)
                self.assertEqual(self.assert_runs(*command, "--memory", f"{memory}M").stderr, "")
                self.assertIn("slabs: ", self.assert_runs("plan", *command, "--memory", f"{memory}M").stdout)
                # A part of the result needs the whole image in memory.
                if "-reconstruction" not in filter:
                    self.assert_fails(1, "--memory: one of 1 division needs", *command, "--memory", f"{memory}M",
                                      "--region", "0,0,0,160,160,9")
        os.remove(image)
        os.remove(marker)

    def test_watersheds_that_do_not_fit_go_in_blocks(self):
        generator = random.Random(12)
        image, marker = self.work.name + "/image.mha", self.work.name + "/marker.mha"
        plane = [generator.randrange(60) for _ in range(80 * 80)]
        values = [v for z in range(200) for v in plane[z * 31 % 6007:] + plane[: z * 31 % 6007]]
        write_mha(image, (80, 80, 200), "B", values)
        write_mha(marker, (80, 80, 200), "B", [v if i % 97 == 0 else 0 for i, v in enumerate(values)])
        for parameters in (("--height", 20, "--connectivity", 3), ("--markers", marker, "--lines"), ("--volume", 900, "--voxels")):
            with self.subTest(parameters=parameters):
                command = ("watershed", image, self.out, *parameters)
                self.assert_runs(*command)
                whole = self.out.read_bytes()
                memory = self.memory_for(3, *command)
                result = self.assert_runs(*command, "--memory", f"{memory}M", "--verbose")
                self.assertEqual(self.out.read_bytes(), whole)
                self.assertIn("slabs: ", result.stderr)
                self.assert_memory_is_kept(memory, result)
                self.assert_fails(1, "--memory: one of 1 division needs", *command, "--memory", f"{memory - 10}M")
                self.assertEqual(sorted(each.name for each in Path(self.work.name).iterdir()),
                                 ["image.mha", "marker.mha", "out.mha"])
        os.remove(image)
        os.remove(marker)

    def test_area_openings_that_do_not_fit_go_in_blocks(self):
        generator = random.Random(13)
        image = self.work.name + "/image.mha"
        plane = [generator.randrange(60) for _ in range(80 * 80)]
        write_mha(image, (80, 80, 200), "B", [v for z in range(200) for v in plane[z * 31 % 6007:] + plane[: z * 31 % 6007]])
        for parameters in (("area-opening", "--connectivity", 2), ("area-closing",)):
            with self.subTest(parameters=parameters):
                command = (parameters[0], image, self.out, "--size", 150, "--voxels", *parameters[1:])
                self.assert_runs(*command)
                whole = self.out.read_bytes()
                memory = self.memory_for(7, *command)
                result = self.assert_runs(*command, "--memory", f"{memory}M", "--verbose")
                self.assertEqual(self.out.read_bytes(), whole)
                self.assertIn("slabs: ", result.stderr)
                self.assert_memory_is_kept(memory, result)
                self.assert_fails(1, "--memory: one of 1 division needs", *command, "--memory", f"{memory - 20}M")
                self.assertEqual(sorted(each.name for each in Path(self.work.name).iterdir()), ["image.mha", "out.mha"])
        os.remove(image)

    def test_area_openings_run_with_more_memory_too(self):
        # Components have a level for each voxel before the plane where blocks meet. In memory images would take the room for these.
        image = self.work.name + "/image.mha"
        write_mha(image, (40, 40, 2500), "I", range(40 * 40 * 2500))
        expected = None
        for memory in (84, 96, 104, 112, 150):
            with self.subTest(memory=memory):
                self.assert_runs("area-opening", image, self.out, "--size", 60000, "--voxels", "--memory", f"{memory}M", "--threads", 1)
                expected = expected or self.out.read_bytes()
                self.assertEqual(self.out.read_bytes(), expected)
        os.remove(image)

    def test_what_does_not_fit_fails_before_work(self):
        self.assert_fails(1, r"--memory: .*needs \d+ MiB", "mean", self.small, self.out, "--radius", 1, "--memory", "1M")
        whole = self.out.with_suffix(".gipl")
        memory = self.memory_for(32, "mean", self.small, self.out, "--radius", 1)
        self.assert_fails(1, r"OUT .*out\.gipl.*\.mha.*\.h5", "mean", self.large, whole, "--radius", 1, "--memory", f"{memory}M")
        self.assert_fails(1, r"OUT .*out\.gipl", "mean", self.small, whole, "--radius", 1, "--divisions", 2)
        # Windows that wrap around need the whole image for the first division.
        command = ("mean", self.large, self.out, "--radius", 1, "--boundary", "periodic")
        message = self.assert_fails(1, "--memory: one of 256 divisions needs", *command, "--memory", f"{memory}M").stderr
        # 64 MiB and a quarter of the budget, beside the program itself.
        self.assertGreater(int(re.search(r"needs (\d+) MiB", message).group(1)), memory + 20)
        self.assertEqual(self.left_behind(), [])

    def test_wrong_arguments_exit_2_and_are_named(self):
        small, out = self.small, self.out
        for pattern, arguments in (
            ("subcommand", ()),
            ("--radius", ("mean", small, out)),
            ("--radius", ("mean", small, out, "--radius", -1)),
            ("--radius", ("mean", small, out, "--radius", "1,2")),
            ("--radius", ("mean", small, out, "--radius", "x")),
            ("--sigma", ("gaussian", small, out, "--sigma", -1)),
            ("--sigma", ("gaussian", small, out, "--sigma", "nan")),
            ("--cutoff", ("gaussian", small, out, "--sigma", 1, "--cutoff", 0)),
            ("--boundary", ("mean", small, out, "--radius", 1, "--boundary", "wrong")),
            ("--constant", ("mean", small, out, "--radius", 1, "--boundary", "mirror", "--constant", 3)),
            ("--axes", ("mean", small, out, "--radius", 1, "--axes", "3")),
            ("--axes", ("mean", small, out, "--radius", 1, "--axes", "1,1")),
            ("--backend", ("mean", small, out, "--radius", 1, "--backend", "tpu")),
            ("--devices", ("mean", small, out, "--radius", 1, "--devices", -2)),
            ("--memory", ("mean", small, out, "--radius", 1, "--memory", "much")),
            ("--divisions", ("mean", small, out, "--radius", 1, "--divisions", 0)),
            ("--output-type", ("mean", small, out, "--radius", 1, "--output-type", "uint9")),
            ("--wrong", ("mean", small, out, "--radius", 1, "--wrong")),
            ("IN", ("mean", "/does/not/exist.mha", out, "--radius", 1)),
            ("OUT", ("mean", small, "out.unknown", "--radius", 1)),
            ("missing: OUT, --radius;", ("mean", small)),
            ("missing: IN, OUT, --radius;", ("mean",)),
            ("missing: --marker;", ("reconstruct", small, out)),
            ("missing: IN, --radius;", ("mean", "--out", "{stem}.mha")),
            ("missing: --step;", ("plan", "sequence", small, out)),
            (r"--sigma: 1e-06 along axis 0 with --cutoff 4 ", ("log", small, out, "--sigma", 1e-6)),
            ("--empty-value: 3 has no effect .* such as --mask", ("mean", small, out, "--radius", 1, "--empty-value", 3)),
            ("--height: -3 is not a finite number of at least 0 that int16 has", ("h-maxima", small, out, "--height", -3)),
            ("--percentile: 101 is not a finite number from 0 to 100",
             ("percentile", small, out, "--radius", 1, "--percentile", 101)),
            ("--devices: there is no device 99", ("mean", small, out, "--radius", 1, "--devices", 99)),
            (r"--sigma: .* with --cutoff 50 ", ("log", small, out, "--sigma", 1, "--cutoff", 50, "--boundary", "mirror")),
            ("more.mha: median takes one image; --out", ("median", small, out, "more.mha", "--radius", 1)),
            ("--overwrite", ("median", small, "--out", "{stem}.mha", "--radius", 1, "--overwrite")),
        ):
            with self.subTest(arguments=arguments):
                self.assert_fails(2, pattern, *arguments)
        self.assertEqual(self.left_behind(), [])

    def test_a_terminal_is_asked_before_an_image_is_replaced(self):
        """A shell that expands *.mha in a folder of two images names the second one as OUT."""
        arguments = [PROGRAM, "identity", str(self.small), str(self.out)]

        def on_terminal(answer, *more):
            try:
                master, slave = pty.openpty()
            except OSError as error:
                self.skipTest(f"this machine has no terminals: {error}")
            os.write(master, answer)
            process = subprocess.Popen([*arguments, *more], stdin=slave, stderr=slave)
            os.close(slave)
            status = process.wait(60)
            said = os.read(master, 65536) if select.select([master], [], [], 0)[0] else b""
            os.close(master)
            return status, said.decode()

        for answer, more, status in (
            (b"n\n", (), 1), (b"\n", (), 1), (b"\x04", (), 1), (b"maybe\n", (), 1), (b"y\n", (), 0), (b"n\n", ("--overwrite",), 0),
            (b"n\n", ("--progress", "xml"), 0),
        ):
            with self.subTest(answer=answer, more=more):
                self.out.write_text("somebody's")
                found, said = on_terminal(answer, *more)
                self.assertEqual(found, status, said)
                self.assertEqual("exists; replace it?" in said, not more)
                self.assertEqual(self.out.read_bytes() == b"somebody's", status == 1)
                self.assertEqual("--overwrite" in said, status == 1)
        # Nobody is asked what cannot be done, nor where there is nothing to lose, nor without a terminal.
        self.out.unlink()
        self.assertNotIn("replace", on_terminal(b"n\n")[1])
        self.assertNotIn("replace", on_terminal(b"y\n", "--region", "99,99")[1])
        self.assertEqual(run(*arguments[1:], stdin=subprocess.DEVNULL).returncode, 0)

    def test_failed_work_exits_1_and_leaves_the_old_output(self):
        self.out.write_text("old")
        cut = Path(self.work.name) / "cut.mha"
        write_mha(cut, self.size, "h", self.values, truncate=5000)
        self.assert_fails(1, r"IN: .*cut\.mha", "mean", cut, self.out, "--radius", 1, "--divisions", 6)
        text = Path(self.work.name) / "text.mha"
        text.write_text("no image")
        self.assert_fails(1, "text.mha", "mean", text, self.out, "--radius", 1)
        self.assert_fails(2, "OUT.*/does/not", "mean", self.small, "/does/not/exist.mha", "--radius", 1)
        self.assertEqual(self.out.read_text(), "old")
        self.assertEqual(self.left_behind(), ["cut.mha", "out.mha", "text.mha"])

    def test_a_full_disk_is_an_error_and_leaves_no_output(self):
        def limit_files():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

        for divisions in (1, 3):
            result = run(
                "mean", self.large, self.out, "--radius", 1, "--divisions", divisions, preexec_fn=limit_files
            )
            self.assertEqual(result.returncode, 1, result.stderr)
            # MetaIO may say something first.
            self.assertTrue(result.stderr.splitlines()[-1].startswith("chunkwise: "), result.stderr)
            self.assertEqual(self.left_behind(), [])

    def test_a_full_disk_is_noticed_in_every_format(self):
        def limit_files():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 18, 1 << 18))

        # Noise, which does not compress.
        noise = self.directory / "noise.mha"
        generator = random.Random(8)
        write_mha(noise, (64, 64, 64), "h", [generator.randrange(-32768, 32768) for _ in range(64 ** 3)])
        for ending in ("mha", "mhd", "mrc", "vtk", "nii", "nii.gz", "hdr", "nrrd", "nhdr", "tif", "h5", "gipl"):
            with self.subTest(ending=ending):
                out = Path(self.work.name) / ("out." + ending)
                arguments = ("identity", noise, out, "--quiet")
                result = run(*arguments, preexec_fn=limit_files)
                self.assertEqual(result.returncode, 1, result.stderr)
                self.assertTrue(result.stderr.splitlines()[-1].startswith("chunkwise: "), result.stderr)
                self.assertEqual(self.left_behind(), [])
                self.assert_runs(*arguments)
                for name in self.left_behind():
                    (Path(self.work.name) / name).unlink()

    def start_and_signal(self, number):
        """Sends a signal once the output is being written."""
        process = subprocess.Popen(
            [PROGRAM, "mean", self.large, self.out, "--radius", "2", "--divisions", "256"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        while not any(Path(self.work.name).glob(".out.mha.*/out.mha")):
            self.assertIsNone(process.poll(), "the run ended before it could be interrupted")
            time.sleep(0.001)
        process.send_signal(number)
        _, error = process.communicate()
        return process.returncode, error

    def test_an_interrupted_run_leaves_nothing(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            status, error = self.start_and_signal(number)
            # A shell's loop ends only if the program dies by the signal.
            self.assertEqual(status, -number, error)
            self.assertEqual(error, "chunkwise: interrupted\n")
            self.assertEqual(self.left_behind(), [])

    def test_a_killed_run_leaves_no_output_under_its_name(self):
        status, _ = self.start_and_signal(signal.SIGKILL)
        self.assertEqual(status, -signal.SIGKILL)
        self.assertNotIn("out.mha", self.left_behind())

    def test_progress_is_drawn_on_a_terminal_only(self):
        arguments = ("mean", self.large, self.out, "--radius", 12, "--divisions", 64, "--threads", 1)
        self.assertEqual(self.assert_runs(*arguments).stderr, "")
        for quiet in (False, True):
            try:
                master, slave = pty.openpty()
            except OSError as error:
                self.skipTest(f"this machine has no terminals: {error}")
            process = subprocess.Popen([PROGRAM, *map(str, arguments), *["--quiet"] * quiet],
                                       stdin=subprocess.DEVNULL, stderr=slave)
            os.close(slave)
            drawn = b""
            while True:
                try:
                    part = os.read(master, 4096)
                except OSError:
                    break
                if not part:
                    break
                drawn += part
            os.close(master)
            self.assertEqual(process.wait(), 0)
            if quiet:
                self.assertEqual(drawn, b"")
            else:
                percents = [int(p) for p in re.findall(rb"(\d+) %", drawn)]
                self.assertGreater(len(percents), 1)
                self.assertEqual(percents, sorted(percents))
                self.assertIn(b"voxel/s", drawn)
                self.assertIn(b"left", drawn)

    def test_plan_says_what_would_run_and_runs_nothing(self):
        command = ("mean", self.large, self.out, "--radius", 2)
        memory = self.memory_for(64, *command)
        result = self.assert_runs("plan", *command, "--memory", f"{memory}M")
        for part in ("256 x 256 x 256 voxels of float32", "divisions:", "chunks:", "read", "expected:"):
            self.assertIn(part, result.stdout)
        # The CPU's time is measured, so that it is known for what does not depend on the image.
        for filter in (("mean", "--radius", 2), ("sat",), ("median", "--radius", 1), ("gaussian", "--sigma", 20)):
            plan = self.assert_runs("plan", filter[0], self.small, self.out, *filter[1:], "--backend", "cpu").stdout
            self.assertGreater(float(re.search(r"expected: (\S+) s of computing", plan).group(1)), 0.0)
        whole = self.assert_runs("plan", "fill-holes", self.small, self.out, "--backend", "cpu").stdout
        self.assertIn("expected: unknown", whole)
        self.assertEqual(self.left_behind(), [])
        self.assert_fails(2, "--radius", "plan", "mean", self.large, self.out)

    def test_plan_of_a_network_says_what_is_kept_where(self):
        model, image = self.directory / "model.onnx", self.directory / "long.mhd"
        model.write_bytes(small_model())
        image.write_text("ObjectType = Image\nNDims = 3\nDimSize = 240 240 600\nElementType = MET_UCHAR\n"
                         "ElementDataFile = long.raw\n")
        with open(self.directory / "long.raw", "wb") as file:
            file.truncate(240 * 240 * 600)
        command = ("plan", "network", "--model", model, image, self.out, "--backend", "cpu", "--divisions", 1)
        layers = json.loads(self.assert_runs(*command, "--json").stdout)["layers"]
        # It is computed in slabs: of what the last convolutions look at, planes are kept, and where they are computed.
        self.assertGreater(layers[0]["keptBytes"], 0)
        self.assertEqual(layers[-1]["keptBytes"], 0)
        for layer in layers:
            self.assertIs(layer["keptByHost"], False)
            self.assertIs(layer["byCpu"], False)
        self.assertNotIn("pinnedBytes", self.assert_runs(*command, "--json").stdout)
        lines = self.assert_runs(*command).stdout.splitlines()
        first = next(i for i, line in enumerate(lines) if line.startswith("  layer"))
        at = lines[first].index("kept")
        for layer, line in zip(layers, lines[first + 1:]):
            self.assertEqual(line[at:at + 10].strip() != "", layer["keptBytes"] > 0, line)
        self.assertNotIn("host: ", "\n".join(lines))

    def test_verbose_prints_plan_backend_time_and_peak_memory(self):
        result = self.assert_runs("mean", self.small, self.out, "--radius", 1, "--backend", "cpu", "--verbose")
        for part in ("image: ", "divisions: 1", "chunks: ", "backend: cpu", "time: ", "peak memory: "):
            self.assertIn(part, result.stderr)
        self.assertEqual(result.stdout, "")

    def test_devices_lists_the_cpu(self):
        result = self.assert_runs("devices")
        self.assertRegex(result.stdout, r"(?m)^cpu: \d+ threads, ")
        self.assertRegex(result.stdout, r"(?m)^cuda( \d+)?: ")
        if "cuda: none" in result.stdout:
            self.assertRegex(result.stdout, r"cuda: none \(.+\)")
            self.assert_fails(1, "CUDA", "mean", self.small, self.out, "--radius", 1, "--backend", "cuda")

    def test_threads_do_not_change_the_file(self):
        self.assert_runs("gaussian", self.small, self.out, "--sigma", 2, "--threads", 1)
        one = self.out.read_bytes()
        self.assert_runs("gaussian", self.small, self.out, "--sigma", 2, "--threads", 3)
        self.assertEqual(self.out.read_bytes(), one)

    def test_every_dimension_and_axes(self):
        for size in ((9, 8), (7, 6, 5), (6, 5, 4, 3), (5, 4, 3, 3, 2)):
            count = 1
            for extent in size:
                count *= extent
            source = Path(self.work.name) / "source.mha"
            values = [(37 * i) % 251 for i in range(count)]
            write_mha(source, size, "B", values)
            # A window along the last axis alone, as wide as the image.
            self.assert_runs("mean", source, self.out, "--radius", 9, "--axes", len(size) - 1)
            stride = count // size[-1]
            expected = [round_even(sum(values[i % stride :: stride]), size[-1]) for i in range(count)]
            self.assertEqual(list(read_voxels(self.out, "B")), expected)

    def test_sum_and_standard_deviation_of_the_voxels_inside(self):
        nx = self.size[0]
        self.assert_runs("sum", self.small, self.out, "--radius", 1, "--axes", 0, "--output-type", "float64")
        sums = read_voxels(self.out, "d")
        self.assert_runs("variance", self.small, self.out, "--radius", 1, "--axes", 0, "--output-type", "float64")
        variances = read_voxels(self.out, "d")
        self.assert_runs("std", self.small, self.out, "--radius", 1, "--axes", 0, "--output-type", "float64")
        deviations = read_voxels(self.out, "d")
        for i, x in ((i, i % nx) for i in range(len(self.values))):
            window = self.values[i - min(x, 1) : i + min(nx - x, 2)]
            mean = sum(window) / len(window)
            variance = sum((v - mean) ** 2 for v in window) / len(window)
            self.assertEqual(sums[i], sum(window))
            self.assertAlmostEqual(variances[i], variance, delta=1e-6)
            self.assertAlmostEqual(deviations[i], variance**0.5, delta=1e-6)

    def test_a_sequence_is_its_steps_one_after_the_other(self):
        between = self.out.with_name("between.mha")
        self.assert_runs("gaussian", self.small, between, "--sigma", 0.7, "--output-type", "float32")
        self.assert_runs("mean", between, self.out, "--radius", "2,1,1", "--boundary", "mirror")
        expected = self.out.read_bytes()
        steps = ("--step", "gaussian --sigma 0.7", "--step", "mean --radius 2,1,1 --boundary mirror")
        for divisions in (1, 4):
            self.assert_runs(
                "sequence", self.small, self.out, *steps, "--output-type", "float32", "--divisions", divisions
            )
            self.assertEqual(self.out.read_bytes(), expected)
        for pattern, step in (
            ("--radius", "mean"), ("--memory", "mean --radius 1 --memory 1G"), ("devices", "devices"),
            ("wrong", "wrong --radius 1"),
            ("plan mean", "plan mean --radius 1"),
        ):
            self.assert_fails(2, "--step: .*" + pattern, "sequence", self.small, self.out, "--step", step)

    def test_statistics_are_printed(self):
        result = self.assert_runs("statistics", self.small, "--divisions", 3)
        for line in (
            "sum: {}".format(sum(self.values)), "minimum: {}".format(min(self.values)),
            "maximum: {}".format(max(self.values)),
        ):
            self.assertIn(line, result.stdout.splitlines())
        mean = float(re.search(r"mean: (\S+)", result.stdout).group(1))
        self.assertAlmostEqual(mean, sum(self.values) / len(self.values), delta=1e-12)

    def test_a_high_pass_is_the_difference_from_the_gaussian(self):
        real = self.out.with_name("real.mha")
        smooth = self.out.with_name("smooth.mha")
        self.assert_runs("identity", self.small, real, "--output-type", "float32")
        self.assert_runs("gaussian", real, smooth, "--sigma", 0.8)
        self.assert_runs("difference", real, self.out, "--minus", smooth, "--divisions", 3)
        expected = self.out.read_bytes()
        self.assert_runs("highpass", real, self.out, "--sigma", 0.8)
        self.assertEqual(self.out.read_bytes(), expected)

    def test_a_wide_gaussian_through_transforms_is_the_gaussian(self):
        arguments = ("--sigma", 9, "--voxels", "--boundary", "mirror", "--output-type", "float32")
        self.assert_runs("gaussian", self.small, self.out, *arguments)
        expected = read_voxels(self.out, "f")
        self.assert_runs("gaussian", self.small, self.out, *arguments, "--fft")
        result = read_voxels(self.out, "f")
        self.assertNotEqual(result, expected)
        self.assertLess(max(abs(a - b) for a, b in zip(result, expected)), 1e-4 * max(expected))

    def test_laplacian_convolution_and_entropy(self):
        nx, ny, nz = self.size
        ramp = self.out.with_name("ramp.mha")
        values = [3 * (i % nx) - 2 * (i // nx % ny) + i // nx // ny for i in range(nx * ny * nz)]
        write_mha(ramp, self.size, "h", values)
        self.assert_runs("log", ramp, self.out, "--sigma", 1.5, "--voxels", "--output-type", "float64")
        self.assertLess(max(abs(v) for v in read_voxels(self.out, "d")), 1e-3)
        # in(x + 1) - in(x - 1), where both are there.
        self.assert_runs(
            "convolve", ramp, self.out, "--radius", 1, "--axes", 0, "--weights=1,0,-1", "--output-type", "float32"
        )
        result = read_voxels(self.out, "f")
        self.assertEqual({v for i, v in enumerate(result) if 0 < i % nx < nx - 1}, {6.0})
        self.assert_fails(2, "--weights", "convolve", ramp, self.out, "--radius", 1, "--axes", 0, "--weights", "1,2")
        self.assert_runs(
            "entropy", self.small, self.out, "--radius", 1, "--bins", 2, "--range=-1000,1000", "--output-type", "float32"
        )
        result = read_voxels(self.out, "f")
        self.assertGreaterEqual(min(result), 0.0)
        self.assertLessEqual(max(result), 1.0)
        self.assertGreater(max(result), 0.99)

    def test_convolution_with_an_image(self):
        kernel = Path(self.work.name) / "kernel.mha"
        size = (3, 4, 2)
        weights = [1 + (5 * i) % 7 for i in range(24)]
        write_mha(kernel, size, "B", weights)
        center = [n // 2 for n in size]
        nx, ny, nz = self.size

        def tap(x, y, z):
            inside = 0 <= x < nx and 0 <= y < ny and 0 <= z < nz
            return self.values[x + nx * (y + ny * z)] if inside else 0

        def expected(x, y, z, sign):
            return sum(
                weights[i + size[0] * (j + size[1] * k)]
                * tap(x - sign * (i - center[0]), y - sign * (j - center[1]), z - sign * (k - center[2]))
                for i in range(size[0])
                for j in range(size[1])
                for k in range(size[2])
            )

        places = ((0, 0, 0), (nx - 1, 5, 0), (7, 8, 9), (3, ny - 1, nz - 1))
        for sign, mode in ((1, ()), (-1, ("--correlate",))):
            for method in ("fft", "direct"):
                options = ("--kernel", kernel, "--method", method, "--boundary", "constant", "--output-type", "float64")
                self.assert_runs("convolve-image", self.small, self.out, *options, *mode)
                result = read_voxels(self.out, "d")
                for x, y, z in places:
                    self.assertAlmostEqual(
                        result[x + nx * (y + ny * z)] / 1e3, expected(x, y, z, sign) / 1e3, delta=0.05, msg=(method, sign)
                    )
        self.assert_runs(
            "convolve-image", self.small, self.out, "--kernel", kernel, "--normalize", "--output-type", "float64"
        )
        center_value = read_voxels(self.out, "d")[7 + nx * (8 + ny * 9)]
        self.assertAlmostEqual(center_value, expected(7, 8, 9, 1) / sum(weights), delta=0.01)
        self.assert_runs(
            "convolve-image", self.small, self.out, "--kernel", kernel, "--valid", "--divisions", 3, "--method", "direct",
            "--output-type", "int16", "--quiet",
        )
        valid = read_voxels(self.out, "h")
        vx, vy, vz = (n - k + 1 for n, k in zip(self.size, size))
        self.assertEqual(len(valid), vx * vy * vz)
        for x, y, z in ((0, 0, 0), (vx - 1, 4, vz - 1), (5, vy - 1, 3)):
            below = [k - 1 - c for k, c in zip(size, center)]
            full = expected(x + below[0], y + below[1], z + below[2], 1)
            self.assertEqual(valid[x + vx * (y + vy * z)], max(-32768, min(32767, full)))
        step = "convolve-image --kernel {} --normalize --method direct".format(kernel)
        self.assert_runs("sequence", self.small, self.out, "--step", step)
        sequence = read_voxels(self.out, "f")
        self.assert_runs("convolve-image", self.small, self.out, *step.split()[1:])
        self.assertEqual(sequence, read_voxels(self.out, "f"))
        self.assert_fails(2, "--valid", "sequence", self.small, self.out, "--step", step + " --valid")
        self.assert_fails(2, "--kernel", "convolve-image", self.small, self.out)
        write_mha(kernel, (3, 3, 3, 2), "B", range(54))
        self.assert_fails(1, "--kernel.*4 dimensions", "convolve-image", self.small, self.out, "--kernel", kernel)

    def test_convolution_that_varies(self):
        kernels = Path(self.work.name) / "kernels.mha"
        nx, ny, nz = self.size
        # The voxel itself, twice, and three times its neighbour above along x: linear between two nodes along x.
        write_mha(kernels, (3, 1, 1, 2), "B", (0, 2, 0, 3, 0, 0))
        options = ("--kernels", kernels, "--boundary", "zero-flux", "--output-type", "float64")

        def assert_varies(first, spacing, *more):
            self.assert_runs("convolve-varying", self.small, self.out, "--grid", "2,1,1", *options, *more)
            result = read_voxels(self.out, "d")
            for x, y, z in ((0, 0, 0), (nx - 1, 5, 0), (7, 8, 9), (3, ny - 1, nz - 1), (nx // 2, 1, 1)):
                weight = min(max((x - first) / spacing, 0), 1)
                row = nx * (y + ny * z)
                here, above = self.values[x + row], self.values[min(x + 1, nx - 1) + row]
                expected = (1 - weight) * 2 * here + weight * 3 * above
                self.assertAlmostEqual(result[x + row] / 1e3, expected / 1e3, delta=0.05, msg=(x, y, z))

        assert_varies((nx / 2 - 1) / 2, nx / 2)
        # Voxels are 0.5 apart.
        assert_varies(2, 10, "--grid-origin", "1,0,0", "--grid-spacing", "5,1,1", "--divisions", 3)
        spreading = Path(self.work.name) / "spreading.mha"
        write_mha(spreading, (3, 1, 1, 2), "B", (1, 2, 1, 3, 1, 2))
        self.assert_runs(
            "convolve-varying", self.small, self.out, "--kernels", spreading, "--grid", "2,1,1", "--weigh-first",
            "--normalize", "--output-type", "float64"
        )
        total = sum(self.values)
        self.assertAlmostEqual(sum(read_voxels(self.out, "d")), total, delta=1e-4 * sum(map(abs, self.values)))
        self.assert_fails(2, "--kernels", "convolve-varying", self.small, self.out, "--grid", 2)
        self.assert_fails(
            2, "--grid-spacing", "convolve-varying", self.small, self.out, "--grid", "2,1,1", "--grid-origin", "1,0,0",
            *options
        )
        self.assert_fails(2, "--kernels", "convolve-varying", self.small, self.out, "--grid", 2, *options)

    def test_structuring_elements_and_range(self):
        nx, ny, nz = self.size
        self.assert_runs("maximum", self.small, self.out, "--radius", 1, "--element", "cross")
        cross = read_voxels(self.out, "h")
        self.assert_runs("maximum", self.small, self.out, "--radius", 1, "--element", "ball")
        # A ball of radius 1: with the corners' edges, without the corners.
        ball = read_voxels(self.out, "h")
        self.assert_runs("range", self.small, self.out, "--radius", 1)
        spread = read_voxels(self.out, "f")
        for x, y, z in ((0, 0, 0), (nx - 1, 5, 0), (7, 8, 9), (3, ny - 1, nz - 1)):
            near = {
                (i - x, j - y, k - z): self.values[i + nx * (j + ny * k)]
                for k in range(max(z - 1, 0), min(z + 2, nz))
                for j in range(max(y - 1, 0), min(y + 2, ny))
                for i in range(max(x - 1, 0), min(x + 2, nx))
            }
            at = x + nx * (y + ny * z)
            self.assertEqual(cross[at], max(v for d, v in near.items() if sum(map(abs, d)) <= 1))
            self.assertEqual(ball[at], max(v for d, v in near.items() if sum(map(abs, d)) <= 2))
            self.assertEqual(spread[at], max(near.values()) - min(near.values()))
        self.assert_fails(
            2, "--element", "opening", self.small, self.out, "--radius", 1, "--element", "hexagon"
        )

    def test_wiener(self):
        for arguments in (("mean",), ("wiener", "--noise", 1e12)):
            self.assert_runs(arguments[0], self.small, self.out, "--radius", 1, *arguments[1:])
            self.out.rename(self.out.with_name(arguments[0] + ".mha"))
        mean = read_voxels(self.out.with_name("mean.mha"), "h")
        wiener = read_voxels(self.out.with_name("wiener.mha"), "h")
        # Rounded to float before it is rounded to an integer.
        self.assertLessEqual(max(abs(a - b) for a, b in zip(mean, wiener)), 1)
        self.assert_fails(2, "--noise", "wiener", self.small, self.out, "--radius", 1)

    def test_noise_and_range_of_the_whole_image(self):
        floats = self.out.with_name("floats.mha")
        write_mha(floats, self.size, "f", [v / 7 for v in self.values])
        for image in (self.small, floats):
            self.assert_runs("variance", image, self.out, "--radius", 1)
            printed = self.assert_runs("statistics", self.out).stdout
            mean = next(line[len("mean: ") :] for line in printed.splitlines() if line.startswith("mean: "))
            self.assert_runs("wiener", image, self.out, "--radius", 1, "--noise", mean)
            expected = self.out.read_bytes()
            for more in ((), ("--divisions", 3), ("--threads", 1)):
                shown = self.assert_runs("wiener", image, self.out, "--radius", 1, "--noise", "auto", "--verbose", *more)
                self.assertIn(f"estimate: --noise {mean}\n", shown.stderr)
                self.assertEqual(self.out.read_bytes(), expected)
        voxels = read_voxels(floats, "f")
        self.assert_runs("entropy", floats, self.out, "--radius", 1, f"--range={min(voxels)!r},{max(voxels)!r}")
        expected = self.out.read_bytes()
        for more in ((), ("--divisions", 3)):
            self.assert_runs("entropy", floats, self.out, "--radius", 1, "--range", "auto", *more)
            self.assertEqual(self.out.read_bytes(), expected)
        # The range of a type is known without the image, which is read twice else.
        for image, arguments, passes in ((self.small, ("entropy", "--range"), 1), (floats, ("entropy", "--range"), 2),
                                         (floats, ("wiener", "--noise"), 2)):
            plan = (arguments[0], image, self.out, "--radius", 1, arguments[1])
            ordinary = "0,1" if arguments[0] == "entropy" else "1"
            read = [
                re.search("([0-9.]+) ([KM]iB) read", self.assert_runs("plan", *plan, value, "--divisions", 3).stdout)
                for value in (ordinary, "auto")
            ]
            self.assertEqual(read[0].group(2), read[1].group(2))
            self.assertAlmostEqual(float(read[1].group(1)), passes * float(read[0].group(1)), delta=0.2)
        write_mha(floats, (4, 1, 1), "f", [math.nan] * 4)
        for arguments in (("wiener", "--noise"), ("entropy", "--range")):
            self.assert_fails(1, arguments[1] + " auto", arguments[0], floats, self.out, "--radius", 1, arguments[1], "auto")
            step = f"{arguments[0]} --radius 1 {arguments[1]} auto"
            self.assert_fails(2, arguments[1] + " auto", "sequence", floats, self.out, "--step", step)
        self.assert_fails(2, "--noise", "nlm", floats, self.out, "--radius", 1, "--strength", 1, "--noise", "auto")

    def test_non_local_means(self):
        # All weights are 1: the mean.
        self.assert_runs("mean", self.small, self.out, "--radius", 1, "--output-type", "float64")
        mean = read_voxels(self.out, "d")
        self.assert_runs(
            "nlm", self.small, self.out, "--radius", 1, "--patch", "1,0,1", "--strength", 1e9, "--output-type", "float64"
        )
        for a, b in zip(mean, read_voxels(self.out, "d")):
            self.assertAlmostEqual(a, b, delta=1e-2)
        self.assert_fails(2, "--strength", "nlm", self.small, self.out, "--radius", 1)

    def test_median_and_percentile(self):
        nx, ny, nz = self.size
        self.assert_runs("median", self.small, self.out, "--radius", 1, "--divisions", 3)
        median = read_voxels(self.out, "h")
        self.assert_runs("percentile", self.small, self.out, "--radius", 1, "--percentile", 25)
        quarter = read_voxels(self.out, "h")
        for x, y, z in ((0, 0, 0), (nx - 1, 5, 0), (7, 8, 9), (3, ny - 1, nz - 1)):
            window = sorted(
                self.values[i + nx * (j + ny * k)]
                for k in range(max(z - 1, 0), min(z + 2, nz))
                for j in range(max(y - 1, 0), min(y + 2, ny))
                for i in range(max(x - 1, 0), min(x + 2, nx))
            )
            at = x + nx * (y + ny * z)
            self.assertEqual(median[at], window[(len(window) - 1) // 2])
            self.assertEqual(quarter[at], window[(len(window) - 1) // 4])
        self.assert_fails(2, "--percentile", "percentile", self.small, self.out, "--radius", 1, "--percentile", 101)

    def reconstruct(self, marker, mask):
        """By dilation, 6 neighbours, largest values first."""
        nx, ny, nz = self.size
        state = [min(a, b) for a, b in zip(marker, mask)]
        heap = [(-value, at) for at, value in enumerate(state)]
        heapq.heapify(heap)
        while heap:
            value, at = heapq.heappop(heap)
            if -value != state[at]:
                continue
            x, y, z = at % nx, at // nx % ny, at // (nx * ny)
            for inside, to in (
                (x > 0, at - 1),
                (x < nx - 1, at + 1),
                (y > 0, at - nx),
                (y < ny - 1, at + nx),
                (z > 0, at - nx * ny),
                (z < nz - 1, at + nx * ny),
            ):
                if inside and min(-value, mask[to]) > state[to]:
                    state[to] = min(-value, mask[to])
                    heapq.heappush(heap, (-state[to], to))
        return state

    def test_reconstructions(self):
        nx, ny, nz = self.size
        shifted = [max(value - 700, -32768) for value in self.values]
        maxima = self.reconstruct(shifted, self.values)
        self.assert_runs("h-maxima", self.small, self.out, "--height", 700)
        self.assertEqual(list(read_voxels(self.out, "h")), maxima)
        self.assert_runs("h-convex", self.small, self.out, "--height", 700)
        self.assertEqual(list(read_voxels(self.out, "h")), [a - b for a, b in zip(self.values, maxima)])

        marker = self.directory / "marker.mha"
        write_mha(marker, self.size, "h", shifted)
        self.assert_runs("reconstruct", self.small, self.out, "--marker", marker)
        self.assertEqual(list(read_voxels(self.out, "h")), maxima)
        # By erosion of the opposite under the opposite.
        opposite = self.directory / "opposite.mha"
        write_mha(opposite, self.size, "h", [-value for value in self.values])
        write_mha(marker, self.size, "h", [-value for value in shifted])
        self.assert_runs("reconstruct", opposite, self.out, "--marker", marker, "--erosion")
        self.assertEqual(list(read_voxels(self.out, "h")), [-value for value in maxima])

        def at_edge(at):
            x, y, z = at % nx, at // nx % ny, at // (nx * ny)
            return x in (0, nx - 1) or y in (0, ny - 1) or z in (0, nz - 1)

        border = [value if at_edge(at) else -32768 for at, value in enumerate(self.values)]
        ground = self.reconstruct(border, self.values)
        self.assert_runs("grind-peaks", self.small, self.out)
        self.assertEqual(list(read_voxels(self.out, "h")), ground)
        self.assert_runs("clear-border", self.small, self.out)
        self.assertEqual(list(read_voxels(self.out, "h")), [a - b for a, b in zip(self.values, ground)])
        self.assert_runs("fill-holes", opposite, self.out)
        self.assertEqual(list(read_voxels(self.out, "h")), [-value for value in ground])
        self.assert_runs("regional-maxima", self.small, self.out)
        lower = self.reconstruct([value - 1 for value in self.values], self.values)
        self.assertEqual(
            list(read_voxels(self.out, "h")), [32767 if a > b else -32768 for a, b in zip(self.values, lower)]
        )
        # Opening by reconstruction of the image, closing of its opposite, and with the values of what is kept.
        self.assert_runs("minimum", self.small, self.out, "--radius", "1,0,1", "--element", "cross")
        eroded = read_voxels(self.out, "h")
        opened = self.reconstruct(eroded, self.values)
        options = ("--radius", "1,0,1", "--element", "cross")
        self.assert_runs("opening-by-reconstruction", self.small, self.out, *options)
        self.assertEqual(list(read_voxels(self.out, "h")), opened)
        self.assert_runs("closing-by-reconstruction", opposite, self.out, *options)
        self.assertEqual(list(read_voxels(self.out, "h")), [-value for value in opened])
        kept = [value if a == b else -32768 for value, a, b in zip(self.values, eroded, opened)]
        self.assert_runs("opening-by-reconstruction", self.small, self.out, *options, "--preserve-intensities")
        self.assertEqual(list(read_voxels(self.out, "h")), self.reconstruct(kept, self.values))
        self.assert_fails(2, "--radius", "opening-by-reconstruction", self.small, self.out, "--radius", "1,1")
        self.assert_fails(2, "--height", "h-maxima", self.small, self.out)
        self.assert_fails(2, "--height", "h-maxima", self.small, self.out, "--height", 0.5)
        self.assert_fails(2, "--marker", "reconstruct", self.small, self.out)
        self.assert_runs("fill-holes", self.small, self.out)
        filled = read_voxels(self.out, "h")
        self.assert_runs("fill-holes", self.small, self.out, "--output-type", "float32")
        self.assertEqual(list(read_voxels(self.out, "f")), list(filled))
        other = self.directory / "other.mha"
        write_mha(other, (2, 2, 2), "h", [0] * 8)
        self.assert_fails(1, "--marker", "reconstruct", self.small, self.out, "--marker", other)

    def test_help_and_version(self):
        self.assertIn("gaussian", self.assert_runs("--help").stdout)
        self.assertIn("--sigma", self.assert_runs("gaussian", "--help").stdout)
        self.assertRegex(self.assert_runs("--version").stdout, r"^chunkwise \d+\.\d+")


def round_even(total, count):
    """total / count, rounded to nearest with ties to even, without floating point."""
    quotient, rest = divmod(total, count)
    return quotient + (2 * rest > count or (2 * rest == count and quotient % 2 == 1))


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
