# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""The required arguments of each subcommand: options by name, None for flags; "@name" is a file that Inputs made. Which
options a filter must be given is in the program's own table ("chunkwise filters --json"); their values are here."""
import json

from adversary.networks import node, small_model
from adversary.support import Image, listed_subcommands, noise, run, write

_VALUES = {
    "radius": "1", "height": "40", "noise": "900", "strength": "30", "percentile": "25", "bins": "8", "sigma": "0.6",
    "weights": "1,2,4", "kernel": "@kernel", "kernels": "@kernels", "grid": "2,1,1", "minus": "@second",
    "marker": "@marker", "model": "@model", "low": "100", "high": "230", "distance": "0.3", "order": "1,0,0", "scales": "0.6", "outer-sigma": "0.8",
    "iterations": "2", "scale": "1.5", "lower": "1", "tile": "3", "range-sigma": "30", "size": "9", "of-gradient": None,
}
# If one of several options has to be given, no single one is required.
_CHOSEN = {
    "gaussian": ("sigma",), "highpass": ("sigma",), "log": ("sigma",), "derivative": ("sigma",), "gradient": ("sigma",),
    "hessian": ("sigma",), "structure-tensor": ("sigma",), "divergence": ("sigma", "of-gradient"), "curvature": ("sigma",), "convolve": ("radius", "weights"), "wiener": ("noise",), "entropy": ("bins",), "boundaries": ("mode",),
    "deconvolve": ("iterations",), "deconvolve-varying": ("iterations",), "resample": ("scale",), "crop": ("lower",), "pad": ("lower",), "total-variation": ("iterations",),
    "coherence-diffusion": ("iterations", "sigma", "outer-sigma", "cutoff", "contrast"), "clahe": ("tile",),
    # They are tested with what is their default.
    "opening-by-reconstruction": ("radius",), "closing-by-reconstruction": ("radius",),
}
# Values that are not those of others.
_OWN = {"crop": {"lower": "3,2,1"}, "pad": {"lower": "3,2,1"}, "convolve": {"radius": "1,0,0"}, "rolling-ball": {"radius": "2"}, "total-variation": {"weight": "30", "iterations": "5"}, "boundaries": {"mode": "inner"}, "coherence-diffusion": {"cutoff": "4", "contrast": "30"}}
# They write no image, or are no filters (filter-labels and its like, whose tests are in measure.py).
OTHERS = ("measure", "filter-labels", "fill-label-holes", "separate", "pyramid", "chain", "statistics", "devices", "plan", "filters", "formats", "network-info", "completion", "slicer-modules",
          "fiji-scripts", "man")


def table():
    """The rows of the program's table of filters, by name."""
    return {row["name"]: row for row in json.loads(run("filters", "--json").stdout)}


def _required(name, row):
    options = [each["option"] for each in row["parameters"] + row["inputs"] if each["required"]]
    options += [option for option in _CHOSEN.get(name, ()) if option not in options]
    # An option without a value here is one that no test knows yet.
    return {option: _OWN.get(name, {}).get(option) or _VALUES[option] for option in options}


REQUIRED = {**{name: _required(name, row) for name, row in table().items()}, "sequence": {"step": "mean --radius 1"}}


class Inputs:
    """The first and the second images of all subcommands: IN has three dimensions and 8 bits."""

    def __init__(self, folder, size=(14, 12, 11), kind="uint8"):
        self.image = noise(size, kind, 3, 0, 255)
        self.image.spacing = [0.5, 0.75, 1.25]
        self.path = write(folder / "in.mha", self.image)
        second = noise(size, kind, 4, 0, 255)
        marker = Image(size, kind, [min(a, b) for a, b in zip(self.image.values, second.values)])
        for image in (second, marker):
            image.spacing = self.image.spacing
        self.files = {
            "second": write(folder / "second.mha", second),
            "marker": write(folder / "marker.mha", marker),
            "kernel": write(folder / "kernel.mha", noise((3, 4, 2), "uint8", 5, 1, 9)),
            "kernels": write(folder / "kernels.mha", noise((3, 3, 2, 2), "uint8", 6, 1, 9)),
            "model": folder / "model.onnx",
            "certainty": write(folder / "certainty.mha", self.with_geometry(noise(size, "float32", 9, 0, 2))),
            "nothing": write(folder / "nothing.mha", self.with_geometry(Image(size, "uint8", [0] * (size[0] * size[1] * size[2])))),
            "radii": write(folder / "radii.mha", self.with_geometry(noise(size, "uint8", 7, 0, 3))),
        }

        vectors = noise((4, 3, 3 * 3), "float32", 11, -1, 1)
        vectors.size, vectors.spacing, vectors.origin = (4, 3, 3), [2.0, 3.5, 5.0], [-0.5, 0.25, 1.0]
        self.files["vectors"] = write(folder / "vectors.mha", vectors, more="ElementNumberOfChannels = 3\n")
        self.files["model"].write_bytes(small_model())
        self.files["other"] = folder / "other.onnx"
        self.files["other"].write_bytes(small_model([node("Sigmoid", ["f"], "out")]))
        flat = self.with_geometry(noise(size, "uint8", 8, 7, 8))
        flat.values = type(flat.values)(flat.values.typecode, [7] * len(flat.values)) if hasattr(flat.values, "typecode") else [7] * len(flat.values)
        self.flat = write(folder / "flat.mha", flat)

    def with_geometry(self, image):
        image.spacing = self.image.spacing
        return image

    def arguments(self, options):
        """The words of a command line; an option may be given several times, as a list."""
        words = []
        for name, values in options.items():
            for value in values if isinstance(values, list) else [values]:
                if value is None:
                    words.append("--" + name)
                else:
                    text = str(self.files[value[1:]]) if value.startswith("@") else value
                    words.append(f"--{name}={text}")
        return words


def all_subcommands(test):
    """The subcommands that write an image. One that is neither in the table nor above fails the test."""
    listed = [name for name in listed_subcommands() if name not in OTHERS]
    test.assertEqual(sorted(listed), sorted(REQUIRED), "the subcommands of the help, and those of the table")
    return listed
