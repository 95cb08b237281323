#!/usr/bin/env python3
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Runs the tests of the installed SciPy, and compares every call of ``scipy.ndimage`` in them with ``chunkwise.ndimage``.

    run_scipy_tests.py [--only-existing] [--limit PERCENT] [--list NAME] [PACKAGE ...]

Packages are names or paths. One that is not installed, or whose tests are not, is skipped: wheels of scikit-image and dask-image
have none, their source distributions have.

Each call goes to both libraries, with copies of its arguments. The test goes on with SciPy's result, so a refusal hides
no later call. Packages are those whose tests run: scipy.ndimage, and for example skimage.filters or dask_image, which call
``scipy.ndimage`` themselves. A call ends as follows:

equal      same type and shape, equal integers, real numbers within rounding; indices of nearest voxels that are equally near
rounded    SciPy truncates real results to integers; ours are the nearest integers of SciPy's own real results. Sums of labelled
           integers are integers here, and real numbers there.
undefined  SciPy's result is none: it stores numbers other than 0 and 1 in bool, reads a structure of real numbers as bytes,
           gives distances where no voxel is 0, a median of a label without voxels, or ranks among NaN
both raise both refuse the arguments
refused    SciPy has a result, and ours says why it has none
accepted   SciPy refuses the arguments, and ours has a result
wrong      the results differ
crashed    an exception that is no refusal

The exit status is 1 if a call is wrong or crashed, if more than PERCENT of the calls are refused (default: any number), and
77, which is "skipped", without SciPy, pytest or hypothesis.
"""
import argparse
import collections
import copy
import functools
import importlib.util
import inspect
import re
import sys
import warnings
from pathlib import Path

SKIPPED = 77
try:
    import numpy as np
    import pytest
    import scipy
    from hypothesis import settings  # SciPy's tests need it
    from scipy import ndimage as theirs
    from scipy._lib._array_api import xp_capabilities_table
except ImportError as error:
    print("skipped:", error)
    sys.exit(SKIPPED)

import chunkwise
from chunkwise import ndimage as ours

WAYS = ("equal", "rounded", "undefined", "both raise", "refused", "accepted", "wrong", "crashed")
REFUSALS = (chunkwise.Error, TypeError, ValueError, NotImplementedError)


def is_close(a, b, scale=None):
    """Whether arrays are equal but for rounding, which is relative to the largest number."""
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    is_real = a.dtype.kind in "fc"
    if np.array_equal(a, b, equal_nan=is_real) or not is_real:
        return np.array_equal(a, b, equal_nan=is_real)
    finite = np.abs(b[np.isfinite(b)])
    tolerance = (1e-5 if a.dtype in (np.float32, np.complex64) else 1e-9) * max(1.0, float(finite.max(initial=0)))
    return np.allclose(a, b, rtol=0, atol=tolerance, equal_nan=True)


def has_unknown_label(name, arguments, given):
    """Whether a label has no voxel, of whose values SciPy takes the median of others."""
    try:
        bound = inspect.signature(getattr(theirs, name).__wrapped__).bind(*arguments, **given).arguments
    except (TypeError, AttributeError):
        return False
    return bound.get("index") is not None and not np.isin(bound["index"], bound["labels"]).all()


def same(a, b):
    if isinstance(b, (tuple, list)):
        return isinstance(a, (tuple, list)) and len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    if isinstance(b, dict):
        return isinstance(a, dict) and a.keys() == b.keys() and all(same(a[key], b[key]) for key in b)
    if isinstance(b, np.ndarray) and b.dtype == object:
        return isinstance(a, np.ndarray) and same(list(a), list(b))
    if isinstance(b, np.ndarray):
        return isinstance(a, np.ndarray) and is_close(a, b)
    if b is None:
        # Some of SciPy's functions return nothing where they are given the array for the result, ours return that.
        return a is None or isinstance(a, np.ndarray)
    if isinstance(b, slice):
        return bool(a == b)
    # Scalars may be Python's or NumPy's.
    return np.ndim(a) == 0 and np.allclose(a, b, rtol=1e-6, equal_nan=True)


def is_rounded(result, name, arguments, given):
    """Whether integers are the nearest ones of SciPy's real results, or wrap around as these do; ties may be rounded either
    way. SciPy converts negative numbers to unsigned integers as the machine happens to."""
    if not isinstance(result, np.ndarray) or result.dtype.kind not in "iub":
        return False
    original = getattr(theirs, name).__wrapped__
    try:
        bound = inspect.signature(original).bind(*arguments, **given)
        if "output" not in bound.signature.parameters:
            return False
        bound.arguments["output"] = np.float64
        real = original(*bound.args, **bound.kwargs)
    except Exception:  # not a function with an output
        return False
    if result.dtype.kind != "b" and np.array_equal(result, np.rint(real).astype(np.int64).astype(result.dtype)):
        return True
    limits = (0, 1) if result.dtype.kind == "b" else (np.iinfo(result.dtype).min, np.iinfo(result.dtype).max)
    near = np.clip(real, *limits)
    return real.shape == result.shape and bool(np.all(np.abs(result - near) <= 0.5 + 1e-9 * np.abs(near)))


def is_continued(result, expected, name, arguments, given):
    """Whether results differ by what SciPy's padding of splines leaves alone, which is 0.268^12 of the values."""
    try:
        bound = inspect.signature(getattr(theirs, name).__wrapped__).bind(*arguments, **given)
        bound.apply_defaults()
        is_spline = bound.arguments["mode"] in ("nearest", "grid-constant") and bound.arguments["order"] > 1 and bound.arguments["prefilter"]
    except (TypeError, AttributeError, KeyError):
        return False
    if not is_spline or np.shape(result) != np.shape(expected) or np.asarray(result).dtype != np.asarray(expected).dtype:
        return False
    return bool(np.abs(result - expected).max(initial=0) <= 1e-6 * max(1.0, np.abs(expected).max(initial=0)))


def are_as_near(result, expected, name, mine, yours, original):
    """Whether indices of the nearest voxels are as near as SciPy's, where several are nearest. `mine` and `yours` are the
    arguments after the calls, which may have taken the results; `original` has those before."""
    signature = inspect.signature(getattr(theirs, name).__wrapped__)
    before = signature.bind(*original[0], **original[1])
    before.apply_defaults()
    given = before.arguments
    if not given["return_indices"]:
        return False
    objects, metric = np.asarray(given["input"]), given.get("metric", "euclidean")
    if not isinstance(metric, str):
        metric = "taxicab" if np.count_nonzero(metric) < np.size(metric) else "chessboard"
    sampling = given.get("sampling")
    scale = np.broadcast_to(1.0 if sampling is None or metric != "euclidean" else sampling, objects.ndim)
    scale = scale.reshape(-1, *(1,) * objects.ndim)
    lengths = []
    for found, (positional, named) in ((result, mine), (expected, yours)):
        bound = signature.bind(*positional, **named).arguments
        found = [] if found is None else list(found) if isinstance(found, tuple) else [found]
        indices = bound["indices"] if given["indices"] is not None else found.pop()
        distances = bound["distances"] if given["distances"] is not None else found.pop() if given["return_distances"] else 0
        if objects[tuple(indices)].any():
            return False
        steps = np.abs(indices - np.indices(objects.shape)) * scale
        lengths.append((np.sqrt((steps ** 2).sum(0)) if metric == "euclidean" else steps.max(0) if metric == "chessboard" else steps.sum(0),
                        distances))
    return all(np.allclose(a, b) for a, b in zip(*lengths))


#: Arrays of more bytes are not copied: SciPy's tests have one of 3.6 GB, of which they read four voxels.
MOST_COPIED = 1 << 28


def copies(arguments, given):
    """Copies of the arguments of a call. Large arrays are the same ones, and cannot be written to."""
    large = {}
    for each in (*arguments, *given.values()):
        if isinstance(each, np.ndarray) and each.nbytes > MOST_COPIED:
            large[id(each)] = each.view()
            large[id(each)].flags.writeable = False
    return copy.deepcopy((arguments, given), large)


class Counts:
    """The results of the calls: their names, and the reasons of calls that are not equal."""

    def __init__(self, only_existing):
        self.only_existing = only_existing
        self.ways = collections.defaultdict(collections.Counter)
        self.reasons = collections.defaultdict(collections.Counter)
        self.inside = False

    def add(self, name, way, reason=""):
        self.ways[name][way] += 1
        if reason:
            self.reasons[way][f"{name}: {reason}"] += 1

    def compare(self, name, original, arguments, given):
        mine = getattr(ours, name, None)
        if mine is None:
            if not self.only_existing:
                self.add(name, "refused", "is missing")
            return original(*arguments, **given)
        try:
            copied, copied_given = copies(arguments, given)
            again, again_given = copies(arguments, given)
        except Exception:  # what cannot be copied can only be used once
            return original(*arguments, **given)
        result = failure = None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = mine(*copied, **copied_given)
        except Exception as error:
            failure = error
        try:
            expected = original(*arguments, **given)
        except Exception as error:
            refused = failure is None or isinstance(failure, (*REFUSALS, type(error)))
            self.add(name, "crashed" if not refused else "accepted" if failure is None else "both raise",
                     repr(failure) if not refused else str(error) if failure is None else "")
            raise
        if type(result).__module__.startswith("dask."):
            # Ours keeps Dask's arrays lazy, SciPy computes them.
            result = result.compute()
        if failure is not None:
            way = "refused" if isinstance(failure, REFUSALS) else "crashed"
            self.add(name, way, f"{type(failure).__name__}: {failure}")
            return expected
        mine_out, out = ([each for each in (*positional, *named.values()) if isinstance(each, np.ndarray) and each.nbytes <= MOST_COPIED]
                         for positional, named in ((copied, copied_given), (arguments, given)))
        if same(result, expected) and all(is_close(a, b) for a, b in zip(mine_out, out)):
            self.add(name, "equal")
        elif name.endswith("_tophat") and again[0].dtype == bool and again_given.get("structure") is not None:
            self.add(name, "undefined")
        elif name == "median" and has_unknown_label(name, again, again_given):
            self.add(name, "undefined")
        elif name in ("median_filter", "percentile_filter", "rank_filter") and again and np.isnan(again[0]).any():
            self.add(name, "undefined")
        elif name == "distance_transform_cdt" and np.asarray(again_given.get("metric", "")).dtype.kind == "f":
            self.add(name, "undefined")
        elif name in ("sum", "sum_labels") and np.asarray(result).dtype.kind in "iu" and np.array_equal(result, expected):
            self.add(name, "rounded")
        elif name.startswith("distance_transform") and np.all(again[0]):
            self.add(name, "undefined")
        elif name.startswith("distance_transform") and are_as_near(
                result, expected, name, (copied, copied_given), (arguments, given), (again, again_given)):
            self.add(name, "equal")
        elif is_rounded(result, name, again, again_given) or is_continued(result, expected, name, again, again_given):
            self.add(name, "rounded")
        else:
            shown = [a if np.ndim(a) == 0 or np.size(a) < 30 else f"array{a.shape}:{a.dtype}" for a in again]
            self.add(name, "wrong", f"{shown} {again_given}: {result!r} is not {expected!r}"
                     if np.size(expected) < 60 else f"{shown} {again_given}")
        return expected

    def wrap(self, name):
        original = getattr(theirs, name)

        @functools.wraps(original)
        def called(*arguments, **given):
            if self.inside:  # SciPy's functions call one another
                return original(*arguments, **given)
            self.inside = True
            try:
                return self.compare(name, original, arguments, given)
            finally:
                self.inside = False

        called.__wrapped__ = original
        if original in xp_capabilities_table:
            xp_capabilities_table[called] = xp_capabilities_table[original]
        setattr(theirs, name, called)

    def report(self, listed):
        total = collections.Counter()
        print(f"\n{'name':32}" + "".join(f"{way:>11}" for way in WAYS))
        for name in sorted(self.ways):
            total += self.ways[name]
            print(f"{name:32}" + "".join(f"{self.ways[name][way] or '':>11}" for way in WAYS))
        print(f"{'all':32}" + "".join(f"{total[way]:>11}" for way in WAYS))
        for way in ("refused", "accepted", "wrong", "crashed"):
            merged = collections.Counter()
            for text, count in self.reasons[way].items():
                if listed and not re.match(listed + ":", text):
                    continue
                merged[text[:2000] if listed else re.sub(r"[-+]?\d[\d.e+-]*", "#", text)[:150]] += count
            if merged:
                print(f"\n{way}:")
                for text, count in merged.most_common(None if listed else 60):
                    print(f"{count:6} {text}")
        return total


def has_tests(package):
    """Whether a package, or a path, has files of tests."""
    if Path(package).exists():
        return True
    try:
        found = importlib.util.find_spec(package)
    except ModuleNotFoundError:
        found = None
    places = (found.submodule_search_locations or []) if found else []
    return any(next(Path(place).rglob("test_*.py"), None) for place in places)


def main():
    parser = argparse.ArgumentParser(description="Runs SciPy's tests with chunkwise.ndimage beside scipy.ndimage.")
    parser.add_argument("packages", nargs="*", default=["scipy.ndimage"])
    parser.add_argument("--limit", type=float, default=100.0, metavar="PERCENT")
    parser.add_argument("--list", metavar="NAME", help="every reason of a function, whole")
    parser.add_argument("--only-existing", action="store_true", help="leave out the calls of names that are missing")
    options = parser.parse_args()
    for package in options.packages:
        if not has_tests(package):
            print(f"skipped: {package} has no tests here")
    packages = [each for each in options.packages if has_tests(each)]
    if not packages:
        sys.exit(SKIPPED)
    counts = Counts(options.only_existing)
    names = theirs.__all__
    for name in names:
        counts.wrap(name)
    settings.register_profile("same", derandomize=True, deadline=None)
    settings.load_profile("same")
    status = pytest.main(["-q", "--continue-on-collection-errors", "-p", "no:cacheprovider", "-p", "no:warnings", "--no-header", "--tb=line", "-n0"
                          if "xdist" in sys.modules else "-q", "-c", "/dev/null", "--pyargs", *packages])
    total = counts.report(options.list)
    missing = [each for each in names if not hasattr(ours, each)]
    advised = [each for each in missing if each in getattr(ours, "_INSTEAD", {})]
    print(f"\nSciPy {scipy.__version__}: {len(names) - len(missing)} of {len(names)} names exist, {len(advised)} more say "
          f"what to use instead; missing: {', '.join(each for each in missing if each not in advised) or 'none'}")
    calls = sum(total.values())
    refused = 100.0 * total["refused"] / max(calls, 1)
    print(f"{calls} calls, {refused:.1f} % refused, {total['wrong']} wrong, {total['crashed']} crashed; "
          f"pytest's status: {int(status)}")
    sys.exit(int(total["wrong"] > 0 or total["crashed"] > 0 or refused > options.limit or calls == 0))


if __name__ == "__main__":
    main()
