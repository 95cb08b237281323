# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""What each subcommand must be given: options by name, None for flags; "@name" is a file that Inputs made."""
from adversary.networks import node, small_model
from adversary.support import Image, listed_subcommands, noise, write

_RADIUS = {"radius": "1"}
_HEIGHT = {"height": "40"}

REQUIRED = {
    "identity": {}, "mean": _RADIUS, "sum": _RADIUS, "variance": _RADIUS, "std": _RADIUS, "box": _RADIUS,
    "maximum": _RADIUS, "minimum": _RADIUS, "opening": _RADIUS, "closing": _RADIUS, "range": _RADIUS, "median": _RADIUS,
    "wiener": {**_RADIUS, "noise": "900"}, "nlm": {**_RADIUS, "strength": "30"},
    "percentile": {**_RADIUS, "percentile": "25"}, "entropy": {**_RADIUS, "bins": "8"},
    "convolve": {"radius": "1,0,0", "weights": "1,2,4"}, "convolve-image": {"kernel": "@kernel"},
    "convolve-varying": {"kernels": "@kernels", "grid": "2,1,1"},
    "gaussian": {"sigma": "0.6"}, "highpass": {"sigma": "0.6"}, "log": {"sigma": "0.6"},
    "difference": {"minus": "@second"}, "sat": {}, "reconstruct": {"marker": "@marker"},
    "h-maxima": _HEIGHT, "h-minima": _HEIGHT, "h-convex": _HEIGHT, "h-concave": _HEIGHT,
    "fill-holes": {}, "grind-peaks": {}, "clear-border": {},
    "opening-by-reconstruction": _RADIUS, "closing-by-reconstruction": _RADIUS,
    "regional-maxima": {}, "regional-minima": {},
    "network": {"model": "@model"},
    "sequence": {"step": "mean --radius 1"},
}
# They write no image.
OTHERS = ("statistics", "devices", "plan", "formats", "network-info", "completion", "slicer-modules", "fiji-scripts", "man")


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
    """Those that write an image. One that is not in the table above fails the test."""
    listed = [name for name in listed_subcommands() if name not in OTHERS]
    test.assertEqual(sorted(listed), sorted(REQUIRED), "the subcommands of the help, and those that are tested")
    return listed
