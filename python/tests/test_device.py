# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Arrays in a device's memory. How they are read needs no device: memory of the host stands for its memory, and the
engine's run on the host for the device's. If CuPy or torch find a GPU, the whole way is tried."""
import ctypes
import sys
import types

import numpy as np
import pytest
from conftest import make_image

import chunkwise
import chunkwise.skimage.filters
import chunkwise.skimage.measure
import chunkwise.skimage.morphology
import chunkwise.skimage.segmentation
from chunkwise import _core, _device, filters, ndimage, skimage


class Fake:
    """An array with the interface of a device's, of a package "cupy" that the test makes."""

    __module__ = "cupy"

    def __init__(self, array, stream=7, version=3, read_only=False, strided=True):
        self.array, self.device = array, types.SimpleNamespace(__enter__=None)
        self.device = Context()
        self.interface = {"shape": array.shape, "typestr": array.dtype.str, "version": version,
                          "data": (array.ctypes.data, read_only),
                          "strides": array.strides if strided or not array.flags.c_contiguous else None}
        if version >= 3:
            self.interface["stream"] = stream

    @property
    def __cuda_array_interface__(self):
        return self.interface

    @property
    def shape(self):
        return self.array.shape

    @property
    def ndim(self):
        return self.array.ndim

    def get(self):
        return self.array.copy()

    def __sub__(self, other):
        return Fake(self.array - other.array)

    def __add__(self, other):
        return Fake(self.array + (other.array if isinstance(other, Fake) else other))

    def __mul__(self, other):
        return Fake(self.array * other)

    def __and__(self, other):
        return Fake(self.array & other.array)

    def __or__(self, other):
        return Fake(self.array | other.array)

    def __invert__(self):
        return Fake(~self.array)

    def __getitem__(self, where):
        return Fake(self.array[where])

    def __ne__(self, other):
        return Fake(self.array != other)

    def __setitem__(self, where, other):
        self.array[where] = other.array


class Context:
    entered = 0

    def __enter__(self):
        Context.entered += 1

    def __exit__(self, *_):
        pass


class FakeCore:
    """The extension, of which memory of the host is that of device 3."""

    def __init__(self):
        self.calls = []

    def __getattr__(self, name):
        return getattr(_core, name)

    class DeviceArray:
        def __init__(self, data, shape, strides, kind, device, stream):
            assert device == 3
            self.kind = kind
            size = np.dtype(kind).itemsize
            self.stream = stream
            self.array = np.lib.stride_tricks.as_strided(
                np.frombuffer((ctypes.c_char * size).from_address(data), kind), shape, [size * each for each in strides])

    def device_of(self, data, size):
        assert size > 0
        return 3

    def execute(self, operation, inputs, input_lower, output, *rest):
        self.calls.append([each.stream for each in inputs])
        assert not any(np.may_share_memory(output.array, each.array) for each in inputs)
        dense = [np.ascontiguousarray(each.array) for each in inputs]
        target = np.empty(output.array.shape, output.array.dtype)
        report = _core.execute(operation, dense, input_lower, target, *rest)
        output.array[...] = target
        return report

    def estimate(self, name, parameter, operation, arrays, options):
        return _core.estimate(name, parameter, operation, [np.ascontiguousarray(each.array) for each in arrays], options)

    def summarise(self, array, options):
        return _core.summarise(np.ascontiguousarray(array.array), options)

    def measure_on_device(self, labels, intensity, columns, spacing, options):
        self.calls.append("measure")
        other = None if intensity is None else np.ascontiguousarray(intensity.array)
        return _core.measure(np.ascontiguousarray(labels.array), labels.kind, other, intensity.kind if intensity else "", columns, [],
                             False, spacing, [], [], options)


@pytest.fixture
def core(monkeypatch):
    module = types.ModuleType("cupy")
    module.empty = lambda shape, dtype: Fake(np.empty(shape, dtype))
    module.asarray = Fake
    monkeypatch.setitem(sys.modules, "cupy", module)
    fake = FakeCore()
    monkeypatch.setattr(_device, "_core", fake)
    return fake


LAYOUTS = {
    "dense": lambda x: x.copy(),
    "F": lambda x: np.asfortranarray(x),
    "steps": lambda x: np.repeat(x, 2, 2)[:, :, ::2],
    "flipped": lambda x: x[::-1, :, ::-1].copy()[::-1, :, ::-1],
    "turned": lambda x: np.moveaxis(x, 0, 2).copy().transpose(2, 0, 1),
    "crop": lambda x: np.pad(x, 2)[2:-2, 2:-2, 2:-2],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["uint8", "int32", "float64", "bool"])
def test_every_layout_gives_what_the_host_gives(random, core, layout, dtype):
    image = make_image(random, (9, 11, 12), dtype)
    given = LAYOUTS[layout](image)
    assert np.array_equal(given, image)
    entered = Context.entered
    result = chunkwise.median(Fake(given), radius=1)
    assert isinstance(result, Fake) and result.array.dtype == image.dtype and Context.entered > entered
    assert np.array_equal(result.array, chunkwise.median(image, radius=1))
    output = Fake(LAYOUTS[layout](np.zeros_like(image)))
    assert chunkwise.median(Fake(given, strided=False), radius=1, output=output) is output
    assert np.array_equal(output.array, result.array)


def test_an_output_may_be_the_input_or_a_part_of_it(random, core):
    image = make_image(random, (9, 11, 12), "float32")
    mask = (image > 0).astype("float32")
    expected = chunkwise.mean(image, 1)
    x = Fake(image.copy())
    assert chunkwise.mean(x, 1, output=x) is x and np.array_equal(x.array, expected)
    both = np.zeros((10, 11, 12), "float32")
    both[:9] = image
    output = Fake(both[1:])
    assert chunkwise.mean(Fake(both[:9]), 1, output=output) is output and np.array_equal(both[1:], expected)
    weights = Fake(mask.copy())
    assert chunkwise.mean(Fake(image), 1, weight=weights, output=weights) is weights
    assert np.array_equal(weights.array, chunkwise.mean(image, 1, weight=mask), equal_nan=True)


def test_filters_of_all_sorts(random, core):
    image = make_image(random, (20, 14, 16), "float32")
    x = Fake(image)
    for f in (filters.Gaussian(sigma=1.5), filters.Sat(), filters.FillHoles(), filters.OpeningByReconstruction(radius=1),
              filters.Wiener(radius=1, noise_variance="auto"), filters.Entropy(radius=1, range="auto"),
              filters.Watershed(height=1.0), filters.Gaussian(sigma=1.0) | filters.Std(radius=2)):
        assert np.array_equal(f(x).array, f(image)), f
    kernel = np.ones((3, 3, 3))
    valid = chunkwise.convolve_image(x, kernel, valid=True)
    assert valid.array.shape == (18, 12, 14) and np.array_equal(valid.array, chunkwise.convolve_image(image, kernel, valid=True))
    marker = np.minimum(image, make_image(random, image.shape, "float32"))
    assert np.array_equal(chunkwise.reconstruct(x, Fake(marker)).array, chunkwise.reconstruct(image, marker))
    assert chunkwise.mean(x, 1, output="float64").array.dtype == "float64"
    assert chunkwise.statistics(x) == chunkwise.statistics(image)
    for name, value in (("gaussian_filter", 1.0), ("gaussian_laplace", 1.0), ("white_tophat", 3), ("grey_opening", 3)):
        function = getattr(ndimage, name)
        assert np.array_equal(function(x, value).array, function(image, value)), name
        output = Fake(np.empty_like(image))
        assert function(x, value, output=output) is output and np.array_equal(output.array, function(image, value)), name
    empty = chunkwise.mean(Fake(image[:0]), 1)
    assert empty.array.shape == (0, 14, 16)


def test_what_needs_the_memory_of_the_host_is_copied(random, core):
    image = make_image(random, (12, 14, 16), "float32")
    x = Fake(image)
    kernel = np.ones((3, 3, 3)) / 27
    labels = chunkwise.label(image > image.mean())
    for call in (lambda x, _: chunkwise.deconvolve(x, kernel, number_of_iterations=2),
                 lambda x, _: chunkwise.separate(x),
                 lambda x, _: chunkwise.bin(x, 2),
                 lambda x, _: chunkwise.pad(x, lower=1),
                 lambda x, _: chunkwise.resample(x, scale=0.7),
                 lambda x, _: chunkwise.mean(x, 1, backend="cpu"),
                 lambda x, labels: chunkwise.expand_labels(labels, 2.0),
                 lambda x, labels: chunkwise.fill_label_holes(labels)):
        result = call(x, Fake(labels))
        expected = call(image, labels)
        assert isinstance(result, Fake) and result.array.dtype == expected.dtype
        assert np.array_equal(result.array, expected)
    before = len(core.calls)
    output = Fake(np.empty_like(image))
    assert chunkwise.deconvolve(x, kernel, number_of_iterations=2, output=output) is output
    assert np.array_equal(output.array, chunkwise.deconvolve(image, kernel, number_of_iterations=2)) and len(core.calls) == before
    with pytest.raises(ValueError, match="its shape"):
        chunkwise.deconvolve(x, kernel, number_of_iterations=2, output=Fake(image[1:].copy()))
    assert np.array_equal(chunkwise.difference(image, Fake(image[::-1].copy())), chunkwise.difference(image, image[::-1]))
    assert chunkwise.statistics(x, backend="cpu") == chunkwise.statistics(image)


FUNCTIONS = {
    "richardson_lucy": lambda x, labels, kernel: chunkwise.richardson_lucy(x, kernel, num_iter=2),
    "find_boundaries": lambda x, labels, kernel: chunkwise.find_boundaries(labels),
    "threshold_sauvola": lambda x, labels, kernel: chunkwise.threshold_sauvola(x),
    "apply_hysteresis_threshold": lambda x, labels, kernel: chunkwise.apply_hysteresis_threshold(x, 0.1, 0.5),
    "frangi": lambda x, labels, kernel: chunkwise.frangi(x, sigmas=[1, 2]),
    "deconvolve": lambda x, labels, kernel: chunkwise.deconvolve(x, kernel, number_of_iterations=2),
    "convolve": lambda x, labels, kernel: ndimage.convolve(x, kernel),
    "zoom": lambda x, labels, kernel: ndimage.zoom(x, 1.5),
    "zoom of labels": lambda x, labels, kernel: ndimage.zoom(labels, 0.6, order=0),
    "shift": lambda x, labels, kernel: ndimage.shift(x, 0.3, order=1, mode="nearest"),
    "rotate of integers": lambda x, labels, kernel: ndimage.rotate(labels, 20, order=1),
    "map_coordinates": lambda x, labels, kernel: ndimage.map_coordinates(x, labels[:3] * 0 + 2.5),
    "spline_filter": lambda x, labels, kernel: ndimage.spline_filter(x),
    "skimage gaussian": lambda x, labels, kernel: skimage.filters.gaussian(x, 1.5),
    "skimage opening": lambda x, labels, kernel: skimage.morphology.opening(x),
    "skimage label": lambda x, labels, kernel: skimage.measure.label(labels),
    "skimage relabel_sequential": lambda x, labels, kernel: skimage.segmentation.relabel_sequential(labels)[0],
}


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_functions_give_arrays_of_the_package_that_they_get(random, core, function):
    image = make_image(random, (12, 14, 16), "float32") + np.float32(10)
    labels = chunkwise.label(image > image.mean())
    kernel = np.ones((3, 3, 3), "float32") / 27
    result = function(Fake(image), Fake(labels), Fake(kernel))
    expected = function(image, labels, kernel)
    assert isinstance(result, Fake) and result.array.dtype == expected.dtype and np.array_equal(result.array, expected)


def test_outputs_of_functions_may_be_in_a_devices_memory(random, core):
    image = make_image(random, (12, 14, 16), "float32")
    output = Fake(np.empty_like(image))
    assert skimage.morphology.dilation(Fake(image), out=output) is output
    assert np.array_equal(output.array, skimage.morphology.dilation(image))
    output = Fake(np.empty_like(image))
    assert skimage.morphology.dilation(Fake(image), None, output) is output
    assert np.array_equal(output.array, skimage.morphology.dilation(image))
    host = np.empty_like(image)
    assert skimage.morphology.dilation(Fake(image), out=host) is host and np.array_equal(host, skimage.morphology.dilation(image))


@pytest.mark.parametrize("given,dtype", [("uint8", "float32"), ("float32", "uint8"), ("float32", "float32")])
def test_outputs_in_a_devices_memory_have_their_own_type(random, core, given, dtype):
    image = make_image(random, (12, 14), given)
    points = random.random((2, 12, 14)) * 10
    for name, arguments in (("map_coordinates", (points,)), ("shift", (0.5,)), ("spline_filter", (3,))):
        expected = getattr(ndimage, name)(image, *arguments, output=np.dtype(dtype))
        output = Fake(np.zeros(image.shape, dtype))
        assert getattr(ndimage, name)(Fake(image), *arguments, output=output) is output
        assert np.array_equal(output.array, expected), name
        host = np.zeros(image.shape, dtype)
        assert getattr(ndimage, name)(Fake(image), *arguments, output=host) is host
        assert np.array_equal(host, expected), name
        with pytest.raises(chunkwise.ParameterError, match="output: its shape"):
            getattr(ndimage, name)(Fake(image), *arguments, output=Fake(np.zeros((3, 12, 14), dtype)))


def test_masks_of_binary_filters_may_be_in_a_devices_memory(random, core):
    image, mask = random.random((12, 14)) > 0.6, random.random((12, 14)) > 0.3
    expected = ndimage.binary_dilation(image, iterations=2, mask=mask)
    assert np.array_equal(ndimage.binary_dilation(Fake(image), iterations=2, mask=Fake(mask)).array, expected)
    assert np.array_equal(ndimage.binary_dilation(Fake(image), iterations=2, mask=mask).array, expected)
    assert np.array_equal(ndimage.binary_dilation(image, iterations=2, mask=Fake(mask)), expected)


def check_measurements(labels, image, to_device):
    """Those of arrays in a device's memory are those of arrays in the host's."""
    ndimage = chunkwise.ndimage
    there, x = to_device(labels), to_device(image)
    for table, expected in ((chunkwise.measure(there, x, spacing=(2, 1, 0.5)), chunkwise.measure(labels, image, spacing=(2, 1, 0.5))),
                            (chunkwise.measure(there[::2], columns="area"), chunkwise.measure(labels[::2], columns="area"))):
        assert list(table) == list(expected)
        assert all(np.array_equal(table[name], expected[name], equal_nan=True) for name in expected)
    for index in (np.arange(1, int(labels.max()) + 1), 2):
        for name in ("sum_labels", "mean", "variance", "standard_deviation", "minimum", "maximum", "minimum_position",
                     "maximum_position", "extrema", "center_of_mass"):
            function = getattr(ndimage, name)
            assert str(function(x, there, index)) == str(function(image, labels, index)), name


def test_labels_are_measured_on_the_device(random, core):
    image = make_image(random, (12, 14, 16), "float32")
    labels = chunkwise.label(image > image.mean())
    check_measurements(labels, image, Fake)
    assert core.calls == 22 * ["measure"]
    # The CPU alone does these.
    x, there = Fake(image), Fake(labels)
    for call in (lambda x, labels: chunkwise.measure(labels, x, quantiles=(0.5,)), lambda x, labels: chunkwise.contacts(labels),
                 lambda x, labels: chunkwise.measure(labels, x, backend="cpu"),
                 lambda x, labels: {"": chunkwise.ndimage.median(x, labels, [1, 2])},
                 lambda x, labels: {"": chunkwise.ndimage.mean(x, labels, [0, 1])},
                 lambda x, labels: {"": chunkwise.ndimage.mean(x, labels)}):
        table, expected = call(x, there), call(image, labels)
        assert all(np.array_equal(table[name], expected[name], equal_nan=True) for name in expected)
    doubles = image.astype(np.float64)
    assert chunkwise.ndimage.mean(Fake(doubles), there, 1) == chunkwise.ndimage.mean(doubles, labels, 1)
    assert len(core.calls) == 22
    with pytest.raises(ValueError, match="devices"):
        chunkwise.measure(there, x, devices=[1])


def test_labels_without_a_table_on_the_device_are_measured_on_the_cpu(random, core, monkeypatch):
    def fail(*arguments):
        error = _core.BudgetError("there is too little memory")
        error.needed, error.budget = 2, 1
        raise error

    monkeypatch.setattr(core, "measure_on_device", fail, raising=False)
    labels = chunkwise.label(make_image(random, (12, 14), "float32") > 0.5)
    with pytest.warns(chunkwise.ChunkwiseWarning, match="too little memory"):
        table = chunkwise.measure(Fake(labels), columns="area")
    assert table["area"].tolist() == chunkwise.measure(labels, columns="area")["area"].tolist()
    for given in ({"backend": "cuda"}, {"devices": [3]}):
        with pytest.raises(chunkwise.BudgetError):
            chunkwise.measure(Fake(labels), columns="area", **given)


def test_streams(random, core):
    image = make_image(random, (5, 6, 7), "uint8")
    for x, stream in ((Fake(image, stream=12345), 12345), (Fake(image, stream=2), 2), (Fake(image, stream=None), 1),
                      (Fake(image, version=2), 1)):
        chunkwise.mean(x, 1)
        assert core.calls[-1] == [stream]
    sys.modules["cupy"].cuda = types.SimpleNamespace(
        current_stream=lambda device: types.SimpleNamespace(cuda_stream=99 if isinstance(device, Context) else 1))
    chunkwise.mean(Fake(image, version=2), 1)
    assert core.calls[-1] == [99]


def test_dlpack(random, core):
    class Other:
        """An array that has no interface but DLPack's."""
        def __init__(self, array):
            self.array = array

        def __dlpack_device__(self):
            return 2, 0

        def __dlpack__(self, stream):
            assert stream == 1
            return self.array.__dlpack__()

    image = make_image(random, (9, 8, 14), "uint16")
    output = Fake(np.empty(image.shape, "uint16"))
    for given in (image, image.transpose(2, 0, 1), image[:, ::2]):
        output = Fake(np.zeros(given.shape, "uint16"))
        chunkwise.maximum(Other(given), 1, output=output)
        assert np.array_equal(output.array, chunkwise.maximum(np.ascontiguousarray(given), 1))
    with pytest.raises(TypeError, match="pass output="):
        chunkwise.maximum(Other(image), 1)
    with pytest.raises(TypeError, match="cannot be written"):
        chunkwise.maximum(Fake(image), 1, output=Other(image))


def test_what_cannot_be_done_is_said(random, core):
    image = make_image(random, (5, 6, 7), "uint8")
    x = Fake(image)
    for call, error, text in (
            (lambda: chunkwise.difference(x, image), TypeError, "not in the device's memory"),
            (lambda: chunkwise.difference(x, Fake(image.astype("int16"))), ValueError, "must be of one type"),
            (lambda: chunkwise.difference(x, Fake(image[1:])), ValueError, "its shape"),
            (lambda: chunkwise.mean(x, 1, output=np.empty_like(image)), TypeError, "not in the device's memory"),
            (lambda: chunkwise.mean(x, 1, output=Fake(image[1:])), ValueError, "its shape"),
            (lambda: chunkwise.mean(x, 1, output=Fake(image.copy(), read_only=True)), ValueError, "read-only"),
            (lambda: chunkwise.mean(x, 1, output=Fake(np.broadcast_to(np.empty(7, "u1"), image.shape))), ValueError,
             "one place in memory"),
            (lambda: chunkwise.mean(Fake(image.astype("float16")), 1), ValueError, "float16"),
            (lambda: chunkwise.mean(Fake(image.astype(">i4")), 1), ValueError, "byte order"),
            (lambda: chunkwise.mean(x, 1, devices=[0]), ValueError, "devices"),
            (lambda: chunkwise.mean(Fake(np.zeros((1,) * 6)), 1), ValueError, "dimensions")):
        with pytest.raises(error, match=text):
            call()
    chunkwise.mean(x, 1, devices=[3])


def test_without_a_device_it_is_said_why(random):
    if chunkwise.devices():
        pytest.skip("there is a device")
    with pytest.raises(ValueError, match="no device can be used"):
        chunkwise.mean(Fake(make_image(random, (5, 6, 7), "uint8")), 1)


def on_gpu():
    """Functions that bring an array to the device and back, for each package that finds a GPU."""
    found = []
    if chunkwise.devices():
        try:
            import cupy
            found.append(pytest.param(cupy.asarray, cupy.asnumpy, cupy.ndarray, id="cupy"))
        except ImportError:
            pass
        try:
            import torch
            if torch.cuda.is_available():
                found.append(pytest.param(lambda x: torch.from_numpy(x.copy()).cuda(), lambda x: x.cpu().numpy(),
                                          torch.Tensor, id="torch"))
        except ImportError:
            pass
    return found or [pytest.param(None, None, None, marks=pytest.mark.skip(
        reason="no GPU that both the engine and CuPy or torch find: " + (chunkwise.why_no_devices() or "no package")[:80]))]


@pytest.fixture
def copies(monkeypatch):
    """The bytes between host and device that runs report."""
    found = []

    class Core:
        def __getattr__(self, name):
            return getattr(_core, name)

        def execute(self, *arguments):
            report = _core.execute(*arguments)
            found.append((report["bytes_to_device"], report["bytes_to_host"], report["chunks_on_host"]))
            return report

    monkeypatch.setattr(_device, "_core", Core())
    return found


@pytest.mark.parametrize("to_device, to_host, kind", on_gpu())
def test_no_voxel_goes_through_the_host(random, copies, to_device, to_host, kind):
    image = make_image(random, (60, 70, 80), "float32")
    x = to_device(image)
    output = x + 1
    for f in (filters.Gaussian(sigma=1.5), filters.Median(radius=1), filters.Sat(), filters.HMaxima(height=0.5),
              filters.FillHoles(), filters.Opening(radius=2), filters.Gaussian(sigma=1.0) | filters.Std(radius=2)):
        expected = f(image, backend="cpu")
        assert np.array_equal(to_host(f(x)), expected), f
        if f.default_dtype("float32") == image.dtype:
            assert f(x, output=output) is output and np.array_equal(to_host(output), expected), f
        assert copies and set(copies) == {(0, 0, 0)}, f
        copies.clear()
    # If scratch is short, the work is cut on the device.
    for f in (filters.Opening(radius=3), filters.Gaussian(sigma=3.0)):
        assert np.array_equal(to_host(f(x, device_memory="2M")), f(image, backend="cpu")), f
        assert set(copies) == {(0, 0, 0)}


@pytest.mark.parametrize("to_device, to_host, kind", on_gpu())
def test_other_streams_come_first(random, to_device, to_host, kind):
    package = sys.modules[kind.__module__.partition(".")[0]]
    image = make_image(random, (64, 256, 256), "float32")
    x = to_device(image)
    stream = package.cuda.Stream(non_blocking=True) if package.__name__ == "cupy" else package.cuda.Stream()
    synchronise = package.cuda.Device().synchronize if package.__name__ == "cupy" else package.cuda.synchronize
    for _ in range(5):
        y = x + 0
        synchronise()
        with stream if package.__name__ == "cupy" else package.cuda.stream(stream):
            for _ in range(200):
                y += 1
            result = chunkwise.maximum(y, 1)
            # And what comes after it on the stream finds the result.
            result = result + 1
        stream.synchronize()
        expected = image
        for _ in range(200):
            expected = expected + np.float32(1)
        assert np.array_equal(to_host(result), chunkwise.maximum(expected, 1, backend="cpu") + np.float32(1))


@pytest.mark.parametrize("to_device, to_host, kind", on_gpu())
def test_on_a_gpu(random, to_device, to_host, kind):
    image = make_image(random, (40, 50, 60), "float32")
    x = to_device(image)
    for f in (filters.Gaussian(sigma=1.5), filters.Median(radius=1), filters.Sat(), filters.HMaxima(height=0.5),
              filters.Wiener(radius=1, noise_variance="auto"), filters.Maximum(radius=3)):
        result = f(x)
        assert isinstance(result, kind) and np.array_equal(to_host(result), f(image, backend="cpu")), f
        assert np.array_equal(to_host(f(x[::2, 3:, ::3])), f(np.ascontiguousarray(image[::2, 3:, ::3]), backend="cpu")), f
        # Pending work on the array's stream comes first.
        for _ in range(20):
            y = x + 1
        assert np.array_equal(to_host(f(y)), f(image + 1, backend="cpu")), f
    assert chunkwise.statistics(x) == chunkwise.statistics(image)
    check_measurements(chunkwise.label(image > image.mean(), backend="cpu").astype(np.int32), image, to_device)


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
@pytest.mark.parametrize("to_device, to_host, kind", on_gpu())
def test_functions_on_a_gpu(random, to_device, to_host, kind, function):
    image = make_image(random, (40, 50, 60), "float32") + np.float32(10)
    labels = chunkwise.label(image > image.mean()).astype("int32")
    kernel = np.ones((3, 3, 3), "float32") / 27
    result = function(to_device(image), to_device(labels), to_device(kernel))
    expected = function(image, labels, kernel)
    assert isinstance(result, kind)
    # Transforms on devices have other last bits.
    assert np.allclose(to_host(result), expected, rtol=1e-5)
