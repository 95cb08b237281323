# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Labels from store to store: slabs of whole planes are read twice, within a memory, and written once."""
from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import _core, filters
from ._arrays import as_input, make_options, make_progress, parse_bytes
from ._blocks import Image, check_memory
from ._measure import check_labels, filtered, selection_of, spacing_of, worded
from ._ome import create, open_image
from ._outputs import check_apart, check_path
from ._stores import Imagined, Store


class _Job:
    """An image of labels, the store that its result goes to, and the memory for both."""

    def __init__(self, source: Any, output: Any, overwrite: bool, memory: int | str) -> None:
        self.image = open_image(source)
        self.labels = Store(self.image.array)
        self.shape, self.kind = self.labels.shape, check_labels(self.labels)
        self.memory = parse_bytes(memory, "memory")
        if not 1 <= len(self.shape) <= 3:
            raise _core.ParameterError(f"source: it has {len(self.shape)} dimensions; objects of 1 to 3 are measured")
        if 0 in self.shape:
            raise _core.ParameterError(f"source: its shape is {self.shape}, it has no voxels")
        self.path = os.fspath(output) if isinstance(output, (str, os.PathLike)) else None
        check_path(self.path, self.labels, "source")
        if self.path is not None:
            if "://" not in self.path and os.path.exists(self.path) and not overwrite:
                raise FileExistsError(f"output: {self.path} is there; overwrite=True replaces it")
            self._written: Store | None = None
            self.output: Store = Imagined(self.labels, self.shape, self.labels.dtype)
        else:
            self.output = self._written = Store(output)
            if self.output.shape != self.shape:
                raise _core.ParameterError(f"output: its shape is {self.output.shape}, the source's is {self.shape}")
            if self.output.dtype.newbyteorder("=") != self.labels.dtype.newbyteorder("="):
                raise _core.ParameterError(f"output: its type is {self.output.dtype}, not {self.labels.dtype}")
            check_apart(self.output, self.labels, "source")

    def write(self, first: int, end: int, slab: np.ndarray[Any, Any]) -> None:
        if self._written is None:
            assert self.path is not None
            self._written = Store(create(self.path, self.image.array, self.shape, self.labels.dtype, self.image))
        self._written.write((slice(first, end), *(slice(0, each) for each in self.shape[1:])), slab)

    def reader(self, parts: Store | None = None) -> Callable[[int, int], tuple[Any, Any]]:
        def read(first: int, end: int) -> tuple[Any, Any]:
            where = (slice(first, end), *(slice(0, each) for each in self.shape[1:]))
            labels = np.ascontiguousarray(as_input(self.labels.read(where), self.kind))
            return labels, None if parts is None else np.ascontiguousarray(parts.read(where))

        return read

    def share(self, part_bytes: int = 0) -> tuple[int, int, int]:
        """Planes to read at a time, whole write units; the memory that is left for tables; and what the least slab takes."""
        step = min(max(self.labels.unit[0], self.output.unit[0]), self.shape[0])
        # Slabs are in memory twice while they are decoded and converted, or encoded, and once as the result.
        plane = math.prod(self.shape[1:]) * (5 * self.labels.dtype.itemsize + 2 * part_bytes)
        least = step * plane
        if least >= self.memory:
            self.refuse(f"slabs of {step} planes, the least that holds whole write units,", 2 * least)
        planes = max(step, self.memory // 2 // plane // step * step)
        planes = min(planes, self.shape[0])
        return planes, self.memory - planes * plane, least

    def refuse(self, what: str, needed: int) -> None:
        error = _core.BudgetError(f"memory: {what} need {needed} bytes, more than {self.memory}")
        error.needed, error.budget = needed, self.memory
        raise error

    def run(self, least: int, work: Callable[[], int]) -> int:
        """Says what is enough if the tables have too little memory."""
        try:
            with worded():
                return work()
        except _core.BudgetError as error:
            needed = max(2 * error.needed, error.needed + least)
        self.refuse("tables of labels, beside slabs,", needed)
        return 0


def filter_labels(source: Any, output: Any, *, min_size: int | None = None, max_size: int | None = None, where: Sequence[str] | str = (),
                  remove_border: bool = False, keep_largest: int | None = None, relabel: bool = False, replace: Any = None,
                  spacing: Any = None, memory: int | str = "4G", overwrite: bool = False, threads: int | None = None,
                  progress: bool | Callable[[float], object] | None = None) -> int:
    """The labels of `chunkwise.filter_labels`, from store to store. The source is read twice, in slabs of whole write units along
    its first axis.

    Parameters
    ----------
    source, output, overwrite
        As of `run`. The output has the source's type.
    min_size, max_size, where, remove_border, keep_largest, relabel, replace, threads, progress
        As of `chunkwise.filter_labels`.
    spacing : float or sequence of float, optional
        Instead of the source's.
    memory : int or str
        For slabs and the tables of labels; what Python and its packages take before the run comes on top.

    Returns
    -------
    int
        The number of labels that are kept.

    Raises
    ------
    BudgetError
        If `memory` is too small; the message says what is enough.
    """
    conditions, largest, pairs = selection_of(min_size, max_size, where, remove_border, keep_largest, replace)
    job = _Job(source, output, overwrite, memory)
    given = spacing if spacing is not None else job.image.spacing
    lengths = spacing_of(1.0 if given is None else given, len(job.shape))[::-1]
    # An image of one voxel shows what is wrong with the conditions before the source is read.
    filtered(np.zeros((1,) * len(job.shape), job.kind), job.kind, (conditions, largest, relabel, pairs, lengths, (), ()), {})
    planes, room, least = job.share()
    return job.run(least, lambda: int(_core.filter_labels_read(
        job.reader(), job.write, list(job.shape), planes, job.kind, conditions, largest, relabel, pairs, lengths,
        make_options(memory=room, threads=threads, progress=progress))))


def fill_label_holes(run: Callable[..., Any], source: Any, output: Any, memory: int | str, overwrite: bool,
                     progress: bool | Callable[[float], object] | None, options: dict[str, Any]) -> int:
    """`chunkwise.zarr.fill_label_holes`; `run` is that of the same module."""
    job = _Job(source, output, overwrite, memory)
    kind = "uint32" if math.prod(job.shape) < 1 << 32 else "uint64"
    planes, room, least = job.share(np.dtype(kind).itemsize)
    threshold: Any = getattr(filters, "Threshold")("fixed", lower=0, upper=0)
    label: Any = getattr(filters, "Label")(connectivity=1)
    where = os.path.dirname(os.path.abspath(job.path)) if job.path is not None and "://" not in job.path else None
    # The labels of the parts are made after the first run: what all need is checked before it.
    background, parts = (Imagined(job.labels, job.shape, np.dtype(name)) for name in ("uint8", kind))
    check_memory([(label._operation(job.shape, "uint8", kind), [Image(background, "uint8")], parts)], job.memory,
                 where or tempfile.gettempdir(), options)
    show = make_progress(progress)

    def part(i: int) -> Callable[[float], object] | None:
        return None if show is None else lambda fraction: show((i + fraction) / 3)

    given: dict[str, Any] = {"memory": memory, "resume": False, **options}
    with tempfile.TemporaryDirectory(dir=where, prefix=".chunkwise-") as folder:
        empty, numbered = os.path.join(folder, "background"), os.path.join(folder, "parts")
        run(threshold, source, empty, dtype="uint8", progress=part(0), **given)
        run(label, empty, numbered, dtype=kind, progress=part(1), **given)
        read = job.reader(Store(open_image(numbered).array))
        return job.run(least, lambda: int(_core.fill_label_holes_read(
            read, job.write, list(job.shape), planes, job.kind, kind,
            make_options(memory=room, threads=options.get("threads"), progress=part(2)))))
