# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Functions that go straight to the engine when they are called again with the same arguments and an image of the same shape.

SciPy's arguments take longer to check than a small image takes to filter. They are checked once: a function whose call did
nothing but prepared runs of the engine and noted functions of their results, one after the other, and returned the last one's
result, does only these the next time.
"""
from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, ParamSpec, Protocol, TypeVar, cast, overload

import numpy as np

from ._arrays import KEPT
from ._filter import NOTED

_Given = ParamSpec("_Given")
_Image = TypeVar("_Image")


class _Untyped(Protocol[_Given]):
    def __call__(self, input: Any, *given: _Given.args, **named: _Given.kwargs) -> Any: ...


class OfImage(Protocol[_Given]):
    """A function of an image: arrays give arrays, images of other packages give images of these."""

    @overload
    def __call__(self, input: np.ndarray[Any, Any] | Sequence[Any] | float, *given: _Given.args,
                 **named: _Given.kwargs) -> np.ndarray[Any, Any]: ...
    @overload
    def __call__(self, input: _Image, *given: _Given.args, **named: _Given.kwargs) -> _Image: ...


def typed(function: _Untyped[_Given]) -> OfImage[_Given]:
    """The same function, with the types of its results."""
    return cast(OfImage[_Given], function)


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


def quick(function: _Untyped[_Given]) -> OfImage[_Given]:
    """Remembers the run of a function whose first argument is an image."""
    known: dict[Any, Any] = {}

    @functools.wraps(function)
    def called(*arguments: Any, **given: Any) -> Any:
        if not arguments or type(image := arguments[0]) is not np.ndarray or NOTED.runs is not None or KEPT.reports is not None:
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
        steps = known.get(key)
        if steps is not None and image.flags.carray:
            result = image
            for step in steps:
                result = step(result)
            return result
        runs = NOTED.runs = []
        try:
            result = function(*arguments, **given)
        finally:
            NOTED.runs = None
        at: Any = image
        is_chain = bool(runs)
        for before, after, _ in runs:
            is_chain = is_chain and before is at
            at = after
        if is_chain and at is result:
            if len(known) >= _MOST_CALLS:
                known.clear()
            known[key] = tuple(step for _, _, step in runs)
        return result

    return typed(called)
