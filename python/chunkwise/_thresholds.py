# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Thresholds of whole images as numbers and of windows as images, by scikit-image's names."""
from __future__ import annotations

from typing import Any

import numpy as np

from . import filters
from ._windows import dtype_of


def _find(method: Any, image: Any, mask: Any, nbins: int | None, options: dict[str, Any],
          **given: Any) -> tuple[float, ...]:
    if nbins is not None:
        given["number_of_bins"] = nbins
    return tuple(np.ravel(filters.Threshold(method, **given).resolved(image, mask, **options).thresholds).tolist())


def threshold_otsu(image: Any, nbins: int | None = None, *, mask: Any = None, **options: Any) -> float:
    """Otsu's threshold of an image: ``skimage.filters.threshold_otsu``.

    Parameters
    ----------
    image : array_like, or an image that the filters take
    nbins : int, optional
        Bins between the least value and the largest. Without it integers have a bin for each value, where these are up to
        65536, and others 256 bins.
    mask : as image, optional
        Voxels count where it is not 0.
    **options
        Those of every filter: backend, devices, memory, ...

    Returns
    -------
    float
        Voxels above it are the brighter class, as ``chunkwise.threshold(image, "otsu")`` gives it.
    """
    return _find("otsu", image, mask, nbins, options)[0]


def threshold_li(image: Any, nbins: int | None = None, *, mask: Any = None, **options: Any) -> float:
    """Li's threshold of least cross entropy, from the histogram: see threshold_otsu."""
    return _find("li", image, mask, nbins, options)[0]


def threshold_yen(image: Any, nbins: int | None = None, *, mask: Any = None, **options: Any) -> float:
    """Yen's threshold, ``skimage.filters.threshold_yen``: see threshold_otsu."""
    return _find("yen", image, mask, nbins, options)[0]


def threshold_triangle(image: Any, nbins: int | None = None, *, mask: Any = None, **options: Any) -> float:
    """The triangle threshold, ``skimage.filters.threshold_triangle``: see threshold_otsu."""
    return _find("triangle", image, mask, nbins, options)[0]


def threshold_isodata(image: Any, nbins: int | None = None, *, mask: Any = None, **options: Any) -> float:
    """The least threshold of Ridler and Calvard, ``skimage.filters.threshold_isodata``: see threshold_otsu."""
    return _find("isodata", image, mask, nbins, options)[0]


def threshold_multiotsu(image: Any, classes: int = 3, nbins: int | None = None, *, mask: Any = None,
                        **options: Any) -> tuple[float, ...]:
    """Otsu's thresholds of several classes, ascending, ``skimage.filters.threshold_multiotsu``: see threshold_otsu."""
    return _find("multi-otsu", image, mask, nbins, options, number_of_classes=classes)


def _levels(image: Any, size: Any, options: dict[str, Any], name: str, **given: Any) -> Any:
    """Local thresholds as an image of floats; windows of `size` voxels, a number or one for each axis."""
    sizes = np.ravel(size).tolist()
    for each in sizes:
        if each != int(each) or each < 1 or each % 2 == 0:
            raise ValueError(f"{name}: {each} is not an odd number of voxels from 1 on")
    radii = tuple((int(each) - 1) // 2 for each in sizes)
    options = dict(options)
    mask = options.pop("mask", None)
    given.update({each: options.pop(each) for each in ("mode", "cval", "axes") if each in options})
    dtype = dtype_of(image)
    if "output" not in options:
        options["output"] = "float32" if dtype == np.float32 or dtype.itemsize <= 2 else "float64"
    made = filters.LocalThreshold(radii[0] if np.ndim(size) == 0 else radii, result="threshold", **given)
    return made(image, mask, **options)


def threshold_niblack(image: Any, window_size: Any = 15, k: float = 0.2, **options: Any) -> Any:
    """Niblack's local thresholds, mean - k standard deviation: ``skimage.filters.threshold_niblack``.

    Parameters
    ----------
    image : array_like, or an image that the filters take
    window_size : int or sequence of int
        The voxels of a window, an odd number, or one for each axis.
    k : float
        How much the standard deviation counts.
    **options
        mask, mode, cval and axes of ``chunkwise.local_threshold``, and what every filter takes: backend, devices,
        memory, output, ...

    Returns
    -------
    image of floats
        float32 for 8- and 16-bit integers and float32, else float64. ``image > threshold_niblack(image)`` is
        ``chunkwise.local_threshold(image, radius, "niblack")``. At the image's edge windows end, where scikit-image
        mirrors the image without its edge voxel.
    """
    return _levels(image, window_size, options, "window_size", method="niblack", k=k)


def threshold_sauvola(image: Any, window_size: Any = 15, k: float = 0.2, r: float | None = None, **options: Any) -> Any:
    """Sauvola's local thresholds, mean (1 + k (standard deviation / r - 1)): ``skimage.filters.threshold_sauvola``.

    r is by default half of the range of the image's type, 1 for floats. See threshold_niblack.
    """
    given = {} if r is None else {"r": r}
    return _levels(image, window_size, options, "window_size", method="sauvola", k=k, **given)


def threshold_local(image: Any, block_size: Any = 3, method: str = "gaussian", offset: float = 0, mode: str = "reflect",
                    cval: float = 0, **options: Any) -> Any:
    """The Gaussian, mean or median of the window around each voxel, minus offset: ``skimage.filters.threshold_local``.

    The Gaussian's sigma is (block_size - 1) / 6. Modes are "reflect", "mirror", "constant" (with cval), "nearest" and "wrap", or
    "renormalized": the part of the window inside the image. See threshold_niblack.
    """
    if method not in ("gaussian", "mean", "median"):
        raise ValueError(f"method: {method!r} is none of gaussian, mean, median")
    if mode == "constant":
        options["cval"] = cval
    return _levels(image, block_size, {**options, "mode": mode}, "block_size", method=method, offset=offset)


def apply_hysteresis_threshold(image: Any, low: float, high: float, **options: Any) -> Any:
    """Voxels above low that are connected to one above high, as bool: ``skimage.filters.apply_hysteresis_threshold``.

    Neighbours share a face; fully_connected=True lets edges and corners count too. ``chunkwise.hysteresis`` gives the same
    as 8-bit integers. Unlike scikit-image's, low may not be above high, and both are numbers.
    """
    given = {each: options.pop(each) for each in ("fully_connected", "axes") if each in options}
    return filters.Hysteresis(low, high, **given)(image, **options) != 0
