# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Runs from store to store, in blocks of whole write units, and the levels of an image."""
from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from . import _core
from ._arrays import check_dtype, parse_bytes
from ._blocks import Blocks, Image, Report, estimate, run_blocks
from ._dispatch import Runner, register
from ._filter import Filter
from ._journal import Journal
from ._ome import Labels, Levels, check_place, create, open_image, open_level, share_of_level
from ._outputs import check_output, check_run, names_of
from ._regions import turn
from ._states import States
from ._stores import Imagined, Store, state_of
from ._version import __version__

_JOURNAL = ".chunkwise-journal"
_STATE = ".state"


def run(filter: Filter, source: Any, output: Any, *, others: Sequence[Any] = (), memory: int | str = "4G", dtype: Any = None,
        resume: bool = True, overwrite: bool = False, journal: str | os.PathLike[str] | None = None, spacing: Any = None,
        pyramid: str | None = None, progress: bool | Callable[[float], object] | None = None, **options: Any) -> Report:
    """Filters an image from store to store, in blocks of whole write units, under a memory limit.

    While a block is computed, the next one is read and the last one is written. Planes that two blocks share are kept:
    where whole planes fit into the memory, each voxel is read once, and each layer of the source's chunks where one more
    fits. Units of the output are encoded by several threads, as many as an eighth of the memory has room for.

    Parameters
    ----------
    filter : Filter
        A filter of `chunkwise.filters`. The result of a filter with another grid, such as `Bin`, has its shape. A summed-area table
        hands its sums on from block to block. `Label`, `Distance`, `Watershed`,
        `Deconvolve`, and reconstructions such as `FillHoles`, go over an image that `memory` cannot hold more than once, in slabs of whole
        planes. Between two passes a temporary file without a name holds what they keep, beside an output that is a path, or
        where Python's `tempfile` makes its files.
    source : path, zarr.Array, zarr.Group of OME-Zarr, or a TensorStore handle
        Anything with ``shape``, ``dtype`` and slices. Level 0 of OME-Zarr is read; lengths are in its unit, and windows
        lie along its axes of space.
    output : path, or an array as the source
        A path is made anew, stored as the source is (OME-Zarr with level 0). ``STORE/labels/NAME`` makes labels of an image of
        OME-Zarr that is there: integers, which the store's group of labels then names.
    others : sequence
        Further images in the filter's order, as the source is given: a mask, markers, weights. None leaves one out.
    memory : int or str
        For blocks, what decodes them, and scratch; what Python and its packages take before the run comes on top.
    dtype : dtype, optional
        Type of an output that is made; by default the filter's.
    resume : bool
        Go on where an earlier run was stopped or killed. It is an error if the filter, the version of this package, or
        the source is another one: its layout, and the times, sizes and tags that a file system or object store has for
        its parts. Changed voxels are not noticed in an array in memory, in a store without this information, and in an
        output that others change. If `memory` has no room for the blocks that were begun, the rest is cut into smaller
        ones. A `Deconvolve` that iterates goes on behind the last iteration whose state it has kept, in a file beside the journal, also with
        more iterations. False begins anew.
    overwrite : bool
        An output may be there, and is replaced.
    journal : path, optional
        File that lists the finished blocks; by default beside an output that is a path. Without one a run cannot be resumed.
    spacing : sequence of float, or False, optional
        Instead of the source's.
    pyramid : {'mean', 'mode', 'minimum', 'maximum', 'median', 'gaussian'}, optional
        Then the output, a path that becomes an image of OME-Zarr, gets levels by this method (`chunkwise.zarr.pyramid`).
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
    image = open_image(source)
    read_from = Store(image.array)
    path = os.fspath(output) if isinstance(output, (str, os.PathLike)) else None
    further = [None if each is None else open_image(each) for each in others]
    stores = [read_from, *(None if each is None else Store(each.array) for each in further)]
    check_run(filter, stores, path)
    for name, other in zip(names_of(filter)[1:], further):
        if other is not None:
            check_place(image, other, name)
    # Errors are raised before anything is made.
    if pyramid is not None and (path is None or image.metadata is None):
        raise _core.ParameterError("pyramid: only an output that is a path, made of an image of OME-Zarr, gets levels")
    if pyramid is not None:
        Filter("bin", {"method": pyramid})
    order, kind = filter.order([None if each is None else each.dtype for each in stores])
    images = [Image(each, own) for i, own in order if (each := stores[i]) is not None]
    shape = read_from.shape
    if 0 in shape:
        raise _core.ParameterError(f"source: its shape is {shape}, it has no voxels")
    given = image.spacing if spacing is None else (tuple(float(each) for each in spacing) if spacing else None)

    def make(filter: Filter, output_kind: str) -> Any:
        return filter._operation(shape, kind, output_kind, given, filter._names_of(stores), axes=image.axes,
                                 boolean=read_from.dtype.kind == "b")

    def take(stand_in: Filter, parameter: str) -> list[float]:
        with filter.worded(len(shape)):
            return estimate(stand_in, parameter, stores, given, image.axes, limit, options)

    filter = filter.estimated(take)
    natural = read_from.dtype if filter._is_of_bool(stores) else np.dtype(kind)
    wanted = np.dtype(dtype) if dtype is not None else (filter.default_dtype(natural) if path is not None
                                                        else np.dtype(Store(output).dtype))
    output_kind = check_dtype(wanted, "output")
    labels = Labels.find(path)
    if labels is not None:
        labels.check(image, wanted)
        if pyramid not in (None, "mode", "minimum", "maximum", "median"):
            raise _core.ParameterError(f"pyramid: {pyramid!r} makes values that are no labels; 'mode' does not")
        image = labels.describe(image)
    operation = make(filter, output_kind)
    filter.check_kinds(operation, [each.kind for each in images], output_kind, len(shape))
    # State that blocks hand on, and that of several passes, is not noted: such a run begins anew, unless it keeps its states.
    begins_anew = operation.schedule != "independent" or operation.keeps_states
    if operation.schedule == "sweep" and len(shape) - 1 - operation.sweep_axis(turn(shape)) != 0:
        raise _core.ParameterError(f"{filter!r}: sums of an image of {len(shape)} dimensions cannot go on along its first axis")
    result_shape = filter.result_shape(shape, kind, output_kind, image.axes)
    if path is not None and image.metadata is not None and result_shape != shape:
        raise _core.ParameterError("output: a path would have no places of the result's voxels in space; give an array")
    # Blocks are chosen for the output's units, which are the source's where it is made; a trial before it is.
    imagined = Imagined(read_from, result_shape, wanted) if path is not None else Store(output)
    spool = (labels.folder if labels is not None else
             os.path.dirname(os.path.abspath(path)) if path is not None and "://" not in path else tempfile.gettempdir())
    keeps_states = operation.keeps_states and (journal is not None or (path is not None and "://" not in path))
    with filter.worded(len(shape)):
        Blocks(operation, images, imagined, limit, spool, options, keeps_states=keeps_states)

    notes = Path(journal) if journal is not None else None
    if notes is None and path is not None and "://" not in path:
        notes = Path((path.rstrip("/") if labels is None else os.path.join(labels.folder, labels.name)) + _JOURNAL)
    record = Journal(notes) if notes is not None else None
    finished, states = False, None
    try:
        is_there = path is not None and "://" not in path and os.path.exists(path)
        begun = record if record is not None and record.is_begun and resume and (path is None or is_there) else None
        if path is not None and is_there and begun is None and not overwrite:
            raise FileExistsError(f"output: {path} is there; overwrite=True replaces it")
        if record is not None:
            head = {
                # A run that keeps its states may go on with more iterations.
                "filter": filter.replaced(number_of_iterations=1).key if keeps_states else filter.key,
                "spacing": given, "axes": image.axes, "shape": shape, "dtype": kind,
                "source": [each and each.name for each in stores], "output dtype": output_kind, "unit": imagined.unit,
                "version": __version__, "contents of the source": [each and state_of(each.array) for each in stores]}
            record.begin_or_check(begun is not None, head)
            if keeps_states:
                states = States(record.path.with_name(record.path.name + _STATE), head, begun is not None)
        goes_on = begun is not None and begun.has_output and not begins_anew
        write_to = Store(output if path is None else open_level(path, image) if goes_on else
                          create(path, image.array, result_shape, wanted, image))
        check_output(filter, write_to, stores, result_shape, wanted)
        if record is not None and not record.has_output:
            record.add_output()
        with filter.worded(len(result_shape)):
            report = run_blocks(operation, images, write_to, limit, spool, None if begins_anew else record, progress, options, states)
        if labels is not None:
            labels.add(3 if "ome" in (image.metadata or {}) else 2)
        if pyramid is not None and path is not None:
            _add_levels(path, method=pyramid, memory=memory, overwrite=True, **options)
        finished = True
        return report
    finally:
        if states is not None:
            states.close(finished)
        if record is not None:
            record.close(finished)


def _call(filter: Filter, input: Any, *others: Any, output: Any, **options: Any) -> Any:
    package = type(input).__module__.partition(".")[0]
    if output is None or type(output).__module__.partition(".")[0] not in ("zarr", "tensorstore"):
        raise TypeError(f"input: an array of {package} is read piece by piece where output= is one, too "
                        "(chunkwise.zarr.run); input[...] reads it into memory")
    run(filter, input, output, others=others, **{key: value for key, value in options.items() if value is not None})
    return output


def _resolve(filter: Filter, parameter: str, source: Any, others: Sequence[Any], options: dict[str, Any]) -> list[float]:
    """The numbers that stand for "auto", as they follow from a source."""
    image = open_image(source)
    read_from = Store(image.array)
    stores = [read_from, *(None if each is None else Store(open_image(each).array) for each in others)]
    filter.check_shapes(stores)
    rest = {key: value for key, value in options.items() if key != "memory" and value is not None}
    with filter.worded(len(read_from.shape)):
        return estimate(filter, parameter, stores, image.spacing, image.axes, parse_bytes(options.get("memory") or "4G", "memory"),
                        rest)


register("store", Runner(_call, _resolve))


def pyramid(store: str | os.PathLike[str], *, method: str = "mean", levels: int | None = None, memory: int | str = "4G",
            overwrite: bool = False, progress: bool | Callable[[float], object] | None = None, **options: Any) -> int:
    """Adds levels to an image of OME-Zarr 0.4 or 0.5, each of half as many voxels along the axes of space.

    The levels have the voxels that `chunkwise pyramid` gives: bins (`chunkwise.bin`) of the level before. They are stored as the first
    level is, and become part of the image at the end: until then readers find it as it was.

    Parameters
    ----------
    store : path
        The group that has the image.
    method : {'mean', 'mode', 'minimum', 'maximum', 'median', 'gaussian'}
        The value of a block; `mode` is for labels. `gaussian` is a mean with weights that reach beyond the block (1 3 3 1).
    levels : int, optional
        Number of all levels; by default until one has 256 voxels or fewer along each axis of space.
    memory : int or str
        As of `run`.
    overwrite : bool
        There may be levels below the first one, which are replaced.
    progress, **options
        As of all filters.

    Returns
    -------
    int
        The number of levels that the image has.
    """
    added = Levels(os.fspath(store), overwrite)
    while not added.is_last(levels):
        last, level, axes = added.add()
        run(Filter("bin", {"factor": 2, "method": method, "axes": axes}), last, level, memory=memory,
            progress=share_of_level(progress, added.number - 1), **options)
    added.finish(method)
    if callable(progress):
        progress(1.0)
    return added.number

_add_levels = pyramid
