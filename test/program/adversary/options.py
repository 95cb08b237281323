# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Every option of every subcommand, as its help lists them, changes the result or the report, or is refused."""
import os
import re

from adversary.subcommands import REQUIRED, Inputs, all_subcommands
from adversary.support import Image, ProgramTest, listed_options, listed_subcommands, read, run, write

# Changes to what must be given; one that makes a difference is enough. With "+" before its name a row is for one
# subcommand. None as a value is a flag; the key "" takes options away.
TRIALS = {
    "backend": [{"backend": "cuda"}],
    "devices": [{"devices": "99"}],
    "device-memory": [{"backend": "cuda", "device-memory": "1"}],
    "memory": [{"memory": "1M"}],
    "divisions": [{"divisions": "3"}],
    "region": [{"region": "1,0,0,5,4,3"}],
    "raw": [{"raw": "uint8,5,4,3"}],
    "out": [{"out": "{stem}-out.mha"}],
    "redo": [{"redo": None}],
    "resume": [{"resume": None}],
    "overwrite": [({"out": "{stem}-out.mha"}, {"overwrite": None})],
    "compress": [{"compress": None}],
    "zarr": [{"zarr": "0.4"}],
    "threads": [{"threads": "1"}, {"threads": "3"}],
    "output-type": [{"output-type": "float64"}, {"output-type": "float32"}],
    "boundary": [{"boundary": b} for b in ("mirror", "periodic", "zero-flux", "constant", "mirror-center")],
    "constant": [({"boundary": "constant"}, {"constant": c}) for c in ("250", "3")],
    "axes": [{"axes": "0"}, {"axes": "0,1"}],
    "+convolve axes": [{"axes": "0,2,1"}, ({"radius": "1", "axes": "0"}, {"axes": "1"})],
    "spatial-dimension": [{"spatial-dimension": "2"}],
    "radius": [{"radius": "2"}],
    "upper-radius": [{"upper-radius": "2"}, {"upper-radius": "1,0,1"}],
    "+convolve radius": [({"weights": "1,2,4"}, {"radius": "0,1,0"})],
    "weights": [{"weights": "1,2,5"}],
    "sigma": [{"sigma": "0.9"}],
    "variance": [({"": "sigma", "variance": "0.5"}, {"variance": "0.9"})],
    "voxels": [{"voxels": None}],
    "cutoff": [{"cutoff": "1"}],
    "fft": [{"fft": None, "output-type": "float64"}],
    "factor": [{"factor": "3"}, {"factor": "1,2,5"}],
    "about-origin": [{"about-origin": None}],
    "+bin method": [{"method": each} for each in ("minimum", "median", "mode", "gaussian")],
    "+bin axes": [({"factor": "2"}, {"axes": "1"})],
    "+bin-sum axes": [({"factor": "2"}, {"axes": "1"})],
    "+crop lower": [{"lower": "1,0,2"}], "+crop upper": [{"upper": "1,0,2"}], "+crop axes": [({"lower": "2"}, {"axes": "1"})],
    "+pad lower": [{"lower": "1,0,2"}], "+pad upper": [{"upper": "1,0,2"}], "+pad axes": [({"lower": "2"}, {"axes": "1"})],
    "+pad outside": [{"outside": each} for each in ("nearest", "reflect", "mirror", "wrap")],
    "+pad value": [{"value": "9"}],
    "+flip axes": [{"axes": "1"}],
    "+permute-axes order": [{"order": "0,2,1"}],
    "+derivative axes": [({"order": "1", "axes": "0"}, {"axes": "1"})],
    "+derivative kernel": [{"kernel": "sampled"}],
    **{f"+{name} kernel": [{"kernel": "sampled"}] for name in ("gradient", "hessian", "divergence", "curvature", "structure-tensor", "vesselness")},
    "of-gradient": [({"": "of-gradient", "second": "@second", "third": "@marker"}, {"of-gradient": None})],
    "least-gradient": [{"least-gradient": "50"}],
    "+curvature result": [{"result": each} for each in ("mean", "gaussian", "smallest", "largest")],
    "+hessian result": [{"result": "by-magnitude"}, {"result": "direction"}, {"result": "elements"}, {"result": "eigenvectors"}],
    "+vesselness result": [({"scales": "0.6,0.9"}, {"result": "scale"})],
    "+structure-tensor result": [{"result": each} for each in ("orientation", "coherence", "cornerness", "elements", "eigenvectors")],
    "+diffusion method": [{"method": "curvature"}],
    "conductance": [{"conductance": "2"}],
    "gradient-magnitude": [{"gradient-magnitude": "30"}],
    "time-step": [{"time-step": "0.02"}],
    "tile": [{"tile": "2"}, {"tile": "3,4,2"}],
    "clip": [{"clip": "0"}, {"clip": "0.2"}],
    "+clahe range": [{"range": "50,99"}],
    "range-sigma": [{"range-sigma": "9"}],
    "+rolling-ball height": [{"height": "60"}],
    "shape": [{"shape": "paraboloid"}],
    "+rolling-ball radius": [{"radius": "3"}],
    "+rolling-ball background": [{"background": "erosion"}],
    "subtract": [{"subtract": None}],
    "+total-variation weight": [{"weight": "90"}],
    "amount": [{"amount": "1.5"}],
    "+unsharp threshold": [{"threshold": "20"}],
    "least-deviation": [{"least-deviation": "90"}],
    "outer-sigma": [{"outer-sigma": "0.9"}, {"outer-sigma": "0"}],
    "harris": [({"result": "cornerness"}, {"harris": "0.2"})],
    "number": [{"number": "1"}],
    "scales": [{"scales": "0.9"}, {"scales": "0.6,0.9"}],
    "measure": [{"measure": each} for each in ("blobness", "sheetness", "sato", "meijering", "jerman")],
    "alpha": [{"alpha": "0.3"}],
    "beta": [{"beta": "0.9"}],
    "tau": [({"measure": "jerman"}, {"tau": "0.9"})],
    "+coherence-diffusion contrast": [{"contrast": "90"}],
    "+vesselness contrast": [{"contrast": "30"}, {"contrast": "0"}],
    "dark": [{"dark": None}],
    "scale-by-largest": [{"scale-by-largest": None, "output-type": "float64"}],
    "order": [{"order": "0,1,0"}, {"order": "2"}],
    "operator": [{"": "sigma", "operator": each} for each in ("sobel", "prewitt", "scharr", "central")],
    "+gaussian kernel": [{"kernel": "discrete"}],
    "+highpass kernel": [{"kernel": "discrete"}],
    "maximum-error": [({"kernel": "discrete", "": "sigma", "variance": "4"}, {"maximum-error": "0.3"})],
    "maximum-width": [({"kernel": "discrete", "": "sigma", "variance": "4"}, {"maximum-width": "3"})],
    "normalize-across-scale": [{"normalize-across-scale": None}],
    "element": [{"element": "ball"}, {"element": "cross"}],
    "+wiener noise": [{"noise": "auto"}],
    "noise": [{"noise": "5000"}],
    "patch": [{"patch": "2"}],
    "strength": [{"strength": "90"}],
    "percentile": [{"percentile": "75"}],
    "bins": [{"bins": "16"}],
    "range": [({"range": "auto"}, {"range": "50,99"})],
    "statistic": [{"statistic": "std"}],
    "radius-image": [{"radius-image": "@radii", "radius": "3"}],
    "mask": [{"mask": "@radii"}, {"mask": "@nothing"}],
    "weight": [{"weight": "@certainty"}],
    "outside-value": [({"mask": "@nothing"}, {"outside-value": "5"})],
    "empty-value": [({"mask": "@nothing"}, {"empty-value": "5"})],
    "ignore-nan": [{"ignore-nan": None}],
    "output-mask": [({"mask": "@second"}, {"output-mask": None})],
    "kernel": [{"kernel": "@second"}],
    "kernels": [{"kernels": "@second"}],
    "normalize": [{"normalize": None}],
    "correlate": [{"correlate": None}],
    "valid": [{"valid": None}],
    "grid": [{"grid": "1,2,1"}],
    "grid-origin": [({"grid-spacing": "5,1,1", "grid-origin": "0,0,0"}, {"grid-origin": "1,0,0"})],
    "grid-spacing": [({"grid-spacing": "5,1,1", "grid-origin": "0,0,0"}, {"grid-spacing": "3,1,1"})],
    "weigh-first": [{"weigh-first": None}],
    "minus": [{"minus": "@marker"}],
    "marker": [{"marker": "@second"}, {"marker": "@radii"}],
    "erosion": [{"erosion": None}],
    "height": [{"height": "60"}],
    "full": [{"full": None}],
    "preserve-intensities": [{"preserve-intensities": None}],
    "foreground": [{"foreground": "200"}],
    "background": [{"background": "100"}],
    "flat-is-none": [({"IN": "flat"}, {"flat-is-none": None})],
    "summed-axes": [{"summed-axes": "2"}],
    "squares": [{"squares": None}],
    "modular": [({"output-type": "uint8"}, {"modular": None})],
    "model": [{"model": "@other"}],
    "result": [{"result": "argmax"}, {"result": "threshold"}],
    "channel": [{"channel": "2"}],
    "threshold": [({"result": "threshold"}, {"threshold": "20"})],
    "output-components": [{"output-components": None}],
    "input-scale": [{"input-scale": "0.5"}],
    "input-shift": [{"input-shift": "3"}],
    # On devices alone: the CPU computes so small a network directly in either.
    "precision": [{"backend": "cuda", "precision": "reproducible"}],
    "mode": [{"mode": "patches", "patch-size": "8"}],
    "patch-size": [({"mode": "patches", "patch-size": "8"}, {"patch-size": "10"})],
    "overlap": [({"mode": "patches", "patch-size": "8"}, {"overlap": "0.5"})],
    "weighting": [({"mode": "patches", "patch-size": "8"}, {"weighting": "gaussian"})],
    "second": [{"second": "@second"}],
    "third": [{"third": "@second"}],
    "method": [{"method": m} for m in ("direct", "fft")],
    # Another rounding, or an error that names what is not there.
    "transforms": [{"transforms": "cufft"}, ({"fft": None}, {"transforms": "cufft"})],
    "connectivity": [({"rule": "within", "tolerance": "20"}, {"connectivity": c}) for c in ("2", "3")],
    "structure": [({"rule": "within", "tolerance": "20"}, {"structure": ",".join("1" * 27)})],
    "rule": [{"rule": "equal"}, ({"tolerance": "20"}, {"rule": "within"})],
    "tolerance": [({"rule": "within"}, {"tolerance": "20"})],
    "+label background": [({"IN": "flat"}, {"background": "7"})],
    "label-background": [({"IN": "flat", "background": "7"}, {"label-background": None})],
    "periodic": [({"rule": "within", "tolerance": "20"}, {"periodic": "0"})],
    "+label axes": [({"rule": "within", "tolerance": "20"}, {"axes": "0,1"})],
    "algorithm": [{"algorithm": a} for a in ("landweber", "projected-landweber")],
    "iterations": [{"iterations": "3"}],
    "keep-sum": [{"keep-sum": None}],
    "back-projector": [{"back-projector": "@kernel"}],
    "least-expected": [{"least-expected": "1e6"}],
    "total-variation": [{"total-variation": "0.01"}],
    "relaxation": [({"algorithm": "landweber"}, {"relaxation": "0.5"})],
    "noise-variance": [({"algorithm": "wiener"}, {"noise-variance": "1e6"})],
    "regularization": [({"algorithm": "tikhonov"}, {"regularization": "0.1"})],
    "kernel-zero": [({"algorithm": "inverse"}, {"kernel-zero": "0.9"})],
    "accelerate": [({"iterations": "4"}, {"iterations": "4", "accelerate": None})],
    "relative-change": [{"relative-change": "9"}],
    "discrepancy": [{"discrepancy": "1e9"}],
    "saturation": [{"saturation": "200"}],
    "start": [{"start": "@second"}],
    "+deconvolve axes": [({"kernel": "@kernel"}, {"axes": "0"})],
    "+deconvolve-varying axes": [({"kernels": "@kernels"}, {"axes": "0"})],
    **{f"+{name} {option}": trials for name in ("area-opening", "area-closing") for option, trials in
       {"size": [{"size": "3"}], "attribute": [{"attribute": each} for each in ("extent", "height", "volume")], "connectivity": [{"connectivity": "2"}, {"connectivity": "3"}]}.items()},
    "+watershed connectivity": [{"connectivity": "2"}, {"connectivity": "3"}],
    "+watershed area": [{"area": "3"}],
    "+watershed volume": [{"volume": "300"}],
    "+watershed voxels": [({"area": "3"}, {"voxels": None})],
    "markers": [{"markers": "@marker"}, {"markers": "@radii"}],
    "lines": [{"lines": None}],
    "+threshold method": [{"method": m} for m in ("li", "triangle", "multi-otsu")],
    "thresholds": [{"thresholds": "100"}, {"thresholds": "50,100"}],
    "classes": [({"method": "multi-otsu"}, {"classes": "4"})],
    "+local-threshold method": [{"method": m} for m in ("median", "gaussian", "niblack", "sauvola", "phansalkar", "bernsen")],
    "+local-threshold result": [{"result": "threshold"}],
    "+boundaries mode": [({"IN": "@radii"}, {"mode": "outer"}), ({"IN": "@radii"}, {"mode": "thick"})],
    "+boundaries connectivity": [({"IN": "@radii"}, {"connectivity": "3"})],
    "+boundaries axes": [({"IN": "@radii"}, {"axes": "0"})],
    "low": [{"low": "120"}],
    "high": [{"high": "255"}],
    "offset": [{"offset": "9"}],
    "k": [({"method": "niblack"}, {"k": "0.5"})],
    "r": [({"method": "sauvola"}, {"r": "30"})],
    "p": [({"method": "phansalkar"}, {"p": "9"})],
    "q": [({"method": "phansalkar"}, {"q": "3"})],
    "contrast": [({"method": "bernsen"}, {"contrast": "240"})],
    "level": [({"method": "bernsen", "contrast": "300"}, {"level": "50"})],
    "+threshold bins": [{"bins": "5"}],
    "lower": [({"method": "fixed", "upper": "200"}, {"lower": "20"})],
    "upper": [({"method": "fixed", "lower": "20"}, {"upper": "200"})],
    "to": [{"to": "contour"}, {"to": "background"}],
    "squared": [{"squared": None}],
    "maximum": [{"maximum": "0.6"}],
    "inside-positive": [({"to": "contour"}, {"inside-positive": None})],
    "distance": [{"distance": "3"}],
    "operation": [{"operation": each} for each in ("erosion", "opening", "closing")],
    **{f"+{name} background": [{"background": "100"}]
       for name in ("distance", "nearest")},
    "+expand-labels background": [({"distance": "3"}, {"background": "100"})],
    "+binary-morphology background": [({"operation": "erosion"}, {"background": "100"})],
    # Few voxels of the image are 0.
    "+expand-labels voxels": [({"distance": "0.6"}, {"voxels": None})],
    "+expand-labels axes": [({"distance": "1", "voxels": None}, {"axes": "0"})],
    "+nearest axes": [({"voxels": None}, {"axes": "0"})],
    "+binary-morphology voxels": [({"operation": "erosion"}, {"voxels": None})],
    "+binary-morphology axes": [({"operation": "erosion"}, {"axes": "0"})],
    "+binary-morphology radius": [({"operation": "erosion"}, {"radius": "2"})],
    # The scale is given; what is in its place takes it away.
    "spacing": [({"": "scale"}, {"spacing": "0.6"})],
    "size": [({"": "scale"}, {"size": "5,6,7"})],
    "scale": [{"scale": "0.5"}],
    "origin": [{"origin": "0.3,0,0"}],
    "direction": [{"direction": "0,1,0,-1,0,0,0,0,1"}],
    "affine": [{"affine": "1,0,0,0.4,0,1,0,0,0,0,1,0"}],
    "displacements": [{"displacements": "@vectors"}],
    "displacement-grid": [({"displacements": "@vectors"}, {"displacement-grid": "4,3,3,1,1,1,0,0,0,1,0,0,0,1,0,0,0,1"})],
    "reference": [({"": "scale"}, {"reference": "@kernel"})],
    "interpolation": [{"interpolation": each} for each in ("nearest", "cubic", "lanczos", "label")],
    "outside": [({"origin": "-3,0,0"}, {"outside": each}) for each in ("value", "mirror", "grid-wrap")],
    "value": [({"origin": "-3,0,0", "outside": "value"}, {"value": "9"})],
    "no-antialias": [({"scale": "0.3"}, {"no-antialias": None})],
    "no-prefilter": [({"interpolation": "cubic"}, {"no-prefilter": None})],
    "step": [{"step": "mean --radius 2"}, {"step": ["mean --radius 1", "mean --radius 1"]}],
}
# They change what is said or refused, not what is done: see chunkwiseCommandLineTest.py and below.
SAY = ("help", "quiet", "verbose", "version", "json", "progress", "returnparameterfile", "untrusted", "xml")
# The parts of a report that change from run to run.
OF_THE_MOMENT = r"(?m)^(time|peak memory|expected|memory):.*$|[\d.]+ (?:M|G|k)?voxels?/s"


class Options(ProgramTest):
    def observe(self, inputs, subcommand, options):
        """All that a run shows: its file, or why there is none, and the report."""
        self.out.unlink(missing_ok=True)
        options = dict(options)
        source = options.pop("IN", None)
        path = inputs.flat if source == "flat" else inputs.files[source[1:]] if source else inputs.path
        words = [subcommand, path, self.out, *inputs.arguments({"verbose": None, **options})]
        result = run(*words)
        if result.returncode != 0:
            # The report comes first.
            self.assertFalse(self.out.exists(), str(result))
            self.assertTrue(result.stderr.splitlines()[-1].startswith("chunkwise: "), str(result))
        data = self.out.read_bytes() if self.out.exists() else None
        report = re.sub(OF_THE_MOMENT, "", result.stdout + result.stderr)
        return result.returncode, data, report

    def trials(self, subcommand, option):
        for trial in TRIALS.get(f"+{subcommand} {option}", TRIALS.get(option, ())):
            base, change = trial if isinstance(trial, tuple) else ({}, trial)
            base = {**REQUIRED[subcommand], **base}
            base.pop(base.pop("", None), None)
            yield base, {**base, **change}

    def test_every_option_of_every_subcommand(self):
        inputs = Inputs(self.folder)
        seen = {}
        for subcommand in all_subcommands(self):
            for option in listed_options(subcommand):
                if option in SAY:
                    continue
                with self.subTest(subcommand=subcommand, option=option):
                    trials = list(self.trials(subcommand, option))
                    self.assertTrue(trials, "there is no trial for this option")
                    for base, changed in trials:
                        key = (subcommand, str(base))
                        if key not in seen:
                            seen[key] = self.observe(inputs, subcommand, base)
                        shown = self.observe(inputs, subcommand, changed)
                        if shown[0] != 0 or shown != seen[key]:
                            break
                    else:
                        self.fail(f"without effect, and not refused: {[changed for _, changed in trials]}")

    def test_an_option_that_waits_for_another_is_refused_without_it(self):
        inputs = Inputs(self.folder)
        for subcommand, options in (
            ("mean", {"constant": "3"}), ("mean", {"boundary": "mirror", "constant": "3"}),
            ("convolve-varying", {"grid-spacing": "5,1,1"}), ("convolve-varying", {"grid-origin": "1,0,0"}),
            ("mean", {"empty-value": "3"}), ("bilateral", {"outside-value": "3"}), ("mean", {"output-mask": None}),
            ("mean", {"mask": "@nothing", "output-mask": None, "empty-value": "3"}),
            ("gaussian", {"transforms": "own"}), ("gaussian", {"maximum-error": "0.1"}), ("gaussian", {"maximum-width": "5"}),
            ("mean", {"backend": "cpu", "devices": "0"}), ("mean", {"backend": "cpu", "device-memory": "1G"}),
            ("network", {"threshold": "1"}), ("network", {"patch-size": "8"}), ("network", {"overlap": "0.5"}), ("network", {"weighting": "gaussian"}),
            ("network", {"constant": "1"}), ("network", {"result": "argmax", "channel": "1"}), ("network", {"second": "@second"}),
            ("sequence", {"boundary": "mirror"}), ("sequence", {"axes": "0"}),
            ("identity", {"boundary": "mirror"}), ("sat", {"boundary": "mirror"}), ("difference", {"axes": "0"}),
        ):
            with self.subTest(subcommand=subcommand, options=options):
                result = self.assert_refused(
                    subcommand, inputs.path, self.out, *inputs.arguments({**REQUIRED[subcommand], **options}), status=2)
                self.assertRegex(result.stderr, "|".join("--" + name for name in options))

    def test_displacements_are_lengths_that_are_added_to_points(self):
        inputs = Inputs(self.folder)
        spacing = inputs.image.spacing
        field = Image((2, 2, 2), "float32", [1.4 * spacing[0], -0.7 * spacing[1], 0.4 * spacing[2]] * 8, [9.0, 9.0, 14.0], [-1.0, -1.0, -1.0])
        vectors = write(self.folder / "field.mha", field, more="ElementNumberOfChannels = 3\n")
        moved = self.folder / "moved.mha"
        rows = f"1,0,0,{1.4 * spacing[0]},0,1,0,{-0.7 * spacing[1]},0,0,1,{0.4 * spacing[2]}"
        for interpolation in ("nearest", "linear", "cubic"):
            with self.subTest(interpolation=interpolation):
                options = (f"--interpolation={interpolation}", "--output-type=float32") if interpolation != "nearest" else \
                    (f"--interpolation={interpolation}",)
                self.assert_runs("resample", inputs.path, moved, "--affine", rows, *options)
                self.assert_runs("resample", inputs.path, self.out, "--displacements", vectors, *options)
                found, expected = read(self.out), read(moved)
                self.assertLess(max(abs(a - b) for a, b in zip(found.values, expected.values)), 1e-3)
                whole = self.out.read_bytes()
                for more in ("--divisions=3", "--threads=1", "--memory=200M"):
                    self.assert_runs("resample", inputs.path, self.out, "--displacements", vectors, *options, more)
                    self.assertEqual(self.out.read_bytes(), whole, more)
        for words, names in ((("--displacements", inputs.path), "1 components"), (("--displacements", "none.mha"), "none.mha"),
                             (("--displacement-grid", vectors), "--displacement-grid"),
                             (("--displacements", vectors, "--displacement-grid", inputs.path), "--displacement-grid")):
            with self.subTest(words=words):
                self.assert_refused("resample", inputs.path, self.out, "--scale=1", *words, names=names)

    def test_flags_take_no_value(self):
        """ "--squared=no" would be "--squared"."""
        inputs = Inputs(self.folder)
        for subcommand, flag in (("distance", "squared"), ("watershed", "lines"), ("gaussian", "voxels"), ("mean", "quiet"), ("mean", "compress"),
                                 ("label", "label-background"), ("resample", "no-antialias")):
            for value in ("false", "no", "0", "off", "true", "1", "", "x"):
                with self.subTest(subcommand=subcommand, flag=flag, value=value):
                    self.assert_refused(subcommand, inputs.path, self.out, *inputs.arguments(REQUIRED[subcommand]), f"--{flag}={value}",
                                        names=("--" + flag, "no value"), status=2)

    def test_options_that_are_given_twice_are_refused(self):
        inputs = Inputs(self.folder)
        for words in (("--radius=1", "--radius=2"), ("--radius=1", "--boundary=mirror", "--boundary=periodic"),
                      ("--radius=1", "--output-type=float32", "--output-type=float64"),
                      ("--radius=1", "--memory=1G", "--memory=2G")):
            with self.subTest(words=words):
                self.assert_refused("mean", inputs.path, self.out, *words, status=2, names=words[-1].split("=")[0])

    def test_unknown_words_are_refused_with_the_nearest_name(self):
        inputs = Inputs(self.folder)
        images = (inputs.path, self.out)
        for words, names in (
            (("men", *images, "--radius", 1), ("men", "mean")),
            (("maximun", *images, "--radius", 1), ("maximun", "maximum")),
            (("plan", "men", *images, "--radius", 1), ("men", "mean")),
            (("statistic", inputs.path), ("statistic", "statistics")),
            (("mean", *images, "--raduis", 1), ("--raduis", "--radius")),
            (("mean", *images, "--rad", 1), ("--rad", "--radius")),
            (("mean", *images, "--rad=1"), ("--rad", "--radius")),
            (("mean", *images, "--radius", 1, "--bound", "mirror"), ("--bound", "--boundary")),
            (("mean", *images, "--radius", 1, "--mem", "1G"), ("--mem", "--memory")),
            (("gaussian", *images, "--sigmas", 1), ("--sigmas", "--sigma")),
            (("statistics", inputs.path, "--thread", 1), ("--thread", "--threads")),
            (("mean", *images, "--radius", 1, "--boundary", "miror"), ("--boundary", "miror", "mirror")),
            (("mean", *images, "--radius", 1, "--output-type", "uint12"), ("--output-type", "uint12", "uint16")),
            (("mean", *images, "extra", "--radius", 1), ("extra",)),
            (("sequence", *images, "--step", "men --radius 1"), ("--step", "men", "mean")),
            (("sequence", *images, "--step", "mean --raduis 1"), ("--step", "--raduis")),
            (("sequence", *images, "--step", "median --radius 1", "--step", "identity extra"), ("--step", "extra")),
        ):
            with self.subTest(words=" ".join(map(str, words[:1] + words[3:]))):
                self.assert_refused(*words, names=names, status=2)

    def test_wrong_values_name_the_option_and_no_setter(self):
        inputs = Inputs(self.folder)
        for subcommand, option, values in (
            ("mean", "radius", ("-1", "x", "1,2", "1,2,3,4", "1.5", "", "99999999999999999999", "1,,2")),
            ("mean", "axes", ("3", "0,0", "-1", "x")),
            ("mean", "boundary", ("wrong", "", "0")),
            ("mean", "memory", ("-1", "much", "0", "1X", "nan", "-1.5G")),
            ("mean", "threads", ("0", "-1", "x", "1.5")),
            ("mean", "divisions", ("0", "-1", "x")),
            ("mean", "devices", ("-2", "x")),
            ("mean", "region", ("0,0,0", "x", "0,0,0,1,1", "0,0,0,1,1,1,", "-1,0,0,1,1,1", "0,0,0,0,1,1", "0,0,0,15,1,1",
                                "14,0,0,1,1,1", "1,0,0,9223372036854775807,1,1", "0,0,0,1,1,1.5")),
            ("mean", "backend", ("tpu", "")),
            ("mean", "output-type", ("int", "", "float16")),
            ("gaussian", "sigma", ("-1", "nan", "inf", "x", "1,2")),
            ("gaussian", "cutoff", ("0", "-1", "nan", "x")),
            ("percentile", "percentile", ("101", "-1", "nan")),
            ("entropy", "bins", ("1", "0", "5000", "x")),
            ("entropy", "range", ("5", "5,5", "9,1", "nan,1", "1,2,3")),
            ("wiener", "noise", ("-1", "nan", "x")),
            ("nlm", "strength", ("0", "-1", "nan")),
            ("nlm", "patch", ("-1", "1,2")),
            ("convolve", "weights", ("1,2", "1,2,nan", "1,2,3,4", "x")),
            ("convolve-varying", "grid", ("0", "-1", "2,1", "x")),
            ("h-maxima", "height", ("-1", "0.5", "300", "nan", "x")),
            ("sat", "summed-axes", ("1", "4", "x")),
            ("maximum", "element", ("hexagon",)),
            ("box", "statistic", ("median",)),
            ("network", "channel", ("-1", "3", "1.5", "x")),
            ("network", "result", ("softmax", "")),
            ("network", "precision", ("double", "")),
            ("network", "input-scale", ("nan", "x", "1,2")),
            ("network", "mode", ("windows", "")),
            ("network", "patch-size", ("0", "-1", "1,2", "x")),
            ("network", "overlap", ("1", "-0.1", "nan", "x")),
            ("network", "weighting", ("linear", "")),
            ("network", "boundary", ("renormalized", "periodic")),
            ("network", "model", ("", "/nowhere.onnx", "@second")),
            ("sequence", "step", ("", "devices", "plan mean", "mean", "mean --radius -1", "mean --radius 1 --memory 1G",
                                  "sat", "identity 'open")),
        ):
            for value in values:
                with self.subTest(subcommand=subcommand, option=option, value=value):
                    options = {**REQUIRED[subcommand], option: value}
                    result = self.assert_refused(
                        subcommand, inputs.path, self.out, *inputs.arguments(options), status=2, names="--" + option)
                    self.assertNotRegex(result.stderr, r"\bSet[A-Z]|itk|Exception|enum|CLI")

    def test_images_that_are_missing(self):
        inputs = Inputs(self.folder)
        gone = self.folder / "gone.mha"
        for words, names in (
            ((), "subcommand"), (("mean",), ("IN",)), (("mean", inputs.path, "--radius", 1), "OUT"),
            (("mean", gone, self.out, "--radius", 1), ("gone.mha",)),
            (("difference", inputs.path, self.out, "--minus", gone), ("--minus", "gone.mha")),
            (("reconstruct", inputs.path, self.out, "--marker", gone), ("--marker", "gone.mha")),
            (("box", inputs.path, self.out, "--radius", 1, "--radius-image", gone), ("--radius-image", "gone.mha")),
            (("mean", inputs.path, self.out, "--radius", 1, "--mask", gone), ("--mask", "gone.mha")),
            (("convolve-image", inputs.path, self.out, "--kernel", gone), ("--kernel", "gone.mha")),
            (("difference", inputs.path, self.out), "--minus"), (("mean", inputs.path, self.out), "--radius"),
            (("statistics",), "IN"), (("statistics", gone), "gone.mha"), (("measure",), "LABELS"), (("measure", gone), "gone.mha"),
            (("mean", inputs.path, self.folder / "none" / "o.mha", "--radius", 1), "none"),
            (("mean", inputs.path, self.folder / "o.unknown", "--radius", 1), "o.unknown"),
            (("mean", inputs.path, self.folder / "o", "--radius", 1), "o"),
        ):
            with self.subTest(words=words[:1] + words[3:]):
                self.assert_refused(*words, names=names)

    def test_help_of_all(self):
        for subcommand in listed_subcommands():
            with self.subTest(subcommand=subcommand):
                result = self.assert_runs(subcommand, "--help")
                self.assertEqual(result.stderr, "")
                self.assertIn("--help", result.stdout)

    def test_untrusted_files_are_read_where_the_reader_is_fuzzed(self):
        inputs = Inputs(self.folder)
        volume = self.folder / "volume.h5"
        self.assert_runs("identity", inputs.path, volume)
        for name in ("slice.dcm", "slice"):
            (self.folder / name).write_bytes(b"no image")
        series = self.folder / "series"
        series.mkdir()
        environment = {**os.environ, "CHUNKWISE_UNTRUSTED": "1"}
        for file in (volume, self.folder / "slice.dcm", self.folder / "slice", series):
            for words in (["identity", file, self.out], ["statistics", file], ["measure", file], ["plan", "identity", file, self.out],
                          ["mean", inputs.path, self.out, "--radius=1", f"--mask={file}"]):
                with self.subTest(words=words):
                    self.assert_refused(*words, "--untrusted", names=[file.name, "--untrusted", ".mha"], status=1)
                    self.assert_refused(*words, names=[file.name, "CHUNKWISE_UNTRUSTED"], status=1, env=environment)
        self.assert_runs("identity", volume, self.out, env={**environment, "CHUNKWISE_UNTRUSTED": "0"})
        for ending in ("mha", "mhd", "nrrd", "nii", "nii.gz", "hdr", "mrc", "vtk", "tif", "gipl"):
            with self.subTest(ending=ending):
                file = self.folder / f"other.{ending}"
                self.assert_runs("identity", inputs.path, file)
                self.assert_runs("identity", file, self.folder / f"again.{ending}", "--untrusted")
