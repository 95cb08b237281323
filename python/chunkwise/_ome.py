# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Arrays of Zarr and images of OME-Zarr: opened with what their metadata says, made as another one is stored, and their levels."""
from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from . import _core

# A level with so few voxels along each axis of space is the last one.
_LAST_LEVEL = 256


class OmeImage(NamedTuple):
    """An opened source: its array, and what OME-Zarr says of it."""

    array: Any
    spacing: tuple[float, ...] | None
    axes: tuple[int, ...] | None
    metadata: dict[str, Any] | None  # of OME-Zarr, for level 0 alone
    level: str
    translation: tuple[float, ...] | None = None


def open_image(source: Any) -> OmeImage:
    if isinstance(source, (str, os.PathLike)):
        import zarr

        source = zarr.open(os.fspath(source), mode="r")
    if not hasattr(source, "group_keys") and not hasattr(source, "groups"):
        return OmeImage(source, None, None, None, "")
    attributes = dict(source.attrs)
    ome = attributes.get("ome", attributes)
    if not ome.get("multiscales"):
        raise _core.ParameterError(f"source: the group {source!r} has no multiscales; pass one of its arrays")
    scales = ome["multiscales"][0]
    level = scales["datasets"][0]
    array = source[level["path"]]
    factors, moved = [1.0] * array.ndim, [0.0] * array.ndim
    for transforms in (level.get("coordinateTransformations", ()), scales.get("coordinateTransformations", ())):
        for each in transforms:
            numbers = each.get(each["type"], ())
            if each["type"] in ("scale", "translation") and len(numbers) != array.ndim:
                raise _core.ParameterError(f"source: a {each['type']} of its metadata has {len(numbers)} numbers, its array has "
                                           f"{array.ndim} axes")
            if each["type"] == "scale":
                factors = [a * float(b) for a, b in zip(factors, each["scale"])]
                moved = [a * float(b) for a, b in zip(moved, each["scale"])]
            elif each["type"] == "translation":
                moved = [a + float(b) for a, b in zip(moved, each["translation"])]
    kinds = [each.get("type", "") if isinstance(each, dict) else ("space" if each in "zyx" else "")
             for each in scales.get("axes", ())]
    axes = tuple(i for i, kind in enumerate(kinds) if kind == "space")
    only = {**scales, "datasets": [level]}
    metadata = {"ome": {**ome, "multiscales": [only]}} if "ome" in attributes else {"multiscales": [only]}
    return OmeImage(array, tuple(factors), axes if axes and len(axes) < array.ndim else None, metadata, level["path"],
                  tuple(moved))


def check_place(image: OmeImage, other: OmeImage, name: str) -> None:
    """Refuses a further image of OME-Zarr that lies elsewhere than the source."""
    for what, here, there, unit in (("scale", image.spacing, other.spacing, 0.0),
                                    ("translation", image.translation, other.translation, 1e-6 * max(image.spacing or (1.0,)))):
        if here and there and not np.allclose(here, there, rtol=1e-6, atol=unit):
            raise _core.ParameterError(f"{name}: its {what} is {there}, the source's is {here}; the array of its group is taken as "
                                       "it is")


class Labels:
    """Labels of a store that exists, which an output STORE/labels/NAME becomes."""

    def __init__(self, path: str) -> None:
        folder, self.name = os.path.split(os.path.normpath(path))
        self.store = os.path.dirname(folder) or "."

    @staticmethod
    def find(path: str | None) -> Labels | None:
        """Nothing for another output."""
        if path is None or "://" in path or os.path.basename(os.path.dirname(os.path.normpath(path))) != "labels":
            return None
        labels = Labels(path)
        return labels if any(os.path.exists(os.path.join(labels.store, name)) for name in ("zarr.json", ".zgroup")) else None

    @property
    def folder(self) -> str:
        """The folder for files beside the output."""
        return os.path.dirname(os.path.abspath(self.store))

    def check(self, image: OmeImage, dtype: np.dtype[Any]) -> None:
        import zarr

        if self.name.startswith((".", "__")):
            raise _core.ParameterError(f"output: labels cannot be named {self.name!r}: names that begin with . or __ are not for nodes of Zarr")
        if dtype.kind not in "ui":
            raise _core.ParameterError(f"output: labels are integers, not {dtype}; dtype= chooses a type")
        if image.metadata is None:
            raise _core.ParameterError("output: labels of a store have places in space; the source is no image of OME-Zarr")
        if not open_image(zarr.open_group(self.store, mode="r")).metadata:
            raise _core.ParameterError(f"output: {self.store} is no image of OME-Zarr")
        version, of_source = _version_of(zarr.open_group(self.store, mode="r")), _version_of(image.array)
        if version != of_source:
            raise _core.ParameterError(f"output: {self.store} is of version {version} of Zarr, the source of version {of_source}; "
                                       "labels are stored as the source is")

    def describe(self, image: OmeImage) -> OmeImage:
        """The image with metadata of labels."""
        whole: Any = image.metadata
        about = {key: value for key, value in (whole.get("ome") or whole).items() if key in ("version", "multiscales")}
        about["image-label"] = {**({} if "ome" in whole else {"version": "0.4"}), "source": {"image": "../../"}}
        return image._replace(metadata={"ome": about} if "ome" in whole else about)

    def add(self, version: int) -> None:
        """Names the labels, which are there, in their group."""
        import zarr

        options: dict[str, Any] = {"zarr_format": version} if hasattr(zarr, "create_array") else {}
        group = zarr.open_group(os.path.join(self.store, "labels"), mode="a", **options)
        attributes: Any = dict(group.attrs)
        about = attributes.setdefault("ome", {"version": "0.5"}) if version == 3 else attributes
        about["labels"] = [*about.get("labels", []), *([self.name] if self.name not in about.get("labels", []) else [])]
        group.attrs.update(attributes)
        root: Any = zarr.open_group(self.store, mode="r+")
        if getattr(root.metadata, "consolidated_metadata", None) is not None or os.path.exists(os.path.join(self.store, ".zmetadata")):
            zarr.consolidate_metadata(self.store)


def _version_of(node: Any) -> int:
    return int(getattr(getattr(node, "metadata", None), "zarr_format", 2))


def create(path: str, like: Any, shape: tuple[int, ...], dtype: np.dtype[Any], image: OmeImage) -> Any:
    """An array, or a group of OME-Zarr with one level, stored as the source is."""
    import zarr

    where = os.path.join(path, image.level) if image.metadata is not None else path
    chunks = getattr(like, "chunks", None)
    if not hasattr(zarr, "create_array"):
        if image.metadata is not None:
            zarr.open_group(path, mode="w").attrs.update(image.metadata)
        separator = getattr(like, "_dimension_separator", None)
        return zarr.open_array(where, mode="w", shape=shape, chunks=chunks or True, dtype=dtype,
                               compressor=getattr(like, "compressor", "default"), fill_value=0,
                               dimension_separator=separator)
    # An array that was there is replaced; its caller has asked for that.
    metadata: Any = getattr(like, "metadata", None)
    version: Any = getattr(metadata, "zarr_format", 3)
    if image.metadata is not None:
        zarr.open_group(path, mode="w", zarr_format=version, attributes=image.metadata)
    options: dict[str, Any] = {}
    if isinstance(like, zarr.Array):
        options = {"compressors": like.compressors, "shards": like.shards}
        if version == 3:
            options["dimension_names"] = metadata.dimension_names
        else:
            options["chunk_key_encoding"] = {"name": "v2", "separator": metadata.dimension_separator}
    return zarr.create_array(where, shape=shape, dtype=dtype, chunks=chunks or "auto", zarr_format=version, fill_value=0,
                             overwrite=True, **options)


def open_level(path: str, image: OmeImage) -> Any:
    """The output that an earlier run has made."""
    import zarr

    return zarr.open(os.path.join(path, image.level) if image.metadata is not None else path, mode="r+")


class Levels:
    """The levels below the first one of an image of OME-Zarr, which become part of it by `finish`."""

    def __init__(self, where: str, overwrite: bool) -> None:
        import zarr

        self._where, self._overwrite = where, overwrite
        self._group = zarr.open_group(where, mode="r+")
        self._image = open_image(self._group)
        self._attributes: Any = dict(self._group.attrs)
        self._scales = self._attributes.get("ome", self._attributes)["multiscales"][0]
        first = self._scales["datasets"][0]
        self._transforms: Any = first.get("coordinateTransformations") or ({},)
        if "scale" not in self._transforms[0]:
            raise _core.ParameterError(f"store: {where} has no scale for its first level, as OME-Zarr 0.4 and 0.5 ask for")
        if len(self._scales["datasets"]) > 1 and not overwrite:
            raise FileExistsError(f"store: {where} has {len(self._scales['datasets'])} levels; overwrite=True replaces them")
        array = self._image.array
        self._space = self._image.axes if self._image.axes is not None else tuple(range(array.ndim))
        self._datasets, self._last, self._factors = [first], array, [1] * array.ndim

    @property
    def number(self) -> int:
        return len(self._datasets)

    def is_last(self, levels: int | None) -> bool:
        """Whether the level that was added last is the last of `levels`, or of as many as viewers need."""
        least = 1 if levels else _LAST_LEVEL
        return (levels is not None and self.number >= levels) or max(self._last.shape[a] for a in self._space) <= least

    def add(self) -> tuple[Any, Any, tuple[int, ...]]:
        """The level before, a new one of half as many voxels, and the axes along which it has them."""
        last, first, number = self._last, self._datasets[0], self.number
        # After a number that is not 0 the numbers behind it: no level has the first one's place.
        folder = first["path"].partition("/")[0]
        name = (f"{first['path'][:-1]}{number}" if re.fullmatch(r"[^/0-9]*0", first["path"]) else
                str(number + (int(folder) if re.fullmatch(r"[0-9]{1,9}", folder) else 0)))
        if name in self._group and not self._overwrite:
            raise FileExistsError(f"store: {self._where} has {name!r}, which is no level of its image; overwrite=True replaces it")
        factor = tuple(2 if a in self._space and extent > 1 else 1 for a, extent in enumerate(last.shape))
        shape = tuple(-(-extent // by) for extent, by in zip(last.shape, factor))
        self._last = create(os.path.join(self._where, name), self._image.array, shape, last.dtype,
                            self._image._replace(metadata=None))
        self._factors = [a * b for a, b in zip(self._factors, factor)]
        self._datasets.append({**first, "path": name, "coordinateTransformations": self._transforms_of_last()})
        return last, self._last, tuple(a for a in range(last.ndim) if factor[a] > 1)

    def _transforms_of_last(self) -> list[Any]:
        scale = [float(a) for a in self._transforms[0]["scale"]]
        moved = [size * (by - 1) / 2 for size, by in zip(scale, self._factors)]
        others = list(self._transforms[1:])
        if others and others[0].get("type") == "translation":
            moved = [a + float(b) for a, b in zip(moved, others.pop(0)["translation"])]
        return [{"type": "scale", "scale": [size * by for size, by in zip(scale, self._factors)]},
                {"type": "translation", "translation": moved}, *others]

    def finish(self, method: str) -> None:
        self._scales["datasets"] = self._datasets
        self._scales["type"] = method
        self._group.attrs.update(self._attributes)


def share_of_level(progress: bool | Callable[[float], object] | None, level: int) -> bool | Callable[[float], object] | None:
    """The progress of a level, of which each has about an eighth of the voxels of the one before."""
    if not callable(progress):
        return progress
    whole, left = progress, 0.125 ** (level - 1)
    return lambda part: whole(1 - left + part * 0.875 * left)
