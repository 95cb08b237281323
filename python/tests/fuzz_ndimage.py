#!/usr/bin/env python3
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Compares calls of ``chunkwise.ndimage`` with random arguments with those of ``scipy.ndimage``.

    fuzz_ndimage.py [--cases N] [--seed SEED] [--only NAME]

Images have random shapes (now and then without voxels), types, byte orders and strides; modes, origins, axes, windows, types
of results and the other arguments are random, too. Case K of a seed is always the same: ``--seed SEED --case K`` runs it
alone. The exit status is 1 if results differ, and 77, which is "skipped", without SciPy. These differences are documented, and
count as equal: real results become integers by rounding to the nearest; sums with whole weights wrap around as NumPy's do, sums of
labelled integers are integers, and images of 8 and 16 bits are computed in single precision. The position of an extremum is
that of the first of equal voxels; SciPy's is any of them. SciPy's results for labels that are missing, on grids over
images without voxels, and of ranks of one voxel that is mirrored have no meaning.
"""
import argparse
import collections
import sys
import warnings

SKIPPED = 77
try:
    import numpy as np
    from scipy import ndimage as theirs
except ImportError as error:
    print("skipped:", error)
    sys.exit(SKIPPED)

import chunkwise
from chunkwise import ndimage as ours

MODES = ("reflect", "grid-mirror", "nearest", "mirror", "constant", "grid-constant", "wrap", "grid-wrap")
INTEGERS = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "int64", "uint64")
TYPES = (*INTEGERS, "float32", "float64", "bool", "float32", "float64")
LINEAR = ("uniform_filter", "gaussian_filter", "gaussian_filter1d", "uniform_filter1d", "correlate", "convolve", "correlate1d",
          "convolve1d", "gaussian_laplace", "gaussian_gradient_magnitude")
WRAPPING = ("sobel", "prewitt", "laplace")
EXTREMA = ("maximum_filter", "minimum_filter", "grey_erosion", "grey_dilation", "grey_opening", "grey_closing",
           "morphological_gradient", "morphological_laplace", "white_tophat", "black_tophat")
COMBINED = ("morphological_gradient", "morphological_laplace", "white_tophat", "black_tophat")
EXTREMA1D = ("maximum_filter1d", "minimum_filter1d")
RANKS = ("median_filter", "rank_filter", "percentile_filter")
BINARY = ("binary_erosion", "binary_dilation", "binary_opening", "binary_closing", "binary_propagation", "binary_fill_holes",
          "binary_hit_or_miss")
LABELS = ("label", "find_objects", "sum_labels", "mean", "variance", "standard_deviation", "minimum", "maximum", "median",
          "minimum_position", "maximum_position", "extrema", "center_of_mass")
DISTANCES = ("distance_transform_edt", "distance_transform_bf", "distance_transform_cdt")
GRIDS = ("affine_transform", "shift", "zoom", "rotate", "map_coordinates", "spline_filter", "spline_filter1d")
FUNCTIONS = (*LINEAR, *WRAPPING, *EXTREMA, *EXTREMA1D, *RANKS, *BINARY, *LABELS, *DISTANCES, *GRIDS)


class Case:
    """A function's name and arguments, drawn from random numbers."""

    def __init__(self, random, only=None):
        self.random = random
        self.name = only or str(random.choice(FUNCTIONS))
        self.ndim = int(random.choice((1, 2, 2, 3, 3, 3, 4)))
        if self.name in ("label", "center_of_mass", "find_objects", "distance_transform_edt", "distance_transform_bf"):
            self.ndim = min(self.ndim, 3)
        most = {1: 70, 2: 20, 3: 10, 4: 6}[self.ndim]
        self.shape = [int(each) for each in random.integers(1, most, self.ndim)]
        for axis in range(self.ndim):
            if random.random() < 0.1:
                self.shape[axis] = 1
        if random.random() < 0.03:
            self.shape[int(random.integers(self.ndim))] = 0
        self.dtype = np.dtype(str(random.choice(TYPES)))
        self.image = self.placed(self.values(self.shape, self.dtype))
        self.axes = tuple(range(self.ndim))
        self.is_subset = False
        if random.random() < 0.35:
            self.axes = tuple(int(each) for each in random.permutation(self.ndim)[: random.integers(1, self.ndim + 1)])
            self.is_subset = True
        self.count = len(self.axes)
        self.keywords = {}
        self.is_single = self.dtype == np.float32 or self.dtype.itemsize <= 2
        self.tolerance = 3e-6 if self.is_single else 1e-11
        self.arguments = [self.image]
        group = next(each for each in ("LINEAR", "WRAPPING", "EXTREMA", "EXTREMA1D", "RANKS", "BINARY", "LABELS", "DISTANCES", "GRIDS")
                     if self.name in globals()[each])
        getattr(self, "of_" + group.lower())()
        #: The type of the result, where it is not the image's.
        self.output = None
        if group in ("LINEAR", "EXTREMA", "EXTREMA1D", "RANKS") and random.random() < 0.2:
            self.output = np.dtype(str(random.choice(TYPES)))
            self.fills = bool(random.random() < 0.5)
            if self.output == np.float32:
                self.tolerance = max(self.tolerance, 3e-6)
            # SciPy stores numbers other than 0 and 1 in bool, has extrema in the output's type after each axis, and subtracts in it.
            # Its ranks of rows write the image's type into any output.
            is_wider = np.can_cast(self.dtype, self.output) or (self.dtype.kind == "f" and self.output.kind in "if")
            if ((self.output.kind == "b" and self.dtype.kind != "b") or (group != "LINEAR" and not is_wider) or self.name in COMBINED or
                    (group == "RANKS" and self.dtype.name in ("int64", "float32", "float64"))):
                self.output = None

    def values(self, shape, dtype):
        if dtype.kind == "b":
            return self.random.random(shape) < self.random.choice((0.1, 0.5, 0.9))
        if dtype.kind == "f":
            return self.random.normal(scale=self.random.choice((1.0, 100.0)), size=shape).astype(dtype)
        limits = np.iinfo(dtype)
        # Doubles hold sums of these exactly.
        return self.random.integers(max(limits.min, -2**20), min(limits.max, 2**20), shape, endpoint=True).astype(dtype)

    def placed(self, image):
        """The image in other places in memory, and of the other byte order."""
        kind = self.random.integers(8)
        if kind == 0:
            image = np.asfortranarray(image)
        elif kind == 1:
            whole = np.zeros([2 * each for each in image.shape], image.dtype)
            whole[tuple(slice(None, None, 2) for _ in image.shape)] = image
            image = whole[tuple(slice(None, None, 2) for _ in image.shape)]
        elif kind == 2:
            image = image[::-1].copy()[::-1]
        elif kind == 3:
            image = image[..., ::-1].copy()[..., ::-1]
        elif kind == 4 and image.dtype.itemsize > 1:
            image = image.astype(image.dtype.newbyteorder(">"))
        elif kind == 5:
            image.setflags(write=False)
        return image

    def mode(self, several=True):
        if several and self.random.random() < 0.3:
            return [str(each) for each in self.random.choice(MODES, self.count)]
        return str(self.random.choice(MODES))

    def border(self, several=True):
        cval = int(self.random.integers(0, 100)) if self.dtype.kind != "b" else int(self.random.integers(0, 2))
        self.keywords |= {"mode": self.mode(several), "cval": cval}
        if self.is_subset:
            self.keywords["axes"] = self.axes

    def origins(self, extents):
        return [int(self.random.integers(-(each // 2), (each - 1) // 2 + 1)) for each in extents]

    def extents(self, most):
        most = max(2, most // (1 if self.count < 3 else 2))
        return tuple(int(each) for each in self.random.integers(1, most + 1, self.count))

    def element(self, most=5):
        """With even extents and axes out of order SciPy mistakes one axis for another; its origins go with the axes' names
        unless these are all."""
        extents = self.extents(most)
        is_sorted = list(self.axes) == sorted(self.axes)
        if not is_sorted:
            extents = tuple(each | 1 for each in extents)
        element = self.random.random(extents) < 0.6
        if not is_sorted:
            element.flat[0] = False
        element.flat[-1 if element.size > 1 else 0] = True
        place = dict(zip(sorted(self.axes), extents))
        if self.random.random() < 0.5:
            self.keywords["origin"] = self.origins([place[axis] for axis in (self.axes if self.count < self.ndim else sorted(self.axes))])
        return element

    def along(self):
        self.keywords |= {"axis": int(self.random.integers(-self.ndim, self.ndim)), "mode": str(self.random.choice(MODES)),
                          "cval": int(self.random.integers(0, 100)) if self.dtype.kind != "b" else 0}
        size = int(self.random.integers(1, 12))
        return size

    def limit_axes(self):
        """Weights and elements extend along up to three axes."""
        if self.count > 3:
            self.axes, self.count, self.is_subset = self.axes[:3], 3, True

    def of_linear(self):
        name, random = self.name, self.random
        if name.endswith("1d"):
            size = self.along()
            if name == "uniform_filter1d":
                self.arguments.append(size)
                self.keywords["origin"] = self.origins([size])[0]
            elif name == "gaussian_filter1d":
                self.arguments.append(float(random.uniform(0.2, 4.0)))
                self.keywords["order"] = int(random.integers(0, 4))
            else:
                self.arguments.append(random.normal(size=size))
                self.keywords["origin"] = self.origins([size])[0]
        elif name == "uniform_filter":
            extents = self.extents(9)
            self.arguments.append(extents)
            self.border()
            if random.random() < 0.5:
                self.keywords["origin"] = self.origins(extents)
        elif name in ("correlate", "convolve"):
            self.limit_axes()
            element = self.element(7)
            self.arguments.append(random.normal(size=element.shape) if random.random() < 0.7 else element.astype(float))
            self.border(several=False)
        else:
            width = tuple(float(each) for each in random.choice((0.0, 0.4, 1.0, 1.7, 3.2), self.count))
            if name != "gaussian_filter":
                # SciPy takes the sigmas of all axes here, and one mode after the other.
                self.axes, self.count, self.is_subset = tuple(range(self.ndim)), self.ndim, False
                width = float(random.choice((0.5, 1.0, 2.0)))
            self.arguments.append(width)
            self.border()
            if name == "gaussian_filter":
                if random.random() < 0.3:
                    self.keywords["order"] = tuple(int(each) for each in random.integers(0, 4, self.count))
                if random.random() < 0.3:
                    self.keywords["radius"] = tuple(int(each) for each in random.integers(0, 9, self.count))
            if "radius" not in self.keywords and random.random() < 0.4:
                self.keywords["truncate"] = float(random.choice((2.0, 3.0, 5.5)))

    def of_wrapping(self):
        self.axes, self.count, self.is_subset = tuple(range(self.ndim)), self.ndim, False
        self.border()
        if self.name != "laplace":
            self.keywords["axis"] = int(self.random.integers(-self.ndim, self.ndim))

    def of_extrema(self):
        if self.dtype.kind == "b" and self.name.startswith("morphological"):
            self.image = self.arguments[0] = self.placed(self.values(self.shape, np.dtype("uint8")))
            self.dtype = self.image.dtype
        is_flat = self.random.random() < 0.8 or self.name in ("maximum_filter", "minimum_filter") or self.dtype.kind != "f"
        self.limit_axes()
        if is_flat and self.random.random() < 0.5:
            extents = self.extents(9)
            self.keywords["size"] = extents
            if self.random.random() < 0.5:
                self.keywords["origin"] = self.origins(extents)
            self.border()
            return
        element = self.element()
        self.keywords["footprint"] = element
        if not is_flat:
            self.keywords["structure"] = self.random.integers(-5, 6, element.shape).astype(float)
        self.border(several=False)

    def of_extrema1d(self):
        size = self.along()
        self.arguments.append(size)
        self.keywords["origin"] = self.origins([size])[0]

    def of_ranks(self):
        self.limit_axes()
        if self.random.random() < 0.5 or self.ndim == 1:
            # In one dimension SciPy takes all voxels of a footprint's box.
            extents = self.extents(7)
            if list(self.axes) != sorted(self.axes):
                extents = (extents[0] | 1,) * self.count
            self.keywords["size"] = extents
            voxels = int(np.prod(extents))
        else:
            self.keywords["footprint"] = self.element()
            voxels = int(np.count_nonzero(self.keywords["footprint"]))
        if self.name == "rank_filter":
            self.arguments.append(int(self.random.integers(-voxels, voxels)))
        elif self.name == "percentile_filter":
            self.arguments.append(float(self.random.choice((0, 1, 10, 25, 33.3, 50, 75, 90, 99, 100, -10, -37.5))))
        self.border(several=False)

    def of_binary(self):
        random = self.random
        self.image = self.arguments[0] = self.placed(
            np.where(random.random(self.shape) < random.choice((0.3, 0.6, 0.9)), self.values(self.shape, self.dtype), 0).astype(self.dtype))
        self.limit_axes()
        self.keywords["axes"] = self.axes
        kind = random.integers(3)
        name = {"binary_hit_or_miss": "structure1"}.get(self.name, "structure")
        if kind == 1:
            self.keywords[name] = theirs.generate_binary_structure(self.count, int(random.integers(1, self.count + 1)))
        elif kind == 2:
            if list(self.axes) != sorted(self.axes):
                self.axes = self.keywords["axes"] = tuple(sorted(self.axes))
            element = self.element()
            origin = self.keywords.pop("origin", None)
            if self.name in ("binary_erosion", "binary_dilation", "binary_opening", "binary_closing"):
                self.keywords |= {"structure": element} | ({} if origin is None else {"origin": origin})
            else:
                self.keywords[name] = theirs.generate_binary_structure(self.count, 1)
        if self.name in ("binary_erosion", "binary_dilation", "binary_opening", "binary_closing"):
            # SciPy's lists of voxels crash with some structures and masks.
            self.keywords |= {"brute_force": True, "border_value": int(random.integers(0, 2)),
                              "iterations": int(random.choice((1, 2, 5, 20, -1))) if kind != 2 else 1}
        if self.name not in ("binary_fill_holes", "binary_hit_or_miss") and random.random() < 0.4:
            self.keywords["mask"] = random.random(self.shape) < 0.6

    def of_labels(self):
        random = self.random
        if self.name == "label":
            self.image = self.arguments[0] = self.placed(random.random(self.shape) < 0.5)
            if random.random() < 0.5:
                self.keywords["structure"] = theirs.generate_binary_structure(self.ndim, int(random.integers(1, self.ndim + 1)))
            return
        labels = random.integers(0, 6, self.shape).astype(str(random.choice(("int32", "uint8", "int64"))))
        if self.name == "find_objects":
            self.arguments = [self.placed(labels.astype(np.int32))]
            return
        if self.dtype.kind == "b":
            self.image = self.arguments[0] = self.image.astype(np.uint8)
            self.dtype = self.image.dtype
        if self.name == "center_of_mass":
            self.image = self.arguments[0] = np.abs(self.image.astype(float)) + 0.5
        self.tolerance = 1e-6
        if random.random() < 0.8:
            self.arguments.append(labels)
            present = [int(each) for each in np.unique(labels) if each > 0]
            if present and random.random() < 0.7:
                self.arguments.append(present[:3])

    def of_distances(self):
        random = self.random
        objects = random.random(self.shape) < random.choice((0.3, 0.8, 0.97))
        if objects.all() and objects.size:
            objects.flat[random.integers(objects.size)] = False
        self.image = self.placed(objects.astype(self.dtype))
        self.arguments = [self.image]
        if self.name == "distance_transform_edt" or (self.name == "distance_transform_bf" and random.random() < 0.3):
            if random.random() < 0.5:
                self.keywords["sampling"] = tuple(float(each) for each in random.uniform(0.3, 3.0, self.ndim))
        else:
            self.keywords["metric"] = str(random.choice(("taxicab", "chessboard")))

    def of_grids(self):
        random = self.random
        # SciPy's coefficients of short axes are not exact with some modes.
        self.shape = [each + 40 if self.ndim < 3 and each else each for each in self.shape]
        self.image = self.placed(self.values(self.shape, self.dtype))
        order = int(random.integers(0, 6))
        mode = str(random.choice(MODES))
        exact = order < 2 or mode in ("constant", "mirror", "wrap")
        if not exact and self.ndim > 2:
            order = int(random.integers(0, 2))
        self.tolerance = 1e-9 if exact or order < 2 else 2e-3
        if self.is_single:
            self.tolerance = max(self.tolerance, 3e-6)
        self.arguments = [self.image]
        if self.name.startswith("spline"):
            self.keywords |= {"order": max(order, 2), "mode": mode if mode in ("constant", "wrap") else "mirror"}
            if self.name == "spline_filter1d":
                self.keywords["axis"] = int(random.integers(-self.ndim, self.ndim))
            return
        self.keywords |= {"order": order, "mode": mode, "cval": int(random.integers(0, 2))}
        if self.name == "affine_transform":
            self.arguments.append(random.normal(size=(self.ndim, self.ndim)) * 0.3 + np.eye(self.ndim))
            self.keywords |= {"offset": random.normal(size=self.ndim).tolist(), "output_shape": tuple(max(each, 1) + 2 for each in self.shape)}
        elif self.name == "shift":
            self.arguments.append(random.uniform(-6, 6, self.ndim).tolist())
        elif self.name == "zoom":
            self.arguments.append(random.uniform(0.4, 1.7, self.ndim).tolist())
            self.keywords["mode"] = mode if not mode.startswith("grid") else "mirror"
        elif self.name == "rotate":
            if self.ndim == 1:
                self.name = "shift"
                self.arguments.append(1.25)  # not halfway between two voxels
            else:
                self.arguments.append(float(random.uniform(-180, 180)))
                self.keywords["axes"] = tuple(int(each) for each in random.permutation(self.ndim)[:2])
                self.keywords["reshape"] = bool(random.random() < 0.5)
                # The middle of the axis is turned to halfway between two voxels.
                self.keywords["order"] = max(order, 1)
        else:
            self.arguments.append(np.stack([random.uniform(-each, 2 * each + 1, (3, 5)) for each in self.shape]))

    def positions(self, result):
        """With the values and labels at positions in their place."""
        if self.name == "extrema":
            return (*result[:2], *(self.positions_of(each) for each in result[2:]))
        return self.positions_of(result) if self.name.endswith("_position") else result

    def positions_of(self, places):
        places = [places] if isinstance(places, tuple) else places
        labels = self.arguments[1] if len(self.arguments) > 1 else np.ones(self.shape, int)
        named = len(self.arguments) > 2
        return [(self.arguments[0][place], labels[place] if named else labels[place] > 0) for place in places]

    def run(self, library, real=False):
        arguments, keywords = list(self.arguments), dict(self.keywords)
        if real:
            arguments[0] = arguments[0].astype(np.float64)
        elif self.output is not None:
            keywords["output"] = self.output
            if self.fills:
                keywords["output"] = np.zeros(self.image.shape, self.output)
                getattr(library, self.name)(*arguments, **keywords)
                return keywords["output"]
        return getattr(library, self.name)(*arguments, **keywords)

    def __str__(self):
        keywords = self.keywords | ({"output": self.output} if self.output is not None else {})
        shown = [f"{each.dtype}{each.shape}{each.strides}" if isinstance(each, np.ndarray) and each.size > 12 else repr(each)
                 for each in self.arguments]
        return " ".join(f"{self.name}({', '.join(shown)}, {keywords})".split())


def equal(mine, yours, tolerance, least=1.0):
    """Whether results are equal but for rounding, which is relative to the largest number, of `least` at least."""
    if isinstance(yours, (tuple, list)):
        return len(mine) == len(yours) and all(equal(a, b, tolerance, least) for a, b in zip(mine, yours))
    if isinstance(yours, slice) or yours is None:
        return mine == yours
    a, b = np.asarray(mine), np.asarray(yours)
    if a.shape != b.shape or (isinstance(yours, np.ndarray) and a.dtype.newbyteorder("=") != b.dtype.newbyteorder("=")):
        return False
    if a.dtype.kind not in "fc" and b.dtype.kind not in "fc":
        return np.array_equal(a, b)
    finite = np.abs(b[np.isfinite(b)])
    return np.allclose(a, b, rtol=0, atol=tolerance * max(least, float(finite.max(initial=0))), equal_nan=True)


def compare(case):
    """The result: equal, both raise, refused, accepted, different or crashed; and its reason."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mine = yours = refusal = failure = None
        try:
            yours = case.run(theirs)
        except Exception as error:
            failure = error
        try:
            mine = case.run(ours)
        except (chunkwise.Error, TypeError, ValueError, RuntimeError) as error:
            refusal = error
        except Exception as error:
            return "crashed", repr(error)
        if failure is not None:
            return ("both raise", "") if refusal is not None else ("accepted", str(failure))
        if refusal is not None:
            return "refused", f"{type(refusal).__name__}: {refusal}"
        if case.name == "sum_labels" and case.dtype.kind in "iub":
            mine = np.asarray(mine).astype(np.asarray(yours).dtype)
        if case.name in GRIDS and case.image.size == 0:
            return "undefined", ""
        if case.name in RANKS and case.shape == [1] and case.keywords["mode"] == "mirror":
            return "undefined", ""
        # Sums may cancel: their rounding is that of their terms.
        terms = np.abs(case.image.astype(np.float64))
        least = max(1.0, terms.max(initial=0) if case.name in LINEAR else terms.sum() if case.name == "sum_labels" else 0)
        if equal(case.positions(mine), case.positions(yours), case.tolerance, least):
            return "equal", ""
        dtype = case.output or case.dtype
        is_real = case.name in LINEAR or case.name in WRAPPING or case.name in GRIDS or (case.output and case.dtype.kind == "f")
        if dtype.kind in "iub" and isinstance(mine, np.ndarray) and mine.dtype == dtype and is_real:
            real = np.asarray(case.run(theirs, real=True))
            if dtype.kind == "b":
                near = np.abs(np.clip(real, 0, 1) - mine) if case.name not in WRAPPING else (np.rint(real) != 0) ^ mine
            elif case.name in WRAPPING:
                near = mine != np.rint(real).astype(np.int64).astype(dtype)
            else:
                limits = np.iinfo(dtype)
                near = np.abs(np.clip(real, limits.min, limits.max) - mine.astype(np.float64))
            slack = case.tolerance * max(1.0, float(np.abs(real).max(initial=0)))
            if real.shape == mine.shape and (near.size == 0 or near.max() <= 0.5 + slack):
                return "rounded", ""
        return "different", ""


def main():
    parser = argparse.ArgumentParser(description="Compares chunkwise.ndimage with scipy.ndimage for random arguments.")
    parser.add_argument("--cases", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", type=int, help="this one alone")
    parser.add_argument("--only", choices=FUNCTIONS)
    options = parser.parse_args()
    counts, reasons, told = collections.Counter(), collections.Counter(), 0
    for number in range(options.cases) if options.case is None else [options.case]:
        case = Case(np.random.default_rng((options.seed, number)), options.only)
        way, reason = compare(case)
        counts[way] += 1
        if way in ("refused", "accepted"):
            reasons[f"{way} {case.name}: {reason[:120]}"] += 1
        if way in ("different", "crashed") or options.case is not None:
            told += 1
            if told <= 100:
                print(f"case {number}: {way} {reason} {case}")
    print("\n".join(f"{count:6} {text}" for text, count in reasons.most_common(40)))
    print(f"{sum(counts.values())} cases:", ", ".join(f"{count} {way}" for way, count in counts.most_common()))
    sys.exit(int(counts["different"] + counts["crashed"] > 0))


if __name__ == "__main__":
    main()
