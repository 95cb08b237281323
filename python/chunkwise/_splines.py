# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Values between voxels by NumPy, for what the engine does not resample: splines of other orders than 0, 1 and 3, SciPy's
mode ``wrap``, other numbers of dimensions, and points that are not finite."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from os import cpu_count
from typing import Any

import numpy as np

from ._windows import voxels_seen

_Array = np.ndarray[Any, Any]
_BYTES_AT_ONCE = 2**23
#: What coefficients continue with beyond the edge.
_CONTINUED = {"constant": "mirror", "wrap": "mirror", "grid-constant": "nearest", "grid-wrap": "wrap", "grid-mirror": "reflect"}
_PERIODS: dict[str, Callable[[int], int]] = {"mirror": lambda extent: max(2 * extent - 2, 1), "reflect": lambda extent: 2 * extent,
                                             "grid-mirror": lambda extent: 2 * extent, "grid-wrap": lambda extent: extent}


def _weights(fraction: _Array, order: int) -> list[_Array]:
    """The uniform B-splines of an order that are not 0 at a fraction of the way between two knots."""
    weights = [np.ones_like(fraction)]
    for degree in range(1, order + 1):
        zero = np.zeros_like(fraction)
        weights = [((fraction + degree - i) * before + (i + 1 - fraction) * each) / degree
                   for i, (before, each) in enumerate(zip([zero, *weights], [*weights, zero]))]
    return weights


def _inside(points: _Array, extent: int, mode: str) -> tuple[_Array, _Array]:
    """Points as near to the image as the mode allows, and whether they have a value."""
    known = np.isfinite(points)
    if mode == "constant":
        known &= (points >= 0) & (points <= extent - 1)
    elif mode == "nearest":
        known = ~np.isnan(points)
        points = np.clip(points, -10.0, extent + 10.0)
    elif mode == "wrap":
        period = max(extent - 1, 1)
        with np.errstate(invalid="ignore"):
            points = np.where(points < 0, period - np.mod(-points, period), np.where(points > extent - 1, np.mod(points, period), points))
        points = points if extent > 1 else np.zeros_like(points)
    elif mode == "grid-constant":
        points = np.clip(points, -10.0, extent + 10.0)
    else:
        with np.errstate(invalid="ignore"):
            points = np.mod(np.abs(points) if mode == "mirror" else points, _PERIODS[mode](extent))
    return np.where(known, points, 0.0), known


def _along(points: _Array, extent: int, order: int, mode: str) -> tuple[list[tuple[_Array, _Array, _Array | None]], _Array]:
    """For each voxel of the spline along an axis its index, weight, and where it is outside (grid-constant); where points
    have a value."""
    points, known = _inside(points, extent, mode)
    moved = points + (0.5 if order % 2 == 0 else 0.0)
    base = np.floor(moved)
    weights = _weights(moved - base, order)
    first = base.astype(np.int64) - order // 2
    taps = []
    for k, weight in enumerate(weights):
        index = first + k
        outside = (index < 0) | (index >= extent) if mode == "grid-constant" else None
        taps.append((voxels_seen(index, extent, _CONTINUED.get(mode, mode)), weight, outside))
    return taps, known


def interpolate(values: _Array, points_of: Callable[[int, int], Sequence[_Array]], shape: tuple[int, ...], order: int, mode: str,
                cval: float, threads: int | None) -> _Array:
    """Splines with these coefficients at points; ``points_of(begin, end)`` gives them for a part of the first axis of
    `shape`, along each axis of `values`, as arrays that NumPy can broadcast. Each result depends on its point alone."""
    kind = values.dtype if order == 0 else np.dtype(np.float64)
    result = np.empty(shape, kind)
    if result.size == 0:
        return result
    if values.size == 0:
        result[...] = cval
        return result

    def compute(begin: int, end: int) -> None:
        along = [_along(np.asarray(points, np.float64), extent, order, mode) for points, extent in zip(points_of(begin, end), values.shape)]
        total = np.zeros((end - begin, *shape[1:]), kind)
        for taps in product(*(axis for axis, _ in along)):
            term = values[tuple(index for index, _, _ in taps)]
            for _, _, outside in taps:
                if outside is not None:
                    term = np.where(outside, kind.type(cval), term)
            for _, weight, _ in taps if order else ():
                term = term * weight
            total += term
        for _, known in along:
            if not known.all():
                total = np.where(known, total, kind.type(cval))
        result[begin:end] = total

    rows = max(1, _BYTES_AT_ONCE // max(1, math.prod(shape[1:]) * 8))
    begins = range(0, shape[0], rows)
    with ThreadPoolExecutor(min(threads or cpu_count() or 1, len(begins))) as pool:
        for done in [pool.submit(compute, begin, min(begin + rows, shape[0])) for begin in begins]:
            done.result()
    return result
