# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Arrays in a device's memory: CuPy's, torch's, and others that have ``__cuda_array_interface__`` or DLPack.

They stay where they are: the engine reads and writes them there. Filters that need the host's memory get copies there, and
their results are copied back. None of their packages is imported here.
"""
from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from . import _core
from ._arrays import check_dtype, make_options, overlaps_itself, warn
from ._containers import is_on_device, to_device, to_host
from ._dispatch import Runner, register
from ._filter import Filter
from ._regions import Region, box_of, turn

_LEGACY_STREAM = 1


class _Array(NamedTuple):
    """The description of an array, and the owner of its memory."""

    data: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # bytes
    dtype: np.dtype[Any]
    device: int
    stream: int
    owner: Any

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def reach(self) -> tuple[int, int]:
        """The addresses from the first byte to behind the last one."""
        steps = [stride * (extent - 1) for stride, extent in zip(self.strides, self.shape)]
        return self.data + sum(min(0, each) for each in steps), self.data + sum(max(0, each) for each in steps) + self.itemsize

    def view(self, kind: str) -> Any:
        """As the engine takes it; bool lies in memory as uint8."""
        steps = [stride // self.itemsize for stride in self.strides]
        return _core.DeviceArray(self.data, self.shape, steps, kind, self.device, self.stream)


def _package(x: Any) -> str:
    return type(x).__module__.partition(".")[0]


def _dense(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    return tuple(itemsize * math.prod(shape[i + 1:]) for i in range(len(shape)))


def _stream_of(x: Any, interface: dict[str, Any]) -> int:
    """The stream in which the array was made. Version 2 of the interface, which torch has, does not tell."""
    if interface.get("version", 0) >= 3:
        return int(interface.get("stream") or _LEGACY_STREAM)
    cuda: Any = getattr(sys.modules.get(_package(x)), "cuda", None)
    if cuda is not None and hasattr(cuda, "current_stream"):
        current = cuda.current_stream(x.device) if hasattr(x, "device") else cuda.current_stream()
        return int(getattr(current, "cuda_stream", 0)) or _LEGACY_STREAM
    return _LEGACY_STREAM


def _open(x: Any, what: str, written: bool = False) -> _Array:
    if getattr(x, "requires_grad", False):
        raise _core.ParameterError(f"{what}: the tensor requires a gradient, which filters do not have; pass x.detach()")
    if not is_on_device(x):
        raise TypeError(f"{what}: {type(x).__module__}.{type(x).__name__} is not in the device's memory, where other "
                        "images are")
    interface = getattr(x, "__cuda_array_interface__", None)
    owner = x
    if interface is not None:
        data, read_only = interface["data"]
        shape = tuple(int(each) for each in interface["shape"])
        dtype = np.dtype(interface["typestr"])
        strides = interface.get("strides")
        strides = tuple(int(each) for each in strides) if strides is not None else _dense(shape, dtype.itemsize)
        stream = _stream_of(x, interface)
        if interface.get("mask") is not None:
            raise TypeError(f"{what}: a masked array; its mask would be lost")
        if written and read_only:
            raise _core.ParameterError(f"{what}: the array is read-only")
    else:
        if written:
            raise TypeError(f"{what}: {type(x).__module__}.{type(x).__name__} has no __cuda_array_interface__, and cannot "
                            "be written")
        # The producer lets the stream wait for its pending work.
        data, shape, steps, kind, owner = _core.open_capsule(x.__dlpack__(stream=_LEGACY_STREAM))
        dtype = np.dtype(kind)
        strides, stream = tuple(step * dtype.itemsize for step in steps), _LEGACY_STREAM
    if dtype == np.float16:
        convert = getattr(x, "float", None) or getattr(x, "astype", None)
        if written or convert is None:
            raise _core.ParameterError(f"{what}: float16 has no results on a device; float32 has")
        return _open(convert() if convert == getattr(x, "float", None) else convert(np.float32), what)
    if dtype.byteorder == ">" or (dtype.byteorder == "<" and sys.byteorder == "big"):
        raise _core.ParameterError(f"{what}: {dtype} has another byte order than this machine")
    if any(stride % dtype.itemsize for stride in strides) or int(data or 0) % dtype.itemsize:
        raise _core.ParameterError(f"{what}: its voxels do not lie at multiples of their size")
    array = _Array(int(data or 0), shape, strides, dtype, 0, stream, owner)
    if 0 in shape:
        return array
    begin, end = array.reach
    return array._replace(device=int(_core.device_of(begin, end - begin)))


def dtype_of(x: Any) -> np.dtype[Any]:
    return _open(x, "input").dtype


def _allocate(like: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """An array of the same package, on the same device."""
    package = _package(like)
    module: Any = sys.modules.get(package)
    if package == "torch":
        return module.empty(shape, dtype=getattr(module, dtype.name), device=like.device)
    if package == "cupy":
        with like.device:
            return module.empty(shape, dtype)
    if package == "numba":
        return module.cuda.device_array(shape, dtype)
    raise TypeError(f"input: no array like {type(like).__module__}.{type(like).__name__} can be made here; pass output=")


def _make_options(device: int, options: dict[str, Any]) -> Any:
    options = dict(options)
    wanted = options.pop("devices", None)
    if wanted is not None and device not in list(wanted):
        raise _core.ParameterError(f"devices: the image is in the memory of device {device}, which is none of {wanted}")
    return make_options(**options)


def resolve(filter: Filter, parameter: str, input: Any, others: tuple[Any, ...], options: dict[str, Any]) -> list[float]:
    """The numbers that stand for "auto" in a parameter, from an image on a device; `filter` has others in their place."""
    array = _open(input, "input")
    kind = check_dtype(array.dtype)
    ordered = [array.view(kind)]
    for each, other in zip(filter._row.inputs, others):
        if other is not None:
            further = _open(other, each.name)
            if further.shape != array.shape:
                raise _core.ParameterError(f"{each.name}: its shape is {further.shape}, the input's is {array.shape}")
            ordered.append(further.view(check_dtype(further.dtype, each.name)))
    operation = filter._operation(array.shape, kind, filter.default_dtype(array.dtype).name,
                                  further=filter._names_of([input, *others]))
    with filter.worded(len(array.shape)):
        return list(_core.estimate(filter._row.engine, parameter, operation, ordered, _make_options(array.device, options)))


def summarise(input: Any, options: dict[str, Any]) -> tuple[np.dtype[Any], bytes]:
    array = _open(input, "input")
    kind = check_dtype(array.dtype)
    if array.dtype.kind != "b" and not 1 <= len(array.shape) <= 5:
        raise _core.ParameterError(f"input: it has {len(array.shape)} dimensions; images have 1 to 5")
    if 0 in array.shape:
        return array.dtype, bytes(_core.add_summaries([]))
    return array.dtype, bytes(_core.summarise(array.view(kind), _make_options(array.device, options)))


def measure(labels: Any, intensity: Any, columns: Sequence[str], spacing: Sequence[float], options: dict[str, Any]) -> Any:
    """The columns of labels and an intensity that lie on a device, measured there; None: the CPU measures copies of them."""
    if options.get("backend") == "cpu" or not all(is_on_device(each) for each in (labels, intensity) if each is not None):
        return None
    arrays = [_open(labels, "labels"), *([_open(intensity, "intensity")] if intensity is not None else [])]
    shape, dtype = arrays[0].shape, arrays[0].dtype
    if (not 1 <= len(shape) <= 3 or 0 in shape or dtype.kind not in "iub" or any(each.shape != shape for each in arrays)
            or any(each.itemsize > 4 for each in arrays[1:])):
        return None
    views = [each.view(check_dtype(each.dtype)) for each in arrays]
    try:
        return _core.measure_on_device(views[0], views[1] if intensity is not None else None, list(columns), list(spacing),
                                       _make_options(arrays[0].device, options))[0]
    except _core.BudgetError as error:
        if options.get("backend") == "cuda" or options.get("devices"):
            raise
        # Labels that lie far from each other have no table there.
        warn({"warnings": [f"the CPU measures copies of labels and intensity, because {error}"]})
        return None


def _through_host(filter: Filter, input: Any, others: tuple[Any, ...], output: Any, options: dict[str, Any]) -> Any:
    """As run, for filters that need their images in the host's memory. They may use devices all the same."""
    is_array = output is not None and (is_on_device(output) or isinstance(output, np.ndarray))
    dtype = _open(output, "output", written=True).dtype if is_array else output
    images = [to_host(each) if each is not None and is_on_device(each) else each for each in (input, *others)]
    result = to_device(filter(*images, output=dtype, **options), input)
    if not is_array:
        return result
    if tuple(output.shape) != tuple(result.shape):
        raise _core.ParameterError(f"output: its shape is {tuple(output.shape)}, the result's is {tuple(result.shape)}")
    output[...] = result
    return output


def run(filter: Filter, input: Any, *others: Any, output: Any = None, **options: Any) -> Any:
    """Filters an image where it is; the result is an array of the same package on the same device."""
    row = filter._row
    first = _open(input, "input")
    shape = first.shape
    names = filter._names_of([input, *others])
    if not 1 <= len(shape) <= 5:
        raise _core.ParameterError(f"input: it has {len(shape)} dimensions; images have 1 to 5")
    if options.get("backend") == "cpu":
        return _through_host(filter, input, others, output, options)
    if filter.is_automatic:
        if 0 in shape:
            raise _core.ParameterError(f"{row.name}: auto takes a value from the image, which has no voxels")
        return run(filter.resolved(input, *others, **options), input, *others, output=output, **options)
    kind = check_dtype(first.dtype)
    boolean = first.dtype.kind == "b"
    ordered = [(first, kind)]
    for each, other in zip(row.inputs, others):
        if other is None:
            continue
        array = _open(other, each.name)
        if array.shape != shape:
            raise _core.ParameterError(f"{each.name}: its shape is {array.shape}, the input's is {shape}")
        own = check_dtype(array.dtype, each.name)
        if not each.own_kind and own != kind:
            raise _core.ParameterError(f"{each.name}: it is of {array.dtype}, the input of {first.dtype}; on a device they "
                                       "must be of one type")
        ordered.insert(0 if each.before else len(ordered), (array, own))
    is_array = output is not None and (is_on_device(output) or isinstance(output, np.ndarray))
    if output is None:
        of_bool = boolean and all(array.dtype.kind == "b" for array, _ in ordered)
        dtype = filter.default_dtype(first.dtype if of_bool else kind)
    elif is_array:
        dtype = _open(output, "output", written=True).dtype
    else:
        dtype = np.dtype(output)
    output_kind = check_dtype(dtype, "output")
    if dtype.kind == "b" and not (boolean and row.keeps_bool):
        truth = run(filter, input, *others, output=np.uint8, **options) != 0
        if is_array:
            output[...] = truth
        return output if is_array else truth
    if dtype == np.float16:
        raise _core.ParameterError("output: float16 has no results on a device; float32 has")
    operation = filter._operation(shape, kind, output_kind, further=names, boolean=boolean)
    if not operation.runs_on_devices:
        return _through_host(filter, input, others, output, options)
    region = filter._output_box(shape, kind, output_kind) or tuple(slice(0, each) for each in shape)
    result_shape = Region(region, region).shape
    run_options = _make_options(first.device, options)
    filter.check_kinds(operation, [own for _, own in ordered], output_kind, len(shape))
    result = output if is_array else _allocate(input, result_shape, dtype)
    target = _open(result, "output", written=True)
    if target.shape != result_shape:
        raise _core.ParameterError(f"output: its shape is {target.shape}, the result's is {result_shape}")
    if 0 not in result_shape and overlaps_itself(target):
        raise _core.ParameterError("output: several of its voxels may be at one place in memory")
    if is_array and 0 not in result_shape and any(
            array.reach[0] < target.reach[1] and target.reach[0] < array.reach[1] for array, _ in ordered):
        # The output overlaps an input, which the run may still read after it has written there.
        output[...] = run(filter, input, *others, output=dtype, **options)
        return output
    if 0 not in result_shape:
        lower, upper = box_of(region)
        with filter.worded(len(shape)):
            report = _core.execute(operation, [array.view(own) for array, own in ordered], [0] * len(shape),
                                   target.view(output_kind), lower, turn(shape), lower, upper, run_options)
        warn(report)
    return result


register("device", Runner(run, resolve))
