# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Quantiles and histograms of "chunkwise statistics" against sorted voxels: every type, masks, NaN, images without a header
and images that are larger than the memory."""
import json
import math
import re
import resource

from adversary.support import KINDS, Image, ProgramTest, is_real, limits, noise, read, run, write, write_sparse

FRACTIONS = (0.0, 0.01, 0.25, 0.5, 0.731, 0.99, 1.0)
MIB = 1 << 20


def quantile(ordered, fraction):
    """By the rule of numpy.quantile's method "linear": the voxels at both sides, and what is between them."""
    position = (len(ordered) - 1) * fraction
    rank = min(int(math.floor(position)), len(ordered) - 1)
    lower, following = ordered[rank], ordered[min(rank + 1, len(ordered) - 1)]
    a, b, t = float(lower), float(following), position - rank
    return lower, following, a if a == b or t == 0 else a + (b - a) * t if t < 0.5 else b - (b - a) * (1 - t)


def histogram(values, bins):
    lower, upper = float(min(values)), float(max(values))
    if lower == upper:
        lower, upper = min(lower - 0.5, math.nextafter(lower, -math.inf)), max(upper + 0.5, math.nextafter(upper, math.inf))
    counts = [0] * bins
    for value in values:
        counts[min(int((float(value) - lower) * (bins / (upper - lower))), bins - 1)] += 1
    return lower, upper, counts


class Quantiles(ProgramTest):
    def printed(self, *words):
        return json.loads(self.assert_runs("statistics", *words, "--json").stdout)

    def assert_quantiles(self, shown, values):
        ordered = sorted(values)
        self.assertEqual([each["fraction"] for each in shown], list(FRACTIONS))
        for each in shown:
            lower, following, between = quantile(ordered, each["fraction"])
            self.assertEqual((each["lower"], each["next"]), (lower, following), each)
            self.assertEqual(each["value"], lower if between == float(lower) else between, each)

    def assert_histogram(self, shown, values, bins):
        lower, upper, counts = histogram(values, bins)
        self.assertEqual((shown["lower"], shown["upper"], shown["counts"]), (lower, upper, counts))

    def test_every_type(self):
        words = ("--quantiles=" + ",".join(map(str, FRACTIONS)), "--histogram=7")
        for kind in KINDS:
            for size in ((9, 8, 7), (1, 1)):
                image = noise(size, kind, 3)
                path = write(self.folder / "in.mha", image)
                for more in ((), ("--divisions=3",), ("--threads=1",)):
                    with self.subTest(kind=kind, size=size, more=more):
                        shown = self.printed(path, *words, *more)
                        self.assert_quantiles(shown["quantiles"], image.values)
                        self.assert_histogram(shown["histogram"], image.values, 7)

    def test_extremes_of_64_bits_keep_their_digits(self):
        for kind in ("int64", "uint64"):
            low, high = limits(kind)
            path = write(self.folder / "in.mha", Image((5, 1), kind, [low, high, high - 1, low + 1, 3]))
            shown = self.printed(path, "--quantiles=0,0.25,0.75,1")["quantiles"]
            self.assertEqual([each["value"] for each in shown], [low, low + 1, high - 1, high])
            text = self.assert_runs("statistics", path, "--quantiles=1").stdout
            self.assertIn(f"quantile 1: {high}", text.splitlines())

    def test_nan_is_left_out_and_infinities_are_numbers(self):
        for kind in ("float32", "float64"):
            values = [math.nan, 3.0, -math.inf, 1.0, math.inf, 2.0, math.nan, -0.5]
            path = write(self.folder / "in.mha", Image((4, 2), kind, values))
            shown = self.printed(path, "--quantiles=0,0.2,0.5,1", "--histogram=2")
            # Six numbers: -inf, -0.5, 1, 2, 3, inf.
            self.assertEqual([each["value"] for each in shown["quantiles"]], ["-inf", -0.5, 1.5, "inf"])
            # Bins are those of the finite voxels; infinities are in the first and the last one.
            self.assertEqual(shown["histogram"], {"lower": -0.5, "upper": 3.0, "counts": [3, 3]})

    def test_masks(self):
        image = noise((13, 11, 9), "int16", 5)
        path = write(self.folder / "in.mha", image)
        words = ("--quantiles=" + ",".join(map(str, FRACTIONS)), "--histogram=5")
        for kind in (each for each in KINDS if not is_real(each)):
            mask = noise((13, 11, 9), kind, 6, 0, 2)
            mask_path = write(self.folder / "mask.mha", mask)
            inside = [v for v, m in zip(image.values, mask.values) if m != 0]
            for more in ((), ("--divisions=4",)):
                with self.subTest(mask=kind, more=more):
                    shown = self.printed(path, "--mask", mask_path, *words, *more)
                    self.assertEqual((shown["voxels"], shown["sum"]), (len(inside), sum(inside)))
                    self.assertEqual((shown["minimum"], shown["maximum"]), (min(inside), max(inside)))
                    self.assert_quantiles(shown["quantiles"], inside)
                    self.assert_histogram(shown["histogram"], inside, 5)
        # One voxel, in the last division.
        mask = Image((13, 11, 9), "uint8", [0] * (13 * 11 * 9 - 1) + [1])
        shown = self.printed(path, "--mask", write(self.folder / "mask.mha", mask), "--quantiles=0.3", "--divisions=9")
        self.assertEqual((shown["voxels"], shown["quantiles"][0]["value"]), (1, image.values[-1]))

    def test_masks_that_are_none(self):
        path = write(self.folder / "in.mha", noise((5, 4, 3), "uint8"))
        nothing = write(self.folder / "nothing.mha", Image((5, 4, 3), "uint8", [0] * 60))
        for more in ((), ("--quantiles=0.5",), ("--histogram=3",)):
            self.assert_refused("statistics", path, "--mask", nothing, *more, names=("in.mha", "mask"), status=1)
        moved = Image((5, 4, 3), "uint8", [1] * 60, origin=[1.0, 0.0, 0.0])
        for image, names in (
            (noise((5, 4, 2), "uint8"), ("--mask", "voxels")), (noise((5, 4, 3), "float32"), ("--mask", "integers")),
            (moved, ("--mask", "lie")),
        ):
            self.assert_refused("statistics", path, "--mask", write(self.folder / "mask.mha", image), names=names)
        self.assert_refused("statistics", path, "--mask", self.folder / "none.mha", names="--mask", status=2)

    def test_images_without_a_header(self):
        image = noise((7, 5, 4), "uint16", 8)
        raw = self.folder / "voxels.bin"
        raw.write_bytes(image.values.tobytes())
        shown = self.printed(raw, "--raw", "uint16,7,5,4", "--quantiles=" + ",".join(map(str, FRACTIONS)))
        self.assert_quantiles(shown["quantiles"], image.values)

    def test_more_voxels_than_memory(self):
        """192 MiB, of which most are 0, within the least memory that is enough."""
        path = write_sparse(self.folder / "large.mha", (512, 512, 192), "float32")
        size = path.stat().st_size
        with open(path, "r+b") as file:
            for i in range(1, 100):
                file.seek(size - 4 * 500_000 * i)
                file.write(noise((1, 1), "float32", i, 1, 50).values.tobytes())
        changed = sorted(noise((1, 1), "float32", i, 1, 50).values[0] for i in range(1, 100))
        words = ("statistics", path, "--quantiles=0.5,1", "--histogram=3", "--threads=2")
        refused = run(*words, "--memory=1M")
        self.assert_failed(refused, "--memory", 1)
        memory = int(re.search(r"needs (\d+) MiB", refused.stderr).group(1)) + 4
        self.assertLess(memory, 120)
        shown = json.loads(self.assert_runs(*words, "--json", f"--memory={memory}M").stdout)
        self.assertEqual([each["value"] for each in shown["quantiles"]], [0, changed[-1]])
        self.assertEqual(sum(shown["histogram"]["counts"]), 512 * 512 * 192)
        self.assertEqual(sum(shown["histogram"]["counts"][1:]), sum(v >= changed[-1] / 3 for v in changed))
        self.assertLessEqual(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024, memory)
        plan = json.loads(self.assert_runs("plan", *words, "--json", f"--memory={memory}M").stdout)
        self.assertGreater(plan["divisions"]["count"], 3)
        self.assertEqual(plan["reads"], 4)

    def test_what_is_wrong_is_named(self):
        path = write(self.folder / "in.mha", noise((5, 4, 3), "uint8"))
        for option, values in (
            ("quantiles", ("", ",", "1.5", "-0.1", "nan", "0.5,nan", "half", "0.5,,1", "inf")),
            ("histogram", ("0", "-3", "65537", "1.5", "many", "nan")),
            ("memory", ("much",)),
        ):
            for value in values:
                with self.subTest(option=option, value=value):
                    self.assert_refused("statistics", path, f"--{option}={value}", names="--" + option, status=2)
        nans = write(self.folder / "nans.mha", Image((3, 2), "float32", [math.nan] * 6))
        self.assert_refused("statistics", nans, "--quantiles=0.5", names="NaN", status=1)
        infinite = write(self.folder / "infinite.mha", Image((3, 2), "float32", [math.inf] * 6))
        self.assert_refused("statistics", infinite, "--histogram=3", names="--histogram", status=1)
        shown = self.printed(infinite, "--quantiles=0.5")
        self.assertEqual(shown["quantiles"][0]["value"], "inf")

    def test_one_value_is_in_the_middle(self):
        path = write(self.folder / "in.mha", Image((3, 2), "int8", [-7] * 6))
        shown = self.printed(path, "--histogram=3")["histogram"]
        self.assertEqual(shown, {"lower": -7.5, "upper": -6.5, "counts": [0, 6, 0]})
        text = self.assert_runs("statistics", path, "--histogram=3").stdout.splitlines()
        self.assertEqual(sum(int(line.rsplit(" ", 1)[1]) for line in text if line.startswith("from ")), 6)
