# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Functions that all modules with scikit-image's names use."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .. import _core
from .._containers import open_image

Array = np.ndarray[Any, Any]


def as_array(image: Any, name: str = "image") -> Array:
    """An image in memory."""
    try:
        return open_image(image).array
    except TypeError as error:
        raise TypeError(str(error).replace("input:", f"{name}:", 1)) from None


def refuse(name: str, value: Any, instead: str) -> None:
    """Throws what to do where an argument has no counterpart here."""
    raise _core.ParameterError(f"{name}: {value!r} is not possible here; {instead}")


def real_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type in which scikit-image computes with real numbers."""
    return np.dtype(np.float32 if dtype in (np.float16, np.float32) else np.float64)


def as_real(image: Array, preserve_range: bool) -> Array:
    """Real numbers as they are; integers from 0, or -1, to 1, unless their range is preserved."""
    dtype = image.dtype
    if dtype.kind == "f":
        return image.astype(real_type(dtype), copy=False)
    if preserve_range or dtype.kind == "b":
        return image.astype(np.float64)
    scaled: Array = np.multiply(image, 1.0 / np.iinfo(dtype).max, dtype=np.float64)
    return np.maximum(scaled, -1.0) if dtype.kind == "i" else scaled


def is_connected(connectivity: Any, ndim: int) -> int:
    """scikit-image's connectivity, of which none is that of all neighbors."""
    number = ndim if connectivity is None else int(connectivity)
    if number != (ndim if connectivity is None else connectivity) or not 1 <= number <= ndim:
        raise ValueError(f"connectivity: {connectivity!r} is not a whole number from 1 to {ndim}")
    return number


def is_fully_connected(footprint: Any, ndim: int) -> bool:
    """Whether a neighborhood has all neighbors, or only neighbors that share a face; without a footprint it has all."""
    if footprint is None:
        return True
    array = np.asarray(footprint) != 0
    if array.shape == (3,) * ndim:
        distance = np.abs(np.indices(array.shape) - 1).sum(axis=0)
        around = array | (distance == 0)
        if bool(around.all()):
            return True
        if np.array_equal(around, distance <= 1):
            return False
    raise _core.ParameterError(f"footprint: of shape {array.shape}; here it is one of 3 along each axis, of ones or of the neighbors "
                               "that share a face")


def deliver(result: Array, out: Any) -> Array:
    if out is None:
        return result
    if not isinstance(out, np.ndarray) or out.shape != result.shape:
        raise _core.ParameterError(f"out: it is no array of the shape {result.shape}")
    out[...] = result
    return out


def missing(module: str, instead: Mapping[str, str]) -> Callable[[str], Any]:
    """A module's __getattr__."""

    def get(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(f"chunkwise.skimage.{module} has no {name}: " +
                             instead.get(name, f"skimage.{module} has it, if it exists; chunkwise.regions cuts an image of any size "
                                               "into regions for a function of your own"))

    return get
