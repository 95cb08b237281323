# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Filters over Dask's arrays, on one machine or many: each schedule as a graph.

Results are the same bits as those of one run over the whole image, for any chunks, which may be smaller than a window.
Sources, and arrays in memory, take one task for each block. Do not call filters within ``dask.array.map_overlap``: it pads the
image at its edge, and takes some twenty tasks for each block.
"""
from __future__ import annotations

import itertools
import math
import operator
import os
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import dask
import dask.array as da
import numpy as np
from dask.base import tokenize
from dask.delayed import delayed
from dask.highlevelgraph import HighLevelGraph

from . import _core, filters
from ._arrays import as_input, check_dtype, make_options, parse_bytes
from ._blocks import estimate
from ._containers import axes_of_xarray, check_place, place_of_xarray, spacing_of_xarray
from ._dask_holes import fill_label_holes
from ._dispatch import Runner, register
from ._filter import Filter, run_region
from ._parts import check_independent, normalise_chunks
from ._regions import Region, box_of, region_of, turn
from ._statistics import Statistics, combine, summarise
from ._stores import Store

__all__ = ["apply", "integral_image", "reconstruction", "statistics"]


def _threads(options: dict[str, Any]) -> dict[str, Any]:
    """As many tasks run at a time as a worker has threads: each takes its share of the cores."""
    if options.get("threads") is not None:
        return options
    tasks = os.cpu_count() or 1
    if "distributed" in sys.modules:
        try:
            tasks = sys.modules["distributed"].get_worker().state.nthreads
        except ValueError:
            pass
    return {**options, "threads": max(1, (os.cpu_count() or 1) // tasks)}


def _compute(filter: Filter, parts: Sequence[Any], region: Region, shape: tuple[int, ...], dtype: np.dtype[Any],
             spacing: Any, axes: Any, options: dict[str, Any]) -> np.ndarray[Any, Any]:
    """A region of a result, in a task."""
    arrays = [None if each is None else np.asarray(each) for each in parts]
    ordered, kind = filter._ordered(arrays)
    operation = filter._operation(shape, kind, check_dtype(dtype), spacing, filter._names_of(arrays), axes=axes,
                                  boolean=arrays[0].dtype.kind == "b")  # type: ignore[union-attr]
    with filter.worded(len(shape)):
        return run_region(operation, ordered, region, shape, None, dtype, make_options(**_threads(options)))


def _compute_from(source: Any, filter: Filter, shape: tuple[int, ...], dtype: np.dtype[Any], spacing: Any, axes: Any,
                  options: dict[str, Any], begins: Sequence[int], block_info: Any = None) -> np.ndarray[Any, Any]:
    """A block of a result that begins there, whose task reads what it needs."""
    place = tuple(slice(begin + int(a), begin + int(b)) for begin, (a, b) in zip(begins, block_info[None]["array-location"]))
    kind = check_dtype(np.dtype(source.dtype))
    operation = filter._operation(shape, kind, check_dtype(dtype), spacing, axes=axes)
    region = region_of(operation, place, shape)
    return _compute(filter, [source[region.input]], region, shape, dtype, spacing, axes, options)


def _dtype(filter: Filter, arrays: Sequence[Any], output: Any) -> np.dtype[Any]:
    if output is not None:
        wanted: np.dtype[Any] = np.dtype(output)
        return wanted
    return filter.default_dtype(_common_dtype(filter, arrays))


def _common_dtype(filter: Filter, arrays: Sequence[Any]) -> np.dtype[Any]:
    """The type in which the images meet; a mask, weights and radii keep their own."""
    kind: np.dtype[Any] = np.dtype(arrays[0].dtype)
    for each, array in zip(filter._row.inputs, arrays[1:]):
        if array is not None and not each.own_kind and not (kind == array.dtype == bool):
            kind = np.dtype(_core.common_kind(check_dtype(kind), check_dtype(np.dtype(array.dtype))))
    return kind


def apply(filter: Filter, x: Any, *others: Any, output: Any = None, chunks: Any = None, spacing: Any = None,
          **options: Any) -> Any:
    """A filter's result as a Dask array.

    Parameters
    ----------
    filter : Filter
        A filter of `chunkwise.filters`.
    x : dask.array.Array, xarray.DataArray over one, or a source
        A source has ``shape``, ``dtype`` and slices, and can be pickled: a Zarr array, a memmap, a TensorStore handle.
        With it the graph has one task for each chunk of the result, which reads what it needs, and nothing moves between
        workers. With a Dask array each task gets its chunk and the halo around it.
    *others
        Further images, of the same shape.
    output : dtype, optional
    chunks : as Dask has them, optional
        Chunks of the result; by default those of `x`, and on another grid (`bin`, `crop`, `pad`, `flip`, `permute_axes`,
        `resample`) such as need the same voxels of `x` or some more. For stores: whole write units.
    spacing : sequence of float, optional
    **options
        As of all filters; ``threads`` are those of a task.

    Returns
    -------
    dask.array.Array, or xarray.DataArray for such
    """
    if type(x).__module__.partition(".")[0] == "xarray":
        if filter._row.has_grid or filter.parameters.get("valid"):
            raise TypeError(f"{filter._row.name}: the image has coordinates, which the result would lose; give its data")
        place = place_of_xarray(x)
        for each, other in zip(filter._row.inputs, others):
            if type(other).__module__.partition(".")[0] == "xarray":
                check_place(place, place_of_xarray(other), each.name)
        return x.copy(data=_apply(filter, x.data, others, output, chunks, spacing_of_xarray(x) if spacing is None else spacing,
                                  axes_of_xarray(x), options))
    return _apply(filter, x, others, output, chunks, spacing, None, options)


def _resolve(filter: Filter, parameter: str, x: Any, others: Sequence[Any], options: dict[str, Any]) -> list[float]:
    """The numbers that stand for "auto": the arrays are computed block by block, at once."""
    spacing, axes = None, None
    if type(x).__module__.partition(".")[0] == "xarray":
        spacing, axes = spacing_of_xarray(x), axes_of_xarray(x)
    arrays = [each.data if type(each).__module__.partition(".")[0] == "xarray" else each for each in (x, *others)]
    if any(extent != extent for each in arrays if each is not None for extent in each.shape):
        raise _core.ParameterError("x: the extents of its chunks are not known; x.compute_chunk_sizes() finds them")
    stores = [None if each is None else Store(each) for each in arrays]
    filter.check_shapes(stores)
    rest = {key: value for key, value in options.items() if key != "memory" and value is not None}
    with filter.worded(len(x.shape)):
        return estimate(filter, parameter, stores, spacing, axes, parse_bytes(options.get("memory") or "4G", "memory"), rest)


def _apply(filter: Filter, x: Any, others: tuple[Any, ...], output: Any, chunks: Any, spacing: Any, axes: Any,
           options: dict[str, Any]) -> Any:
    options = {key: value for key, value in options.items() if value is not None}
    if filter.is_automatic:
        raise _core.ParameterError(f"{filter!r}: auto needs the whole image; .resolved(image) takes the value from one")
    if output is not None and isinstance(output, np.ndarray):
        raise TypeError("output: a lazy result has no array; its type is possible")
    if any(each != each for each in x.shape):
        raise _core.ParameterError("x: the extents of its chunks are not known; x.compute_chunk_sizes() finds them")
    shape = tuple(int(each) for each in x.shape)
    for row, each in zip(filter._row.inputs, others):
        if each is not None and tuple(np.shape(each)) != shape:
            raise _core.ParameterError(f"{row.name}: its shape is {tuple(np.shape(each))}, the input's is {shape}")
    others = tuple(each.data if type(each).__module__.partition(".")[0] == "xarray" else
                   each if each is None or hasattr(each, "dtype") else np.asarray(each) for each in others)
    dtype = _dtype(filter, (x, *others), output)
    kind = check_dtype(_common_dtype(filter, (x, *others)))
    names = filter._names_of([x, *others])
    spacing = tuple(float(each) for each in spacing) if spacing else None
    operation = filter._operation(shape, kind, check_dtype(dtype), spacing, names, axes=axes)
    grid = filter._output_box(shape, kind, check_dtype(dtype), axes)
    given = tuple(each for each in others if each is not None)
    if operation.schedule == "sweep":
        return integral_image(x, filter, output=output, **options)
    sizes: Any = None
    if not isinstance(x, da.Array):
        own = getattr(x, "shards", None) or getattr(x, "chunks", None) or shape
        sizes = normalise_chunks(shape, own if chunks is None or grid is not None else chunks)
    if operation.finds_components and any(len(each) > 1 for each in sizes or x.chunks):
        if isinstance(x, da.Array):
            x = _without_empty(x if chunks is None else x.rechunk(chunks))
            sizes = [tuple(map(int, along)) for along in x.chunks]
        return _labels(filter, operation, x, sizes, shape, dtype, spacing, axes, options)
    in_rounds = operation.schedule in ("fixpoint", "passes")
    if in_rounds and _has_rounds(filter, len(shape)) and any(len(each) > 1 for each in sizes or x.chunks):
        filter.check_kinds(operation, [kind] * (1 + len(given)), check_dtype(dtype), len(shape))
        x = x if isinstance(x, da.Array) else da.from_array(x, chunks=sizes)
        result = _by_rounds(filter, x, others, options)
        return result if chunks is None else result.rechunk(chunks)
    if grid is None:
        # A voxel may depend on a whole axis, or on the whole image: then a task gets that, and its result is cut.
        cut = tuple(tuple(along) for along in normalise_chunks(shape, sizes or (x.chunks if chunks is None else chunks)))
        whole = tuple((n,) if n and (in_rounds or operation.needs_whole_axis(len(shape) - 1 - axis, turn(shape))) else along
                      for axis, (n, along) in enumerate(zip(shape, cut)))
        if whole != cut:
            x, *rest = (each.rechunk(whole) if isinstance(each, da.Array) else each for each in (x, *others))
            chunks = None if isinstance(x, da.Array) else whole
            return _apply(filter, x, tuple(rest), output, chunks, spacing, axes, options).rechunk(cut)
    if sizes is not None:
        if given:
            x = da.from_array(x, chunks=sizes)
        else:
            edges = _edges_of(sizes) if grid is None else _edges_on_grid(operation, grid, sizes, chunks, shape)
            check_independent(filter, operation, shape, _extents_of(edges))
            return _from_source(x, filter, shape, dtype, spacing, axes, options, edges)
    if chunks is not None and grid is None:
        x = x.rechunk(chunks)
    sizes = [tuple(int(each) for each in along) for along in x.chunks]
    edges = _edges_of(sizes) if grid is None else _edges_on_grid(operation, grid, sizes, chunks, shape)
    check_independent(filter, operation, shape, _extents_of(edges))
    others = tuple(each if each is None or isinstance(each, da.Array) else da.from_array(each, chunks=sizes)
                   for each in others)
    return _from_blocks(operation, filter, x, others, edges, shape, dtype, spacing, axes, options)


def _edges_of(sizes: Sequence[Sequence[int]]) -> list[list[int]]:
    return [[0, *itertools.accumulate(along)] for along in sizes]


def _extents_of(edges: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
    return [tuple(b - a for a, b in zip(edge, edge[1:])) for edge in edges]


def _edges_on_grid(operation: Any, grid: tuple[slice, ...], sizes: Any, chunks: Any, shape: tuple[int, ...]) -> list[list[int]]:
    """The ends of the chunks of a result on another grid: the caller's `chunks`, or the voxels that first need a further chunk of the
    image, whose chunks have these `sizes`, and between these no more than twice the longest of them."""
    extents = tuple(each.stop - each.start for each in grid)
    if chunks is not None or 0 in extents or 0 in shape:
        along = da.core.normalize_chunks(extents if chunks is None else chunks, extents, dtype=np.float64)
        return [[each.start + edge for edge in edges] for each, edges in zip(grid, _edges_of(along))]
    ends = _edges_of(normalise_chunks(shape, sizes))
    edges = []
    for axis, whole in enumerate(grid):

        def needed(i: int, axis: int = axis) -> tuple[slice, ...]:
            place = tuple(slice(i, i + 1) if a == axis else slice(each.start, each.start + 1) for a, each in enumerate(grid))
            return region_of(operation, place, shape).input

        # The axis of the image along which voxels lie: axes may be permuted, and flipped. Near an edge a voxel may need the whole axis.
        extent = whole.stop - whole.start
        inner = [whole.start + extent // 4, whole.start + (3 * extent) // 4]
        moves = [b.start - a.start for a, b in zip(*map(needed, inner))]
        of = max(range(len(shape)), key=lambda a: abs(moves[a]))
        cuts = {whole.start, whole.stop}

        def is_whole(i: int, of: int = of) -> bool:
            return bool(needed(i)[of].stop - needed(i)[of].start == shape[of])

        if moves[of] and not any(map(is_whole, inner)):
            first = bisect_left(range(whole.start, inner[0]), True, key=lambda i: not is_whole(i)) + whole.start
            last = bisect_left(range(inner[1], whole.stop), True, key=is_whole) + inner[1]
            for end in ends[of][1:-1]:
                is_beyond = (lambda i: needed(i)[of].start >= end) if moves[of] > 0 else (lambda i: needed(i)[of].stop <= end)
                cuts.add(bisect_left(range(first, last), True, key=is_beyond) + first)
        elif moves[of]:
            cuts.update(range(whole.start, whole.stop, max(sizes[of])))
        # No chunk is much larger than those of the image.
        most = 2 * max(sizes[of])
        for begin, end in itertools.pairwise(sorted(cuts)):
            parts = -(-(end - begin) // most)
            cuts.update(begin + (end - begin) * part // parts for part in range(1, parts))
        edges.append(sorted(cuts))
    return edges


class _Blocks:
    """Blocks of a Dask array: arrays where it lies in memory, as that of da.from_array(array) does; else the keys of tasks."""

    def __init__(self, x: Any) -> None:
        self.name, self.dtype, self.edges = x.name, np.dtype(x.dtype), _edges_of(x.chunks)
        graph = x.__dask_graph__()
        indices = list(np.ndindex(*x.numblocks)) if len(graph) == x.npartitions else []
        nodes = {index: graph.get((x.name, *index)) for index in indices}
        arrays = {index: getattr(node, "value", node) for index, node in nodes.items()}
        self.arrays = arrays if arrays and all(type(each) is np.ndarray for each in arrays.values()) else None

    def pieces(self, region: tuple[slice, ...]) -> list[_Piece]:
        along = [range(bisect_right(edge, part.start) - 1, bisect_left(edge, part.stop)) for edge, part in zip(self.edges, region)]
        found = []
        for index in itertools.product(*along):
            bounds = [(max(part.start, edge[i]), min(part.stop, edge[i + 1])) for part, edge, i in zip(region, self.edges, index)]
            if all(a < b for a, b in bounds):
                found.append(_Piece(tuple(slice(a - part.start, b - part.start) for (a, b), part in zip(bounds, region)), index,
                                    tuple(slice(a - edge[i], b - edge[i]) for (a, b), edge, i in zip(bounds, self.edges, index))))
        return found

    def is_most(self, piece: _Piece) -> bool:
        """Whether a piece is most of its block."""
        part, whole = (math.prod(each) for each in (
            [each.stop - each.start for each in piece.inside], [edge[i + 1] - edge[i] for edge, i in zip(self.edges, piece.block)]))
        return 2 * part >= whole


class _Piece(NamedTuple):
    """A part of a block: its place in a region, and in the block."""

    place: tuple[slice, ...]
    block: tuple[int, ...]
    inside: tuple[slice, ...]


class _Cut:
    """A task that cuts a piece out of a block, so that no more of it moves between workers."""

    def __init__(self, inside: tuple[slice, ...]) -> None:
        self.inside = inside

    def __call__(self, block: Any) -> Any:
        return block[self.inside]


class _FromPieces:
    """A task that puts pieces together, and computes a region. For an image it has its type and pieces: their places, what is
    cut out of them, if it is not all, and the array; without an array they are the results of other tasks, one after the other."""

    def __init__(self, images: list[Any], *arguments: Any) -> None:
        self.images, self.arguments = images, arguments

    def __call__(self, *results: Any) -> np.ndarray[Any, Any]:
        filter, region, *rest = self.arguments
        arrays: list[Any] = []
        more = iter(results)
        extents = [each.stop - each.start for each in region.input]
        for image in self.images:
            if image is None:
                arrays.append(None)
                continue
            dtype, pieces = image
            whole = None
            for place, inside, array in pieces:
                array = next(more) if array is None else array
                array = array if inside is None else array[inside]
                if len(pieces) == 1:
                    whole = np.asarray(array)
                    break
                whole = np.empty(extents, dtype) if whole is None else whole
                whole[place] = array
            arrays.append(np.empty(extents, dtype) if whole is None else whole)
        return _compute(filter, arrays, region, *rest)


def _from_blocks(operation: Any, filter: Filter, x: Any, others: Sequence[Any], edges: list[list[int]], shape: tuple[int, ...],
                 dtype: np.dtype[Any], spacing: Any, axes: Any, options: dict[str, Any]) -> Any:
    """One task for each chunk, which takes blocks whole where it needs most of them; other pieces have a task."""
    name = f"chunkwise-{filter.name}-{tokenize(x, others, filter, dtype, spacing, axes, edges, options)}"
    images = [None if each is None else _Blocks(each) for each in (x, *others)]
    graph: dict[Any, Any] = {}
    for index in itertools.product(*(range(len(edge) - 1) for edge in edges)):
        region = region_of(operation, tuple(slice(edge[i], edge[i + 1]) for edge, i in zip(edges, index)), shape)
        parts: list[Any] = []
        keys: list[Any] = []
        for number, image in enumerate(images):
            if image is None:
                parts.append(None)
                continue
            pieces: list[Any] = []
            for piece in image.pieces(region.input):
                array = None if image.arrays is None else image.arrays[piece.block][piece.inside]
                inside = None
                if array is None:
                    key = (image.name, *piece.block)
                    if image.is_most(piece):
                        inside = piece.inside
                    else:
                        graph[(f"{name}-piece", number, *index, *piece.block)] = (_Cut(piece.inside), key)
                        key = (f"{name}-piece", number, *index, *piece.block)
                    keys.append(key)
                pieces.append((piece.place, inside, array))
            parts.append((image.dtype, pieces))
        graph[(name, *index)] = (_FromPieces(parts, filter, region, shape, dtype, spacing, axes, options), *keys)
    given = [each for each, image in zip((x, *others), images) if image is not None and image.arrays is None]
    return da.Array(HighLevelGraph.from_collections(name, graph, dependencies=given), name, tuple(_extents_of(edges)), dtype)


def _from_source(source: Any, filter: Filter, shape: tuple[int, ...], dtype: np.dtype[Any], spacing: Any, axes: Any,
                 options: dict[str, Any], edges: Sequence[Sequence[int]]) -> Any:
    begins = [edge[0] for edge in edges]

    def compute(block_info: Any = None) -> np.ndarray[Any, Any]:
        return _compute_from(source, filter, shape, dtype, spacing, axes, options, begins, block_info)

    try:
        token = tokenize(source, filter, shape, dtype, spacing, axes, edges, options)
    except Exception:
        token = tokenize(object())
    return da.map_blocks(compute, chunks=tuple(_extents_of(edges)), dtype=dtype, meta=np.empty((0,) * len(shape), dtype),
                         name=f"chunkwise-{filter.name}-{token}")


def _nest(make: Callable[[tuple[int, ...]], Any], counts: list[int], corner: tuple[int, ...] = ()) -> Any:
    """Nested lists, as da.block takes them."""
    if len(corner) == len(counts):
        return make(corner)
    return [_nest(make, counts, (*corner, i)) for i in range(counts[len(corner)])]


# Summed-area tables

def _advance(filter: Filter, block: Any, begin: int, carry: bytes | None, shape: tuple[int, ...], dtype: np.dtype[Any],
             axis: int, options: dict[str, Any]) -> bytes:
    table = _table_at(filter, block, begin, carry, shape, dtype)
    lower = [begin if a == axis else 0 for a in range(len(shape))]
    block = np.ascontiguousarray(as_input(block, check_dtype(block.dtype)))
    return bytes(_core.advance(table, block, turn(lower), dtype.name, _threads(options)["threads"]))


def _table_at(filter: Filter, block: Any, begin: int, carry: bytes | None, shape: tuple[int, ...],
              dtype: np.dtype[Any]) -> Any:
    operation = filter._operation(shape, check_dtype(block.dtype), dtype.name)
    return operation if carry is None else _core.with_carry(operation, begin, carry)


def _table(filter: Filter, block: Any, begin: int, carry: bytes | None, shape: tuple[int, ...], dtype: np.dtype[Any],
           axis: int, options: dict[str, Any]) -> np.ndarray[Any, Any]:
    table = _table_at(filter, block, begin, carry, shape, dtype)
    place = tuple(slice(begin, begin + each) if a == axis else slice(0, each) for a, each in enumerate(block.shape))
    return run_region(table, [np.ascontiguousarray(as_input(block, check_dtype(block.dtype)))], Region(place, place), shape, None, dtype,
                       make_options(**_threads(options)))


def integral_image(x: Any, filter: Filter | None = None, *, output: Any = None, **options: Any) -> Any:
    """The summed-area table of a Dask array: a chain of small tasks hands sums on along the first summed axis, and the
    tables of the chunks are made from these in parallel. The other summed axes have one chunk.

    Parameters
    ----------
    x : dask.array.Array
    filter : Filter, optional
        ``chunkwise.filters.Sat(...)``.
    output : dtype, optional
    """
    filter = getattr(filters, "Sat")() if filter is None else filter
    shape = tuple(int(each) for each in x.shape)
    dtype = filter.default_dtype(x.dtype) if output is None else np.dtype(output)
    operation = filter._operation(shape, check_dtype(np.dtype(x.dtype)), dtype.name)
    if operation.schedule != "sweep":
        # Each index of the other axes has a separate table.
        return _apply(filter, x, (), output, None, None, None, options)
    if not isinstance(x, da.Array):
        x = da.from_array(x, chunks=getattr(x, "chunks", "auto"))
    axis = len(shape) - 1 - operation.sweep_axis(turn(shape))
    x = x.rechunk({a: -1 for a in range(len(shape)) if a != axis})
    carry: Any = None
    tables = []
    begin = 0
    for i, extent in enumerate(x.chunks[axis]):
        index = tuple(i if a == axis else 0 for a in range(len(shape)))
        block = x.blocks[index]
        tables.append(da.from_delayed(
            delayed(_table, pure=True)(filter, block, begin, carry, shape, dtype, axis, options), block.shape, dtype))
        carry = delayed(_advance, pure=True)(filter, block, begin, carry, shape, dtype, axis, options)
        begin += int(extent)
    return da.concatenate(tables, axis=axis)


# Statistics

def _sum_up(summaries: list[bytes]) -> bytes:
    return bytes(_core.add_summaries(summaries))


def statistics(x: Any, **options: Any) -> Statistics:
    """Exact statistics of a Dask array: a summary of each chunk, added up in a tree. Computes at once."""
    if type(x).__module__.partition(".")[0] == "xarray":
        x = x.data
    parts = [delayed(summarise, pure=True)(block, **_threads(options)) for block in x.to_delayed().ravel()]
    while len(parts) > 1:
        parts = [delayed(_sum_up, pure=True)(parts[i:i + 16]) for i in range(0, len(parts), 16)]
    return combine(x.dtype, [parts[0].compute()])


# Connected components

def _without_empty(x: Any) -> Any:
    """Some blocks of a selection have no voxels."""
    return x.rechunk(tuple(tuple(each for each in along if each) or (0,) for along in x.chunks))


class _LabelBlocks:
    """Common to the tasks of labels. `source`: what they read their blocks from, if that is no Dask array."""

    def __init__(self, filter: Filter, shape: tuple[int, ...], kind: str, dtype: np.dtype[Any], spacing: Any, axes: Any,
                 boolean: bool, source: Any, threads: Any) -> None:
        self.filter, self.shape, self.kind, self.dtype = filter, shape, kind, dtype
        self.spacing, self.axes, self.boolean, self.source, self.threads = spacing, axes, boolean, source, threads

    def operation(self) -> Any:
        return self.filter._operation(self.shape, self.kind, check_dtype(self.dtype), self.spacing, axes=self.axes,
                                      boolean=self.boolean)

    def _block(self, place: tuple[slice, ...], given: Any) -> np.ndarray[Any, Any]:
        block = np.asarray(self.source[place] if given is None else given)
        return np.ascontiguousarray(as_input(block, self.kind))

    def _number_of_threads(self) -> int:
        return int(_threads({"threads": self.threads})["threads"])

    def summarise(self, place: tuple[slice, ...], given: Any = None) -> bytes:
        block = self._block(place, given)
        return bytes(_core.summarise_labels(self.operation(), block, box_of(place)[0], self._number_of_threads()))

    def join(self, places: list[tuple[slice, ...]], summaries: list[bytes]) -> list[bytes]:
        with self.filter.worded(len(self.shape)):
            return list(_core.join_labels(self.operation(), [box_of(each) for each in places], summaries)[0])

    def write(self, place: tuple[slice, ...], i: int, found: list[bytes], given: Any = None) -> np.ndarray[Any, Any]:
        block = self._block(place, given)
        labels = np.empty(block.shape, self.dtype)
        _core.write_labels(self.operation(), block, found[i], labels, box_of(place)[0], self._number_of_threads())
        return labels


# Solutions travel together, so that none takes a separate task.
_SOLUTIONS_OF_A_TASK = 8


def _labels(filter: Filter, operation: Any, x: Any, sizes: Sequence[tuple[int, ...]], shape: tuple[int, ...],
            dtype: np.dtype[Any], spacing: Any, axes: Any, options: dict[str, Any]) -> Any:
    """Labels of the whole image: each block is summarised, one task joins the summaries, and each block is written."""
    for key in options:
        if key not in ("threads", "backend"):
            raise TypeError(f"{key}: tasks of labels have no such option; threads= is possible")
    if options.get("backend", "auto") == "cuda":
        raise _core.ParameterError("backend: 'cuda'; labels of blocks are computed on the CPU")
    is_lazy = isinstance(x, da.Array)
    kind = check_dtype(np.dtype(x.dtype))
    filter.check_kinds(operation, [kind], check_dtype(dtype), len(shape))
    blocks = _LabelBlocks(filter, shape, kind, dtype, spacing, axes, np.dtype(x.dtype).kind == "b",
                          None if is_lazy else x, options.get("threads"))
    try:
        token = tokenize(x, filter, shape, dtype, spacing, axes, sizes, options)
    except Exception:
        token = tokenize(object())
    edges = [[0, *itertools.accumulate(along)] for along in sizes]
    corners = list(itertools.product(*(range(len(along)) for along in sizes)))
    places = [tuple(slice(edge[i], edge[i + 1]) for edge, i in zip(edges, corner)) for corner in corners]
    name, summary, joined, solutions = (f"chunkwise-label{each}-{token}" for each in ("", "-summary", "-join", "-solutions"))
    graph: dict[Any, Any] = {joined: (partial(blocks.join, places), [(summary, i) for i in range(len(corners))])}
    for i, (corner, place) in enumerate(zip(corners, places)):
        group, within = divmod(i, _SOLUTIONS_OF_A_TASK)
        given = ((x.name, *corner),) if is_lazy else ()
        graph[summary, i] = (partial(blocks.summarise, place), *given)
        if within == 0:
            graph[solutions, group] = (operator.getitem, joined, slice(i, i + _SOLUTIONS_OF_A_TASK))
        graph[name, *corner] = (partial(blocks.write, place, within), (solutions, group), *given)
    dependencies = [x] if is_lazy else []
    return da.Array(HighLevelGraph.from_collections(name, graph, dependencies), name, tuple(sizes),
                    meta=np.empty((0,) * len(shape), dtype))


# Reconstruction

def _visit(state: Any, mask: Any, around: list[tuple[tuple[int, ...], Any, Any]], filter: Filter, lowest: Any,
           options: dict[str, Any]) -> tuple[Any, tuple[tuple[int, ...], ...]]:
    """Brings a block to a fixed point with what its neighbours have, and says which of them see a change."""
    shape = state.shape
    states = np.full(tuple(each + 2 for each in shape), lowest, state.dtype)
    masks = states.copy()
    middle = (slice(1, -1),) * state.ndim
    states[middle] = state
    masks[middle] = mask
    for offset, of_state, of_mask in around:
        place = tuple(slice(0, 1) if o < 0 else slice(-1, None) if o > 0 else slice(1, -1) for o in offset)
        states[place] = of_state
        masks[place] = of_mask
    result = np.ascontiguousarray(filter(masks, states, **_threads(options))[middle])
    # NaN is as it was.
    changed = (result != state) & ~((result != result) & (state != state))
    wakes = tuple(offset for offset, _, _ in around
                  if changed[tuple(slice(0, 1) if o < 0 else slice(-1, None) if o > 0 else slice(None)
                                   for o in offset)].any())
    return result, wakes


def _layer(block: Any, offset: tuple[int, ...]) -> Any:
    """The part of this block that the block at the opposite side of `offset` sees."""
    return np.ascontiguousarray(block[tuple(slice(-1, None) if o < 0 else slice(0, 1) if o > 0 else slice(None)
                                            for o in offset)])


def _contract(state: Any, mask: Any, begin: tuple[int, ...], shape: tuple[int, ...], filter: Filter) -> bytes:
    """The part of a block that other blocks need: its border, and the forest on it."""
    operation = filter._operation(shape, state.dtype.name, state.dtype.name, further=filter._names_of([mask, state]))
    return bytes(_core.contract(operation, np.ascontiguousarray(state), np.ascontiguousarray(mask), turn(begin),
                                turn(shape)))


def _join(contractions: list[bytes], cuts: list[list[int]], shape: tuple[int, ...], dtype: np.dtype[Any],
          filter: Filter) -> list[bytes]:
    """The states of each block's border in the whole image; nothing if it has them already."""
    operation = filter._operation(shape, dtype.name, dtype.name, further=filter._names_of([0, 0]))
    return list(_core.join(operation, dtype.name, cuts[::-1], contractions))


def _finish(state: Any, mask: Any, border: bytes, begin: tuple[int, ...], shape: tuple[int, ...], filter: Filter,
            options: dict[str, Any]) -> Any:
    if not border:
        return state
    operation = filter._operation(shape, state.dtype.name, state.dtype.name, further=filter._names_of([mask, state]))
    raised = np.array(state, order="C")
    _core.raise_border(operation, border, raised, turn(begin), turn(shape))
    return filter(mask, raised, **_threads(options))


def reconstruction(marker: Any, mask: Any, erosion: bool = False, *, fully_connected: bool = False, rounds: int = 8,
                   **options: Any) -> Any:
    """Morphological reconstruction of Dask arrays of up to three dimensions, in rounds, and then by forests.

    Each block comes to a separate fixed point, with a layer of its neighbours around it; blocks beside a border that
    changed are visited again, until none changes. If ways wind through many blocks, that takes long: after `rounds`
    each block is contracted to a forest on its border, one task joins the forests, and each block is finished alone.
    The fixed point does not depend on the order. Computes at once, and keeps the image's blocks where they were
    computed.

    Parameters
    ----------
    marker, mask : dask.array.Array
    erosion : bool
        By erosion, over the mask; else by dilation, under it.
    fully_connected : bool
        Neighbours share a corner, not only a face.
    rounds : int
        After so many, at least one, what still changes is found by forests. One task joins them, and its worker's memory is
        the limit: of each voxel at a border between blocks it holds twice its bytes, and up to 16 more for an edge where
        both it and others can still rise. 2048 cubed uint16 in blocks of 256 cubed have 200 million such voxels: 0.8 GB,
        and up to 3.2 more. Larger blocks need less.

    Returns
    -------
    dask.array.Array
    """
    if marker.shape != mask.shape:
        raise _core.ParameterError(f"marker: its shape is {marker.shape}, the mask's is {mask.shape}")
    if mask.ndim > 3:
        raise _core.ParameterError(f"mask: it has {mask.ndim} dimensions; three are possible")
    kind = _core.common_kind(check_dtype(marker.dtype), check_dtype(mask.dtype))
    dtype = np.dtype(kind)
    if operator.index(rounds) < 1:
        raise _core.ParameterError(f"rounds: {rounds} is not at least 1")
    mask = _without_empty(mask.astype(dtype))
    marker = marker.astype(dtype).rechunk(mask.chunks)
    if 0 in mask.shape:
        return mask
    lowest = (np.iinfo(dtype).max if erosion else np.iinfo(dtype).min) if dtype.kind in "iu" else dtype.type(
        np.inf if erosion else -np.inf)
    filter = getattr(filters, "Reconstruct")(erosion=erosion, fully_connected=fully_connected)
    counts = tuple(len(along) for along in mask.chunks)
    indices = list(itertools.product(*(range(each) for each in counts)))
    offsets = [each for each in itertools.product((-1, 0, 1), repeat=mask.ndim)
               if any(each) and (fully_connected or sum(map(abs, each)) == 1)]
    pick, layer, visit = delayed(operator.getitem), delayed(_layer), delayed(_visit)

    start = delayed(np.maximum if erosion else np.minimum)
    masks = dict(zip(indices, dask.persist(*(mask.blocks[each].to_delayed().item() for each in indices))))
    states = dict(zip(indices, dask.persist(*(
        start(marker.blocks[each].to_delayed().item(), masks[each]) for each in indices))))
    active = list(indices)
    for _ in range(rounds):
        tasks = []
        for index in active:
            around = []
            for offset in offsets:
                other = tuple(i + o for i, o in zip(index, offset))
                if other in states:
                    around.append((offset, layer(states[other], offset), layer(masks[other], offset)))
            tasks.append(visit(states[index], masks[index], around, filter, lowest, options))
        visited = dask.persist(*tasks)
        wakes = dask.compute(*(pick(each, 1) for each in visited))
        states.update(zip(active, dask.persist(*(pick(each, 0) for each in visited))))
        woken = {tuple(i + o for i, o in zip(index, offset)) for index, each in zip(active, wakes) for offset in each}
        active = sorted(woken)
        if not active:
            break
    if active:
        shape = tuple(int(each) for each in mask.shape)
        cuts = [[0, *itertools.accumulate(map(int, along))] for along in mask.chunks]
        begins = {each: tuple(along[i] for along, i in zip(cuts, each)) for each in indices}
        contract, finish = delayed(_contract), delayed(_finish)
        borders = delayed(_join)([contract(states[each], masks[each], begins[each], shape, filter) for each in indices],
                                 cuts, shape, dtype, filter)
        finished = dask.persist(*(finish(states[each], masks[each], pick(borders, i), begins[each], shape, filter, options)
                                  for i, each in enumerate(indices)))
        states = dict(zip(indices, finished))

    def block(corner: tuple[int, ...]) -> Any:
        extent = tuple(along[i] for along, i in zip(mask.chunks, corner))
        return da.from_delayed(states[corner], extent, dtype)

    return da.block(_nest(block, list(counts)))


def _shifted(block: Any, height: Any, up: bool) -> Any:
    """The voxels higher or lower by a height, as far as their type goes."""
    if block.dtype.kind == "f":
        return block + block.dtype.type(height) if up else block - block.dtype.type(height)
    limits = np.iinfo(block.dtype)
    height = block.dtype.type(height)
    if up:
        return np.where(block > limits.max - height, limits.max, block + height).astype(block.dtype)
    return np.where(block < limits.min + height, limits.min, block - height).astype(block.dtype)


def _at_border(block: Any, elsewhere: Any, block_info: Any = None) -> Any:
    """The voxels at the image's edge; another value everywhere else."""
    result = np.full_like(block, elsewhere)
    info = block_info[0]
    for axis, (begin, end) in enumerate(info["array-location"]):
        for at, is_edge in ((0, begin == 0), (-1, end == info["shape"][axis])):
            if is_edge:
                edge = tuple(at if a == axis else slice(None) for a in range(block.ndim))
                result[edge] = block[edge]
    return result


def _next(block: Any, up: bool) -> Any:
    """The next number of the type above or below each voxel's, which is no marker where there is none."""
    if block.dtype.kind == "f":
        end = block.dtype.type(np.inf if up else -np.inf)
        return np.where(block == end, np.nan, np.nextafter(block, end)).astype(block.dtype)
    return _shifted(block, 1, up)


def _mark(block: Any, reconstructed: Any, extremum: Any, elsewhere: Any, dtype: np.dtype[Any]) -> Any:
    """One value where the reconstruction stayed away from the image, another elsewhere. NaN is no extremum."""
    return np.where((reconstructed != block) & (block == block), extremum, elsewhere).astype(dtype)


def _agreeing(marker: Any, reconstructed: Any, block: Any, elsewhere: Any) -> Any:
    """The image where the reconstruction left the marker as it was."""
    same = (marker == reconstructed) | ((marker != marker) & (reconstructed != reconstructed))
    return np.where(same, block, block.dtype.type(elsewhere)).astype(block.dtype)


# The parameters of a filter that rounds of blocks know.
_THRESHOLDS_OF_ROUNDS = {"low", "high"}
_PARAMETERS_OF_ROUNDS = _THRESHOLDS_OF_ROUNDS | {
    "fully_connected", "erosion", "height", "preserve_intensities", "radius", "element", "kernel", "foreground_value",
    "background_value", "flat_is_maxima", "flat_is_minima"}


def _has_rounds(filter: Filter, dimension: int) -> bool:
    """Whether blocks can take turns at a filter; else one task gets the whole image."""
    given = set(filter.parameters)
    return bool(dimension <= 3 and given <= _PARAMETERS_OF_ROUNDS
                and (filter._row.marker != "none" or given & _THRESHOLDS_OF_ROUNDS))


def _by_rounds(filter: Filter, x: Any, others: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """The filters that are made of a reconstruction, see _has_rounds."""
    row, given, wanted = filter._row, dict(filter.parameters), np.dtype(x.dtype)
    full = bool(given.get("fully_connected", False))
    erosion = bool(given.get("erosion", row.erosion))
    height = given.get("height")
    preserves = bool(given.get("preserve_intensities", False))
    window = {key: given[key] for key in ("radius", "element", "kernel") if key in given}
    thresholds = tuple(sorted({given[key] for key in _THRESHOLDS_OF_ROUNDS if key in given}))
    if row.marker == "input":
        reconstructed = reconstruction(others[0], x, erosion, fully_connected=full, **options)
        # By erosion it may have what only the marker's type holds.
        return reconstructed.astype(wanted) if wanted.kind == "b" else reconstructed
    if thresholds:
        # Voxels above the high threshold are reconstructed under voxels above the low one.
        filter._operation(tuple(x.shape), check_dtype(wanted), "uint8")
        above = [_apply(filters.Threshold(thresholds=each), x, (), None, None, None, None, options) for each in thresholds]
        if len(above) == 1:
            return above[0]
        low, high = dask.persist(*above)
        return reconstruction(high, low, fully_connected=full, **options)
    # Some blocks of a selection have no voxels. Blocks that are read several times are computed once.
    x = x.rechunk(tuple(tuple(each for each in along if each) or (0,) for along in x.chunks))
    if 0 in x.shape:
        return x
    dtype = np.dtype(check_dtype(wanted))
    x = x.astype(dtype).persist()
    elsewhere = (np.iinfo(dtype).max if erosion else np.iinfo(dtype).min) if dtype.kind in "iu" else (
        np.inf if erosion else -np.inf)
    if row.marker == "next":
        marker = x.map_blocks(_next, erosion, dtype=dtype)
    elif row.marker == "window":
        marker = _apply(getattr(filters, "Maximum" if erosion else "Minimum")(**window), x, (), None, None, None, None,
                        options).persist()
    elif row.marker == "shifted":
        # The engine says whether the image's type has the height.
        filter._operation(tuple(x.shape), dtype.name, dtype.name)
        marker = x.map_blocks(_shifted, height, erosion, dtype=dtype)
    else:
        marker = x.map_blocks(_at_border, elsewhere, dtype=dtype)
    result = reconstruction(marker, x, erosion, fully_connected=full, **options)
    if preserves:
        marker = da.map_blocks(_agreeing, marker, result, x, elsewhere, dtype=dtype)
        result = reconstruction(marker, x, erosion, fully_connected=full, **options)
    if row.gives == "residue":
        result = result - x if erosion else x - result
    elif row.gives == "extrema":
        # The filter itself says what extrema and all else get, and whether an image of one value is one.
        pair = filter(np.array([0, 1]).astype(wanted))
        if bool((x == x[(0,) * x.ndim]).all().compute()):
            return da.full(x.shape, filter(np.zeros(1, wanted))[0], dtype=wanted, chunks=x.chunks)
        return da.map_blocks(_mark, x, result, pair[1 - erosion], pair[int(erosion)], wanted, dtype=wanted)
    return result.astype(wanted)


register("dask", Runner(apply, _resolve, takes_grids=True, statistics=statistics, fill_label_holes=fill_label_holes))
