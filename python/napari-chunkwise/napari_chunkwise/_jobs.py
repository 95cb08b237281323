# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Work in the background, and messages about it: what the widgets share."""
from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import chunkwise
from napari.qt.threading import create_worker
from qtpy.QtCore import Qt
from qtpy.QtWidgets import QSizePolicy

#: How often progress is shown, and that moving a slider starts a preview, in milliseconds.
INTERVAL = 50


class Cancelled(Exception):
    """The user stopped the work."""


class Job:
    """The work of a thread: it can be asked for its progress, and to stop."""

    def __init__(self, work: Callable[[Callable[[float], None]], Any], done: Callable[[Any, Exception | None], None]) -> None:
        self.fraction = 0.0
        self._stop = threading.Event()

        def progress(fraction: float) -> None:
            self.fraction = fraction
            if self._stop.is_set():
                raise Cancelled

        def run() -> tuple[Any, Exception | None]:
            try:
                result = work(progress)
                # A lazy result has no progress.
                return (None, Cancelled()) if self._stop.is_set() else (result, None)
            except (Cancelled, chunkwise.Error, MemoryError, TypeError, ValueError, OSError) as error:
                return None, error

        self._worker = create_worker(run, _start_thread=False)
        self._worker.returned.connect(lambda pair: done(*pair))
        self._worker.errored.connect(lambda error: done(None, error))
        self._worker.start()

    def cancel(self) -> None:
        self._stop.set()


def make_readable(label: Any) -> None:
    """Messages are read to their end, and copied. They take the widget's width."""
    policy = label.native.sizePolicy()
    policy.setHorizontalPolicy(QSizePolicy.Policy.Expanding)
    label.native.setSizePolicy(policy)
    label.native.setWordWrap(True)
    label.native.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)


def tell(label: Any, text: str) -> None:
    """Shows a message as plain text: it may have what looks like a tag."""
    label.value = text
    label.native.setTextFormat(Qt.TextFormat.PlainText)
    label.native.adjustSize()
