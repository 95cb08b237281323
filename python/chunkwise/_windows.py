# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Windows as SciPy has them, of any extent and with an origin, made of the engine's, which are odd and lie around their voxel.

A footprint or weights that reach further to one side are embedded in an odd array with zeros.
"""
from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from . import _core, filters
from ._arrays import ParameterTypeError, as_input, check_dtype, check_output, threads_of_cpu
from ._containers import is_on_device, open_image
from ._device import dtype_of as dtype_on_device
from ._dispatch import runner_of
from ._filter import Filter
from ._words import shown

ENGINE_MODES = {
    "reflect": "reflect", "grid-mirror": "reflect", "nearest": "nearest", "constant": "constant",
    "grid-constant": "constant", "wrap": "wrap", "grid-wrap": "wrap", "mirror": "mirror",
}
#: Windows of the engine extend along so many axes.
_MOST_AXES = 3


class Side(NamedTuple):
    """A window along one axis: so many voxels before its voxel and after it, and what is beyond the image's edge."""

    axis: int
    before: int
    after: int
    mode: str

    @property
    def is_centered(self) -> bool:
        return self.before == self.after

    def reflected(self) -> Side:
        return self._replace(before=self.after, after=self.before)


def frozen(value: Any) -> Any:
    """An argument as a value that has a hash: sequences are tuples."""
    try:
        hash(value)
        return value
    except TypeError:
        pass
    if isinstance(value, (list, tuple)):
        return tuple(frozen(each) for each in value)
    # An array of one number, or of a number for each axis.
    return frozen(value.tolist()) if isinstance(value, np.ndarray) else value


# Images


def shape_of(image: Any) -> tuple[int, ...]:
    if type(image) is np.ndarray:
        shape: tuple[int, ...] = image.shape
        return shape
    if hasattr(image, "GetLargestPossibleRegion"):
        return tuple(int(each) for each in image.GetLargestPossibleRegion().GetSize())[::-1]
    if type(image).__module__.partition(".")[0] == "SimpleITK":
        return tuple(image.GetSize())[::-1]
    return tuple(image.shape) if hasattr(image, "shape") else np.shape(image)


def dtype_of(image: Any) -> np.dtype[Any]:
    dtype: np.dtype[Any]
    if type(image) is np.ndarray:
        dtype = image.dtype
    elif is_on_device(image):
        dtype = dtype_on_device(image)
    elif type(image).__module__.partition(".")[0] in ("itk", "SimpleITK", "torch"):
        dtype = open_image(image).array.dtype
    else:
        dtype = np.dtype(image.dtype) if hasattr(image, "dtype") else np.asarray(image).dtype
    return dtype


def opened(image: Any) -> tuple[Any, Callable[[Any], Any]]:
    """An array, and what makes a result the kind of image that came. Images beyond the host's memory stay as they are."""
    if type(image) is np.ndarray or runner_of(image) is not None:
        return image, _same
    found = open_image(image)
    return found.array, found.wrap


def _same(result: Any) -> Any:
    return result


def is_in_memory(image: Any) -> bool:
    return isinstance(image, np.ndarray)


# Arguments


def axes_of(axes: Any, ndim: int) -> tuple[int, ...]:
    if axes is None:
        return tuple(range(ndim))
    try:
        given = tuple(operator.index(each) for each in (axes if isinstance(axes, Iterable) else (axes,)))
    except TypeError:
        raise TypeError(f"axes: {shown(axes)} is neither an integer nor a sequence of integers") from None
    for axis in given:
        if not -ndim <= axis < ndim:
            raise _core.ParameterError(f"axes: {axis} is not an axis of an array of {ndim} dimensions")
    normal = tuple(axis % ndim for axis in given)
    if len(set(normal)) != len(normal):
        raise _core.ParameterError(f"axes: {shown(axes)} names an axis twice")
    return normal


def axis_of(axis: Any, ndim: int) -> int:
    try:
        number = operator.index(axis)
    except TypeError:
        raise TypeError(f"axis: {axis!r} is not an integer") from None
    if not -ndim <= number < ndim:
        raise _core.ParameterError(f"axis: {number} is not an axis of an array of {ndim} dimensions")
    return number % ndim


def per_axis(value: Any, count: int, name: str) -> tuple[Any, ...]:
    """A value for each axis, from one for all or from a sequence of as many."""
    if isinstance(value, str) or not isinstance(value, Iterable) or np.ndim(value) == 0:  # type: ignore[arg-type]
        return (value,) * count
    values = tuple(value)
    if len(values) != count:
        raise _core.ParameterError(f"{name}: {len(values)} numbers for {count} axes")
    return values


def modes_of(mode: Any, count: int) -> tuple[str, ...]:
    values = per_axis(mode, count, "mode")
    for each in values:
        if not isinstance(each, str) or each not in ENGINE_MODES:
            raise _core.ParameterError(f"mode: {each!r} is none of {', '.join(ENGINE_MODES)}")
    return tuple(ENGINE_MODES[each] for each in values)


def whole_number(value: Any, name: str, least: int | None = None) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        if not isinstance(value, (float, np.floating)):
            raise ParameterTypeError(f"{name}: {shown(value)} is not a whole number") from None
        if not value.is_integer():
            raise _core.ParameterError(f"{name}: {shown(value)} is not a whole number") from None
        number = int(value)
    if least is not None and number < least:
        raise _core.ParameterError(f"{name}: {number} is not at least {least}")
    return number


def side_of(axis: int, extent: Any, origin: Any, mode: str, name: str = "size") -> Side:
    """SciPy's window of an extent; its origin shifts it towards lower indices."""
    extent, origin = whole_number(extent, name, 1), whole_number(origin, "origin")
    before = extent // 2 + origin
    if not 0 <= before < extent:
        raise _core.ParameterError(f"origin: {origin} with {name} {extent}; it can be from {-(extent // 2)} to {(extent - 1) // 2}")
    return Side(axis, before, extent - 1 - before, mode)


def sides_of(axes: Sequence[int], extents: Sequence[Any], origin: Any, mode: Any, name: str) -> tuple[Side, ...]:
    count = len(axes)
    return tuple(side_of(axis, extent, shift, each, name) for axis, extent, shift, each in
                 zip(axes, extents, per_axis(origin, count, "origin"), modes_of(mode, count)))


def ascending(axes: tuple[int, ...], origin: Any, ndim: int) -> tuple[list[int], list[Any]]:
    """Axes and origins in the order of a footprint's axes, by SciPy's rule: the axes ascend, whatever the order in which they
    are named, and each keeps its origin; where all axes of the image are named, origins are in ascending order already."""
    origins = per_axis(origin, len(axes), "origin")
    if len(axes) == ndim:
        return sorted(axes), list(origins)
    ordered = sorted(zip(axes, origins))
    return [axis for axis, _ in ordered], [each for _, each in ordered]


def element_sides(element: np.ndarray[Any, Any], axes: tuple[int, ...], ndim: int, origin: Any, mode: Any,
                  name: str) -> tuple[Side, ...]:
    """The sides of a footprint."""
    if element.ndim != len(axes):
        raise _core.ParameterError(f"{name}: it has {element.ndim} dimensions, there should be {len(axes)}")
    if element.size == 0:
        raise _core.ParameterError(f"{name}: it has no voxels")
    if not isinstance(mode, str):
        raise _core.ParameterError(f"mode: {mode!r}; a mode for each axis is possible for boxes, not for a footprint, a structure "
                                   "or weights")
    ordered, origins = ascending(axes, origin, ndim)
    return sides_of(ordered, element.shape, origins, mode, name)


# The calls of the engine


def _in_all_axes(element: np.ndarray[Any, Any], sides: Sequence[Side], ndim: int) -> np.ndarray[Any, Any]:
    """An element with axes of one voxel where the image has others, odd and with its voxel in the middle."""
    reach = [max(side.before, side.after) for side in sides]
    whole = np.zeros([2 * each + 1 for each in reach], element.dtype)
    whole[tuple(slice(most - side.before, most + side.after + 1) for most, side in zip(reach, sides))] = element
    # Engine kernels have as many axes as the image; numbers of `sides` ascend or there is one.
    shape = [1] * ndim
    for side, extent in zip(sides, whole.shape):
        shape[side.axis] = extent
    return whole.reshape(shape)


def _mode_for(sides: Sequence[Side], cval: Any) -> dict[str, Any]:
    """The engine's mode for windows that all have one."""
    mode = sides[0].mode
    return {"mode": mode, **({"cval": cval} if mode == "constant" else {})}


def in_groups(sides: Iterable[Side]) -> list[list[Side]]:
    """Sides that one run of the engine can take: of one mode, and few enough."""
    groups: list[list[Side]] = []
    for side in sides:
        for group in groups:
            if group[0].mode == side.mode and len(group) < _MOST_AXES:
                group.append(side)
                break
        else:
            groups.append([side])
    return groups


def box_steps(made: Callable[..., Filter], sides: Iterable[Side], cval: Any) -> list[Filter]:
    """The steps of a filter over boxes that can be computed one axis after the other."""
    return [made(tuple(side.before for side in group), axes=tuple(side.axis for side in group), **_upper(group), **_mode_for(group, cval))
            for group in in_groups(sides)]


def _upper(sides: Sequence[Side]) -> dict[str, Any]:
    return {} if all(side.is_centered for side in sides) else {"upper_radius": tuple(side.after for side in sides)}


def weighted_step(weights: np.ndarray[Any, Any], sides: Sequence[Side], ndim: int, cval: Any, transforms: bool = False) -> Filter:
    """A correlation with weights whose axes are those of the sides, which ascend."""
    border, used = _mode_for(sides, cval), _used(sides, ndim, "weights")
    whole = _in_all_axes(weights, sides, ndim)
    if transforms:
        return filters.ConvolveImage(whole, correlate=True, axes=used, **border)
    return filters.Convolve(kernel=whole, correlate=True, axes=used, **border)


def _used(sides: Sequence[Side], ndim: int, name: str) -> tuple[int, ...]:
    used = tuple(side.axis for side in sides if side.before or side.after) or (ndim - 1,)
    if len(used) > _MOST_AXES:
        raise _core.ParameterError(f"{name}: windows along {len(used)} axes; three are possible, axes= names them")
    return used


def flat_steps(made: Callable[..., Filter], element: np.ndarray[Any, Any] | None, sides: Sequence[Side], ndim: int,
               cval: Any) -> list[Filter]:
    """The steps of extrema over a box (no element) or over the voxels of an element."""
    if element is not None:
        return [made(kernel=_in_all_axes(element, sides, ndim), axes=_used(sides, ndim, "footprint"), **_mode_for(sides, cval))]
    used = [side for side in sides if side.before or side.after]
    return box_steps(made, used or [Side(ndim - 1, 0, 0, "reflect")], cval)


def height_step(made: Callable[..., Filter], element: np.ndarray[Any, Any], heights: np.ndarray[Any, Any], sides: Sequence[Side],
                ndim: int, cval: Any) -> Filter:
    """An extremum over the voxels of an element, each with its height."""
    return made(kernel=_in_all_axes(element, sides, ndim), heights=_in_all_axes(heights, sides, ndim),
                axes=_used(sides, ndim, "structure"), **_mode_for(sides, cval))


def rank_step(percentile: float, element: np.ndarray[Any, Any], sides: Sequence[Side], ndim: int, cval: Any) -> Filter:
    """A rank over the voxels of an element."""
    used = _used(sides, ndim, "footprint")
    reach = tuple(max(side.before, side.after) for side in sides if side.axis in used)
    return filters.Percentile(reach, percentile=percentile, kernel=_in_all_axes(element, sides, ndim), axes=used,
                              **_mode_for(sides, cval))


# Runs


def extend(array: np.ndarray[Any, Any], sides: Iterable[Side], cval: Any) -> np.ndarray[Any, Any]:
    """The image with voxels beyond its edges."""
    constant = [side for side in sides if side.mode == "constant" and (side.before or side.after)]
    if constant:
        shape = list(array.shape)
        for side in constant:
            shape[side.axis] += side.before + side.after
        inner, array = array, np.full(shape, cval, array.dtype)
        array[_inner(inner.shape, constant)] = inner
    for side in sides:
        if side.mode != "constant" and (side.before or side.after):
            array = np.take(array, _places(array.shape[side.axis], side), axis=side.axis)
    return array


def _places(extent: int, side: Side) -> np.ndarray[Any, Any]:
    """The voxels of an axis that are seen at indices from before its first one to after its last one."""
    return voxels_seen(np.arange(-side.before, extent + side.after), extent, side.mode)


def voxels_seen(index: np.ndarray[Any, Any], extent: int, mode: str) -> np.ndarray[Any, Any]:
    """The voxels of an axis that are seen at indices, inside the image or beyond its edge."""
    seen: np.ndarray[Any, Any] = np.zeros_like(index)
    if mode == "nearest":
        seen = np.clip(index, 0, extent - 1)
    elif mode == "wrap":
        seen = index % extent
    elif mode == "reflect":
        index = index % (2 * extent)
        seen = np.minimum(index, 2 * extent - 1 - index)
    elif extent > 1:
        index = index % (2 * extent - 2)
        seen = np.minimum(index, 2 * extent - 2 - index)
    return seen


def _inner(shape: tuple[int, ...], sides: Iterable[Side]) -> tuple[slice, ...]:
    region = [slice(None)] * len(shape)
    for side in sides:
        region[side.axis] = slice(side.before, side.before + shape[side.axis])
    return tuple(region)


@lru_cache(256)
def _joined(these: tuple[Filter, ...]) -> Filter:
    joined = these[0]
    for each in these[1:]:
        joined = joined | each
    return joined


def run_steps(steps: Sequence[Filter], image: Any, output: Any, options: dict[str, Any]) -> Any:
    """Runs all steps in one pass."""
    return (steps[0] if len(steps) == 1 else _joined(tuple(steps)))(image, output=output, **options)


def rank_of_neighbors(image: np.ndarray[Any, Any], element: np.ndarray[Any, Any], sides: Sequence[Side], rank: int, output: Any,
                      cval: Any, options: dict[str, Any]) -> Any:
    """Ranks over any footprint, of the extended image. NaN has no rank: among the m of n voxels that are numbers it is
    floor((rank + 1/2) (m - 1) / (n - 1)), as in the engine."""
    threads = threads_of_cpu(options)
    target = check_output(output, image.shape) if isinstance(output, np.ndarray) else np.empty(image.shape, output)
    if image.size == 0:
        return target
    kind = check_dtype(image.dtype)
    try:
        whole = np.ascontiguousarray(extend(as_input(image, kind), sides, cval))
    except OverflowError:
        raise _core.ParameterError(f"cval: {cval} is no value of {image.dtype}") from None
    strides = [whole.strides[side.axis] // whole.itemsize for side in sides]
    result = np.empty(image.shape, kind)
    _core.find_ranks(whole, kind, (np.argwhere(element) @ strides).tolist(), result, rank, threads)
    target[...] = result
    return target
