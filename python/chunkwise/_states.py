# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""The states of a run that goes in steps, such as a deconvolution, in a file beside its output."""
from __future__ import annotations

import json
import os
import shutil
import time
import zlib
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import numpy as np

from . import _core

_AT_A_TIME = 2**20
# A state is kept once so many seconds have passed, and so many times as long as keeping the last one took.
_LEAST_PAUSE = 0.25
_PAUSES_OF_KEEPING = 20


class States:
    """The engine calls it. A state is a row of bytes; behind it stand a line of JSON, the length of the line, and the check sum
    of all of these. A new state is written beside the old one and then takes its place.

    `head` has all that the run depends on beside what the engine tells.
    """

    def __init__(self, path: Path, head: dict[str, Any], goes_on: bool) -> None:
        self.path, self._part = path, path.with_name(path.name + ".part")
        self._head = json.loads(json.dumps(head))
        self._file: BinaryIO | None = None
        self._next = time.monotonic() + _LEAST_PAUSE
        #: Steps that an earlier run has done.
        self.done = 0
        if not goes_on:
            path.unlink(missing_ok=True)

    def open(self, run: dict[str, str], size: int) -> int:
        """The steps of the state that was left."""
        self._head["run"] = dict(run)
        folder = self.path.absolute().parent
        if shutil.disk_usage(folder).free < size:
            raise _core.Error(f"output: {folder} has no room for {size} bytes of a state")
        if self.path.exists():
            line = self._check()
            other = sorted(key for key in line["head"].keys() | self._head.keys() if line["head"].get(key) != self._head.get(key))
            if other:
                raise _core.ParameterError(f"output: {self.path} was begun by another run ({', '.join(other)} differ); "
                                           "resume=False, overwrite=True begins anew")
            self.done = line["steps"]
            self._left = line["bytes"]
            self._file = self.path.open("rb")
        return self.done

    def _check(self) -> dict[str, Any]:
        """The line of a state that is whole."""
        with self.path.open("rb") as file:
            left = os.fstat(file.fileno()).st_size - 12
            total, checked = left, 0
            while left > 0 and (data := file.read(min(left, _AT_A_TIME))):
                checked = zlib.crc32(data, checked)
                left -= len(data)
            tail = file.read()
            try:
                length = int.from_bytes(tail[:8], "little")
                if left != 0 or len(tail) != 12 or length > total or zlib.crc32(tail[:8], checked) != int.from_bytes(tail[8:], "little"):
                    self._refuse()
                file.seek(total - length)
                line: dict[str, Any] = json.loads(file.read(length))
            except (ValueError, OSError):
                self._refuse()
        if line["bytes"] != total - length:
            self._refuse()
        return line

    def _refuse(self) -> NoReturn:
        raise _core.Error(f"output: {self.path} is damaged; resume=False, overwrite=True begins anew")

    def read(self, array: np.ndarray[Any, Any]) -> None:
        assert self._file is not None
        self._left -= array.nbytes
        if self._left < 0 or self._file.readinto(array.data) != array.nbytes:  # type: ignore[attr-defined]
            self._refuse()

    def end_reading(self) -> None:
        if self._left != 0:
            self._refuse()
        self._close()
        self._next = time.monotonic() + _LEAST_PAUSE

    def is_due(self) -> bool:
        return time.monotonic() >= self._next

    def write(self, array: np.ndarray[Any, Any]) -> None:
        if self._file is None:
            self._began = time.monotonic()
            self._file = self._part.open("wb")
            self._sum = self._size = 0
        self._append(array.data)
        self._size += array.nbytes

    def _append(self, data: Any) -> None:
        assert self._file is not None
        self._file.write(data)
        self._sum = zlib.crc32(data, self._sum)

    def keep(self, steps: int) -> None:
        assert self._file is not None
        line = json.dumps({"steps": steps, "bytes": self._size, "head": self._head}, sort_keys=True).encode()
        self._append(line)
        self._append(len(line).to_bytes(8, "little"))
        self._file.write(self._sum.to_bytes(4, "little"))
        self._file.flush()
        os.fsync(self._file.fileno())
        self._close()
        self._part.replace(self.path)
        now = time.monotonic()
        self._next = now + max(_LEAST_PAUSE, _PAUSES_OF_KEEPING * (now - self._began))

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def close(self, finished: bool) -> None:
        self._close()
        self._part.unlink(missing_ok=True)
        if finished:
            self.path.unlink(missing_ok=True)
