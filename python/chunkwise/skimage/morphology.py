# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""``skimage.morphology``: flat morphology, reconstruction and what follows from it, and objects."""
from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .. import _core, filters, ndimage
from .._containers import all_take_device_arrays
from ._common import Array, as_array, deliver, is_connected, is_fully_connected, missing, real_type, refuse
from .measure import label

__all__ = ["area_closing", "area_opening", "binary_closing", "binary_dilation", "binary_erosion", "binary_opening", "black_tophat",
           "closing", "diameter_closing", "diameter_opening", "dilation", "erosion",
           "h_maxima", "h_minima", "isotropic_closing", "isotropic_dilation", "isotropic_erosion", "isotropic_opening", "label",
           "local_maxima", "local_minima", "opening", "reconstruction", "remove_small_holes", "remove_small_objects", "white_tophat"]

_FOOTPRINTS = "skimage.morphology makes footprints; they are arrays, which all functions here take"
_AREA = "chunkwise.filter_labels keeps objects by their size; opening_by_reconstruction of chunkwise keeps those that a window fits"
__getattr__ = missing("morphology", {
    **{name: _FOOTPRINTS for name in ("ball", "cube", "diamond", "disk", "ellipse", "footprint_rectangle", "octagon", "octahedron",
                                      "rectangle", "square", "star")},
    **{name: _AREA for name in ("diameter_closing", "diameter_opening", "max_tree")},
    "skeletonize": "scikit-image has it", "medial_axis": "scikit-image has it", "thin": "scikit-image has it",
    "flood": "chunkwise.reconstruct(mask, marker) of a marker that is one voxel",
    "flood_fill": "chunkwise.reconstruct(mask, marker) of a marker that is one voxel",
})


def _footprints(footprint: Any, ndim: int, at_end: bool) -> Iterator[tuple[Array, int]]:
    """The parts of a footprint, with odd extents, and how often each is taken."""
    if footprint is None:
        parts = [(ndimage.generate_binary_structure(ndim, 1), 1)]
    elif isinstance(footprint, (tuple, list)) and footprint and isinstance(footprint[0], tuple):
        parts = [(np.asarray(each), int(times)) for each, times in footprint]
    else:
        parts = [(np.asarray(footprint), 1)]
    for array, times in parts:
        if array.ndim != ndim:
            raise _core.ParameterError(f"footprint: it has {array.ndim} dimensions, the image has {ndim}")
        yield np.pad(array, [((0, 1) if at_end else (1, 0)) if each % 2 == 0 else (0, 0) for each in array.shape]), times


_MODES = ("reflect", "constant", "nearest", "mirror", "wrap", "max", "min", "ignore")


def _border(mode: str, cval: float, dtype: np.dtype[Any], ignored: str) -> tuple[str, Any]:
    """SciPy's mode; beyond the edge the highest or the lowest value has no effect."""
    if mode not in _MODES:
        raise ValueError(f"unsupported mode, got {mode!r}")
    mode = ignored if mode == "ignore" else mode
    if mode not in ("max", "min"):
        return mode, cval
    if dtype.kind == "b":
        return "constant", mode == "max"
    limits: Any = np.iinfo(dtype) if dtype.kind in "iu" else None
    return "constant", (limits.max if mode == "max" else limits.min) if limits else (np.inf if mode == "max" else -np.inf)


def _flat(made: Callable[..., Array], flips: bool, image: Array, footprint: Any, mode: str, cval: float, ignored: str,
          options: dict[str, Any]) -> Array:
    mode, cval = _border(mode, cval, image.dtype, ignored)
    result = image
    for element, times in _footprints(footprint, image.ndim, at_end=False):
        for _ in range(times):
            result = made(result, footprint=np.flip(element) if flips else element, mode=mode, cval=cval, **options)
    return result


def _flipped(footprint: Any, ndim: int) -> list[tuple[Array, int]]:
    return [(np.flip(element), times) for element, times in _footprints(footprint, ndim, at_end=False)]


def erosion(image: Any, footprint: Any = None, out: Any = None, *, mode: str = "reflect", cval: float = 0.0, **options: Any) -> Array:
    """``skimage.morphology.erosion``."""
    return deliver(_flat(ndimage.grey_erosion, False, as_array(image), footprint, mode, cval, "max", options), out)


def dilation(image: Any, footprint: Any = None, out: Any = None, *, mode: str = "reflect", cval: float = 0.0, **options: Any) -> Array:
    """``skimage.morphology.dilation``."""
    return deliver(_flat(ndimage.grey_dilation, True, as_array(image), footprint, mode, cval, "min", options), out)


def opening(image: Any, footprint: Any = None, out: Any = None, *, mode: str = "reflect", cval: float = 0.0, **options: Any) -> Array:
    """``skimage.morphology.opening``."""
    array = as_array(image)
    eroded = erosion(array, footprint, mode=mode, cval=cval, **options)
    return dilation(eroded, _flipped(footprint, array.ndim), out, mode=mode, cval=cval, **options)


def closing(image: Any, footprint: Any = None, out: Any = None, *, mode: str = "reflect", cval: float = 0.0, **options: Any) -> Array:
    """``skimage.morphology.closing``."""
    array = as_array(image)
    dilated = dilation(array, footprint, mode=mode, cval=cval, **options)
    return erosion(dilated, _flipped(footprint, array.ndim), out, mode=mode, cval=cval, **options)


def _minus(first: Array, second: Array) -> Array:
    result: Array = first ^ second if first.dtype.kind == "b" else first - second
    return result


def white_tophat(image: Any, footprint: Any = None, out: Any = None, *, mode: str = "reflect", cval: float = 0.0, **options: Any) -> Array:
    """``skimage.morphology.white_tophat``."""
    array = as_array(image)
    return deliver(_minus(array, opening(array, footprint, mode=mode, cval=cval, **options)), out)


def black_tophat(image: Any, footprint: Any = None, out: Any = None, *, mode: str = "reflect", cval: float = 0.0, **options: Any) -> Array:
    """``skimage.morphology.black_tophat``."""
    array = as_array(image)
    return deliver(_minus(closing(array, footprint, mode=mode, cval=cval, **options), array), out)


def _binary(made: Callable[..., Array], image: Any, footprint: Any, mode: str, border: int, options: dict[str, Any]) -> Array:
    if mode not in ("max", "min", "ignore"):
        raise ValueError(f"unsupported mode, got {mode!r}")
    result = as_array(image)
    for element, times in _footprints(footprint, result.ndim, at_end=True):
        result = made(result, structure=element != 0, iterations=times, border_value=border, **options)
    return result


def binary_erosion(image: Any, footprint: Any = None, out: Any = None, *, mode: str = "ignore", **options: Any) -> Array:
    """``skimage.morphology.binary_erosion``."""
    return deliver(_binary(ndimage.binary_erosion, image, footprint, mode, 0 if mode == "min" else 1, options), out)


def binary_dilation(image: Any, footprint: Any = None, out: Any = None, *, mode: str = "ignore", **options: Any) -> Array:
    """``skimage.morphology.binary_dilation``."""
    return deliver(_binary(ndimage.binary_dilation, image, footprint, mode, 1 if mode == "max" else 0, options), out)


def _padded(footprint: Any, ndim: int) -> list[tuple[Array, int]]:
    return list(_footprints(footprint, ndim, at_end=True))


def binary_opening(image: Any, footprint: Any = None, out: Any = None, *, mode: str = "ignore", **options: Any) -> Array:
    """``skimage.morphology.binary_opening``."""
    array = as_array(image)
    parts = _padded(footprint, array.ndim)
    return binary_dilation(binary_erosion(array, parts, mode=mode, **options), parts, out, mode=mode, **options)


def binary_closing(image: Any, footprint: Any = None, out: Any = None, *, mode: str = "ignore", **options: Any) -> Array:
    """``skimage.morphology.binary_closing``."""
    array = as_array(image)
    parts = _padded(footprint, array.ndim)
    return binary_erosion(binary_dilation(array, parts, mode=mode, **options), parts, out, mode=mode, **options)


# Reconstruction


def reconstruction(seed: Any, mask: Any, method: str = "dilation", footprint: Any = None, offset: Any = None, **options: Any) -> Array:
    """``skimage.morphology.reconstruction`` with the neighborhoods of all neighbors (the default) and of faces; images of up to
    three dimensions."""
    if offset is not None:
        refuse("offset", offset, "footprints have their center in the middle")
    start, limit = as_array(seed, "seed"), as_array(mask, "mask")
    if start.shape != limit.shape:
        raise _core.ParameterError(f"mask: its shape is {limit.shape}, the seed's is {start.shape}")
    if method not in ("dilation", "erosion"):
        raise ValueError(f"Reconstruction method can be one of 'erosion' or 'dilation'. Got '{method}'.")
    erodes = method == "erosion"
    if np.any(start < limit if erodes else start > limit):
        raise ValueError(f"Intensity of seed image must be {'greater' if erodes else 'less'} than that of the mask image for "
                         f"reconstruction by {method}.")
    dtype = real_type(limit.dtype)
    made = filters.Reconstruct(erosion=erodes, fully_connected=is_fully_connected(footprint, start.ndim))
    # In the type of the result, as scikit-image does.
    result: Array = made(limit.astype(dtype, copy=False), start.astype(dtype, copy=False), **options)
    return result


def _domes(image: Any, height: Any, footprint: Any, sign: int, options: dict[str, Any]) -> Array:
    array = as_array(image)
    if array.size == 0 or height > np.ptp(array):
        return np.zeros(array.shape, np.uint8)
    if isinstance(height, (float, np.floating)) and array.dtype.kind in "iu":
        if height % 1 != 0:
            warnings.warn("possible precision loss converting image to floating point. To silence this warning, ensure image and h "
                          "have same data type.", stacklevel=3)
            array = array.astype(float)
        else:
            height = array.dtype.type(height)
    if height == 0:
        raise ValueError(f"h = 0 is ambiguous, use local_{'maxima' if sign > 0 else 'minima'}() instead?")
    shifted: Array
    if array.dtype.kind == "f":
        # So much below that rounding does not count.
        room = 2 * np.finfo(array.dtype).resolution * np.abs(array)
        shifted = array - height - room if sign > 0 else array + height + room
    else:
        limits = np.iinfo(array.dtype)
        value = int(height)
        shifted = (np.where(array < limits.min + value, limits.min, array - array.dtype.type(value)) if sign > 0 else
                   np.where(array > limits.max - value, limits.max, array + array.dtype.type(value)))
    found = reconstruction(shifted, array, "dilation" if sign > 0 else "erosion", footprint, **options)
    residue = array - found if sign > 0 else found - array
    reached: Array = (residue >= height).astype(np.uint8)
    return reached


def h_maxima(image: Any, h: Any, footprint: Any = None, **options: Any) -> Array:
    """``skimage.morphology.h_maxima``: 1 at maxima of a height of at least h. ``chunkwise.h_maxima`` is the image below them."""
    return _domes(image, h, footprint, 1, options)


def h_minima(image: Any, h: Any, footprint: Any = None, **options: Any) -> Array:
    """``skimage.morphology.h_minima``: 1 at minima of a depth of at least h."""
    return _domes(image, h, footprint, -1, options)


def _extrema(made: Any, image: Any, footprint: Any, connectivity: Any, indices: bool, allow_borders: bool, options: dict[str, Any]) -> Any:
    array = as_array(image)
    if footprint is not None:
        full = is_fully_connected(footprint, array.ndim)
    else:
        number = is_connected(connectivity, array.ndim)
        if number not in (1, array.ndim):
            refuse("connectivity", connectivity, f"1 and {array.ndim} are")
        full = number == array.ndim
    if any(each < 3 for each in array.shape) and not allow_borders:
        raise ValueError("image: it has fewer than 3 voxels along an axis")
    found = made(1, background_value=0, flat_is_maxima=False, fully_connected=full)(
        array.view(np.uint8) if array.dtype.kind == "b" else array, **options) != 0
    if not allow_borders:
        # A plateau that reaches the edge is none.
        plateaus = filters.Label(connectivity=array.ndim if full else 1)(found)
        edge = np.ones(array.shape, bool)
        edge[(slice(1, -1),) * array.ndim] = False
        found &= ~np.isin(plateaus, plateaus[edge & found])
    return tuple(np.nonzero(found)) if indices else found


def local_maxima(image: Any, footprint: Any = None, connectivity: int | None = None, indices: bool = False, allow_borders: bool = True,
                 **options: Any) -> Any:
    """``skimage.morphology.local_maxima`` with neighbors that share a face, or all; images of up to three dimensions."""
    return _extrema(filters.RegionalMaxima, image, footprint, connectivity, indices, allow_borders, options)


def local_minima(image: Any, footprint: Any = None, connectivity: int | None = None, indices: bool = False, allow_borders: bool = True,
                 **options: Any) -> Any:
    """``skimage.morphology.local_minima``: see `local_maxima`."""
    def made(value: Any, flat_is_maxima: bool, **given: Any) -> Any:
        return filters.RegionalMinima(value, flat_is_minima=flat_is_maxima, **given)

    return _extrema(made, image, footprint, connectivity, indices, allow_borders, options)


def _by_size(made: Any, attribute: str, image: Any, threshold: Any, connectivity: Any, parent: Any, tree_traverser: Any,
             options: dict[str, Any]) -> Array:
    for name, given in (("parent", parent), ("tree_traverser", tree_traverser)):
        if given is not None:
            refuse(name, given, "the tree is made anew")
    array = as_array(image)
    found: Array = made(threshold, attribute=attribute, connectivity=is_connected(connectivity, array.ndim))(array, **options)
    return found


def area_opening(image: Any, area_threshold: float = 64, connectivity: Any = 1, parent: Any = None, tree_traverser: Any = None,
                 **options: Any) -> Array:
    """``skimage.morphology.area_opening`` of up to three dimensions."""
    return _by_size(filters.AreaOpening, "area", image, area_threshold, connectivity, parent, tree_traverser, options)


def area_closing(image: Any, area_threshold: float = 64, connectivity: Any = 1, parent: Any = None, tree_traverser: Any = None,
                 **options: Any) -> Array:
    """``skimage.morphology.area_closing`` of up to three dimensions."""
    return _by_size(filters.AreaClosing, "area", image, area_threshold, connectivity, parent, tree_traverser, options)


def diameter_opening(image: Any, diameter_threshold: float = 8, connectivity: Any = 1, parent: Any = None, tree_traverser: Any = None,
                     **options: Any) -> Array:
    """``skimage.morphology.diameter_opening`` of up to three dimensions."""
    return _by_size(filters.AreaOpening, "extent", image, diameter_threshold, connectivity, parent, tree_traverser, options)


def diameter_closing(image: Any, diameter_threshold: float = 8, connectivity: Any = 1, parent: Any = None, tree_traverser: Any = None,
                     **options: Any) -> Array:
    """``skimage.morphology.diameter_closing`` of up to three dimensions."""
    return _by_size(filters.AreaClosing, "extent", image, diameter_threshold, connectivity, parent, tree_traverser, options)


# Objects


def remove_small_objects(ar: Any, min_size: Any = None, connectivity: int = 1, *, max_size: int = 64, out: Any = None,
                         **options: Any) -> Array:
    """``skimage.morphology.remove_small_objects``: without objects of up to max_size voxels, or of fewer than min_size."""
    array = as_array(ar, "ar")
    if array.dtype.kind not in "iub":
        raise TypeError("Only bool or integer image types are supported. Got " + str(array.dtype))
    most = int(max_size) if min_size is None else int(np.ceil(min_size)) - 1
    objects: Array = label(array, connectivity=connectivity, **options) if array.dtype.kind == "b" else array
    if objects.size and objects.min() < 0:
        raise ValueError("Negative value labels are not supported. Try relabeling the input with `scipy.ndimage.label` or "
                         "`skimage.morphology.label`.")
    sizes = np.bincount(objects.ravel())
    result = array.copy()
    result[(sizes <= most)[objects]] = 0
    return deliver(result, out)


def remove_small_holes(ar: Any, area_threshold: Any = None, connectivity: int = 1, *, max_size: int = 64, out: Any = None,
                       **options: Any) -> Array:
    """``skimage.morphology.remove_small_holes``: with holes of up to max_size voxels filled, or of fewer than area_threshold."""
    array = as_array(ar, "ar")
    if array.dtype.kind not in "iub":
        raise TypeError("Only bool or integer image types are supported. Got " + str(array.dtype))
    if array.dtype.kind != "b":
        warnings.warn("Any labeled images will be returned as a boolean array. Did you mean to use a boolean array?", UserWarning, stacklevel=2)
    return deliver(~remove_small_objects(~array.astype(bool), area_threshold, connectivity, max_size=max_size, **options), out)


def _eroded(image: Any, radius: float, spacing: Any, options: dict[str, Any]) -> Array:
    inside = as_array(image) != 0
    if inside.all():
        # Nothing is outside, and all distances are infinite; SciPy's, and scikit-image's, mean nothing then.
        return np.ones(inside.shape, bool)
    return np.asarray(ndimage.distance_transform_edt(inside, spacing, **options) > radius)


def isotropic_erosion(image: Any, radius: float, out: Any = None, spacing: Any = None, **options: Any) -> Array:
    """``skimage.morphology.isotropic_erosion``."""
    return deliver(_eroded(image, radius, spacing, options), out)


def isotropic_dilation(image: Any, radius: float, out: Any = None, spacing: Any = None, **options: Any) -> Array:
    """``skimage.morphology.isotropic_dilation``."""
    return deliver(~_eroded(as_array(image) == 0, radius, spacing, options), out)


def isotropic_opening(image: Any, radius: float, out: Any = None, spacing: Any = None, **options: Any) -> Array:
    """``skimage.morphology.isotropic_opening``."""
    return isotropic_dilation(isotropic_erosion(image, radius, spacing=spacing, **options), radius, out, spacing, **options)


def isotropic_closing(image: Any, radius: float, out: Any = None, spacing: Any = None, **options: Any) -> Array:
    """``skimage.morphology.isotropic_closing``."""
    return isotropic_erosion(isotropic_dilation(image, radius, spacing=spacing, **options), radius, out, spacing, **options)


all_take_device_arrays(globals())
