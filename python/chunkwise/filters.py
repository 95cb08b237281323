# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""A class for each filter of the engine's table: filters as values.

>>> from chunkwise import filters
>>> f = filters.Gaussian(sigma=2) | filters.Std(radius=1)
>>> f.halo((100, 100, 100))
((9, 9), (9, 9), (9, 9))
"""
from __future__ import annotations

from typing import Any

from ._filter import Filter, class_of
from ._filter import Sequence_ as Sequence
from ._table import ROWS


_BY_CLASS = {row.class_name: row for row in ROWS.values()}

__all__ = ["Filter", "Sequence", *_BY_CLASS]


def __getattr__(name: str) -> Any:
    # Classes are made when they are used.
    row = _BY_CLASS.get(name)
    if row is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    made = globals()[name] = class_of(row)
    return made


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
