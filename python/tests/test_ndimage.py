# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""chunkwise.ndimage is scipy.ndimage, or raises."""
import inspect

import numpy as np
import pytest
from conftest import make_image
from scipy import ndimage as scipy_ndi

import chunkwise
from chunkwise import filters
from chunkwise import ndimage as ndi

MODES = ("reflect", "grid-mirror", "nearest", "constant", "grid-constant", "wrap", "grid-wrap")
TYPES = ("uint8", "int16", "uint16", "int32", "float32", "float64")

MORPHOLOGY = ("maximum_filter", "minimum_filter", "grey_erosion", "grey_dilation", "grey_opening", "grey_closing",
              "morphological_gradient", "white_tophat", "black_tophat")


def trial(random, dtypes=TYPES):
    """An image, and what all functions take."""
    ndim = int(random.integers(1, 4))
    shape = tuple(int(each) for each in random.integers(1, {1: 60, 2: 20, 3: 11}[ndim], ndim))
    image = make_image(random, shape, random.choice(dtypes))
    common = {"mode": str(random.choice(MODES))}
    if "constant" in common["mode"]:
        common["cval"] = float(random.integers(0, 100))
    axes = None
    if ndim > 1 and random.random() < 0.4:
        axes = tuple(int(each) for each in random.permutation(ndim)[: random.integers(1, ndim + 1)])
        common["axes"] = axes
    return image, common, ndim if axes is None else len(axes)


def random_size(random, count, largest=9):
    """Odd, and now and then larger than the image."""
    if random.random() < 0.3:
        return int(random.integers(0, largest // 2 + 1)) * 2 + 1
    return tuple(int(each) * 2 + 1 for each in random.integers(0, largest // 2 + 1, count))


def real(image):
    return image if image.dtype.kind == "f" else image.astype(np.float64)


def close(ours, theirs, image):
    scale = max(1.0, float(np.abs(theirs).max(initial=0)))
    tolerance = 3e-6 if ours.dtype == np.float32 else 1e-12
    assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance * scale)


@pytest.mark.parametrize("seed", range(60))
def test_sums(random, seed):
    image, common, count = trial(random)
    image = real(image)
    size = random_size(random, count)
    close(ndi.uniform_filter(image, size, **common), scipy_ndi.uniform_filter(image, size, **common), image)
    sigma = tuple(float(each) for each in random.choice((0.0, 0.4, 1.0, 1.7, 2.5), count))
    given = {"truncate": float(random.choice((2.0, 4.0, 5.5)))} if random.random() < 0.5 else {}
    if not given and random.random() < 0.5:
        given = {"radius": tuple(int(each) for each in random.integers(0, 7, count))}
    close(ndi.gaussian_filter(image, sigma, **common, **given),
          scipy_ndi.gaussian_filter(image, sigma, **common, **given), image)
    weights = random.normal(size=tuple(2 * int(each) + 1 for each in random.integers(0, 3, count)))
    if axes := common.pop("axes", None):
        common["axes"] = tuple(sorted(axes))
    close(ndi.correlate(image, weights, **common), scipy_ndi.correlate(image, weights, **common), image)
    close(ndi.convolve(image, weights, **common), scipy_ndi.convolve(image, weights, **common), image)


@pytest.mark.parametrize("seed", range(30))
def test_derivatives(random, seed):
    image, common, count = trial(random, ("float32", "float64"))
    common.pop("cval", None)
    sigma = tuple(float(each) for each in random.choice((0.7, 1.0, 1.4), count))
    order = tuple(int(each) for each in random.integers(0, 4, count))
    close(ndi.gaussian_filter(image, sigma, order, **common), scipy_ndi.gaussian_filter(image, sigma, order, **common),
          image)
    if axes := common.pop("axes", None):
        common["axes"] = tuple(sorted(axes))
    if "axes" in inspect.signature(scipy_ndi.gaussian_laplace).parameters or "axes" not in common:
        close(ndi.gaussian_laplace(image, sigma, **common), scipy_ndi.gaussian_laplace(image, sigma, **common), image)


@pytest.mark.parametrize("seed", range(60))
def test_ranks_and_morphology_are_equal(random, seed):
    image, common, count = trial(random)
    size = random_size(random, count, 7)
    element = random.random(tuple(2 * int(each) + 1 for each in random.integers(0, 3, count))) < 0.6
    element.flat[int(random.integers(0, element.size))] = True
    voxels = int(np.prod(np.broadcast_to(size, count)))
    rank = int(random.integers(-voxels, voxels))
    percentile = float(random.choice((0, 1, 10, 25, 33.3, 50, 75, 90, 99, 100, -10, -37.5)))

    def same(name, *arguments, **given):
        ours = getattr(ndi, name)(image, *arguments, **given, **common)
        theirs = getattr(scipy_ndi, name)(image, *arguments, **given, **common)
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs, err_msg=f"{name} {arguments} {given} {common} {image.shape}")

    for name in MORPHOLOGY:
        same(name, size)
    if axes := common.pop("axes", None):
        common["axes"] = tuple(sorted(axes))
    same("median_filter", size)
    same("rank_filter", rank, size)
    same("percentile_filter", percentile, size)
    for name in MORPHOLOGY:
        same(name, footprint=element)
    same("grey_dilation", structure=np.zeros(element.shape))


def test_integers_are_rounded_to_the_nearest(random):
    image = make_image(random, (9, 10, 11), "uint8")
    exact = scipy_ndi.uniform_filter(image.astype(np.float64), 3)
    assert np.array_equal(ndi.uniform_filter(image, 3), np.rint(exact).astype(np.uint8))
    assert ndi.gaussian_filter(image, 1.0).dtype == np.uint8


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
    (lambda x: ndi.uniform_filter(x, 3, mode="mirror"), "does not repeat the edge voxel"),
    (lambda x: ndi.uniform_filter(x, 3, mode=["reflect", "wrap", "wrap"]), "one mode for all axes"),
    (lambda x: ndi.uniform_filter(x, 3, mode="periodic"), "is none of"),
    (lambda x: ndi.uniform_filter(x, 4), "even"),
    (lambda x: ndi.uniform_filter(x, 0), "at least 1"),
    (lambda x: ndi.uniform_filter(x, (3, 3)), "2 numbers for 3 axes"),
    (lambda x: ndi.uniform_filter(x, 3, origin=1), "origin"),
    (lambda x: ndi.uniform_filter(x, 3, axes=(0, 0)), "twice"),
    (lambda x: ndi.uniform_filter(x[None], 3), "4 axes"),
    (lambda x: ndi.median_filter(x, footprint=[[[0, 1, 1]]]), "those of boxes"),
    (lambda x: ndi.maximum_filter(x, footprint=np.zeros((3, 3, 3))), "no voxels"),
    (lambda x: ndi.maximum_filter(x), "size"),
    (lambda x: ndi.grey_erosion(x, structure=np.ones((3, 3, 3))), "flat"),
    (lambda x: ndi.rank_filter(x, 27, 3), "27 is not a rank"),
    (lambda x: ndi.percentile_filter(x, 101, 3), "101"),
    (lambda x: ndi.gaussian_filter(x, -1), "sigma"),
    (lambda x: ndi.gaussian_filter(x.astype("uint8"), 1, order=1), "output=np.float32"),
    (lambda x: ndi.gaussian_filter(x, 1, order=1, mode="constant", cval=2.0), "cval"),
    (lambda x: ndi.gaussian_filter(x.astype("complex64"), 1), "complex64"),
    (lambda x: ndi.uniform_filter(x > 0, 3), "bool"),
    (lambda x: ndi.correlate(x, np.ones((2, 2, 2))), "even"),
    (lambda x: ndi.correlate(x, np.ones((3, 3)), axes=(1, 0)), "ascending"),
    (lambda x: ndi.median_filter(x, (3, 5), axes=(1, 0)), "ascending"),
    (lambda x: ndi.maximum_filter(x, footprint=[[0, 1, 1]], axes=(2, 0)), "ascending"),
    (lambda x: ndi.correlate(x, np.ones((3, 3))), "2 dimensions"),
])
def test_what_cannot_be_done_is_said(random, call, text):
    with pytest.raises(ValueError, match=text):
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
    with pytest.raises(ValueError, match="5 dimensions"):
        ndi.label(np.ones((2,) * 5))
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
