# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""From store to store: images larger than memory, in Zarr, OME-Zarr, or behind a handle of TensorStore.

>>> import chunkwise
>>> f = chunkwise.filters.Gaussian(sigma=2)
>>> chunkwise.zarr.run(f, "in.zarr", "out.zarr", memory="4G")  # doctest: +SKIP
"""
from __future__ import annotations

import inspect
import os
import re
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from . import _core
from ._arrays import check_dtype, make_progress, parse_bytes
from ._blocks import Blocks, Image, Report, run_blocks
from ._dispatch import Runner, register
from ._filter import Filter
from ._journal import Journal
from ._regions import turn
from ._separate import choose_method, make_watershed
from ._states import States
from ._stores import Imagined, Store, state_of
from ._version import __version__

_JOURNAL = ".chunkwise-journal"
_STATE = ".state"


class _Image(NamedTuple):
    """An opened source: its array, and what OME-Zarr says of it."""

    array: Any
    spacing: tuple[float, ...] | None
    axes: tuple[int, ...] | None
    metadata: dict[str, Any] | None  # of OME-Zarr, for level 0 alone
    level: str
    translation: tuple[float, ...] | None = None


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
    factors, moved = [1.0] * array.ndim, [0.0] * array.ndim
    for transforms in (level.get("coordinateTransformations", ()), scales.get("coordinateTransformations", ())):
        for each in transforms:
            numbers = each.get(each["type"], ())
            if each["type"] in ("scale", "translation") and len(numbers) != array.ndim:
                raise _core.ParameterError(f"source: a {each['type']} of its metadata has {len(numbers)} numbers, its array has "
                                           f"{array.ndim} axes")
            if each["type"] == "scale":
                factors = [a * float(b) for a, b in zip(factors, each["scale"])]
                moved = [a * float(b) for a, b in zip(moved, each["scale"])]
            elif each["type"] == "translation":
                moved = [a + float(b) for a, b in zip(moved, each["translation"])]
    kinds = [each.get("type", "") if isinstance(each, dict) else ("space" if each in "zyx" else "")
             for each in scales.get("axes", ())]
    axes = tuple(i for i, kind in enumerate(kinds) if kind == "space")
    only = {**scales, "datasets": [level]}
    metadata = {"ome": {**ome, "multiscales": [only]}} if "ome" in attributes else {"multiscales": [only]}
    return _Image(array, tuple(factors), axes if axes and len(axes) < array.ndim else None, metadata, level["path"],
                  tuple(moved))


def _check_place(image: _Image, other: _Image, name: str) -> None:
    """Refuses a further image of OME-Zarr that lies elsewhere than the source."""
    for what, here, there, unit in (("scale", image.spacing, other.spacing, 0.0),
                                    ("translation", image.translation, other.translation, 1e-6 * max(image.spacing or (1.0,)))):
        if here and there and not np.allclose(here, there, rtol=1e-6, atol=unit):
            raise _core.ParameterError(f"{name}: its {what} is {there}, the source's is {here}; the array of its group is taken as "
                                       "it is")


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


def _open_level(path: str, image: _Image) -> Any:
    """The output that an earlier run has made."""
    import zarr

    return zarr.open(os.path.join(path, image.level) if image.metadata is not None else path, mode="r+")


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
        A path is made anew, stored as the source is (OME-Zarr with level 0).
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
    pyramid : {'mean', 'mode', 'minimum', 'maximum', 'median'}, optional
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
    image = _open(source)
    read_from = Store(image.array)
    path = os.fspath(output) if isinstance(output, (str, os.PathLike)) else None
    further = [None if each is None else _open(each) for each in others]
    stores = [read_from, *(None if each is None else Store(each.array) for each in further)]
    _check(filter, stores, path)
    for name, other in zip(_names(filter)[1:], further):
        if other is not None:
            _check_place(image, other, name)
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
        dtype = stand_in.default_dtype(read_from.dtype)
        with filter.worded(len(shape)):
            blocks = Blocks(make(stand_in, check_dtype(dtype)), images, Imagined(read_from, shape, dtype), limit, "", options,
                            estimated=(filter.name, parameter))
            return blocks.estimate(None)

    filter = filter.estimated(take)
    natural = read_from.dtype if filter._is_of_bool(stores) else np.dtype(kind)
    wanted = np.dtype(dtype) if dtype is not None else (filter.default_dtype(natural) if path is not None
                                                        else np.dtype(Store(output).dtype))
    output_kind = check_dtype(wanted, "output")
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
    spool = os.path.dirname(os.path.abspath(path)) if path is not None and "://" not in path else tempfile.gettempdir()
    keeps_states = operation.keeps_states and (journal is not None or (path is not None and "://" not in path))
    with filter.worded(len(shape)):
        Blocks(operation, images, imagined, limit, spool, options, keeps_states=keeps_states)

    notes = Path(journal) if journal is not None else None
    if notes is None and path is not None and "://" not in path:
        notes = Path(path.rstrip("/") + _JOURNAL)
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
        write_to = Store(output if path is None else _open_level(path, image) if goes_on else
                          _create(path, image.array, result_shape, wanted, image))
        _check_output(filter, write_to, stores, result_shape, wanted)
        if record is not None and not record.has_output:
            record.add_output()
        with filter.worded(len(result_shape)):
            report = run_blocks(operation, images, write_to, limit, spool, None if begins_anew else record, progress, options, states)
        if pyramid is not None and path is not None:
            _add_levels(path, method=pyramid, memory=memory, overwrite=True, **options)
        finished = True
        return report
    finally:
        if states is not None:
            states.close(finished)
        if record is not None:
            record.close(finished)


def _check(filter: Filter, stores: Sequence[Store | None], path: str | None) -> None:
    """Throws where no run from store to store can be."""
    dimension = len(stores[0].shape)  # type: ignore[union-attr]
    if not 1 <= dimension <= 5:
        raise _core.ParameterError(f"source: it has {dimension} dimensions; images have 1 to 5")
    if filter.parameters.get("valid"):
        raise _core.ParameterError("valid: the result is smaller than the image, which no store to store run has")
    filter._names_of(list(stores))
    filter.check_shapes(stores)
    for name, each in zip(_names(filter), stores):
        if each is not None and path is not None and _is_within(each.name, path):
            raise _core.ParameterError(f"output: {path} is the {name}, or holds it")


def _names(filter: Filter) -> list[str]:
    """The names of the images in error messages."""
    return ["source", *(each.name for each in filter._row.inputs)]


def _check_output(filter: Filter, output: Store, stores: Sequence[Store | None], shape: tuple[int, ...],
                  wanted: np.dtype[Any]) -> None:
    if output.shape != shape:
        owner = "source" if stores[0] is not None and shape == stores[0].shape else "result"
        raise _core.ParameterError(f"output: its shape is {output.shape}, the {owner}'s is {shape}")
    if output.dtype.newbyteorder("=") != wanted.newbyteorder("="):
        raise _core.ParameterError(f"output: its type is {output.dtype}, not {wanted}")
    for name, each in zip(_names(filter), stores):
        if each is not None:
            _check_apart(output, each, name)


def _check_apart(output: Store, input: Store, name: str) -> None:
    if output.array is input.array or (
            output.name == input.name and "MemoryStore" not in output.name and not isinstance(output.array, np.ndarray)):
        raise _core.ParameterError(f"output: it is the {name}")


def _is_within(name: str, path: str) -> bool:
    """Whether a store's name is of a folder that is, or is in, the folder `path`."""
    if not name.startswith("file://") or "://" in path:
        return False
    inner, outer = Path(name.removeprefix("file://")).resolve(), Path(path).resolve()
    return inner == outer or outer in inner.parents


def _call(filter: Filter, input: Any, *others: Any, output: Any, **options: Any) -> Any:
    package = type(input).__module__.partition(".")[0]
    if output is None or type(output).__module__.partition(".")[0] not in ("zarr", "tensorstore"):
        raise TypeError(f"input: an array of {package} is read piece by piece where output= is one, too "
                        "(chunkwise.zarr.run); input[...] reads it into memory")
    run(filter, input, output, others=others, **{key: value for key, value in options.items() if value is not None})
    return output


register("store", Runner(_call))


def _share(progress: bool | Callable[[float], object] | None, level: int) -> bool | Callable[[float], object] | None:
    """The progress of a level, of which each has about an eighth of the voxels of the one before."""
    if not callable(progress):
        return progress
    whole, left = progress, 0.125 ** (level - 1)
    return lambda part: whole(1 - left + part * 0.875 * left)


# A level with so few voxels along each axis of space is the last one.
_LAST_LEVEL = 256


def pyramid(store: str | os.PathLike[str], *, method: str = "mean", levels: int | None = None, memory: int | str = "4G",
            overwrite: bool = False, progress: bool | Callable[[float], object] | None = None, **options: Any) -> int:
    """Adds levels to an image of OME-Zarr 0.4 or 0.5, each of half as many voxels along the axes of space.

    The levels have the voxels that `chunkwise pyramid` gives: bins (`chunkwise.bin`) of the level before. They are stored as the first
    level is, and become part of the image at the end: until then readers find it as it was.

    Parameters
    ----------
    store : path
        The group that has the image.
    method : {'mean', 'mode', 'minimum', 'maximum', 'median'}
        The value of a block; `mode` is for labels.
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
    import zarr

    where = os.fspath(store)
    group = zarr.open_group(where, mode="r+")
    image = _open(group)
    attributes: Any = dict(group.attrs)
    scales = attributes.get("ome", attributes)["multiscales"][0]
    first = scales["datasets"][0]
    transforms: Any = first.get("coordinateTransformations") or ({},)
    if "scale" not in transforms[0]:
        raise _core.ParameterError(f"store: {where} has no scale for its first level, as OME-Zarr 0.4 and 0.5 ask for")
    if len(scales["datasets"]) > 1 and not overwrite:
        raise FileExistsError(f"store: {where} has {len(scales['datasets'])} levels; overwrite=True replaces them")
    space = image.axes if image.axes is not None else tuple(range(image.array.ndim))
    wanted = levels if levels is not None else sys.maxsize
    datasets, arrays, factors = [first], [image.array], [1] * image.array.ndim
    while len(arrays) < wanted and max(arrays[-1].shape[a] for a in space) > (1 if levels else _LAST_LEVEL):
        last, number = arrays[-1], len(arrays)
        # After a number that is not 0 the numbers behind it: no level has the first one's place.
        folder = first["path"].partition("/")[0]
        name = (f"{first['path'][:-1]}{number}" if re.fullmatch(r"[^/0-9]*0", first["path"]) else
                str(number + (int(folder) if re.fullmatch(r"[0-9]{1,9}", folder) else 0)))
        if name in group and not overwrite:
            raise FileExistsError(f"store: {where} has {name!r}, which is no level of its image; overwrite=True replaces it")
        factor = tuple(2 if a in space and extent > 1 else 1 for a, extent in enumerate(last.shape))
        axes = tuple(a for a in range(last.ndim) if factor[a] > 1)
        shape = tuple(-(-extent // by) for extent, by in zip(last.shape, factor))
        level = _create(os.path.join(where, name), image.array, shape, last.dtype, image._replace(metadata=None))
        run(Filter("bin", {"factor": 2, "method": method, "axes": axes}), last, level, memory=memory,
            progress=_share(progress, len(arrays)), **options)
        factors = [a * b for a, b in zip(factors, factor)]
        scale = [float(a) for a in transforms[0]["scale"]]
        moved = [size * (by - 1) / 2 for size, by in zip(scale, factors)]
        others = list(transforms[1:])
        if others and others[0].get("type") == "translation":
            moved = [a + float(b) for a, b in zip(moved, others.pop(0)["translation"])]
        datasets.append({**first, "path": name, "coordinateTransformations": [
            {"type": "scale", "scale": [size * by for size, by in zip(scale, factors)]},
            {"type": "translation", "translation": moved}, *others]})
        arrays.append(level)
    scales["datasets"] = datasets
    scales["type"] = method
    group.attrs.update(attributes)
    if callable(progress):
        progress(1.0)
    return len(datasets)


_add_levels = pyramid


def measure(labels: Any, intensity: Any = None, *, spacing: Any = None, **options: Any) -> dict[str, np.ndarray[Any, Any]]:
    """The table of `chunkwise.measure` of labels in a store, which are read once, in slabs of whole chunks.

    Parameters
    ----------
    labels, intensity : path, zarr.Array, zarr.Group of OME-Zarr, or a TensorStore handle
        Level 0 of OME-Zarr is read, and its scale is the spacing.
    spacing, **options
        As of `chunkwise.measure`.
    """
    from ._measure import measure as of_arrays

    image = _open(labels)
    values = None if intensity is None else _open(intensity).array
    return of_arrays(image.array, values, spacing=spacing if spacing is not None else image.spacing, **options)


def separate(source: Any, output: Any, method: str | None = None, *, lower: float | None = None, upper: float | None = None,
             height: float | None = None, area: float | None = None, connectivity: int = 1, dtype: Any = None,
             overwrite: bool = False, memory: int | str = "4G", spacing: Any = None,
             progress: bool | Callable[[float], object] | None = None, **options: Any) -> Report:
    """The labels of `chunkwise.separate`, from store to store: objects above a threshold, separated where they are narrow.

    The mask and the distances to its contour, 1 and 4 bytes a voxel, lie in a folder beside an output that is a path, or
    where Python's `tempfile` makes its folders, and go at the end.

    Parameters
    ----------
    source, output, dtype, overwrite, memory, spacing, progress, **options
        As of `run`; labels are uint32 by default.
    method, lower, upper, height, area, connectivity
        As of `chunkwise.separate`.

    Returns
    -------
    Report
        The report of the watershed, the last of three runs.

    Raises
    ------
    BudgetError
        If `memory` is too small; the message says what is enough.
    """
    from . import filters

    threshold = filters.Threshold(choose_method(method, lower, upper), lower=lower, upper=upper)
    watershed = make_watershed(connectivity, height, area, None)
    path = os.fspath(output) if isinstance(output, (str, os.PathLike)) else None
    show = make_progress(progress)

    def part(i: int) -> Callable[[float], object] | None:
        return None if show is None else lambda fraction: show((i + fraction) / 3)

    # The last run reads neither the source nor its types: all is checked before the first one.
    read_from = Store(_open(source).array)
    _check(threshold, [read_from], path)
    if path is None:
        _check_apart(Store(output), read_from, "source")
    elif "://" not in path and os.path.exists(path) and not overwrite:
        raise FileExistsError(f"output: {path} is there; overwrite=True replaces it")
    shape = read_from.shape
    kind = check_dtype(np.dtype(dtype or watershed.default_dtype(np.float32)) if path is not None else Store(output).dtype, "output")
    operation = watershed._operation(shape, "float32", kind, further=watershed._names_of([read_from, None, read_from]))
    watershed.check_kinds(operation, ["float32", "uint8"], kind, len(shape))
    where = os.path.dirname(os.path.abspath(path)) if path is not None and "://" not in path else None
    distance = filters.Distance("contour")
    imagined = {name: Image(Imagined(read_from, shape, np.dtype(name)), name) for name in ("uint8", "float32", kind)}
    result = Store(output) if path is None else imagined[kind].store
    refused = []
    for planned, inputs, made in ((distance._operation(shape, "uint8", "float32"), ["uint8"], imagined["float32"].store),
                                  (operation, ["float32", "uint8"], result)):
        try:
            Blocks(planned, [imagined[name] for name in inputs], made, parse_bytes(memory, "memory"), where or tempfile.gettempdir(),
                   {name: value for name, value in options.items() if name not in inspect.signature(run).parameters})
        except _core.BudgetError as error:
            refused.append(error)
    if refused:
        raise max(refused, key=lambda error: error.needed)
    given: dict[str, Any] = {"memory": memory, "spacing": spacing, "resume": False, **options}
    with tempfile.TemporaryDirectory(dir=where, prefix=".chunkwise-") as folder:
        mask, distances = os.path.join(folder, "mask"), os.path.join(folder, "distances")
        run(threshold, source, mask, dtype="uint8", progress=part(0), **given)
        run(distance, mask, distances, dtype="float32", progress=part(1), **given)
        return run(watershed, distances, output, others=[None, mask], dtype=dtype, overwrite=overwrite, progress=part(2), **given)
