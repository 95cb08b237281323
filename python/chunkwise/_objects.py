# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""The measurements of ``scipy.ndimage``: input, labels and index, and results as SciPy gives them."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from . import _core
from ._arrays import as_input, make_options, threads_of_cpu
from ._containers import array_of, is_on_device, open_image
from ._device import dtype_of
from ._device import measure as measure_on_device
from ._measure import check_labels, tables

_Array = np.ndarray[Any, Any]
_ONE = np.array(1)
#: Labels of 0 and 1 have no other one.
_ALONE = _ONE.ravel()


class _Groups:
    """The voxels of each label of an index: of all voxels without labels, of all labels above 0 without an index."""

    def __init__(self, input: Any, labels: Any, index: Any, options: dict[str, Any]) -> None:
        self.options = options
        self.index = _ONE if index is None else array_of(index)
        self.isScalar = self.index.ndim == 0
        # Arrays of a device are copied where the CPU measures alone.
        self.there = (input, labels) if (index is not None and is_on_device(input) and is_on_device(labels)
                                         and self.index.dtype.kind in "iub") else None
        if self.there:
            self.extent, self.dtype = tuple(input.shape), dtype_of(input)
        else:
            self._open(input, labels, index is not None)

    def _open(self, input: Any, labels: Any, has_index: bool) -> None:
        self.array = input if type(input) is np.ndarray else open_image(input).array
        self.dtype = self.array.dtype
        self.extent = self.array.shape
        if labels is None:
            if has_index:
                raise _core.ParameterError("index: it needs labels")
            self.labels = np.ones(self.array.shape, np.uint8)
            return
        given = labels if type(labels) is np.ndarray else open_image(labels).array
        if given.dtype.kind == "f" and not has_index:
            given = given > 0
        elif given.dtype.kind == "f" and self.index.dtype.kind in "iubf":
            given = self._number(given)
        check_labels(given)
        try:
            self.labels = given if given.shape == self.array.shape else np.broadcast_to(given, self.array.shape)
        except ValueError:
            raise _core.ParameterError(f"labels: their shape is {given.shape}, that of the input is {self.array.shape}") from None
        if not has_index:
            self.labels = (self.labels > 0).view(np.uint8)
        if self.index.dtype.kind not in "iub":
            raise _core.ParameterError(f"index: {self.index.dtype} is no type of labels")

    def _number(self, labels: _Array) -> _Array:
        """Labels, or an index, of real numbers become numbers: those of the index from 1 on, and 0 of what is not sought."""
        sought = np.unique(self.index)
        place = np.minimum(np.searchsorted(sought, labels), max(sought.size - 1, 0))
        numbers = np.where(sought[place] == labels, place + 1, 0) if sought.size else np.zeros(labels.shape, np.int64)
        self.index = np.searchsorted(sought, self.index) + 1
        return numbers

    def measure(self, columns: tuple[str, ...], quantiles: tuple[float, ...] = (), flat: bool = True) -> dict[str, _Array]:
        """A row for each of the index; `found` says which labels are there."""
        sought = _ALONE if self.index is _ONE else self.index.ravel()
        if self.there:
            input, given = self.there
            found = None if quantiles or not sought.all() else measure_on_device(given, input, ("label", *columns), (), self.options)
            if found is not None:
                table = self._flat(found, columns) if flat else found
                return self._rows_of(table.pop("label"), table, sought)
            self._open(input, given, True)
            self.there = None
        array, labels = (self.array.reshape(-1), self.labels.reshape(-1)) if flat else (self.array, self.labels)
        table = self._table(labels, array, columns, quantiles)
        known = table.pop("label")
        # Known labels ascend, so that a conversion between signed and unsigned integers shows at their ends.
        if len(known) == len(sought) > 0 and (sought is _ALONE or (
                (known == sought.astype(known.dtype, copy=False)).all() and known[0] >= 0 and sought[-1] >= 0)):
            return {"found": np.ones(len(known), bool), **table}
        if not sought.all():
            # The engine knows no object 0.
            background = self._table((labels == 0).view(np.uint8), array, columns, quantiles)
            known = np.concatenate([np.zeros_like(background.pop("label"), known.dtype), known])
            table = {name: np.concatenate([background[name], values]) for name, values in table.items()}
            order = np.argsort(known)
            known, table = known[order], {name: values[order] for name, values in table.items()}
        return self._rows_of(known, table, sought)

    def _flat(self, table: dict[str, _Array], columns: tuple[str, ...]) -> dict[str, _Array]:
        """Positions as those in a flat array."""
        for name in columns:
            if name.startswith("position"):
                places = [table.pop(f"{name}-{axis}") for axis in range(len(self.extent))]
                table[f"{name}-0"] = np.ravel_multi_index(tuple(places), self.extent)
        return table

    def _rows_of(self, known: _Array, table: dict[str, _Array], sought: _Array) -> dict[str, _Array]:
        wanted = sought.astype(known.dtype, copy=False)
        rows = np.searchsorted(known, wanted)
        rows[rows == len(known)] = 0
        # A conversion from signed to unsigned integers, or back, may have changed a number.
        found = (known[rows] == wanted) & ((sought >= 0) == (wanted >= 0)) if len(known) else np.zeros(wanted.shape, bool)
        result = {"found": found}
        for name, values in table.items():
            column: _Array = values[rows] if len(known) else np.zeros(sought.shape, values.dtype)
            column[~found] = 0
            result[name] = column
        return result

    def _table(self, labels: _Array, array: _Array, columns: tuple[str, ...], quantiles: tuple[float, ...]) -> dict[str, _Array]:
        if array.size == 0:
            names = [f"{name}-{axis}" for name in columns for axis in range(self.array.ndim)]
            names += [*columns, *(["intensity_median"] if quantiles else [])]
            return {"label": np.zeros(0, np.int64), **{name: np.zeros(0) for name in names}}
        found: dict[str, _Array] = tables(labels, array, ("label", *columns), quantiles, **self.options)[0]
        return found

    def shape(self, values: _Array) -> Any:
        """As the index is: a number, or an array."""
        return values[0] if self.isScalar else values.reshape(self.index.shape)

    def positions(self, places: _Array) -> Any:
        if 0 in self.extent:
            raise _core.ParameterError("input: it has no voxels")
        found = list(zip(*(each.tolist() for each in np.unravel_index(places, self.extent))))
        return found[0] if self.isScalar else found


def _where_found(values: dict[str, _Array], name: str) -> _Array:
    return np.where(values["found"], values[name], np.nan)


def sum_labels(input: Any, labels: Any = None, index: Any = None, **options: Any) -> Any:
    """The sum of the voxels of each label, exact and rounded once: ``scipy.ndimage.sum_labels``."""
    groups = _Groups(input, labels, index, options)
    return groups.shape(groups.measure(("intensity_sum",))["intensity_sum"])


def sum(input: Any, labels: Any = None, index: Any = None, **options: Any) -> Any:
    """The older name of `sum_labels`."""
    return sum_labels(input, labels, index, **options)


def mean(input: Any, labels: Any = None, index: Any = None, **options: Any) -> Any:
    """The mean of the voxels of each label, NaN where there are none: ``scipy.ndimage.mean``."""
    groups = _Groups(input, labels, index, options)
    return groups.shape(_where_found(groups.measure(("intensity_mean",)), "intensity_mean"))


def variance(input: Any, labels: Any = None, index: Any = None, **options: Any) -> Any:
    """The mean square deviation from the mean: ``scipy.ndimage.variance``."""
    groups = _Groups(input, labels, index, options)
    return groups.shape(_where_found(groups.measure(("intensity_variance",)), "intensity_variance"))


def standard_deviation(input: Any, labels: Any = None, index: Any = None, **options: Any) -> Any:
    """The root of the variance: ``scipy.ndimage.standard_deviation``."""
    groups = _Groups(input, labels, index, options)
    return groups.shape(_where_found(groups.measure(("intensity_std",)), "intensity_std"))


def minimum(input: Any, labels: Any = None, index: Any = None, **options: Any) -> Any:
    """The least voxel of each label, 0 where there are none: ``scipy.ndimage.minimum``. NaN is less than all."""
    groups = _Groups(input, labels, index, options)
    return groups.shape(groups.measure(("intensity_min",))["intensity_min"].astype(groups.dtype))


def maximum(input: Any, labels: Any = None, index: Any = None, **options: Any) -> Any:
    """The largest voxel of each label, 0 where there are none: ``scipy.ndimage.maximum``. NaN is larger than all."""
    groups = _Groups(input, labels, index, options)
    return groups.shape(groups.measure(("intensity_max",))["intensity_max"].astype(groups.dtype))


def median(input: Any, labels: Any = None, index: Any = None, **options: Any) -> Any:
    """The median of the voxels of each label, NaN where there are none: ``scipy.ndimage.median``."""
    groups = _Groups(input, labels, index, options)
    medians = _where_found(groups.measure((), (0.5,)), "intensity_median")
    return groups.shape(medians.astype(np.float32) if groups.dtype.name == "float32" else medians)


def minimum_position(input: Any, labels: Any = None, index: Any = None, **options: Any) -> Any:
    """The first position of the least voxel of each label: ``scipy.ndimage.minimum_position``."""
    groups = _Groups(input, labels, index, options)
    return groups.positions(groups.measure(("position_min",))["position_min-0"])


def maximum_position(input: Any, labels: Any = None, index: Any = None, **options: Any) -> Any:
    """The first position of the largest voxel of each label: ``scipy.ndimage.maximum_position``."""
    groups = _Groups(input, labels, index, options)
    return groups.positions(groups.measure(("position_max",))["position_max-0"])


def extrema(input: Any, labels: Any = None, index: Any = None, **options: Any) -> tuple[Any, Any, Any, Any]:
    """Minima, maxima and where they are first: ``scipy.ndimage.extrema``."""
    groups = _Groups(input, labels, index, options)
    found = groups.measure(("intensity_min", "intensity_max", "position_min", "position_max"))
    return (groups.shape(found["intensity_min"].astype(groups.dtype)), groups.shape(found["intensity_max"].astype(groups.dtype)),
            groups.positions(found["position_min-0"]), groups.positions(found["position_max-0"]))


def center_of_mass(input: Any, labels: Any = None, index: Any = None, **options: Any) -> Any:
    """The mean index of the voxels of each label, weighted by their values: ``scipy.ndimage.center_of_mass``, for images
    of up to three dimensions."""
    groups = _Groups(input, labels, index, options)
    ndim = len(groups.extent)
    if not 1 <= ndim <= 3:
        raise _core.ParameterError(f"input: it has {ndim} dimensions; centers of 1 to 3 are found")
    found = groups.measure(("centroid_weighted",), flat=False)
    if groups.index.ndim > 1:
        # As SciPy, whose tuples have arrays then.
        along = [_where_found(found, f"centroid_weighted-{axis}").reshape(groups.index.shape) for axis in range(ndim)]
        return [tuple(each) for each in np.array(along).T]
    centers = list(zip(*(_where_found(found, f"centroid_weighted-{axis}").tolist() for axis in range(ndim))))
    return centers[0] if groups.isScalar else centers


def find_objects(input: Any, max_label: int = 0, **options: Any) -> list[tuple[slice, ...] | None]:
    """The box of each label from 1 to the largest one, or `max_label`, as slices; None where there is no such label:
    ``scipy.ndimage.find_objects``."""
    array = open_image(input).array
    kind = check_labels(array)
    threads_of_cpu(options)
    most = max(int(max_label), 0)
    if array.size == 0:
        return [None] * most
    if array.ndim == 0:
        return [() if each == array else None for each in range(1, (most or max(int(array), 0)) + 1)]
    boxes: list[tuple[slice, ...] | None] = _core.find_boxes(np.ascontiguousarray(as_input(array, kind)), kind, most,
                                                             make_options(**options))
    return boxes


def value_indices(arr: Any, *, ignore_value: int | None = None) -> dict[int, tuple[Any, ...]]:
    """The indices of each value of an array of integers, as ``numpy.nonzero`` gives them:
    ``scipy.ndimage.value_indices``, by NumPy's sorting, on one core."""
    array = open_image(arr).array
    if array.dtype.kind not in "iu":
        raise ValueError("Parameter 'arr' must be an integer array")
    flat = array.reshape(-1)
    order = np.argsort(flat, kind="stable")
    ordered = flat[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])) if len(ordered) else np.empty(0, np.intp)
    found = {}
    for begin, places in zip(starts.tolist(), np.split(order, starts[1:])):
        value = ordered[begin]
        if ignore_value is None or value != ignore_value:
            found[value] = np.unravel_index(places, array.shape)
    return found


def _of_labels(arrays: Sequence[_Array], of: _Array, sought: _Array) -> Iterator[list[_Array]]:
    """The numbers of flat arrays that belong to each of the labels that are sought."""
    # NumPy compares signed with unsigned integers as real numbers, which have 53 bits.
    numbers = sought.astype(of.dtype)
    known = (numbers.astype(sought.dtype) == sought) & ((numbers >= 0) == (sought >= 0))
    if len(numbers) == 1:
        yield [each[(of == numbers[0]) & known[0]] for each in arrays]
        return
    # The least and the largest one leave out the voxels of most others.
    among = (of >= numbers.min(initial=0)) & (of <= numbers.max(initial=0))
    of = of[among]
    order = np.argsort(of, kind="stable")
    arrays, of = [each[among][order] for each in arrays], of[order]
    for begin, end, is_known in zip(np.searchsorted(of, numbers, "left"), np.searchsorted(of, numbers, "right"), known):
        yield [each[begin:end if is_known else begin] for each in arrays]


def labeled_comprehension(input: Any, labels: Any, index: Any, func: Callable[..., Any], out_dtype: Any, default: Any,
                          pass_positions: bool = False) -> Any:
    """``func(values)``, or ``func(values, positions)``, of the voxels of each label: ``scipy.ndimage.labeled_comprehension``. It is
    called by Python for each label; `default` is for labels without voxels."""
    groups = _Groups(input, labels, index, {})
    arrays = [groups.array.reshape(-1)] + ([np.arange(groups.array.size)] if pass_positions else [])
    of, sought = groups.labels.reshape(-1), groups.index.ravel()
    if index is None:
        return func(*(each[of == 1] for each in arrays))
    if not np.array_equal(sought.astype(of.dtype), sought):
        raise _core.ParameterError(f"index: {sought.dtype}, of which the labels' type, {of.dtype}, does not have all numbers")
    result = np.full(sought.shape, default, out_dtype)
    for number, found in enumerate(_of_labels(arrays, of, sought)):
        if len(found[0]):
            result[number] = func(*found)
    return groups.shape(result)


def histogram(input: Any, min: float, max: float, bins: int, labels: Any = None, index: Any = None) -> Any:
    """The histogram of the voxels of each label: ``scipy.ndimage.histogram``, by NumPy's, on one core."""
    groups = _Groups(input, labels, index, {})
    edges = np.linspace(min, max, bins + 1)
    values, of = groups.array.reshape(-1), groups.labels.reshape(-1)
    found = [np.histogram(each, edges)[0] for each, in _of_labels((values,), of, groups.index.ravel())]
    if groups.isScalar:
        return found[0]
    result = np.empty(len(found), dtype=object)
    result[:] = found
    return result.reshape(groups.index.shape)
