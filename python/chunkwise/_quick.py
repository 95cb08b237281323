# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Functions that go straight to the engine when they are called again with the same arguments and an image of the same shape.

SciPy's arguments take longer to check than a small image takes to filter. They are checked once: a function whose call did
nothing but one prepared run of the engine, and returned its result, makes that run alone the next time.
"""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np

from ._filter import NOTED

_Function = TypeVar("_Function", bound=Callable[..., Any])
_MOST_CALLS = 256
_MOST_NUMBERS = 1024
#: Arguments that are the same if their types and values are. A NaN equals nothing, so that it is never found.
_PLAIN = frozenset((int, float, str, bool, type(None), type))


def _key_of(value: Any) -> Any:
    """A value that is equal for the same arguments; throws a TypeError for one that has none."""
    kind = type(value)
    if kind in _PLAIN or isinstance(value, np.dtype):
        return value
    if kind is tuple or kind is list:
        return tuple((type(each), _key_of(each)) for each in value)
    if kind is np.ndarray and value.size <= _MOST_NUMBERS and value.dtype.kind in "iufb":
        return value.shape, value.dtype, value.tobytes()
    raise TypeError


def quick(function: _Function) -> _Function:
    """Remembers the run of a function whose first argument is an image."""
    known: dict[Any, Any] = {}

    @functools.wraps(function)
    def called(*arguments: Any, **given: Any) -> Any:
        if not arguments or type(image := arguments[0]) is not np.ndarray or NOTED.runs is not None:
            return function(*arguments, **given)
        parts: list[Any] = [image.shape, image.dtype]
        try:
            for value in arguments[1:]:
                parts += (type(value), value if type(value) in _PLAIN else _key_of(value))
            for name, value in given.items():
                parts += (name, type(value), value if type(value) in _PLAIN else _key_of(value))
        except TypeError:
            return function(*arguments, **given)
        key = tuple(parts)
        prepared = known.get(key)
        if prepared is not None and image.flags.carray:
            return prepared.run(image)
        runs = NOTED.runs = []
        try:
            result = function(*arguments, **given)
        finally:
            NOTED.runs = None
        if len(runs) == 1 and runs[0][0] is image and runs[0][1] is result:
            if len(known) >= _MOST_CALLS:
                known.clear()
            known[key] = runs[0][2]
        return result

    return cast(_Function, called)
