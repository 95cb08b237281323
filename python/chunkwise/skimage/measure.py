# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""``skimage.measure``: labels and tables of what is measured of them."""
from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core, _measure, filters
from .._containers import all_take_device_arrays
from ._common import Array, as_array, is_connected, missing, refuse

__all__ = ["label", "regionprops_table"]

__getattr__ = missing("measure", {
    "regionprops": "regionprops_table, or chunkwise.measure, which gives a column for each property; find_objects of chunkwise.ndimage "
                   "gives the boxes",
    "block_reduce": "scikit-image has it", "euler_number": "scikit-image has it",
    "perimeter": "chunkwise.measure has surface columns", "centroid": "chunkwise.ndimage.center_of_mass",
})


def label(label_image: Any, background: int | None = None, return_num: bool = False, connectivity: int | None = None,
          **options: Any) -> Any:
    """``skimage.measure.label`` of up to three dimensions."""
    array = as_array(label_image, "label_image")
    if array.ndim > 3:
        raise NotImplementedError("label_image: 1 to 3 dimensions are possible")
    if array.dtype.kind not in "iub":
        raise TypeError(f"label_image: {array.dtype} is no type of integers or bool")
    number = is_connected(connectivity, array.ndim)
    dtype = np.int32 if array.dtype.kind == "b" else np.int64
    if array.dtype.kind == "b":
        array = array.view(np.uint8)
    background = 0 if background is None else int(background)
    limits = np.iinfo(array.dtype)
    if not limits.min <= background <= limits.max:
        # No voxel is background.
        made = filters.Label(connectivity=number, rule="equal", label_background=True)
    else:
        made = filters.Label(connectivity=number, rule="equal", background=background)
    labels: Array = made(array, output=dtype, **options)
    return (labels, int(labels.max(initial=0))) if return_num else labels


def regionprops_table(label_image: Any, intensity_image: Any = None, properties: Any = ("label", "bbox"), *, cache: bool = True,
                      separator: str = "-", extra_properties: Any = None, spacing: Any = None, **options: Any) -> dict[str, Array]:
    """``skimage.measure.regionprops_table`` with the properties that ``chunkwise.measure`` has, but for rounding.

    `cache` has no effect. Properties of one number are columns of their name, others have a column for each number.
    """
    if extra_properties is not None:
        refuse("extra_properties", extra_properties, "a function of an object's voxels needs chunkwise.ndimage.find_objects")
    wanted = list(properties)
    array = as_array(label_image, "label_image")
    if array.dtype.kind not in "iu":
        raise TypeError("Non-integer label_image types are not supported")
    table = _measure.measure(array, None if intensity_image is None else as_array(intensity_image, "intensity_image"),
                             spacing=1.0 if spacing is None else spacing, columns=[each for each in wanted if each != "label"] or ["area"],
                             **options)
    lengths = np.broadcast_to(np.asarray(1.0 if spacing is None else spacing, np.float64), (array.ndim,))
    for key, values in table.items():
        name, _, axis = key.partition("-")
        if name in ("centroid", "centroid_weighted"):
            # In units of the spacing.
            table[key] = values * lengths[int(axis)]
    result = {}
    for name in wanted:
        for key, values in table.items():
            if key == name or (key.startswith(name + "-") and key[len(name) + 1:].replace("-", "").isdigit()):
                result[key.replace("-", separator)] = values
    return result


all_take_device_arrays(globals())
