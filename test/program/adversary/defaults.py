# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Types of outputs, messages about clipped voxels, and values at the ends of ranges."""
import math
import re
import struct

from adversary.subcommands import REQUIRED, Inputs, all_subcommands
from adversary.support import KINDS, Image, ProgramTest, is_real, limits, noise, read, run, write

REAL = ("sum", "log", "derivative", "gradient", "hessian", "divergence", "curvature", "structure-tensor", "vesselness", "unsharp", "normalize", "diffusion", "total-variation", "coherence-diffusion", "bilateral", "highpass", "difference", "entropy", "variance", "std", "convolve", "convolve-image",
        "convolve-varying", "box")
# Their values are those of the input, in its type.
INPUTS_OWN = ("identity", "maximum", "minimum", "opening", "closing", "median", "percentile", "h-maxima", "h-minima",
              "fill-holes", "grind-peaks", "reconstruct", "area-opening", "area-closing", "opening-by-reconstruction", "closing-by-reconstruction")


class Defaults(ProgramTest):
    def test_results_that_no_integer_has_are_real(self):
        inputs = Inputs(self.folder, (6, 5, 4))
        for kind in KINDS:
            path = write(self.folder / "first.mha", inputs.with_geometry(noise((6, 5, 4), kind, 3, 0, 100)))
            inputs.files["first"] = path
            for subcommand in REAL:
                options = {**REQUIRED[subcommand], **{
                    "box": {"statistic": "std"}, "entropy": {"range": "0,101"}, "difference": {"minus": "@first"}
                }.get(subcommand, {})}
                with self.subTest(kind=kind, subcommand=subcommand):
                    self.assert_runs(subcommand, path, self.out, *inputs.arguments(options))
                    self.assertTrue(is_real(read(self.out).kind), read(self.out).kind)

    def test_results_that_are_voxels_keep_the_type(self):
        inputs = Inputs(self.folder, (6, 5, 4))
        for subcommand in INPUTS_OWN:
            with self.subTest(subcommand=subcommand):
                self.assert_runs(subcommand, inputs.path, self.out, *inputs.arguments(REQUIRED[subcommand]))
                self.assertEqual(read(self.out).kind, "uint8")

    def test_nothing_is_clipped_where_no_type_is_named(self):
        """Against the same in float64, for images with the extremes of their type."""
        for kind in ("uint8", "int8", "uint16", "int16"):
            low, high = limits(kind)
            inputs = Inputs(self.folder, (7, 6, 5))
            values = [low if v < 90 else high if v > 150 else v % 100 for v in noise((7, 6, 5), "uint8", 5).values]
            path = write(self.folder / "extreme.mha", inputs.with_geometry(Image((7, 6, 5), kind, values)))
            for subcommand in all_subcommands(self):
                if subcommand in ("difference", "reconstruct"):
                    continue  # adversary/pairs.py
                words = [subcommand, path, self.out, *inputs.arguments(REQUIRED[subcommand])]
                with self.subTest(kind=kind, subcommand=subcommand):
                    result = self.assert_runs(*words)
                    out = read(self.out)
                    if is_real(out.kind) or result.warnings():
                        continue
                    exact = run(*words, "--output-type=float64")
                    if exact.returncode:  # the values are the input's
                        self.assert_failed(exact, "--output-type")
                        self.assertEqual(out.kind, kind)
                        continue
                    for a, b in zip(out.values, read(self.out).values):
                        # Voxels of 16 bits may be computed in float32.
                        self.assertLessEqual(abs(a - b), 0.5 + 1e-9 + 1e-7 * min(abs(b), 65536), str(result))

    def test_every_type_may_be_asked_for_and_what_is_clipped_is_counted(self):
        image = noise((9, 8, 7), "int32", 2, -100_000, 100_000)
        path = write(self.folder / "in.mha", image)
        for kind in KINDS:
            low, high = limits(kind)
            clipped = 0 if is_real(kind) else sum(not low <= v <= high for v in image.values)
            for more in ((), ("--divisions=3",), ("--quiet",)):
                with self.subTest(kind=kind, more=more):
                    result = self.assert_runs("identity", path, self.out, f"--output-type={kind}", *more)
                    out = read(self.out)
                    self.assertEqual(out.kind, kind)
                    self.assertEqual(list(out.values), [
                        v if is_real(kind) else min(max(v, low), high) for v in image.values])
                    if clipped and more != ("--quiet",):
                        self.assertEqual(len(result.stderr.splitlines()), 1, str(result))
                        self.assertRegex(result.stderr, r"(?i)warning")
                        self.assertRegex(result.stderr, rf"\b{clipped}\b")
                    else:
                        self.assertEqual(result.stderr, "")

    def test_what_filters_clip_is_counted(self):
        """Each against itself in float64."""
        inputs = Inputs(self.folder, (8, 7, 6))
        for subcommand in ("sum", "log", "highpass", "variance", "difference", "convolve", "convolve-image", "box", "sequence"):
            options = dict(REQUIRED[subcommand])
            options.update({"box": {"statistic": "sum"}, "sequence": {"step": "sum --radius 1"}}.get(subcommand, {}))
            words = [subcommand, inputs.path, self.out, *inputs.arguments(options)]
            for kind in ("uint8", "int16"):
                with self.subTest(subcommand=subcommand, kind=kind):
                    self.assert_runs(*words, "--output-type=float64")
                    low, high = limits(kind)
                    exact = list(read(self.out).values)
                    clipped = sum(not low <= round(v) <= high for v in exact)
                    result = self.assert_runs(*words, f"--output-type={kind}")
                    counted = [int(n) for line in result.warnings() for n in re.findall(r"\b\d+\b", line)]
                    if clipped:
                        self.assertIn(clipped, counted, str(result))
                    else:
                        self.assertEqual(result.stderr, "")

    def test_nan_and_infinities_in_an_integer_output_are_told(self):
        values = [1.0, math.nan, math.inf, -math.inf, 3.0, 200.0]
        path = write(self.folder / "in.mha", Image((3, 2), "float32", values))
        result = self.assert_runs("identity", path, self.out, "--output-type=uint8")
        out = list(read(self.out).values)
        self.assertEqual([out[i] for i in (0, 2, 3, 4, 5)], [1, 255, 0, 3, 200])
        self.assertRegex("\n".join(result.warnings()), r"\b3\b", str(result))

    def test_extrema_of_floats_are_0_and_1(self):
        image = noise((9, 8, 7), "float32", 4)
        path = write(self.folder / "in.mha", image)
        for subcommand in ("regional-maxima", "regional-minima"):
            with self.subTest(subcommand=subcommand):
                self.assert_runs(subcommand, path, self.out)
                self.assertEqual(set(read(self.out).values), {0.0, 1.0})

    def test_64_bit_values_are_not_rounded(self):
        most = 2 ** 53 + 1
        path = write(self.folder / "in.mha", Image((4, 3), "int64", [most, 0, 5, 1, 2, most, 3, 4, -most, 7, 8, 9]))
        self.assert_runs("identity", path, self.out)
        self.assertEqual(read(self.out).values, read(path).values)
        for subcommand, at in (("maximum", 0), ("minimum", 8), ("mean", None)):
            sign = -1 if subcommand == "minimum" else 1
            constant = f"--constant={sign * (most + 2)}"
            self.assert_runs(subcommand, path, self.out, "--radius=1", "--boundary=constant", constant)
            if at is not None:
                self.assertEqual(read(self.out).values[at], sign * (most + 2))
        # At the first corner five of nine voxels are beyond the edge.
        total = 5 * (most + 2) + most + 0 + 2 + most
        self.assertEqual(read(self.out).values[0], (2 * total + 9) // 18)
        # A float64 image has not this value.
        floats = write(self.folder / "floats.mha", Image((2, 2), "float64", [0.0] * 4))
        refused = run("mean", floats, self.out, "--radius=0", "--boundary=constant", f"--constant={most}")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("constant", refused.stderr)
        self.assertIn(str(most), refused.stderr)
        statistics = self.assert_runs("statistics", path).stdout
        self.assertIn(f"maximum: {most}", statistics.splitlines())
        self.assertIn(f"minimum: {-most}", statistics.splitlines())

    def test_statistics(self):
        for name, kind, values, pattern in (
            ("nan", "float32", [math.nan] * 6, r"(?i)nan"), ("one", "float32", [math.nan] * 5 + [2.5], r"minimum: 2\.5"),
            ("infinite", "float64", [math.inf] + [0.0] * 5, r"maximum: inf"), ("whole", "uint8", [7] * 6, r"sum: 42"),
        ):
            with self.subTest(image=name):
                path = write(self.folder / "in.mha", Image((3, 2), kind, values))
                result = run("statistics", path)
                self.assertRegex(result.stdout + result.stderr, pattern)
                self.assertNotRegex(result.stdout, r"3\.40282|1\.79769|minimum: inf|maximum: -inf")
                for divisions in (1, 2):
                    self.assertEqual(run("statistics", path, f"--divisions={divisions}").stdout, result.stdout)
        path = write(self.folder / "in.mha", noise((9, 8, 7), "float32", 4))
        values = [float(v) for v in read(path).values]
        printed = dict(re.findall(r"(?m)^([\w ]+): (\S+)$", self.assert_runs("statistics", path).stdout))
        self.assertEqual(float(printed["sum"]), math.fsum(values))
        self.assertEqual((float(printed["minimum"]), float(printed["maximum"])), (min(values), max(values)))
        self.assertAlmostEqual(float(printed["mean"]), math.fsum(values) / len(values), delta=1e-9)

    def test_plan(self):
        inputs = Inputs(self.folder)
        self.assertIn(inputs.path.name, self.assert_runs("plan", "statistics", inputs.path).stdout)
        for subcommand in all_subcommands(self):
            with self.subTest(subcommand=subcommand):
                result = self.assert_runs("plan", subcommand, inputs.path, self.out, *inputs.arguments(REQUIRED[subcommand]))
                self.assertIn("14 x 12 x 11", result.stdout)
                self.assertEqual(result.stderr, "")
                self.assertFalse(self.out.exists())

    def test_a_small_budget_that_costs_time_is_told(self):
        source = write(self.folder / "in.mha", noise((128, 128, 128), "float32"))
        words = ("gaussian", source, self.out, "--sigma=12")
        needed = re.search(r"([\d.]+) MiB", re.sub(r"^.*?is less than", "", run(*words, "--memory=1M").stderr))
        small = float(needed.group(1)) + 16
        for command in (("plan", *words), (*words, "--verbose")):
            with self.subTest(command=command[0]):
                result = self.assert_runs(*command, f"--memory={small:g}M")
                self.assertRegex(result.stdout + result.stderr, r"(?i)--memory|times|slower|would")

    def test_metadata_are_kept_or_their_loss_is_told(self):
        image = noise((5, 4, 3), "uint8")
        header = (b"NRRD0004\ntype: uint8\ndimension: 3\nspace: left-posterior-superior\nsizes: 5 4 3\nspace directions: (1,0,0)"
                  b" (0,1,0) (0,0,1)\nspace origin: (0,0,0)\nencoding: raw\nSubject:=mouse seven\nStain:=Nissl\n\n")
        source = self.folder / "in.nrrd"
        source.write_bytes(header + image.values.tobytes())
        for ending in ("nrrd", "mha", "mhd", "nii", "vtk", "mrc", "tif", "h5"):
            out = self.folder / ("o." + ending)
            with self.subTest(ending=ending):
                result = self.assert_runs("mean", source, out, "--radius=1")
                content = out.read_bytes()
                if not (b"mouse seven" in content and b"Nissl" in content):
                    self.assertEqual(len(result.warnings()), 1, str(result))
                    self.assertRegex(result.stderr, r"(?i)metadata|Subject|Stain")
                again = self.folder / "again.nrrd"
                if b"mouse seven" in content:
                    self.assertEqual(result.stderr, "")
                    self.assert_runs("identity", out, again)
                    self.assertIn(b"mouse seven", again.read_bytes())
        nifti = bytearray(352)
        struct.pack_into("<i", nifti, 0, 348)
        struct.pack_into("<8h", nifti, 40, 4, 5, 4, 1, 3, 1, 1, 1)
        struct.pack_into("<2h", nifti, 70, 2, 8)
        struct.pack_into("<8f", nifti, 76, 1, 2, 2, 2, 1.5, 0, 0, 0)
        struct.pack_into("<2f", nifti, 108, 352, 1)
        nifti[123] = 2 | 8  # mm, s
        nifti[148:148 + 12] = b"a resting hm"
        struct.pack_into("<2h", nifti, 252, 0, 4)  # no qform, sform of MNI
        struct.pack_into("<12f", nifti, 280, 2, 0, 0, -9, 0, 2, 0, -8, 0, 0, 2, -7)
        nifti[344:348] = b"n+1\0"
        source = self.folder / "in.nii"
        source.write_bytes(bytes(nifti) + image.values.tobytes())
        out = self.folder / "out.nii"
        result = self.assert_runs("mean", source, out, "--radius=1")
        written = out.read_bytes()
        self.assertEqual(written[148:160], b"a resting hm")
        self.assertEqual(written[123], 2 | 8)
        self.assertEqual(struct.unpack_from("<h", written, 254)[0], 4)
        self.assertEqual(struct.unpack_from("<12f", written, 280), struct.unpack_from("<12f", nifti, 280))
        self.assertEqual(struct.unpack_from("<f", written, 92)[0], 1.5)
        self.assertEqual(result.stderr, "")
        result = self.assert_runs("mean", source, self.out, "--radius=1")
        if b"a resting hm" not in self.out.read_bytes():
            self.assertEqual(len(result.warnings()), 1, str(result))
