# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""The engine's messages in Python's words."""
from __future__ import annotations

from typing import Any

from . import _core
from ._table import Row


class InPython:
    """Turns the engine's complaints about a filter's parameters into Python's words: names, and axes by NumPy's count."""

    __slots__ = ("_dimension", "_row")

    def __init__(self, row: Row, dimension: int) -> None:
        self._row, self._dimension = row, dimension

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        name = getattr(error, "parameter", None)
        if kind is not _core.ParameterError or name not in self._row.names:
            return
        worded = _core.ParameterError(_core.word_message(str(error), self._row.names, self._dimension))
        worded.parameter, worded.value, worded.allowed = self._row.names[name], error.value, error.allowed
        raise worded from None
