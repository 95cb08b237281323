# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Filters with the names, signatures, defaults and meanings of ``scipy.ndimage``.

``from chunkwise import ndimage as ndi`` is the whole switch. A function that is not here raises an AttributeError that says
which one to use instead. Four things differ, and on purpose:

* Real results become integers by rounding to the nearest, ties to even; bool is 0 and 1. SciPy truncates them, for separable
  filters after each axis, so that a mean of uint8 may be two too low. Sums of integers with whole weights, such as those of
  `sobel` and `laplace`, wrap around as NumPy's do.
* NaN has no rank: ranks are those of the voxels that are numbers.
* A constant beyond the edge, ``cval``, must be a value of the input's type: 1e300 is none of float32, which SciPy makes an
  infinity.
* Inputs may also be images of ITK, SimpleITK, xarray, torch or Dask. Lengths are in voxels here, whatever their spacing.

Windows may have any extent and an origin, and ``mode`` may be one for each axis where SciPy takes several. Ranks over windows
along more than three axes need an image in memory, and copy it with its extension beyond the edges.

Each function takes as further keywords what all filters take: backend, devices, memory, threads, progress and so on.

>>> import numpy as np
>>> from chunkwise import ndimage as ndi
>>> ndi.uniform_filter(np.arange(5.0), size=3)
array([0.33333333, 1.        , 2.        , 3.        , 3.66666667])
"""
from __future__ import annotations

import math
import operator
import warnings
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from . import _core, filters
from ._arrays import as_dtype, as_input, check_dtype, check_output, make_options, threads_of_cpu, warn
from ._containers import array_of, is_on_device, takes_device_arrays, to_device, to_host
from ._filter import NOTED, Filter, Kernel, finished, foreseen, known, then
from ._fourier import fourier_ellipsoid, fourier_gaussian, fourier_shift, fourier_uniform
from ._objects import (center_of_mass, extrema, find_objects, histogram, labeled_comprehension, maximum, maximum_position, mean, median,
                       minimum, minimum_position, standard_deviation, sum, sum_labels, value_indices, variance)
from ._quick import quick, typed
from ._splines import interpolate
from ._windows import (Side, ascending, axes_of, axis_of, box_steps, dtype_of, element_sides, extend, flat_steps, frozen, height_step,
                       in_groups, is_in_memory, modes_of, opened, per_axis, rank_of_neighbors, rank_step, run_steps, shape_of, side_of, sides_of,
                       weighted_step, whole_number)

__all__ = [
    "affine_transform", "binary_closing", "binary_dilation", "binary_erosion", "binary_fill_holes", "binary_hit_or_miss", "binary_opening",
    "binary_propagation", "black_tophat", "center_of_mass", "convolve", "convolve1d", "correlate", "correlate1d",
    "distance_transform_bf", "distance_transform_cdt", "distance_transform_edt", "extrema",
    "find_objects", "fourier_ellipsoid", "fourier_gaussian", "fourier_shift", "fourier_uniform", "gaussian_filter", "gaussian_filter1d", "gaussian_gradient_magnitude", "gaussian_laplace",
    "generate_binary_structure", "generic_filter", "generic_filter1d", "generic_gradient_magnitude", "generic_laplace",
    "geometric_transform", "grey_closing", "grey_dilation",
    "grey_erosion", "grey_opening", "histogram", "iterate_structure", "label", "labeled_comprehension", "laplace", "map_coordinates", "maximum", "maximum_filter",
    "maximum_filter1d", "maximum_position", "mean", "median", "median_filter", "minimum", "minimum_filter",
    "minimum_filter1d", "minimum_position", "morphological_gradient", "morphological_laplace", "percentile_filter",
    "prewitt", "rank_filter", "rotate", "shift", "sobel", "spline_filter",
    "spline_filter1d", "standard_deviation", "sum", "sum_labels", "uniform_filter", "uniform_filter1d",
    "value_indices", "variance", "vectorized_filter", "white_tophat", "zoom",
]

#: Names of SciPy that are not here, and what to use instead.
_INSTEAD = {
    "watershed_ift": "chunkwise.watershed, which takes markers and a mask",
}


def __getattr__(name: str) -> Any:
    raise AttributeError(f"chunkwise.ndimage has no {name}" + (f": {_INSTEAD[name]}" if name in _INSTEAD else ""))


# Linear filters

# Sums of more products are faster through transforms.
_MOST_DIRECT_WEIGHTS = 2500


class _Plan(NamedTuple):
    """Steps of a linear filter, and what becomes of their result where integers are wanted."""

    steps: tuple[Filter, ...]
    divisor: float = 1.0
    #: Steps of real results, which are rounded once at the end where integers are wanted.
    is_wide: bool = True
    #: Sums with whole weights, which wrap around as NumPy's do.
    wraps: bool = False


def _to_integers(real: Any, dtype: np.dtype[Any], wraps: bool, is_short: bool = False) -> Any:
    """The nearest integers, ties to even; of sums with whole weights what NumPy's arithmetic gives. `is_short`: they are sums of
    integers of up to 32 bits."""
    if not hasattr(real, "astype"):
        raise _core.ParameterError(f"output: real results of {type(real).__module__} cannot become {dtype} here; "
                                   "output=np.float32 gives them")
    if dtype.kind == "b":
        return real != 0 if wraps else real > 0.5
    real = np.rint(real)
    if wraps and is_short:
        return real.astype(np.int64).astype(dtype)
    limits = np.iinfo(dtype)
    if wraps:
        return np.where(real < 0, real.astype(np.int64).astype(dtype), real.astype(np.uint64).astype(dtype))
    # The largest integers of 64 bits are no real numbers.
    return np.where(real >= float(limits.max), dtype.type(limits.max), np.clip(real, limits.min, None).astype(dtype))


def _converted(values: Any, dtype: np.dtype[Any]) -> Any:
    """Voxels in another type: real ones become the nearest integers, integers wrap around as NumPy's do."""
    if dtype.kind in "iub" and dtype_of(values).kind == "f":
        return _to_integers(values, dtype, False)
    return values.astype(dtype, copy=False)


def _deliver(result: Any, output: Any) -> Any:
    if isinstance(output, np.ndarray):
        check_output(output, result.shape)[...] = _converted(result, output.dtype)
        return output
    if output is not None and is_on_device(output):
        output[...] = result
        return output
    return result


def _wanted(image: Any, output: Any) -> np.dtype[Any]:
    """The type of a result; SciPy's is the input's."""
    if output is None:
        dtype = dtype_of(image)
        return np.dtype(np.float32) if dtype == np.float16 else dtype.newbyteorder("=")
    return dtype_of(output) if isinstance(output, np.ndarray) or is_on_device(output) else as_dtype(output)


def _of_voxels(run: Callable[[Any], Any], image: Any, output: Any) -> Any:
    """run(output), whose results are voxels of the image. Integers of another type than the image's are made of results of that
    type."""
    own, dtype = _wanted(image, None), _wanted(image, output)
    if dtype.kind == "f" or dtype.newbyteorder("=") == own:
        return run(own if output is None else output)
    return _deliver(then(run(own), lambda voxels: _converted(voxels, dtype)), output)


def _constant(cval: Any, dtype: np.dtype[Any]) -> Any:
    if isinstance(cval, float) and cval.is_integer() and dtype.kind in "iub":
        return int(cval)
    return cval


def _run_plan(plan: _Plan, image: Any, output: Any, options: dict[str, Any]) -> Any:
    dtype = _wanted(image, output)
    if dtype == np.float64 and is_in_memory(image) and image.dtype == np.float32:
        # The engine computes in the precision of what it reads.
        image = image.astype(np.float64)
    if dtype.kind in "iub" and (plan.is_wide or dtype.newbyteorder("=") != _wanted(image, None)):
        real = run_steps(plan.steps, image, np.dtype(np.float64), options)
        scaled = then(real, lambda sums: sums / plan.divisor) if plan.divisor != 1.0 else real
        is_short = dtype_of(image).kind in "iub" and dtype_of(image).itemsize <= 4
        return _deliver(then(scaled, lambda values: _to_integers(values, dtype, plan.wraps, is_short)), output)
    return run_steps(plan.steps, image, dtype if output is None else output, options)


def _combined(plans: Sequence[_Plan], squares: bool, image: Any, output: Any, options: dict[str, Any]) -> Any:
    """The sum of the plans' results, or the root of the sum of their squares."""
    dtype = _wanted(image, output)
    kind = dtype if dtype.kind == "f" else np.dtype(np.float64)
    total: Any = None
    for plan in plans:
        term = run_steps(plan.steps, image, kind, options)
        term = term * term if squares else term
        total = term if total is None else total + term
    total = total ** 0.5 if squares else total
    if dtype.kind in "iub":
        total = _to_integers(total, dtype, plans[0].wraps)
    return _deliver(total, output)


def _complex_type(image_dtype: np.dtype[Any], output: Any) -> np.dtype[Any]:
    if output is None:
        return np.promote_types(image_dtype, np.complex64)
    dtype = output.dtype if isinstance(output, np.ndarray) else np.dtype(output)
    if dtype.kind != "c" and (isinstance(output, np.ndarray) or isinstance(output, str)):
        raise _core.ParameterError(f"output: it is {dtype}, the result is complex")
    return dtype if dtype.kind == "c" else np.promote_types(dtype, np.complex64)


def _linear(run: Callable[[Any, Any, Any], Any], input: Any, output: Any, cval: Any) -> Any:
    """Runs a linear filter, run(image, output, cval); of complex images on the real and on the imaginary part."""
    image, wrap = opened(input)
    dtype = dtype_of(image)
    if dtype.kind != "c":
        if isinstance(cval, complex):
            raise _core.ParameterError(f"cval: {cval} of a real image")
        result = run(image, output, _constant(cval, dtype))
    else:
        if not is_in_memory(image):
            raise _core.ParameterError(f"input: {dtype} is possible for arrays in memory; its real and imaginary part can be "
                                       "filtered one after the other")
        kind = _complex_type(dtype, output)
        part = np.dtype(np.float32 if kind == np.complex64 else np.float64)
        real = run(image.real, part, float(np.real(cval)))
        result = np.empty(real.shape, kind)
        result.real = real
        result.imag = run(image.imag, part, float(np.imag(cval)))
        result = _deliver(result, output)
    return result if output is not None and result is output else wrap(result)


@lru_cache(256)
def _uniform(ndim: int, is_integer: bool, cval: Any, size: Any, mode: Any, origin: Any, axes: Any) -> _Plan:
    used = axes_of(axes, ndim)
    sides = [side for side in sides_of(used, per_axis(size, len(used), "size"), origin, mode, "size") if side.before or side.after]
    sides = sides or [Side(ndim - 1, 0, 0, "reflect")]
    if len(in_groups(sides)) == 1:
        return _Plan(tuple(box_steps(filters.Mean, sides, cval)), is_wide=False)
    if is_integer:
        # Sums are exact, so that ties are.
        extents = [side.before + side.after + 1 for side in sides]
        # The constant beyond the edge is a sum, too, after the first axis.
        return _Plan(tuple(weighted_step(np.ones(extent), [side], ndim, cval * math.prod(extents[:number]))
                           for number, (extent, side) in enumerate(zip(extents, sides))), float(math.prod(extents)))
    return _Plan(tuple(box_steps(filters.Mean, sides, cval)))


@quick
def uniform_filter(input: Any, size: Any = 3, output: Any = None, mode: Any = "reflect", cval: float = 0.0,
                   origin: Any = 0, *, axes: Any = None, **options: Any) -> Any:
    """The mean over a box: ``scipy.ndimage.uniform_filter``.

    Parameters
    ----------
    input : array_like
    size : int or sequence of int
        Along each of the axes.
    output : array or dtype, optional
    mode : {'reflect', 'constant', 'nearest', 'mirror', 'wrap', 'grid-mirror', 'grid-constant', 'grid-wrap'}, or a sequence
        One for all axes, or one for each.
    cval : scalar
        The value beyond the edge with mode constant.
    origin : int or sequence of int
        Shifts the window, towards lower indices where it is positive.
    axes : int or tuple of int, optional
        All.
    """
    given = frozen((size, mode, origin, axes))

    def run(image: Any, output: Any, cval: Any) -> Any:
        plan = _uniform(len(shape_of(image)), _wanted(image, output).kind in "iub", cval, *given)
        return _run_plan(plan, image, output, options)

    return _linear(run, input, output, cval)


@quick
def uniform_filter1d(input: Any, size: int, axis: int = -1, output: Any = None, mode: str = "reflect", cval: float = 0.0,
                     origin: int = 0, **options: Any) -> Any:
    """The mean over a window along one axis: ``scipy.ndimage.uniform_filter1d``. Parameters as of `uniform_filter`."""
    return _along(input, axis, output, lambda image, axes: uniform_filter(image, size, output, mode, cval, origin, axes=axes, **options))


def _along(input: Any, axis: Any, output: Any, run: Callable[[Any, tuple[int, ...]], Any]) -> Any:
    """run(image, axes), the other axes joined where voxels lie in their order: few long rows take less time than many."""
    along = axis_of(axis, len(shape_of(input)))
    if (type(input) is not np.ndarray or isinstance(output, np.ndarray) or input.ndim < 3 or input.size == 0 or
            along not in (0, input.ndim - 1) or not input.flags.c_contiguous):
        return run(input, (along,))
    shape = input.shape
    joined = (shape[0], -1) if along == 0 else (-1, shape[-1])
    lines = then(input, lambda image: image.reshape(joined))
    return then(run(lines, (min(along, 1),)), lambda result: result.reshape(shape))


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


#: Derivatives of the engine end where a weight is not 0, and their sigma is at least so many voxels.
_MOST_SIGMAS = 38
_LEAST_SIGMA = 0.06
#: From these radii on derivatives along one axis after the other, with a Gaussian along the other axes, are faster than one run for all;
#: gradients, which share sums, from a larger one.
_LEAST_APART, _LEAST_APART_OF_GRADIENTS = 8, 20


def _gaussian_side(axis: int, sigma: Any, radius: Any, mode: str, truncate: float) -> tuple[Side, float] | None:
    """The window along an axis, as SciPy chooses it; none where nothing is smoothed."""
    width = float(sigma)
    if not (width >= 0 and math.isfinite(width)):
        raise _core.ParameterError(f"sigma: {width} is not a finite number of at least 0")
    if width <= 1e-15:
        return None
    reach = int(truncate * width + 0.5) if radius is None else whole_number(radius, "radius", 0)
    # Weights beyond are 0.
    reach = min(reach, int(_MOST_SIGMAS * width))
    return Side(axis, reach, reach, mode), width


@lru_cache(256)
def _gaussian(ndim: int, cval: Any, sigma: Any, order: Any, mode: Any, truncate: float, radius: Any, axes: Any) -> _Plan:
    used = axes_of(axes, ndim)
    given = [per_axis(value, len(used), name) for value, name in ((sigma, "sigma"), (radius, "radius"), (order, "order"))]
    orders = [whole_number(each, "order", 0) for each in given[2]]
    # A constant beyond the edge is that of the result so far, so that derivatives depend on the order of the axes, SciPy's.
    in_order = any(orders) and cval != 0
    windows: dict[Side, tuple[float, int]] = {}
    steps: list[Filter] = []
    for axis, width, reach, derivative, each in zip(used, *given[:2], orders, modes_of(mode, len(used))):
        found = _gaussian_side(axis, width, reach, each, truncate)
        if found is None:
            continue
        side, width = found
        if in_order or derivative > 3 or 2 * side.before < derivative or (derivative and width < _LEAST_SIGMA):
            steps.append(weighted_step(_kernel1d(width, derivative, side.before), [side], ndim, cval))
        else:
            windows[side] = width, derivative
    smooth = []
    groups = in_groups(windows)
    if any(derivative and side.before >= _LEAST_APART for side, (_, derivative) in windows.items()):
        # Differences come first, whose numbers are smaller.
        groups = [[side] for side in windows if windows[side][1]] + in_groups(side for side in windows if not windows[side][1])
    for group in groups:
        def made(radii: tuple[int, ...], group: list[Side] = group, **given: Any) -> Any:
            widths, order = zip(*(windows[side] for side in group))
            if any(order):
                return filters.Derivative(order, sigma=widths, kernel="sampled", kernel_radius=radii, spacing=False, **given)
            return filters.Gaussian(widths, kernel_radius=radii, spacing=False, **given)

        smooth += box_steps(made, group, cval)
    steps = smooth + steps
    return _Plan(tuple(steps or [filters.Identity()]), is_wide=len(steps) > 1 or any(orders))


@quick
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
        Order of the derivative along each axis.
    output : array or dtype, optional
        Derivatives have a sign, so they need a signed or a real type.
    mode, cval : as in `uniform_filter`
    truncate : float
        Radius of the kernel in sigmas; it is ``int(truncate * sigma + 0.5)`` voxels.
    radius : int or sequence of int, optional
        Radius of the kernel in voxels.
    axes : int or tuple of int, optional
        All.
    """
    given = frozen((sigma, order, mode, truncate, radius, axes))

    def run(image: Any, output: Any, cval: Any) -> Any:
        plan = _gaussian(len(shape_of(image)), cval, *given)
        if np.any(order):
            _check_signed(_wanted(image, output), "derivatives")
        return _run_plan(plan, image, output, options)

    return _linear(run, input, output, cval)


def _check_signed(dtype: np.dtype[Any], what: str) -> None:
    if dtype.kind in "ub":
        raise _core.ParameterError(f"output: {what} have a sign, which {dtype} has not; output=np.float32 gives them")


@quick
def gaussian_filter1d(input: Any, sigma: float, axis: int = -1, order: int = 0, output: Any = None, mode: str = "reflect",
                      cval: float = 0.0, truncate: float = 4.0, *, radius: Any = None, **options: Any) -> Any:
    """A Gaussian or its derivative along one axis: ``scipy.ndimage.gaussian_filter1d``. Parameters as of `gaussian_filter`."""
    return _along(input, axis, output, lambda image, axes: gaussian_filter(image, sigma, order, output, mode, cval, truncate, radius=radius,
                                                                           axes=axes, **options))


def _gaussian_terms(ndim: int, cval: Any, smooths_others: bool, sigma: Any, order: int, mode: Any, given: tuple[Any, ...],
                    axes: Any) -> list[_Plan]:
    """A plan for each of the axes: the derivative along it, of the image smoothed along all."""
    used = axes_of(axes, ndim)
    modes = per_axis(mode, len(used), "mode")
    sigmas = per_axis(sigma, ndim if smooths_others else len(used), "sigma")
    if not smooths_others:
        whole = [0.0] * ndim
        for axis, width in zip(used, sigmas):
            whole[axis] = width
        sigmas = tuple(whole)
    # SciPy has one mode at a time for all axes, that of the derivative.
    return [_gaussian(ndim, cval, sigmas, tuple(order if axis == along else 0 for axis in range(ndim)), each, *given, None)
            for along, each in zip(used, modes)]


def _gradient_step(ndim: int, in_memory: bool, cval: Any, sigma: Any, order: int, mode: Any, given: tuple[Any, ...],
                   axes: Any) -> Filter | None:
    """All derivatives of a gradient in one pass, where the engine has it: along all axes, three at most, of one mode."""
    modes = set(modes_of(mode, ndim)) if axes_of(axes, ndim) == tuple(range(ndim)) else ()
    if not 1 <= ndim <= 3 or len(modes) != 1 or (modes == {"constant"} and cval != 0):
        return None
    truncate, radius = given
    sides = [_gaussian_side(axis, width, reach, modes_of(mode, ndim)[axis], truncate)
             for axis, width, reach in zip(range(ndim), per_axis(sigma, ndim, "sigma"), per_axis(radius, ndim, "radius"))]
    found = [side for side in sides if side is not None and side[0].before > 0]
    if len(found) < ndim or (in_memory and max(side.before for side, _ in found) >= _LEAST_APART_OF_GRADIENTS):
        return None
    return box_steps(lambda radii, **border: filters.Gradient(tuple(width for _, width in found), kernel="sampled",
                                                              kernel_radius=radii, spacing=False, **border),
                     [side for side, _ in found], cval)[0]


@typed
def gaussian_laplace(input: Any, sigma: Any, output: Any = None, mode: Any = "reflect", cval: float = 0.0, *,
                     axes: Any = None, truncate: float = 4.0, radius: Any = None, **options: Any) -> Any:
    """The sum of second derivatives of Gaussians: ``scipy.ndimage.gaussian_laplace``.

    ``chunkwise.log`` is exact for polynomials of degree 2; its weights differ from SciPy's.
    """
    given = frozen((sigma, 2, mode, (truncate, radius), axes))

    def run(image: Any, output: Any, cval: Any) -> Any:
        _check_signed(_wanted(image, output), "second derivatives")
        return _combined(_gaussian_terms(len(shape_of(image)), cval, False, *given), False, image, output, options)

    return _linear(run, input, output, cval)


@typed
def gaussian_gradient_magnitude(input: Any, sigma: Any, output: Any = None, mode: Any = "reflect", cval: float = 0.0, *,
                                axes: Any = None, truncate: float = 4.0, radius: Any = None, **options: Any) -> Any:
    """The length of the gradient of Gaussians: ``scipy.ndimage.gaussian_gradient_magnitude``."""
    given = frozen((sigma, 1, mode, (truncate, radius), axes))

    def run(image: Any, output: Any, cval: Any) -> Any:
        ndim = len(shape_of(image))
        step = _gradient_step(ndim, is_in_memory(image), cval, *given)
        if step is None:
            return _combined(_gaussian_terms(ndim, cval, True, *given), True, image, output, options)
        return _run_plan(_Plan((step,), is_wide=True), image, output, options)

    _check_real(input)
    return _linear(run, input, output, cval)


def _check_real(input: Any) -> None:
    dtype = dtype_of(input)
    if dtype.kind == "c":
        raise TypeError(f"input: {dtype} has no order; abs, or real and imaginary part, can be filtered")


@lru_cache(256)
def _lines(ndim: int, cval: Any, weights: tuple[tuple[int, tuple[float, ...]], ...], mode: Any, is_exact: bool) -> _Plan:
    """Whole weights along one axis after the other; the modes are those of all axes. Passes are joined where that is the same:
    the first one is not joined with others where sums are rounded, so that differences of equal voxels are 0."""
    modes = modes_of(mode, ndim)
    groups = [[each] for each in weights]
    if len(weights) <= 3 and len({modes[axis] for axis, _ in weights}) == 1 and (modes[0] != "constant" or cval == 0):
        groups = [list(weights)] if is_exact else [[weights[0]], list(weights[1:])]
    steps = []
    for group in groups:
        whole = np.ones(())
        for _, each in sorted(group):
            whole = np.multiply.outer(whole, np.array(each))
        if group:
            steps.append(weighted_step(whole, [side_of(axis, len(each), 0, modes[axis]) for axis, each in sorted(group)], ndim, cval))
    return _Plan(tuple(steps), wraps=True)


def _differences(input: Any, axis: Any, across: tuple[float, ...], output: Any, mode: Any, cval: float,
                 options: dict[str, Any]) -> Any:
    def run(image: Any, output: Any, cval: Any) -> Any:
        ndim = len(shape_of(image))
        along = axis_of(axis, ndim)
        others = tuple((each, across) for each in range(ndim) if each != along)
        is_exact = dtype_of(image).kind in "iub" and dtype_of(image).itemsize <= 4
        return _run_plan(_lines(ndim, cval, ((along, (-1.0, 0.0, 1.0)), *others), frozen(mode), is_exact), image, output, options)

    return _linear(run, input, output, cval)


@quick
def sobel(input: Any, axis: int = -1, output: Any = None, mode: Any = "reflect", cval: float = 0.0, **options: Any) -> Any:
    """The difference along an axis, smoothed by 1, 2, 1 along the others: ``scipy.ndimage.sobel``. Integers wrap around, so
    an unsigned image needs ``output=np.float32`` or a signed type."""
    return _differences(input, axis, (1.0, 2.0, 1.0), output, mode, cval, options)


@quick
def prewitt(input: Any, axis: int = -1, output: Any = None, mode: Any = "reflect", cval: float = 0.0, **options: Any) -> Any:
    """The difference along an axis, smoothed by 1, 1, 1 along the others: ``scipy.ndimage.prewitt``. Integers wrap around, so
    an unsigned image needs ``output=np.float32`` or a signed type."""
    return _differences(input, axis, (1.0, 1.0, 1.0), output, mode, cval, options)


@lru_cache(256)
def _cross(ndim: int, cval: Any, mode: str, axes: tuple[int, ...]) -> _Plan:
    """The sum of second differences along up to three axes, in one pass."""
    weights = np.zeros((3,) * len(axes))
    for axis in range(len(axes)):
        line: list[Any] = [1] * len(axes)
        line[axis] = slice(None)
        weights[tuple(line)] += (1.0, -2.0, 1.0)
    return _Plan((weighted_step(weights, [Side(axis, 1, 1, mode) for axis in axes], ndim, cval),), wraps=True)


@quick
def laplace(input: Any, output: Any = None, mode: Any = "reflect", cval: float = 0.0, *, axes: Any = None,
            **options: Any) -> Any:
    """The sum of the second differences 1, -2, 1: ``scipy.ndimage.laplace``. Integers wrap around, so an unsigned image
    needs ``output=np.float32`` or a signed type."""
    given = frozen((mode, axes))

    def run(image: Any, output: Any, cval: Any) -> Any:
        ndim = len(shape_of(image))
        used = axes_of(given[1], ndim)
        if not used:
            return _run_plan(_Plan((filters.Identity(),)), image, output, options)
        first, *others = modes_of(given[0], len(used))
        if all(each == first for each in others) and len(used) <= 3:
            return _run_plan(_cross(ndim, cval, first, tuple(sorted(used))), image, output, options)
        plans = []
        for axis, each in zip(used, modes_of(given[0], len(used))):
            modes = tuple(each for _ in range(ndim))
            plans.append(_lines(ndim, cval, ((axis, (1.0, -2.0, 1.0)),), modes, False))
        return _combined(plans, False, image, output, options)

    return _linear(run, input, output, cval)


def _generic(input: Any, derivative: Callable[..., Any], squares: bool, output: Any, mode: Any, cval: float, arguments: Any,
             keywords: Any, axes: Any) -> Any:
    image = np.asarray(input)
    used = axes_of(axes, image.ndim)
    total = np.array(image, dtype=_wanted(image, output))
    for number, (axis, each) in enumerate(zip(used, per_axis(mode, len(used), "mode"))):
        term = derivative(image, axis, total.dtype, each, cval, *arguments, **(keywords or {}))
        term = term * term if squares else term
        total = term if number == 0 else total + term
    if squares and used:
        total = np.sqrt(total).astype(total.dtype, copy=False)
    return _deliver(total, output)


def _results(result: np.ndarray[Any, Any], image: Any, output: Any) -> Any:
    dtype = _wanted(image, output)
    return _deliver(_to_integers(result, dtype, False) if dtype.kind in "iub" else result.astype(dtype, copy=False), output)


def generic_filter(input: Any, function: Callable[..., float], size: Any = None, footprint: Any = None, output: Any = None,
                   mode: Any = "reflect", cval: float = 0.0, origin: Any = 0, extra_arguments: Any = (), extra_keywords: Any = None, *,
                   axes: Any = None) -> Any:
    """``function(voxels, ...)`` of the voxels of each window, an array of real numbers: ``scipy.ndimage.generic_filter``.

    `function` is called for each voxel, on one core, of an array in memory. Windows as of `maximum_filter`.
    """
    image = np.asarray(input)
    _check_real(image)
    window = _window(image.ndim, *_key(size, footprint, mode, origin, axes))
    extents = [1] * image.ndim
    for side in window.sides:
        extents[side.axis] = side.before + side.after + 1
    windows = sliding_window_view(extend(image.astype(np.float64), window.sides, cval), extents) if image.size else image
    element: Any = ... if window.element is None else window.element.reshape(extents)
    result = np.empty(image.shape)
    for index in np.ndindex(image.shape):
        result[index] = function(windows[index][element].ravel(), *extra_arguments, **(extra_keywords or {}))
    return _results(result, image, output)


def vectorized_filter(input: Any, function: Callable[..., Any], *, size: Any = None, footprint: Any = None, output: Any = None,
                      mode: str = "reflect", cval: Any = None, origin: Any = None, axes: Any = None,
                      batch_memory: float = 2**30) -> Any:
    """``function(windows, axis=...)`` of many windows at a time, which lie along these axes of an array:
    ``scipy.ndimage.vectorized_filter``.

    It runs on one core, over an array in memory, in parts of `batch_memory` bytes of windows. With a `footprint`, `axis` is the last
    one, along which its voxels lie. `mode` may also be ``valid``: then there are results where windows end inside the image.
    """
    image = np.asarray(input)
    if not callable(function):
        raise _core.ParameterError(f"function: {function!r} cannot be called")
    if (size is None) == (footprint is None):
        raise _core.ParameterError("size and footprint: one of them says which voxels a window has, not both")
    element = None if footprint is None else np.asarray(footprint, bool)
    used = tuple(range(image.ndim)) if axes is None else axes_of(axes, image.ndim)
    extents = per_axis(size, len(used), "size") if element is None else element.shape
    if len(extents) != len(used):
        raise _core.ParameterError(f"footprint: it has {len(extents)} dimensions, there should be {len(used)}")
    if mode == "valid" and origin is not None and np.any(origin):
        raise _core.ParameterError(f"origin: {origin} with the mode valid")
    if cval is not None and mode not in ("constant", "grid-constant"):
        raise _core.ParameterError(f"cval: {cval} with the mode {mode}; a constant needs the mode constant")
    if np.ndim(batch_memory) != 0 or not batch_memory > 0:
        raise _core.ParameterError(f"batch_memory: {batch_memory} is not a number above 0")
    whole = [whole_number(extent, "size", 1) for extent in extents]
    if image.size == 0:
        return image
    if image.ndim == 0:
        return np.asarray(function(image, axis=()) if element is None else function(image[element][..., element], axis=-1))
    if mode != "valid":
        image = extend(image, sides_of(used, whole, 0 if origin is None else origin, mode, "size"), 0 if cval is None else cval)
    windows = np.moveaxis(image, used, range(-len(used), 0))
    windows = sliding_window_view(windows, whole, tuple(range(-len(used), 0)))
    return _in_batches(windows, function, element, used, output, batch_memory)


def _in_batches(windows: np.ndarray[Any, Any], function: Callable[..., Any], element: np.ndarray[Any, Any] | None, used: tuple[int, ...],
                output: Any, memory: float) -> Any:
    last = tuple(range(-len(used), 0))
    shape = windows.shape[:windows.ndim - len(used)]
    into = None
    if output is not None:
        into = np.moveaxis(check_output(output, np.moveaxis(np.empty(shape, bool), last, used).shape), used, last)
    rows = int(min(len(windows), memory // (math.prod(windows.shape[1:]) * windows.itemsize)))
    if rows < 1:
        raise _core.ParameterError(f"batch_memory: {memory} bytes; windows beside each other along the other axes have "
                                   f"{math.prod(windows.shape[1:]) * windows.itemsize}")
    for begin in range(0, len(windows), rows):
        part = windows[begin:begin + rows]
        found = function(part, axis=last) if element is None else function(part[..., element], axis=-1)
        if into is None:
            into = np.empty(shape, found.dtype)
        into[begin:begin + rows] = found
    assert into is not None
    return output if output is not None else np.moveaxis(into, last, used)


def generic_filter1d(input: Any, function: Callable[..., Any], filter_size: int, axis: int = -1, output: Any = None,
                     mode: str = "reflect", cval: float = 0.0, origin: int = 0, extra_arguments: Any = (),
                     extra_keywords: Any = None) -> Any:
    """``function(line, result, ...)`` of each line along an axis, extended by the window, and of what it fills:
    ``scipy.ndimage.generic_filter1d``."""
    image = np.asarray(input)
    _check_real(image)
    along = axis_of(axis, image.ndim)
    (side,) = sides_of((along,), (filter_size,), origin, mode, "filter_size")
    result = np.empty(image.shape)
    lines = np.moveaxis(extend(image.astype(np.float64), (side,), cval) if image.size else image, along, -1)
    into = np.moveaxis(result, along, -1)
    for index in np.ndindex(into.shape[:-1]):
        function(lines[index].copy(), into[index], *extra_arguments, **(extra_keywords or {}))
    return _results(result, image, output)


def generic_laplace(input: Any, derivative2: Callable[..., Any], output: Any = None, mode: Any = "reflect", cval: float = 0.0,
                    extra_arguments: Any = (), extra_keywords: Any = None, *, axes: Any = None) -> Any:
    """The sum over the axes of ``derivative2(input, axis, output, mode, cval, ...)``: ``scipy.ndimage.generic_laplace``."""
    return _generic(input, derivative2, False, output, mode, cval, extra_arguments, extra_keywords, axes)


def generic_gradient_magnitude(input: Any, derivative: Callable[..., Any], output: Any = None, mode: Any = "reflect",
                               cval: float = 0.0, extra_arguments: Any = (), extra_keywords: Any = None, *,
                               axes: Any = None) -> Any:
    """The root of the sum over the axes of the squares of ``derivative(input, axis, output, mode, cval, ...)``:
    ``scipy.ndimage.generic_gradient_magnitude``."""
    return _generic(input, derivative, True, output, mode, cval, extra_arguments, extra_keywords, axes)


@lru_cache(256)
def _weighted(ndim: int, is_real: bool, cval: Any, weights: Kernel, mode: Any, origin: Any, axes: Any,
              convolves: bool) -> tuple[Filter, ...]:
    array = weights.array
    sides = element_sides(array, axes_of(axes, ndim), ndim, origin, mode, "weights")
    if convolves:
        array, sides = np.flip(array), tuple(side.reflected() for side in sides)
    return (weighted_step(array, sides, ndim, cval, is_real and array.size > _MOST_DIRECT_WEIGHTS),)


def _weigh(input: Any, weights: Any, output: Any, mode: Any, cval: Any, origin: Any, axes: Any, convolves: bool,
           options: dict[str, Any]) -> Any:
    weights = array_of(weights)
    if weights.size == 0:
        raise _core.ParameterError("weights: there are none")
    if weights.dtype.kind == "c":
        return _weigh_complex(input, weights, output, mode, cval, origin, axes, convolves, options)
    kernel, given = Kernel(weights), frozen((mode, origin, axes))

    def run(image: Any, output: Any, cval: Any) -> Any:
        wanted = _wanted(image, output)
        steps = _weighted(len(shape_of(image)), wanted.kind == "f", cval, kernel, *given, convolves)
        # The engine rounds to the image's own type.
        return _run_plan(_Plan(steps, is_wide=wanted != dtype_of(image)), image, output, options)

    return _linear(run, input, output, cval)


def _weigh_complex(input: Any, weights: np.ndarray[Any, Any], output: Any, mode: Any, cval: Any, origin: Any, axes: Any,
                   convolves: bool, options: dict[str, Any]) -> Any:
    """With complex weights; a correlation takes their conjugates, as NumPy's does."""
    image, wrap = opened(input)
    if not is_in_memory(image):
        raise _core.ParameterError("weights: complex ones are possible for arrays in memory")
    if image.dtype.kind != "c" and isinstance(cval, complex):
        raise _core.ParameterError(f"cval: {cval} of a real image")
    kind = _complex_type(image.dtype, output)
    part = np.dtype(np.float32 if kind == np.complex64 else np.float64)
    weights = weights if convolves else weights.conj()
    # With the imaginary unit outside, real weights do for a complex image.
    whole = np.complex64 if part == np.float32 else np.complex128
    given = (mode, cval, origin, axes, convolves, options)
    if image.dtype.kind != "c":
        result = np.empty(image.shape, kind)
        result.real = _weigh(image, weights.real, part, *given)
        result.imag = _weigh(image, weights.imag, part, *given)
    else:
        result = (_weigh(image, weights.real, whole, *given) + 1j * _weigh(image, weights.imag, whole, *given)).astype(kind)
    result = _deliver(result, output)
    return result if output is not None and result is output else wrap(result)


@quick
def correlate(input: Any, weights: Any, output: Any = None, mode: Any = "reflect", cval: float = 0.0, origin: Any = 0,
              *, axes: Any = None, **options: Any) -> Any:
    """Correlation: ``scipy.ndimage.correlate``. The weights' axes are the image's in ascending order; along up to three of
    them they may have more than one number. Other parameters as of `uniform_filter`, with one mode."""
    return _weigh(input, weights, output, mode, cval, origin, axes, False, options)


@quick
def convolve(input: Any, weights: Any, output: Any = None, mode: Any = "reflect", cval: float = 0.0, origin: Any = 0,
             *, axes: Any = None, **options: Any) -> Any:
    """Convolution: ``scipy.ndimage.convolve``. Parameters as of `correlate`."""
    return _weigh(input, weights, output, mode, cval, origin, axes, True, options)


def _weights1d(weights: Any) -> Any:
    weights = array_of(weights)
    if weights.ndim != 1 or weights.size == 0:
        raise _core.ParameterError(f"weights: their shape is {weights.shape}; it should be one row of at least one number")
    return weights


@quick
def correlate1d(input: Any, weights: Any, axis: int = -1, output: Any = None, mode: str = "reflect", cval: float = 0.0,
                origin: int = 0, **options: Any) -> Any:
    """Correlation along one axis: ``scipy.ndimage.correlate1d``."""
    line = _weights1d(weights)
    return _along(input, axis, output, lambda image, axes: _weigh(image, line, output, mode, cval, origin, axes, False, options))


@quick
def convolve1d(input: Any, weights: Any, axis: int = -1, output: Any = None, mode: str = "reflect", cval: float = 0.0,
               origin: int = 0, **options: Any) -> Any:
    """Convolution along one axis: ``scipy.ndimage.convolve1d``."""
    line = _weights1d(weights)
    return _along(input, axis, output, lambda image, axes: _weigh(image, line, output, mode, cval, origin, axes, True, options))


# Ranks and flat morphology


class _Window(NamedTuple):
    """A box (no element), or the voxels of an element."""

    element: Any
    sides: tuple[Side, ...]

    @property
    def voxels(self) -> int:
        if self.element is not None:
            return int(np.count_nonzero(self.element))
        return math.prod(side.before + side.after + 1 for side in self.sides)

    def reflected(self) -> _Window:
        element = None if self.element is None else np.flip(self.element)
        return _Window(element, tuple(side.reflected() for side in self.sides))


def _window(ndim: int, size: Any, footprint: Any, mode: Any, origin: Any, axes: Any) -> _Window:
    used = axes_of(axes, ndim)
    if footprint is None:
        if size is None:
            raise _core.ParameterError("size: neither it nor footprint is set")
        return _Window(None, sides_of(used, per_axis(size, len(used), "size"), origin, mode, "size"))
    element = footprint.array != 0
    if element.all() and not isinstance(mode, str) or element.ndim == len(used) and element.all():
        # As SciPy, which takes the extents of a footprint of ones in the order of the axes.
        return _window(ndim, element.shape, None, mode, origin, axes)
    sides = element_sides(element, used, ndim, origin, mode, "footprint")
    if not element.any():
        raise _core.ParameterError("footprint: it has no voxels")
    return _Window(element, sides)


def _key(size: Any, footprint: Any, mode: Any, origin: Any, axes: Any) -> tuple[Any, ...]:
    if footprint is not None:
        if size is not None:
            warnings.warn("size: it has no effect, because footprint is set", UserWarning, stacklevel=5)
            if NOTED.runs is not None:
                # Every call warns.
                NOTED.runs.append((None, None, None))
            size = None
        footprint = Kernel(np.asarray(footprint) != 0)
    return (frozen(size), footprint, *frozen((mode, origin, axes)))


@lru_cache(256)
def _flat(made: str, ndim: int, cval: Any, *key: Any) -> tuple[Filter, ...]:
    """The steps of an extremum, or of an opening or closing; of a range none where it takes more than one run. SciPy dilates with the reflected window."""
    window = _window(ndim, *key)
    is_centered = all(side.is_centered for side in window.sides)
    one = len(in_groups(side for side in window.sides if side.before or side.after)) <= 1
    if made == "Range":
        simple = is_centered and one and window.element is None
        return tuple(flat_steps(filters.Range, None, window.sides, ndim, cval)) if simple else ()
    if made in ("Opening", "Closing"):
        if is_centered and one:
            window = window if made == "Opening" else window.reflected()
            return tuple(flat_steps(getattr(filters, made), window.element, window.sides, ndim, cval))
        erosion, dilation = _flat("Minimum", ndim, cval, *key), _flat("Dilation", ndim, cval, *key)
        return erosion + dilation if made == "Opening" else dilation + erosion
    if made == "Dilation":
        made, window = "Maximum", window.reflected()
    return tuple(flat_steps(getattr(filters, made), window.element, window.sides, ndim, cval))


def _extremum(made: str, input: Any, output: Any, cval: Any, key: tuple[Any, ...], options: dict[str, Any]) -> Any:
    image, wrap = opened(input)
    dtype = dtype_of(image)
    _check_real(image)
    steps = _flat(made, len(shape_of(image)), _constant(cval, dtype), *key)
    result = _of_voxels(lambda into: run_steps(steps, image, into, options), image, output)
    return result if output is not None and result is output else wrap(result)


@quick
def maximum_filter(input: Any, size: Any = None, footprint: Any = None, output: Any = None, mode: Any = "reflect",
                   cval: float = 0.0, origin: Any = 0, *, axes: Any = None, **options: Any) -> Any:
    """The maximum over a box or a footprint: ``scipy.ndimage.maximum_filter``.

    Parameters
    ----------
    input : array_like
    size : int or sequence of int, optional
        Along each of the axes.
    footprint : array of bool, optional
        The voxels of the window, instead of size. Its axes are the image's in ascending order.
    output, mode, cval, origin, axes : as in `uniform_filter`
        With a footprint there is one mode.
    """
    return _extremum("Maximum", input, output, cval, _key(size, footprint, mode, origin, axes), options)


@quick
def minimum_filter(input: Any, size: Any = None, footprint: Any = None, output: Any = None, mode: Any = "reflect",
                   cval: float = 0.0, origin: Any = 0, *, axes: Any = None, **options: Any) -> Any:
    """The minimum over a box or a footprint: ``scipy.ndimage.minimum_filter``. Parameters as of `maximum_filter`."""
    return _extremum("Minimum", input, output, cval, _key(size, footprint, mode, origin, axes), options)


@quick
def maximum_filter1d(input: Any, size: int, axis: int = -1, output: Any = None, mode: str = "reflect", cval: float = 0.0,
                     origin: int = 0, **options: Any) -> Any:
    """The maximum over a window along one axis: ``scipy.ndimage.maximum_filter1d``."""
    return _along(input, axis, output, lambda image, axes: maximum_filter(image, size, None, output, mode, cval, origin, axes=axes,
                                                                          **options))


@quick
def minimum_filter1d(input: Any, size: int, axis: int = -1, output: Any = None, mode: str = "reflect", cval: float = 0.0,
                     origin: int = 0, **options: Any) -> Any:
    """The minimum over a window along one axis: ``scipy.ndimage.minimum_filter1d``."""
    return _along(input, axis, output, lambda image, axes: minimum_filter(image, size, None, output, mode, cval, origin, axes=axes,
                                                                          **options))


@lru_cache(256)
def _rank_plan(what: str, number: float, ndim: int, cval: Any, *key: Any) -> tuple[tuple[Filter, ...], _Window, int]:
    """Steps of the engine, or none where its windows have too few axes; the window; the rank."""
    size, footprint, mode, origin, axes = key
    if footprint is None and size is not None:
        # As SciPy: a footprint of ones, whose axes ascend.
        axes = axes_of(axes, ndim)
        footprint = Kernel(np.ones([whole_number(each, "size", 1) for each in per_axis(size, len(axes), "size")]))
    if footprint is None:
        raise _core.ParameterError("size: neither it nor footprint is set")
    element = footprint.array != 0
    sides = element_sides(element, axes_of(axes, ndim), ndim, origin, mode, "footprint" if size is None else "size")
    voxels = int(np.count_nonzero(element))
    if voxels == 0:
        raise _core.ParameterError("footprint: it has no voxels")
    if what == "percentile":
        wanted = number + 100.0 if number < 0.0 else number
        if not 0.0 <= wanted <= 100.0:
            raise _core.ParameterError(f"percentile: {number:g} is not from -100 to 100")
        rank = voxels - 1 if wanted == 100.0 else int(float(voxels) * wanted / 100.0)
    else:
        rank = voxels // 2 if what == "median" else int(number) + (voxels if number < 0 else 0)
        if not 0 <= rank < voxels:
            raise _core.ParameterError(f"rank: {int(number)} is not a rank among {voxels} voxels")
    window = _Window(None if element.all() else element, sides)
    if rank in (0, voxels - 1):
        made = filters.Minimum if rank == 0 else filters.Maximum
        return tuple(flat_steps(made, window.element, sides, ndim, cval)), window, rank
    used = [side for side in sides if side.before or side.after]
    if len(in_groups(used)) > 1:
        return (), _Window(element, sides), rank
    if window.element is not None:
        return (rank_step(100.0 * (rank + 0.5) / (voxels - 1), element, sides, ndim, cval),), window, rank
    if what == "median" and voxels % 2:
        return tuple(box_steps(filters.Median, used, cval)), window, rank
    # The engine takes rank floor(fraction (n - 1)).
    percentile = 100.0 * (rank + 0.5) / (voxels - 1)
    return tuple(box_steps(lambda radius, **given: filters.Percentile(radius, percentile=percentile, **given), used, cval)), window, rank


def _rank(what: str, number: float, input: Any, output: Any, cval: Any, key: tuple[Any, ...], options: dict[str, Any]) -> Any:
    image, wrap = opened(input)
    _check_real(image)
    dtype = dtype_of(image)
    steps, window, rank = _rank_plan(what, number, len(shape_of(image)), _constant(cval, dtype), *key)
    if steps:
        result = _of_voxels(lambda into: run_steps(steps, image, into, options), image, output)
    elif is_in_memory(image):
        result = _of_voxels(lambda into: rank_of_neighbors(image, window.element, window.sides, rank, into, cval, options), image, output)
    else:
        raise _core.ParameterError("footprint: ranks over windows along more than three axes need an array in memory")
    return result if output is not None and result is output else wrap(result)


@quick
def median_filter(input: Any, size: Any = None, footprint: Any = None, output: Any = None, mode: Any = "reflect",
                  cval: float = 0.0, origin: Any = 0, *, axes: Any = None, **options: Any) -> Any:
    """The median: ``scipy.ndimage.median_filter``. Parameters as of `maximum_filter`, with one mode. Fast over boxes;
    other windows take a time that grows with their voxels."""
    return _rank("median", 0, input, output, cval, _key(size, footprint, mode, origin, axes), options)


@quick
def rank_filter(input: Any, rank: int, size: Any = None, footprint: Any = None, output: Any = None,
                mode: Any = "reflect", cval: float = 0.0, origin: Any = 0, *, axes: Any = None, **options: Any) -> Any:
    """The voxel of a rank: ``scipy.ndimage.rank_filter``; a negative rank counts from the largest. Windows as of
    `median_filter`."""
    return _rank("rank", whole_number(rank, "rank"), input, output, cval, _key(size, footprint, mode, origin, axes), options)


@quick
def percentile_filter(input: Any, percentile: float, size: Any = None, footprint: Any = None, output: Any = None,
                      mode: Any = "reflect", cval: float = 0.0, origin: Any = 0, *, axes: Any = None,
                      **options: Any) -> Any:
    """A percentile: ``scipy.ndimage.percentile_filter``, with its rank; a negative one counts from 100. Windows as of
    `median_filter`."""
    return _rank("percentile", float(percentile), input, output, cval, _key(size, footprint, mode, origin, axes), options)


# Grey morphology


class _Grey:
    """An image, a window or a structure, and how the image is eroded and dilated."""

    def __init__(self, input: Any, size: Any, footprint: Any, structure: Any, mode: Any, cval: Any, origin: Any, axes: Any,
                 options: dict[str, Any]) -> None:
        self.image, self.wrap = opened(input)
        _check_real(self.image)
        self.cval, self.options = _constant(cval, dtype_of(self.image)), options
        self.ndim = len(shape_of(self.image))
        self.heights: np.ndarray[Any, Any] | None = None
        if structure is not None:
            heights = np.asarray(structure, dtype=np.float64)
            footprint = np.ones(heights.shape) if footprint is None else np.asarray(footprint)
            if footprint.shape != heights.shape:
                raise _core.ParameterError(f"structure: its shape is {heights.shape}, the footprint's is {footprint.shape}")
            if np.any(heights[footprint != 0] != 0):
                if dtype_of(self.image).kind == "b":
                    footprint = (footprint != 0) & (heights != 0)
                else:
                    self.heights = heights
            # As SciPy: the axes of a structure ascend, also where it is flat.
            axes, origin = ascending(axes_of(axes, self.ndim), origin, self.ndim)
            size = None
        self.key = _key(size, footprint, mode, origin, axes)

    def run(self, made: str, image: Any, output: Any) -> Any:
        if self.heights is None:
            steps = _flat(made, self.ndim, self.cval, *self.key)
            return _of_voxels(lambda into: run_steps(steps, image, into, self.options), image, output)
        if made in ("Opening", "Closing"):
            first, second = ("Minimum", "Dilation") if made == "Opening" else ("Dilation", "Minimum")
            return self.run(second, self.run(first, image, dtype_of(image)), output)
        return self._with_heights(made == "Minimum", image, output)

    def _with_heights(self, erodes: bool, image: Any, output: Any) -> Any:
        if is_in_memory(image) and image.size == 0:
            return _deliver(np.empty(image.shape, _wanted(image, output)), output)
        _, footprint, mode, origin, axes = self.key
        element, heights = footprint.array != 0, self.heights
        sides = element_sides(element, axes_of(axes, self.ndim), self.ndim, origin, mode, "structure")
        assert heights is not None
        if not erodes:
            element, heights, sides = np.flip(element), np.flip(heights), tuple(side.reflected() for side in sides)
        step = height_step(filters.Minimum if erodes else filters.Maximum, element, heights, sides, self.ndim, self.cval)
        return _run_plan(_Plan((step,), wraps=dtype_of(image).kind != "f"), image, output, self.options)

    def finished(self, made: str, output: Any) -> Any:
        result = self.run(made, self.image, _wanted(self.image, None) if output is None else output)
        return result if output is not None and result is output else self.wrap(result)

    def between(self, made: str) -> Any:
        """In the input's type."""
        return self.run(made, self.image, _wanted(self.image, None))

    def combined(self, result: Any, output: Any) -> Any:
        if output is not None and not is_on_device(output) and not isinstance(output, np.ndarray):
            if is_on_device(result):
                raise TypeError("output: of an image in a device's memory an array there, or None")
            result = _converted(result, as_dtype(output))
        result = _deliver(result, output)
        return result if output is not None and result is output else self.wrap(result)


def _minus(first: Any, second: Any) -> Any:
    return first ^ second if dtype_of(first).kind == dtype_of(second).kind == "b" else first - second


@quick
def grey_erosion(input: Any, size: Any = None, footprint: Any = None, structure: Any = None, output: Any = None,
                 mode: Any = "reflect", cval: float = 0.0, origin: Any = 0, *, axes: Any = None, **options: Any) -> Any:
    """Erosion: ``scipy.ndimage.grey_erosion``. Windows as of `maximum_filter`. A structure has a height for each voxel of the
    window, and integers beyond their type wrap around as SciPy's do; for an image of bool it is the window."""
    return _Grey(input, size, footprint, structure, mode, cval, origin, axes, options).finished("Minimum", output)


@quick
def grey_dilation(input: Any, size: Any = None, footprint: Any = None, structure: Any = None, output: Any = None,
                  mode: Any = "reflect", cval: float = 0.0, origin: Any = 0, *, axes: Any = None,
                  **options: Any) -> Any:
    """Dilation, with the window reflected: ``scipy.ndimage.grey_dilation``. Parameters as of `grey_erosion`."""
    return _Grey(input, size, footprint, structure, mode, cval, origin, axes, options).finished("Dilation", output)


@quick
def grey_opening(input: Any, size: Any = None, footprint: Any = None, structure: Any = None, output: Any = None,
                 mode: Any = "reflect", cval: float = 0.0, origin: Any = 0, *, axes: Any = None, **options: Any) -> Any:
    """Erosion, then dilation: ``scipy.ndimage.grey_opening``. Parameters as of `grey_erosion`."""
    return _Grey(input, size, footprint, structure, mode, cval, origin, axes, options).finished("Opening", output)


@quick
def grey_closing(input: Any, size: Any = None, footprint: Any = None, structure: Any = None, output: Any = None,
                 mode: Any = "reflect", cval: float = 0.0, origin: Any = 0, *, axes: Any = None, **options: Any) -> Any:
    """Dilation, then erosion: ``scipy.ndimage.grey_closing``. Parameters as of `grey_erosion`."""
    return _Grey(input, size, footprint, structure, mode, cval, origin, axes, options).finished("Closing", output)


@quick
def morphological_gradient(input: Any, size: Any = None, footprint: Any = None, structure: Any = None,
                           output: Any = None, mode: Any = "reflect", cval: float = 0.0, origin: Any = 0, *,
                           axes: Any = None, **options: Any) -> Any:
    """Dilation minus erosion: ``scipy.ndimage.morphological_gradient``. Signed integers wrap around, as SciPy's do;
    ``chunkwise.range`` gives them as real numbers."""
    grey = _Grey(input, size, footprint, structure, mode, cval, origin, axes, options)
    if grey.heights is None and output is None and dtype_of(grey.image).kind in "uf":
        steps = _flat("Range", grey.ndim, grey.cval, *grey.key)
        if steps:
            return grey.wrap(run_steps(steps, grey.image, _wanted(grey.image, None), options))
    return grey.combined(_minus(grey.between("Dilation"), grey.between("Minimum")), output)


@typed
def morphological_laplace(input: Any, size: Any = None, footprint: Any = None, structure: Any = None, output: Any = None,
                          mode: Any = "reflect", cval: float = 0.0, origin: Any = 0, *, axes: Any = None,
                          **options: Any) -> Any:
    """Dilation plus erosion minus twice the image: ``scipy.ndimage.morphological_laplace``. Integers wrap around."""
    grey = _Grey(input, size, footprint, structure, mode, cval, origin, axes, options)
    image = grey.image
    if dtype_of(image).kind == "b":
        raise TypeError("input: bool has no negative numbers; .astype(np.int8) has them")
    return grey.combined(grey.between("Dilation") + grey.between("Minimum") - image - image, output)


@typed
def white_tophat(input: Any, size: Any = None, footprint: Any = None, structure: Any = None, output: Any = None,
                 mode: Any = "reflect", cval: float = 0.0, origin: Any = 0, *, axes: Any = None, **options: Any) -> Any:
    """The image minus its opening: ``scipy.ndimage.white_tophat``. Parameters as of `grey_erosion`."""
    grey = _Grey(input, size, footprint, structure, mode, cval, origin, axes, options)
    return grey.combined(_minus(grey.image, grey.between("Opening")), output)


@typed
def black_tophat(input: Any, size: Any = None, footprint: Any = None, structure: Any = None, output: Any = None,
                 mode: Any = "reflect", cval: float = 0.0, origin: Any = 0, *, axes: Any = None, **options: Any) -> Any:
    """The closing minus the image: ``scipy.ndimage.black_tophat``. Parameters as of `grey_erosion`."""
    grey = _Grey(input, size, footprint, structure, mode, cval, origin, axes, options)
    return grey.combined(_minus(grey.between("Closing"), grey.image), output)


# Binary morphology


def generate_binary_structure(rank: int, connectivity: int) -> np.ndarray[Any, Any]:
    """The neighbors that share so many coordinates at most: ``scipy.ndimage.generate_binary_structure``."""
    return np.asarray(_neighbors(max(whole_number(rank, "rank"), 0), max(connectivity, 1)).array != 0)


@lru_cache
def _neighbors(rank: int, connectivity: float) -> Kernel:
    return Kernel(np.abs(np.indices((3,) * rank) - 1).sum(axis=0) <= connectivity)


def iterate_structure(structure: Any, iterations: int, origin: Any = None) -> Any:
    """A structure dilated with itself: ``scipy.ndimage.iterate_structure``."""
    structure = np.asarray(structure)
    times = whole_number(iterations, "iterations")
    if times < 2:
        return structure.copy()
    whole = structure != 0
    widths = [((times - 1) * (extent // 2), (times - 1) * (extent - 1 - extent // 2)) for extent in structure.shape]
    result = binary_dilation(np.pad(whole, widths), whole, iterations=times - 1)
    if origin is None:
        return result
    return result, [times * each for each in per_axis(origin, structure.ndim, "origin")]


class _Binary:
    """A window of ones for a binary image, and what is beyond its edge."""

    def __init__(self, input: Any, structure: Any, origin: Any, border_value: Any, axes: Any, options: dict[str, Any]) -> None:
        self.image, self.wrap = opened(input)
        _check_real(self.image)
        if dtype_of(self.image).kind != "b":
            self.image = then(self.image, lambda image: image != 0)
        self.ndim = len(shape_of(self.image))
        self.axes = axes_of(axes, self.ndim)
        self.kernel = _neighbors(len(self.axes), 1) if structure is None else Kernel(np.asarray(structure) != 0)
        self.structure = self.kernel.array != 0
        if self.structure.size == 0:
            raise _core.ParameterError("structure: it has no voxels")
        self.border = int(bool(border_value))
        self.options = options
        self.origin = frozen(per_axis(origin, len(self.axes), "origin"))
        self.sides = element_sides(self.structure, self.axes, self.ndim, self.origin, "constant", "structure")

    def repeated(self, times: int, dilates: bool, border: int, image: Any, reflects: bool = True) -> Any:
        if not self.structure.any():
            # No voxel is asked for: all of them are there, and none is met.
            return (image & False) if dilates else (image | True)
        if self.ndim == 0:
            return np.array(image)
        steps = _binary_steps(self.kernel, self.sides, self.ndim, dilates, dilates and reflects, border)
        return run_steps(steps * times, image, np.dtype(bool), self.options)

    def run(self, dilates: bool, image: Any, iterations: Any, mask: Any) -> Any:
        try:
            times = operator.index(iterations)
        except TypeError:
            raise TypeError(f"iterations: {iterations!r} is not an integer") from None
        if mask is not None:
            mask = opened(mask)[0]
            if is_on_device(mask) != is_on_device(image):
                mask = to_device(mask, image) if is_on_device(image) else to_host(mask)
            if shape_of(mask) != shape_of(image):
                raise _core.ParameterError(f"mask: its shape is {shape_of(mask)}, the input's is {shape_of(image)}")
            mask = mask if dtype_of(mask).kind == "b" else mask != 0
        if times < 1 and (found := self._propagated(dilates, image, mask)) is not None:
            return found
        if mask is None and 1 <= times <= _MOST_AT_ONCE:
            return self.repeated(times, dilates, self.border, image)
        if not is_in_memory(image) and times < 1:
            raise _core.ParameterError(f"iterations: {iterations}, until nothing changes, needs an array in memory")
        while True:
            result = self.repeated(1, dilates, self.border, image)
            if mask is not None:
                result = (result & mask) | (image & ~mask)
            times -= 1
            if times == 0 or (is_in_memory(image) and np.array_equal(result, image)):
                return result
            image = result

    def _propagated(self, dilates: bool, image: Any, mask: Any) -> Any:
        """Repeated until nothing changes, by one reconstruction; none where the structure is not one of its neighborhoods."""
        count = len(self.axes)
        full = self.structure.shape == (3,) * count and bool(self.structure.all())
        faces = np.array_equal(self.structure, generate_binary_structure(count, 1))
        if not (full or faces) or any(self.origin) or not 1 <= count <= 3 or not is_in_memory(image):
            return None
        if not dilates:
            # An erosion is a dilation of the complement.
            other = _Binary.__new__(_Binary)
            other.__dict__.update(self.__dict__, border=1 - self.border)
            return ~other._propagated(True, ~image, mask)
        allowed = np.ones_like(image) if mask is None else mask | image
        around = tuple(Side(axis, 1, 1, "constant") for axis in self.axes)
        inner: Any = ...
        if self.border:
            inner = tuple(slice(1, -1) if axis in self.axes else slice(None) for axis in range(self.ndim))
            image, allowed = extend(image, around, True), extend(allowed, around, True)
        # The engine's neighborhoods are along the last axes.
        last = tuple(range(self.ndim - count, self.ndim))
        are_last = last == self.axes
        if not are_last:
            image, allowed = (np.moveaxis(each, self.axes, last) for each in (image, allowed))
        result = known(filters.Reconstruct, fully_connected=full and not faces, axes=last)(allowed, image, **self.options)
        return np.ascontiguousarray((result if are_last else np.moveaxis(result, last, self.axes))[inner])

    def finished(self, result: Any, output: Any) -> Any:
        if output is None:
            return self.wrap(result)
        if isinstance(output, np.ndarray):
            return _deliver(result, output)
        return self.wrap(result.astype(np.dtype(output), copy=False))


#: Repetitions that one pass makes of each chunk, whose halo they widen.
_MOST_AT_ONCE = 16


@lru_cache(256)
def _binary_steps(structure: Kernel, sides: tuple[Side, ...], ndim: int, dilates: bool, reflects: bool, border: int) -> tuple[Filter, ...]:
    element = structure.array != 0
    window = _Window(None if element.all() else element, sides)
    window = window.reflected() if reflects else window
    return tuple(flat_steps(filters.Maximum if dilates else filters.Minimum, window.element, window.sides, ndim, border))


@quick
def binary_erosion(input: Any, structure: Any = None, iterations: int = 1, mask: Any = None, output: Any = None,
                   border_value: int = 0, origin: Any = 0, brute_force: bool = False, *, axes: Any = None,
                   **options: Any) -> Any:
    """Erosion of a binary image: ``scipy.ndimage.binary_erosion``.

    Parameters
    ----------
    input : array_like
        All but 0 is an object.
    structure : array of bool, optional
        The neighborhood; by default the voxel and its neighbors across a face.
    iterations : int
        Number of repetitions; below 1: until nothing changes.
    mask : array of bool, optional
        Voxels that may change.
    output : array or dtype, optional
        bool.
    border_value : 0 or 1
        The value beyond the edge.
    origin, axes : as in `uniform_filter`
    brute_force : bool
        Has no effect.
    """
    binary = _Binary(input, structure, origin, border_value, axes, options)
    return binary.finished(binary.run(False, binary.image, iterations, mask), output)


@quick
def binary_dilation(input: Any, structure: Any = None, iterations: int = 1, mask: Any = None, output: Any = None,
                    border_value: int = 0, origin: Any = 0, brute_force: bool = False, *, axes: Any = None,
                    **options: Any) -> Any:
    """Dilation of a binary image: ``scipy.ndimage.binary_dilation``. Parameters as of `binary_erosion`."""
    binary = _Binary(input, structure, origin, border_value, axes, options)
    return binary.finished(binary.run(True, binary.image, iterations, mask), output)


@quick
def binary_opening(input: Any, structure: Any = None, iterations: int = 1, output: Any = None, origin: Any = 0,
                   mask: Any = None, border_value: int = 0, brute_force: bool = False, *, axes: Any = None,
                   **options: Any) -> Any:
    """Erosions, then as many dilations: ``scipy.ndimage.binary_opening``. Parameters as of `binary_erosion`."""
    binary = _Binary(input, structure, origin, border_value, axes, options)
    return binary.finished(binary.run(True, binary.run(False, binary.image, iterations, mask), iterations, mask), output)


@quick
def binary_closing(input: Any, structure: Any = None, iterations: int = 1, output: Any = None, origin: Any = 0,
                   mask: Any = None, border_value: int = 0, brute_force: bool = False, *, axes: Any = None,
                   **options: Any) -> Any:
    """Dilations, then as many erosions: ``scipy.ndimage.binary_closing``. Parameters as of `binary_erosion`."""
    binary = _Binary(input, structure, origin, border_value, axes, options)
    return binary.finished(binary.run(False, binary.run(True, binary.image, iterations, mask), iterations, mask), output)


@typed
def binary_hit_or_miss(input: Any, structure1: Any = None, structure2: Any = None, output: Any = None, origin1: Any = 0,
                       origin2: Any = None, *, axes: Any = None, **options: Any) -> Any:
    """Voxels whose neighbors are objects where structure1 is, and none where structure2 is, by default everywhere else:
    ``scipy.ndimage.binary_hit_or_miss``."""
    hit = _Binary(input, structure1, origin1, 0, axes, options)
    miss = _Binary(hit.image, ~hit.structure if structure2 is None else structure2, origin1 if origin2 is None else origin2,
                   0, axes, options)
    met = miss.repeated(1, True, 0, hit.image, reflects=False)
    return hit.finished(hit.repeated(1, False, 0, hit.image) & ~met, output)


@typed
def binary_propagation(input: Any, structure: Any = None, mask: Any = None, output: Any = None, border_value: int = 0,
                       origin: Any = 0, *, axes: Any = None, **options: Any) -> Any:
    """Dilation within a mask until nothing changes: ``scipy.ndimage.binary_propagation``."""
    return binary_dilation(input, structure, -1, mask, output, border_value, origin, axes=axes, **options)


@typed
def binary_fill_holes(input: Any, structure: Any = None, output: Any = None, origin: Any = 0, *, axes: Any = None,
                      **options: Any) -> Any:
    """Objects with what no way through the background joins to the image's edge: ``scipy.ndimage.binary_fill_holes``."""
    binary = _Binary(input, structure, origin, 1, axes, options)
    if not is_in_memory(binary.image):
        if structure is not None or origin != 0 or axes is not None:
            raise _core.ParameterError("structure: it, origin and axes need an array in memory")
        return binary.finished(filters.FillHoles()(binary.image, **options), output)
    mask = ~binary.image
    return binary.finished(~binary.run(True, np.zeros_like(mask), -1, mask), output)


# Objects


@quick
def label(input: Any, structure: Any = None, output: Any = None, **options: Any) -> tuple[Any, int]:
    """Connected components, 1, 2, ... in raster order, and how many there are: ``scipy.ndimage.label``.

    Labels are int32, or of the type `output`; with an array as `output`, which then has the labels, only their number is
    returned. `structure` has an axis of three for each of the image's. Arrays of more than three dimensions must be in
    memory, and are labelled on one core.
    """
    ndim = len(shape_of(input))
    given: dict[str, Any] = {}
    if structure is not None:
        neighbors = np.asarray(structure)
        if neighbors.shape != (3,) * ndim:
            raise _core.ParameterError(f"structure: its shape is {neighbors.shape}, it should be {(3,) * ndim}")
        neighbors = neighbors.astype(bool)
        if not np.array_equal(neighbors, np.flip(neighbors)):
            raise _core.ParameterError("structure: it is not symmetric about its center")
        given["structure"] = tuple(int(each) for each in neighbors.ravel())
    if ndim > 3:
        return _labels_of_many_axes(input, given.get("structure"), output, options)
    if (not options and type(input) is np.ndarray and 0 < input.size <= _FEW_VOXELS and ndim > 0 and input.dtype.kind in "biuf"
            and (output is None or isinstance(output, np.ndarray))):
        # A call of the engine takes longer than one core does.
        return _labels_on_one_core(input, given.get("structure"), output, lambda labels: labels)
    into = output if output is not None else np.int32
    labels = known(filters.Label, **given)(input, output=into, **options)
    labels_and_count: tuple[Any, int] = then(labels, lambda found: (found, int(found.max()) if math.prod(shape_of(found)) else 0))
    return labels_and_count[1] if isinstance(output, np.ndarray) else labels_and_count  # type: ignore[return-value]


#: So many voxels are labelled in the time that a call of the engine takes.
_FEW_VOXELS = 1 << 13


@lru_cache(64)
def _neighbors_before(ndim: int, structure: tuple[int, ...] | None) -> list[list[int]]:
    """The offsets of neighbors that come before a voxel in an array."""
    neighbors = _neighbors(ndim, 1).array if structure is None else np.reshape(structure, (3,) * ndim)
    return [each for each in (np.argwhere(neighbors) - 1).tolist() if each < [0] * ndim]


def _labels_of_many_axes(input: Any, structure: tuple[int, ...] | None, output: Any, options: dict[str, Any]) -> tuple[Any, int]:
    threads_of_cpu(options)
    image, wrap = opened(input)
    if not is_in_memory(image):
        raise _core.ParameterError(f"input: it has {image.ndim} dimensions; objects are connected along three axes, and along more in arrays "
                                   "in memory. chunkwise.label labels the volumes of an array one after the other, along the last three")
    return _labels_on_one_core(image, structure, output, wrap)


def _labels_on_one_core(image: np.ndarray[Any, Any], structure: tuple[int, ...] | None, output: Any,
                        wrap: Callable[[Any], Any]) -> tuple[Any, int]:
    labels = np.zeros(image.shape, np.int64)
    objects = np.ascontiguousarray(image if image.dtype.kind == "b" else image != 0).view(np.uint8)
    count: int = _core.label_voxels(objects, _neighbors_before(image.ndim, structure), labels) if labels.size else 0
    dtype = (np.dtype(np.int32) if output is None else output.dtype if isinstance(output, np.ndarray) else
             np.min_scalar_type(count) if isinstance(output, str) and output == "auto" else as_dtype(output))
    most = 1 if dtype.kind == "b" else np.iinfo(dtype).max if dtype.kind in "iu" else count
    if count > most:
        raise _core.Error(f"output: {dtype} has labels up to {most}, and there are {count} objects")
    if isinstance(output, np.ndarray):
        _deliver(labels, output)
        return count  # type: ignore[return-value]
    return wrap(labels.astype(dtype, copy=False)), count


def distance_transform_edt(input: Any, sampling: Any = None, return_distances: bool = True, return_indices: bool = False,
                           distances: Any = None, indices: Any = None, **options: Any) -> Any:
    """The distance of each voxel to the nearest one that is 0: ``scipy.ndimage.distance_transform_edt``.

    Up to three dimensions. Two results differ from SciPy's. If several voxels are nearest, `indices` has the first one
    in the array. Without any voxel of 0 distances are infinite and indices are -1; SciPy's results are meaningless
    then.
    """
    shape = shape_of(input) or (1,)
    if len(shape) > 3:
        raise _core.ParameterError(f"input: it has {len(shape)} dimensions; distances are taken along three axes. "
                                   "chunkwise.distance takes those in the volumes of an array, along the last three")
    if input is None or not hasattr(input, "shape"):
        input = np.asarray(input) if not hasattr(input, "GetSize") else input
    if isinstance(input, np.ndarray) and input.ndim == 0:
        input = np.atleast_1d(input)
    spacing: Any = False if sampling is None else per_axis(sampling, len(shape), "sampling")
    _check_targets(shape, return_distances, return_indices, distances, np.float64, indices)
    results = []
    nearest = known(filters.Nearest, features="background", spacing=spacing)
    if return_distances:
        try:
            found = known(filters.Distance, spacing=spacing)(input, output=np.float64 if distances is None else distances, **options)
        except _core.BudgetError as error:
            raise foreseen(error, [(nearest, shape, dtype_of(input))] if return_indices else [], options) from None
        if distances is None:
            results.append(found)
    if return_indices:
        into = _indices_of(np.asarray(nearest(input, output=np.int64, **options)), shape, indices)
        if indices is None:
            results.append(into)
    return tuple(results) if len(results) > 1 else results[0] if results else None


def _check_targets(shape: tuple[int, ...], return_distances: bool, return_indices: bool, distances: Any, kind: Any, indices: Any) -> None:
    if not (return_distances or return_indices):
        raise RuntimeError("at least one of return_distances and return_indices must be True")
    for name, array, is_wanted, expected, dtype in (("distances", distances, return_distances, shape, kind),
                                                    ("indices", indices, return_indices, (len(shape), *shape), np.int32)):
        if array is not None and not is_wanted:
            raise RuntimeError(f"{name}: an array for what is not returned")
        if array is not None and (not isinstance(array, np.ndarray) or array.shape != expected or array.dtype != dtype):
            raise RuntimeError(f"{name}: it must be an array of the shape {expected} and the type {np.dtype(dtype)}")


def _indices_of(places: np.ndarray[Any, Any], shape: tuple[int, ...], indices: Any) -> Any:
    """Indices along each axis of places in the flattened array, -1 where there is none."""
    into = np.empty((len(shape), *shape), np.int32) if indices is None else indices
    if places.size:
        is_none = places < 0
        for axis, each in enumerate(np.unravel_index(np.where(is_none, 0, places), shape)):
            into[axis] = np.where(is_none, -1, each)
    return into


def _distances_in_steps(input: Any, is_chessboard: bool, kind: Any, return_distances: bool, return_indices: bool, distances: Any,
                        indices: Any) -> Any:
    objects = np.asarray(input) != 0
    _check_targets(objects.shape, return_distances, return_indices, distances, kind, indices)
    steps = np.empty(objects.shape, np.int32)
    places = np.empty(objects.shape, np.int64) if return_indices else None
    if objects.size:
        given = (np.atleast_1d(each) for each in (np.ascontiguousarray(objects).view(np.uint8), steps))
        _core.find_step_distances(*given, None if places is None else np.atleast_1d(places), is_chessboard)
    results = []
    if return_distances:
        results += [steps.astype(kind, copy=False)] if distances is None else []
        if distances is not None:
            distances[...] = steps
    if places is not None:
        into = _indices_of(places, objects.shape, indices)
        results += [into] if indices is None else []
    return tuple(results) if len(results) > 1 else results[0] if results else None


_TAXICAB = ("taxicab", "cityblock", "manhattan")


def distance_transform_bf(input: Any, metric: str = "euclidean", sampling: Any = None, return_distances: bool = True,
                          return_indices: bool = False, distances: Any = None, indices: Any = None, **options: Any) -> Any:
    """The distance of each voxel to the nearest one that is 0: ``scipy.ndimage.distance_transform_bf``, by no brute force.

    `metric` is euclidean (`distance_transform_edt`), or taxicab or chessboard (`distance_transform_cdt`, as uint32).
    """
    named = metric.lower() if isinstance(metric, str) else metric
    if named == "euclidean":
        return distance_transform_edt(input, sampling, return_distances, return_indices, distances, indices, **options)
    if named not in (*_TAXICAB, "chessboard"):
        raise RuntimeError(f"metric: {metric!r} is none of euclidean, taxicab and chessboard")
    return _distances_in_steps(input, named == "chessboard", np.uint32, return_distances, return_indices, distances, indices)


def distance_transform_cdt(input: Any, metric: Any = "chessboard", return_distances: bool = True, return_indices: bool = False,
                           distances: Any = None, indices: Any = None) -> Any:
    """The steps from each voxel to the nearest one that is 0: ``scipy.ndimage.distance_transform_cdt``, by NumPy.

    `metric` is chessboard or taxicab, or the structure of one of them. If several voxels are nearest, `indices` has one of
    them; -1 without any voxel of 0.
    """
    ndim = np.ndim(input)
    if isinstance(metric, str):
        if metric not in (*_TAXICAB, "chessboard"):
            raise _core.ParameterError(f"metric: {metric!r} is none of chessboard and taxicab")
        is_chessboard = metric == "chessboard"
    else:
        structure = np.asarray(metric) != 0
        known = [connectivity for connectivity in (1, ndim) if np.array_equal(structure, generate_binary_structure(ndim, connectivity))]
        if not known:
            raise _core.ParameterError("metric: the structure is neither that of chessboard nor that of taxicab")
        is_chessboard = known[0] == ndim
    return _distances_in_steps(input, is_chessboard, np.int32, return_distances, return_indices, distances, indices)


# Other grids

_INTERPOLATIONS = {0: "nearest", 1: "linear", 3: "cubic"}
_OUTSIDE = {"constant": "constant", "grid-constant": "grid-constant", "nearest": "nearest", "mirror": "mirror", "reflect": "reflect",
            "grid-mirror": "reflect", "grid-wrap": "grid-wrap"}
_GRID_MODES = (*_OUTSIDE, "wrap")
#: Voxels of padding after which the edge of a spline is that of the padding alone, to the last digit of float32 and float64.
_SPLINE_PADDING, _SPLINE_PADDING_OF_DOUBLE = 14, 28
#: SciPy's, which is less for splines of higher orders: their results near the edge depend on it.
_PADDING_OF_SCIPY = 12


_NO_MATRIX = np.empty((0, 0))


class _Grid(NamedTuple):
    """The points ``matrix @ index + offset`` of each index of an array of this shape, or ``points + offset``."""

    matrix: np.ndarray[Any, Any]
    offset: np.ndarray[Any, Any]
    shape: tuple[int, ...]
    points: np.ndarray[Any, Any] | None = None

    def moved(self, by: int) -> _Grid:
        return self._replace(offset=self.offset + by)

    def part(self, begin: int, end: int) -> list[np.ndarray[Any, Any]]:
        """The points for a part of the first axis, along each axis of the image."""
        if self.points is not None:
            return [each[begin:end] + start for each, start in zip(self.points, self.offset)]
        index = np.ix_(np.arange(begin, end), *(np.arange(extent) for extent in self.shape[1:]))
        points = []
        for row, start in zip(self.matrix, self.offset):
            along: Any = np.full((1,) * len(self.shape), start)
            for factor, each in zip(row, index):
                along = along + factor * each if factor else along
            points.append(along)
        return points

    def is_of_engine(self, ndim: int) -> bool:
        return 1 <= ndim <= 3 and len(self.shape) == ndim and 0 not in self.shape


def _resampled(input: Any, grid: _Grid, output: Any, order: Any, mode: str, cval: Any, prefilter: bool, options: dict[str, Any]) -> Any:
    """The values at the points of a grid."""
    image, wrap = opened(input)
    if is_on_device(image):
        if _stays_on_device(image, grid, output, order, mode, prefilter):
            return _by_engine(image, grid, order, mode, _constant(cval, dtype_of(image)), prefilter, output, options)
        return takes_device_arrays(_resampled)(image, grid, output=output, order=order, mode=mode, cval=cval, prefilter=prefilter,
                                               options=options)
    if image.ndim == 0 or not grid.shape:
        raise _core.ParameterError("input: it has no dimensions, or its result has none")
    order = whole_number(order, "order")
    if not 0 <= order <= 5:
        raise _core.ParameterError(f"order: {order} is not from 0 to 5")
    if mode not in _GRID_MODES:
        raise _core.ParameterError(f"mode: {mode!r} is none of {', '.join(_GRID_MODES)}")
    pads = order > 1 and prefilter and mode in ("nearest", "grid-constant")
    by_engine = order in _INTERPOLATIONS and mode in _OUTSIDE and image.size > 0 and grid.is_of_engine(image.ndim)
    if not is_in_memory(image) and (type(image).__module__.partition(".")[0] != "dask" or pads or not by_engine or grid.points is not None):
        raise _core.ParameterError("input: only arrays in memory are resampled, and Dask's with order 0, 1 and 3, and 3 not with the modes "
                                   "nearest and grid-constant")

    def run(image: Any, output: Any, cval: Any) -> Any:
        dtype = _wanted(image, output)
        place, outside = grid, mode
        if pads:
            width = _PADDING_OF_SCIPY if not by_engine else _SPLINE_PADDING_OF_DOUBLE if dtype == np.float64 else _SPLINE_PADDING
            image = np.pad(image, width, **({"constant_values": cval} if mode == "grid-constant" else {"mode": "edge"}))
            place = grid.moved(width)
        if not by_engine:
            if order > 1 and prefilter:
                image = spline_filter(image, order, mode=mode, **options)
            real = interpolate(image, place.part, place.shape, order, mode, cval, threads_of_cpu(options))
        else:
            if place is not grid:
                outside = "constant" if mode == "grid-constant" else "renormalized"
            if dtype == np.float64 and image.dtype == np.float32 and order:
                image = image.astype(np.float64)
            is_kept = dtype == image.dtype or (dtype.kind == "f" and order)
            kind: Any = np.dtype(np.float64) if order else image.dtype
            real = _by_engine(image, place, order, outside, cval, prefilter, (dtype if output is None else output) if is_kept else kind,
                              options)
            if is_kept:
                return real
        return _deliver(_to_integers(real, dtype, False) if dtype.kind in "iub" and real.dtype.kind == "f" else
                        real.astype(dtype, copy=False), output)

    result = _linear(run, image, output, cval)
    return result if output is not None and result is output else wrap(result)


def _stays_on_device(image: Any, grid: _Grid, output: Any, order: Any, mode: str, prefilter: bool) -> bool:
    """Whether the engine gives the result from an array in a device's memory."""
    dtype, shape = dtype_of(image), shape_of(image)
    pads = prefilter and mode in ("nearest", "grid-constant")
    return (order in _INTERPOLATIONS and mode in _OUTSIDE and 0 not in shape and grid.is_of_engine(len(shape)) and grid.points is None
            and (order < 2 or not pads) and dtype.itemsize >= 1 + 3 * (dtype.kind == "f") and dtype.kind in ("f" if order else "fiu")
            and not isinstance(output, np.ndarray)
            and (output is None or (dtype_of(output) if is_on_device(output) else as_dtype(output)) == dtype))


def _by_engine(image: Any, grid: _Grid, order: int, outside: Any, cval: Any, prefilter: bool, output: Any, options: dict[str, Any]) -> Any:
    ndim = image.ndim
    if grid.points is not None:
        kind = check_dtype(image.dtype)
        dtype = output.dtype if isinstance(output, np.ndarray) else np.dtype(output)
        result = np.empty(grid.shape, check_dtype(dtype, "output"))
        points = [np.ascontiguousarray(each) for each in grid.points[::-1]]
        warned = _core.sample_at_points(as_input(image, kind), points, float(grid.offset[0]), _INTERPOLATIONS[order],
                                        _OUTSIDE.get(outside, outside), cval, prefilter, result, make_options(**options))
        if warned:
            warn({"warnings": warned})
        return _deliver(finished(result, dtype), output)
    affine = tuple(np.hstack([grid.matrix, grid.offset[:, None]]).ravel().tolist())
    given: dict[str, Any] = {"size": grid.shape, "output_spacing": (1.0,) * ndim, "output_origin": (0.0,) * ndim, "affine": affine,
                             "interpolation": _INTERPOLATIONS[order], "outside": _OUTSIDE.get(outside, outside), "antialias": False}
    if outside in ("constant", "grid-constant"):
        given["outside_value"] = cval
    if order == 3 and not prefilter:
        given["prefilter"] = False
    return known(filters.Resample, **given)(image, output=output, **options)


@quick
def affine_transform(input: Any, matrix: Any, offset: Any = 0.0, output_shape: Any = None, output: Any = None, order: int = 3,
                     mode: str = "constant", cval: float = 0.0, prefilter: bool = True, **options: Any) -> Any:
    """The array at ``matrix @ index + offset``: ``scipy.ndimage.affine_transform``.

    Parameters
    ----------
    input : array_like
    matrix : array_like
        For n dimensions: n rows, of n numbers if the result has n dimensions; n numbers, the diagonal; or n or n + 1 rows of n + 1
        numbers, homogeneous.
    offset : float or sequence of float
    output_shape : tuple of int, optional
        The input's.
    output : array or dtype, optional
    order : int
        0 to 5: the nearest voxel, linear, or splines. The engine has 0, 1 and 3 for up to three dimensions, NumPy computes the
        others.
    mode : {'constant', 'grid-constant', 'nearest', 'mirror', 'reflect', 'grid-mirror', 'wrap', 'grid-wrap'}
    cval : scalar
        The value beyond the edge with the modes constant and grid-constant.
    prefilter : bool
        False if the input has coefficients of splines.
    """
    image, _ = opened(input)
    ndim = len(shape_of(image))
    given = np.asarray(matrix, np.float64)
    start = np.array([float(each) for each in per_axis(offset, ndim, "offset")])
    if given.shape in ((ndim, ndim + 1), (ndim + 1, ndim + 1)) and given.ndim == 2:
        if len(given) > ndim and not np.array_equal(given[-1], [0.0] * ndim + [1.0]):
            raise _core.ParameterError(f"matrix: the last row is {given[-1]}, it should be 0 ... 0 1")
        given, start = given[:ndim, :ndim], given[:ndim, ndim]
    if given.shape == (ndim,):
        given = np.diag(given)
    shape = _shape_of_result(image, output_shape, output)
    if given.shape != (ndim, len(shape)):
        raise _core.ParameterError(f"matrix: its shape is {given.shape}, from an array of {ndim} dimensions to one of {len(shape)}")
    return _resampled(input, _Grid(given, start, shape), output, order, mode, cval, prefilter, options)


def _shape_of_result(image: Any, output_shape: Any, output: Any) -> tuple[int, ...]:
    if output_shape is not None:
        return tuple(operator.index(each) for each in output_shape)
    return output.shape if isinstance(output, np.ndarray) else tuple(shape_of(image))


@quick
def shift(input: Any, shift: Any, output: Any = None, order: int = 3, mode: str = "constant", cval: float = 0.0,
          prefilter: bool = True, **options: Any) -> Any:
    """The array moved by so many voxels along each axis: ``scipy.ndimage.shift``. Parameters as of `affine_transform`."""
    image, _ = opened(input)
    ndim = len(shape_of(image))
    moved = -np.array([float(each) for each in per_axis(shift, ndim, "shift")])
    return _resampled(input, _Grid(np.eye(ndim), moved, tuple(shape_of(image))), output, order, mode, cval, prefilter, options)


@quick
def zoom(input: Any, zoom: Any, output: Any = None, order: int = 3, mode: str = "constant", cval: float = 0.0,
         prefilter: bool = True, *, grid_mode: bool = False, **options: Any) -> Any:
    """The array with so many times as many voxels along each axis: ``scipy.ndimage.zoom``.

    Centers of the first and the last voxels stay where they are, with `grid_mode` their outer edges. No kernel grows where
    there are fewer voxels: `chunkwise.resample` has what avoids aliasing. Further parameters as of `affine_transform`.
    """
    image, _ = opened(input)
    extents = tuple(shape_of(image))
    factors = [float(each) for each in per_axis(zoom, len(extents), "zoom")]
    shape = tuple(int(round(extent * factor)) for extent, factor in zip(extents, factors))
    less = 0 if grid_mode else 1
    steps = np.array([(extent - less) / (wanted - less) if wanted > less else 1.0 for extent, wanted in zip(extents, shape)])
    start = 0.5 * steps - 0.5 if grid_mode else np.zeros(len(extents))
    return _resampled(input, _Grid(np.diag(steps), start, shape), output, order, mode, cval, prefilter, options)


@quick
def rotate(input: Any, angle: float, axes: tuple[int, int] = (1, 0), reshape: bool = True, output: Any = None, order: int = 3,
           mode: str = "constant", cval: float = 0.0, prefilter: bool = True, **options: Any) -> Any:
    """The array turned in the plane of two axes, by degrees: ``scipy.ndimage.rotate``.

    With `reshape` the result has room for all of the input. Further parameters as of `affine_transform`.
    """
    image, _ = opened(input)
    extents = tuple(shape_of(image))
    plane = sorted(axis_of(axis, len(extents)) for axis in axes)
    if len(plane) != 2 or plane[0] == plane[1]:
        raise _core.ParameterError(f"axes: {axes!r} are not two axes")
    # Exact for quarter turns.
    quarter = math.fmod(float(angle), 360.0) / 90.0
    exact = quarter.is_integer()
    cosine = (1.0, 0.0, -1.0, 0.0)[int(quarter) % 4] if exact else math.cos(math.radians(angle))
    sine = (0.0, 1.0, 0.0, -1.0)[int(quarter) % 4] if exact else math.sin(math.radians(angle))
    turn = np.array([[cosine, sine], [-sine, cosine]])
    sizes = np.array([extents[axis] for axis in plane])
    wanted = sizes
    if reshape:
        corners = turn @ [[0, 0, sizes[0], sizes[0]], [0, sizes[1], 0, sizes[1]]]
        wanted = (np.ptp(corners, axis=1) + 0.5).astype(int)
    matrix, start, shape = np.eye(len(extents)), np.zeros(len(extents)), list(extents)
    matrix[np.ix_(plane, plane)] = turn
    start[plane] = (sizes - 1) / 2 - turn @ ((wanted - 1) / 2)
    for axis, extent in zip(plane, wanted):
        shape[axis] = int(extent)
    return _resampled(input, _Grid(matrix, start, tuple(shape)), output, order, mode, cval, prefilter, options)


@typed
@takes_device_arrays
def map_coordinates(input: Any, coordinates: Any, output: Any = None, order: int = 3, mode: str = "constant", cval: float = 0.0,
                    prefilter: bool = True, **options: Any) -> Any:
    """The values of the array at points: ``scipy.ndimage.map_coordinates``.

    Parameters
    ----------
    input : array_like
    coordinates : array_like
        An array of points for each axis of `input`, in voxels, all of one shape, which is that of the result. A point with a NaN
        has the value `cval`.
    output, order, mode, cval, prefilter
        As of `affine_transform`.
    """
    image, _ = opened(input)
    ndim = len(shape_of(image))
    points = np.asarray(coordinates)
    if points.dtype.kind not in "iufb" or points.ndim < 1 or len(points) != ndim:
        raise _core.ParameterError(f"coordinates: {points.dtype} of the shape {points.shape}; they are {ndim} arrays of real numbers, "
                                   "one for each axis")
    return _at_points(image, points.astype(np.float64, copy=False), output, order, mode, cval, prefilter, options)


def _at_points(image: Any, points: np.ndarray[Any, Any], output: Any, order: int, mode: str, cval: Any, prefilter: bool,
               options: dict[str, Any]) -> Any:
    ndim, shape = len(points), points.shape[1:]
    # Points of any number of dimensions lie on a line.
    grid = shape if len(shape) == ndim else (1,) * (ndim - 1) + (math.prod(shape),)
    dtype = dtype_of(image)
    wanted = _complex_type(dtype, output) if dtype.kind == "c" else _wanted(image, output)
    if math.prod(shape) == 0:
        return _deliver(np.empty(shape, wanted), output)
    place = _Grid(_NO_MATRIX, np.zeros(ndim), grid, points.reshape(ndim, *grid))
    return _deliver(_resampled(np.asarray(image), place, wanted, order, mode, cval, prefilter, options).reshape(shape), output)


@typed
@takes_device_arrays
def geometric_transform(input: Any, mapping: Callable[..., Any], output_shape: Any = None, output: Any = None, order: int = 3,
                        mode: str = "constant", cval: float = 0.0, prefilter: bool = True, extra_arguments: Any = (),
                        extra_keywords: Any = None, **options: Any) -> Any:
    """The values of the array at ``mapping(index, ...)`` of each index, a tuple: ``scipy.ndimage.geometric_transform``.

    `mapping` is called for each voxel; `map_coordinates` takes the points of all at once. Further parameters as of
    `affine_transform`.
    """
    image, _ = opened(input)
    if not callable(mapping):
        raise TypeError(f"mapping: {mapping!r} is no function of Python")
    shape = _shape_of_result(image, output_shape, output)
    points = np.empty((len(shape_of(image)), *shape))
    for index in np.ndindex(shape):
        points[(slice(None), *index)] = mapping(index, *extra_arguments, **(extra_keywords or {}))
    return _at_points(image, points, output, order, mode, cval, prefilter, options)


_SPLINE_POLES = {2: (math.sqrt(8) - 3,), 3: (math.sqrt(3) - 2,),
                 4: (math.sqrt(664 - math.sqrt(438976)) + math.sqrt(304) - 19, math.sqrt(664 + math.sqrt(438976)) - math.sqrt(304) - 19),
                 5: (math.sqrt(67.5 - math.sqrt(4436.25)) + math.sqrt(26.25) - 6.5,
                     math.sqrt(67.5 + math.sqrt(4436.25)) - math.sqrt(26.25) - 6.5)}
_SPLINE_MODES = {"mirror": "mirror", "constant": "mirror", "grid-constant": "mirror", "wrap": "mirror", "reflect": "reflect",
                 "grid-mirror": "reflect", "nearest": "reflect", "grid-wrap": "grid-wrap"}


@typed
@takes_device_arrays
def spline_filter1d(input: Any, order: int = 3, axis: int = -1, output: Any = np.float64, mode: str = "mirror", **options: Any) -> Any:
    """The coefficients of splines through the values along an axis: ``scipy.ndimage.spline_filter1d``.

    With the mode reflect those of short axes differ from SciPy's, which are not exact there.

    Parameters
    ----------
    input : array_like
    order : int
        0 to 5; below 2 the values themselves.
    axis : int
    output : array or dtype
    mode : {'mirror', 'reflect', 'grid-mirror', 'grid-wrap', ...}
        constant, grid-constant and wrap are mirror, nearest is reflect, as in SciPy.
    """
    image, _ = opened(input)
    whole = whole_number(order, "order")
    if not 0 <= whole <= 5:
        raise _core.ParameterError(f"order: {order!r} is not a whole number from 0 to 5")
    if mode not in _SPLINE_MODES:
        raise _core.ParameterError(f"mode: {mode!r} is none of {', '.join(_SPLINE_MODES)}")
    return _coefficients(image, whole, (axis,), output, mode, options)


def _coefficients(image: Any, order: int, axes: Sequence[Any], output: Any, mode: str, options: dict[str, Any]) -> Any:
    threads, image = threads_of_cpu(options), np.asarray(image)
    dtype = _complex_type(image.dtype, output) if image.dtype.kind == "c" else _wanted(image, output)
    values = np.array(image, np.complex128 if image.dtype.kind == "c" else np.float64, order="C")
    for axis in (axis_of(each, values.ndim) for each in axes):
        extent = values.shape[axis]
        if order > 1 and values.size and extent > 1:
            # Real and imaginary parts lie side by side.
            columns = values.view(np.float64).reshape(math.prod(values.shape[:axis]), extent, -1)
            _core.filter_splines(columns, _SPLINE_POLES[order], _SPLINE_MODES[mode], threads)
    return _deliver(values.astype(dtype, copy=False) if dtype.kind in "fc" else _to_integers(values, dtype, False), output)


@typed
@takes_device_arrays
def spline_filter(input: Any, order: int = 3, output: Any = np.float64, mode: str = "mirror", **options: Any) -> Any:
    """The coefficients of splines through the values along all axes: ``scipy.ndimage.spline_filter``.

    With ``prefilter=False`` `affine_transform` and others take those of order 3. `order` is 2 to 5; other parameters as of
    `spline_filter1d`.
    """
    image, _ = opened(input)
    whole = whole_number(order, "order")
    if not 2 <= whole <= 5:
        raise _core.ParameterError(f"order: {order!r} is not a whole number from 2 to 5")
    if mode not in _SPLINE_MODES:
        raise _core.ParameterError(f"mode: {mode!r} is none of {', '.join(_SPLINE_MODES)}")
    return _coefficients(image, whole, range(np.ndim(image)), output, mode, options)
