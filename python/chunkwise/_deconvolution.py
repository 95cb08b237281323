# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Deconvolution by scikit-image's name, and kernels from images of beads."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import filters
from ._containers import open_image, takes_device_arrays
from ._table import BY_NAME


@takes_device_arrays
def richardson_lucy(image: Any, psf: Any, num_iter: int = 50, clip: bool = True, filter_epsilon: float | None = None,
                    **options: Any) -> Any:
    """Richardson-Lucy deconvolution: ``skimage.restoration.richardson_lucy``, without rings at the edge.

    scikit-image takes the image for 0 beyond its edge. Here nothing is known of it there: see ``chunkwise.deconvolve``,
    which also has weights, background, acceleration and rules to stop.

    Parameters
    ----------
    image : array_like
        Up to three dimensions, 0 or more.
    psf : array_like
        The kernel, of the image's dimension; its center is at half its size, rounded down. Its weights are used as they
        are.
    num_iter : int, optional
        Iterations.
    clip : bool, optional
        Whether results beyond -1 and 1 are cut there.
    filter_epsilon : float, optional
        A voxel whose estimate, convolved, is no larger has no share in a correction.
    **options
        Those of every filter: threads, memory, output, ...

    Returns
    -------
    array
        The input's package makes it: float32; float64 for float64 and for integers of 32 and 64 bits. The same bits for any
        number of threads.
    """
    package = type(image).__module__.partition(".")[0]
    isLazy = package == "dask"
    opened = None if isLazy else open_image(np.asarray(image) if package in ("zarr", "tensorstore") else image)
    array = image if opened is None else opened.array
    # A lazy one for Dask's array, with its chunks.
    start = np.full_like(array, 0.5, dtype=np.float32)
    made = filters.Deconvolve(np.asarray(psf), number_of_iterations=num_iter, normalize=False,
                              least_expected=0.0 if filter_epsilon is None else filter_epsilon)
    images: dict[str, Any] = {"start": start}
    images |= {name: options.pop(name) for name in ("mask", "weight") if name in options}
    result = made(array, *(images.get(each.name) for each in BY_NAME["deconvolve"].inputs), **options)
    if opened is None:
        return result.clip(-1, 1) if clip else result
    if clip:
        np.clip(result, -1, 1, out=result)
    return result if result is options.get("output") else opened.wrap(result)


def average_beads(image: Any, positions: Any, shape: Sequence[int], *, background: str | float = "border") -> Any:
    """The mean image of beads: a kernel for ``chunkwise.deconvolve``.

    Each bead is cut out at its position, rounded to voxels; its background is subtracted; its centroid is found within the
    cut, and the cut is shifted there by linear interpolation. The cuts are averaged, negative values become 0, and the
    sum becomes 1.

    Parameters
    ----------
    image : array_like
        An image of beads that are smaller than the microscope resolves, and do not overlap.
    positions : array_like
        (beads, dimension): voxels near the centers, one row for each bead, in the order of the image's axes.
    shape : sequence of int
        The kernel's shape, odd numbers.
    background : "border" or float, optional
        Subtracted from each cut: the median of the cut's outermost voxels, or this value.

    Returns
    -------
    numpy.ndarray
        Float64, of the shape, with the sum 1. The beads' center is in its middle.

    Raises
    ------
    ValueError
        If no bead, with two voxels to spare, is within the image; or a bead has no light above its background.
    """
    array = np.asarray(image, np.float64)
    places = np.atleast_2d(np.asarray(positions, np.float64))
    extent = tuple(int(n) for n in shape)
    if places.ndim != 2 or places.shape[1] != array.ndim or len(extent) != array.ndim:
        raise ValueError(f"positions: {places.shape[-1]} numbers and shape: {len(extent)} for an image of {array.ndim} dimensions")
    if any(n < 1 or n % 2 == 0 for n in extent):
        raise ValueError(f"shape: {extent}, not of odd numbers above 0")
    grid = np.meshgrid(*(np.arange(n) - n // 2 for n in extent), indexing="ij")
    total = np.zeros(extent)
    beads = 0
    for place in places:
        center = np.rint(place).astype(int)
        # Two voxels more to each side than the kernel has, for the shift.
        lower = [c - n // 2 - 2 for c, n in zip(center, extent)]
        upper = [c + n // 2 + 3 for c, n in zip(center, extent)]
        if any(a < 0 or b > n for a, b, n in zip(lower, upper, array.shape)):
            continue
        cut = array[tuple(slice(a, b) for a, b in zip(lower, upper))]
        inner = cut[(slice(2, -2),) * array.ndim]
        border = np.ones(extent, bool)
        border[tuple(slice(1, -1) if n > 2 else slice(None) for n in extent)] = False
        level = float(np.median(inner[border])) if background == "border" and border.any() else float(
            0 if background == "border" else background)
        cut = cut - level
        light = np.maximum(cut[(slice(2, -2),) * array.ndim], 0)
        if not light.sum() > 0:
            raise ValueError(f"positions: the bead at {tuple(center.tolist())} has no light above its background of {level}")
        shifted = cut
        for axis, along in enumerate(grid):
            shift = float(np.clip((light * along).sum() / light.sum(), -1.5, 1.5))
            whole = int(np.floor(shift))
            shifted = (1 - (shift - whole)) * np.roll(shifted, -whole, axis) + (shift - whole) * np.roll(shifted, -whole - 1, axis)
        total += shifted[(slice(2, -2),) * array.ndim]
        beads += 1
    if beads == 0:
        raise ValueError(f"positions: none of {len(places)} beads, with two voxels to spare, is within the image")
    total = np.maximum(total, 0)
    return total / total.sum()
