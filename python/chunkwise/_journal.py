# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""The record of a run that can be resumed."""
from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from . import _core

class Journal:
    """The record of a run that goes on, or was stopped: a line of text for the run, one when its output was made, and
    one for each block after it was written. Whoever has it open has it alone."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        while True:
            self._file = path.open("a+")
            if not _lock(self._file):
                self._file.close()
                raise _core.Error(f"output: another run is writing there; it holds {path}")
            # Who had it before may have removed it.
            try:
                is_there = os.path.samestat(os.fstat(self._file.fileno()), os.stat(path))
            except FileNotFoundError:
                is_there = False
            if is_there:
                break
            self._file.close()
        self._file.seek(0)
        text = self._file.read()
        *self._lines, rest = text.split("\n")
        if rest:
            # A part of a line.
            self._file.truncate(len(text.encode()) - len(rest.encode()))

    @property
    def is_begun(self) -> bool:
        return bool(self._lines)

    @property
    def has_output(self) -> bool:
        return len(self._lines) > 1

    @property
    def done(self) -> list[list[list[int]]]:
        """The blocks: begin and end along each axis."""
        return [json.loads(line) for line in self._lines[2:]]

    def begin_or_check(self, goes_on: bool, head: dict[str, Any]) -> None:
        """Begins a run anew; throws where the one that goes on is another one."""
        head = json.loads(json.dumps(head))
        if not goes_on:
            self._file.truncate(0)
            self._lines = []
            self._add(head)
            return
        if self._lines[0] == json.dumps(head, sort_keys=True):
            return
        try:
            before = json.loads(self._lines[0])
            other = [key for key in head if before.get(key) != head[key]]
        except (json.JSONDecodeError, AttributeError):
            other = []
        raise _core.ParameterError(f"output: {self.path} was begun by another run ({', '.join(other) or 'unreadable'} "
                                   "differ); resume=False, overwrite=True begins anew")

    def add_output(self) -> None:
        self._add("made")

    def add(self, output: tuple[slice, ...]) -> None:
        self._add([[each.start, each.stop] for each in output])

    def _add(self, line: Any) -> None:
        self._lines.append(json.dumps(line, sort_keys=True))
        self._file.write(self._lines[-1] + "\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self, finished: bool) -> None:
        # Removed while it is still locked, where open files can be removed.
        if os.name == "nt":
            self._file.close()
        if finished or not self.is_begun:
            self.path.unlink(missing_ok=True)
        self._file.close()


def _lock(file: Any) -> bool:
    """Whether the file is this run's alone; True where locks are not to be had."""
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True
