# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Arrays of any layout and type, regions, options, threads, what is refused."""
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from conftest import make_image

import chunkwise
from chunkwise import _arrays, filters

KINDS = sorted(_arrays.KINDS)


def layouts(image):
    """Views of the same voxels that lie in other ways."""
    z, y, x = image.shape
    wide = np.zeros((2 * z + 3, y + 4, x + 6), image.dtype)
    wide[1:2 * z + 1:2, 2:-2, 3:-3] = image
    yield "steps and a crop", wide[1:2 * z + 1:2, 2:-2, 3:-3]
    yield "backwards", np.ascontiguousarray(image[::-1, ::-1])[::-1, ::-1]
    yield "the last axis backwards", np.ascontiguousarray(image[..., ::-1])[..., ::-1]
    yield "Fortran's order", np.asfortranarray(image)
    yield "steps along x", np.repeat(image, 2, axis=2)[..., ::2]
    yield "other bytes' order", image.astype(image.dtype.newbyteorder())
    fields = np.zeros(image.shape, [("pad", "u1"), ("value", image.dtype)])
    fields["value"] = image
    yield "a field", fields["value"]
    locked = image.copy()
    locked.setflags(write=False)
    yield "read-only", locked


@pytest.mark.parametrize("filter", [filters.Mean(radius=2), filters.Gaussian(sigma=1.5), filters.Median(radius=1),
                                    filters.Maximum(radius=(1, 0, 3)), filters.HMaxima(height=3)], ids=repr)
@pytest.mark.parametrize("dtype", ["float32", "uint16"])
def test_any_layout_gives_the_same_bits(random, filter, dtype, tmp_path):
    image = make_image(random, (9, 10, 11), dtype)
    expected = filter(image)
    for name, view in layouts(image):
        assert np.array_equal(view, image), name
        assert np.array_equal(filter(view), expected), name
        room = np.full_like(np.concatenate([view, view]), 7)
        for _, output in layouts(room[:9]):
            if output.flags.writeable and output.dtype == expected.dtype:
                assert filter(image, output=output) is output
                assert np.array_equal(output, expected)
    image.tofile(tmp_path / "image.raw")
    mapped = np.memmap(tmp_path / "image.raw", dtype, "r", shape=image.shape)
    assert np.array_equal(filter(mapped), expected)
    out = np.memmap(tmp_path / "out.raw", expected.dtype, "w+", shape=image.shape)
    filter(mapped, output=out)
    assert np.array_equal(np.fromfile(tmp_path / "out.raw", expected.dtype).reshape(image.shape), expected)
    broadcast = np.broadcast_to(image[0], (9, 10, 11))
    assert np.array_equal(filter(broadcast), filter(broadcast.copy()))


def test_what_can_be_read_where_it_lies_is_not_copied(random):
    image = make_image(random, (6, 7, 8), "float32")
    for name, view in layouts(image):
        copied = not np.shares_memory(_arrays.as_input(view, "float32"), view)
        assert copied == (name in ("the last axis backwards", "Fortran's order", "steps along x", "other bytes' order",
                                   "a field")), name
    mask = image > 0
    assert np.shares_memory(_arrays.as_input(mask, "uint8"), mask)


def test_outputs_beside_the_region_are_left_alone(random):
    image = make_image(random, (6, 7, 8), "uint8")
    room = np.full((10, 11, 20), 99, "uint8")
    chunkwise.mean(image, 1, output=room[2:8, 1:8, 5:13])
    assert np.array_equal(room[2:8, 1:8, 5:13], chunkwise.mean(image, 1))
    room[2:8, 1:8, 5:13] = 99
    assert (room == 99).all()


def test_overlapping_memory(random):
    image = make_image(random, (12, 13, 14), "float32")
    expected = chunkwise.mean(image[:10], 2)
    for begin in (0, 1, 2):
        room = image.copy()
        output = room[begin:begin + 10]
        assert chunkwise.mean(room[:10], 2, output=output) is output
        assert np.array_equal(output, expected)
    woven = np.zeros((20, 13, 14), "float32")
    woven[::2] = image[:10]
    chunkwise.mean(woven[::2], 2, output=woven[1::2])
    assert np.array_equal(woven[1::2], expected) and np.array_equal(woven[::2], image[:10])
    with pytest.raises(ValueError, match="one place"):
        chunkwise.mean(image, 1, output=np.lib.stride_tricks.as_strided(image, strides=(0, 56, 4)))


@pytest.mark.parametrize("shape", [(0,), (0, 5), (5, 0), (3, 0, 4), (0, 0, 0)])
def test_no_voxels(shape):
    for name in ("mean", "median", "maximum", "opening", "variance"):
        result = getattr(chunkwise, name)(np.zeros(shape, "uint8"), radius=1)
        assert result.shape == shape
    assert chunkwise.variance(np.zeros(shape, "uint8"), 1).dtype == np.float32
    with pytest.raises(ValueError):
        chunkwise.mean(np.zeros(shape, "uint8"), radius=-1)
    with pytest.raises(ValueError, match="no voxel"):
        chunkwise.statistics(np.zeros(shape, "uint8"))


@pytest.mark.parametrize("ndim", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("dtype", KINDS)
def test_types_and_dimensions(random, ndim, dtype):
    image = make_image(random, (3, 4, 5, 6, 2)[:ndim], dtype)
    result = chunkwise.maximum(image, radius=1)
    assert result.dtype == image.dtype and result.shape == image.shape
    corner = tuple(slice(0, 2) if a >= ndim - 3 else slice(0, 1) for a in range(ndim))
    assert result.flat[0] == image[corner].max()
    one = chunkwise.maximum(np.asarray(image.flat[:1]).reshape((1,) * ndim), radius=9)
    assert one.flat[0] == image.flat[0]


def test_the_types_of_results(random):
    image = make_image(random, (5, 6, 7), "uint8")
    for output in ("float32", np.float64, np.dtype("float64"), float):
        assert chunkwise.mean(image, 1, output=output).dtype == np.dtype(output)
    exact = chunkwise.mean(image, 1, output="float64")
    assert np.array_equal(chunkwise.mean(image, 1), np.rint(exact))
    assert chunkwise.variance(image, 1).dtype == np.float32
    assert chunkwise.sat(image).dtype == np.uint64 and chunkwise.sat(image.astype("int8")).dtype == np.int64
    assert np.array_equal(chunkwise.sat(image), image.astype("u8").cumsum(0).cumsum(1).cumsum(2))
    assert (chunkwise.difference(image, image[::-1]).dtype, (filters.Mean(1) | filters.Std(1))(image).dtype) == ("f4", "f4")


def test_bool(random):
    image = random.random((8, 9, 10)) < 0.4
    for f in (filters.Maximum(radius=1), filters.Median(radius=1), filters.Opening(radius=1), filters.FillHoles(),
              filters.RegionalMaxima(), filters.Range(radius=1)):
        result = f(image)
        assert result.dtype == bool and set(np.unique(result.view("u1"))) <= {0, 1}
        assert np.array_equal(result, f(image.astype("u1")) != 0)
    # Means of truth values are none; sums and labels neither.
    for f in (filters.Mean(radius=1), filters.Gaussian(sigma=1.0), filters.Wiener(radius=1, noise_variance=1.0),
              filters.Box(radius=1)):
        assert f(image).dtype == np.float32
        assert np.array_equal(f(image), f(image.astype("u1"), output=np.float32))
    assert filters.Sat()(image).dtype == np.uint64 and filters.Label()(image).dtype == np.uint32
    # As an output: the nearest of 0 and 1, where sums are larger too.
    truth = filters.Sum(radius=1)(image, output=bool)
    assert set(np.unique(truth.view("u1"))) <= {0, 1} and np.array_equal(truth, filters.Maximum(radius=1, mode="renormalized")(image))
    output = np.empty(image.shape, bool)
    assert np.array_equal(filters.Sum(radius=1)(image, output=output), truth)


def test_bool_further_images(random):
    x = random.normal(size=(8, 9, 10)).astype("float32")
    mask = x > 0.5
    for mask_of in (mask, mask.astype("int16")):
        assert np.array_equal(chunkwise.mean(x, 1, mask=mask_of), chunkwise.mean(x, 1, mask=mask.astype("uint8")), equal_nan=True)
        assert np.array_equal(chunkwise.median(x, 1, mask=mask_of), chunkwise.median(x, 1, mask=mask.astype("uint8")), equal_nan=True)
    # Functions and filters give one type, that of the images.
    seeds = mask & (random.random(mask.shape) < 0.3)
    assert chunkwise.reconstruct(mask, marker=seeds).dtype == bool
    assert filters.Reconstruct()(mask, seeds).dtype == bool
    assert chunkwise.median(mask, 1, mask=seeds).dtype == bool
    assert chunkwise.maximum(mask, 1).dtype == filters.Maximum(1)(mask).dtype == bool
    assert filters.Reconstruct()(mask, seeds.astype("uint8")).dtype == np.uint8


@pytest.mark.parametrize("given, error, text", [
    ({"axes": (0, 0)}, ValueError, r"axes: \(0, 0\) names an axis twice"),
    ({"axes": (0, -3)}, ValueError, r"axes: \(0, -3\) names an axis twice"),
    ({"axes": "z"}, TypeError, "axes: 'z' is not a whole number"),
    ({"threads": "4"}, TypeError, "threads: '4' is not a whole number"),
    ({"threads": 1.5}, TypeError, "threads: 1.5 is not a whole number"),
    ({"memory": [1]}, TypeError, r"memory: \[1\] is not a whole number"),
    ({"devices": 0}, TypeError, "devices: 0 is no sequence"),
    ({"devices": ["a"]}, TypeError, "devices: 'a' is not a whole number"),
    ({"backend": 1}, TypeError, "backend: 1 is no text"),
    ({"output": "abc"}, TypeError, "output: 'abc' is neither"),
    ({"axes": 0.5}, ValueError, "axes: 0.5 is not a whole number"),
    ({"mode": 3}, TypeError, "mode: 3 is none of"),
    ({"mode": "constant", "cval": "a"}, TypeError, "cval: 'a' is not a number"),
    ({"rounding": 1}, TypeError, "rounding"),
    ({"ignore_nan": 1}, TypeError, "ignore_nan: 1 is neither True nor False"),
    ({"output": [1, 2]}, TypeError, r"output: \[1, 2\] is neither"),
])
def test_arguments_of_other_types_are_named(given, error, text):
    with pytest.raises(error, match=text):
        chunkwise.mean(np.ones((3, 4, 5)), 1, **given)


def test_kernels_and_spacings_are_numbers():
    image = np.ones((3, 4, 5))
    for kernel in ("a", np.ones((3, 3, 3)) * 1j, [object()]):
        with pytest.raises(ValueError, match="kernel: .* no real numbers"):
            chunkwise.convolve(image, kernel=kernel)
    for spacing in (2.0, "ab", [[1.0, 2.0]]):
        with pytest.raises(TypeError, match="spacing: .* a sequence of numbers"):
            chunkwise.gaussian(image, 1.0, spacing=spacing)
    with pytest.raises(ValueError, match="periodic_axes: .* twice"):
        chunkwise.label(image, periodic_axes=(0, 0))


def test_half_precision(random):
    x = random.normal(size=(8, 9, 10)).astype("float16")
    for f in (filters.Mean(radius=1), filters.Median(radius=1), filters.Gaussian(sigma=1.0)):
        assert f(x).dtype == np.float32 and np.array_equal(f(x), f(x.astype("float32")))
        assert np.array_equal(f(x, output=np.float16), f(x).astype(np.float16))
        output = np.empty(x.shape, np.float16)
        assert f(x, output=output) is output and np.array_equal(output, f(x).astype(np.float16))
    assert chunkwise.statistics(x).mean == chunkwise.statistics(x.astype("float32")).mean
    result = f.run(x, next(chunkwise.regions(f, x.shape, x.shape)), x.shape)
    assert np.array_equal(result, f(x))


@pytest.mark.parametrize("filter", [filters.Mean(radius=(1, 2, 3)), filters.Gaussian(sigma=1.0),
                                    filters.Mean(radius=2, mode="wrap"), filters.Median(radius=1)], ids=repr)
def test_regions(random, filter):
    image = make_image(random, (14, 15, 16), "float32")
    expected = filter(image)
    result = np.zeros_like(expected)
    for region in chunkwise.regions(filter, image.shape, (5, (7, 8), 16)):
        # The voxels around the needed ones are poison.
        room = np.full(tuple(each + 2 for each in image.shape), np.nan, "float32")
        inside = tuple(slice(1 + each.start, 1 + each.stop) for each in region.input)
        room[inside] = image[region.input]
        result[region.output] = filter.run(room[inside], region, image.shape)
    assert np.array_equal(result, expected)
    with pytest.raises(ValueError, match="whole image"):
        list(chunkwise.regions(filters.HMaxima(height=1), image.shape, (5, 15, 16)))
    with pytest.raises(ValueError, match="sums"):
        list(chunkwise.regions(filters.Sat(), image.shape, (5, 15, 16)))
    with pytest.raises(ValueError, match="chunks"):
        list(chunkwise.regions(filter, image.shape, (5, 15, 0)))


def test_numbers_along_axes_come_in_numpys_order(random):
    image = make_image(random, (9, 10, 11), "float32")
    turned = np.ascontiguousarray(image.transpose(2, 0, 1))
    for filter, other in ((filters.Maximum(radius=(1, 2, 3)), filters.Maximum(radius=(3, 1, 2))),
                          (filters.Maximum(radius=(1, 3), axes=(0, 2)), filters.Maximum(radius=(3, 1), axes=(0, -2))),
                          (filters.Maximum(radius=(3, 1), axes=(2, 0)), filters.Maximum(radius=(1, 3), axes=(1, 0)))):
        assert np.array_equal(filter(image).transpose(2, 0, 1), other(turned))
    assert filters.Mean(radius=(1, 2, 3)).halo(image.shape) == ((1, 1), (2, 2), (3, 3))
    assert filters.FillHoles().halo((4, 5, 6)) == ((1, 1), (1, 1), (1, 1))
    with pytest.raises(ValueError, match="axes"):
        chunkwise.mean(image, 1, axes=3)
    with pytest.raises(ValueError, match="radius"):
        chunkwise.mean(image, (1, 2))


def test_lengths_and_spacing(random):
    image = make_image(random, (9, 10, 11), "float32")
    voxels = chunkwise.gaussian(image, sigma=(2.0, 1.0, 0.5))
    assert np.array_equal(chunkwise.gaussian(image, sigma=1.0, spacing=(0.5, 1.0, 2.0)), voxels)
    assert np.array_equal(chunkwise.gaussian(image, sigma=(2.0, 1.0, 0.5), spacing=False), voxels)
    with pytest.raises(ValueError, match="spacing"):
        chunkwise.gaussian(image, sigma=1.0, spacing=(1.0, 2.0))
    with pytest.raises(ValueError, match="spacing"):
        chunkwise.gaussian(image, sigma=1.0, spacing=(1.0, 0.0, 2.0))


def test_what_is_refused(random):
    image = make_image(random, (4, 5, 6), "float32")
    for call, error, text in (
        (lambda: chunkwise.mean(image), TypeError, "radius"),
        (lambda: chunkwise.mean(image, None), ValueError, "radius"),
        (lambda: chunkwise.mean(image, 1.5), ValueError, "radius: 1.5"),
        (lambda: chunkwise.mean(image, "1"), ValueError, "radius"),
        (lambda: chunkwise.mean(image, 10**30), ValueError, "radius"),
        (lambda: chunkwise.mean(image, radius=1, mode=("mirror", "wrap")), ValueError, "2 words for 3 spatial axes"),
        (lambda: chunkwise.mean(image, radius=1, mode=("mirror", "wrap", "renormalized")), ValueError, "renormalized"),
        (lambda: chunkwise.mean(image, radius=1, mode=("mirror", "wrap", 3)), TypeError, "mode: 3 is none of"),
        (lambda: chunkwise.mean(image, 1, mode="constnat"), ValueError, "'constant'"),
        (lambda: chunkwise.mean(np.float32(3), 1), ValueError, "0 dimensions"),
        (lambda: chunkwise.mean(np.zeros((1,) * 6), 1), ValueError, "6 dimensions"),
        (lambda: chunkwise.mean(image.astype("complex128"), 1), ValueError, "complex128"),
        (lambda: chunkwise.mean(np.array(["a"]), 1), ValueError, "none of the types"),
        (lambda: chunkwise.mean(object(), 1), TypeError, "not an array"),
        (lambda: chunkwise.mean(image, "1"), TypeError, "radius: '1' is not a whole number"),
        (lambda: chunkwise.mean(image, 1.5), ValueError, "radius: 1.5 is not a whole number"),
        (lambda: chunkwise.mean(image, {}), chunkwise.ParameterError, "radius: {} is not a whole number"),
        (lambda: chunkwise.watershed(image, np.zeros((3, 4))), TypeError, r"connectivity: an array of float64 of the shape \(3, 4\) is not"),
        (lambda: chunkwise.gaussian(image, "a"), TypeError, "sigma: 'a' is not a number"),
        (lambda: chunkwise.mean("image.zarr", 1), TypeError, "str is not an array of numbers; chunkwise.zarr.run"),
        (lambda: chunkwise.ndimage.uniform_filter(image, 3, thread=2), TypeError, "thread: unexpected keyword argument; options are"),
        (lambda: chunkwise.mean(np.ma.masked_array(image), 1), TypeError, "masked"),
        (lambda: chunkwise.mean(image, 1, output=np.zeros((4, 5))), ValueError, "shape"),
        (lambda: chunkwise.mean(image, 1, output=[1]), TypeError, ""),
        (lambda: chunkwise.mean(image, 1, backend="gpu"), ValueError, "backend"),
        (lambda: chunkwise.mean(image, 1, threads=0), ValueError, "threads"),
        (lambda: chunkwise.mean(image, 1, memory="-1"), ValueError, "memory"),
        (lambda: chunkwise.mean(image, 1, memory=0), ValueError, "memory"),
        (lambda: chunkwise.mean(image, 1, devices=[7]), ValueError, "device 7"),
        (lambda: chunkwise.difference(image, image[:3]), ValueError, "minus"),
        (lambda: chunkwise.percentile(image, 1, 101), ValueError, "from 0 to 100"),
        (lambda: chunkwise.mean(image.astype("u1"), 1, mode="constant", cval=300), ValueError, "cval: 300"),
        (lambda: chunkwise.convolve(image, kernel=np.ones((2, 2, 2))), ValueError, "8 numbers"),
        (lambda: chunkwise.convolve(image, kernel=np.ones((3, 3, 3, 3))), ValueError, "kernel"),
        (lambda: chunkwise.entropy(image, 1), ValueError, "range"),
        (lambda: chunkwise.sat(np.full((4, 4), 2**63, "u8")), ValueError, ""),
        (lambda: chunkwise.gaussian(image), ValueError, "sigma"),
        (lambda: chunkwise.gaussian(image, 1, variance=2), ValueError, "variance: it is given beside"),
        (lambda: chunkwise.gaussian(image, 1, cutoff=2, kernel="discrete"), ValueError, "only with kernel='sampled'"),
        (lambda: chunkwise.mean(image, 1, cval=5), ValueError, "only with mode='constant'"),
        (lambda: filters.Mean(radius=1) | 3, TypeError, ""),
        (lambda: filters.Mean(radius=1) | filters.Sat(), ValueError, "sequence"),
        (lambda: filters.Mean(radius=1).replaced(sigma=1), TypeError, "sigma"),
    ):
        with pytest.raises(error, match=text or None):
            call()
    # In Python's words: names, also of others, and axes by NumPy's count.
    for call, text in (
        (lambda: chunkwise.log(image, 1e-6), r"sigma: 1e-06 along axis 2 with cutoff 4 "),
        (lambda: chunkwise.log(image, (1e-6, 1, 1)), r"sigma: 1e-06 along axis 0 with cutoff 4 "),
        (lambda: chunkwise.gaussian(image, 1, variance=2), r"variance: it is given beside sigma,"),
        (lambda: chunkwise.mean(image, 1, empty_value=3), r"empty_value: 3 has no effect .* such as mask"),
    ):
        with pytest.raises(chunkwise.ParameterError, match=text):
            call()
    with pytest.raises(chunkwise.ParameterError) as caught:
        chunkwise.percentile(image, 1, 101)
    assert (caught.value.parameter, caught.value.value) == ("percentile", "101")
    assert caught.value.allowed == "a finite number from 0 to 100"
    with pytest.raises(chunkwise.ParameterError, match="^devices: there is no device 7"):
        chunkwise.mean(image, 1, devices=[7])
    with pytest.raises(chunkwise.ParameterError) as caught:
        chunkwise.mean(image, 1, threads=0)
    assert caught.value.parameter is None
    if not chunkwise.devices():
        assert chunkwise.why_no_devices()
        with pytest.raises(chunkwise.Error, match="no device"):
            chunkwise.mean(image, 1, backend="cuda")


def test_errors_are_in_pythons_words(random):
    image = make_image(random, (4, 5, 6), "uint8")
    both = filters.Gaussian(sigma=1.0) | filters.Mean(radius=1)
    ones = np.ones((1, 3, 3))
    for call, name, text in (
        (lambda: both(image.astype("f4"), output="u1"), "output", "output: .* of float32 cannot give uint8; it must be float32"),
        (lambda: chunkwise.median(image, 1, output="i8"), "output", "output: rank of uint8 cannot give int64; it must be uint8"),
        (lambda: chunkwise.maximum(image, 1, output="i8"), "output", "output: extremum of uint8 cannot give int64"),
        (lambda: filters.Median(radius=1).plan(image.shape, "u1", "i8"), "output", "output: rank of uint8 cannot give"),
        (lambda: chunkwise.sat(image, output="i2"), "output", "output: a summed-area table of uint8 cannot give int16"),
        (lambda: chunkwise.convolve_image(image, ones * np.nan), "kernel_image", "kernel_image: a weight is nan"),
        (lambda: chunkwise.convolve_image(image, ones, method="fft", transform_provider="cufft", backend="cpu", output="f4"),
         "transform_provider", "transform_provider: cufft is asked for, but libcufft"),
        (lambda: chunkwise.clear_border(image[0], axes=0), "axes",
         "axes: neighbours lie along axes that follow each other from x on, and axis 1 is missing"),
        (lambda: chunkwise.closing(image, 1, mask=np.ones(image.shape)), "mask", "mask: its voxels are float64; .* are weights$"),
        (lambda: chunkwise.convolve(image, kernel=np.ones((0, 3))), None, r"kernel: its shape is \(0, 3\), it has no weights"),
        (lambda: chunkwise.mean(image, 2**70), None, "radius: 1180591620717411303424 is beyond 64-bit"),
        (lambda: chunkwise.log(image, 1, spacing=(1e-300, 1, 1), output="f8"), None, "scale along axis 0 is inf"),
    ):
        with pytest.raises(chunkwise.ParameterError, match=text) as caught:
            call()
        assert caught.value.parameter == name and not re.search("[a-z][A-Z]", str(caught.value).replace("libChunkwise", ""))

    def watch(fraction):
        raise chunkwise.ParameterError("Radius: along axis 0")

    with pytest.raises(chunkwise.ParameterError, match="^Radius: along axis 0$"):
        chunkwise.mean(image, 1, progress=watch)


def test_budgets(random):
    image = make_image(random, (40, 50, 60), "float32")
    with pytest.raises(MemoryError) as error:
        chunkwise.gaussian(image, 3.0, memory=1)
    assert isinstance(error.value, chunkwise.BudgetError) and error.value.needed > error.value.budget == 1
    assert np.array_equal(chunkwise.gaussian(image, 3.0, memory="1M"), chunkwise.gaussian(image, 3.0))
    before = chunkwise.budgets()
    chunkwise.set_budgets(memory="2M")
    try:
        assert chunkwise.budgets().host == 2**21
        assert np.array_equal(chunkwise.gaussian(image, 3.0, memory="1M"), chunkwise.gaussian(image, 3.0))
        assert chunkwise.held_memory().host <= 2**21
    finally:
        chunkwise.set_budgets()
    assert chunkwise.budgets() == before
    chunkwise.release_memory()
    assert chunkwise.held_memory().host == 0
    plan = filters.Gaussian(sigma=3.0).plan(image.shape, memory="200K")
    assert len(plan.chunks) > 1
    covered = np.zeros(image.shape, int)
    for region in plan.chunks:
        covered[region.output] += 1
    assert (covered == 1).all()


@pytest.mark.parametrize("call", [
    lambda x, **given: chunkwise.gaussian(x, 2.0, **given),
    lambda x, **given: chunkwise.median(x, 2, **given),
    lambda x, **given: chunkwise.percentile(x, (0, 0, 30), percentile=30, **given),
    lambda x, **given: chunkwise.std(x, 2, **given),
    lambda x, **given: chunkwise.sat(x, **given),
    lambda x, **given: chunkwise.reconstruct(x, np.minimum(x, 0.5), **given),
    lambda x, **given: chunkwise.h_maxima(x, 0.1, **given),
    lambda x, **given: chunkwise.opening_by_reconstruction(x, 1, **given),
    lambda x, **given: chunkwise.hysteresis(x, 0.5, 0.9, **given),
    lambda x, **given: chunkwise.label(x > 0.5, **given),
    lambda x, **given: chunkwise.watershed(x, **given),
    lambda x, **given: chunkwise.distance(x > 0.1, **given),
    lambda x, **given: chunkwise.expand_labels((x * 40).astype("uint32"), 2.0, **given),
])
@pytest.mark.filterwarnings("ignore")
def test_a_budget_that_is_too_small_names_one_that_is_enough_and_not_much_more(random, call):
    image = random.random((40, 60, 60), "float32")
    with pytest.raises(chunkwise.BudgetError) as error:
        call(image, memory=1000)
    np.testing.assert_array_equal(call(image, memory=error.value.needed), call(image))
    with pytest.raises(chunkwise.BudgetError):
        call(image, memory=int(0.9 * error.value.needed))


def test_automatic_parameters(random):
    image = make_image(random, (12, 13, 14), "float32")
    noise = chunkwise.variance(image, 1, output="float32").astype("f8").mean()
    f = filters.Wiener(radius=1, noise_variance="auto").resolved(image)
    assert f.parameters["noise_variance"] == pytest.approx(noise, rel=1e-6)
    assert np.array_equal(chunkwise.wiener(image, 1, "auto"), f(image))
    g = filters.Entropy(radius=1, range="auto")
    assert g.is_automatic and g.resolved(image).parameters["range"] == (image.min(), image.max())
    assert np.array_equal(g(image), g.resolved(image)(image))


def test_progress_and_what_it_raises(random):
    image = make_image(random, (60, 60, 60), "float32")
    seen = []
    chunkwise.nlm(image, 1, 1.0, progress=seen.append)
    assert seen[0] == 0 and seen[-1] == 1 and seen == sorted(seen)

    def fails(fraction):
        raise ZeroDivisionError(fraction)

    with pytest.raises(ZeroDivisionError):
        chunkwise.nlm(image, 1, 1.0, progress=fails)
    assert chunkwise.mean(image, 1).shape == image.shape


def test_signals_stop_a_run(random):
    image = make_image(random, (150, 150, 150), "float32")
    output = np.empty_like(image)

    class Alarm(Exception):
        pass

    def handler(*_):
        raise Alarm

    former = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(Alarm):
            chunkwise.nlm(image, 5, 1.0, output=output)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)
    assert chunkwise.mean(image[:3], 1).shape == (3, 150, 150)


def test_other_threads_go_on(random):
    image = make_image(random, (80, 80, 80), "float32")
    expected = chunkwise.nlm(image, 1, 1.0)
    results, ticks, ends = [], [0], threading.Event()

    def tick():
        while not ends.is_set():
            ticks[0] += 1
            time.sleep(0.001)

    threads = [threading.Thread(target=lambda: results.append(chunkwise.nlm(image, 1, 1.0))) for _ in range(2)]
    counter = threading.Thread(target=tick)
    for each in (counter, *threads):
        each.start()
    for each in threads:
        each.join()
    ends.set()
    counter.join()
    assert ticks[0] > 3 and len(results) == 2
    assert all(np.array_equal(each, expected) for each in results)


def in_child(connection, image, threads):
    connection.send(chunkwise.gaussian(image, 2.0, threads=threads))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes(random, method):
    image = make_image(random, (40, 41, 42), "float32")
    for threads in (None, 3):
        expected = chunkwise.gaussian(image, 2.0, threads=threads)
        context = multiprocessing.get_context(method)
        mine, theirs = context.Pipe()
        child = context.Process(target=in_child, args=(theirs, image, threads))
        child.start()
        assert mine.poll(60), "the child hangs"
        assert np.array_equal(mine.recv(), expected)
        child.join(20)
        assert child.exitcode == 0


@pytest.fixture
def small_model(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[2] / "test" / "program"))
    from adversary.networks import small_model as make

    path = tmp_path / "small.onnx"
    path.write_bytes(make())
    return path


def test_channels_of_a_network_are_components(small_model, random):
    for shape in ((9, 11, 13), (2, 6, 7, 8)):
        image = random.normal(size=shape).astype("float32")
        made = chunkwise.network(image, small_model, output_components=True, precision="reproducible")
        assert made.shape == (*shape, 3) and made.dtype == np.float32
        strided = np.full((3, *shape), np.nan)
        target = np.moveaxis(strided, 0, -1)
        assert chunkwise.network(image, small_model, output_components=True, precision="reproducible", output=target) is target
        for channel in range(3):
            one = chunkwise.network(image, small_model, channel=channel, precision="reproducible")
            assert np.array_equal(made[..., channel], one) and np.array_equal(strided[channel], one)
    made = chunkwise.filters.Network(small_model, output_components=True)
    for refused in (lambda: made(image, output=np.empty(shape, "float32")), lambda: made(np.zeros((1, 1, 4, 4, 4), "uint8")),
                    lambda: made.plan(shape), lambda: chunkwise.network(image, small_model, output_components=True, channel=1)):
        with pytest.raises(chunkwise.ParameterError):
            refused()


def test_precisions_of_a_network(small_model, random):
    image = random.normal(size=(9, 11, 13)).astype("float32")
    exact = chunkwise.network(image, small_model, precision="reproducible")
    for precision in ("float32", "tensorfloat32", "half"):
        result = chunkwise.network(image, small_model, precision=precision)
        assert np.abs(result - exact).max() <= 1e-2 * np.abs(exact).max()


@pytest.mark.parametrize("dtype", ["float32", "uint8", "int16"])
@pytest.mark.parametrize("cval", [1e300, -1e300, 3.5e38, 70000])
def test_a_constant_is_a_value_of_the_type(dtype, cval):
    image = np.ones((5, 6), dtype)
    if dtype == "float32" and cval == 70000:
        assert chunkwise.maximum(image, 1, mode="constant", cval=cval)[0, 0] == cval
        return
    for call in (chunkwise.mean, chunkwise.maximum, chunkwise.median):
        with pytest.raises(ValueError, match=f"cval: .* is not a value of the input's pixel type, {dtype}"):
            call(image, 1, mode="constant", cval=cval)
    with pytest.raises(ValueError, match="cval"):
        chunkwise.ndimage.uniform_filter(image, 3, mode="constant", cval=cval)
    if dtype == "float32":
        mask = np.zeros(image.shape, "uint8")
        with pytest.raises(ValueError, match="empty_value: .* is not a value of the output's pixel type, float32"):
            chunkwise.mean(image, 1, mask=mask, empty_value=cval)
        for edge in (np.inf, -np.inf, float(np.finfo("float32").max)):
            assert chunkwise.maximum(image, 1, mode="constant", cval=edge)[0, 0] == max(edge, 1)


@pytest.mark.parametrize("dtype, other", [("int64", "uint64"), ("uint64", "int64"), ("int32", "int64"),
                                          ("uint32", "int64")])
def test_sums_of_integers_are_exact_as_others(random, dtype, other):
    limits = np.iinfo(dtype)
    image = random.integers(limits.min, limits.max, (6, 7), dtype, endpoint=True)
    image[random.random(image.shape) < 0.5] = 2**53 // 9 + 1 if image.itemsize == 8 else 77
    ends = np.iinfo(other)
    for call, define in ((chunkwise.sum, sum), (chunkwise.range, lambda window: max(window) - min(window))):
        found = call(image, 1, output=other)
        assert found.dtype == other
        for at in np.ndindex(*image.shape):
            window = [int(each) for each in image[tuple(slice(max(i - 1, 0), i + 2) for i in at)].ravel()]
            assert int(found[at]) == min(max(define(window), ends.min), ends.max), (call.__name__, at)


@pytest.mark.skipif(not hasattr(os, "setgroups") or os.geteuid() != 0, reason="the limit of processes holds for other users than root alone")
def test_threads_that_cannot_be_started_are_done_without():
    code = textwrap.dedent("""
        import os, resource, numpy as np, chunkwise
        image = np.random.default_rng(1).random((40, 40, 40), "f4")
        marks = (image > 0.5).astype("u1")
        calls = {
            "mean": lambda **given: chunkwise.mean(image, 2, **given), "median": lambda **given: chunkwise.median(image, 1, **given),
            "gaussian": lambda **given: chunkwise.ndimage.gaussian_filter(image, 2, **given), "sat": lambda **given: chunkwise.sat(image, **given),
            "label": lambda **given: chunkwise.label(marks, **given), "distance": lambda **given: chunkwise.distance(marks, **given),
            "h_maxima": lambda **given: chunkwise.h_maxima(image, 0.1, **given),
            "convolve_image": lambda **given: chunkwise.convolve_image(image, np.ones((9, 9, 9), "f4"), **given),
        }
        whole = {name: call() for name, call in calls.items()}
        os.setgroups([])
        os.setgid(65534)
        resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
        os.setuid(65534)
        for name, call in calls.items():
            for given in ({"threads": 1}, {"threads": 4}, {}):
                assert np.array_equal(call(**given), whole[name])
    """)
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
