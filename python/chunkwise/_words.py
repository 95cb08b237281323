# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""The engine's messages in Python's words."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import _core


def shown(value: Any) -> str:
    """A value in a message: arrays by their type and shape, and no text without end."""
    if hasattr(value, "dtype") and getattr(value, "ndim", 0) > 0:
        return f"an array of {value.dtype} of the shape {tuple(value.shape)}"
    text = repr(value)
    return text if len(text) <= 200 else text[:197] + "..."


class InPython:
    """Turns what the engine says of parameters into Python's words: names, and axes by NumPy's count."""

    __slots__ = ("_dimension", "_names")

    def __init__(self, names: Mapping[str, str], dimension: int) -> None:
        self._names, self._dimension = names, dimension

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        # Exceptions that Python code raised, such as a progress function, are in Python's words already.
        if kind is not _core.ParameterError or "parameter" not in vars(error):
            return
        name = error.parameter
        if name is not None and name not in self._names:
            return
        worded = _core.ParameterError(_core.word_message(str(error), self._names, self._dimension))
        if name is not None:
            worded.parameter, worded.value, worded.allowed = self._names[name], error.value, error.allowed
        raise worded from None
