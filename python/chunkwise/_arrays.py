# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""How the engine reads an array, and when it has to copy it."""
from __future__ import annotations

import operator
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import numpy as np

from . import _core

KINDS = frozenset(("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float32", "float64"))
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


class ChunkwiseWarning(UserWarning):
    """A non-fatal condition of a run: a device that was dropped, a budget that costs much time."""


class ParameterTypeError(_core.ParameterError, TypeError):
    """An argument of a type that it cannot have, such as text for a number."""


def _whole(value: Any, name: str) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise ParameterTypeError(f"{name}: {value!r} is not a whole number") from None


def as_dtype(output: Any) -> np.dtype[Any]:
    """A type that a caller asks for."""
    try:
        dtype: np.dtype[Any] = np.dtype(output)
    except (TypeError, ValueError):
        raise TypeError(f"output: {output!r} is neither an array nor a type of voxels") from None
    return dtype


def parse_bytes(value: int | str | None, name: str) -> int:
    """A number of bytes, as 4294967296 or "4G"; 0 for None."""
    if value is None:
        return 0
    if isinstance(value, str):
        text = value.strip().upper().removesuffix("B").removesuffix("I")
        unit = text[-1:] if text[-1:] in "KMGT" else ""
        try:
            number = float(text.removesuffix(unit)) * _UNITS[unit]
        except ValueError:
            raise _core.ParameterError(f'{name}: {value!r} is not a size, such as 4294967296, "4G" or "512M"') from None
        if not 1 <= number < 2**63:
            raise _core.ParameterError(f"{name}: {value!r} is not a size of at least one byte")
        return int(number)
    number = int(value) if isinstance(value, float) and value % 1 == 0 else _whole(value, name)
    if number != value or number < 1 or number >= 2**63:
        raise _core.ParameterError(f"{name}: {value!r} is not a whole number of at least one byte")
    return number


class _Bar:
    """Progress on the terminal, for who has no tqdm."""

    def __call__(self, fraction: float) -> None:
        sys.stderr.write(f"\r{100 * fraction:5.1f} %" + ("\n" if fraction >= 1 else ""))
        sys.stderr.flush()


def make_progress(progress: bool | Callable[[float], object] | None) -> Callable[[float], object] | None:
    if progress is None or progress is False:
        return None
    if progress is not True:
        if not callable(progress):
            raise TypeError(f"progress: {progress!r} is neither a bool nor a function of the part that is done")
        return progress
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return _Bar()
    bar = tqdm(total=1.0, bar_format="{l_bar}{bar}| {elapsed}<{remaining}")

    def show(fraction: float) -> None:
        bar.update(fraction - bar.n)
        if fraction >= 1:
            bar.close()

    return show


OPTIONS = ("backend", "devices", "memory", "device_memory", "pinned_memory", "threads", "progress")
DEFAULT_OPTIONS = _core.make_options("auto", [], 0, 0, 0, 0, None)


def make_options(backend: str = "auto", devices: Sequence[int] | None = None, memory: int | str | None = None,
                 device_memory: int | str | None = None, pinned_memory: int | str | None = None,
                 threads: int | None = None, progress: Any = None, **unknown: Any) -> Any:
    for name in unknown:
        raise TypeError(f"{name}: unexpected keyword argument; options are {', '.join(OPTIONS)}")
    if (backend == "auto" and devices is None and memory is None and device_memory is None and pinned_memory is None
            and threads is None and progress is None):
        return DEFAULT_OPTIONS
    if threads is not None and not 1 <= _whole(threads, "threads") <= 4096:
        raise _core.ParameterError(f"threads: {threads!r} is not a number from 1 to 4096")
    if not isinstance(backend, str):
        raise TypeError(f"backend: {backend!r} is no text")
    if devices is not None and (isinstance(devices, str) or not isinstance(devices, Iterable)):
        raise TypeError(f"devices: {devices!r} is no sequence of devices' numbers")
    return _core.make_options(backend, [_whole(each, "devices") for each in devices or ()], parse_bytes(device_memory, "device_memory"),
                              parse_bytes(pinned_memory, "pinned_memory"), parse_bytes(memory, "memory"), threads or 0,
                              make_progress(progress))


def threads_of_cpu(options: dict[str, Any]) -> int:
    """The number of threads, 0 for all, of a function that the CPU alone computes; throws for options that are none."""
    make_options(**options)
    if options.get("backend", "auto") not in ("auto", "cpu") or options.get("devices"):
        raise _core.ParameterError(f"backend: {options.get('backend', 'devices')!r}, and the CPU alone computes this")
    return options.get("threads") or 0


#: Types of NumPy that the engine computes as others: bool as 0 and 1.
_AS_OTHERS = {"bool": "uint8", "float16": "float32"}


@lru_cache(256)
def check_dtype(dtype: np.dtype[Any], what: str = "input") -> str:
    """The engine's kind of a type; throws what would be right."""
    name = dtype.newbyteorder("=").name
    if name in KINDS:
        return name
    if name in _AS_OTHERS:
        return _AS_OTHERS[name]
    if dtype.kind == "c":
        hint = "; real and imaginary part can be filtered one after the other"
    else:
        hint = ""
    raise _core.ParameterError(f"{what}: {dtype} is none of the types of voxels, bool, float16, "
                               f"{', '.join(sorted(KINDS))}{hint}")


def is_usable(array: np.ndarray[Any, Any]) -> bool:
    """Whether the engine can read or write the array where it lies."""
    size = array.itemsize
    if array.dtype.byteorder not in "=|" and not array.dtype.isnative:
        return False
    if array.shape[-1] > 1 and array.strides[-1] != size:
        return False
    return array.flags.aligned and all(stride % size == 0 for stride in array.strides)


def as_input(array: np.ndarray[Any, Any], kind: str) -> np.ndarray[Any, Any]:
    """The array as the engine reads it, without a copy where that can be."""
    if array.dtype.kind == "b":
        array = array.view(np.uint8)
    if array.dtype != kind:
        return np.ascontiguousarray(array, dtype=kind)
    return array if is_usable(array) else np.ascontiguousarray(array, dtype=kind)


def overlaps_itself(array: Any) -> bool:
    """Whether two voxels may be at one place; steps that do not nest count as such."""
    reach = array.itemsize
    if 0 in array.shape:
        return False
    for stride, extent in sorted((abs(stride), extent) for stride, extent in zip(array.strides, array.shape)):
        if extent > 1:
            if stride < reach:
                return True
            reach = stride * (extent - 1) + reach
    return False


def shares_memory(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    if not np.may_share_memory(a, b):
        return False
    try:
        return bool(np.shares_memory(a, b, max_work=10000))  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True


def check_output(output: Any, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    if not isinstance(output, np.ndarray):
        raise TypeError(f"output: {type(output).__name__} is neither an array of NumPy nor a type of voxels")
    if output.shape != shape:
        raise _core.ParameterError(f"output: its shape is {output.shape}, the result's is {shape}")
    if not output.flags.writeable:
        raise _core.ParameterError("output: the array is read-only")
    if overlaps_itself(output):
        raise _core.ParameterError("output: several of its voxels may be at one place in memory")
    return output


class _Kept(threading.local):
    reports: list[dict[str, Any]] | None = None


KEPT = _Kept()


@contextmanager
def reports() -> Iterator[list[dict[str, Any]]]:
    """Keeps the reports of the filters that this thread runs over images in memory.

    >>> import numpy as np
    >>> import chunkwise
    >>> with chunkwise.reports() as found:
    ...     sharp = chunkwise.deconvolve(np.ones((9, 9), "float32"), np.ones((3, 3)), number_of_iterations=2)
    >>> [name for name, _ in found[0]["figures"]]
    ['divergence 1', 'discrepancy 1', 'divergence 2', 'discrepancy 2']

    Yields
    ------
    list of dict
        A dictionary for each run: where it was computed, its memory, and ``figures``, pairs of a name and a number.
    """
    before, KEPT.reports = KEPT.reports, []
    try:
        yield KEPT.reports
    finally:
        KEPT.reports = before


def warn(report: dict[str, Any]) -> None:
    """Takes note of a run's report, and warns of what it says."""
    if KEPT.reports is not None:
        KEPT.reports.append(report)
    for text in report["warnings"]:
        warnings.warn(text, ChunkwiseWarning, stacklevel=4)
