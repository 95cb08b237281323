# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""``skimage.exposure``: adaptive equalization."""
from __future__ import annotations

from typing import Any

import numpy as np

from .. import filters
from .._containers import all_take_device_arrays
from ._common import Array, as_array, missing, real_type, refuse

__all__ = ["equalize_adapthist"]

__getattr__ = missing("exposure", {
    "histogram": "chunkwise.histogram", "equalize_hist": "scikit-image has it; equalize_adapthist equalizes tiles",
})

_LEVELS = 16383


def equalize_adapthist(image: Any, kernel_size: Any = None, clip_limit: float = 0.01, nbins: int = 256, **options: Any) -> Array:
    """``skimage.exposure.equalize_adapthist`` of unsigned integers of 8 and 16 bits and of floating-point numbers.

    Results may differ by one of the 16384 levels, to which scikit-image rounds.
    """
    array = as_array(image)
    if array.ndim in (3, 4) and array.shape[-1] in (3, 4):
        refuse("image", f"an image of the shape {array.shape}", "scikit-image takes the last axis for that of colors; give one at a time")
    if array.dtype.kind == "f":
        if np.abs(array).max(initial=0) > 1:
            raise ValueError("Images of type float must be between -1 and 1.")
        levels = np.rint(np.clip(array * real_type(array.dtype).type(65535), 0, 65535)).astype(np.uint16)
    elif array.dtype in (np.uint8, np.uint16):
        levels = np.ascontiguousarray(array)
    else:
        refuse("image", f"an image of {array.dtype}", "give uint8, uint16 or floating-point numbers")
    sizes = [max(extent // 8, 1) for extent in array.shape] if kernel_size is None else list(np.ravel(kernel_size))
    if len(sizes) not in (1, array.ndim):
        raise ValueError(f"Incorrect value of `kernel_size`: {kernel_size}")
    tile = tuple(int(each) for each in (sizes if len(sizes) == array.ndim else sizes * array.ndim))
    lowest, highest = (float(levels.min()), float(levels.max())) if levels.size else (0.0, 0.0)
    equalize = filters.Clahe(tile_size=tile, clip_limit=max(clip_limit, 0.0), number_of_bins=nbins, range=(lowest, highest))
    found: Array = np.asarray(equalize(levels, output="float32", **options))
    if highest > lowest:
        found = np.floor((found.astype(np.float64) - lowest) * (_LEVELS / (highest - lowest)) + 1e-3)
    found = found.astype(real_type(array.dtype))
    least, most = found.min(initial=np.inf), found.max(initial=-np.inf)
    result: Array = (found - least) / (most - least) if most > least else np.clip(found, 0, 1)
    return result


all_take_device_arrays(globals())
