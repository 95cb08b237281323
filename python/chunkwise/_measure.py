# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Measurements of the objects of an image of labels: docs/measurements.md says what each column is."""
from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np

from . import _core, filters
from ._arrays import as_input, check_dtype, make_options
from ._containers import Opened, check_place, is_on_device, open_image
from ._device import measure as measure_on_device
from ._dispatch import runner_of


def check_labels(array: Any) -> str:
    """The kind of labels, which are integers; bool is one label."""
    kind = check_dtype(np.dtype(array.dtype), "labels")
    if kind.startswith("float"):
        raise _core.ParameterError(f"labels: {array.dtype} is none of the types of labels, integers of 8 to 64 bits; "
                                   '.astype("uint32") makes it one')
    return kind


def _open(image: Any, name: str) -> Opened:
    try:
        return open_image(image)
    except TypeError as error:
        raise TypeError(str(error).replace("input:", f"{name}:", 1)) from None


def spacing_of(spacing: Any, ndim: int) -> list[float]:
    """For each axis of an array, all above 0."""
    given = [float(each) for each in np.ravel(spacing)]
    given = given * ndim if len(given) == 1 else given
    if len(given) != ndim or not all(0 < each < float("inf") for each in given):
        raise _core.ParameterError(f"spacing: {spacing!r} is not one number above 0, or one for each of {ndim} axes")
    return given


def tables(labels: np.ndarray[Any, Any], intensity: np.ndarray[Any, Any] | None, columns: Sequence[str],
           quantiles: Sequence[float] = (), contacts: bool = False, spacing: Sequence[float] = (),
           origin: Sequence[float] = (), direction: Sequence[float] = (), **options: Any) -> Any:
    """Facts of arrays, as the engine makes them; lengths x first."""
    kind = check_labels(labels)
    given = as_input(labels, kind)
    other, other_kind = None, ""
    if intensity is not None:
        other_kind = check_dtype(intensity.dtype, "intensity")
        other = as_input(intensity, other_kind)
    return _core.measure(given, kind, other, other_kind, list(columns), [float(each) for each in quantiles], contacts,
                         list(spacing), list(origin), list(direction), make_options(**options))


def _open_labels(labels: Any, spacing: Any) -> tuple[Opened, list[float], list[float], list[float]]:
    """With the spacing, and origin and direction x first where they are known."""
    opened = _open(labels, "labels")
    array = opened.array
    if not 1 <= array.ndim <= 3:
        raise _core.ParameterError(f"labels: they have {array.ndim} dimensions; objects of 1 to 3 are measured")
    if array.size == 0:
        raise _core.ParameterError(f"labels: an array of shape {array.shape} has no voxels")
    place = opened.place
    lengths = spacing_of(spacing, array.ndim) if spacing is not None else [
        abs(each) if each else 1.0 for each in opened.spacing or [1.0] * array.ndim]
    origin = [each or 0.0 for each in place.origin] if place is not None and spacing is None else []
    direction = list(place.direction) if place is not None and place.direction is not None and spacing is None else []
    return opened, lengths, origin, direction


def _measure(labels: Any, intensity: Any, spacing: Any, columns: Sequence[str], quantiles: Sequence[float], contacts: bool,
             options: dict[str, Any]) -> Any:
    if is_read_in_parts(labels) or is_read_in_parts(intensity):
        if not hasattr(labels, "dtype") or (intensity is not None and not hasattr(intensity, "dtype")):
            raise _core.ParameterError("labels: beside an image that is read in parts the other one is an array too")
        return _measure_read(labels, intensity, spacing, columns, quantiles, contacts, options)
    if not quantiles and not contacts and is_on_device(labels):
        lengths = spacing_of(spacing, len(labels.shape)) if spacing is not None else []
        found = measure_on_device(labels, intensity, columns, lengths[::-1], options)
        if found is not None:
            return found, None
    opened, lengths, origin, direction = _open_labels(labels, spacing)
    array = opened.array
    values = None
    if intensity is not None:
        other = _open(intensity, "intensity")
        check_place(opened.place, other.place, "intensity")
        values = other.array
        if values.shape != array.shape:
            raise _core.ParameterError(f"intensity: its shape is {values.shape}, that of labels is {array.shape}")
    return tables(array, values, columns, quantiles, contacts, lengths[::-1], origin, direction, **options)


def is_read_in_parts(image: Any) -> bool:
    """Whether an image is not in memory: it has a shape, a type and slices."""
    return type(image).__module__.partition(".")[0] in ("dask", "zarr", "tensorstore")


def _planes_of(images: Sequence[Any], shape: tuple[int, ...]) -> int:
    """Planes along the first axis to read at a time: whole chunks, some 30 million voxels."""
    step = 1
    for image in images:
        chunks = getattr(image, "shards", None) or getattr(image, "chunks", None)
        if chunks:
            step = max(step, int(max(chunks[0]) if isinstance(chunks[0], tuple) else chunks[0]))
    plane = max(1, int(np.prod(shape[1:], dtype=np.int64)))
    return min(shape[0], max(step, (1 << 25) // plane // step * step))


def _measure_read(labels: Any, intensity: Any, spacing: Any, columns: Sequence[str], quantiles: Sequence[float],
                  contacts: bool, options: dict[str, Any]) -> Any:
    images = [labels] if intensity is None else [labels, intensity]
    for name, image in zip(("labels", "intensity"), images):
        if any(each != each for each in image.shape):
            raise _core.ParameterError(f"{name}: the extents of its chunks are not known; x.compute_chunk_sizes() finds them")
        if tuple(image.shape) != tuple(labels.shape):
            raise _core.ParameterError(f"{name}: its shape is {tuple(image.shape)}, that of labels is {tuple(labels.shape)}")
    shape = tuple(int(each) for each in labels.shape)
    if not 1 <= len(shape) <= 3:
        raise _core.ParameterError(f"labels: they have {len(shape)} dimensions; objects of 1 to 3 are measured")
    if 0 in shape:
        raise _core.ParameterError(f"labels: an array of shape {shape} has no voxels")
    kind = check_labels(labels)
    other_kind = "" if intensity is None else check_dtype(np.dtype(intensity.dtype), "intensity")

    def read(first: int, end: int) -> tuple[Any, Any]:
        parts = [np.ascontiguousarray(np.asarray(image[first:end])) for image in images]
        return (as_input(parts[0], kind), as_input(parts[1], other_kind) if other_kind else None)

    lengths = spacing_of(1.0 if spacing is None else spacing, len(shape))
    return _core.measure_read(read, list(shape), _planes_of(images, shape), kind, other_kind, list(columns),
                              [float(each) for each in quantiles], contacts, lengths[::-1], make_options(**options))


def measure(labels: Any, intensity: Any = None, *, spacing: Any = None, columns: Sequence[str] | None = None,
            quantiles: Sequence[float] = (), memory: int | str | None = None, threads: int | None = None,
            progress: Any = None, backend: str = "auto",
            devices: Sequence[int] | None = None) -> dict[str, np.ndarray[Any, Any]]:
    """A table of the objects of an image of labels: a row for each label but 0, in ascending order.

    Names and meanings are those of ``skimage.measure.regionprops_table`` where there are such; ``pandas.DataFrame``
    takes the result. All that is counted or summed is exact, and does not depend on threads.

    Parameters
    ----------
    labels : array_like of integers, or an array of Dask, Zarr or TensorStore
        One to three dimensions. An array that is not in memory is read once, in slabs of whole chunks along the first
        axis, and once more for quantiles; `chunkwise.zarr.measure` takes paths too.
    intensity : array_like, optional
        Has the same shape: its values are measured too. NaN makes a label's results NaN.
    spacing : float or sequence of float, optional
        The distance of voxels along each axis; by default the image's own, or 1.
    columns : sequence of str, optional
        Such as ``("area", "centroid", "intensity_median")``; the label is always there.
    quantiles : sequence of float, optional
        From 0 to 1, of each object's intensities.
    memory : int or str, optional
        For the tables, as "2G"; more is an error.
    threads, progress : as of all functions
    backend, devices : optional
        Arrays that lie on a device are measured there, unless this is "cpu". Others are measured by the CPU, unless this is
        "cuda" or devices are named. Quantiles are the CPU's, and so are intensities of 64 bits.

    Examples
    --------
    >>> import numpy as np, chunkwise
    >>> labels = np.array([[1, 1, 0], [0, 2, 2], [0, 2, 2]])
    >>> table = chunkwise.measure(labels, columns=("area", "centroid"))
    >>> table["area"].tolist(), table["centroid-0"].tolist()
    ([2.0, 4.0], [0.0, 1.5])
    """
    fractions = [float(each) for each in quantiles]
    if not all(0 <= each <= 1 for each in fractions):
        raise _core.ParameterError(f"quantiles: {quantiles!r} are not numbers from 0 to 1")
    names = None if columns is None else [columns] if isinstance(columns, str) else list(columns)
    if names is not None and "intensity_median" in names:
        names = [name for name in names if name != "intensity_median"]
        fractions.append(0.5)
    if names is not None and "label" not in names:
        names.insert(0, "label")
    if intensity is None and fractions:
        raise _core.ParameterError("quantiles: they need an intensity")
    _check_columns(names, intensity is not None)
    options = {"memory": memory, "threads": threads, "progress": progress, "backend": backend, "devices": devices}
    found: dict[str, np.ndarray[Any, Any]] = _measure(labels, intensity, spacing, names or (), fractions, False, options)[0]
    return found


def _check_columns(names: Sequence[str] | None, has_intensity: bool) -> None:
    known = {name: needs for name, _, needs, _ in _core.measured_properties()}
    for name in names or ():
        if name not in known:
            raise _core.ParameterError(f"columns: {name!r} is none of {', '.join(known)}, intensity_median")
        if known[name] and not has_intensity:
            raise _core.ParameterError(f"columns: {name!r} needs an intensity")


def contacts(labels: Any, *, spacing: Any = None, memory: int | str | None = None, threads: int | None = None,
             progress: Any = None) -> dict[str, np.ndarray[Any, Any]]:
    """Each two labels that touch: ``label``, ``neighbor`` (the larger one), how many ``faces`` of voxels lie between
    them, and their ``area``.

    Parameters as of `measure`.

    Examples
    --------
    >>> import numpy as np, chunkwise
    >>> chunkwise.contacts(np.array([[1, 1, 0], [2, 2, 2]]))["faces"].tolist()
    [2]
    """
    options = {"memory": memory, "threads": threads, "progress": progress}
    found: dict[str, np.ndarray[Any, Any]] = _measure(labels, None, spacing, ("label",), (), True, options)[1]
    return found


def write_table(table: dict[str, Any], path: Any) -> None:
    """Writes a table of `measure` or `contacts` to a file, whose ending says the format: .csv and .json, or .parquet,
    .feather and .arrow, which take pyarrow.

    Examples
    --------
    >>> import numpy as np, chunkwise, tempfile, os
    >>> table = chunkwise.measure(np.array([1, 1, 2]), columns=("area",))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     chunkwise.write_table(table, os.path.join(folder, "table.csv"))
    ...     print(open(os.path.join(folder, "table.csv")).read().split())
    ['label,area', '1,2.0', '2,1.0']
    """
    name = os.fspath(path)
    ending = os.path.splitext(name)[1].lower()
    if ending in (".parquet", ".feather", ".arrow"):
        import pyarrow

        columns = pyarrow.table(dict(table))
        if ending == ".parquet":
            import pyarrow.parquet

            pyarrow.parquet.write_table(columns, name)
        else:
            import pyarrow.feather

            pyarrow.feather.write_feather(columns, name)
        return
    rows = list(zip(*(column.tolist() for column in table.values())))
    if ending == ".csv":
        lines = [",".join(table)] + [",".join(repr(each) for each in row) for row in rows]
    elif ending == ".json":
        def number(each: Any) -> str:
            # As the program writes what JSON has no number for.
            return json.dumps(each if each == each and abs(each) != float("inf") else repr(each))

        bodies = ["{" + ", ".join(f"{json.dumps(key)}: {number(each)}" for key, each in zip(table, row)) + "}" for row in rows]
        lines = ["[", *(body + "," for body in bodies[:-1]), *bodies[-1:], "]"]
    else:
        raise ValueError(f"path: {name!r} ends with none of .csv, .json, .parquet, .feather, .arrow")
    with open(name, "w") as file:
        file.write("\n".join(lines) + "\n")


def selection_of(min_size: Any, max_size: Any, where: Sequence[str] | str, remove_border: bool, keep_largest: Any,
                 replace: Any) -> tuple[list[str], int, list[tuple[str, str]]]:
    """The parameters of `filter_labels` as the engine takes them: conditions, how many of the largest ones, and pairs of labels."""
    conditions = [where] if isinstance(where, str) else list(where)
    for name, sign, size in (("min_size", ">=", min_size), ("max_size", "<=", max_size)):
        if size is not None:
            if int(size) != size or size < 0:
                raise _core.ParameterError(f"{name}: {size!r} is not a whole number of at least 0")
            conditions.append(f"num_pixels {sign} {int(size)}")
    if remove_border:
        conditions.append("touches_border == 0")
    if keep_largest is not None and (int(keep_largest) != keep_largest or keep_largest < 1):
        raise _core.ParameterError(f"keep_largest: {keep_largest!r} is not a whole number above 0")
    pairs = []
    for pair in (replace.items() if hasattr(replace, "items") else replace if replace is not None else ()):
        if len(pair) != 2 or any(int(each) != each for each in pair):
            raise _core.ParameterError(f"replace: {pair!r} is not an old label and a new one, whole numbers")
        pairs.append((str(int(pair[0])), str(int(pair[1]))))
    return conditions, int(keep_largest or 0), pairs


def filter_labels(labels: Any, *, min_size: int | None = None, max_size: int | None = None, where: Sequence[str] | str = (),
                  remove_border: bool = False, keep_largest: int | None = None, relabel: bool = False, replace: Any = None,
                  spacing: Any = None, memory: int | str | None = None, threads: int | None = None,
                  progress: Any = None) -> Any:
    """The labels without those of objects that do not meet all conditions, which become 0.

    Parameters
    ----------
    labels : array_like of integers, or an array of Dask
        An array of Dask is computed once, slab by slab as by `measure`; the result is a lazy one, for which its blocks are computed
        again. For stores there is `chunkwise.zarr.filter_labels`.
    min_size, max_size : int, optional
        Voxels.
    where : str or sequence of str, optional
        Comparisons of columns of `measure` with a number, such as ``"area > 100"``.
    remove_border : bool
        Remove objects at the edge of the image.
    keep_largest : int, optional
        Keeps only so many of the largest ones that meet all; of equal ones the lower labels.
    relabel : bool
        Number the kept labels 1, 2, ... in the order of their labels.
    replace : mapping or sequence of pairs of int, optional
        Old labels and new ones. It comes before all else: objects of one new label are one, 0 removes an object, and
        labels that are not named stay.
    spacing, memory, threads, progress : as of `measure`

    Examples
    --------
    >>> import numpy as np, chunkwise
    >>> chunkwise.filter_labels(np.array([1, 1, 0, 4, 4, 4, 0, 7]), min_size=2, relabel=True)
    array([1, 1, 0, 2, 2, 2, 0, 0])
    """
    conditions, largest, pairs = selection_of(min_size, max_size, where, remove_border, keep_largest, replace)
    options = {"memory": memory, "threads": threads, "progress": progress}
    if type(labels).__module__.partition(".")[0] == "dask":
        return _filter_lazy(labels, conditions, largest, relabel, pairs, spacing, options)
    _refuse_store(labels, "filter_labels")
    opened, lengths, origin, direction = _open_labels(labels, spacing)
    array = opened.array
    kind = check_labels(array)
    result = filtered(as_input(array, kind), kind, (conditions, largest, relabel, pairs, lengths[::-1], origin, direction), options)
    return opened.wrap(result.view(array.dtype) if array.dtype.kind == "b" else result)


@contextmanager
def worded() -> Iterator[None]:
    """Errors name the parameters as they are called here."""
    try:
        yield
    except _core.ParameterError as error:
        raise _core.ParameterError(str(error).replace("Where:", "where:", 1).replace("Replace:", "replace:", 1)) from None


def filtered(labels: np.ndarray[Any, Any], kind: str, selection: Sequence[Any], options: dict[str, Any]) -> np.ndarray[Any, Any]:
    result = np.empty(labels.shape, kind)
    with worded():
        _core.filter_labels(labels, kind, result, *selection, make_options(**options))
    return result


_COMPARISONS = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal, "!=": np.not_equal}


def _filter_lazy(labels: Any, conditions: Sequence[str], keep_largest: int, relabel: bool, pairs: Sequence[tuple[str, ...]], spacing: Any,
                 options: dict[str, Any]) -> Any:
    """`filter_labels` of an array of Dask."""
    kind = check_labels(labels)
    lengths = spacing_of(1.0 if spacing is None else spacing, labels.ndim)[::-1]
    plain: tuple[Any, ...] = (lengths, (), ())
    # An image of one voxel shows what is wrong with the conditions.
    filtered(np.zeros((1,) * labels.ndim, kind), kind, (conditions, keep_largest, relabel, pairs, *plain), {})
    if pairs:
        def replaced(block: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
            new = filtered(np.ascontiguousarray(as_input(block, kind)), kind, ((), 0, False, pairs, *plain), {"threads": 1})
            return new.view(block.dtype) if block.dtype.kind == "b" else new

        labels = labels.map_blocks(replaced, dtype=labels.dtype)
    tests = [re.fullmatch(r"\s*([\w-]+)\s*(<=|>=|==|!=|<|>)\s*(\S+)\s*", each) for each in conditions]
    known = [name for name, *_ in _core.measured_properties()]
    columns = set()
    for each in tests:
        name = each[1] if each else ""
        while name not in known:
            name = name.rpartition("-")[0]
        columns.add(name)
    names = ["label", "num_pixels", *sorted(columns - {"label", "num_pixels"})]
    table = _measure_read(labels, None, spacing, names, (), False, options)[0]
    keep = np.ones(len(table["label"]), bool)
    for each in tests:
        assert each is not None
        number = float(each[3])
        keep &= _COMPARISONS[each[2]](table[each[1]], int(number) if number.is_integer() else number)
    if keep_largest:
        kept = np.flatnonzero(keep)
        smaller = kept[np.lexsort((kept, -table["num_pixels"][kept].astype(np.int64)))[keep_largest:]]
        keep[smaller] = False
    old = table["label"]
    new = np.where(keep, np.cumsum(keep) if relabel else old, 0)
    if kind != "bool" and new.size and new.max() > np.iinfo(kind).max:
        raise _core.ParameterError(f"relabel: {new.max()} labels are too many for {kind}")

    def write(block: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        if not len(old):
            return block
        places = np.minimum(np.searchsorted(old, block.astype(old.dtype, copy=False)), len(old) - 1)
        return np.where(block != 0, new[places], 0).astype(block.dtype)

    return labels.map_blocks(write, dtype=labels.dtype)


def remove_small_objects(labels: Any, min_size: int = 64, **options: Any) -> Any:
    """The labels without objects of fewer voxels than `min_size`: `filter_labels` with one condition.

    Examples
    --------
    >>> import numpy as np, chunkwise
    >>> chunkwise.remove_small_objects(np.array([1, 1, 0, 4, 4, 4, 0, 7]), 3)
    array([0, 0, 0, 4, 4, 4, 0, 0])
    """
    return filter_labels(labels, min_size=min_size, **options)


def _refuse_store(labels: Any, function: str) -> None:
    """An array of a store has no result in memory."""
    package = type(labels).__module__.partition(".")[0]
    if package in ("zarr", "tensorstore"):
        raise TypeError(f"labels: an array of {package} is read piece by piece by chunkwise.zarr.{function}, from store to store; "
                        "labels[...] reads it into memory")


def fill_label_holes(labels: Any, *, memory: int | str | None = None, threads: int | None = None, progress: Any = None) -> Any:
    """The labels with the holes of their objects filled.

    A hole is a part of the background, connected by faces, that does not reach the edge of the image and that one object
    alone touches: it gets this object's label. A part that two objects enclose together stays.

    Parameters
    ----------
    labels : array_like of integers, or an array of Dask
        Has one to three dimensions. The result of an array of Dask is a lazy one: each block is read twice, and one task joins what
        blocks know of holes. For stores there is `chunkwise.zarr.fill_label_holes`.
    memory, threads, progress : as of `measure`
        Arrays of Dask take threads alone, those of a task.

    Examples
    --------
    >>> import numpy as np, chunkwise
    >>> chunkwise.fill_label_holes(np.array([[0, 3, 3, 3], [0, 3, 0, 3], [0, 3, 3, 3]]))
    array([[0, 3, 3, 3],
           [0, 3, 3, 3],
           [0, 3, 3, 3]])
    """
    if (runner := runner_of(labels)) is not None and runner.fill_label_holes is not None:
        if memory is not None or progress is not None:
            raise TypeError("memory, progress: tasks of labels have no such options; threads= is possible")
        if type(labels).__module__.partition(".")[0] == "xarray":
            return labels.copy(data=runner.fill_label_holes(labels.data, threads=threads))
        return runner.fill_label_holes(labels, threads=threads)
    _refuse_store(labels, "fill_label_holes")
    opened, _, _, _ = _open_labels(labels, None)
    array = opened.array
    kind = check_labels(array)
    result = as_input(array, kind).copy()
    part_kind = "uint32" if array.size < 1 << 32 else "uint64"
    try:
        parts = filters.Label(connectivity=1)((result == 0).view("uint8"), output=part_kind, memory=memory, threads=threads)
    except _core.BudgetError as error:
        # The tables of the parts come after their labels: 9 bytes each.
        needed = 9 * (_most_parts(result) + 1)
        if needed <= error.needed:
            raise
        worse = _core.BudgetError(f"the tables of the parts of the background need {needed} bytes, more than the budget of "
                                  f"{error.budget}")
        worse.needed, worse.budget = needed, error.budget
        raise worse from None
    _core.fill_label_holes(result, kind, np.ascontiguousarray(parts), part_kind, int(parts.max(initial=0)),
                           make_options(memory=memory, threads=threads, progress=progress))
    return opened.wrap(result.view(array.dtype) if array.dtype.kind == "b" else result)


def _most_parts(labels: np.ndarray[Any, Any]) -> int:
    """At least as many as the background has parts: each has a voxel without one before it along any axis."""
    count = 0
    for plane in range(len(labels)):
        first = labels[plane] == 0
        before = labels[plane - 1] == 0 if plane else np.zeros_like(first)
        for axis in range(first.ndim):
            shifted = [slice(None)] * first.ndim
            source = list(shifted)
            shifted[axis], source[axis] = slice(1, None), slice(None, -1)
            before[tuple(shifted)] |= first[tuple(source)]
        count += int(np.count_nonzero(first & ~before))
    return count


def find_boundaries(labels: Any, connectivity: int = 1, mode: Literal["thick", "inner", "outer"] = "thick",
                    **options: Any) -> Any:
    """The boundaries of labelled objects, as bool: ``skimage.segmentation.find_boundaries`` with the background 0.

    ``chunkwise.boundaries`` gives the same as 8-bit integers. The mode "subpixel" is not there.
    """
    return filters.Boundaries(boundary_mode=mode, connectivity=connectivity)(labels, **options) != 0
