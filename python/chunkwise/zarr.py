# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""From store to store: images larger than memory, in Zarr, OME-Zarr, or behind a handle of TensorStore.

>>> import chunkwise
>>> f = chunkwise.filters.Gaussian(sigma=2)
>>> chunkwise.zarr.run(f, "in.zarr", "out.zarr", memory="4G")  # doctest: +SKIP
"""
from __future__ import annotations

import ctypes
import hashlib
import itertools
import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from . import _core
from ._arrays import check_dtype, make_progress, parse_bytes
from ._filter import Filter, Region, _run_region, _turn
from ._regions import region_of

# zarr-python decodes so many chunks at a time.
_CHUNKS_AT_A_TIME = 10
# Chunks or shards of the output that are encoded at a time, at most, and the part of the memory that they may take.
_UNITS_AT_A_TIME = 16
_PART_OF_UNITS = 8
_LEAST_SCRATCH = 2**24
# Threads, codecs and what the C library keeps of memory that was freed; less where there is hardly room for scratch.
_OVERHEAD = 3 * 2**23
_JOURNAL = ".chunkwise-journal"


class Report(NamedTuple):
    """What a run did."""

    blocks: int
    skipped: int  # blocks that an earlier, interrupted run had finished
    bytes_read: int
    bytes_written: int


class _Store:
    """An array that is read and written by slices, and its write unit."""

    def __init__(self, array: Any) -> None:
        self.array = array
        package = type(array).__module__.partition(".")[0]
        self.is_tensorstore = package == "tensorstore"
        # Several threads may write whole units.
        self.takes_threads = package in ("tensorstore", "zarr")
        if self.is_tensorstore:
            if any(array.domain.origin):
                raise _core.ParameterError(f"source: its domain begins at {array.domain.origin}, not at 0")
            self.dtype = array.dtype.numpy_dtype
            unit = array.chunk_layout.write_chunk.shape
            chunks = array.chunk_layout.read_chunk.shape
        else:
            self.dtype = np.dtype(array.dtype)
            chunks = getattr(array, "chunks", None)
            unit = getattr(array, "shards", None) or chunks
        self.shape: tuple[int, ...] = tuple(int(each) for each in array.shape)
        # Along axes where nothing says how, a plane or a row at a time.
        whole = (1, *self.shape[1:])
        self.unit = tuple(max(1, int(each)) for each in (unit if unit is not None else whole))
        self.chunks = tuple(max(1, int(each)) for each in (chunks if chunks is not None else whole))

    @property
    def copies(self) -> int:
        """How often a unit is in memory while it is encoded; the chunks of a shard are encoded, and then joined."""
        return 3 if self.unit == self.chunks else 4

    def read(self, where: tuple[slice, ...]) -> np.ndarray[Any, Any]:
        if self.is_tensorstore:
            return np.asarray(self.array[where].read().result())
        return np.asarray(self.array[where])

    def write(self, where: tuple[slice, ...], data: np.ndarray[Any, Any]) -> None:
        if self.is_tensorstore:
            self.array[where].write(data).result()
        else:
            self.array[where] = data

    @property
    def name(self) -> str:
        if self.is_tensorstore:
            return json.dumps(self.array.spec().to_json().get("kvstore", ""), sort_keys=True)
        if hasattr(self.array, "store_path"):
            return str(self.array.store_path)
        # A store of zarr-python 2 has no name but that of its object.
        files = _files_of(self.array)
        return f"file://{os.path.abspath(files)}" if files is not None else str(
            getattr(self.array, "store", type(self.array).__name__))


class _Image(NamedTuple):
    """An opened source: its array, and what OME-Zarr says of it."""

    array: Any
    spacing: tuple[float, ...] | None
    axes: tuple[int, ...] | None
    metadata: dict[str, Any] | None  # of OME-Zarr, for level 0 alone
    level: str


def _open(source: Any) -> _Image:
    if isinstance(source, (str, os.PathLike)):
        import zarr

        source = zarr.open(os.fspath(source), mode="r")
    if not hasattr(source, "group_keys") and not hasattr(source, "groups"):
        return _Image(source, None, None, None, "")
    attributes = dict(source.attrs)
    ome = attributes.get("ome", attributes)
    if not ome.get("multiscales"):
        raise _core.ParameterError(f"source: the group {source!r} has no multiscales; pass one of its arrays")
    scales = ome["multiscales"][0]
    level = scales["datasets"][0]
    array = source[level["path"]]
    factors = [1.0] * array.ndim
    for transforms in (scales.get("coordinateTransformations", ()), level.get("coordinateTransformations", ())):
        for each in transforms:
            if each["type"] == "scale":
                factors = [a * float(b) for a, b in zip(factors, each["scale"])]
    kinds = [each.get("type", "") if isinstance(each, dict) else ("space" if each in "zyx" else "")
             for each in scales.get("axes", ())]
    axes = tuple(i for i, kind in enumerate(kinds) if kind == "space")
    only = {**scales, "datasets": [level]}
    metadata = {"ome": {**ome, "multiscales": [only]}} if "ome" in attributes else {"multiscales": [only]}
    return _Image(array, tuple(factors), axes if axes and len(axes) < array.ndim else None, metadata, level["path"])


def _create(path: str, like: Any, shape: tuple[int, ...], dtype: np.dtype[Any], image: _Image) -> Any:
    """An array, or a group of OME-Zarr with one level, stored as the source is."""
    import zarr

    where = os.path.join(path, image.level) if image.metadata is not None else path
    chunks = getattr(like, "chunks", None)
    if not hasattr(zarr, "create_array"):
        if image.metadata is not None:
            zarr.open_group(path, mode="w").attrs.update(image.metadata)
        separator = getattr(like, "_dimension_separator", None)
        return zarr.open_array(where, mode="w", shape=shape, chunks=chunks or True, dtype=dtype,
                               compressor=getattr(like, "compressor", "default"), fill_value=0,
                               dimension_separator=separator)
    # An array that was there is replaced; its caller has asked for that.
    metadata: Any = getattr(like, "metadata", None)
    version: Any = getattr(metadata, "zarr_format", 3)
    if image.metadata is not None:
        zarr.open_group(path, mode="w", zarr_format=version, attributes=image.metadata)
    options: dict[str, Any] = {}
    if isinstance(like, zarr.Array):
        options = {"compressors": like.compressors, "shards": like.shards}
        if version == 3:
            options["dimension_names"] = metadata.dimension_names
        else:
            options["chunk_key_encoding"] = {"name": "v2", "separator": metadata.dimension_separator}
    return zarr.create_array(where, shape=shape, dtype=dtype, chunks=chunks or "auto", zarr_format=version, fill_value=0,
                             overwrite=True, **options)


class _Blocks:
    """How a result is cut: columns of whole write units, each in slabs along the first axis.

    Reading ends where a layer of the source's chunks does, so that none is decoded for two blocks; a layer of 1: where the
    block's input does.
    """

    def __init__(self, shape: tuple[int, ...], extents: tuple[int, ...], operation: Any, layer: int = 1,
                 writers: int = 1, unit: tuple[int, ...] = ()) -> None:
        self.shape = shape
        self.extents = extents
        self.operation = operation
        self.layer = layer
        self.writers = writers  # units of the output that are encoded at a time
        self.unit = unit
        self.written: np.ndarray[Any, Any] | None = None  # units that an earlier run has finished

    def finish(self, box: Sequence[Sequence[int]]) -> None:
        """Notes the units of a box, begin and end along each axis."""
        if self.written is None:
            self.written = np.zeros([-(-extent // unit) for extent, unit in zip(self.shape, self.unit)], bool)
        self.written[tuple(slice(begin // unit, -(-end // unit)) for (begin, end), unit in zip(box, self.unit))] = True

    def is_finished(self, region: Region) -> bool:
        return self.written is not None and bool(self.written[tuple(
            slice(each.start // unit, -(-each.stop // unit)) for each, unit in zip(region.output, self.unit))].all())

    def end(self, region: Region) -> int:
        """Where what is held for a region ends along the first axis."""
        return int(min(self.shape[0], -(-region.input[0].stop // self.layer) * self.layer))

    def held(self, region: Region) -> tuple[int, ...]:
        """The extents of what is held for a region."""
        return (self.end(region) - region.input[0].start, *(each.stop - each.start for each in region.input[1:]))

    def kept(self, before: Region | None, region: Region) -> int:
        """Planes of what was held that the next region begins with; 0 where it is another column."""
        if before is None or before.input[1:] != region.input[1:]:
            return 0
        in_order = before.input[0].start <= region.input[0].start and before.input[0].stop <= region.input[0].stop
        return max(0, self.end(before) - region.input[0].start) if in_order else 0

    def __iter__(self) -> Iterator[Region]:
        along = [[slice(i, min(i + size, extent)) for i in range(0, extent, size)]
                 for size, extent in zip(self.extents, self.shape)]
        for column in itertools.product(*along[1:]):
            for slab in along[0]:
                yield region_of(self.operation, (slab, *column), self.shape)

    def most(self) -> tuple[int, int, int]:
        """Voxels of the largest input, of what of it is new, and of the largest output."""
        largest, fresh = 0, 0
        before: Region | None = None
        for region in self._sample():
            planes, *others = self.held(region)
            largest = max(largest, planes * math.prod(others))
            fresh = max(fresh, (planes - self.kept(before, region)) * math.prod(others))
            before = region
        return largest, fresh, math.prod(min(a, b) for a, b in zip(self.extents, self.shape))

    def _sample(self) -> Iterator[Region]:
        """Regions among which the largest is: blocks at the begin, in the middle and at the end of each axis."""
        chosen = []
        for size, extent in zip(self.extents, self.shape):
            count = -(-extent // size)
            chosen.append(sorted({0, 1, count // 2, count // 2 + 1, count - 2, count - 1} & set(range(count))))
        for column in itertools.product(*chosen[1:]):
            for i in chosen[0]:
                index = (i, *column)
                yield region_of(self.operation, tuple(slice(k * size, min(k * size + size, extent)) for k, size, extent
                                                      in zip(index, self.extents, self.shape)), self.shape)


def _count_writers(output: _Store, memory: int) -> int:
    """How many units of the output are encoded at a time, at most."""
    if not output.takes_threads:
        return 1
    unit = math.prod(min(a, b) for a, b in zip(output.unit, output.shape)) * output.dtype.itemsize
    most = min(_UNITS_AT_A_TIME, os.cpu_count() or 1)
    return int(max(1, min(most, memory // _PART_OF_UNITS // max(1, output.copies * unit))))


def _choose_blocks(operation: Any, shape: tuple[int, ...], source: _Store, output: _Store, memory: int,
                   whole: set[int], begun: tuple[int, ...] | None) -> tuple[_Blocks, int]:
    """The blocks that fit into the memory, and what they leave for scratch; those that were `begun` if these fit."""
    def extents(units: list[int]) -> tuple[int, ...]:
        return tuple(min(unit * count, extent) for unit, count, extent in zip(output.unit, units, shape))

    def need(units: list[int], layer: int = 1) -> int:
        largest, fresh, written = _Blocks(shape, extents(units), operation, layer).most()
        # Encoded, decoded, and what the codec takes; of a shard all that is needed is read before it is decoded.
        decoded = _CHUNKS_AT_A_TIME * math.prod(min(a, b) for a, b in zip(source.unit, shape))
        encoded = writers * math.prod(min(a, b) for a, b in zip(output.unit, shape))
        return int((largest + fresh + 3 * min(decoded, fresh)) * source.dtype.itemsize
                + (2 * written + output.copies * encoded) * output.dtype.itemsize)

    writers = _count_writers(output, memory)
    counts = [-(-extent // unit) for extent, unit in zip(shape, output.unit)]
    units = [counts[0] if 0 in whole else 1, *counts[1:]]
    overhead = min(_OVERHEAD, max(0, memory - 2 * _LEAST_SCRATCH) // 2)
    room = memory - max(_LEAST_SCRATCH, memory // 8) - overhead
    while need(units) > room:
        # The axis with the most units gives way; the last one last, where voxels lie one after the other.
        shrinkable = [a for a in range(1, len(units)) if units[a] > 1 and a not in whole]
        if not shrinkable and writers > 1:
            writers = 1
            continue
        if not shrinkable:
            least = need(units) + _OVERHEAD
            raise _core.BudgetError(
                f"memory: blocks of {' x '.join(map(str, extents(units)))} voxels, the least that holds whole write units "
                f"of the output, need {least + max(_LEAST_SCRATCH, least // 7)} bytes, more than {memory}; smaller chunks "
                "or shards of the output need less")
        axis = max(shrinkable, key=lambda a: (units[a], -a))
        units[axis] = -(-units[axis] // 2)
    while 0 not in whole and units[0] < max(1, counts[0] // 8):
        more = [units[0] * 2, *units[1:]]
        if need(more) > room // 2:
            break
        units = more
    earlier = [-(-extent // unit) for extent, unit in zip(begun or (), output.unit)]
    if earlier and need(earlier) <= room:
        units = earlier
    layer = source.chunks[0] if need(units, source.chunks[0]) <= room else 1
    return _Blocks(shape, extents(units), operation, layer, writers, output.unit), memory - need(units, layer) - overhead


# What stores tell of an object beside its size; where they tell none of these, a change of equal size is not seen.
_STAMPS = ("mtime", "LastModified", "last_modified", "updated", "ETag", "etag", "md5Hash", "content_md5", "Content-MD5")


def _files_of(array: Any) -> str | None:
    """The file or folder that holds an array, if it is on this machine."""
    if isinstance(array, np.memmap):
        return None if array.filename is None else os.fspath(array.filename)
    if type(array).__module__.partition(".")[0] == "tensorstore":
        kvstore = array.spec().to_json().get("kvstore", "")
        if isinstance(kvstore, dict) and kvstore.get("driver") == "file":
            return str(kvstore["path"])
        return str(kvstore).removeprefix("file://") if str(kvstore).startswith("file://") else None
    if type(array).__module__.partition(".")[0] == "h5py":
        return str(array.file.filename)
    store = getattr(array, "store", None)
    for name in ("root", "dir_path", "path"):
        where: Any = getattr(store, name, None)
        where = where() if callable(where) else where
        if isinstance(where, (str, os.PathLike)) and os.path.exists(where):
            inner = os.path.join(where, getattr(array, "path", ""))
            return inner if os.path.exists(inner) else os.fspath(where)
    return None


def _stamps_of(array: Any) -> Iterator[tuple[Any, ...]]:
    """Name, size and time of change of everything that holds an array's voxels."""
    where = _files_of(array)
    if where is not None and not os.path.isdir(where):
        found = os.stat(where)
        yield "", found.st_size, found.st_mtime_ns
    elif where is not None:
        for folder, _, names in os.walk(where):
            for name in names:
                path = os.path.join(folder, name)
                found = os.stat(path)
                yield os.path.relpath(path, where), found.st_size, found.st_mtime_ns
    else:
        store = getattr(array, "store", None)
        files = getattr(store, "fs", None)
        if files is None or getattr(files, "asynchronous", False):
            return
        root = os.path.join(str(getattr(store, "path", "")), getattr(array, "path", ""))
        for name, entry in files.find(root, detail=True).items():
            yield name, entry.get("size"), *(str(entry[key]) for key in _STAMPS if key in entry)


def _state_of(array: Any) -> str:
    """A text that differs where an array's contents or layout have changed, as far as its store tells.

    Arrays in memory, and stores that list neither times nor tags, show a change of shape, type and layout alone.
    """
    metadata: Any = getattr(array, "metadata", None)
    layout = metadata.to_dict() if hasattr(metadata, "to_dict") else [str(getattr(array, each, "")) for each in (
        "chunks", "shards", "compressor", "filters", "fill_value", "order")]
    digest = hashlib.sha256(json.dumps([list(array.shape), str(array.dtype), layout], sort_keys=True, default=str).encode())
    for stamp in sorted(_stamps_of(array), key=str):
        digest.update(repr(stamp).encode())
    return digest.hexdigest()


class _Journal:
    """What is known of a run that goes on, or was stopped: a line of text for the run, one when its output was made, and
    one for each block after it was written. Whoever has it open has it alone."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        while True:
            self._file = path.open("a+")
            if not _lock(self._file):
                self._file.close()
                raise _core.Error(f"output: another run is writing there; it holds {path}")
            # Who had it before may have removed it.
            try:
                is_there = os.path.samestat(os.fstat(self._file.fileno()), os.stat(path))
            except FileNotFoundError:
                is_there = False
            if is_there:
                break
            self._file.close()
        self._file.seek(0)
        text = self._file.read()
        *self._lines, rest = text.split("\n")
        if rest:
            # A part of a line.
            self._file.truncate(len(text.encode()) - len(rest.encode()))

    @property
    def is_begun(self) -> bool:
        return bool(self._lines)

    @property
    def has_output(self) -> bool:
        return len(self._lines) > 1

    @property
    def done(self) -> list[list[list[int]]]:
        """The blocks: begin and end along each axis."""
        return [json.loads(line) for line in self._lines[2:]]

    def check(self, head: dict[str, Any]) -> None:
        """Throws where the run that was begun is another one."""
        if self._lines[0] == json.dumps(head, sort_keys=True):
            return
        try:
            before = json.loads(self._lines[0])
            other = [key for key in head if before.get(key) != head[key]]
        except (json.JSONDecodeError, AttributeError):
            other = []
        raise _core.ParameterError(f"output: {self.path} was begun by another run ({', '.join(other) or 'unreadable'} "
                                   "differ); resume=False, overwrite=True begins anew")

    def begin(self, head: dict[str, Any]) -> None:
        self._file.truncate(0)
        self._lines = []
        self._add(head)

    def add_output(self) -> None:
        self._add("made")

    def add(self, output: tuple[slice, ...]) -> None:
        self._add([[each.start, each.stop] for each in output])

    def _add(self, line: Any) -> None:
        self._lines.append(json.dumps(line, sort_keys=True))
        self._file.write(self._lines[-1] + "\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self, finished: bool) -> None:
        # Removed while it is still locked, where open files can be removed.
        if os.name == "nt":
            self._file.close()
        if finished or not self.is_begun:
            self.path.unlink(missing_ok=True)
        self._file.close()


def _lock(file: Any) -> bool:
    """Whether the file is this run's alone; True where locks are not to be had."""
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


def _trim() -> None:
    """Gives back what the C library of Linux keeps of freed memory: of each thread up to some chunks."""
    give_back = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if give_back is not None:
        give_back(0)


def _write_units(store: _Store, where: tuple[slice, ...], data: np.ndarray[Any, Any],
                 encoders: ThreadPoolExecutor | None) -> None:
    """As many units at a time as there are encoders: each of them takes memory."""
    def write(corner: tuple[int, ...]) -> None:
        box = tuple(slice(start, min(start + unit, each.stop)) for start, unit, each in zip(corner, store.unit, where))
        store.write(box, data[tuple(slice(a.start - b.start, a.stop - b.start) for a, b in zip(box, where))])
        _trim()

    corners = itertools.product(*(range(each.start, each.stop, unit) for each, unit in zip(where, store.unit)))
    if encoders is None:
        for corner in corners:
            write(corner)
        return
    futures = [encoders.submit(write, corner) for corner in corners]
    try:
        for future in futures:
            future.result()
    finally:
        # After a failure nothing may go on with the memory.
        for future in futures:
            future.cancel()
        wait(futures)


def run(filter: Filter, source: Any, output: Any, *, memory: int | str = "4G", dtype: Any = None, resume: bool = True,
        overwrite: bool = False, journal: str | os.PathLike[str] | None = None, spacing: Any = None,
        progress: bool | Callable[[float], object] | None = None, **options: Any) -> Report:
    """Filters an image from store to store, in blocks of whole write units, under a memory limit.

    While a block is computed, the next one is read and the last one is written. Planes that two blocks share are kept:
    where whole planes fit into the memory, each voxel is read once, and each layer of the source's chunks where one more
    fits. Units of the output are encoded by several threads, as many as an eighth of the memory has room for.

    Parameters
    ----------
    filter : Filter
        Of `chunkwise.filters`; a summed-area table hands its sums on from block to block.
    source : path, zarr.Array, zarr.Group of OME-Zarr, or a TensorStore handle
        Anything with ``shape``, ``dtype`` and slices. Of OME-Zarr level 0 is read; lengths are in its unit, and windows
        lie along its axes of space.
    output : path, or an array as the source
        A path is made anew, stored as the source is (OME-Zarr with level 0).
    memory : int or str
        For blocks, what decodes them, and scratch; what Python and its packages take before the run comes on top.
    dtype : dtype, optional
        Of an output that is made; else the filter's default.
    resume : bool
        Go on where an earlier run was stopped or killed. It is an error if the filter, the version of this package, or
        the source is another one: its layout, and the times, sizes and tags that a file system or object store has for
        its parts. Of an array in memory, and of a store that tells none of these, a change of the voxels is not seen;
        nor is a change of the output by others. Where `memory` has no room for the blocks that were begun, the rest is
        cut into smaller ones. False begins anew.
    overwrite : bool
        An output may be there, and is replaced.
    journal : path, optional
        Where the finished blocks are noted; beside an output that is a path. Without one a run cannot be resumed.
    spacing : sequence of float, or False, optional
        Instead of the source's.
    progress, **options
        As of all filters.

    Returns
    -------
    Report

    Raises
    ------
    BudgetError
        If the least block of whole write units needs more than `memory`.
    Error
        If another run, in this process or another, is writing the output: it has locked the journal.
    """
    limit = parse_bytes(memory, "memory")
    image = _open(source)
    read_from = _Store(image.array)
    shape = read_from.shape
    if not 1 <= len(shape) <= 5:
        raise _core.ParameterError(f"source: it has {len(shape)} dimensions; images have 1 to 5")
    if filter.is_automatic:
        raise _core.ParameterError(f"{filter!r}: auto needs the whole image; .resolved(image) takes the value from one")
    if filter.parameters.get("valid"):
        raise _core.ParameterError("valid: the result is smaller than the image, which no store to store run has")
    if filter.number_of_inputs != 1:
        raise _core.ParameterError(f"{filter!r} takes {filter.number_of_inputs} images; chunkwise.dask takes several")
    kind = check_dtype(read_from.dtype, False, "source")
    from . import __version__

    path = os.fspath(output) if isinstance(output, (str, os.PathLike)) else None
    notes = Path(journal) if journal is not None else None
    if notes is None and path is not None and "://" not in path:
        notes = Path(path.rstrip("/") + _JOURNAL)
    # What cannot be done is said before anything is made.
    wanted = np.dtype(dtype) if dtype is not None else (filter.default_dtype(read_from.dtype) if path is not None
                                                        else np.dtype(_Store(output).dtype))
    output_kind = check_dtype(wanted, False, "output")
    given = image.spacing if spacing is None else (tuple(float(each) for each in spacing) if spacing else None)
    operation = filter._operation(shape, kind, output_kind, given, axes=image.axes)
    _core.check_kinds(operation, [kind], output_kind)
    if path is not None and _is_within(read_from.name, path):
        raise _core.ParameterError(f"output: {path} is the source, or holds it")
    if 0 in shape:
        raise _core.ParameterError(f"source: its shape is {shape}, it has no voxels")
    # Blocks are chosen for the output's units, which are the source's where it is made; a trial before it is.
    imagined = _Imagined(read_from, wanted) if path is not None else _Store(output)
    _plan(filter, operation, shape, read_from, imagined, limit)

    record = _Journal(notes) if notes is not None else None
    finished = False
    try:
        is_there = path is not None and "://" not in path and os.path.exists(path)
        begun = record if record is not None and record.is_begun and resume and (path is None or is_there) else None
        if path is not None and is_there and begun is None and not overwrite:
            raise FileExistsError(f"output: {path} is there; overwrite=True replaces it")
        if record is not None:
            head = json.loads(json.dumps({
                "filter": filter.key, "spacing": given, "axes": image.axes, "shape": shape, "dtype": kind,
                "source": read_from.name, "output dtype": output_kind, "unit": imagined.unit, "version": __version__,
                "contents of the source": _state_of(read_from.array)}))
            if begun is not None:
                begun.check(head)
            else:
                record.begin(head)
        if path is None:
            write_to = _Store(output)
        elif begun is not None and begun.has_output and operation.schedule != "sweep":
            import zarr

            opened = zarr.open(os.path.join(path, image.level) if image.metadata is not None else path, mode="r+")
            write_to = _Store(opened)
        else:
            write_to = _Store(_create(path, image.array, shape, wanted, image))
        if write_to.shape != shape:
            raise _core.ParameterError(f"output: its shape is {write_to.shape}, the source's is {shape}")
        if write_to.dtype.newbyteorder("=") != wanted.newbyteorder("="):
            raise _core.ParameterError(f"output: its type is {write_to.dtype}, not {wanted}")
        if write_to.array is read_from.array or (write_to.name == read_from.name and "MemoryStore" not in write_to.name
                                                 and not isinstance(write_to.array, np.ndarray)):
            raise _core.ParameterError("output: it is the source")
        if record is not None and not record.has_output:
            record.add_output()
        # What a sweep hands on from block to block is not noted: it begins anew.
        done = record.done if record is not None and operation.schedule != "sweep" else []
        blocks, scratch = _plan(filter, operation, shape, read_from, write_to, limit, done)
        notices = record if operation.schedule != "sweep" else None
        with ThreadPoolExecutor(blocks.writers, "chunkwise-encode") as pool:
            encoders = pool if write_to.takes_threads else None
            report = _run_blocks(filter, operation, blocks, read_from, write_to, wanted, scratch, notices, progress,
                                 options, encoders)
        finished = True
        return report
    finally:
        if record is not None:
            record.close(finished)


def _is_within(name: str, path: str) -> bool:
    """Whether a store's name is of a folder that is, or is in, the folder `path`."""
    if not name.startswith("file://") or "://" in path:
        return False
    inner, outer = Path(name.removeprefix("file://")).resolve(), Path(path).resolve()
    return inner == outer or outer in inner.parents


class _Imagined(_Store):
    """An output that is not there yet."""

    def __init__(self, like: _Store, dtype: np.dtype[Any]) -> None:
        self.shape, self.unit, self.chunks, self.dtype = like.shape, like.unit, like.chunks, dtype
        self.takes_threads = True


def _plan(filter: Filter, operation: Any, shape: tuple[int, ...], source: _Store, output: _Store,
          limit: int, done: Sequence[Any] = ()) -> tuple[_Blocks, int]:
    """`done`: blocks that are finished, begin and end along each axis."""
    ndim = len(shape)
    whole = {a for a in range(ndim) if operation.needs_whole_axis(ndim - 1 - a, _turn(shape))
             or operation.schedule in ("fixpoint", "passes")}
    if operation.schedule == "sweep":
        if ndim - 1 - operation.sweep_axis(_turn(shape)) != 0:
            raise _core.ParameterError(f"{filter!r}: sums of an image of {ndim} dimensions cannot go on along its first axis")
        whole = set(range(1, ndim))
    blocks, scratch = _choose_blocks(operation, shape, source, output, limit, whole,
                                     tuple(stop - start for start, stop in min(done)) if done else None)
    for each in done:
        blocks.finish(each)
    return blocks, scratch


def _run_blocks(filter: Filter, operation: Any, blocks: _Blocks, source: _Store, output: _Store, dtype: np.dtype[Any],
                scratch: int, record: _Journal | None, progress: Any, options: dict[str, Any],
                encoders: ThreadPoolExecutor | None) -> Report:
    from ._arrays import make_options

    shape = blocks.shape
    every = list(blocks)
    steps = [each for each in every if not blocks.is_finished(each)]
    sweeps = operation.schedule == "sweep"
    run_options = make_options(**{"memory": scratch, **options})
    show = make_progress(progress)
    total = math.prod(shape)
    finished = total - sum(math.prod(each.shape) for each in steps)
    native = dtype.newbyteorder("=")
    largest = max((math.prod(blocks.held(each)) for each in steps), default=0)
    room = np.empty(largest, source.dtype.newbyteorder("="))
    targets = [np.empty(max((math.prod(each.shape) for each in steps), default=0), native) for _ in range(2)]
    counts = [0, 0]

    def fetch(before: Region | None, region: Region) -> np.ndarray[Any, Any]:
        begin = region.input[0].start + blocks.kept(before, region)
        if begin == blocks.end(region):
            return np.empty((0, *blocks.held(region)[1:]), source.dtype)
        part = source.read((slice(begin, blocks.end(region)), *region.input[1:]))
        counts[0] += part.nbytes
        _trim()
        return part

    def store(region: Region, data: np.ndarray[Any, Any]) -> None:
        _write_units(output, region.output, data, encoders)
        counts[1] += data.nbytes
        if record is not None:
            record.add(region.output)

    before: Region | None = None
    window: np.ndarray[Any, Any] = room[:0]
    writes: list[Future[None] | None] = [None, None]
    current = operation
    if show is not None:
        show(finished / total)
    with ThreadPoolExecutor(1, "chunkwise-read") as reader, ThreadPoolExecutor(1, "chunkwise-write") as writer:
        ahead = reader.submit(fetch, None, steps[0]) if steps else None
        try:
            for i, region in enumerate(steps):
                assert ahead is not None
                part = ahead.result()
                kept = blocks.kept(before, region)
                extent = blocks.held(region)
                # Planes move down one after the other, so that none is overwritten before it has moved.
                last, window = window, room[:math.prod(extent)].reshape(extent)
                for plane in range(kept):
                    window[plane] = last[len(last) - kept + plane]
                window[kept:] = part
                del part
                before = region
                ahead = reader.submit(fetch, region, steps[i + 1]) if i + 1 < len(steps) else None
                earlier = writes[i % 2]
                if earlier is not None:
                    earlier.result()
                target = targets[i % 2][:math.prod(region.shape)].reshape(region.shape)
                needed = window[: region.input[0].stop - region.input[0].start]
                _run_region(current, [needed], region, shape, target, native, run_options)
                if sweeps and i + 1 < len(steps):
                    end = region.output[0].stop
                    carry = _core.advance(current, needed, [0] * (len(shape) - 1) + [region.input[0].start], native.name,
                                          0)
                    current = _core.with_carry(current, end, carry)
                writes[i % 2] = writer.submit(store, region, target)
                finished += math.prod(region.shape)
                if show is not None and i + 1 < len(steps):
                    show(finished / total)
            for write in (writes[len(steps) % 2], writes[(len(steps) + 1) % 2]):
                if write is not None:
                    write.result()
        finally:
            if ahead is not None:
                ahead.cancel()
    if show is not None:
        show(1.0)
    return Report(len(every), len(every) - len(steps), counts[0], counts[1])


def _call(filter: Filter, input: Any, *others: Any, output: Any, **options: Any) -> Any:
    if any(each is not None for each in others):
        raise TypeError(f"{filter!r} with several images; chunkwise.dask takes several")
    run(filter, input, output, **{key: value for key, value in options.items() if value is not None})
    return output
