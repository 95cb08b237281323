# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Who runs over an image that is not in the host's memory.

A module that runs over such images registers itself when it is imported. One that needs another package is imported when
an image of that package comes.
"""
from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ._containers import is_on_device


class Runner(NamedTuple):
    """The functions of a module for the images that it knows."""

    #: run(filter, image, *others, output=, **options): a filter's result.
    run: Callable[..., Any]
    #: resolve(filter, parameter, image, others, options): numbers that stand for "auto"; None: the image is no array.
    resolve: Callable[..., list[float]] | None = None
    #: Whether results may have other shapes than their images.
    takes_grids: bool = False
    #: statistics(image, **options); None: those of an array.
    statistics: Callable[..., Any] | None = None
    #: fill_label_holes(labels, threads=): labels without holes.
    fill_label_holes: Callable[..., Any] | None = None


_MODULES = {"dask": "dask", "store": "zarr", "device": "_device"}
_runners: dict[str, Runner] = {}


def register(kind: str, runner: Runner) -> None:
    """Lets a module run over all images of a kind."""
    _runners[kind] = runner


def _kind_of(image: Any) -> str | None:
    package = type(image).__module__.partition(".")[0]
    if package == "dask" or (package == "xarray" and type(image).__name__ == "DataArray" and image.chunks is not None):
        return "dask"
    if package in ("zarr", "tensorstore"):
        return "store"
    return "device" if is_on_device(image) else None


def runner_of(image: Any) -> Runner | None:
    """Who runs over an image; None where it is an array in memory, or can be made one."""
    kind = None if isinstance(image, np.ndarray) else _kind_of(image)
    if kind is None:
        return None
    if kind not in _runners:
        importlib.import_module(f"{__package__}.{_MODULES[kind]}")
    return _runners[kind]
