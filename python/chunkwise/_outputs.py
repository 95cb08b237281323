# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Checks of a run from store to store, before anything is made."""
from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from . import _core
from ._filter import Filter
from ._stores import Store


def check_run(filter: Filter, stores: Sequence[Store | None], path: str | None) -> None:
    """Throws where no run from store to store can be."""
    dimension = len(stores[0].shape)  # type: ignore[union-attr]
    if not 1 <= dimension <= 5:
        raise _core.ParameterError(f"source: it has {dimension} dimensions; images have 1 to 5")
    if filter.parameters.get("valid"):
        raise _core.ParameterError("valid: the result is smaller than the image, which no store to store run has")
    filter._names_of(list(stores))
    filter.check_shapes(stores)
    for name, each in zip(names_of(filter), stores):
        if each is not None:
            check_path(path, each, name)


def check_path(path: str | None, input: Store, name: str) -> None:
    if path is not None and _is_within(input.name, path):
        raise _core.ParameterError(f"output: {path} is the {name}, or holds it")


def names_of(filter: Filter) -> list[str]:
    """The names of the images in error messages."""
    return ["source", *(each.name for each in filter._row.inputs)]


def check_output(filter: Filter, output: Store, stores: Sequence[Store | None], shape: tuple[int, ...],
                  wanted: np.dtype[Any]) -> None:
    if output.shape != shape:
        owner = "source" if stores[0] is not None and shape == stores[0].shape else "result"
        raise _core.ParameterError(f"output: its shape is {output.shape}, the {owner}'s is {shape}")
    if output.dtype.newbyteorder("=") != wanted.newbyteorder("="):
        raise _core.ParameterError(f"output: its type is {output.dtype}, not {wanted}")
    for name, each in zip(names_of(filter), stores):
        if each is not None:
            check_apart(output, each, name)


def check_apart(output: Store, input: Store, name: str) -> None:
    if output.array is input.array or (
            output.name == input.name and "MemoryStore" not in output.name and not isinstance(output.array, np.ndarray)):
        raise _core.ParameterError(f"output: it is the {name}")


def _is_within(name: str, path: str) -> bool:
    """Whether a store's name is of a folder that is, or is in, the folder `path`."""
    if not name.startswith("file://") or "://" in path:
        return False
    inner, outer = Path(name.removeprefix("file://")).resolve(), Path(path).resolve()
    return inner == outer or outer in inner.parents
