#!/usr/bin/env python3
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Writes the stubs of what the package makes from the engine's table: make_stubs.py [--check]. A test runs it with
--check, which writes nothing and fails where a stub is not what it would write. Run it where the package is installed.
"""
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
# The installed package, not its sources beside this script: they have no extension.
sys.path = [path for path in sys.path if Path(path or ".").resolve() != HERE]
from chunkwise._table import ROWS  # noqa: E402

FOLDER = HERE / "chunkwise"
HEAD = """# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
# Made by python/make_stubs.py from the engine's table of filters; not edited by hand.
"""


def functions() -> str:
    text = HEAD + """from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, Literal, TypeVar, overload

import numpy.typing as npt

from . import dask as dask
from . import filters as filters
from . import ndimage as ndimage
from . import skimage as skimage
from . import zarr as zarr
from ._arrays import ChunkwiseWarning as ChunkwiseWarning
from ._arrays import reports as reports
from ._core import Aborted as Aborted
from ._core import BudgetError as BudgetError
from ._core import DeviceError as DeviceError
from ._core import Error as Error
from ._core import ParameterError as ParameterError
from ._deconvolution import average_beads as average_beads
from ._deconvolution import richardson_lucy as richardson_lucy
from ._filter import Filter as Filter
from ._filter import Plan as Plan
from ._manage import budgets as budgets
from ._manage import devices as devices
from ._manage import held_memory as held_memory
from ._manage import release_memory as release_memory
from ._manage import set_budgets as set_budgets
from ._manage import why_no_devices as why_no_devices
from ._measure import contacts as contacts
from ._measure import fill_label_holes as fill_label_holes
from ._measure import filter_labels as filter_labels
from ._measure import find_boundaries as find_boundaries
from ._measure import measure as measure
from ._measure import remove_small_objects as remove_small_objects
from ._measure import write_table as write_table
from ._parts import regions as regions
from ._regions import Region as Region
from ._statistics import Statistics as Statistics
from ._statistics import statistics as statistics
from ._ridges import frangi as frangi
from ._ridges import hessian_eigenvalues as hessian_eigenvalues
from ._ridges import meijering as meijering
from ._ridges import sato as sato
from ._separate import separate as separate
from ._thresholds import apply_hysteresis_threshold as apply_hysteresis_threshold
from ._thresholds import threshold_isodata as threshold_isodata
from ._thresholds import threshold_li as threshold_li
from ._thresholds import threshold_local as threshold_local
from ._thresholds import threshold_multiotsu as threshold_multiotsu
from ._thresholds import threshold_niblack as threshold_niblack
from ._thresholds import threshold_otsu as threshold_otsu
from ._thresholds import threshold_sauvola as threshold_sauvola
from ._thresholds import threshold_triangle as threshold_triangle
from ._thresholds import threshold_yen as threshold_yen

_Image = Any
_Array = npt.NDArray[Any] | Sequence[Any] | float
#: An image of another package, of which the result is one too.
_Other = TypeVar("_Other")

__version__: str

"""
    for row in ROWS.values():
        arguments = row.arguments(stub=True, with_inputs=True)
        for kind, result in (("_Array", "npt.NDArray[Any]"), ("_Other", "_Other")):
            text += f"@overload\ndef {row.name}({arguments.replace('input: _Image', 'input: ' + kind, 1)}) -> {result}: ...\n"
    return text


def classes() -> str:
    text = HEAD + """from collections.abc import Sequence as _Several
from os import PathLike
from typing import Literal

import numpy.typing as npt

from ._filter import Filter as Filter
from ._filter import Sequence_ as Sequence

"""
    for row in ROWS.values():
        arguments = row.arguments(stub=True, with_inputs=False).replace("Sequence[", "_Several[")
        text += f"class {row.class_name}(Filter):\n    def __init__({', '.join(each for each in ('self', arguments) if each)}) -> None: ...\n\n"
    return text.rstrip("\n") + "\n"


def main() -> int:
    status = 0
    for name, text in (("__init__.pyi", functions()), ("filters.pyi", classes())):
        file = FOLDER / name
        if "--check" not in sys.argv:
            file.write_text(text)
        elif not file.exists() or file.read_text() != text:
            print(f"{file} is not what {sys.argv[0]} makes")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
