# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Filters with the names, signatures, defaults and meanings of ``scipy.ndimage``.

``from chunkwise import ndimage as ndi`` is the whole switch. What cannot be done as SciPy does it raises an error that
says what to do instead. Four things differ, and on purpose:

* Real results become integers by rounding to the nearest, ties to even. SciPy cuts them, for separable filters after
  each axis, so that a mean of uint8 may be two too low.
* NaN has no rank: ranks are those of the voxels that are numbers.
* A constant beyond the edge, ``cval``, must be a value of the input's type: 1e300 is none of float32, which SciPy makes an
  infinity.
* Inputs may also be images of ITK, SimpleITK, xarray, torch or Dask. Lengths are in voxels here, whatever their spacing.

Each function takes as further keywords what all filters take: backend, devices, memory, threads, progress and so on.

>>> import numpy as np
>>> from chunkwise import ndimage as ndi
>>> ndi.uniform_filter(np.arange(5.0), size=3)
array([0.33333333, 1.        , 2.        , 3.        , 3.66666667])
"""
from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _core, filters
from ._arrays import check_dtype
from ._containers import is_on_device, open_image
from ._device import dtype_of
from ._objects import (center_of_mass, extrema, find_objects, histogram, maximum, maximum_position, mean, median, minimum,
                       minimum_position, standard_deviation, sum, sum_labels, value_indices, variance)

__all__ = [
    "black_tophat", "center_of_mass", "convolve", "correlate", "distance_transform_edt", "extrema", "find_objects", "gaussian_filter",
    "gaussian_laplace", "grey_closing", "grey_dilation", "grey_erosion", "grey_opening", "histogram", "label",
    "maximum", "maximum_filter", "maximum_position", "mean", "median", "median_filter", "minimum", "minimum_filter",
    "minimum_position", "morphological_gradient", "percentile_filter", "rank_filter", "standard_deviation", "sum",
    "sum_labels", "uniform_filter", "value_indices", "variance", "white_tophat",
]

_MODES = {
    "reflect": "reflect", "grid-mirror": "reflect", "nearest": "nearest", "constant": "constant",
    "grid-constant": "constant", "wrap": "wrap", "grid-wrap": "wrap",
}
# Sums of more products are faster through transforms.
_MOST_DIRECT_WEIGHTS = 2500


def _shape_of(image: Any) -> tuple[int, ...]:
    if hasattr(image, "GetLargestPossibleRegion"):
        return tuple(int(each) for each in image.GetLargestPossibleRegion().GetSize())[::-1]
    if type(image).__module__.partition(".")[0] == "SimpleITK":
        return tuple(image.GetSize())[::-1]
    return tuple(image.shape) if hasattr(image, "shape") else np.shape(image)


def _dtype_of(image: Any) -> np.dtype[Any]:
    dtype: np.dtype[Any]
    if is_on_device(image):
        dtype = dtype_of(image)
    elif type(image).__module__.partition(".")[0] in ("itk", "SimpleITK", "torch"):
        dtype = open_image(image).array.dtype
    else:
        dtype = np.dtype(image.dtype) if hasattr(image, "dtype") else np.asarray(image).dtype
    return dtype


def _mode(mode: Any) -> str:
    if not isinstance(mode, str):
        several = set(mode)
        if len(several) != 1:
            raise _core.ParameterError(f"mode: {mode!r}; one mode for all axes is possible, or a call for each axis")
        mode = several.pop()
    if mode == "mirror":
        raise _core.ParameterError("mode: 'mirror', which does not repeat the edge voxel, is not there; 'reflect' repeats "
                                   "it, and np.pad(image, radius, mode='reflect') makes an image whose middle has it")
    if mode not in _MODES:
        raise _core.ParameterError(f"mode: {mode!r} is none of {', '.join(_MODES)}")
    return _MODES[mode]


def _border(image: Any, mode: Any, cval: Any) -> dict[str, Any]:
    mode = _mode(mode)
    if mode != "constant":
        return {"mode": mode}
    if isinstance(cval, float) and cval.is_integer() and _dtype_of(image).kind in "iub":
        cval = int(cval)
    return {"mode": mode, "cval": cval}


def _check_origin(origin: Any) -> None:
    if np.any(np.asarray(origin) != 0):
        raise _core.ParameterError(f"origin: {origin!r}; windows lie around their voxel. np.roll, or padding and "
                                   "cropping, shifts a result")


def _axes(axes: Any, ndim: int) -> tuple[int, ...]:
    if axes is None:
        return tuple(range(ndim))
    given = (axes,) if isinstance(axes, int) else tuple(axes)
    for axis in given:
        if not -ndim <= axis < ndim:
            raise _core.ParameterError(f"axes: {axis} is not an axis of an array of {ndim} dimensions")
    normal = tuple(axis % ndim for axis in given)
    if len(set(normal)) != len(normal):
        raise _core.ParameterError(f"axes: {axes!r} names an axis twice")
    return normal


def _check_order(axes: tuple[int, ...], name: str) -> None:
    if list(axes) != sorted(axes):
        raise _core.ParameterError(f"axes: {axes} with {name}; SciPy takes its axes in ascending order, whatever theirs, so "
                                   "only that order is possible")


def _per_axis(value: Any, count: int, name: str) -> tuple[Any, ...]:
    values = (value,) * count if np.ndim(value) == 0 else tuple(value)
    if len(values) != count:
        raise _core.ParameterError(f"{name}: {len(values)} numbers for {count} axes")
    return values


def _window(axes: tuple[int, ...], reach: Sequence[Any], ndim: int, name: str) -> tuple[tuple[int, ...], tuple[Any, ...]]:
    """The axes along which a window has more than one voxel, and how far; at least one axis."""
    pairs = [(axis, each) for axis, each in zip(axes, reach) if each != 0]
    if len(pairs) > 3:
        raise _core.ParameterError(f"{name}: windows along {len(pairs)} axes; three are possible, axes= names them")
    if not pairs:
        pairs = [(ndim - 1, 0)]
    return tuple(axis for axis, _ in pairs), tuple(each for _, each in pairs)


def _radii(size: Any, count: int) -> tuple[int, ...]:
    radii = []
    for each in _per_axis(size, count, "size"):
        try:
            extent = operator.index(each)
        except TypeError:
            raise _core.ParameterError(f"size: {each!r} is not a whole number") from None
        if extent < 1:
            raise _core.ParameterError(f"size: {extent} is not at least 1")
        if extent % 2 == 0:
            raise _core.ParameterError(f"size: {extent} is even, and such a window has no middle; {extent + 1} has one")
        radii.append(extent // 2)
    return tuple(radii)


class _Footprint:
    """A window: a box with radii along axes, or any odd shape of voxels."""

    def __init__(self, image: Any, size: Any, footprint: Any, axes: Any, structure: Any = None) -> None:
        shape = _shape_of(image)
        self.ndim = len(shape)
        self.axes = _axes(axes, self.ndim)
        self.element: np.ndarray[Any, Any] | None = None
        if structure is not None:
            structure = np.asarray(structure)
            if np.any(structure != 0):
                raise _core.ParameterError("structure: elements are flat here, so only zeros are possible")
            # As SciPy: a flat structure is a footprint of its shape.
            footprint = np.ones(structure.shape, bool) if footprint is None else footprint
        if footprint is None:
            if size is None:
                raise _core.ParameterError("size: neither it nor footprint is set")
            reach = _radii(size, len(self.axes))
        else:
            element = np.asarray(footprint).astype(bool)
            if element.ndim != len(self.axes):
                raise _core.ParameterError(f"footprint: it has {element.ndim} dimensions, there should be {len(self.axes)}")
            _check_order(self.axes, "footprint")
            if not element.any():
                raise _core.ParameterError("footprint: it has no voxels")
            reach = _radii(element.shape, len(self.axes))
            if not element.all():
                self.element = element
        self.voxels = math.prod(2 * each + 1 for each in reach)
        self.used, self.radius = _window(self.axes, reach, self.ndim, "size" if footprint is None else "footprint")

    def box(self, what: str) -> dict[str, Any]:
        if what != "means" and len(set(self.radius)) > 1:
            _check_order(self.axes, "sizes that differ")
        if self.element is not None:
            raise _core.ParameterError(f"footprint: {what} are those of boxes here; size= or a footprint of ones is possible")
        return {"radius": self.radius, "axes": self.used}

    def flat(self, reflected: bool) -> dict[str, Any]:
        if self.element is None:
            return {"radius": self.radius, "axes": self.used}
        element = np.flip(self.element) if reflected else self.element
        # The engine's kernels have all of the image's axes.
        whole = np.moveaxis(element.reshape(element.shape + (1,) * (self.ndim - element.ndim)),
                            range(element.ndim), self.axes)
        return {"kernel": whole, "axes": self.used}


def _run(made: Any, image: Any, output: Any, options: dict[str, Any]) -> Any:
    return made(image, output=_dtype_of(image) if output is None else output, **options)


def uniform_filter(input: Any, size: Any = 3, output: Any = None, mode: Any = "reflect", cval: float = 0.0,
                   origin: Any = 0, *, axes: Any = None, **options: Any) -> Any:
    """The mean over a box: ``scipy.ndimage.uniform_filter``.

    Parameters
    ----------
    input : array_like
    size : int or sequence of int
        Odd, along each of the axes.
    output : array or dtype, optional
    mode : {'reflect', 'constant', 'nearest', 'wrap', 'grid-mirror', 'grid-constant', 'grid-wrap'}
    cval : scalar
    origin : 0
    axes : int or tuple of int, optional
        All; windows may extend along three.
    """
    _check_origin(origin)
    window = _Footprint(input, size, None, axes)
    return _run(filters.Mean(**window.box("means"), **_border(input, mode, cval)), input, output, options)


def _kernel1d(sigma: float, order: int, radius: int) -> np.ndarray[Any, Any]:
    """Weights of a correlation with a derivative of the Gaussian: the Gaussian, normalised, times a polynomial q, which
    each derivative takes to q' - q x / sigma^2."""
    x = np.arange(-radius, radius + 1, dtype=np.float64)
    gauss = np.exp(-0.5 * (x / sigma) ** 2)
    gauss /= gauss.sum()
    q = np.polynomial.Polynomial([1.0])
    for _ in range(order):
        q = q.deriv() - q * np.polynomial.Polynomial([0.0, 1.0 / sigma**2])
    weights: np.ndarray[Any, Any] = (gauss * q(x))[::-1]
    return weights


def _gaussians(image: Any, sigma: Any, truncate: float, radius: Any, axes: Any) -> list[tuple[int, float, int]]:
    """Axis, sigma and radius where something is smoothed, as SciPy chooses them."""
    used = _axes(axes, len(_shape_of(image)))
    sigmas = _per_axis(sigma, len(used), "sigma")
    radii = _per_axis(radius, len(used), "radius")
    found = []
    for axis, width, reach in zip(used, sigmas, radii):
        width = float(width)
        if not (width >= 0 and math.isfinite(width)):
            raise _core.ParameterError(f"sigma: {width} is not a finite number of at least 0")
        if width > 1e-15:
            reach = int(truncate * width + 0.5) if reach is None else operator.index(reach)
            if reach < 0:
                raise _core.ParameterError(f"radius: {reach} is not at least 0")
            found.append((axis, width, reach))
    if len(found) > 3:
        raise _core.ParameterError(f"sigma: windows along {len(found)} axes; three are possible, axes= names them")
    return found


def _correlate_real(image: Any, weights: np.ndarray[Any, Any], output: Any, border: dict[str, Any], what: str,
                    options: dict[str, Any]) -> Any:
    """A correlation whose result is real: a kernel of all axes."""
    is_array = isinstance(output, np.ndarray) or is_on_device(output)
    dtype = _dtype_of(image if output is None else output) if output is None or is_array else np.dtype(output)
    if border.get("cval", 0) != 0:
        raise _core.ParameterError(f"cval: {border['cval']} with {what}; SciPy puts it beyond the edge of each axis' result, "
                                   "which no single pass does. 0 is possible")
    if dtype.kind != "f":
        raise _core.ParameterError(f"output: {what} are real numbers, {dtype} has none; output=np.float32 gives them")
    if weights.size > _MOST_DIRECT_WEIGHTS:
        made: Any = filters.ConvolveImage(weights, correlate=True, **border)
    else:
        made = filters.Convolve(kernel=weights, correlate=True, **border)
    return _run(made, image, output, options)


def _outer(kernels: dict[int, np.ndarray[Any, Any]], ndim: int) -> np.ndarray[Any, Any]:
    weights = np.ones((1,) * ndim)
    for axis, kernel in kernels.items():
        weights = weights * kernel.reshape([-1 if a == axis else 1 for a in range(ndim)])
    return weights


def gaussian_filter(input: Any, sigma: Any, order: Any = 0, output: Any = None, mode: Any = "reflect",
                    cval: float = 0.0, truncate: float = 4.0, *, radius: Any = None, axes: Any = None,
                    **options: Any) -> Any:
    """Convolution with a Gaussian, or with its derivatives: ``scipy.ndimage.gaussian_filter``.

    Parameters
    ----------
    input : array_like
    sigma : float or sequence of float
        Voxels, along each of the axes.
    order : int or sequence of int
        Of the derivative along each axis; results other than of order 0 must be float32 or float64.
    output : array or dtype, optional
    mode, cval : as in `uniform_filter`
    truncate : float
        Where the kernel ends, in sigmas: at ``int(truncate * sigma + 0.5)`` voxels.
    radius : int or sequence of int, optional
        Where it ends, in voxels.
    axes : int or tuple of int, optional
        All; at most three with a sigma that is not 0.
    """
    border = _border(input, mode, cval)
    ndim = len(_shape_of(input))
    found = _gaussians(input, sigma, truncate, radius, axes)
    orders = dict(zip(_axes(axes, ndim), _per_axis(order, len(_axes(axes, ndim)), "order")))
    for each in orders.values():
        if operator.index(each) < 0:
            raise _core.ParameterError(f"order: {each} is not at least 0")
    if any(orders[axis] for axis, _, _ in found):
        weights = _outer({axis: _kernel1d(width, orders[axis], reach) for axis, width, reach in found}, ndim)
        return _correlate_real(input, weights, output, {**border, "axes": [axis for axis, _, _ in found]}, "derivatives",
                               options)
    if not found:
        return _run(filters.Identity(), input, output, options)
    made = filters.Gaussian(tuple(each for _, each, _ in found), kernel_radius=tuple(each for _, _, each in found),
                            axes=tuple(axis for axis, _, _ in found), spacing=False, **border)
    return _run(made, input, output, options)


def gaussian_laplace(input: Any, sigma: Any, output: Any = None, mode: Any = "reflect", cval: float = 0.0, *,
                     axes: Any = None, truncate: float = 4.0, radius: Any = None, **options: Any) -> Any:
    """The sum of second derivatives of Gaussians: ``scipy.ndimage.gaussian_laplace``, for float32 and float64.

    ``chunkwise.log`` is faster and exact for polynomials of degree 2; its weights differ from SciPy's.
    """
    border = _border(input, mode, cval)
    ndim = len(_shape_of(input))
    found = _gaussians(input, sigma, truncate, radius, axes)
    if len({(width, reach) for _, width, reach in found}) > 1:
        _check_order(_axes(axes, ndim), "sigmas that differ")
    if len(found) != len(_axes(axes, ndim)):
        raise _core.ParameterError(f"sigma: {sigma!r}; each must be above 0")
    weights = builtins.sum(_outer({axis: _kernel1d(width, 2 if axis == along else 0, reach) for axis, width, reach in found}, ndim)
                  for along, _, _ in found)
    return _correlate_real(input, np.asarray(weights), output, {**border, "axes": [axis for axis, _, _ in found]},
                           "second derivatives", options)


def median_filter(input: Any, size: Any = None, footprint: Any = None, output: Any = None, mode: Any = "reflect",
                  cval: float = 0.0, origin: Any = 0, *, axes: Any = None, **options: Any) -> Any:
    """The median over a box: ``scipy.ndimage.median_filter``. Parameters as of `maximum_filter`, footprints of ones."""
    _check_origin(origin)
    window = _Footprint(input, size, footprint, axes)
    return _run(filters.Median(**window.box("medians"), **_border(input, mode, cval)), input, output, options)


def _rank(input: Any, rank: int, window: _Footprint, output: Any, border: dict[str, Any], options: dict[str, Any]) -> Any:
    voxels = window.voxels
    # The engine takes rank floor(fraction (n - 1)).
    percentile = 100.0 if rank == voxels - 1 else 100.0 * (rank + 0.5) / (voxels - 1)
    return _run(filters.Percentile(percentile=percentile, **window.box("ranks"), **border), input, output, options)


def rank_filter(input: Any, rank: int, size: Any = None, footprint: Any = None, output: Any = None,
                mode: Any = "reflect", cval: float = 0.0, origin: Any = 0, *, axes: Any = None, **options: Any) -> Any:
    """The voxel of a rank in a box: ``scipy.ndimage.rank_filter``; a negative rank counts from the largest."""
    _check_origin(origin)
    window = _Footprint(input, size, footprint, axes)
    number = operator.index(rank)
    number += window.voxels if number < 0 else 0
    if not 0 <= number < window.voxels:
        raise _core.ParameterError(f"rank: {rank} is not a rank among {window.voxels} voxels")
    return _rank(input, number, window, output, _border(input, mode, cval), options)


def percentile_filter(input: Any, percentile: float, size: Any = None, footprint: Any = None, output: Any = None,
                      mode: Any = "reflect", cval: float = 0.0, origin: Any = 0, *, axes: Any = None,
                      **options: Any) -> Any:
    """A percentile over a box: ``scipy.ndimage.percentile_filter``, with its rank; a negative one counts from 100."""
    _check_origin(origin)
    window = _Footprint(input, size, footprint, axes)
    wanted = float(percentile)
    wanted += 100.0 if wanted < 0.0 else 0.0
    if not 0.0 <= wanted <= 100.0:
        raise _core.ParameterError(f"percentile: {percentile} is not from -100 to 100")
    rank = window.voxels - 1 if wanted == 100.0 else int(float(window.voxels) * wanted / 100.0)
    return _rank(input, rank, window, output, _border(input, mode, cval), options)


def maximum_filter(input: Any, size: Any = None, footprint: Any = None, output: Any = None, mode: Any = "reflect",
                   cval: float = 0.0, origin: Any = 0, *, axes: Any = None, **options: Any) -> Any:
    """The maximum over a box or a footprint: ``scipy.ndimage.maximum_filter``.

    Parameters
    ----------
    input : array_like
    size : int or sequence of int, optional
        Odd, along each of the axes.
    footprint : array of bool, optional
        The voxels of the window, of odd extents; instead of size.
    output, mode, cval, origin, axes : as in `uniform_filter`
    """
    _check_origin(origin)
    window = _Footprint(input, size, footprint, axes)
    return _run(filters.Maximum(**window.flat(False), **_border(input, mode, cval)), input, output, options)


def minimum_filter(input: Any, size: Any = None, footprint: Any = None, output: Any = None, mode: Any = "reflect",
                   cval: float = 0.0, origin: Any = 0, *, axes: Any = None, **options: Any) -> Any:
    """The minimum over a box or a footprint: ``scipy.ndimage.minimum_filter``. Parameters as of `maximum_filter`."""
    _check_origin(origin)
    window = _Footprint(input, size, footprint, axes)
    return _run(filters.Minimum(**window.flat(False), **_border(input, mode, cval)), input, output, options)


def grey_erosion(input: Any, size: Any = None, footprint: Any = None, structure: Any = None, output: Any = None,
                 mode: Any = "reflect", cval: float = 0.0, origin: Any = 0, *, axes: Any = None, **options: Any) -> Any:
    """Flat erosion: ``scipy.ndimage.grey_erosion``. A structure of zeros is a footprint of its shape."""
    _check_origin(origin)
    window = _Footprint(input, size, footprint, axes, structure)
    return _run(filters.Minimum(**window.flat(False), **_border(input, mode, cval)), input, output, options)


def grey_dilation(input: Any, size: Any = None, footprint: Any = None, structure: Any = None, output: Any = None,
                  mode: Any = "reflect", cval: float = 0.0, origin: Any = 0, *, axes: Any = None,
                  **options: Any) -> Any:
    """Flat dilation, with the element reflected: ``scipy.ndimage.grey_dilation``."""
    _check_origin(origin)
    window = _Footprint(input, size, footprint, axes, structure)
    return _run(filters.Maximum(**window.flat(True), **_border(input, mode, cval)), input, output, options)


def grey_opening(input: Any, size: Any = None, footprint: Any = None, structure: Any = None, output: Any = None,
                 mode: Any = "reflect", cval: float = 0.0, origin: Any = 0, *, axes: Any = None, **options: Any) -> Any:
    """Erosion, then dilation, in one pass: ``scipy.ndimage.grey_opening``."""
    _check_origin(origin)
    window = _Footprint(input, size, footprint, axes, structure)
    return _run(filters.Opening(**window.flat(False), **_border(input, mode, cval)), input, output, options)


def grey_closing(input: Any, size: Any = None, footprint: Any = None, structure: Any = None, output: Any = None,
                 mode: Any = "reflect", cval: float = 0.0, origin: Any = 0, *, axes: Any = None, **options: Any) -> Any:
    """Dilation, then erosion, in one pass: ``scipy.ndimage.grey_closing``."""
    _check_origin(origin)
    window = _Footprint(input, size, footprint, axes, structure)
    # SciPy dilates with the reflected element first.
    return _run(filters.Closing(**window.flat(True), **_border(input, mode, cval)), input, output, options)


def _difference(input: Any, output: Any, larger: Any, smaller: Any, options: dict[str, Any]) -> Any:
    """Of two images in the memory of the result; a filter stands for its result of the input."""
    if is_on_device(input):
        check_dtype(dtype_of(input), False)
        first, second = (input if each is None else each(input, output=dtype_of(input), **options)
                         for each in (larger, smaller))
        if output is None:
            return first - second
        if not is_on_device(output):
            raise TypeError("output: of an image in a device's memory an array there, or None")
        output[...] = first - second
        return output
    opened = open_image(input)
    array = opened.array
    check_dtype(array.dtype, False)
    first, second = (each if each is None else each(array, output=array.dtype, **options) for each in (larger, smaller))
    target = output if isinstance(output, np.ndarray) else None
    result = np.subtract(array if first is None else first, array if second is None else second, out=target,
                         dtype=None if output is None or target is not None else np.dtype(output), casting="unsafe")
    return result if target is not None else opened.wrap(result)


def morphological_gradient(input: Any, size: Any = None, footprint: Any = None, structure: Any = None,
                           output: Any = None, mode: Any = "reflect", cval: float = 0.0, origin: Any = 0, *,
                           axes: Any = None, **options: Any) -> Any:
    """Dilation minus erosion: ``scipy.ndimage.morphological_gradient``. Signed integers wrap around, as SciPy's do;
    ``chunkwise.range`` gives them as real numbers."""
    _check_origin(origin)
    window = _Footprint(input, size, footprint, axes, structure)
    border = _border(input, mode, cval)
    if window.element is None and _dtype_of(input).kind in "uf" and output is None:
        return _run(filters.Range(**window.flat(False), **border), input, output, options)
    return _difference(input, output, filters.Maximum(**window.flat(True), **border),
                       filters.Minimum(**window.flat(False), **border), options)


def white_tophat(input: Any, size: Any = None, footprint: Any = None, structure: Any = None, output: Any = None,
                 mode: Any = "reflect", cval: float = 0.0, origin: Any = 0, *, axes: Any = None, **options: Any) -> Any:
    """The image minus its opening: ``scipy.ndimage.white_tophat``."""
    _check_origin(origin)
    window = _Footprint(input, size, footprint, axes, structure)
    return _difference(input, output, None, filters.Opening(**window.flat(False), **_border(input, mode, cval)), options)


def black_tophat(input: Any, size: Any = None, footprint: Any = None, structure: Any = None, output: Any = None,
                 mode: Any = "reflect", cval: float = 0.0, origin: Any = 0, *, axes: Any = None, **options: Any) -> Any:
    """The closing minus the image: ``scipy.ndimage.black_tophat``."""
    _check_origin(origin)
    window = _Footprint(input, size, footprint, axes, structure)
    return _difference(input, output, filters.Closing(**window.flat(True), **_border(input, mode, cval)), None, options)


def _linear(input: Any, weights: Any, output: Any, mode: Any, cval: Any, origin: Any, axes: Any, correlate: bool,
            options: dict[str, Any]) -> Any:
    _check_origin(origin)
    ndim = len(_shape_of(input))
    used = _axes(axes, ndim)
    kernel = np.asarray(weights, dtype=np.float64)
    if kernel.ndim != len(used):
        raise _core.ParameterError(f"weights: they have {kernel.ndim} dimensions, there should be {len(used)}")
    _check_order(used, "weights")
    if kernel.size == 0:
        raise _core.ParameterError("weights: there are none")
    along, _ = _window(used, _radii(kernel.shape, len(used)), ndim, "weights")
    whole = np.moveaxis(kernel.reshape(kernel.shape + (1,) * (ndim - kernel.ndim)), range(kernel.ndim), used)
    made = filters.Convolve(kernel=whole, correlate=correlate, axes=along, **_border(input, mode, cval))
    return _run(made, input, output, options)


def correlate(input: Any, weights: Any, output: Any = None, mode: Any = "reflect", cval: float = 0.0, origin: Any = 0,
              *, axes: Any = None, **options: Any) -> Any:
    """Correlation with weights of odd extents: ``scipy.ndimage.correlate``."""
    return _linear(input, weights, output, mode, cval, origin, axes, True, options)


def convolve(input: Any, weights: Any, output: Any = None, mode: Any = "reflect", cval: float = 0.0, origin: Any = 0,
             *, axes: Any = None, **options: Any) -> Any:
    """Convolution with weights of odd extents: ``scipy.ndimage.convolve``."""
    return _linear(input, weights, output, mode, cval, origin, axes, False, options)


def label(input: Any, structure: Any = None, output: Any = None, **options: Any) -> tuple[Any, int]:
    """Connected components, 1, 2, ... in raster order, and how many there are: ``scipy.ndimage.label``.

    Labels are int32, or of the type `output`; with an array as `output`, which then has the labels, only their number is
    returned. Objects are connected along up to three axes, the last ones; `structure` has an axis of three for each.
    """
    ndim = len(_shape_of(input))
    if ndim > 3:
        raise _core.ParameterError(f"input: it has {ndim} dimensions; objects are connected along three axes. chunkwise.label "
                                   "labels the volumes of an array one after the other, along the last three")
    given: dict[str, Any] = {}
    if structure is not None:
        neighbors = np.asarray(structure)
        if neighbors.shape != (3,) * ndim:
            raise _core.ParameterError(f"structure: its shape is {neighbors.shape}, it should be {(3,) * ndim}")
        neighbors = neighbors.astype(bool)
        if not np.array_equal(neighbors, np.flip(neighbors)):
            raise _core.ParameterError("structure: it is not symmetric about its center")
        given["structure"] = [int(each) for each in neighbors.ravel()]
    into = output if output is not None else np.int32
    labels = filters.Label(**given)(input, output=into, **options)
    count = int(labels.max()) if math.prod(_shape_of(input)) else 0
    return count if isinstance(output, np.ndarray) else (labels, count)  # type: ignore[return-value]


def distance_transform_edt(input: Any, sampling: Any = None, return_distances: bool = True, return_indices: bool = False,
                           distances: Any = None, indices: Any = None, **options: Any) -> Any:
    """The distance of each voxel to the nearest one that is 0: ``scipy.ndimage.distance_transform_edt``.

    Up to three dimensions. Two results differ from SciPy's. Of several nearest voxels `indices` has the first one in the
    array. Without any voxel of 0 distances are infinite and indices are -1; SciPy's results are meaningless then.
    """
    if not (return_distances or return_indices):
        raise RuntimeError("at least one of return_distances and return_indices must be True")
    shape = _shape_of(input) or (1,)
    if len(shape) > 3:
        raise _core.ParameterError(f"input: it has {len(shape)} dimensions; distances are taken along three axes. "
                                   "chunkwise.distance takes those in the volumes of an array, along the last three")
    if input is None or not hasattr(input, "shape"):
        input = np.asarray(input) if not hasattr(input, "GetSize") else input
    if isinstance(input, np.ndarray) and input.ndim == 0:
        input = np.atleast_1d(input)
    spacing = False if sampling is None else _per_axis(sampling, len(shape), "sampling")
    given: dict[str, tuple[Any, tuple[int, ...], Any]] = {
        "distances": (distances, shape, np.float64), "indices": (indices, (len(shape), *shape), np.int32)}
    wanted = {"distances": return_distances, "indices": return_indices}
    for name, (array, expected, dtype) in given.items():
        if array is not None and not wanted[name]:
            raise RuntimeError(f"{name}: an array for what is not returned")
        if array is not None and (not isinstance(array, np.ndarray) or array.shape != expected or array.dtype != dtype):
            raise RuntimeError(f"{name}: it must be an array of the shape {expected} and the type {np.dtype(dtype)}")
    results = []
    if return_distances:
        found = filters.Distance(spacing=spacing)(input, output=np.float64 if distances is None else distances, **options)
        if distances is None:
            results.append(found)
    if return_indices:
        near = np.asarray(filters.Nearest(features="background", spacing=spacing)(input, output=np.int64, **options))
        into = np.empty((len(shape), *shape), np.int32) if indices is None else indices
        if near.size:
            is_none = near < 0
            for axis, each in enumerate(np.unravel_index(np.where(is_none, 0, near), shape)):
                into[axis] = np.where(is_none, -1, each)
        if indices is None:
            results.append(into)
    return tuple(results) if len(results) > 1 else results[0] if results else None
