# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Exact statistics of whole images."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from . import _core
from ._arrays import as_input, check_dtype, make_options
from ._containers import is_on_device, open_image
from ._device import summarise as summarise_on_device
from ._dispatch import runner_of


class Statistics(NamedTuple):
    """Statistics of the voxels that are numbers: each sum is exact and rounded once. NaN is counted alone."""

    voxels: int
    nans: int
    infinities: int
    sum: float
    mean: float
    variance: float
    std: float
    minimum: int | float
    maximum: int | float


def summarise(array: Any, **options: Any) -> bytes:
    """The sums for the statistics of a part of an image; parts add up in any order."""
    array = np.asarray(array)
    array = as_input(array, check_dtype(array.dtype))
    if array.ndim > 5:
        raise _core.ParameterError(f"input: it has {array.ndim} dimensions; images have 1 to 5")
    if array.size == 0:
        return bytes(_core.add_summaries([]))
    return bytes(_core.summarise(array, make_options(**options)))


def combine(dtype: Any, summaries: Iterable[bytes]) -> Statistics:
    """The statistics of an image from those of its parts."""
    kind = check_dtype(np.dtype(dtype))
    found = _core.describe_statistics(kind, _core.add_summaries(list(summaries)))
    if found["count"] == 0:
        raise _core.ParameterError("input: it has no voxel that is a number")
    return Statistics(found.pop("count"), **found)


def statistics(input: Any, **options: Any) -> Statistics:
    """Exact sum, mean, variance, minimum and maximum of an image.

    The sums do not depend on the order of voxels; each is rounded once. NaN is left out and counted.

    Examples
    --------
    >>> import numpy as np, chunkwise
    >>> chunkwise.statistics(np.array([1e20, 1.0, -1e20])).sum
    1.0
    """
    runner = runner_of(input)
    if runner is not None and runner.statistics is not None:
        found: Statistics = runner.statistics(input, **options)
        return found
    if is_on_device(input) and options.get("backend") != "cpu":
        dtype, summary = summarise_on_device(input, options)
        return combine(dtype, [summary])
    array = open_image(input).array
    return combine(array.dtype, [summarise(array, **options)])
