# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Arrays that are read and written by slices: what is known of them, and what their contents were."""
from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from . import _core


class Store:
    """An array that is read and written by slices, and its write unit."""

    def __init__(self, array: Any) -> None:
        self.array = array
        package = type(array).__module__.partition(".")[0]
        self.is_tensorstore = package == "tensorstore"
        # Several threads may write whole units.
        self.takes_threads = package in ("tensorstore", "zarr")
        if self.is_tensorstore:
            if any(array.domain.origin):
                raise _core.ParameterError(f"source: its domain begins at {array.domain.origin}, not at 0")
            self.dtype = array.dtype.numpy_dtype
            unit = array.chunk_layout.write_chunk.shape
            chunks = array.chunk_layout.read_chunk.shape
        else:
            self.dtype = np.dtype(array.dtype)
            chunks = getattr(array, "chunksize" if package == "dask" else "chunks", None)
            unit = getattr(array, "shards", None) or chunks
        self.shape: tuple[int, ...] = tuple(int(each) for each in array.shape)
        # Along axes where nothing says how, a plane or a row at a time.
        whole = (1, *self.shape[1:])
        self.unit = tuple(max(1, int(each)) for each in (unit if unit is not None else whole))
        self.chunks = tuple(max(1, int(each)) for each in (chunks if chunks is not None else whole))

    @property
    def copies(self) -> int:
        """How often a unit is in memory while it is encoded; the chunks of a shard are encoded, and then joined."""
        return 3 if self.unit == self.chunks else 4

    def read(self, where: tuple[slice, ...]) -> np.ndarray[Any, Any]:
        if self.is_tensorstore:
            return np.asarray(self.array[where].read().result())
        return np.asarray(self.array[where])

    def write(self, where: tuple[slice, ...], data: np.ndarray[Any, Any]) -> None:
        if self.dtype.kind == "b":
            data = data != 0
        elif self.dtype == np.float16:
            data = data.astype(np.float16)
        if self.is_tensorstore:
            self.array[where].write(data).result()
        else:
            self.array[where] = data

    @property
    def name(self) -> str:
        if self.is_tensorstore:
            return json.dumps(self.array.spec().to_json().get("kvstore", ""), sort_keys=True)
        if hasattr(self.array, "store_path"):
            return str(self.array.store_path)
        # A store of zarr-python 2 has no name but that of its object.
        files = files_of(self.array)
        return f"file://{os.path.abspath(files)}" if files is not None else str(
            getattr(self.array, "store", type(self.array).__name__))


class Imagined(Store):
    """An output that is not there yet."""

    def __init__(self, like: Store, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.shape, self.unit, self.chunks, self.dtype = shape, like.unit, like.chunks, dtype
        self.takes_threads = True


# Stores describe an object by these beside its size; without any of them a change of equal size is not noticed.
_STAMPS = ("mtime", "LastModified", "last_modified", "updated", "ETag", "etag", "md5Hash", "content_md5", "Content-MD5")


def files_of(array: Any) -> str | None:
    """The file or folder that holds an array, if it is on this machine."""
    if isinstance(array, np.memmap):
        return None if array.filename is None else os.fspath(array.filename)
    if type(array).__module__.partition(".")[0] == "tensorstore":
        kvstore = array.spec().to_json().get("kvstore", "")
        if isinstance(kvstore, dict) and kvstore.get("driver") == "file":
            return str(kvstore["path"])
        return str(kvstore).removeprefix("file://") if str(kvstore).startswith("file://") else None
    if type(array).__module__.partition(".")[0] == "h5py":
        return str(array.file.filename)
    store = getattr(array, "store", None)
    for name in ("root", "dir_path", "path"):
        where: Any = getattr(store, name, None)
        where = where() if callable(where) else where
        if isinstance(where, (str, os.PathLike)) and os.path.exists(where):
            inner = os.path.join(where, getattr(array, "path", ""))
            return inner if os.path.exists(inner) else os.fspath(where)
    return None


def _stamps_of(array: Any) -> Iterator[tuple[Any, ...]]:
    """Name, size and time of change of everything that holds an array's voxels."""
    where = files_of(array)
    if where is not None and not os.path.isdir(where):
        found = os.stat(where)
        yield "", found.st_size, found.st_mtime_ns
    elif where is not None:
        for folder, _, names in os.walk(where):
            for name in names:
                path = os.path.join(folder, name)
                found = os.stat(path)
                yield os.path.relpath(path, where), found.st_size, found.st_mtime_ns
    else:
        store = getattr(array, "store", None)
        files = getattr(store, "fs", None)
        if files is None or getattr(files, "asynchronous", False):
            return
        root = os.path.join(str(getattr(store, "path", "")), getattr(array, "path", ""))
        for name, entry in files.find(root, detail=True).items():
            yield name, entry.get("size"), *(str(entry[key]) for key in _STAMPS if key in entry)


def state_of(array: Any) -> str:
    """A text that differs where an array's contents or layout have changed, as far as its store tells.

    Arrays in memory, and stores that list neither times nor tags, show a change of shape, type and layout alone.
    """
    metadata: Any = getattr(array, "metadata", None)
    layout = metadata.to_dict() if hasattr(metadata, "to_dict") else [str(getattr(array, each, "")) for each in (
        "chunks", "shards", "compressor", "filters", "fill_value", "order")]
    digest = hashlib.sha256(json.dumps([list(array.shape), str(array.dtype), layout], sort_keys=True, default=str).encode())
    for stamp in sorted(_stamps_of(array), key=str):
        digest.update(repr(stamp).encode())
    return digest.hexdigest()
