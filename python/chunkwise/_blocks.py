# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""How a result is cut for a store: into columns of whole write units, each of which is a stream of the engine.

The engine divides a column along one axis, keeps what two blocks share, and reads, computes and writes at a time.
"""
from __future__ import annotations

import ctypes
import itertools
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple, NoReturn

import numpy as np

from . import _core
from ._arrays import check_dtype, make_options, make_progress, warn
from ._journal import Journal
from ._regions import box_of, turn
from ._states import States
from ._stores import Imagined, Store

# Threads, codecs and what the C library keeps of memory that was freed: a quarter of the memory, between these.
_OVERHEAD = (2**24, 3 * 2**23)
# Units that are decoded, or encoded, at a time, at most, and the part of the memory that they may take.
_UNITS_AT_A_TIME = 16
_PART_OF_UNITS = 8
# Small units are read together, up to so many bytes, and up to that part of the memory.
_BYTES_AT_A_TIME = 2**21
_PART_OF_BYTES = 32
# Blocks of a column, at least: what an interrupted run has to do again is one of them.
_LEAST_BLOCKS = 8


class Image(NamedTuple):
    """An image that a run reads: its store, and the kind that the operation takes its voxels as."""

    store: Store
    kind: str


class Report(NamedTuple):
    """The report of a run."""

    blocks: int
    skipped: int  # blocks that an earlier, interrupted run had finished
    bytes_read: int
    bytes_written: int
    iterations_done: int = 0  # that an earlier, interrupted run of a deconvolution had done


def _trim() -> None:
    """Gives back what the C library of Linux keeps of freed memory: of each thread up to some chunks."""
    give_back = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if give_back is not None:
        give_back(0)


def _inside(box: Sequence[slice], of: Sequence[slice]) -> tuple[slice, ...]:
    return tuple(slice(a.start - b.start, a.stop - b.start) for a, b in zip(box, of))


class Units:
    """Threads that each read or write a box of whole units of a store at a time."""

    def __init__(self, store: Store, room: int, least_bytes: int = 0) -> None:
        size = [min(a, b) for a, b in zip(store.unit, store.shape)]
        for axis in reversed(range(len(size))):
            while size[axis] < store.shape[axis] and 2 * math.prod(size) * store.dtype.itemsize <= least_bytes:
                size[axis] *= 2
        self._size = size
        #: Bytes that a box, and that all of them take.
        self.one = store.copies * math.prod(size) * store.dtype.itemsize
        most = min(_UNITS_AT_A_TIME, os.cpu_count() or 1) if store.takes_threads else 1
        self._count = max(1, min(most, room // _PART_OF_UNITS // max(1, self.one)))
        self.all = self._count * self.one
        self._pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> None:
        self._pool = ThreadPoolExecutor(self._count, "chunkwise-units") if self._count > 1 else None

    def __exit__(self, *_: Any) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    def visit(self, where: Sequence[slice], work: Callable[[tuple[slice, ...]], None]) -> None:
        """Calls work(box) for all of `where`."""
        boxes = itertools.product(*(
            [slice(max(i, each.start), min(i + step, each.stop))
             for i in range(each.start - each.start % step, each.stop, step)] for each, step in zip(where, self._size)))
        if self._pool is None:
            for box in boxes:
                work(box)
            return
        futures = [self._pool.submit(work, box) for box in boxes]
        try:
            for future in futures:
                future.result()
        finally:
            # After a failure nothing may go on with the memory.
            for future in futures:
                future.cancel()
            wait(futures)


class Blocks:
    """The columns of a result that fit into a memory; the columns that were `begun`, of these extents, if they fit.

    Images are in the engine's order; a file in the folder `spool` holds what a run in slabs leaves between its passes. `estimated` is a
    filter and its parameter of which the run is to find the value. `keeps_states`: a run keeps its states in a file.
    """

    def __init__(self, operation: Any, images: Sequence[Image], output: Store, memory: int, spool: str, options: dict[str, Any],
                 begun: Sequence[int] | None = None, estimated: tuple[str, str] = ("", ""), keeps_states: bool = False) -> None:
        self.shape = output.shape
        #: Along which the engine divides.
        self.axis = next((a for a, extent in enumerate(self.shape) if extent > 1), len(self.shape) - 1)
        self._operation, self._images, self._output, self._spool = operation, images, output, spool
        self._estimated, self._keeps_states = estimated, keeps_states
        self._options = make_options(**options)
        room = max(0, memory - min(_OVERHEAD[1], max(_OVERHEAD[0], memory // 4)))
        self.reading = [Units(each.store, room // len(images), min(_BYTES_AT_A_TIME, room // _PART_OF_BYTES)) for each in images]
        self.writing = Units(output, room)
        self._memory = max(1, room - sum(each.all for each in self.reading) - self.writing.all)
        self._counts = [-(-extent // unit) for extent, unit in zip(self.shape, output.unit)]
        self._units = self._choose(memory, begun)

    def _choose(self, memory: int, begun: Sequence[int] | None) -> list[int]:
        """Units of the output in a column along each axis."""
        units = [min(count, -(-extent // unit)) for count, extent, unit in zip(self._counts, begun or self.shape,
                                                                               self._output.unit)]
        units[self.axis] = self._counts[self.axis]
        fitting: list[int] | None = None
        while True:
            narrowed = max((a for a in range(len(units)) if units[a] > 1 and a != self.axis and not self._is_whole(a)),
                           key=lambda a: (units[a], -a), default=None)
            needed, overlaps = 0, True
            for column in self._columns(units, True):
                tried = self.stream(self._region(column, 0, self._counts[self.axis]))
                needed, overlaps = max(needed, tried.needed), overlaps and tried.overlaps
                if needed > 0 and narrowed is not None:
                    break
            if needed == 0 and overlaps:
                return units
            if needed == 0 and fitting is None:
                fitting = list(units)
            if narrowed is None:
                break
            # The axis with the most units gives way; the last one last, where voxels lie one after the other.
            units[narrowed] = -(-units[narrowed] // 2)
        if fitting is None:
            self._refuse(units, needed, memory)
        return fitting

    def _is_whole(self, axis: int) -> bool:
        """Whether the operation needs all along an axis, or the value of a parameter does."""
        return bool(self._estimated[0]) or self._operation.schedule in ("fixpoint", "passes", "sweep", "two-pass") or self._operation.needs_whole_axis(
            len(self.shape) - 1 - axis, turn(self._images[0].store.shape))

    def _refuse(self, units: Sequence[int], needed: int, memory: int) -> NoReturn:
        room = -(-4 * (needed + sum(each.one for each in self.reading) + self.writing.one) // 3)
        least = room + min(_OVERHEAD[1], max(_OVERHEAD[0], -(-room // 3)))
        extents = [min(unit * (1 if a == self.axis and not self._is_whole(a) else count), extent)
                   for a, (unit, count, extent) in enumerate(zip(self._output.unit, units, self.shape))]
        error = _core.BudgetError(
            f"memory: blocks of {' x '.join(map(str, extents))} voxels, the least that holds whole write units of the "
            f"output, need {least} bytes, more than {memory}; smaller chunks or shards of the output need less")
        error.needed, error.budget = least, memory
        raise error

    def _columns(self, units: Sequence[int], sample: bool = False) -> Iterator[tuple[slice, ...]]:
        """Slices of units. A sample has the largest, which is in the middle or at the image's edge."""
        along = []
        for size, count in zip(units, self._counts):
            every = [slice(i, min(i + size, count)) for i in range(0, count, size)]
            along.append([every[i] for i in dict.fromkeys((len(every) // 2, 0, len(every) - 1))] if sample else every)
        return itertools.product(*along)

    def _region(self, column: Sequence[slice], begin: int, end: int) -> tuple[slice, ...]:
        """Voxels of the rows of units from `begin` to `end`."""
        rows = [slice(begin, end) if a == self.axis else each for a, each in enumerate(column)]
        return tuple(slice(each.start * unit, min(each.stop * unit, extent))
                     for each, unit, extent in zip(rows, self._output.unit, self.shape))

    def regions(self, done: Iterable[Sequence[Sequence[int]]]) -> Iterator[tuple[slice, ...]]:
        """The boxes that are left beside finished blocks, begin and end along each axis."""
        finished = np.zeros(self._counts, bool)
        for box in done:
            finished[tuple(slice(begin // unit, -(-end // unit)) for (begin, end), unit in zip(box, self._output.unit))] = True
        others = tuple(a for a in range(len(self.shape)) if a != self.axis)
        for column in self._columns(self._units):
            rows = np.atleast_1d(finished[column].all(axis=others))
            for is_finished, group in itertools.groupby(range(len(rows)), key=lambda row: bool(rows[row])):
                found = list(group)
                if not is_finished:
                    yield self._region(column, found[0], found[-1] + 1)

    @contextmanager
    def readers(self, read_bytes: list[int]) -> Iterator[list[Callable[..., None]]]:
        """Functions that fill an array with a part of an image, one for each image; they note the bytes."""

        def reader(store: Store, units: Units) -> Callable[..., None]:
            def read(where: tuple[slice, ...], array: np.ndarray[Any, Any]) -> None:
                def one(box: tuple[slice, ...]) -> None:
                    array[_inside(box, where)] = store.read(box)

                units.visit(where, one)
                read_bytes.append(array.nbytes)
                _trim()
            return read

        with ExitStack() as stack:
            for units in self.reading:
                stack.enter_context(units)
            yield [reader(image.store, units) for image, units in zip(self._images, self.reading)]

    def estimate(self, progress: Any) -> list[float]:
        """The numbers that stand for "auto" in the estimated parameter."""
        stream = self.stream(self._region([slice(0, each) for each in self._counts], 0, self._counts[self.axis]))
        with self.readers([]) as reads:
            numbers: list[float] = stream.estimate(reads, progress)
        return numbers

    def stream(self, region: tuple[slice, ...]) -> Any:
        """The engine's run over a region."""
        lower, upper = box_of(region)
        rows = -(-(region[self.axis].stop - region[self.axis].start) // self._output.unit[self.axis])
        inputs = [(check_dtype(each.store.dtype), each.kind, turn(each.store.chunks)) for each in self._images]
        return _core.Stream(self._operation, inputs, check_dtype(self._output.dtype), turn(self._images[0].store.shape), lower, upper,
                            turn(self._output.unit), self._memory, min(_LEAST_BLOCKS, rows), self._spool,
                            self._estimated, self._keeps_states, self._options)


def check_memory(runs: Sequence[tuple[Any, Sequence[Image], Store]], memory: int, spool: str, options: dict[str, Any]) -> None:
    """Throws the BudgetError of the run, of operation, inputs and output, that needs the most, if one needs too much."""
    refused = []
    for operation, images, output in runs:
        try:
            Blocks(operation, images, output, memory, spool, options)
        except _core.BudgetError as error:
            refused.append(error)
    if refused:
        raise max(refused, key=lambda error: error.needed)


def estimate(filter: Any, parameter: str, stores: Sequence[Store | None], spacing: Any, axes: Any, memory: int,
             options: dict[str, Any]) -> list[float]:
    """The numbers that stand for "auto" in a parameter of a filter, which has a provisional value. Reads the images block by
    block, once or more."""
    source = stores[0]
    assert source is not None
    order, kind = filter.order([None if each is None else each.dtype for each in stores])
    images = [Image(each, own) for i, own in order if (each := stores[i]) is not None]
    dtype = filter.default_dtype(source.dtype)
    operation = filter._operation(source.shape, kind, check_dtype(dtype), spacing, filter._names_of(stores), axes=axes,
                                  boolean=source.dtype.kind == "b")
    blocks = Blocks(operation, images, Imagined(source, source.shape, dtype), memory, "", options, estimated=(filter.name, parameter))
    return blocks.estimate(None)


def run_blocks(operation: Any, images: Sequence[Image], output: Store, memory: int, spool: str, record: Journal | None,
               progress: Any, options: dict[str, Any], states: States | None = None) -> Report:
    """Computes what no earlier run has finished, and notes each block."""
    done = record.done if record is not None else []
    blocks = Blocks(operation, images, output, memory, spool, options, [end - begin for begin, end in min(done)] if done else None,
                    keeps_states=states is not None)
    regions = list(blocks.regions(done))
    sizes = [math.prod(each.stop - each.start for each in region) for region in regions]
    total = math.prod(output.shape)
    finished = total - sum(sizes)
    written, bytes_written = 0, 0
    read_bytes: list[int] = []

    def write(where: tuple[slice, ...], array: np.ndarray[Any, Any]) -> None:
        nonlocal written, bytes_written

        def one(box: tuple[slice, ...]) -> None:
            # The engine writes to the array again; who is given a box may keep it.
            output.write(box, array[_inside(box, where)].copy())
            _trim()

        blocks.writing.visit(where, one)
        if record is not None:
            record.add(where)
        written += 1
        bytes_written += array.nbytes

    show = make_progress(progress) or (lambda part: None)
    show(finished / total)
    with blocks.readers(read_bytes) as reads, blocks.writing:
        for region, size in zip(regions, sizes):
            before = finished
            found = blocks.stream(region).run(reads, write, states, lambda part: show((before + part * size) / total))
            finished += size
            if found["warnings"]:
                warn(found)
    return Report(len(done) + written, len(done), sum(read_bytes), bytes_written, states.done if states is not None else 0)
