# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""``skimage.filters``: thresholds, Gaussian and median.

Thresholds of floating-point images are centers of bins, and may differ by rounding.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core, _thresholds, filters, ndimage
from .._containers import all_take_device_arrays
from ._common import Array, as_array, as_real, deliver, missing, real_type, refuse

__all__ = ["apply_hysteresis_threshold", "gaussian", "median", "threshold_isodata", "threshold_li", "threshold_local",
           "threshold_multiotsu", "threshold_niblack", "threshold_otsu", "threshold_sauvola", "threshold_triangle", "threshold_yen", "unsharp_mask"]

_NDIMAGE = "chunkwise.ndimage has sobel, prewitt, laplace and gaussian_gradient_magnitude along an axis"
__getattr__ = missing("filters", {
    "sobel": _NDIMAGE, "prewitt": _NDIMAGE, "laplace": "chunkwise.ndimage.laplace, or chunkwise.log",
    "difference_of_gaussians": "gaussian twice, and the difference",
    "rank": "chunkwise.ndimage has rank_filter, percentile_filter, minimum_filter and maximum_filter; chunkwise.entropy",
    "threshold_mean": "chunkwise.statistics(image).mean", "threshold_minimum": "scikit-image has it",
    "correlate_sparse": "chunkwise.ndimage.correlate",
})


def gaussian(image: Any, sigma: Any = 1.0, *, mode: str = "nearest", cval: float = 0, preserve_range: bool = False,
             truncate: float = 4.0, channel_axis: int | None = None, out: Any = None, **options: Any) -> Array:
    """``skimage.filters.gaussian``, but for the rounding of floating-point numbers."""
    array = as_array(image)
    if np.any(np.asarray(sigma) < 0.0):
        raise ValueError("Sigma values less than zero are not valid")
    if channel_axis is not None:
        axis = channel_axis % array.ndim
        widths = list(np.ravel(sigma)) if np.ndim(sigma) else [sigma] * (array.ndim - 1)
        if len(widths) == array.ndim - 1:
            widths.insert(axis, 0)
        sigma = widths
    real = as_real(array, preserve_range)
    return deliver(ndimage.gaussian_filter(real, sigma, mode=mode, cval=cval, truncate=truncate, **options), out)


def unsharp_mask(image: Any, radius: Any = 1.0, amount: float = 1.0, preserve_range: bool = False, *,
                 channel_axis: int | None = None, **options: Any) -> Array:
    """``skimage.filters.unsharp_mask``, but for the rounding of floating-point numbers, with an amount of at least 0."""
    array = as_array(image)
    real = as_real(array, preserve_range)
    if channel_axis is not None:
        parts = [unsharp_mask(np.ascontiguousarray(part), radius, amount, True, **options) for part in np.moveaxis(real, channel_axis, 0)]
        found = np.stack(parts, axis=channel_axis)
    else:
        widths = tuple(float(each) for each in (radius if np.ndim(radius) else [radius] * array.ndim))
        found = np.asarray(filters.Unsharp(widths, amount=amount, kernel_radius=tuple(int(4.0 * width + 0.5) for width in widths),
                                           mode="reflect", spacing=False)(real, **options))
    if preserve_range:
        return found
    return np.clip(found, -1.0 if np.any(real < 0) else 0.0, 1.0, out=found)


def median(image: Any, footprint: Any = None, out: Any = None, mode: str = "nearest", cval: float = 0.0,
           behavior: str = "ndimage", **options: Any) -> Array:
    """``skimage.filters.median`` with behavior='ndimage'."""
    if behavior != "ndimage":
        refuse("behavior", behavior, "ranks of skimage.filters.rank end at the image's edge, as chunkwise.median's do")
    array = as_array(image)
    footprint = np.ones((3,) * array.ndim, bool) if footprint is None else footprint
    return deliver(ndimage.median_filter(array, footprint=footprint, mode=mode, cval=cval, **options), out)


def _threshold(name: str, image: Any, nbins: int, hist: Any, options: dict[str, Any], **given: Any) -> Any:
    if hist is not None:
        refuse("hist", "a histogram", f"skimage.filters.threshold_{name} takes one")
    if image is None:
        raise TypeError("Either name or hist must be provided.")
    array = as_array(image)
    if array.dtype.kind == "b":
        array = array.astype(np.uint8)
    if array.dtype.kind in "iu" and array.size and int(array.max()) - int(array.min()) >= 65536:
        refuse("image", array.dtype, "its values have a range above 65535, so that bins hold several; "
               f"chunkwise.threshold_{name}(image, nbins) says of how many")
    bins = nbins if array.dtype.kind == "f" else None
    return array.dtype, getattr(_thresholds, f"threshold_{name}")(array, nbins=bins, **given, **options)


def _typed(dtype: np.dtype[Any], value: Any) -> Any:
    """The threshold of an image of integers is an integer."""
    return np.int64(value) if dtype.kind in "iu" else dtype.type(value)


def threshold_otsu(image: Any = None, nbins: int = 256, *, hist: Any = None, **options: Any) -> Any:
    """``skimage.filters.threshold_otsu`` of an image."""
    return _typed(*_threshold("otsu", image, nbins, hist, options))


def threshold_yen(image: Any = None, nbins: int = 256, *, hist: Any = None, **options: Any) -> Any:
    """``skimage.filters.threshold_yen`` of an image; scikit-image adds up in single precision, so that of thousands of grey values
    it may give one beside this."""
    return _typed(*_threshold("yen", image, nbins, hist, options))


def threshold_triangle(image: Any, nbins: int = 256, **options: Any) -> Any:
    """``skimage.filters.threshold_triangle``."""
    return _typed(*_threshold("triangle", image, nbins, None, options))


def threshold_isodata(image: Any = None, nbins: int = 256, return_all: bool = False, *, hist: Any = None, **options: Any) -> Any:
    """``skimage.filters.threshold_isodata`` of an image, with return_all=False."""
    if return_all:
        refuse("return_all", True, "the least threshold is found")
    return _typed(*_threshold("isodata", image, nbins, hist, options))


def threshold_li(image: Any, *, tolerance: Any = None, initial_guess: Any = None, iter_callback: Any = None, **options: Any) -> float:
    """``skimage.filters.threshold_li``. For integers it is scikit-image's within half a grey value, its tolerance; for
    floating-point numbers it is found in a histogram of 256 bins, so it differs by up to a bin."""
    for name, value in (("tolerance", tolerance), ("initial_guess", initial_guess), ("iter_callback", iter_callback)):
        if value is not None:
            refuse(name, value, "the threshold is found in the histogram, from its mean, without a tolerance")
    return float(_threshold("li", image, 256, None, options)[1])


def threshold_multiotsu(image: Any = None, classes: int = 3, nbins: int = 256, *, hist: Any = None, **options: Any) -> Array:
    """``skimage.filters.threshold_multiotsu`` of an image; scikit-image adds up in single precision, so that of thresholds that
    are nearly as good it may find others."""
    dtype, found = _threshold("multiotsu", image, nbins, hist, options, classes=classes)
    return np.array(found, np.int64 if dtype.kind in "iu" else dtype)


def _in_windows(made: Any, image: Any, window_size: Any, options: dict[str, Any], **given: Any) -> Array:
    """Local thresholds, with the image mirrored at its edge without its edge voxel."""
    array = as_array(image)
    real = array.astype(real_type(array.dtype), copy=False)
    sizes = [int(each) for each in np.ravel(window_size)]
    sizes = sizes * array.ndim if np.ndim(window_size) == 0 else sizes
    if len(sizes) != array.ndim or any(each % 2 == 0 or each < 1 for each in sizes):
        raise ValueError(f"window_size: {window_size!r} is not an odd number, or one for each of {array.ndim} axes")
    return np.asarray(made(real, tuple(sizes), mode="mirror", **given, output=real.dtype, **options))


def threshold_niblack(image: Any, window_size: Any = 15, k: float = 0.2, **options: Any) -> Array:
    """``skimage.filters.threshold_niblack``, but for the rounding of floating-point numbers.
    ``chunkwise.threshold_niblack`` ends windows at the image's edge."""
    return _in_windows(_thresholds.threshold_niblack, image, window_size, options, k=k)


def threshold_sauvola(image: Any, window_size: Any = 15, k: float = 0.2, r: float | None = None, **options: Any) -> Array:
    """``skimage.filters.threshold_sauvola``: see `threshold_niblack`."""
    dtype = as_array(image).dtype
    if r is None:
        r = 1.0 if dtype.kind == "f" else 0.5 if dtype.kind == "b" else 0.5 * (float(np.iinfo(dtype).max) - float(np.iinfo(dtype).min))
    return _in_windows(_thresholds.threshold_sauvola, image, window_size, options, k=k, r=r)


def threshold_local(image: Any, block_size: Any = 3, method: str = "gaussian", offset: float = 0, mode: str = "reflect",
                    param: Any = None, cval: float = 0, **options: Any) -> Array:
    """``skimage.filters.threshold_local`` with the methods gaussian, mean and median, but for the rounding of floating-point
    numbers."""
    if method not in ("gaussian", "mean", "median"):
        refuse("method", method, "gaussian, mean and median are")
    array = as_array(image)
    sizes = [int(each) for each in np.ravel(block_size)]
    sizes = sizes * array.ndim if np.ndim(block_size) == 0 else sizes
    if len(sizes) != array.ndim:
        raise ValueError("len(block_size) must equal image.ndim.")
    if any(each % 2 == 0 for each in sizes):
        raise ValueError(f"block_size must be odd! Given block_size {block_size} contains even values.")
    real = array.astype(real_type(array.dtype), copy=False)
    given: dict[str, Any] = {"mode": mode, "cval": cval, **options}
    if method == "gaussian":
        widths = [(each - 1) / 6.0 for each in sizes] if param is None else param
        level = ndimage.gaussian_filter(real, widths, **given)
    elif method == "mean":
        level = ndimage.uniform_filter(real, sizes, **given)
    else:
        level = ndimage.median_filter(real, sizes, **given)
    result: Array = level - real.dtype.type(offset)
    return result


def apply_hysteresis_threshold(image: Any, low: Any, high: Any, **options: Any) -> Array:
    """``skimage.filters.apply_hysteresis_threshold`` with numbers."""
    if np.ndim(low) or np.ndim(high):
        refuse("low", "an array", "numbers are")
    array = as_array(image)
    found: Array = _thresholds.apply_hysteresis_threshold(array, min(low, high), high, **options)
    return found


all_take_device_arrays(globals())
