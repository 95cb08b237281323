# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Boundary-exact image filters for images of any size, on all devices of a machine or on its CPU.

>>> import numpy as np
>>> import chunkwise
>>> image = np.arange(60, dtype="uint8").reshape(3, 4, 5)
>>> chunkwise.mean(image, radius=1).shape
(3, 4, 5)

There is a function for each filter of the engine, with the program's defaults. ``chunkwise.ndimage`` has SciPy's names
and defaults, ``chunkwise.filters`` filters as values, ``chunkwise.zarr`` and ``chunkwise.dask`` images that do not fit
into memory. Results do not depend on how the work is cut, and are the same bits on the CPU and on devices.
"""
from __future__ import annotations

from typing import Any

from . import _core, filters
from ._arrays import ChunkwiseWarning
from ._core import Aborted, BudgetError, DeviceError, Error, ParameterError
from ._filter import Filter, Plan, Region
from ._manage import budgets, devices, held_memory, release_memory, set_budgets, why_no_devices
from ._regions import regions
from ._statistics import Statistics, statistics
from ._table import COMMON, ROWS

__version__ = "0.1.0"


def _make_function(row: Any) -> Any:
    """A function with the true signature of a row."""
    given = ", ".join(f"{name}={name}" for name in row.parameters)
    others = "".join(f", {each.name}" for each in row.inputs)
    common = ", ".join(f"{name}={name}" for name, _, _ in COMMON)
    spacing = "spacing=spacing" if row.has_spacing else ""
    call = ", ".join(each for each in (given, spacing) if each)
    code = (f"def {row.name}({row.arguments(stub=False, with_inputs=True)}):\n"
            f"    return _class({call})(input{others}, {common})")
    scope: dict[str, Any] = {"_class": getattr(filters, row.class_name)}
    exec(compile(code, f"<chunkwise.{row.name}>", "exec"), scope)
    function = scope[row.name]
    function.__doc__ = row.document()
    function.__module__ = __name__
    return function


for _row in ROWS.values():
    globals()[_row.name] = _make_function(_row)

__all__ = [
    "Aborted", "BudgetError", "ChunkwiseWarning", "DeviceError", "Error", "Filter", "ParameterError", "Plan", "Region",
    "Statistics", "budgets", "devices", "filters", "held_memory", "regions", "release_memory", "set_budgets",
    "statistics", "why_no_devices", *(_row.name for _row in ROWS.values()),
]
del _row


def __getattr__(name: str) -> Any:
    # Modules that need other packages, or time, are imported when they are used.
    if name in ("dask", "ndimage", "zarr"):
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
