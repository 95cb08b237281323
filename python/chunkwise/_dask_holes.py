# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Holes of labelled objects in Dask's arrays: each block says which objects touch which parts of the background, one task joins
that, and each block is written."""
from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import partial
from typing import Any

import dask.array as da
import numpy as np
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph

from . import _core, filters
from ._measure import check_labels

_Array = np.ndarray[Any, Any]
#: Parts of the background with what touches them: (part, label) in ascending order, and the parts that reach the image's edge.
_Summary = tuple[_Array, _Array, _Array]


def _at(axis: int, part: slice, ndim: int) -> tuple[slice, ...]:
    return tuple(part if a == axis else slice(None) for a in range(ndim))


def _distinct(parts: _Array, labels: _Array) -> tuple[_Array, _Array]:
    order = np.lexsort((labels, parts))
    parts, labels = parts[order], labels[order]
    keep = np.ones(len(parts), bool)
    keep[1:] = (parts[1:] != parts[:-1]) | (labels[1:] != labels[:-1])
    return parts[keep], labels[keep]


def _meet(parts: _Array, labels: _Array) -> tuple[_Array, _Array]:
    """The parts and the labels at the same places of two arrays."""
    both = (parts != 0) & (labels != 0)
    return _distinct(parts[both].astype(np.uint64), labels[both].astype(np.uint64))


def _empty(block: Any) -> _Array:
    empty: _Array = (np.asarray(block) == 0).view(np.uint8)
    return empty


def _first_planes(labels: Any, parts: Any) -> list[tuple[_Array, _Array]]:
    """Along each axis what the block before this one sees of it."""
    ndim = labels.ndim
    return [tuple(np.ascontiguousarray(each[_at(axis, slice(0, 1), ndim)]) for each in (labels, parts))  # type: ignore[misc]
            for axis in range(ndim)]


def _summarise(place: Sequence[slice], shape: Sequence[int], axes: Sequence[int], labels: Any, parts: Any, *behind: Any) -> _Summary:
    """`behind`: the first planes of the next blocks along `axes`."""
    ndim, last = labels.ndim, slice(-1, None)
    pairs, opened = [], []
    for axis in range(ndim):
        low, high = _at(axis, slice(None, -1), ndim), _at(axis, slice(1, None), ndim)
        pairs += [_meet(parts[low], labels[high]), _meet(parts[high], labels[low])]
        if shape[axis] > 1:
            if place[axis].start == 0:
                opened.append(np.unique(parts[_at(axis, slice(0, 1), ndim)]))
            if place[axis].stop == shape[axis]:
                opened.append(np.unique(parts[_at(axis, last, ndim)]))
    for axis, planes in zip(axes, behind):
        next_labels, next_parts = planes[axis]
        edge = _at(axis, last, ndim)
        pairs += [_meet(parts[edge], next_labels), _meet(next_parts, labels[edge])]
    found = _distinct(*(np.concatenate(each) for each in zip(*pairs)))
    return (*found, np.unique(np.concatenate([np.zeros(0, np.uint64), *opened])))


def _join(summaries: list[_Summary]) -> tuple[_Array, _Array]:
    """The holes in ascending order, and the label of each."""
    parts, labels, opened = (np.concatenate(each) for each in zip(*summaries))
    parts, labels = _distinct(parts, labels)
    alone = np.ones(len(parts), bool)
    alone[1:] &= parts[1:] != parts[:-1]
    alone[:-1] &= parts[1:] != parts[:-1]
    alone &= ~np.isin(parts, opened)
    return parts[alone], labels[alone]


def _write(labels: Any, parts: Any, holes: tuple[_Array, _Array]) -> _Array:
    result = np.array(labels)
    numbers, owners = holes
    if len(numbers):
        empty = parts != 0
        given = parts[empty].astype(np.uint64)
        at = np.minimum(np.searchsorted(numbers, given), len(numbers) - 1)
        result[empty] = np.where(numbers[at] == given, owners[at], 0).astype(result.dtype)
    return result


def fill_label_holes(x: Any, threads: int | None = None) -> Any:
    """The labels of a Dask array with the holes of their objects filled, as a lazy array of the same chunks."""
    check_labels(x)
    if any(each != each for each in x.shape):
        raise _core.ParameterError("labels: the extents of its chunks are not known; x.compute_chunk_sizes() finds them")
    if not 1 <= x.ndim <= 3:
        raise _core.ParameterError(f"labels: they have {x.ndim} dimensions; objects of 1 to 3 are measured")
    if 0 in x.shape:
        raise _core.ParameterError(f"labels: an array of shape {x.shape} has no voxels")
    whole = x.rechunk(tuple(tuple(each for each in along if each) for along in x.chunks))
    background = whole.map_blocks(_empty, dtype=np.uint8)
    kind = "uint32" if whole.size < 1 << 32 else "uint64"
    label: Any = getattr(filters, "Label")(connectivity=1)
    parts = label(background, output=kind, threads=threads)
    edges = [[0, *itertools.accumulate(map(int, along))] for along in whole.chunks]
    corners = list(itertools.product(*(range(len(along)) for along in whole.chunks)))
    token = tokenize(whole, parts)
    name, planes, summary, joined = (f"chunkwise-holes{each}-{token}" for each in ("", "-planes", "-summary", "-join"))
    graph: dict[Any, Any] = {joined: (_join, [(summary, *corner) for corner in corners])}
    for corner in corners:
        both = ((whole.name, *corner), (parts.name, *corner))
        place = tuple(slice(edge[i], edge[i + 1]) for edge, i in zip(edges, corner))
        further = [a for a in range(whole.ndim) if corner[a] + 1 < len(whole.chunks[a])]
        behind = [(planes, *(i + (a == axis) for a, i in enumerate(corner))) for axis in further]
        if any(corner):
            graph[planes, *corner] = (_first_planes, *both)
        graph[summary, *corner] = (partial(_summarise, place, whole.shape, further), *both, *behind)
        graph[name, *corner] = (_write, *both, joined)
    result = da.Array(HighLevelGraph.from_collections(name, graph, [whole, parts]), name, whole.chunks,
                      meta=np.empty((0,) * whole.ndim, whole.dtype))
    return result if result.chunks == x.chunks else result.rechunk(x.chunks)
