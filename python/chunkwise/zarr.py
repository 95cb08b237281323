# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""From store to store: images larger than memory, in Zarr, OME-Zarr, or behind a handle of TensorStore.

>>> import chunkwise
>>> f = chunkwise.filters.Gaussian(sigma=2)
>>> chunkwise.zarr.run(f, "in.zarr", "out.zarr", memory="4G")  # doctest: +SKIP
"""
from __future__ import annotations

import inspect
import os
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

from . import _store_labels
from ._arrays import check_dtype, make_progress, parse_bytes
from ._blocks import Image, Report, check_memory
from ._ome import Labels, open_image
from ._outputs import check_apart, check_run
from ._separate import choose_method, make_watershed
from ._store_labels import filter_labels as filter_labels
from ._store_runs import pyramid as pyramid
from ._store_runs import run as run
from ._stores import Imagined, Store


def measure(labels: Any, intensity: Any = None, *, spacing: Any = None, **options: Any) -> dict[str, np.ndarray[Any, Any]]:
    """The table of `chunkwise.measure` of labels in a store, which are read once, in slabs of whole chunks.

    Parameters
    ----------
    labels, intensity : path, zarr.Array, zarr.Group of OME-Zarr, or a TensorStore handle
        Level 0 of OME-Zarr is read, and its scale is the spacing.
    spacing, **options
        As of `chunkwise.measure`.
    """
    from ._measure import measure as of_arrays

    image = open_image(labels)
    values = None if intensity is None else open_image(intensity).array
    return of_arrays(image.array, values, spacing=spacing if spacing is not None else image.spacing, **options)


def separate(source: Any, output: Any, method: str | None = None, *, lower: float | None = None, upper: float | None = None,
             height: float | None = None, area: float | None = None, connectivity: int = 1, dtype: Any = None,
             overwrite: bool = False, memory: int | str = "4G", spacing: Any = None,
             progress: bool | Callable[[float], object] | None = None, **options: Any) -> Report:
    """The labels of `chunkwise.separate`, from store to store: objects above a threshold, separated where they are narrow.

    The mask and the distances to its contour, 1 and 4 bytes a voxel, lie in a folder beside an output that is a path, or
    where Python's `tempfile` makes its folders, and go at the end.

    Parameters
    ----------
    source, output, dtype, overwrite, memory, spacing, progress, **options
        As of `run`; labels are uint32 by default.
    method, lower, upper, height, area, connectivity
        As of `chunkwise.separate`.

    Returns
    -------
    Report
        The report of the watershed, the last of three runs.

    Raises
    ------
    BudgetError
        If `memory` is too small; the message says what is enough.
    """
    from . import filters

    threshold = filters.Threshold(choose_method(method, lower, upper), lower=lower, upper=upper)
    watershed = make_watershed(connectivity, height, area, None)
    path = os.fspath(output) if isinstance(output, (str, os.PathLike)) else None
    show = make_progress(progress)

    def part(i: int) -> Callable[[float], object] | None:
        return None if show is None else lambda fraction: show((i + fraction) / 3)

    # The last run reads neither the source nor its types: all is checked before the first one.
    read_from = Store(open_image(source).array)
    check_run(threshold, [read_from], path)
    if path is None:
        check_apart(Store(output), read_from, "source")
    elif "://" not in path and os.path.exists(path) and not overwrite:
        raise FileExistsError(f"output: {path} is there; overwrite=True replaces it")
    shape = read_from.shape
    kind = check_dtype(np.dtype(dtype or watershed.default_dtype(np.float32)) if path is not None else Store(output).dtype, "output")
    operation = watershed._operation(shape, "float32", kind, further=watershed._names_of([read_from, None, read_from]))
    watershed.check_kinds(operation, ["float32", "uint8"], kind, len(shape))
    labels = Labels.find(path)
    where = (labels.folder if labels is not None else
             os.path.dirname(os.path.abspath(path)) if path is not None and "://" not in path else None)
    distance = filters.Distance("contour")
    imagined = {name: Image(Imagined(read_from, shape, np.dtype(name)), name) for name in ("uint8", "float32", kind)}
    check_memory([(distance._operation(shape, "uint8", "float32"), [imagined["uint8"]], imagined["float32"].store),
                  (operation, [imagined["float32"], imagined["uint8"]], Store(output) if path is None else imagined[kind].store)],
                 parse_bytes(memory, "memory"), where or tempfile.gettempdir(),
                 {name: value for name, value in options.items() if name not in inspect.signature(run).parameters})
    given: dict[str, Any] = {"memory": memory, "spacing": spacing, "resume": False, **options}
    with tempfile.TemporaryDirectory(dir=where, prefix=".chunkwise-") as folder:
        mask, distances = os.path.join(folder, "mask"), os.path.join(folder, "distances")
        run(threshold, source, mask, dtype="uint8", progress=part(0), **given)
        run(distance, mask, distances, dtype="float32", progress=part(1), **given)
        return run(watershed, distances, output, others=[None, mask], dtype=dtype, overwrite=overwrite, progress=part(2), **given)


def fill_label_holes(source: Any, output: Any, *, memory: int | str = "4G", overwrite: bool = False,
                     progress: bool | Callable[[float], object] | None = None, **options: Any) -> int:
    """The labels of `chunkwise.fill_label_holes`, from store to store.

    The parts of the background, 5 bytes a voxel or, from 2^32 voxels on, 9, lie in a folder as those of `separate` do.

    Parameters
    ----------
    source, output, overwrite, memory, progress, **options
        As of `run`. The output has the source's type.

    Returns
    -------
    int
        The number of holes that were filled.

    Raises
    ------
    BudgetError
        If `memory` is too small; the message says what is enough.
    """
    return _store_labels.fill_label_holes(run, source, output, memory, overwrite, progress, options)
