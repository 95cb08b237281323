# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""chunkwise.ndimage is scipy.ndimage, or raises."""
import inspect
import pickle
from concurrent.futures import ThreadPoolExecutor

import fuzz_ndimage
import numpy as np
import pytest
from conftest import make_image
from scipy import ndimage as scipy_ndi

import chunkwise
from chunkwise import filters
from chunkwise import ndimage as ndi

MODES = ("reflect", "grid-mirror", "nearest", "mirror", "constant", "grid-constant", "wrap", "grid-wrap")
TYPES = ("uint8", "int16", "uint16", "int32", "float32", "float64")

MORPHOLOGY = ("maximum_filter", "minimum_filter", "grey_erosion", "grey_dilation", "grey_opening", "grey_closing",
              "morphological_gradient", "morphological_laplace", "white_tophat", "black_tophat")


class Trial:
    """An image, and arguments that SciPy takes of it."""

    def __init__(self, random, dtypes=TYPES):
        self.random = random
        self.ndim = int(random.integers(1, 4))
        self.shape = tuple(int(each) for each in random.integers(1, {1: 60, 2: 20, 3: 11}[self.ndim], self.ndim))
        self.image = make_image(random, self.shape, random.choice(dtypes))
        self.axes = tuple(int(each) for each in random.permutation(self.ndim)[: random.integers(1, self.ndim + 1)])
        if random.random() < 0.6:
            self.axes = tuple(range(self.ndim))
        self.count = len(self.axes)

    def common(self, several=True):
        """A mode, or one for each axis where SciPy takes several."""
        if several and self.random.random() < 0.3:
            mode = [str(each) for each in self.random.choice(MODES, self.count)]
        else:
            mode = str(self.random.choice(MODES))
        given = {"mode": mode, "cval": float(self.random.integers(0, 100))}
        return given if len(self.axes) == self.ndim and list(self.axes) == sorted(self.axes) else {**given, "axes": self.axes}

    def extents(self, largest=9):
        """Even and odd, now and then larger than the image, and an origin."""
        extents = tuple(int(each) for each in self.random.integers(1, largest + 1, self.count))
        if self.random.random() < 0.4:
            return extents, {}
        return extents, {"origin": [int(self.random.integers(-(each // 2), (each - 1) // 2 + 1)) for each in extents]}

    def element(self, largest=5):
        """Its axes ascend, and its origins go with the axes' names unless these are all. With even extents SciPy
        mistakes one axis for another."""
        extents, _ = self.extents(largest)
        if list(self.axes) != sorted(self.axes):
            extents = tuple(each | 1 for each in extents)
        element = self.random.random(extents) < 0.6
        if list(self.axes) != sorted(self.axes):
            element.flat[0] = False  # of ones it would be a size, in the order of the axes
        element.flat[-1 if element.size > 1 else 0] = True
        place = {axis: each for axis, each in zip(sorted(self.axes), extents)}
        origin = [int(self.random.integers(-(place[axis] // 2), (place[axis] - 1) // 2 + 1)) for axis in
                  (self.axes if self.count < self.ndim else sorted(self.axes))]
        return element, {"origin": origin} if self.random.random() < 0.6 else {}


def real(image):
    return image if image.dtype.kind == "f" else image.astype(np.float64)


def close(ours, theirs):
    scale = max(1.0, float(np.abs(theirs).max(initial=0)))
    tolerance = 3e-6 if ours.dtype in (np.float32, np.complex64) else 1e-12
    assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance * scale)


def both(name, check, *arguments, **given):
    check(getattr(ndi, name)(*arguments, **given), getattr(scipy_ndi, name)(*arguments, **given))


def equal(ours, theirs):
    assert ours.dtype == theirs.dtype
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("seed", range(80))
def test_sums(random, seed):
    trial = Trial(random)
    image, count = real(trial.image), trial.count
    extents, origin = trial.extents()
    both("uniform_filter", close, image, extents, **trial.common(), **origin)
    sigma = tuple(float(each) for each in random.choice((0.0, 0.4, 1.0, 1.7, 2.5), count))
    given = {"truncate": float(random.choice((2.0, 4.0, 5.5)))} if random.random() < 0.5 else {}
    if not given and random.random() < 0.5:
        given = {"radius": tuple(int(each) for each in random.integers(0, 7, count))}
    both("gaussian_filter", close, image, sigma, **trial.common(), **given)
    element, origin = trial.element()
    weights = random.normal(size=element.shape)
    for name in ("correlate", "convolve"):
        both(name, close, image, weights, **trial.common(several=False), **origin)


@pytest.mark.parametrize("seed", range(40))
def test_derivatives(random, seed):
    trial = Trial(random, ("float32", "float64"))
    sigma = tuple(float(each) for each in random.choice((0.0, 0.7, 1.0, 1.4), trial.count))
    order = tuple(int(each) for each in random.integers(0, 4, trial.count))
    common = trial.common()
    both("gaussian_filter", close, trial.image, sigma, order, **common)
    both("laplace", close, trial.image, **common)
    common.pop("axes", None)
    width = float(random.choice((0.7, 1.0, 1.4)))
    mode = MODES[seed % len(MODES)] if seed % 3 else [MODES[(seed + each) % len(MODES)] for each in range(trial.ndim)]
    for name in ("gaussian_laplace", "gaussian_gradient_magnitude"):
        both(name, close, trial.image, width, mode=mode, cval=common["cval"], truncate=3.0)
    for name in ("sobel", "prewitt"):
        both(name, close, trial.image, int(random.integers(-trial.ndim, trial.ndim)), mode=mode, cval=common["cval"])


@pytest.mark.parametrize("truncate", [4.0, 100.0])
def test_narrow_and_long_kernels(random, truncate):
    """Weights that are 0 in double precision change nothing."""
    image = random.normal(size=(12, 13))
    for sigma in (0.01, 0.05, 0.1, 0.25, 0.6, 2.0):
        for order in (0, (0, 1), (2, 0), (1, 1), (3, 0), (0, 4)):
            both("gaussian_filter", close, image, sigma, order, truncate=truncate)
        both("gaussian_laplace", close, image, sigma, truncate=truncate)
        both("gaussian_gradient_magnitude", close, image, sigma, truncate=truncate)
    both("gaussian_filter", close, image, 0.3, (0, 1), radius=40)


@pytest.mark.parametrize("seed", range(40))
def test_filters_along_one_axis(random, seed):
    trial = Trial(random)
    axis = int(random.integers(-trial.ndim, trial.ndim))
    size = int(random.integers(1, 9))
    given = {"mode": str(random.choice(MODES)), "cval": float(random.integers(0, 100)), "axis": axis}
    origin = {"origin": int(random.integers(-(size // 2), (size - 1) // 2 + 1))}
    for name in ("maximum_filter1d", "minimum_filter1d"):
        both(name, equal, trial.image, size, **given, **origin)
    image = real(trial.image)
    both("uniform_filter1d", close, image, size, **given, **origin)
    both("gaussian_filter1d", close, image, 1.3, order=int(random.integers(0, 3)), **given)
    for name in ("correlate1d", "convolve1d"):
        both(name, close, image, random.normal(size=size), **given, **origin)


@pytest.mark.parametrize("seed", range(80))
def test_ranks_and_morphology_are_equal(random, seed):
    trial = Trial(random, TYPES + ("bool",) if seed % 4 == 0 else TYPES)
    image = trial.image
    extents, origin = trial.extents(7)
    element, element_origin = trial.element()
    heights = random.integers(-5, 6, element.shape)
    for name in MORPHOLOGY:
        if image.dtype.kind == "b" and name in ("morphological_gradient", "morphological_laplace"):
            continue
        both(name, equal, image, extents, **trial.common(), **origin)
        both(name, equal, image, footprint=element, **trial.common(several=element.all()), **element_origin)
    if image.dtype.kind == "f":
        wide = image.astype(np.float64)
        for name in MORPHOLOGY[2:]:
            both(name, close, wide, structure=heights, **trial.common(several=False), **element_origin)
            both(name, close, wide, structure=heights, footprint=element, **trial.common(several=False), **element_origin)
    both("grey_dilation", equal, image, structure=np.zeros(element.shape), **trial.common(several=False))
    for window, shift in ((dict(footprint=element), element_origin), (dict(size=element.shape), element_origin),
                          (dict(size=int(random.integers(1, 6))), {})):
        voxels = int(np.count_nonzero(window["footprint"])) if "footprint" in window else int(
            np.prod(np.broadcast_to(window["size"], trial.count)))
        common = trial.common(several=False)
        rank = int(random.integers(-voxels, voxels))
        percentile = float(random.choice((0, 1, 10, 25, 33.3, 50, 75, 90, 99, 100, -10, -37.5)))
        for name, *arguments in (("median_filter",), ("rank_filter", rank), ("percentile_filter", percentile)):
            if trial.ndim == 1 and "footprint" in window:
                # SciPy takes all voxels of the window of a row, so it gets an image of one row.
                footprint, origin = window["footprint"][np.newaxis], (0, shift.get("origin", [0])[0])
                theirs = getattr(scipy_ndi, name)(image[np.newaxis], *arguments, footprint=footprint, origin=origin,
                                                  mode=common["mode"], cval=common["cval"])[0]
                equal(getattr(ndi, name)(image, *arguments, **window, **common, **shift), theirs)
            else:
                both(name, equal, image, *arguments, **window, **common, **shift)


@pytest.mark.parametrize("seed", range(80))
def test_binary_morphology_is_equal(random, seed):
    trial = Trial(random, ("bool", "uint8", "float32"))
    image = np.where(random.random(trial.shape) < random.choice((0.3, 0.6, 0.9)), trial.image, 0).astype(trial.image.dtype)
    given = {"axes": trial.axes}
    structure = None
    if seed % 3 == 0:
        structure, origin = trial.element()
        given |= origin
    elif seed % 3 == 1:
        structure = scipy_ndi.generate_binary_structure(trial.count, int(random.integers(1, trial.count + 1)))
    mask = None if random.random() < 0.5 else random.random(trial.shape) < 0.6
    border = int(random.integers(0, 2))
    # SciPy's lists of voxels crash with some structures and masks.
    given["brute_force"] = True
    center = structure is None or seed % 3 == 1
    for name in ("binary_erosion", "binary_dilation", "binary_opening", "binary_closing"):
        for iterations in (1, 3, 20, -1) if center else (1,):
            both(name, equal, image, structure, iterations=iterations, mask=mask, border_value=border, **given)
    given.pop("brute_force")
    if center:
        both("binary_propagation", equal, image, structure, mask=mask, border_value=border, **given)
        both("binary_fill_holes", equal, image, structure, **given)
    second = None if structure is None else random.random(structure.shape) < 0.3
    both("binary_hit_or_miss", equal, image, structure, second, axes=trial.axes)
    both("binary_hit_or_miss", equal, image, structure, axes=trial.axes)


def test_structures():
    for rank in range(4):
        for connectivity in range(5):
            equal(ndi.generate_binary_structure(rank, connectivity), scipy_ndi.generate_binary_structure(rank, connectivity))
    element = np.array([[0, 1, 0], [1, 1, 0]])
    for iterations in range(4):
        equal(ndi.iterate_structure(element, iterations), scipy_ndi.iterate_structure(element, iterations))
    ours, origin = ndi.iterate_structure(element, 2, (0, -1))
    assert origin == scipy_ndi.iterate_structure(element, 2, (0, -1))[1]
    equal(ours, scipy_ndi.iterate_structure(element, 2, (0, -1))[0])


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_linear_filters_of_complex_images(random, dtype):
    image = (random.normal(size=(7, 9)) + 1j * random.normal(size=(7, 9))).astype(dtype)
    weights = random.normal(size=(3, 2)) + 1j * random.normal(size=(3, 2))
    for name, *arguments in (("uniform_filter", 4), ("gaussian_filter", 1.5), ("gaussian_filter", 1.5, (0, 1)), ("sobel",),
                             ("laplace",), ("correlate", weights.real), ("convolve", weights.real), ("correlate", weights),
                             ("convolve", weights), ("correlate1d", weights[0]), ("convolve1d", weights[0])):
        both(name, close, image, *arguments)
        both(name, close, image, *arguments, mode="constant", cval=2.0)
    for name in ("correlate", "convolve"):
        both(name, close, image, weights, mode="constant", cval=1 - 2j)
        both(name, close, image.real, weights)
    output = np.empty(image.shape, dtype)
    assert ndi.uniform_filter(image, 3, output=output) is output
    with pytest.raises(TypeError, match="complex"):
        ndi.median_filter(image, 3)
    with pytest.raises(ValueError, match="result is complex"):
        ndi.gaussian_filter(image, 1, output=np.empty(image.shape))


def test_types_of_numpy(random):
    """bool, half precision, byte order, and places that are not aligned."""
    image = random.random((8, 9)) < 0.5
    for made in (ndi.maximum_filter, ndi.median_filter, ndi.uniform_filter):
        assert made(image, 3).dtype == bool and set(np.unique(made(image, 3).view("uint8"))) <= {0, 1}
    equal(ndi.median_filter(image, 3), scipy_ndi.median_filter(image, 3))
    assert np.array_equal(ndi.uniform_filter(image, 3), scipy_ndi.uniform_filter(image.astype(float), 3) > 0.5)
    close(ndi.uniform_filter(image, 3, output=np.float32), scipy_ndi.uniform_filter(image, 3, output=np.float32))
    half = random.normal(size=(8, 9)).astype(np.float16)
    for name, argument in (("gaussian_filter", 1.0), ("median_filter", 2), ("grey_opening", 3), ("sobel", 0)):
        both_of = getattr(ndi, name)
        close(both_of(half, argument), getattr(scipy_ndi, name)(half.astype(np.float32), argument))
        assert both_of(half, argument, output=np.float16).dtype == np.float16
    swapped = random.normal(size=(8, 9)).astype(">f4")
    buffer = np.zeros(8 * 9 * 4 + 1, "uint8")[1:].view("f4").reshape(8, 9)
    buffer[...] = swapped
    for each in (swapped, buffer):
        close(ndi.gaussian_filter(each, 1.0), scipy_ndi.gaussian_filter(each, 1.0))
        equal(ndi.rank_filter(each, 2, 4), scipy_ndi.rank_filter(each, 2, 4))
    assert ndi.gaussian_filter(half.astype(float), 1.0, output=np.dtype(">f8")).dtype == np.dtype(">f8")


def test_sums_of_integers(random):
    image = make_image(random, (9, 10, 11), "uint8")
    # Even sizes: the sums are exact, and so are ties.
    exact = scipy_ndi.uniform_filter(image.astype(np.float64), 4)
    assert np.array_equal(ndi.uniform_filter(image, 4), np.rint(np.round(exact, 9)).astype(np.uint8))
    both("sobel", equal, image, 1, output=np.int32)
    both("laplace", equal, image.astype(np.int16))
    assert np.array_equal(ndi.laplace(image), scipy_ndi.laplace(image.astype(np.int64)).astype(np.uint8))
    derivative = scipy_ndi.gaussian_filter(image.astype(float), 1.0, (0, 0, 1))
    assert np.array_equal(ndi.gaussian_filter(image, 1.0, (0, 0, 1), output=np.int16), np.rint(derivative).astype(np.int16))


def test_means_of_integers_beyond_edges_of_several_modes(random):
    # One axis after the other: the constant is there what the sums before it are.
    image = make_image(random, (9, 10, 11), "int16")
    for size, mode in (((4, 2, 6), "constant"), ((7, 9, 4), ["reflect", "constant", "wrap"]), ((2, 4, 4), ["constant"] * 3)):
        exact = scipy_ndi.uniform_filter(image.astype(np.float64), size, mode=mode, cval=700)
        ours = ndi.uniform_filter(image, size, mode=mode, cval=700)
        assert np.abs(ours - exact).max() <= 0.5 + 1e-9


def test_images_without_voxels_have_no_extension():
    empty = np.zeros((3, 0, 4))
    for mode in MODES:
        for made in (ndi.grey_closing, ndi.grey_erosion, ndi.white_tophat):
            assert made(empty, structure=np.ones((3, 3, 3)), mode=mode).shape == empty.shape
    assert ndi.generic_filter1d(empty, None, 3).shape == empty.shape


def test_random_calls_are_those_of_scipy():
    """Some of the calls that fuzz_ndimage.py makes by the thousand."""
    cases = [fuzz_ndimage.Case(np.random.default_rng((41, number))) for number in range(400)]
    results = [(fuzz_ndimage.compare(case)[0], str(case)) for case in cases]
    assert [text for way, text in results if way in ("different", "crashed")] == []
    assert sum(way in ("equal", "rounded") for way, _ in results) > 350


def test_ranks_do_not_see_nan(random):
    image = random.normal(size=(30, 40)).astype(np.float32)
    image[random.random(image.shape) < 0.3] = np.nan
    footprint = np.ones((3, 3), bool)
    odd = np.zeros((5, 5), bool)
    odd[1:4, 1:4] = footprint
    for rank in (2, 4, 7):
        # The same window by NumPy and by the engine.
        assert np.array_equal(ndi.rank_filter(image, rank, footprint=odd), ndi.rank_filter(image, rank, 3), equal_nan=True)


def test_images_of_more_axes_than_windows_have(random):
    image = random.normal(size=(5, 6, 4, 7))
    for name, *arguments in (("uniform_filter", 3), ("gaussian_filter", 1.0), ("maximum_filter", (2, 3, 4, 1)), ("median_filter", 2),
                             ("sobel",), ("laplace",), ("grey_opening", 3)):
        both(name, close, image, *arguments)


def test_generic_functions(random):
    image = random.normal(size=(7, 8))

    def difference(input, axis, output, mode, cval, weight, sign=1):
        return scipy_ndi.correlate1d(input, [weight, 0, sign], axis, output, mode, cval)

    for name in ("generic_laplace", "generic_gradient_magnitude"):
        both(name, close, image, difference, extra_arguments=(-1,), extra_keywords={"sign": 2})
        both(name, close, image, difference, mode=["wrap"], extra_arguments=(-1,), axes=1)


@pytest.mark.parametrize("seed", range(12))
def test_functions_of_windows(random, seed):
    trial = Trial(random)
    trial.axes = tuple(range(trial.ndim))  # SciPy takes no others with some modes
    trial.count, image = trial.ndim, real(trial.image)
    extents, origin = trial.extents(4)
    both("generic_filter", close, image, np.std, extents, **trial.common(several=False), **origin)
    element, origin = trial.element(4)
    both("generic_filter", close, image, lambda voxels, power, by=1: (voxels ** power).sum() * by, footprint=element,
         extra_arguments=(2,), extra_keywords={"by": 3}, **trial.common(several=False), **origin)

    def differences(line, result, by):
        result[...] = by * (line[size - 1:] - line[: len(result)])

    size = int(random.integers(1, 6))
    given = {"mode": str(random.choice(MODES)), "cval": 3.0, "origin": int(random.integers(-(size // 2), (size - 1) // 2 + 1))}
    both("generic_filter1d", close, image, differences, size, int(random.integers(-trial.ndim, trial.ndim)), extra_arguments=(0.5,), **given)


def test_functions_of_windows_of_integers():
    image = np.array([[1, 2, 4], [8, 16, 32]], np.uint8)
    assert ndi.generic_filter(image, np.mean, (1, 2)).tolist() == [[1, 2, 3], [8, 12, 24]]  # 1.5 is 2, and 3 is 3
    assert ndi.generic_filter(image[:0], np.mean, 3).shape == (0, 3)
    output = np.empty(image.shape)
    assert ndi.generic_filter(image, np.max, 3, output=output) is output


@pytest.mark.parametrize("mode", ["reflect", "nearest", "mirror", "wrap", "constant", "valid"])
def test_functions_of_many_windows(random, mode):
    if not hasattr(scipy_ndi, "vectorized_filter"):
        pytest.skip("this SciPy is older")
    image = random.normal(size=(5, 6, 7)).astype(np.float32)
    element = random.random((3, 2)) < 0.6
    element[1, 1] = True
    for memory in (2**30, 2000):  # all windows at once, or some
        for given in ({"size": (1, 2, 3)}, {"size": 3, "axes": (2, 0)}, {"footprint": element, "axes": (0, 1)}):
            if mode != "valid":
                given["origin"] = (0, -1) if "axes" in given else (0, -1, 1)
            both("vectorized_filter", close, image, np.mean, mode=mode, batch_memory=memory, **given)
    both("vectorized_filter", equal, image, np.max, size=2, mode=mode)
    output = np.zeros((5, 6, 7), np.float64)
    if mode == "valid":
        with pytest.raises(chunkwise.ParameterError, match=r"output: its shape is \(5, 6, 7\), the result's is \(4, 5, 6\)"):
            ndi.vectorized_filter(image, np.max, size=2, mode=mode, output=output)
    else:
        assert ndi.vectorized_filter(image, np.max, size=2, mode=mode, output=output) is output
        np.testing.assert_array_equal(output, scipy_ndi.vectorized_filter(image, np.max, size=2, mode=mode))
    with pytest.raises(chunkwise.ParameterError, match="batch_memory: 10 bytes; windows .* have 5040"):
        ndi.vectorized_filter(image, np.max, size=(1, 5, 6), mode="reflect", batch_memory=10)


def test_names_that_are_not_here():
    with pytest.raises(AttributeError, match="chunkwise.watershed"):
        ndi.watershed_ift  # noqa: B018
    with pytest.raises(AttributeError, match="^chunkwise.ndimage has no median_filters$"):
        ndi.median_filters  # noqa: B018
    assert not set(ndi._INSTEAD) & set(ndi.__all__) and set(ndi._INSTEAD) <= set(scipy_ndi.__all__)


@pytest.mark.parametrize("name", ["gaussian", "uniform", "shift", "ellipsoid"])
@pytest.mark.parametrize("shape", [(1,), (31,), (16, 1), (9, 12), (6, 7, 5)])
def test_factors_of_fourier_transforms_are_those_of_scipy(random, name, shape):
    ours, theirs = (getattr(module, f"fourier_{name}") for module in (ndi, scipy_ndi))
    image = random.normal(size=shape)
    for size in (2.5, 61.0, tuple(1.5 + i for i in range(len(shape)))):
        whole, half = np.fft.fftn(image), np.fft.rfft(image, axis=-1)
        np.testing.assert_allclose(ours(whole, size), theirs(whole, size), atol=1e-9, rtol=0)
        np.testing.assert_allclose(ours(half, size, shape[-1]), theirs(half, size, shape[-1]), atol=1e-9, rtol=0)
        for dtype in ("int16", "float32", "complex64"):
            given = np.ones(shape, dtype)
            assert ours(given, size).dtype == theirs(given, size).dtype
    output = np.empty(shape, np.complex64)
    assert ours(image, 3.0, output=output) is output


@pytest.mark.parametrize("dtype", [">c8", ">c16", ">f4", "int16"])
def test_factors_of_fourier_transforms_take_other_types(random, dtype):
    given = (random.normal(size=(6, 7)) + 1j * random.normal(size=(6, 7))).astype(dtype)
    result, expected = ndi.fourier_gaussian(given, 1.5), scipy_ndi.fourier_gaussian(given, 1.5)
    assert np.iscomplexobj(result) == np.iscomplexobj(given)
    np.testing.assert_allclose(result, expected, rtol=1e-6)
    assert ndi.fourier_gaussian(given.astype(np.clongdouble), 1.5).dtype == np.complex128


def test_options_are_checked_where_numpy_computes(random):
    image, footprint = random.normal(size=(4, 5, 6, 7)), np.ones((2, 2, 2, 3))
    for call in (lambda **options: ndi.label(image > 0, **options), lambda **options: ndi.spline_filter(image, **options),
                 lambda **options: ndi.zoom(image, 1.5, order=2, **options),
                 lambda **options: ndi.median_filter(image, footprint=footprint, **options)):
        with pytest.raises(TypeError, match="bogus"):
            call(bogus=3)
        for options, words in (({"threads": 0}, "threads: 0"), ({"threads": 5000}, "threads: 5000"), ({"backend": "cuda"}, "backend: 'cuda'")):
            with pytest.raises(chunkwise.ParameterError, match=words):
                call(**options)


def test_labels_of_four_axes_fit_their_type():
    image = np.zeros((8, 8, 8, 16), bool)
    image[::2, ::2, ::2, ::2] = True
    labels, count = ndi.label(image, output="auto")
    assert count == 512 and labels.dtype == np.uint16 and labels.max() == 512
    for output in (np.uint8, np.zeros(image.shape, np.uint8), bool):
        with pytest.raises(chunkwise.Error, match="and there are 512 objects"):
            ndi.label(image, output=output)


def test_factors_of_fourier_transforms_filter_periodic_images(random):
    image = random.normal(size=(15, 16))
    moved = np.fft.ifftn(ndi.fourier_shift(np.fft.fftn(image), (3, -2))).real
    np.testing.assert_allclose(moved, np.roll(image, (3, -2), (0, 1)), atol=1e-12)
    for given, named, words in (((1.0, 1.0, 1.0), {}, "sigma: 3 numbers for 2 axes"), (np.nan, {}, "sigma: nan is not finite"),
                                (1.0, {"n": 0}, "n: "), (1.0, {"axis": 2}, "axis: 2"), (1.0, {"output": np.int32}, "output: int32")):
        with pytest.raises(chunkwise.ParameterError, match=words):
            ndi.fourier_gaussian(image, given, **named)
    with pytest.raises(chunkwise.ParameterError, match="output: float64 cannot hold"):
        ndi.fourier_gaussian(image.astype(complex), 1.0, output=np.float64)
    with pytest.raises(chunkwise.ParameterError, match="input: it has 4 dimensions"):
        ndi.fourier_ellipsoid(np.ones((2, 2, 2, 2)), 1.0)


def test_integers_are_rounded_to_the_nearest(random):
    image = make_image(random, (9, 10, 11), "uint8")
    exact = scipy_ndi.uniform_filter(image.astype(np.float64), 3)
    assert np.array_equal(ndi.uniform_filter(image, 3), np.rint(exact).astype(np.uint8))
    assert ndi.gaussian_filter(image, 1.0).dtype == np.uint8


@pytest.mark.parametrize("name, arguments", [
    ("uniform_filter", (3,)), ("gaussian_filter", (1,)), ("maximum_filter", (3,)), ("grey_closing", (3,)), ("median_filter", (3,)),
    ("rank_filter", (2, (2, 4))), ("minimum_filter1d", (4,))])
@pytest.mark.parametrize("dtype", ["float32", "uint8", "int16", "bool"])
@pytest.mark.parametrize("wanted", ["uint16", "int32", "int64"])
def test_results_of_other_integers(random, name, arguments, dtype, wanted):
    image = make_image(random, (9, 12), dtype) if dtype == "bool" else random.integers(0, 100, (9, 12)).astype(dtype)
    real = getattr(scipy_ndi, name)(image.astype(float), *arguments)
    for output in (np.dtype(wanted), np.zeros(image.shape, wanted)):
        result = getattr(ndi, name)(image, *arguments, output=output)
        assert result.dtype == wanted
        np.testing.assert_array_less(np.abs(result - real), 0.5 + 1e-4)
    np.testing.assert_array_equal(output, result)
    # Integers are left as they are where they fit, wrap around where they do not, and real numbers are cut.
    large = np.array([[-3, 70000, 5]])
    assert ndi.maximum_filter(large, 1, output=np.uint8).tolist() == (large % 256).tolist()
    assert ndi.maximum_filter(large * 1.0, 1, output=np.uint8).tolist() == [[0, 255, 5]]
    assert ndi.median_filter(np.zeros((3, 0, 2)), 3, output=np.zeros((3, 0, 2), wanted)).size == 0


def test_results_go_where_they_are_wanted(random):
    image = make_image(random, (6, 7, 8), "float32")
    expected = scipy_ndi.maximum_filter(image, 3)
    output = np.empty((6, 7, 8), "float64")
    assert ndi.maximum_filter(image, 3, output=np.empty_like(image)).dtype == np.float32
    assert ndi.uniform_filter(image, 3, output=output) is output
    # As SciPy, over the input itself.
    assert ndi.maximum_filter(image, 3, output=image) is image
    assert np.array_equal(image, expected)
    assert np.array_equal(ndi.white_tophat(image, 3, output=image), image)


@pytest.mark.parametrize("call, text", [
    (lambda x: ndi.uniform_filter(x, 3, mode=["reflect", "wrap"]), "mode: 2 numbers for 3 axes"),
    (lambda x: ndi.uniform_filter(x, 3, mode="periodic"), "is none of"),
    (lambda x: ndi.correlate(x, np.ones((3, 3, 3)), mode=["wrap"] * 3), "not for a footprint, a structure or weights"),
    (lambda x: ndi.uniform_filter(x, 0), "at least 1"),
    (lambda x: ndi.uniform_filter(x, 2.5), "whole number"),
    (lambda x: ndi.uniform_filter(x, (3, 3)), "2 numbers for 3 axes"),
    (lambda x: ndi.uniform_filter(x, 3, origin=2), "origin: 2 with size 3; it can be from -1 to 1"),
    (lambda x: ndi.uniform_filter(x, 3, origin=(0, 0)), "origin: 2 numbers for 3 axes"),
    (lambda x: ndi.uniform_filter(x, 3, axes=(0, 0)), "twice"),
    (lambda x: ndi.uniform_filter(x, 3, axes=(0, 3)), "axes: 3 is not an axis of an array of 3 dimensions"),
    (lambda x: ndi.sobel(x, -4), "axis: -4 is not an axis"),
    (lambda x: ndi.maximum_filter(x, footprint=np.zeros((3, 3, 3))), "no voxels"),
    (lambda x: ndi.median_filter(x, footprint=np.zeros((3, 3, 3))), "no voxels"),
    (lambda x: ndi.maximum_filter(x), "size"),
    (lambda x: ndi.median_filter(x, footprint=np.ones((3, 3))), "2 dimensions"),
    (lambda x: ndi.rank_filter(x, 27, 3), "27 is not a rank"),
    (lambda x: ndi.percentile_filter(x, 101, 3), "101"),
    (lambda x: ndi.gaussian_filter(x, -1), "sigma"),
    (lambda x: ndi.gaussian_filter(x, 1, order=-1), "order"),
    (lambda x: ndi.gaussian_filter(x, 1, radius=-1), "radius"),
    (lambda x: ndi.gaussian_filter(x.astype("uint8"), 1, order=1), "output=np.float32"),
    (lambda x: ndi.correlate(x, np.ones((3, 3))), "2 dimensions"),
    (lambda x: ndi.correlate(x[None], np.ones((3, 3, 3, 3))), "4 axes"),
    (lambda x: ndi.correlate1d(x, np.ones((3, 3))), "one row"),
    (lambda x: ndi.binary_erosion(x, np.ones(3)), "1 dimensions"),
    (lambda x: ndi.binary_erosion(x, mask=np.ones((5, 6))), "mask: its shape"),
    (lambda x: ndi.grey_erosion(x, structure=np.ones((3, 3, 3)), footprint=np.ones((3, 3, 1))), "structure: its shape"),
    (lambda x: ndi.sobel(x, output=np.empty((5, 6))), "output: its shape"),
])
def test_what_cannot_be_done_is_said(random, call, text):
    with pytest.raises(ValueError, match=text):
        call(make_image(random, (5, 6, 7), "float32"))


@pytest.mark.parametrize("call, text", [
    (lambda x: ndi.uniform_filter(x, 3, axes="z"), "axes"),
    (lambda x: ndi.sobel(x, 1.5), "axis: 1.5"),
    (lambda x: ndi.binary_dilation(x, iterations=1.5), "iterations: 1.5"),
    (lambda x: ndi.uniform_filter(x, 3, size_=4), "size_"),
])
def test_arguments_of_other_types(random, call, text):
    with pytest.raises(TypeError, match=text):
        call(make_image(random, (5, 6, 7), "float32"))


@pytest.mark.parametrize("name", ndi.__all__)
def test_signatures_are_scipys(name):
    """The arguments that both have come in the same order, with the same defaults."""
    theirs = inspect.signature(getattr(scipy_ndi, name)).parameters
    ours = inspect.signature(getattr(ndi, name)).parameters
    for ofOurs, ofTheirs in zip(
        [each for each in ours.values() if each.kind == each.POSITIONAL_OR_KEYWORD],
        [each for each in theirs.values() if each.kind == each.POSITIONAL_OR_KEYWORD],
    ):
        assert (ofOurs.name, ofOurs.default) == (ofTheirs.name, ofTheirs.default)
    for each in theirs.values():
        assert each.name in ours or each.kind == each.VAR_KEYWORD, each.name


@pytest.mark.parametrize("seed", range(40))
def test_labels(random, seed):
    ndim = int(random.integers(1, 4))
    shape = tuple(int(each) for each in random.integers(1, {1: 300, 2: 60, 3: 24}[ndim], ndim))
    image = (random.random(shape) < random.choice((0.2, 0.5, 0.8))).astype(random.choice(("bool", "uint8", "int16", "float64")))
    structure = None if random.random() < 0.3 else scipy_ndi.generate_binary_structure(ndim, int(random.integers(1, ndim + 1)))
    ours, count = ndi.label(image, structure)
    theirs, expected = scipy_ndi.label(image, structure)
    assert count == expected and ours.dtype == theirs.dtype
    np.testing.assert_array_equal(ours, theirs)
    output = np.empty(shape, np.uint64)
    assert ndi.label(image, structure, output=output) == expected
    np.testing.assert_array_equal(output, theirs)


def test_labels_of_what_is_no_image_or_structure():
    assert ndi.label(np.zeros((0, 3)))[1] == 0
    with pytest.raises(ValueError, match="symmetric"):
        ndi.label(np.ones((4, 4)), [[1, 0, 0], [0, 1, 0], [0, 0, 0]])
    with pytest.raises(ValueError, match=r"structure: its shape is \(3,\)"):
        ndi.label(np.ones((4, 4)), [1, 1, 1])
    with pytest.raises(RuntimeError, match="uint8 has labels up to 255"):
        ndi.label(np.arange(1000) % 2, output=np.uint8)


@pytest.mark.parametrize("count, dtype", [(0, "uint8"), (255, "uint8"), (256, "uint16"), (65535, "uint16"), (65536, "uint32")])
def test_labels_of_the_smallest_type(count, dtype):
    image = np.zeros(2 * 65536 + 1, "uint8")
    image[1:2 * count:2] = 1
    labels = filters.Label()(image, output="auto")
    assert labels.dtype == dtype and labels.max() == count
    assert np.array_equal(labels, filters.Label()(image))
    assert chunkwise.label(image.tolist(), output="auto").dtype == dtype
    assert filters.Label()(np.zeros((0, 3)), output="auto").dtype == "uint8"


def test_periodic_labels_count_axes_as_numpy_does():
    image = np.zeros((6, 7), np.uint8)
    image[2, 0] = image[2, -1] = image[0, 3] = image[-1, 3] = 1
    assert filters.Label(periodic_axes=1)(image).max() == 3
    assert filters.Label(periodic_axes=(0, 1))(image).max() == 2
    assert filters.Label(periodic_axes=0)(image)[-1, 3] == filters.Label(periodic_axes=0)(image)[0, 3]


def test_parts_of_an_image_have_no_labels_of_the_whole():
    with pytest.raises(ValueError, match="chunkwise.zarr.run, and filters of Dask arrays, join the labels of blocks$"):
        list(chunkwise.regions(filters.Label(), (20, 20), (10, 20), "uint8"))
    assert filters.Label().halo((20, 20), "uint8") == ((np.inf, np.inf), (np.inf, np.inf))


@pytest.mark.parametrize("call", [
    lambda x, **given: ndi.gaussian_filter(x, 1.5, **given),
    lambda x, **given: ndi.gaussian_filter(x, sigma=[1, 2.0], mode="mirror", **given),
    lambda x, **given: ndi.uniform_filter(x, 4, np.float64, **given),
    lambda x, **given: ndi.convolve(x, [[1, 2, 1], [0, 0, 1], [3, 0, 0]], **given),
    lambda x, **given: ndi.correlate1d(x, np.array([1, -2.5, 1]), 0, **given),
    lambda x, **given: ndi.median_filter(x, 3, **given),
    lambda x, **given: ndi.percentile_filter(x, 30, (3, 5), **given),
    lambda x, **given: ndi.maximum_filter(x, footprint=[[0, 1, 0], [1, 1, 1], [0, 1, 0]], **given),
    lambda x, **given: ndi.grey_opening(x, (3, 3), mode="nearest", **given),
    lambda x, **given: ndi.binary_dilation(x, iterations=2, **given),
])
@pytest.mark.parametrize("dtype", ["uint8", "float32", "bool", ">i2"])
def test_calls_again_give_what_the_first_one_gave(random, call, dtype):
    """Later calls go straight to the engine."""
    for shape in ((23, 31), (31, 23)):
        for _ in range(4):
            image = make_image(random, shape, dtype)
            expected = call(image.copy(), backend="cpu")
            for each in (image, np.asfortranarray(image), image.view()):
                each.setflags(write=False)
                result = call(each)
                assert result.dtype == expected.dtype and result.flags.writeable
                np.testing.assert_array_equal(result, expected)


def test_calls_again_refuse_and_warn_as_the_first_one(random):
    image = make_image(random, (20, 30), "float32")
    for _ in range(3):
        expected = ndi.uniform_filter(image, 3, axes=(0, 1))
        with pytest.warns(UserWarning, match="no effect"):
            ndi.maximum_filter(image, 3, np.ones((3, 3)))
        with pytest.raises(ValueError, match="mode"):
            ndi.uniform_filter(image, 3, mode="none")
        np.testing.assert_array_equal(ndi.uniform_filter(image, 3.0, axes=(0, 1)), expected)
        output = np.empty_like(image)
        assert ndi.uniform_filter(image, 3, output, axes=(0, 1)) is output
        np.testing.assert_array_equal(output, expected)


def test_small_images_in_many_threads(random):
    images = [make_image(random, (40, 50), "float32") for _ in range(8)]
    expected = [ndi.gaussian_filter(each, 1, backend="cpu", threads=1) for each in images]

    def run(number):
        return all(np.array_equal(ndi.gaussian_filter(images[number], 1), expected[number]) for _ in range(100))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(run, range(8)))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape, axis", [((9001,), 0), ((5, 400, 70), 1), ((3, 2500), 1)])
def test_ranks_of_long_lines(random, dtype, shape, axis):
    # Lines long enough to be cut into the lanes of a vector, and windows on both sides of what is kept sorted.
    image = make_image(random, shape, dtype)
    for length, percentile, mode in ((7, 50, "reflect"), (33, 20, "constant"), (151, 50, "wrap"), (701, 90, "nearest")):
        size = tuple(min(length, shape[a] // 2 * 2 - 1) if a == axis else 1 for a in range(len(shape)))
        expected = scipy_ndi.percentile_filter(image, percentile, size=size, mode=mode)
        assert np.array_equal(ndi.percentile_filter(image, percentile, size=size, mode=mode), expected, equal_nan=True), size


REPEATED = {
    "sobel": lambda module, image: module.sobel(image, mode="nearest"),
    "sobel of columns": lambda module, image: module.sobel(image, 0, mode="constant", cval=2),
    "laplace": lambda module, image: module.laplace(image),
    "uniform_filter": lambda module, image: module.uniform_filter(image, 3, output=np.float64),
    "binary_opening": lambda module, image: module.binary_opening(image),
    "label": lambda module, image: module.label(image)[0],
    "zoom": lambda module, image: module.zoom(image.astype(np.float64), 1.5, order=1),
}


@pytest.mark.parametrize("dtype", ("uint8", "int16", "float32", "bool"))
@pytest.mark.parametrize("name", REPEATED)
def test_further_calls_are_those_of_the_image_given(name, dtype):
    """The first call of its arguments prepares what further ones do: these see their image, not the first one."""
    random = np.random.default_rng(7)
    call = REPEATED[name]
    if dtype == "bool" and name in ("laplace", "sobel", "sobel of columns", "uniform_filter"):
        pytest.skip("SciPy truncates")
    for _ in range(3):
        image = (random.random((7, 8, 9)) * 200).astype(dtype) if dtype != "bool" else random.random((7, 8, 9)) > 0.5
        if name in ("label", "binary_opening") and dtype != "bool":
            image *= image > 100
        found, expected = call(ndi, image), call(scipy_ndi, image)
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-3 if found.dtype.kind == "f" else 0)


def test_further_calls_fill_the_array_that_is_given():
    """An output is no part of what the first call prepares: one of equal values, of another type, or the image itself."""
    image = np.random.default_rng(8).random((5, 6, 7), np.float32)
    expected = scipy_ndi.gaussian_filter(image, 1)
    for dtype in (np.float32, np.float32, np.float64, ">f4", np.float32):
        output = np.zeros(image.shape, dtype)
        assert ndi.gaussian_filter(image, 1, output=output) is output
        np.testing.assert_allclose(output, expected, atol=1e-5)
    for strided in (np.zeros((5, 6, 14), np.float32)[:, :, ::2], image):
        assert ndi.gaussian_filter(image, 1, output=strided) is strided
        np.testing.assert_allclose(strided, expected, atol=1e-5)


@pytest.mark.parametrize("axis", (0, 1, -1))
def test_filters_of_lines_join_the_other_axes(axis):
    image = np.random.default_rng(5).random((9, 17, 23), "float32")
    apart = np.empty((9, 17, 46), "float32")[..., ::2]
    apart[...] = image
    for name, arguments in (("uniform_filter1d", (5,)), ("gaussian_filter1d", (1.5,)), ("correlate1d", ([1.0, 2.0, 4.0],)),
                            ("convolve1d", ([1.0, 2.0],)), ("maximum_filter1d", (4,)), ("minimum_filter1d", (7,))):
        for mode in ("reflect", "mirror", "constant"):
            whole = getattr(ndi, name)(apart, *arguments, axis=axis, mode=mode)
            for _ in range(2):
                assert getattr(ndi, name)(image, *arguments, axis=axis, mode=mode).tobytes() == whole.tobytes()


def test_boxes_of_labels_are_scipys():
    random = np.random.default_rng(6)
    for shape in ((40,), (7, 9), (3, 4, 5, 2), (2, 3, 2, 2, 3), (50, 40, 30)):
        for dtype in ("uint8", "int16", "int64"):
            labels = (random.integers(-3, 30, shape) * (random.random(shape) > 0.5)).clip(0 if dtype == "uint8" else -3).astype(dtype)
            for most in (0, 5, 40):
                assert ndi.find_objects(labels, most) == scipy_ndi.find_objects(labels.astype(np.int64), most)
    assert ndi.find_objects(np.array([0, 2**40, 0]), 3) == [None, None, None]
    for value, most in ((1, 0), (2, 0), (2, 3), (0, 0)):
        assert ndi.find_objects(np.array(value), most) == scipy_ndi.find_objects(np.array(value), most)


def test_labels_along_more_than_three_axes_are_scipys():
    random = np.random.default_rng(7)
    for shape in ((5, 4, 6, 7), (3, 4, 2, 3, 5), (2, 0, 3, 4)):
        for connectivity in (None, 2, len(shape)):
            structure = None if connectivity is None else ndi.generate_binary_structure(len(shape), connectivity)
            image = random.random(shape) < 0.3
            labels, count = ndi.label(image, structure)
            expected, theirs = scipy_ndi.label(image, structure)
            assert labels.dtype == expected.dtype and count == theirs
            np.testing.assert_array_equal(labels, expected)
    lone = np.zeros((3,) * 4, bool)
    lone[(1, 1, 1), (1, 1, 1), (1, 1, 1), (0, 1, 2)] = True
    image = random.random((6, 5, 4, 9)) < 0.5
    labels = np.empty(image.shape, np.uint16)
    assert ndi.label(image, lone, labels) == scipy_ndi.label(image, lone)[1]
    np.testing.assert_array_equal(labels, scipy_ndi.label(image, lone)[0])


def test_functions_of_the_voxels_of_labels_are_scipys():
    random = np.random.default_rng(8)
    values, labels = random.random((6, 7, 8)), random.integers(0, 9, (6, 7, 8))
    for index in (None, 3, [1, 2, 5], [8, 0, 3, 40], np.arange(1, 9)):
        for positions in (False, True):
            def spread(found, *places):
                return found.max() - found.min() + (0 if not places else places[0].sum())
            arguments = (values, labels, index, spread, float, -1.0, positions)
            np.testing.assert_array_equal(ndi.labeled_comprehension(*arguments), scipy_ndi.labeled_comprehension(*arguments))
    np.testing.assert_array_equal(ndi.labeled_comprehension(values, None, None, np.sum, float, 0), values.ravel().sum())
    with pytest.raises(ValueError, match="index"):
        ndi.labeled_comprehension(values, labels.astype(np.uint8), [300], np.sum, float, 0)


def test_modes_may_differ_from_axis_to_axis(random):
    image = make_image(random, (9, 10, 11), "float64")
    modes = ("wrap", "mirror", "constant")
    expected = scipy_ndi.uniform_filter(image, (5, 3, 7), mode=modes, cval=2.5)
    found = chunkwise.mean(image, (2, 1, 3), mode=modes, cval=2.5)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    assert np.array_equal(chunkwise.mean(image, (2, 1, 3), mode=list(modes), cval=2.5, memory="2M"), found)
    assert np.array_equal(chunkwise.maximum(image, 2, mode=modes, cval=2.5), scipy_ndi.maximum_filter(image, 5, mode=modes, cval=2.5))
    # Along the axes that a caller names, modes come in their order.
    np.testing.assert_allclose(chunkwise.mean(image, (1, 3), mode=("mirror", "wrap"), axes=(1, 2)),
                               scipy_ndi.uniform_filter(image, (3, 7), mode=("mirror", "wrap"), axes=(1, 2)), rtol=1e-12, atol=1e-12)
    assert filters.Mean(1, mode=("mirror",) * 3) == filters.Mean(1, mode="mirror")
    for filter_ in (filters.Mean(1, mode=modes), filters.Median(1, upper_radius=(2, 0, 1))):
        assert pickle.loads(pickle.dumps(filter_)) == filter_
    with pytest.raises(ValueError, match="mode: .*wiener has one for all axes"):
        chunkwise.wiener(image, 1, 2.0, mode=modes)


@pytest.mark.parametrize("mode, scipys", [("reflect", "reflect"), ("mirror", "mirror"), ("wrap", "wrap"), ("nearest", "nearest")])
def test_windows_may_reach_farther_to_one_side(random, mode, scipys):
    image = make_image(random, (9, 10, 11), "float64")
    # SciPy's windows of even sizes reach farther to the lower side.
    size, sides = (4, 3, 6), {"radius": (2, 1, 3), "upper_radius": (1, 1, 2), "mode": mode}
    for name, function in (("mean", scipy_ndi.uniform_filter), ("maximum", scipy_ndi.maximum_filter), ("minimum", scipy_ndi.minimum_filter)):
        np.testing.assert_allclose(getattr(chunkwise, name)(image, **sides), function(image, size, mode=scipys), rtol=1e-12, atol=1e-12)
    assert np.array_equal(chunkwise.median(image, **sides), scipy_ndi.rank_filter(image, 35, size, mode=scipys))
    footprint = random.random((3, 3, 5)) > 0.4
    ranks = int(footprint.sum())
    assert np.array_equal(chunkwise.median(image, 1, kernel=footprint, mode=mode),
                          scipy_ndi.rank_filter(image, (ranks - 1) // 2, footprint=footprint, mode=scipys))
    # At the edge the part inside the image counts.
    whole = chunkwise.mean(image, radius=(2, 1, 3), upper_radius=(1, 1, 2))
    np.testing.assert_allclose(whole[0, 0, 0], image[:2, :2, :3].mean(), rtol=1e-12)
    mask = random.random(image.shape) > 0.3
    inside = chunkwise.mean(image, radius=(2, 1, 3), upper_radius=(1, 1, 2), mask=mask)
    seen = (slice(2, 6), slice(3, 6), slice(2, 8))  # the window of voxel 4, 4, 5
    np.testing.assert_allclose(inside[4, 4, 5], image[seen][mask[seen]].mean(), rtol=1e-12)
