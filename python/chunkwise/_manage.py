# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""The process' devices and budgets."""
from __future__ import annotations

from typing import Any, NamedTuple

from . import _core
from ._arrays import parse_bytes


class Budgets(NamedTuple):
    """Bytes of each device, of pinned memory for each device, and of the host; 0: the engine's default."""

    device: int
    pinned: int
    host: int


def devices() -> list[dict[str, Any]]:
    """The devices that can compute: name, backend, index, memory in bytes. Empty where there are none."""
    return list(_core.devices())


def why_no_devices() -> str:
    """Why there are no devices; empty if there are."""
    return str(_core.reason_for_no_devices())


def budgets() -> Budgets:
    """The budgets of all runs at a time and of what is kept between them."""
    return Budgets(*_core.budgets())


def set_budgets(device: int | str | None = None, pinned: int | str | None = None,
                memory: int | str | None = None) -> None:
    """Sets the budgets of all runs at a time; None: the default. A run's own can ask for less, never for more."""
    _core.set_budgets(parse_bytes(device, "device"), parse_bytes(pinned, "pinned"), parse_bytes(memory, "memory"))


def held_memory() -> Budgets:
    """The memory that is held now, for runs and between them."""
    return Budgets(*_core.held_memory())


def release_memory() -> None:
    """Gives back all memory that is kept between runs."""
    _core.release_memory()
