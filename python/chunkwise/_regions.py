# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Parts of images, in NumPy's order and in the engine's."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple


class Region(NamedTuple):
    """A part of a result, and the part of the image that it needs."""

    output: tuple[slice, ...]
    input: tuple[slice, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(each.stop - each.start for each in self.output)


def turn(numbers: Sequence[int]) -> tuple[int, ...]:
    """Reverses the order of axes."""
    return tuple(reversed(numbers))


def slices_of(box: tuple[tuple[int, ...], tuple[int, ...]]) -> tuple[slice, ...]:
    """Slices from the engine's box, its lower and upper corner."""
    return tuple(slice(begin, end) for begin, end in zip(reversed(box[0]), reversed(box[1])))


def box_of(slices: Sequence[slice]) -> tuple[list[int], list[int]]:
    """The engine's box from slices."""
    return [each.start for each in reversed(slices)], [each.stop for each in reversed(slices)]


def region_of(operation: Any, output: tuple[slice, ...], shape: tuple[int, ...]) -> Region:
    """A part of the result with what it needs of the image."""
    lower, upper = box_of(output)
    return Region(output, slices_of(operation.input_box(lower, upper, turn(shape))))
