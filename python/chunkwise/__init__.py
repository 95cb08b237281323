# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Boundary-exact image filters for images of any size, on all devices of a machine or on its CPU.

>>> import numpy as np
>>> import chunkwise
>>> image = np.arange(60, dtype="uint8").reshape(3, 4, 5)
>>> chunkwise.mean(image, radius=1).shape
(3, 4, 5)

There is a function for each filter of the engine, with the program's defaults. ``chunkwise.ndimage`` has SciPy's names
and defaults, ``chunkwise.skimage`` scikit-image's. ``chunkwise.filters`` has filters as values, ``chunkwise.zarr`` and
``chunkwise.dask`` take images that do not fit into memory. Results do not depend on how the work is cut, and are the same
bits on the CPU and on devices.
"""
from __future__ import annotations

import builtins
from functools import lru_cache
from typing import Any

from . import _core, filters
from ._arrays import ChunkwiseWarning, reports
from ._core import Aborted, BudgetError, DeviceError, Error, ParameterError
from ._deconvolution import average_beads, richardson_lucy
from ._filter import Filter, Plan
from ._manage import budgets, devices, held_memory, release_memory, set_budgets, why_no_devices
from ._measure import (contacts, fill_label_holes, filter_labels, find_boundaries, measure, remove_small_objects,
                       write_table)
from ._parts import regions
from ._regions import Region
from ._ridges import frangi, hessian_eigenvalues, meijering, sato
from ._separate import separate
from ._statistics import Statistics, statistics
from ._table import BY_NAME, COMMON
from ._thresholds import (apply_hysteresis_threshold, threshold_isodata, threshold_li, threshold_local, threshold_multiotsu,
                          threshold_niblack, threshold_otsu, threshold_sauvola, threshold_triangle, threshold_yen)
from ._version import __version__


def _make_function(row: Any) -> Any:
    """A function with the true signature of a row."""
    given = ", ".join([*row.parameters, *(["spacing"] if row.has_spacing else [])])
    others = "".join(f", {each.name}" for each in row.inputs)
    common = ", ".join(f"{name}={name}" for name, _, _ in COMMON)
    # Small images do not wait for what nobody has set.
    unset = " is ".join([*(name for name, _, _ in COMMON if name not in ("output", "backend")), *(each.name for each in row.inputs)])
    code = (f"def {row.name}({row.arguments(stub=False, with_inputs=True)}):\n"
            f"    try:\n        _filter = _kept({given})\n"
            f"    except ParameterError:\n        raise\n"
            f"    except TypeError:\n        _filter = _make({given})\n"
            f"    if backend == 'auto' and {unset} is None:\n        return _filter(input, output=output)\n"
            f"    return _filter(input{others}, {common})")
    made = getattr(filters, row.class_name)

    def make(*values: Any) -> Filter:
        spacing = {"spacing": values[-1]} if row.has_spacing else {}
        return made(**dict(zip(row.parameters, values)), **spacing)

    # A filter that is called again has its operation at hand. The file of a network may be another one by then.
    is_network = any(each.type == "network" for each in row.parameters.values())
    scope: dict[str, Any] = {"ParameterError": ParameterError, "_make": make, "_kept": make if is_network else lru_cache(128, typed=True)(make)}
    exec(compile(code, f"<chunkwise.{row.name}>", "exec"), scope)
    function = scope[row.name]
    function.__doc__ = row.document()
    function.__module__ = __name__
    return function


__all__ = [
    "Aborted", "BudgetError", "ChunkwiseWarning", "DeviceError", "Error", "Filter", "ParameterError", "Plan", "Region",
    "Statistics", "apply_hysteresis_threshold", "average_beads", "budgets", "contacts", "devices", "fill_label_holes",
    "filter_labels", "filters", "find_boundaries", "frangi", "held_memory", "hessian_eigenvalues", "measure", "meijering",
    "regions", "release_memory", "remove_small_objects", "reports", "richardson_lucy", "sato", "separate", "set_budgets",
    "statistics", "threshold_isodata", "threshold_li", "threshold_local", "threshold_multiotsu", "threshold_niblack",
    "threshold_otsu", "threshold_sauvola", "threshold_triangle", "threshold_yen", "why_no_devices", "write_table",
    # No star hides Python's own range and sum.
    *(name for name in BY_NAME if not hasattr(builtins, name)),
]


def __getattr__(name: str) -> Any:
    # Functions are made, and modules that need other packages imported, when they are used.
    row = BY_NAME.get(name)
    if row is not None:
        function = globals()[name] = _make_function(row)
        return function
    if name in ("dask", "ndimage", "skimage", "zarr"):
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    # Names that this file imports are hidden.
    return sorted({*(name for name in globals() if name.startswith("__")), *__all__, *BY_NAME, "dask", "ndimage", "skimage", "zarr"})
