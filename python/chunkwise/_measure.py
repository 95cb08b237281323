# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Measurements of the objects of an image of labels: docs/measurements.md says what each column is."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _core
from ._arrays import as_input, check_dtype, make_options
from ._containers import Opened, check_place, open_image


def check_labels(array: np.ndarray[Any, Any]) -> str:
    """The kind of labels, which are integers; bool is one label."""
    kind = check_dtype(array.dtype, "labels")
    if kind.startswith("float"):
        raise _core.ParameterError(f"labels: {array.dtype} is none of the types of labels, integers of 8 to 64 bits; "
                                   '.astype("uint32") makes it one')
    return kind


def _open(image: Any, name: str) -> Opened:
    try:
        return open_image(image)
    except TypeError as error:
        raise TypeError(str(error).replace("input:", f"{name}:", 1)) from None


def _spacing_of(spacing: Any, ndim: int) -> list[float]:
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
    lengths = _spacing_of(spacing, array.ndim) if spacing is not None else [
        abs(each) if each else 1.0 for each in opened.spacing or [1.0] * array.ndim]
    origin = [each or 0.0 for each in place.origin] if place is not None and spacing is None else []
    direction = list(place.direction) if place is not None and place.direction is not None and spacing is None else []
    return opened, lengths, origin, direction


def _measure(labels: Any, intensity: Any, spacing: Any, columns: Sequence[str], quantiles: Sequence[float], contacts: bool,
             options: dict[str, Any]) -> Any:
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


def measure(labels: Any, intensity: Any = None, *, spacing: Any = None, columns: Sequence[str] | None = None,
            quantiles: Sequence[float] = (), memory: int | str | None = None, threads: int | None = None,
            progress: Any = None) -> dict[str, np.ndarray[Any, Any]]:
    """A table of the objects of an image of labels: a row for each label but 0, in ascending order.

    Names and meanings are those of ``skimage.measure.regionprops_table`` where there are such; ``pandas.DataFrame``
    takes the result. All that is counted or summed is exact, and does not depend on threads.

    Parameters
    ----------
    labels : array_like of integers
        Has one to three dimensions.
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
    options = {"memory": memory, "threads": threads, "progress": progress}
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


def filter_labels(labels: Any, *, min_size: int | None = None, max_size: int | None = None, where: Sequence[str] | str = (),
                  remove_border: bool = False, keep_largest: int | None = None, relabel: bool = False, spacing: Any = None,
                  memory: int | str | None = None, threads: int | None = None, progress: Any = None) -> Any:
    """The labels without those of objects that do not meet all conditions, which become 0.

    Parameters
    ----------
    labels : array_like of integers
    min_size, max_size : int, optional
        Voxels.
    where : str or sequence of str, optional
        Comparisons of columns of `measure` with a number, such as ``"area > 100"``.
    remove_border : bool
        Remove objects at the edge of the image.
    keep_largest : int, optional
        Keeps only so many of the largest ones that meet all; of equal ones the lower labels.
    relabel : bool
        Number those that are kept 1, 2, ... in the order of their labels.
    spacing, memory, threads, progress : as of `measure`

    Examples
    --------
    >>> import numpy as np, chunkwise
    >>> chunkwise.filter_labels(np.array([1, 1, 0, 4, 4, 4, 0, 7]), min_size=2, relabel=True)
    array([1, 1, 0, 2, 2, 2, 0, 0])
    """
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
    opened, lengths, origin, direction = _open_labels(labels, spacing)
    array = opened.array
    kind = check_labels(array)
    given = as_input(array, kind)
    result = np.empty(array.shape, kind)
    options = make_options(memory=memory, threads=threads, progress=progress)
    try:
        _core.filter_labels(given, kind, result, conditions, int(keep_largest or 0), relabel, lengths[::-1], origin, direction,
                            options)
    except _core.ParameterError as error:
        raise _core.ParameterError(str(error).replace("Where:", "where:", 1)) from None
    return opened.wrap(result.view(array.dtype) if array.dtype.kind == "b" else result)


def remove_small_objects(labels: Any, min_size: int = 64, **options: Any) -> Any:
    """The labels without objects of fewer voxels than `min_size`: `filter_labels` with one condition.

    Examples
    --------
    >>> import numpy as np, chunkwise
    >>> chunkwise.remove_small_objects(np.array([1, 1, 0, 4, 4, 4, 0, 7]), 3)
    array([0, 0, 0, 4, 4, 4, 0, 0])
    """
    return filter_labels(labels, min_size=min_size, **options)
