# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""``skimage.feature``: the structure tensor and corners by Harris."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import filters
from .._containers import all_take_device_arrays
from ._common import Array, as_array, as_real, missing, refuse

__all__ = ["corner_harris", "structure_tensor"]

__getattr__ = missing("feature", {
    "hessian_matrix_eigvals": "chunkwise.hessian_eigenvalues",
    "structure_tensor_eigenvalues": "chunkwise.structure_tensor(image, outer_sigma) has the eigenvalues in one pass",
})


def _tensor(array: Array, sigma: Any, mode: str, cval: float, result: Any, options: dict[str, Any], **given: Any) -> Array:
    """The engine's result for a sum of Sobel's weights of 1."""
    if mode == "constant" and cval != 0:
        refuse("cval", cval, "gradients are 0 beyond the edge")
    if not 2 <= array.ndim <= 3:
        refuse("image", f"with {array.ndim} dimensions", "it has 2 or 3")
    widths = [float(each) for each in (sigma if np.ndim(sigma) else [sigma] * array.ndim)]
    if len(widths) != array.ndim:
        raise ValueError("sigma must have as many elements as image has axes")
    # Windows have round(4 sigma) voxels to either side, the engine's the next number above cutoff * sigma.
    radii = [int(4.0 * width + 0.5) for width in widths]
    cutoff = max(radius - 0.5 for radius in radii) / max(widths) if max(widths) > 0 else 4.0
    if cutoff <= 0 or any(math.ceil(cutoff * width) != radius for width, radius in zip(widths, radii)):
        refuse("sigma", sigma, "no multiple of it gives scikit-image's radii; one number above 0.125 does")
    border: dict[str, Any] = {"mode": mode}
    found = filters.StructureTensor(tuple(widths), result=result, operator="sobel", cutoff=cutoff, spacing=False, **given,
                                    **border)(as_real(array, False), **options)
    return np.asarray(found)


def structure_tensor(image: Any, sigma: Any = 1, mode: str = "constant", cval: float = 0, order: str = "rc",
                     **options: Any) -> list[Array]:
    """``skimage.feature.structure_tensor`` of 2-D and 3-D images, but for the rounding of floating-point numbers."""
    array = as_array(image)
    if order not in ("rc", "xy"):
        raise ValueError(f"order {order} is invalid. Must be either 'rc' or 'xy'")
    if order == "xy" and array.ndim > 2:
        raise ValueError('Only "rc" order is supported for dim > 2.')
    found = _tensor(array, sigma, mode, cval, "elements", options, output_components=True)
    found *= 4.0 ** (2 * array.ndim - 1)
    # The engine's triangle begins with x, the last axis.
    numbers = range(3) if order == "xy" else (2, 1, 0) if array.ndim == 2 else (5, 4, 2, 3, 1, 0)
    return [np.ascontiguousarray(found[..., number]) for number in numbers]


def corner_harris(image: Any, method: str = "k", k: float = 0.05, eps: float = 1e-6, sigma: Any = 1, **options: Any) -> Array:
    """``skimage.feature.corner_harris`` of 2-D images, but for the rounding of floating-point numbers."""
    array = as_array(image)
    if array.ndim != 2:
        refuse("image", f"with {array.ndim} dimensions", "it has 2")
    if method == "k":
        return 4096.0 * _tensor(array, sigma, "constant", 0, "cornerness", options, harris=k)
    first, both, last = structure_tensor(array, sigma, **options)
    result: Array = 2 * (first * last - both**2) / (first + last + eps)
    return result


all_take_device_arrays(globals())
