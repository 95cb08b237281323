# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""``skimage.segmentation``: watershed, and labels that are cleared, grown, bounded and numbered."""
from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core, _measure, filters, ndimage
from .._containers import all_take_device_arrays
from ._common import Array, as_array, as_real, deliver, is_connected, missing, refuse
from .measure import label

__all__ = ["clear_border", "expand_labels", "find_boundaries", "mark_boundaries", "relabel_sequential",
           "watershed"]

__getattr__ = missing("segmentation", {
    "flood": "chunkwise.reconstruct of a marker that is one voxel",
    "random_walker": "scikit-image has it; chunkwise.watershed parts an image by markers too",
    "join_segmentations": "chunkwise.label(first * (second.max() + 1) + second, rule='equal')",
})


def watershed(image: Any, markers: Any = None, connectivity: Any = 1, offset: Any = None, mask: Any = None, compactness: float = 0,
              watershed_line: bool = False, **options: Any) -> Array:
    """``skimage.segmentation.watershed`` of up to three dimensions, by a minimum spanning forest.

    The labels are scikit-image's where no two voxels of the image are equal and the markers are all minima. They differ on
    plateaus, where scikit-image's lie halfway between the markers and these follow raster order, and where basins have no
    marker. Lines are voxels beside a smaller label, found afterwards.
    """
    if offset is not None:
        refuse("offset", offset, "neighborhoods have their center in the middle")
    if compactness != 0:
        refuse("compactness", compactness, "scikit-image has compact watersheds")
    array = as_array(image)
    number = connectivity
    if np.ndim(connectivity):
        structure = np.asarray(connectivity) != 0
        distances = np.abs(np.indices(structure.shape) - 1).sum(axis=0)
        number = next((each for each in range(1, array.ndim + 1) if structure.shape == (3,) * array.ndim
                       and np.array_equal(structure | (distances == 0), distances <= each)), 0)
        if number == 0:
            refuse("connectivity", structure.shape, f"numbers from 1 to {array.ndim} and their neighborhoods are")
    number = is_connected(number, array.ndim)
    seeds = None if markers is None else as_array(markers, "markers")
    if seeds is not None and seeds.ndim == 0:
        refuse("markers", markers, "a number of markers is not; an image of markers is")
    if seeds is not None and seeds.dtype.kind == "b":
        raise TypeError("markers: bool; chunkwise.skimage.measure.label numbers them")
    within = None if mask is None else as_array(mask, "mask") != 0
    made = filters.Watershed(connectivity=number, lines=bool(watershed_line))
    found: Array = made(array, seeds, within, output=np.int32, **options)
    return found


def clear_border(labels: Any, buffer_size: int = 0, bgval: int = 0, mask: Any = None, *, out: Any = None, **options: Any) -> Array:
    """``skimage.segmentation.clear_border`` of up to three dimensions."""
    array = as_array(labels, "labels")
    if any(buffer_size >= each for each in array.shape) and mask is None:
        raise ValueError("buffer size may not be greater than labels size")
    if mask is None:
        border = np.ones(array.shape, bool)
        border[tuple(slice(buffer_size + 1, max(each - buffer_size - 1, 0)) for each in array.shape)] = False
    else:
        given = as_array(mask, "mask")
        if given.shape != array.shape:
            raise ValueError(f"labels and mask should have the same shape but are {array.shape} and {given.shape}")
        if given.dtype != bool:
            raise TypeError("mask should be of type bool.")
        border = ~given
    objects: Array
    objects, count = label(array, background=0, return_num=True, **options)
    removed = np.zeros(count + 1, bool)
    removed[objects[border]] = True
    result = array.copy()
    result[removed[objects]] = bgval
    return deliver(result, out)


def expand_labels(label_image: Any, distance: float = 1, spacing: Any = 1, **options: Any) -> Array:
    """``skimage.segmentation.expand_labels`` of up to three dimensions; a voxel that is as near to several labels may get another
    one of them than scikit-image's, always the same."""
    array = as_array(label_image, "label_image")
    lengths = [float(each) for each in np.broadcast_to(spacing, (array.ndim,))]
    result: Array = filters.ExpandLabels(float(distance), spacing=lengths)(array, output=array.dtype, **options)
    return result


def find_boundaries(label_img: Any, connectivity: int = 1, mode: str = "thick", background: int = 0, **options: Any) -> Array:
    """``skimage.segmentation.find_boundaries`` with the modes thick, inner and outer and the background 0. With the mode outer
    and labels of 64 bits scikit-image misses the background beside objects, because it rounds the largest label."""
    if mode == "subpixel":
        refuse("mode", mode, "thick, inner and outer are")
    if background != 0:
        refuse("background", background, "0 is")
    array = as_array(label_img, "label_img")
    number = is_connected(connectivity, array.ndim)
    made = _measure.find_boundaries(array.view(np.uint8) if array.dtype.kind == "b" else array, number, mode, **options)  # type: ignore[arg-type]
    return np.asarray(made)


def mark_boundaries(image: Any, label_img: Any, color: Any = (1, 1, 0), outline_color: Any = None, mode: str = "outer",
                    background_label: int = 0, **options: Any) -> Array:
    """``skimage.segmentation.mark_boundaries`` but for the mode "subpixel": the image in color, with the boundaries of labels.

    They do not depend on the number that the background has, as scikit-image's of the mode "outer" do.
    """
    if mode not in ("thick", "inner", "outer"):
        refuse("mode", mode, "thick, inner and outer are")
    array, labels = as_array(image), as_array(label_img, "label_img")
    marked = as_real(array, False)
    marked = np.stack([marked] * 3, axis=-1) if marked.ndim == labels.ndim else marked.copy()
    if marked.shape != (*labels.shape, 3):
        raise ValueError(f"image: its shape is {array.shape}; with that of the labels, {labels.shape}, it is gray or has three colors")
    if background_label != 0:
        # The background is 0 here, and others begin with 1.
        labels = np.where(labels == background_label, 0, np.unique(labels, return_inverse=True)[1].reshape(labels.shape) + 1)
    found = find_boundaries(labels, mode=mode, **options)
    if outline_color is not None:
        marked[ndimage.maximum_filter(found, 3, **options)] = outline_color
    marked[found] = color
    return marked


def relabel_sequential(label_field: Any, offset: int = 1) -> tuple[Array, Array, Array]:
    """``skimage.segmentation.relabel_sequential``, by NumPy's sorting, on one core. The maps are arrays: ``forward[old]`` is the new
    label and ``inverse[new]`` the old one, 0 where there is none; scikit-image's are ArrayMaps, which are indexed in the same way."""
    array = as_array(label_field, "label_field")
    if array.dtype.kind not in "iu":
        raise TypeError("label_field must have an integer dtype")
    if offset <= 0:
        raise ValueError("Offset must be strictly positive.")
    values, places = np.unique(array, return_inverse=True)
    if values.size == 0:
        raise ValueError("label_field: it has no voxels")
    if values[0] < 0:
        raise ValueError("Cannot relabel array that contains negative values.")
    if int(values[-1]) > 2**31:
        raise _core.ParameterError(f"label_field: its largest label is {values[-1]}, which makes the maps too long; "
                                   "chunkwise.filter_labels(labels, relabel=True) numbers without them")
    has_background = values[0] == 0
    numbers = np.arange(int(offset), int(offset) + len(values) - has_background)
    numbers = np.concatenate([[0], numbers]) if has_background else numbers
    needed = np.min_scalar_type(numbers[-1])
    fits = array.dtype.itemsize >= needed.itemsize and numbers[-1] < np.iinfo(array.dtype).max
    numbers = numbers.astype(array.dtype if fits else needed)
    forward = np.zeros(int(values[-1]) + 1, numbers.dtype)
    forward[values] = numbers
    inverse = np.zeros(int(numbers[-1]) + 1, array.dtype)
    inverse[numbers] = values
    return numbers[places].reshape(array.shape), forward, inverse


all_take_device_arrays(globals())
