# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Filters over the data of layers, without Qt."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import chunkwise
import numpy as np

Place = tuple[slice, ...]


def data_of(layer: Any) -> Any:
    """A layer's voxels; of a pyramid the finest level."""
    return layer.data[0] if layer.multiscale else layer.data


def is_lazy(data: Any) -> bool:
    """Whether voxels are read or computed when they are asked for."""
    return not isinstance(data, np.ndarray)


def visible_place(viewer: Any, layer: Any) -> Place:
    """The slice of a layer's voxels that a viewer shows; a LookupError says why there is none."""
    if viewer.dims.ndisplay != 2:
        raise LookupError("the preview is of a slice: switch to the 2D view")
    before = viewer.dims.ndim - layer.ndim
    displayed = {axis - before for axis in viewer.dims.displayed}
    point = layer.world_to_data(viewer.dims.point)
    place = []
    for axis, extent in enumerate(data_of(layer).shape):
        if axis >= layer.ndim or axis in displayed:
            place.append(slice(0, extent))
            continue
        at = int(np.round(point[axis]))
        if not 0 <= at < extent:
            raise LookupError("the layer has no voxels in this slice")
        place.append(slice(at, at + 1))
    return tuple(place)


def compute_part(filter: chunkwise.Filter, data: Any, others: Sequence[Any], place: Place,
                 progress: Callable[[float], object] | None = None,
                 kept: dict[Any, Any] | None = None) -> np.ndarray[Any, Any]:
    """A part of a filter's result, as a run over the whole image has it, bit for bit: from that part of the image and
    the halo around it.

    If a voxel may depend on the whole image, that is computed once if it lies in memory, and `kept`.
    """
    shape = tuple(int(each) for each in data.shape)
    memory = None if is_lazy(data) else (filter, id(data), tuple(map(id, others)))
    if kept is not None and memory is not None and memory in kept:
        return np.asarray(kept[memory][0][place])
    try:
        if filter.parameters.get("valid"):
            raise chunkwise.ParameterError("valid: the result is smaller than the image, and has no preview")
        whole = filter
        if filter.is_automatic and memory is not None:
            whole = filter.resolved(data, progress=progress)
        # Along each axis what lies before the part, the part, and what lies behind it.
        chunks = [tuple(each for each in (along.start, along.stop - along.start, extent - along.stop) if each)
                  for along, extent in zip(place, shape)]
        region = next(each for each in chunkwise.regions(whole, shape, chunks, data.dtype) if each.output == place)
    except chunkwise.ParameterError:
        if memory is None or filter.parameters.get("valid"):
            raise
        result = filter(data, *others, progress=progress)
        if kept is not None:
            kept.clear()
            # With the images, so that none gets another one's identity.
            kept[memory] = result, data, others
        return np.asarray(result[place])
    parts = [np.asarray(each[region.input]) if each is not None else None for each in (data, *others)]
    return whole.run(parts[0], region, shape, *parts[1:], progress=progress)


def compute_whole(filter: chunkwise.Filter, data: Any, others: Sequence[Any],
                  progress: Callable[[float], object] | None = None) -> Any:
    """A filter's result over a layer's voxels: an array, or a Dask array of what is lazy."""
    if not is_lazy(data):
        return filter(data, *(None if each is None else np.asarray(each) for each in others), progress=progress)
    from chunkwise.dask import apply

    return apply(filter, data, *others)


def geometry_of(layer: Any, lower: Sequence[int] | None = None) -> dict[str, Any]:
    """The place of a layer in the world, as the arguments of a new layer; its first voxel is the layer's at `lower`."""
    found: dict[str, Any] = {"units": layer.units, "axis_labels": layer.axis_labels}
    if lower is None or not any(lower):
        return {**found, "scale": layer.scale, "translate": layer.translate, "rotate": layer.rotate, "shear": layer.shear,
                "affine": layer.affine}
    n = layer.ndim
    matrix = np.eye(n + 1)
    origin = np.asarray(layer.data_to_world(np.zeros(n)))
    for axis in range(n):
        matrix[:n, axis] = np.asarray(layer.data_to_world(np.eye(n)[axis])) - origin
    matrix[:n, n] = np.asarray(layer.data_to_world(np.asarray(lower[:n], float)))
    return {**found, "affine": matrix}


def contrast_of(layer: Any, part: np.ndarray[Any, Any]) -> tuple[float, float]:
    """Limits of the display: the layer's for its own type, else what a part of the result has."""
    if part.dtype == data_of(layer).dtype:
        return tuple(layer.contrast_limits)  # type: ignore[return-value]
    finite = part[np.isfinite(part)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    return low, high if high > low else low + 1
