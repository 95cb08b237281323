# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Factors of Fourier transforms, by NumPy, with the names and meanings of ``scipy.ndimage``. The filters of images need no
transform of yours: `gaussian_filter`, `uniform_filter` and `shift` are exact at the image's edges, which a transform joins."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import _core
from ._arrays import check_output
from ._containers import takes_device_arrays
from ._windows import axis_of, opened, per_axis, whole_number

_Array = np.ndarray[Any, Any]
_COMPLEX = (np.dtype(np.complex64), np.dtype(np.complex128))
_DTYPES = (*_COMPLEX, np.dtype(np.float32), np.dtype(np.float64))


def _opened(input: Any, output: Any, dtypes: Sequence[np.dtype[Any]]) -> tuple[_Array, np.dtype[Any]]:
    """The transform, and the type of the result: the transform's where it is one of `dtypes`, else the last one."""
    image = np.asarray(opened(input)[0])
    if image.ndim == 0:
        raise _core.ParameterError("input: it has no dimensions")
    is_complex = image.dtype.kind == "c"
    if output is None:
        native = image.dtype.newbyteorder("=")
        return image, native if native in dtypes else np.dtype(np.complex128) if is_complex else dtypes[-1]
    dtype = (check_output(output, image.shape).dtype if isinstance(output, np.ndarray) else np.dtype(output)).newbyteorder("=")
    if dtype not in dtypes:
        raise _core.ParameterError(f"output: {dtype} is none of {', '.join(map(str, dtypes))}")
    if is_complex and dtype.kind != "c":
        raise _core.ParameterError(f"output: {dtype} cannot hold a complex result")
    return image, dtype


def _numbers(value: Any, count: int, name: str) -> list[float]:
    numbers = [float(each) for each in per_axis(value, count, name)]
    if not all(map(math.isfinite, numbers)):
        raise _core.ParameterError(f"{name}: {value!r} is not finite")
    return numbers


def _frequencies(shape: tuple[int, ...], n: Any, axis: Any) -> list[_Array]:
    """For each axis the periods in a voxel of the transform's numbers, for NumPy to broadcast; along `axis` those of a real
    transform of n voxels."""
    n, real = whole_number(n, "n"), axis_of(axis, len(shape))
    if n == 0:
        raise _core.ParameterError("n: a transform of 0 voxels has no frequencies")
    values = [np.arange(extent) / n if n > 0 and i == real else np.fft.fftfreq(extent) if extent else np.zeros(0)
              for i, extent in enumerate(shape)]
    return [each.reshape([-1 if j == i else 1 for j in range(len(shape))]) for i, each in enumerate(values)]


def _multiply(input: Any, name: str, value: Any, n: Any, axis: Any, output: Any, factor_of: Callable[[float, _Array], _Array],
              dtypes: Sequence[np.dtype[Any]] = _DTYPES) -> _Array:
    """The transform times a factor for each axis."""
    image, dtype = _opened(input, output, dtypes)
    result = image.astype(np.complex128 if dtype.kind == "c" else np.float64)
    for number, frequencies in zip(_numbers(value, image.ndim, name), _frequencies(image.shape, n, axis)):
        result *= factor_of(number, frequencies)
    return _deliver(result, dtype, output)


def _deliver(result: _Array, dtype: np.dtype[Any], output: Any) -> _Array:
    if isinstance(output, np.ndarray):
        output[...] = result
        return output
    return result.astype(dtype, copy=False)


@takes_device_arrays
def fourier_gaussian(input: Any, sigma: Any, n: int = -1, axis: int = -1, output: Any = None) -> Any:
    """The Fourier transform of an image times that of a Gaussian: ``scipy.ndimage.fourier_gaussian``.

    Parameters
    ----------
    input : array_like
        A transform, whose first numbers belong to the frequency 0.
    sigma : float, or one for each axis
        In voxels.
    n : int
        If it is positive, the input is half of the transform of a real image of n voxels along `axis`, as
        ``numpy.fft.rfftn`` gives it.
    axis : int
    output : array or dtype
        complex64, complex128, float32 or float64; by default the input's type, or float64.

    Examples
    --------
    >>> import numpy as np
    >>> from chunkwise import ndimage as ndi
    >>> np.round(ndi.fourier_gaussian(np.ones(4), 1.0), 3)
    array([1.   , 0.291, 0.007, 0.291])
    """
    return _multiply(input, "sigma", sigma, n, axis, output, lambda each, at: np.exp(-2.0 * (math.pi * each * at) ** 2))


@takes_device_arrays
def fourier_uniform(input: Any, size: Any, n: int = -1, axis: int = -1, output: Any = None) -> Any:
    """The Fourier transform of an image times that of a box: ``scipy.ndimage.fourier_uniform``.

    Parameters
    ----------
    size : float, or one for each axis
        In voxels.

    The other parameters are those of `fourier_gaussian`.
    """
    return _multiply(input, "size", size, n, axis, output, lambda each, at: np.sinc(each * at))


@takes_device_arrays
def fourier_shift(input: Any, shift: Any, n: int = -1, axis: int = -1, output: Any = None) -> Any:
    """The Fourier transform of an image that is shifted, and periodic: ``scipy.ndimage.fourier_shift``.

    Parameters
    ----------
    shift : float, or one for each axis
        In voxels.
    output : array or dtype
        complex64 or complex128; by default the input's type, or complex128.

    The other parameters are those of `fourier_gaussian`.
    """
    return _multiply(input, "shift", shift, n, axis, output, lambda each, at: np.exp(-2j * math.pi * each * at), _COMPLEX)


def _bessel(x: _Array) -> _Array:
    """The Bessel function of the first kind of order 1. The mean of its integral over a period converges like a power
    series once there are more points than x."""
    total = np.zeros_like(x)
    points = int(x.max(initial=0.0)) + 40
    for angle in (np.arange(points) + 0.5) * (math.pi / points):
        total += np.cos(angle - x * math.sin(angle))
    return total / points


@takes_device_arrays
def fourier_ellipsoid(input: Any, size: Any, n: int = -1, axis: int = -1, output: Any = None) -> Any:
    """The Fourier transform of an image times that of an ellipsoid: ``scipy.ndimage.fourier_ellipsoid``.

    Parameters
    ----------
    input : array_like
        A transform of 1 to 3 dimensions.
    size : float, or one for each axis
        The diameter, in voxels.

    The other parameters are those of `fourier_gaussian`.
    """
    image, dtype = _opened(input, output, _DTYPES)
    if image.ndim > 3:
        raise _core.ParameterError(f"input: it has {image.ndim} dimensions, and ellipsoids 1 to 3")
    squares = np.zeros(image.shape)
    for each, at in zip(_numbers(size, image.ndim, "size"), _frequencies(image.shape, n, axis)):
        squares += (math.pi * each * at) ** 2
    reach = np.sqrt(squares)
    safe = np.where(reach > 0, reach, 1.0)
    if image.ndim == 1:
        factor = np.sin(safe) / safe
    elif image.ndim == 2:
        factor = 2.0 * _bessel(safe) / safe
    else:
        # The difference has lost all digits where it is small.
        factor = np.where(safe < 1e-2, 1.0 - safe ** 2 / 10.0 + safe ** 4 / 280.0, 3.0 * (np.sin(safe) - safe * np.cos(safe)) / safe ** 3)
    return _deliver(image * np.where(reach > 0, factor, 1.0), dtype, output)
