# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Work in the background, and messages about it: what the widgets share."""
from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import chunkwise
from magicgui.widgets import Container, Label, ProgressBar, PushButton
from napari.qt.threading import create_worker
from qtpy.QtCore import Qt, QTimer
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


class RunWidget(Container):  # type: ignore[type-arg]
    """Controls, and below them a run in the background: its buttons, progress and messages.

    Subclasses have `run`, which calls `start`, and `_layers_changed`.
    """

    def __init__(self, napari_viewer: Any, widgets: list[Any]) -> None:
        self._job: Job | None = None
        self.run_button = PushButton(text="Run")
        self.cancel_button = PushButton(text="Cancel", enabled=False)
        self.progress = ProgressBar(label="", value=0, min=0, max=1000)
        self.status = Label()
        super().__init__(labels=True, widgets=[*widgets, self.run_button, self.cancel_button, self.progress, self.status])
        self.min_width = 320
        make_readable(self.status)
        self.run_button.changed.connect(self.run)
        self.cancel_button.changed.connect(self.cancel)
        events = napari_viewer.layers.events
        for event in (events.inserted, events.removed, events.reordered):
            event.connect(self._layers_changed)
        self._clock = QTimer()
        self._clock.setInterval(INTERVAL)
        self._clock.timeout.connect(self._show_progress)

    def run(self, _: Any = None) -> None:
        raise NotImplementedError

    def _layers_changed(self, _: Any = None) -> None:
        raise NotImplementedError

    def start(self, work: Callable[[Callable[[float], None]], Any], show: Callable[[Any], None]) -> None:
        """Does the work in a thread; `show` gets what it returns, unless it fails or is stopped."""

        def done(found: Any, error: Exception | None) -> None:
            self._job = None
            self._clock.stop()
            self.cancel_button.enabled, self.run_button.enabled = False, True
            self.progress.value = 0 if error is not None else self.progress.max
            if error is None:
                show(found)
            else:
                self._tell("stopped" if isinstance(error, Cancelled) else str(error))

        self._tell("")
        self.progress.value = 0
        self.cancel_button.enabled, self.run_button.enabled = True, False
        self._job = Job(work, done)
        self._clock.start()

    def cancel(self, _: Any = None) -> None:
        """Stops the run; nothing changes."""
        if self._job is not None:
            self._job.cancel()

    def _tell(self, text: str) -> None:
        tell(self.status, text)

    def _show_progress(self) -> None:
        if self._job is not None:
            self.progress.value = int(self.progress.max * self._job.fraction)
