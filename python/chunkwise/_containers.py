# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Images of other packages: NumPy's view of them, and the way back.

None of these packages is imported here before an object of it is passed.
"""
from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple

import numpy as np

from . import _core


class Place(NamedTuple):
    """The place of an image's voxels in space, as far as its package tells; x first, as in these packages."""

    spacing: tuple[float | None, ...]
    origin: tuple[float | None, ...]
    direction: tuple[float, ...] | None = None
    dims: tuple[Any, ...] | None = None


class Opened(NamedTuple):
    """An image's voxels, how they lie in space (z, y, x), and what makes the result such an image."""

    array: np.ndarray[Any, Any]
    wrap: Callable[[np.ndarray[Any, Any]], Any]
    spacing: tuple[float, ...] | None = None
    origin: tuple[float, ...] | None = None
    axes: tuple[int, ...] | None = None
    #: Whether a result may have one axis more, that of components.
    can_have_components: bool = False
    place: Place | None = None


def _differ(a: tuple[Any, ...] | None, b: tuple[Any, ...] | None, unit: float) -> bool:
    """Whether one of two numbers that are known is another one, by more than a millionth of `unit`."""
    return a is not None and b is not None and len(a) == len(b) and any(
        x is not None and y is not None and not abs(x - y) <= 1e-6 * unit for x, y in zip(a, b))


def check_place(first: Place | None, other: Place | None, name: str) -> None:
    """Refuses an image that lies elsewhere than the first one; those without a place lie where it does."""
    if first is None or other is None:
        return
    if first.dims is not None and other.dims is not None and first.dims != other.dims:
        raise _core.ParameterError(f"{name}: its dims are {other.dims}, the input's are {first.dims}")
    unit = abs(next((each for each in first.spacing if each), 1.0))
    for what, a, b, scale in (("spacing", first.spacing, other.spacing, unit), ("origin", first.origin, other.origin, unit),
                              ("direction", first.direction, other.direction, 1.0)):
        if _differ(a, b, scale):
            raise _core.ParameterError(f"{name}: its {what} is {b}, the input's is {a}; an array without a place in space "
                                       "is taken as it is")


def _same(array: np.ndarray[Any, Any]) -> Any:
    return array


def _check_shape(result: np.ndarray[Any, Any], expected: tuple[int, ...]) -> None:
    if result.shape != expected:
        raise _core.ParameterError(f"valid: the result's shape is {result.shape}, the image's {expected}, and its place "
                                   "in space would change; pass an array")


def _open_itk(image: Any) -> Opened:
    import itk

    if image.GetNumberOfComponentsPerPixel() != 1:
        raise _core.ParameterError(f"input: pixels of {image.GetNumberOfComponentsPerPixel()} components; filter them "
                                   "one after the other")
    region = image.GetBufferedRegion()
    if region != image.GetLargestPossibleRegion():
        raise _core.ParameterError("input: the image's buffer holds a part of it; update its whole region first")
    array = itk.array_view_from_image(image)
    # Its memory is the image's, which must live as long.
    array = _keep(array, image)

    def wrap(result: np.ndarray[Any, Any]) -> Any:
        _check_shape(result, array.shape)
        made = itk.image_view_from_array(np.ascontiguousarray(result))
        made.SetSpacing(image.GetSpacing())
        made.SetDirection(image.GetDirection())
        made.SetOrigin(image.TransformIndexToPhysicalPoint(region.GetIndex()))
        return made

    spacing = tuple(float(each) for each in image.GetSpacing())
    begin = tuple(float(each) for each in image.TransformIndexToPhysicalPoint(region.GetIndex()))
    direction = tuple(float(each) for each in np.ravel(itk.array_from_matrix(image.GetDirection())))
    return Opened(array, wrap, spacing[::-1], tuple(float(each) for each in image.GetOrigin())[::-1],
                  place=Place(spacing, begin, direction))


class _Kept(np.ndarray[Any, Any]):
    """A view that keeps its owner."""

    owner: Any


def _keep(array: np.ndarray[Any, Any], owner: Any) -> np.ndarray[Any, Any]:
    view = np.asarray(array).view(_Kept)
    view.owner = owner
    return view


def _open_sitk(image: Any) -> Opened:
    import SimpleITK

    array = _keep(SimpleITK.GetArrayViewFromImage(image), image)
    has_components = image.GetNumberOfComponentsPerPixel() != 1

    def wrap(result: np.ndarray[Any, Any]) -> Any:
        _check_shape(result, array.shape)
        # Without isVector an array of four dimensions becomes an image of three.
        made = SimpleITK.GetImageFromArray(result.view(np.uint8) if result.dtype.kind == "b" else result, isVector=has_components)
        made.CopyInformation(image)
        return made

    place = Place(tuple(image.GetSpacing()), tuple(image.GetOrigin()), tuple(image.GetDirection()))
    spacing: tuple[float, ...] = tuple(image.GetSpacing())[::-1]
    origin: tuple[float, ...] = tuple(image.GetOrigin())[::-1]
    if has_components:
        # Components are the last axis, which no window has.
        return Opened(array, wrap, (*spacing, 1.0), (*origin, 0.0), tuple(range(array.ndim - 1)), place=place)
    return Opened(array, wrap, spacing, origin, place=place)


def place_of_xarray(image: Any) -> Place:
    """Coordinates as steps with a sign and as first positions, of dims that have numbers."""
    found = []
    for dim in reversed(image.dims):
        values = np.asarray(image.coords[dim].values) if dim in image.coords else np.empty(0)
        numbers = values.astype(np.float64) if values.dtype.kind in "iuf" and values.ndim == 1 else np.empty(0)
        found.append((float(np.diff(numbers).mean()) if numbers.size > 1 else None,
                      float(numbers[0]) if numbers.size > 0 else None))
    return Place(tuple(step for step, _ in found), tuple(begin for _, begin in found), dims=tuple(image.dims))


#: The spacing along an axis whose coordinates are not evenly spaced: no filter may take a length along it.
UNEVEN = float("nan")


def _step_of(image: Any, dim: Any) -> float | None:
    """The step of evenly spaced coordinates; None if there are none."""
    if dim not in image.coords or image.sizes[dim] < 2:
        return None
    values = np.asarray(image.coords[dim].values)
    if values.dtype.kind not in "iuf" or values.ndim != 1:
        return None
    steps = np.diff(values.astype(np.float64))
    step = float(steps.mean())
    return UNEVEN if step == 0 or not np.allclose(steps, step, rtol=1e-4, atol=0) else abs(step)


def spacing_of_xarray(image: Any) -> tuple[float, ...] | None:
    """The spacing of its coordinates; 1 along axes without, None if there are none at all."""
    found = [_step_of(image, dim) for dim in image.dims]
    return tuple(1.0 if each is None else each for each in found) if any(each is not None for each in found) else None


def axes_of_xarray(image: Any) -> tuple[int, ...] | None:
    """Those of space, where there are others too."""
    axes = tuple(i for i, dim in enumerate(image.dims) if dim in ("x", "y", "z"))
    return axes if axes and len(axes) < image.ndim else None


def _open_xarray(image: Any) -> Opened:
    def wrap(result: np.ndarray[Any, Any]) -> Any:
        _check_shape(result, image.shape)
        return image.copy(data=result)

    return Opened(np.asarray(image.values), wrap, spacing_of_xarray(image), None, axes_of_xarray(image),
                  place=place_of_xarray(image))


def _open_torch(image: Any) -> Opened:
    import torch

    if image.requires_grad:
        raise _core.ParameterError("input: the tensor requires a gradient, which filters do not have; pass x.detach()")
    if image.device.type not in ("cpu", "cuda"):
        raise _core.ParameterError(f"input: the tensor is on {image.device}, where other images are not")
    if image.is_cuda:
        return Opened(to_host(image), lambda result: to_device(result, image), can_have_components=True)
    return Opened(image.numpy(), lambda result: torch.from_numpy(result), can_have_components=True)


_CUDA = (2, 13)  # of DLPack: CUDA's own and managed memory


def is_on_device(x: Any) -> bool:
    """Whether an object is an array in a device's memory."""
    if isinstance(x, np.ndarray):
        return False
    if type(x).__module__.partition(".")[0] == "torch":
        return bool(getattr(x, "is_cuda", False))
    if hasattr(x, "__cuda_array_interface__"):
        return True
    where = getattr(x, "__dlpack_device__", None)
    return where is not None and where()[0] in _CUDA


def to_host(x: Any) -> np.ndarray[Any, Any]:
    """The voxels of an array in a device's memory, in an array of NumPy."""
    package = type(x).__module__.partition(".")[0]
    if package == "torch":
        if x.requires_grad:
            raise _core.ParameterError("input: the tensor requires a gradient, which filters do not have; pass x.detach()")
        return np.asarray(x.cpu().numpy())
    copy = getattr(x, "get", None) or getattr(x, "copy_to_host", None)
    if copy is None:
        raise TypeError(f"input: {type(x).__module__}.{type(x).__name__} is in a device's memory, and cannot be copied from "
                        "there here; pass an array of NumPy")
    return np.asarray(copy())


def to_device(result: np.ndarray[Any, Any], like: Any) -> Any:
    """An array of the package of `like`, on its device."""
    package = type(like).__module__.partition(".")[0]
    module: Any = sys.modules.get(package)
    if package == "torch":
        return module.from_numpy(np.ascontiguousarray(result)).to(like.device)
    if package == "cupy":
        with like.device:
            return module.asarray(result)
    if package == "numba":
        return module.cuda.to_device(result)
    raise TypeError(f"input: no array like {type(like).__module__}.{type(like).__name__} can be made here; pass an array of NumPy")


def array_of(x: Any) -> np.ndarray[Any, Any]:
    """NumPy's array of anything that is one, in a device's memory too."""
    return to_host(x) if is_on_device(x) else np.asarray(x)


#: Parameters that take the array for a result.
_RESULTS = ("out", "output", "distances", "indices")


def takes_device_arrays(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function for arrays in a device's memory too: NumPy's are made of them, and results go back there."""
    signature = inspect.signature(function)

    @wraps(function)
    def wrapped(*given: Any, **named: Any) -> Any:
        like = next((each for each in (*given, *named.values()) if is_on_device(each)), None)
        if like is None:
            return function(*given, **named)
        # Arrays of results, and the callers' that they stand for.
        targets: list[tuple[np.ndarray[Any, Any], Any]] = []

        def host_of(name: str, value: Any) -> Any:
            if not is_on_device(value):
                return value
            array = to_host(value)
            if name in _RESULTS:
                array = np.array(array)
                targets.append((array, value))
            return array

        def back(value: Any) -> Any:
            for array, caller in targets:
                if value is array:
                    return caller
            is_new = isinstance(value, np.ndarray) and not any(value is each for each in (*given, *named.values()))
            return to_device(value, like) if is_new else value

        bound = signature.bind(*given, **named)
        for name, value in bound.arguments.items():
            kind = signature.parameters[name].kind
            bound.arguments[name] = (
                tuple(host_of(name, each) for each in value) if kind is inspect.Parameter.VAR_POSITIONAL else
                {key: host_of(key, each) for key, each in value.items()} if kind is inspect.Parameter.VAR_KEYWORD else host_of(name, value))
        result = function(*bound.args, **bound.kwargs)
        for array, caller in targets:
            caller[...] = to_device(array, caller)
        return tuple(back(each) for each in result) if isinstance(result, tuple) else back(result)

    return wrapped


def all_take_device_arrays(module: dict[str, Any]) -> None:
    """Makes the functions that a module gives take arrays in a device's memory too."""
    for name in module["__all__"]:
        module[name] = takes_device_arrays(module[name])


def open_image(image: Any) -> Opened:
    """An image of a package that is known, or anything that NumPy takes for an array of numbers."""
    if isinstance(image, np.ma.MaskedArray):
        raise TypeError("input: a masked array; its mask would be lost. x.filled(value), or x.data")
    if isinstance(image, np.ndarray):
        return Opened(np.asarray(image), _same, can_have_components=True)
    kind = type(image)
    package = kind.__module__.partition(".")[0]
    if package == "itk" and hasattr(image, "GetBufferedRegion"):
        return _open_itk(image)
    if package == "SimpleITK":
        return _open_sitk(image)
    if package == "xarray":
        if kind.__name__ != "DataArray":
            raise TypeError(f"input: {kind.__name__} of xarray; pass one of its arrays")
        return _open_xarray(image)
    if package == "torch":
        return _open_torch(image)
    if package in ("dask", "zarr", "tensorstore"):
        raise TypeError(f"input: an array of {package} cannot be mixed with arrays in memory; x[...] or x.compute() reads it")
    if is_on_device(image):
        return Opened(to_host(image), lambda result: to_device(result, image), can_have_components=True)
    array = np.asarray(image)
    if array.dtype.kind in "OSU":
        hint = "; chunkwise.zarr.run takes paths of stores" if isinstance(image, str) else ""
        name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
        raise TypeError(f"input: {name} is not an array of numbers{hint}")
    return Opened(array, _same, can_have_components=True)
