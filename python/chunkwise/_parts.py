# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""A result in parts, for anything that runs functions: Dask, Ray, MPI, job arrays."""
from __future__ import annotations

import itertools
import operator
from collections.abc import Iterator, Sequence
from typing import Any

from . import _core
from ._filter import Filter
from ._regions import Region, region_of, turn

Chunks = Sequence[int] | Sequence[Sequence[int]]


def normalise_chunks(shape: tuple[int, ...], chunks: Any) -> list[tuple[int, ...]]:
    """The extents of the chunks along each axis."""
    if len(chunks) != len(shape):
        raise _core.ParameterError(f"chunks: {len(chunks)} for {len(shape)} axes")
    extents = []
    for extent, chunk in zip(shape, chunks):
        if isinstance(chunk, Sequence):
            along = tuple(operator.index(each) for each in chunk)
            if sum(along) != extent or any(each < 1 for each in along):
                raise _core.ParameterError(f"chunks: {along} do not make up the extent {extent}")
        else:
            size = operator.index(chunk)
            if size < 1:
                raise _core.ParameterError(f"chunks: {size} is not at least 1")
            along = (size,) * (extent // size) + ((extent % size,) if extent % size else ())
        extents.append(along)
    return extents


def check_independent(filter: Filter, operation: Any, shape: tuple[int, ...], extents: Sequence[Sequence[int]]) -> None:
    """Throws where parts of a result need more than a part of the image."""
    if operation.schedule == "sweep":
        raise _core.ParameterError(f"{filter!r}: each part needs the sums of those before it; chunkwise.zarr.run and "
                                   "chunkwise.dask.integral_image hand them on")
    if operation.schedule == "two-pass" and any(len(along) > 1 for along in extents):
        raise _core.ParameterError(f"{filter!r}: a voxel may depend on the whole image, which parts do not have; "
                                   "chunkwise.zarr.run, and filters of Dask arrays, join the labels of blocks")
    for axis, along in enumerate(extents):
        if len(along) > 1 and (operation.needs_whole_axis(len(shape) - 1 - axis, turn(shape))
                               or operation.schedule in ("fixpoint", "passes")):
            rounds = ", and chunkwise.dask.reconstruction goes in rounds" if operation.schedule in ("fixpoint", "passes") else ""
            raise _core.ParameterError(f"{filter!r}: a voxel may depend on the whole image; one chunk along axis {axis} "
                                       f"gives it that{rounds}")


def regions(filter: Filter, shape: Sequence[int], chunks: Chunks, dtype: Any = "float32") -> Iterator[Region]:
    """The parts of a filter's result over an image, each with the part of the image that it needs.

    Parameters
    ----------
    filter : Filter
        A filter as a value, of `chunkwise.filters`.
    shape : sequence of int
        The image's shape.
    chunks : sequence of int, or of sequences of int
        The extent of the parts along each axis, or the extents, as Dask has them. Parts that are written to a store
        must be made of its write units (chunks, or shards where there are some).

    Yields
    ------
    Region
        ``output`` and ``input``, tuples of slices. ``filter.run(image[region.input], region, shape)`` computes the
        part; parts can be computed in any order, by any process.

    Examples
    --------
    >>> import numpy as np, chunkwise
    >>> image = np.random.default_rng(1).random((20, 30, 40), "float32")
    >>> f = chunkwise.filters.Mean(radius=3)
    >>> result = np.empty_like(image)
    >>> for region in chunkwise.regions(f, image.shape, (8, 16, 40)):
    ...     result[region.output] = f.run(image[region.input], region, image.shape)
    >>> bool((result == f(image)).all())
    True
    """
    if filter.is_automatic:
        raise _core.ParameterError(f"{filter!r}: auto needs the whole image; .resolved(image) takes the value from one")
    shape, _, _, operation = filter._of(shape, dtype)
    extents = normalise_chunks(shape, chunks)
    check_independent(filter, operation, shape, extents)
    edges = [list(itertools.accumulate(along, initial=0)) for along in extents]
    for corner in itertools.product(*(range(len(along)) for along in extents)):
        output = tuple(slice(edge[i], edge[i + 1]) for edge, i in zip(edges, corner))
        yield region_of(operation, output, shape)
