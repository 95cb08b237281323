# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Distances in steps between neighbors, by NumPy."""
from __future__ import annotations

from typing import Any

import numpy as np

_Array = np.ndarray[Any, Any]


def step_distances(objects: _Array, is_chessboard: bool, with_places: bool) -> tuple[_Array, _Array | None]:
    """The number of steps to the nearest voxel outside the objects, and its place in the flattened array; -1 without any.

    A step goes to a neighbor across a face, or also across an edge or a corner. One axis after the other: along an axis the
    distances of the axes before add up, or the largest of both counts.
    """
    far = sum(objects.shape) + 1
    distances = np.where(objects, far, 0).astype(np.int32)
    places = np.arange(objects.size, dtype=np.int64).reshape(objects.shape) if with_places else None
    for axis in range(objects.ndim):
        along = np.moveaxis(distances, axis, 0)
        (_widen if is_chessboard else _add)(along, None if places is None else np.moveaxis(places, axis, 0), far)
    none = distances >= far
    if places is not None:
        places[none] = -1
    distances[none] = -1
    return distances, places


def _take(distances: _Array, places: _Array | None, candidates: _Array, origins: _Array | None) -> None:
    nearer = candidates < distances
    np.copyto(distances, candidates, where=nearer)
    if places is not None and origins is not None:
        np.copyto(places, origins, where=nearer)


def _add(distances: _Array, places: _Array | None, far: int) -> None:
    for direction in (slice(None), slice(None, None, -1)):
        d, p = distances[direction], None if places is None else places[direction]
        for i in range(1, len(d)):
            at, before = slice(i, i + 1), slice(i - 1, i)
            _take(d[at], None if p is None else p[at], d[before] + 1, None if p is None else p[before])


def _widen(distances: _Array, places: _Array | None, far: int) -> None:
    first, origins = distances.copy(), None if places is None else places.copy()
    for reach in range(1, len(distances)):
        if reach >= distances.max():
            break
        for at, source in ((slice(reach, None), slice(None, -reach)), (slice(None, -reach), slice(reach, None))):
            _take(distances[at], None if places is None else places[at], np.maximum(first[source], reach),
                  None if origins is None else origins[source])
