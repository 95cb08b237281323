# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Filters as values, and how they run over arrays."""
from __future__ import annotations

import math
import operator
import threading
from collections.abc import Callable, Sequence
from functools import lru_cache
from os import fspath
from typing import Any, NamedTuple, TypeVar, overload

import numpy as np

from . import _core
from ._arrays import (DEFAULT_OPTIONS, KEPT, ParameterTypeError, as_dtype, as_input, check_dtype, check_output, is_usable,
                      make_options, shares_memory, warn)
from ._containers import Opened, array_of, check_place, is_on_device, open_image
from ._dispatch import runner_of
from ._regions import Region, box_of, slices_of, turn
from ._table import MODES, ROWS, Parameter, Row
from ._words import InPython, shown

_MOST_OPERATIONS = 64
_Image = TypeVar("_Image")


def _digest(data: bytes) -> str:
    # Its library takes as long to load as the rest of the package.
    import hashlib

    return hashlib.sha256(data).hexdigest()


class Kernel:
    """An array that is a parameter: it can be compared and has a hash, and nobody changes it."""

    __slots__ = ("array", "_digest")

    def __init__(self, array: Any) -> None:
        given = array_of(array)
        if given.dtype.kind not in "iufb":
            raise _core.ParameterError(f"kernel: {given.dtype} holds no real numbers")
        self.array = np.array(given, dtype=np.float64, order="C")
        self.array.setflags(write=False)
        self._digest = ""

    @property
    def digest(self) -> str:
        # A displacement field is large, and seldom compared.
        self._digest = self._digest or _digest(repr(self.array.shape).encode() + self.array.tobytes())
        return self._digest

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Kernel) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"array{self.array.shape}:{self.digest[:16]}"

    def __reduce__(self) -> Any:
        return Kernel, (self.array,)


class Plan(NamedTuple):
    """How a run would cut its work."""

    chunks: list[Region]
    chunk_shape: tuple[int, ...]
    device_bytes: int
    scratch_bytes: int
    bytes_to_device: float
    bytes_to_host: float
    seconds: float


def _integer(value: Any, name: str) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        if not isinstance(value, (float, np.floating)):
            raise ParameterTypeError(f"{name}: {shown(value)} is not a whole number") from None
        if not value.is_integer():
            raise _core.ParameterError(f"{name}: {shown(value)} is not a whole number") from None
        number = int(value)
    if not -2**63 <= number < 2**63:
        raise _core.ParameterError(f"{name}: {shown(value)} is beyond 64-bit integers")
    return number


def _real(value: Any, name: str) -> float:
    try:
        if isinstance(value, (str, bytes)):
            raise TypeError
        return float(value)
    except TypeError:
        raise ParameterTypeError(f"{name}: {shown(value)} is not a number") from None
    except ValueError:
        raise _core.ParameterError(f"{name}: {shown(value)} is not a number") from None


def _value(value: Any, name: str) -> int | float:
    try:
        return operator.index(value)
    except TypeError:
        return _real(value, name)


def _several(value: Any, one: Callable[[Any, str], Any], name: str) -> Any:
    """A number, or a tuple of numbers."""
    if type(value) in (int, float) or np.ndim(value) == 0:
        return one(value, name)
    if np.ndim(value) != 1:
        raise _core.ParameterError(f"{name}: {shown(value)} is neither a number nor a list of numbers")
    return tuple(one(each, name) for each in value)


def _normalise(parameter: Parameter, value: Any) -> Any:
    """A caller's value, in a form that can be compared and pickled."""
    name, kind = parameter.name, parameter.type
    if parameter.can_be_auto and isinstance(value, str) and value == "auto":
        return value
    if kind == "flag":
        if not isinstance(value, (bool, np.bool_)):
            raise ParameterTypeError(f"{name}: {shown(value)} is neither True nor False")
        return bool(value)
    if kind == "integer":
        return _integer(value, name)
    if kind == "real":
        return _real(value, name)
    if kind == "value":
        return _value(value, name)
    if kind == "integers":
        return _several(np.ravel(value) if parameter.count == "any" and np.ndim(value) > 1 else value, _integer, name)
    if kind == "reals":
        return _several(np.ravel(value) if parameter.count == "any" else value, _real, name)
    if kind == "kernel":
        return value if isinstance(value, Kernel) else Kernel(value)
    if kind == "network":
        return fspath(value)
    if parameter.per_axis and isinstance(value, (tuple, list)):
        words = tuple(_word(parameter, each) for each in value)
        # One for all axes is what the engine is told where they are the same.
        return words[0] if len(set(words)) == 1 else words
    return _word(parameter, value)


def _word(parameter: Parameter, value: Any) -> Any:
    if not isinstance(value, str) or value not in parameter.choices:
        nearest = _core.nearest_word(value, list(parameter.choices)) if isinstance(value, str) else ""
        error = _core.ParameterError if isinstance(value, str) else ParameterTypeError
        raise error(f"{parameter.name}: {shown(value)} is none of {', '.join(parameter.choices)}" +
                                   (f"; the nearest is {nearest!r}" if nearest else ""))
    return value


def _axes(value: Any, ndim: int, name: str = "axes") -> list[int]:
    """NumPy's axes as the engine counts them."""
    axes = []
    for axis in (value,) if isinstance(value, int) else value:
        if not -ndim <= axis < ndim:
            raise _core.ParameterError(f"{name}: {axis} is not an axis of an array of {ndim} dimensions")
        axes.append(ndim - 1 - axis % ndim)
    if len(set(axes)) != len(axes):
        raise _core.ParameterError(f"{name}: {shown(value)} names an axis twice")
    return axes


def _grid_numbers(parameter: Parameter, values: list[float]) -> list[float]:
    """Vectors and matrices along NumPy's axes, as the engine has them along its own."""
    if parameter.engine == "Affine":
        # Rows of a matrix with the translation behind it, and perhaps a last one of 0 ... 0 1.
        n = next((n for n in range(1, 6) if len(values) in (n * (n + 1), (n + 1) * (n + 1))), 0)
        if n == 0 or (len(values) == (n + 1) ** 2 and values[-n - 1:] != [0.0] * n + [1.0]):
            raise _core.ParameterError(f"affine: {len(values)} numbers; it takes a row for each axis, of the matrix with the "
                                       "translation behind it, and perhaps one of 0 ... 0 1")
        rows = [values[row * (n + 1):(row + 1) * (n + 1)] for row in range(n)]
        return [each for row in reversed(rows) for each in (*reversed(row[:n]), row[n])]
    if parameter.engine in ("Reference", "DisplacementGrid"):
        n = next((n for n in range(1, 6) if len(values) == n * (n + 3)), 0)
        if n == 0:
            raise _core.ParameterError(f"{parameter.name}: {len(values)} numbers; it takes sizes, spacing, origin and the rows of the "
                                       "direction")
        parts = [values[:n], values[n:2 * n], values[2 * n:3 * n], values[3 * n:]]
        return [each for part in parts for each in reversed(part)]
    return values[::-1]


def _to_engine(parameter: Parameter, value: Any, ndim: int, has_axes: bool) -> Any:
    if parameter.name == "mode":
        words = (value,) if isinstance(value, str) else value
        return ",".join(MODES[each] for each in (words if has_axes else words[::-1]))
    if parameter.name in ("axes", "periodic_axes"):
        return _axes(value, ndim, parameter.name)
    if parameter.engine == "AxisOrder":
        return _axes(value, ndim, parameter.name)[::-1]
    if value == "auto" and parameter.can_be_auto:
        raise _core.ParameterError(f"{parameter.name}: auto needs the whole image; .resolved(image) takes the value from one")
    if parameter.type == "kernel":
        array = value.array
        stacked = parameter.engine in ("KernelImages", "Displacements")
        shape = array.shape[1:] if stacked else array.shape
        if len(shape) > ndim or not shape or (stacked and array.ndim < 2):
            raise _core.ParameterError(f"{parameter.name}: its shape is {array.shape}, of an image with {ndim} dimensions")
        if 0 in array.shape:
            raise _core.ParameterError(f"{parameter.name}: its shape is {array.shape}, it has no weights")
        voxels = array.reshape(array.shape[0] if stacked else 1, -1)
        # The components of vectors are those of NumPy's axes.
        return tuple(reversed(shape)), voxels, parameter.engine == "Displacements"
    if parameter.engine in ("Affine", "OutputOrigin", "OutputDirection", "Reference", "DisplacementGrid"):
        return _grid_numbers(parameter, list(value) if isinstance(value, tuple) else [value])
    if parameter.type in ("integers", "reals"):
        values = list(value) if isinstance(value, tuple) else [value]
        # Along the axes that a caller names, numbers come in their order.
        turned = parameter.count == "axes" or (parameter.count == "spatial" and not has_axes)
        return values[::-1] if turned else values
    return value


@lru_cache(256)
def _default_dtype(name: str, dtype: np.dtype[Any]) -> np.dtype[Any]:
    kind = check_dtype(dtype)
    if dtype.kind == "b" and ROWS[name].keeps_bool:
        return dtype
    # A mean of truth values is none of them.
    found = np.dtype(_core.default_output_kind(name, kind))
    return np.dtype(np.float32) if dtype.kind == "b" and ROWS[name].output == "input" else found


class Filter:
    """A filter and its parameters: a value that can be called, compared, pickled and joined.

    ``chunkwise.filters`` has a class for each row of the engine's table. ``f(x)`` filters, ``f | g`` is one pass that
    filters with both, ``f.run(part, region, shape)`` computes a region from the part of the image that it needs.
    """

    __slots__ = ("_row", "_given", "_spacing", "_operations", "_prepared")

    def __init__(self, name: str, given: dict[str, Any], spacing: Any = None) -> None:
        self._row = ROWS[name]
        self._operations: dict[Any, Any] = {}
        self._prepared: dict[Any, _Prepared] = {}
        self._given: dict[str, Any] = {}
        for key, value in given.items():
            parameter = self._row.parameters[key]
            if value is None:
                if parameter.required:
                    raise _core.ParameterError(f"{key}: it was not set, and has no default")
                continue
            if value is parameter.default:
                continue
            value = _normalise(parameter, value)
            if value != parameter.default:
                self._given[key] = value
        for key in self._given:
            if not self._has_effect(key):
                name, value = self._row.parameters[key].only_with
                other = self._row.by_engine[name]
                needed = next((mode for mode, word in MODES.items() if word == value), value) if other.name == "mode" else value
                words = needed.split("|") if isinstance(needed, str) else [needed]
                raise _core.ParameterError(f"{key}: it has an effect only with {other.name}=" +
                                           " or ".join(repr(word) for word in words))
        if spacing is not None and spacing is not False:
            if isinstance(spacing, str) or np.ndim(spacing) != 1:
                raise TypeError(f"spacing: {spacing!r} is neither False nor a sequence of numbers, one for each axis")
            spacing = tuple(_real(each, "spacing") for each in spacing)
            if not all(each > 0 and math.isfinite(each) for each in spacing):
                raise _core.ParameterError(f"spacing: {spacing} are not finite numbers above 0")
        self._spacing = spacing

    # A value

    @property
    def name(self) -> str:
        """The filter's name in the engine's table, as the program has it."""
        return self._row.engine

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters that differ from their defaults."""
        return {key: value.array if isinstance(value, Kernel) else value for key, value in self._given.items()}

    @property
    def spacing(self) -> Any:
        return self._spacing

    @property
    def number_of_inputs(self) -> int:
        """Images that the filter needs; some take more."""
        return 1 + sum(1 for each in self._row.inputs if each.required)

    @property
    def key(self) -> str:
        """A text that is equal for filters that compute equal results from equal images."""
        given = [f"{key}={self._given[key]!r}" for key in sorted(self._given)]
        for key, value in self._given.items():
            if self._row.parameters[key].type == "network":
                with open(value, "rb") as file:
                    given.append(_digest(file.read()))
        if self._spacing is not None:
            given.append(f"spacing={self._spacing!r}")
        return f"{self._row.name}({', '.join(given)})"

    def __repr__(self) -> str:
        given = [f"{key}={value!r}" for key, value in self._given.items()]
        if self._spacing is not None:
            given.append(f"spacing={self._spacing!r}")
        return f"{self._row.class_name}({', '.join(given)})"

    def __eq__(self, other: object) -> bool:
        return (isinstance(other, Filter) and self._row is other._row and self._given == other._given
                and self._spacing == other._spacing)

    def __hash__(self) -> int:
        return hash((self._row.engine, frozenset(self._given.items()), self._spacing))

    def __reduce__(self) -> Any:
        return _rebuild, (self._row.engine, self._given, self._spacing)

    def __dask_tokenize__(self) -> Any:
        return "chunkwise", self.key

    def __or__(self, other: Filter) -> Sequence_:
        if not isinstance(other, Filter):
            return NotImplemented
        return Sequence_(self._stages() + other._stages())

    def _stages(self) -> tuple[Filter, ...]:
        return (self,)

    def __getattr__(self, name: str) -> Any:
        # Parameters by their names, such as the thresholds of a filter that was resolved.
        if not name.startswith("_") and name in self._row.parameters:
            return self._given.get(name, self._row.parameters[name].default)
        raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")

    def replaced(self, **given: Any) -> Filter:
        """The filter with other values of some parameters."""
        for key in given:
            if key not in self._row.parameters:
                raise TypeError(f"{self._row.class_name} has no parameter {key!r}")
        return _rebuild(self._row.engine, {**self._given, **given}, self._spacing)

    # Its requirements

    def _has_effect(self, key: str) -> bool:
        """Whether a parameter has an effect with what another one, on which that depends, is set to."""
        name, wanted = self._row.parameters[key].only_with
        other = self._row.by_engine.get(name)
        if other is None:
            return True
        value = self._given.get(other.name, other.default)
        if other.name == "mode":
            return any(MODES[each] in wanted.split("|") for each in ((value,) if isinstance(value, str) else value))
        return value in (wanted.split("|") if isinstance(value, str) else (wanted,))

    @property
    def _automatic(self) -> Parameter | None:
        """The parameter that is "auto"."""
        for key, parameter in self._row.parameters.items():
            value = self._given.get(key, parameter.default)
            if parameter.can_be_auto and isinstance(value, str) and value == "auto" and self._has_effect(key):
                return parameter
        return None

    @property
    def is_automatic(self) -> bool:
        """Whether a parameter is "auto", and so needs the whole image."""
        return self._automatic is not None

    def default_dtype(self, dtype: Any) -> np.dtype[Any]:
        """The type of the result where nobody asks for one."""
        wanted: np.dtype[Any] = np.dtype(dtype)
        if wanted.kind == "b" and self._given.get("interpolation") in ("nearest", "label"):
            # Voxels of the input, not means of them.
            return wanted
        return _default_dtype(self._row.engine, wanted)

    def _operation(self, shape: tuple[int, ...], kind: str, output_kind: str, spacing: Any = None,
                   further: tuple[str, ...] = (), origin: Any = None, axes: Any = None, boolean: bool = False,
                   can_have_components: bool = False) -> Any:
        """The engine's operation for an image. `spacing` is that of its container."""
        if self._spacing is not None:
            spacing = self._spacing or None
        key = (shape, kind, output_kind, spacing, further, origin, axes, boolean)
        operation = self._operations.get(key)
        if operation is None:
            if len(self._operations) >= _MOST_OPERATIONS:
                self._operations.clear()
            given = self._to_engine(len(shape), axes, boolean)
            if self._row.uses_spacing:
                given["UseImageSpacing"] = spacing is not None
            if spacing is not None and len(spacing) != len(shape):
                raise _core.ParameterError(f"spacing: {len(spacing)} numbers for an image of {len(shape)} dimensions")
            if spacing is not None:
                spacing = self._even(spacing, axes, len(shape))
            with self.worded(len(shape)):
                operation = _core.make_operation(self._row.engine, given, turn(shape), kind, output_kind,
                                                 turn(spacing or ()), turn(origin or ()), list(further))
            self._operations[key] = operation
        if operation.components and not can_have_components:
            raise _core.ParameterError("output_components: only arrays in memory, and tensors on the CPU, that are "
                                       "filtered whole get an axis more")
        return operation

    def _even(self, spacing: tuple[float, ...], axes: Any, ndim: int) -> tuple[float, ...]:
        """The spacing of a container, with numbers along axes that have none and of which none is needed."""
        used = self._given.get("axes", axes)
        used = range(max(0, ndim - 3), ndim) if used is None else (used,) if isinstance(used, int) else used
        for axis in used:
            if self._row.has_spacing and spacing[axis] != spacing[axis]:
                raise _core.ParameterError(f"input: the coordinates along axis {axis % ndim} are not evenly spaced; spacing=False "
                                           "takes lengths in voxels")
        return tuple(each if each == each else 1.0 for each in spacing)

    def worded(self, ndim: int) -> InPython:
        """A scope in which the engine's complaints come out in the words of this filter."""
        return InPython(self._row.names, ndim)

    def check_kinds(self, operation: Any, inputs: Sequence[str], output: str, ndim: int) -> None:
        """Throws where the operation does not go from and to voxels of these kinds."""
        with self.worded(ndim):
            _core.check_kinds(operation, list(inputs), output)

    def _to_engine(self, ndim: int, axes: Any, boolean: bool, without: Sequence[str] = ()) -> dict[str, Any]:
        values = {key: value for key, value in self._given.items() if key not in without}
        if axes is not None and "axes" in self._row.parameters and "axes" not in values:
            values["axes"] = axes
        if boolean:
            for key, value in (("foreground_value", 1), ("background_value", 0)):
                if key in self._row.parameters:
                    values.setdefault(key, value)
        has_axes = "axes" in values
        return {self._row.parameters[key].engine: _to_engine(self._row.parameters[key], value, ndim, has_axes)
                for key, value in values.items()}

    def _of(self, shape: Sequence[int], dtype: Any, output: Any = None) -> tuple[tuple[int, ...], str, str, Any]:
        shape = tuple(operator.index(each) for each in shape)
        dtype = np.dtype(dtype)
        kind = check_dtype(dtype)
        output_kind = check_dtype(np.dtype(output) if output is not None else self.default_dtype(dtype), "output")
        operation = self._operation(shape, kind, output_kind, boolean=dtype.kind == "b")
        return shape, kind, output_kind, operation

    def halo(self, shape: Sequence[int], dtype: Any = "float32") -> tuple[tuple[int, int], ...]:
        """Voxels that a voxel of the result depends on, before and after it along each axis of an image of this shape;
        ``math.inf`` where that is the whole axis."""
        shape, _, _, operation = self._of(shape, dtype)
        lower, upper = operation.halo(turn(shape))
        far = 2**60
        return tuple((math.inf if a >= far else a, math.inf if b >= far else b)  # type: ignore[misc]
                     for a, b in zip(reversed(lower), reversed(upper)))

    def plan(self, shape: Sequence[int], dtype: Any = "float32", output: Any = None, **options: Any) -> Plan:
        """How a run over an image of this shape would be cut; nothing is computed. Takes a run's options."""
        shape, kind, output_kind, operation = self._of(shape, dtype, output)
        self.check_kinds(operation, [kind] * operation.inputs, output_kind, len(shape))
        with self.worded(len(shape)):
            found = _core.plan(operation, [kind] * operation.inputs, output_kind, turn(shape), [0] * len(shape),
                               turn(shape), make_options(**options))
        return Plan([Region(slices_of(box), slices_of(needed)) for box, needed in found["chunks"]],
                    turn(found["chunk_extent"]), found["device_bytes"], found["scratch_bytes"],
                    found["bytes_to_device"], found["bytes_to_host"], found["seconds"])

    def resolved(self, image: Any, *others: Any, **options: Any) -> Filter:
        """The filter with numbers in place of "auto", as they follow from this image.

        Further images, such as a mask, follow the first one as in a call. Arrays of Dask, Zarr and TensorStore are read block by
        block, at once: ``memory`` (4G) bounds that.
        """
        def take(stand_in: Filter, parameter: str) -> list[float]:
            runner = runner_of(image)
            if runner is not None and runner.resolve is not None:
                return runner.resolve(stand_in, parameter, image, others, options)
            opened = open_image(image)
            arrays: list[Any] = [opened.array]
            arrays += self._open_others(opened, others)
            ordered, kind = self._ordered(arrays)
            operation = stand_in._operation(ordered[0].shape, kind, stand_in.default_dtype(ordered[0].dtype).name,
                                            opened.spacing, self._names_of(arrays), axes=opened.axes)
            with self.worded(opened.array.ndim):
                numbers: list[float] = _core.estimate(self._row.engine, parameter, operation, ordered, make_options(**options))
            return numbers

        return self.estimated(take)

    def estimated(self, take: Callable[[Filter, str], list[float]]) -> Filter:
        """The filter with the numbers that take(filter with a provisional value, the parameter's name) gives in place of
        "auto"."""
        parameter = self._automatic
        if parameter is None:
            return self
        provisional: Any = (0.0, 1.0) if parameter.count == "two" else 0.0
        numbers = take(self.replaced(**{parameter.name: provisional}), parameter.engine)
        return self.replaced(**{parameter.name: tuple(numbers) if len(numbers) > 1 else numbers[0]})

    # Runs

    @overload
    def __call__(self, input: np.ndarray[Any, Any] | Sequence[Any] | float, *others: Any, output: Any = ...,
                 **options: Any) -> np.ndarray[Any, Any]: ...
    @overload
    def __call__(self, input: _Image, *others: Any, output: Any = ..., **options: Any) -> _Image: ...

    def __call__(self, input: Any, *others: Any, output: Any = None, **options: Any) -> Any:
        """Filters an image: see the function of the filter's name. Further images follow the first one."""
        if isinstance(output, type):
            output = as_dtype(output)
        if type(input) is np.ndarray and not others and not options:
            into = output if type(output) is np.ndarray else None
            dtype = output if into is None else into.dtype
            prepared = self._prepared.get((input.shape, input.dtype, dtype if dtype is None or isinstance(dtype, np.dtype) else 0))
            if (prepared is not None and KEPT.reports is None and input.flags.carray and
                    (into is None or prepared.can_fill(into, input))):
                result = prepared.run(input, into)
                if NOTED.runs is not None:
                    NOTED.runs.append((input if into is None else None, result, prepared.run))
                return result
        if self._row.output == "label" and isinstance(output, str) and output == "auto":
            return self._smallest(input, others, options)
        if type(input) is np.ndarray:
            opened = None
            array = input
        else:
            runner = runner_of(input)
            if runner is not None and self._row.has_grid and not (runner.takes_grids or is_on_device(input)):
                raise TypeError(f"{self._row.name}: the result has a shape of its own, so it takes arrays in memory")
            if runner is not None:
                return runner.run(self, input, *others, output=output, **options)
            opened = open_image(input)
            array = opened.array
            if self._row.has_grid and opened.spacing is not None:
                raise TypeError(f"{self._row.name}: the image has coordinates, which the result would lose; give its array")
        arrays: list[Any] = [array]
        arrays += self._open_others(opened, others)
        if self.is_automatic:
            if array.size == 0:
                raise _core.ParameterError(f"{self._row.name}: auto takes a value from the image, which has no voxels")
            return self.resolved(input, *others, **options)(input, *others, output=output, **options)
        result = self._run_whole(arrays, output, make_options(**options), opened)
        if isinstance(output, np.ndarray):
            return output
        return result if opened is None else opened.wrap(result)

    def _smallest(self, input: Any, others: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Labels of the smallest unsigned type that has all of them."""
        if runner_of(input) is not None and not is_on_device(input):
            raise TypeError("output: 'auto' needs the number of labels, which is known for arrays in memory; name a type")
        opened = None if type(input) is np.ndarray else open_image(input)
        array = input if opened is None else opened.array
        arrays = [array, *self._open_others(opened, others)]
        widest = max([each.dtype.itemsize for each in arrays[1:] if each is not None], default=4)
        dtype = np.uint32 if array.size < 2**32 and widest <= 4 else np.uint64
        result = self._run_whole(arrays, dtype, make_options(**options), opened)
        count = int(result.max()) if result.size else 0
        result = result.astype(np.min_scalar_type(count), copy=False)
        return result if opened is None else opened.wrap(result)

    def _open_others(self, first: Opened | None, others: tuple[Any, ...]) -> list[Any]:
        """Further images as arrays. An image that knows its place in space must lie where the first one does."""
        arrays: list[Any] = []
        for i, other in enumerate(others):
            if other is None or type(other) is np.ndarray:
                arrays.append(other)
                continue
            opened = open_image(other)
            name = self._row.inputs[i].name if i < len(self._row.inputs) else "input"
            check_place(first.place if first is not None else None, opened.place, name)
            arrays.append(opened.array)
        return arrays

    def _names_of(self, arrays: list[Any]) -> tuple[str, ...]:
        inputs = self._row.inputs
        if len(arrays) - 1 > len(inputs):
            raise TypeError(f"{self._row.name} takes {1 + len(inputs)} images, {len(arrays)} are given")
        names = tuple(each.engine for each, array in zip(inputs, arrays[1:]) if array is not None)
        missing = [each.name for i, each in enumerate(inputs)
                   if each.required and (i + 1 >= len(arrays) or arrays[i + 1] is None)]
        if missing:
            raise TypeError(f"{self._row.name} needs the image {missing[0]!r}")
        return names

    def order(self, dtypes: Sequence[Any]) -> tuple[list[tuple[int, str]], str]:
        """The numbers of the images in the engine's order, each with the kind that it is taken as, and the first one's kind.

        Images that are not given have no type: None.
        """
        kind = check_dtype(dtypes[0])
        further = [(i, each) for i, each in enumerate(self._row.inputs[:len(dtypes) - 1], 1) if dtypes[i] is not None]
        for i, each in further:
            if not each.own_kind:
                kind = _core.common_kind(kind, check_dtype(dtypes[i], each.name))
        ordered = [(0, kind)]
        for i, each in further:
            own = check_dtype(dtypes[i], each.name) if each.own_kind else kind
            ordered.insert(0 if each.before else len(ordered), (i, own))
        return ordered, kind

    def check_shapes(self, images: Sequence[Any]) -> None:
        """Throws where images have not the shape of the first one."""
        for each, image in zip(self._row.inputs, images[1:]):
            if image is not None and image.shape != images[0].shape:
                raise _core.ParameterError(f"{each.name}: its shape is {image.shape}, the input's is {images[0].shape}")

    def _ordered(self, arrays: list[Any]) -> tuple[list[np.ndarray[Any, Any]], str]:
        """The images in the engine's order, of kinds that it takes, and the first one's kind."""
        self.check_shapes(arrays)
        ordered, kind = self.order([None if array is None else array.dtype for array in arrays])
        return [as_input(arrays[i], own) for i, own in ordered], kind

    def _is_of_bool(self, arrays: Sequence[Any]) -> bool:
        """Whether all images are of bool, except images with a separate type, such as masks."""
        return arrays[0].dtype.kind == "b" and all(
            array is None or each.own_kind or array.dtype.kind == "b" for each, array in zip(self._row.inputs, arrays[1:]))

    def result_shape(self, shape: tuple[int, ...], kind: str, output_kind: str, axes: Any = None) -> tuple[int, ...]:
        """The shape of the result for an image of a shape and type; `axes` are those of a container."""
        box = None if len(self._stages()) > 1 else self._output_box(shape, kind, output_kind, axes)
        return shape if box is None else tuple(each.stop - each.start for each in box)

    def _output_box(self, shape: tuple[int, ...], kind: str, output_kind: str, axes: Any = None) -> tuple[slice, ...] | None:
        if not self._row.has_grid and not self._given.get("valid"):
            return None
        # The grid does not depend on vectors, which may be many.
        given = self._to_engine(len(shape), axes, False, ("displacements", "displacement_grid", "displacements_are_points"))
        with self.worded(len(shape)):
            box = _core.output_box(self._row.engine, given, turn(shape), kind, output_kind)
        return slices_of(box)

    def _run_whole(self, arrays: list[Any], output: Any, options: Any, opened: Opened | None) -> np.ndarray[Any, Any]:
        first = arrays[0]
        shape = first.shape
        names = self._names_of(arrays)
        if not 1 <= len(shape) <= 5:
            raise _core.ParameterError(f"input: it has {len(shape)} dimensions; images have 1 to 5")
        boolean = first.dtype.kind == "b"
        ordered, kind = self._ordered(arrays)
        if output is None:
            dtype = self.default_dtype(first.dtype if self._is_of_bool(arrays) else kind)
        else:
            dtype = output.dtype if isinstance(output, np.ndarray) else as_dtype(output)
        output_kind = check_dtype(dtype, "output")
        if opened is None:
            operation = self._operation(shape, kind, output_kind, further=names, boolean=boolean,
                                        can_have_components=True)
        else:
            operation = self._operation(shape, kind, output_kind, opened.spacing, names, opened.origin, opened.axes,
                                        boolean, opened.can_have_components)
        region = self._output_box(shape, kind, output_kind) or tuple(slice(0, each) for each in shape)
        lower, upper = box_of(region)
        result_shape = Region(region, region).shape
        if operation.components:
            result_shape += (operation.components,)
        result = _Result(output, result_shape, dtype, ordered)
        if 0 in result_shape:
            # The engine checks the kinds of what it runs over.
            self.check_kinds(operation, [each.dtype.name for each in ordered], output_kind, len(shape))
        else:
            with self.worded(len(shape)):
                report = _core.execute(operation, ordered, [0] * len(shape), result.target, lower, turn(shape), lower,
                                       upper, options)
            warn(report)
            if NOTED.runs is not None and not (len(arrays) == 1 and opened is None and options is DEFAULT_OPTIONS):
                NOTED.runs.append((None, None, None))
            is_array = type(output) is np.ndarray
            if len(arrays) == 1 and opened is None and options is DEFAULT_OPTIONS and (
                    output is None or is_array or isinstance(output, np.dtype)):
                if len(self._prepared) >= _MOST_OPERATIONS:
                    self._prepared.clear()
                if not operation.components:
                    prepared = self._prepared[shape, first.dtype, dtype if is_array else output] = _Prepared(
                        _core.PreparedRun(operation, kind, output_kind, turn(shape), lower, upper, options).run, np.dtype(kind), dtype,
                        result.target.dtype, result_shape)
                    finished_result = result.finish()
                    if NOTED.runs is not None:
                        NOTED.runs.append((None if is_array else first, finished_result, prepared.run))
                    return finished_result
        return result.finish()

    def run(self, part: Any, region: Region, shape: Sequence[int], *others: Any, output: Any = None,
            **options: Any) -> np.ndarray[Any, Any]:
        """Computes ``region.output`` of an image of `shape`, of which `part` is ``image[region.input]``.

        The result is that part of what a run over the whole image gives, bit for bit. ``chunkwise.regions`` makes
        regions. Further images are parts like the first one.
        """
        arrays = [np.asarray(each) if each is not None else None for each in (part, *others)]
        shape = tuple(operator.index(each) for each in shape)
        names = self._names_of(arrays)
        expected = tuple(each.stop - each.start for each in region.input)
        if arrays[0].shape != expected:  # type: ignore[union-attr]
            raise _core.ParameterError(f"part: its shape is {arrays[0].shape}, "  # type: ignore[union-attr]
                                       f"region.input is {expected}")
        boolean = arrays[0].dtype.kind == "b"  # type: ignore[union-attr]
        ordered, kind = self._ordered(arrays)
        if output is None:
            dtype = self.default_dtype(arrays[0].dtype if self._is_of_bool(arrays) else kind)  # type: ignore[union-attr]
        else:
            dtype = output.dtype if isinstance(output, np.ndarray) else np.dtype(output)
        output_kind = check_dtype(dtype, "output")
        operation = self._operation(shape, kind, output_kind, further=names, boolean=boolean)
        self.check_kinds(operation, [each.dtype.name for each in ordered], output_kind, len(shape))
        with self.worded(len(shape)):
            return run_region(operation, ordered, region, shape, output, dtype, make_options(**options))


def run_region(operation: Any, ordered: list[np.ndarray[Any, Any]], region: Region, shape: tuple[int, ...], output: Any,
               dtype: np.dtype[Any], options: Any) -> np.ndarray[Any, Any]:
    result = _Result(output, region.shape, dtype, ordered)
    if 0 not in region.shape:
        lower, upper = box_of(region.output)
        report = _core.execute(operation, ordered, box_of(region.input)[0], result.target, lower, turn(shape), lower,
                               upper, options)
        warn(report)
    return result.finish()


def foreseen(error: Any, later: Sequence[tuple[Filter, Sequence[int], Any]], options: dict[str, Any]) -> Any:
    """The BudgetError of a run, or that of a later one, (filter, shape, dtype), which needs more: no work has begun there."""
    for made, shape, dtype in later:
        try:
            made.plan(shape, dtype, **options)
        except _core.BudgetError as other:
            error = other if other.needed > error.needed else error
    return error


class Noted(threading.local):
    """The steps of this thread while somebody wants to know: whether a function does nothing but prepared runs, and functions
    of their results, one after the other."""

    #: An image, what became of it, and the function that made that. None: nobody wants to know, and no image is kept alive.
    runs: list[tuple[Any, Any, Any]] | None = None


NOTED = Noted()


def then(image: Any, function: Callable[[Any], Any]) -> Any:
    """function(image), which depends on nothing else that changes."""
    result = function(image)
    if NOTED.runs is not None:
        NOTED.runs.append((image, result, function))
    return result


@lru_cache(256, typed=True)
def known(made: Callable[..., Filter], **given: Any) -> Filter:
    """A filter that is made once for the same parameters, which have a hash."""
    return made(**given)


class _Prepared:
    """The preparation that all runs over images of one shape and type share, so that small images do not wait for
    it."""

    __slots__ = ("_run", "_kind", "_dtype", "_target_dtype", "_shape", "_is_same")

    def __init__(self, run: Callable[..., Any], kind: np.dtype[Any], dtype: np.dtype[Any], target_dtype: np.dtype[Any],
                 shape: tuple[int, ...]) -> None:
        self._run, self._kind, self._dtype, self._target_dtype, self._shape = run, kind, dtype, target_dtype, shape
        self._is_same = dtype == target_dtype

    def can_fill(self, output: np.ndarray[Any, Any], image: np.ndarray[Any, Any]) -> bool:
        return self._is_same and output.shape == self._shape and output.flags.carray and not shares_memory(output, image)

    def run(self, image: np.ndarray[Any, Any], into: np.ndarray[Any, Any] | None = None) -> np.ndarray[Any, Any]:
        target = np.empty(self._shape, self._target_dtype) if into is None else into
        warnings = self._run(image if image.dtype == self._kind else as_input(image, self._kind.name), target)
        if warnings:
            warn({"warnings": warnings})
        return target if self._is_same else finished(target, self._dtype)


def finished(target: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """The engine's result, as the type that was asked for."""
    if dtype.kind == "b":
        # In the same memory, where anything but 0 is true.
        truth: np.ndarray[Any, Any] = np.not_equal(target, 0, out=target.view(np.bool_))
        return truth
    return target.astype(dtype, copy=False)


class _Result:
    """The array that the engine writes to: the caller's array, or memory from which that is filled afterwards."""

    __slots__ = ("target", "_output", "_dtype")

    def __init__(self, output: Any, shape: tuple[int, ...], dtype: np.dtype[Any],
                 inputs: Sequence[np.ndarray[Any, Any]]) -> None:
        self._dtype = dtype
        self._output = None
        native = np.dtype(check_dtype(dtype, "output"))
        if not isinstance(output, np.ndarray):
            self.target = np.empty(shape, native)
            return
        target = check_output(output, shape)
        if dtype.kind == "b":
            target = target.view(np.uint8)
        if 0 in shape or (target.dtype == native and is_usable(target) and not any(shares_memory(target, each) for each in inputs)):
            self.target = target
        else:
            self._output = output
            self.target = np.empty(shape, native)

    def finish(self) -> np.ndarray[Any, Any]:
        result = finished(self.target, self._dtype)
        if self._output is not None:
            self._output[...] = result
            return self._output
        return result


class Sequence_(Filter):
    """Several filters in one pass: each chunk is loaded and stored once. ``f | g`` makes it."""

    __slots__ = ("stages",)

    def __init__(self, stages: Sequence[Filter]) -> None:
        self.stages = tuple(stages)
        self._operations = {}
        self._prepared = {}
        self._given = {}
        self._spacing = None
        self._row = ROWS["identity"]
        for each in self.stages:
            if not each._row.can_be_stage or each._given.get("valid"):
                raise _core.ParameterError(f"{each!r} cannot be a part of a sequence")
            if each.is_automatic:
                raise _core.ParameterError(f"{each!r}: auto needs the whole image, which no part of a sequence has")

    @property
    def name(self) -> str:
        return "sequence"

    @property
    def key(self) -> str:
        return " | ".join(each.key for each in self.stages)

    def __repr__(self) -> str:
        return " | ".join(repr(each) for each in self.stages)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence_) and self.stages == other.stages

    def __hash__(self) -> int:
        return hash(self.stages)

    def __reduce__(self) -> Any:
        return Sequence_, (self.stages,)

    def _stages(self) -> tuple[Filter, ...]:
        return self.stages

    def worded(self, ndim: int) -> InPython:
        names: dict[str, str] = {}
        for each in self.stages:
            names |= each._row.names
        return InPython(names, ndim)

    def default_dtype(self, dtype: Any) -> np.dtype[Any]:
        result: np.dtype[Any] = np.dtype(dtype)
        for each in self.stages:
            kind = each.default_dtype(dtype)
            result = kind if kind.itemsize > result.itemsize or kind.kind == "f" else result
        return result

    def _operation(self, shape: tuple[int, ...], kind: str, output_kind: str, spacing: Any = None,
                   further: tuple[str, ...] = (), origin: Any = None, axes: Any = None, boolean: bool = False,
                   can_have_components: bool = False) -> Any:
        key = (shape, kind, output_kind, spacing, axes)
        operation = self._operations.get(key)
        if operation is None:
            stages = [each._operation(shape, kind if i == 0 else output_kind, output_kind, spacing, (), origin, axes)
                      for i, each in enumerate(self.stages)]
            with self.worded(len(shape)):
                operation = _core.make_sequence(stages, turn(shape))
            self._operations[key] = operation
        return operation


_classes: dict[str, type[Filter]] = {}


def class_of(row: Row) -> type[Filter]:
    """The class of a row of the table, made when it is used."""
    made = _classes.get(row.engine)
    if made is None:
        given = ", ".join(f"{name}={name}" for name in row.parameters)
        arguments = row.arguments(stub=False, with_inputs=False)
        spacing = "spacing" if row.has_spacing else "None"
        scope: dict[str, Any] = {"Filter": Filter}
        code = (f"def __init__(self{', ' + arguments if arguments else ''}):\n"
                f"    Filter.__init__(self, {row.engine!r}, dict({given}), {spacing})")
        exec(compile(code, f"<chunkwise.filters.{row.class_name}>", "exec"), scope)
        made = _classes[row.engine] = type(row.class_name, (Filter,), {
            "__init__": scope["__init__"], "__doc__": row.document(is_class=True), "__slots__": (),
            "__module__": "chunkwise.filters"})
    return made


def _rebuild(name: str, given: dict[str, Any], spacing: Any = None) -> Filter:
    made: Filter = Filter.__new__(class_of(ROWS[name]))
    Filter.__init__(made, name, given, spacing)
    return made
