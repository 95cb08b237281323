# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""chunkwise.skimage is scikit-image, or raises."""
import inspect
import warnings

import numpy as np
import pytest
from conftest import make_image

import chunkwise
from chunkwise.skimage import exposure, feature, filters, measure, morphology, restoration, segmentation

pytest.importorskip("skimage")
from skimage import exposure as sk_exposure  # noqa: E402
from skimage import feature as sk_feature  # noqa: E402
from skimage import filters as sk_filters  # noqa: E402
from skimage import measure as sk_measure  # noqa: E402
from skimage import morphology as sk_morphology  # noqa: E402
from skimage import restoration as sk_restoration  # noqa: E402
from skimage import segmentation as sk_segmentation  # noqa: E402

MODULES = ((exposure, sk_exposure), (feature, sk_feature), (filters, sk_filters), (measure, sk_measure), (morphology, sk_morphology),
           (restoration, sk_restoration), (segmentation, sk_segmentation))
TYPES = ("uint8", "int16", "uint16", "float32", "float64")
FLAT = ("erosion", "dilation", "opening", "closing", "white_tophat", "black_tophat")
seeds = pytest.mark.parametrize("seed", range(5))


def same(ours, theirs, tolerance=0.0):
    assert type(ours) is type(theirs) or np.ndim(ours) == 0
    assert np.asarray(ours).dtype == np.asarray(theirs).dtype
    assert np.shape(ours) == np.shape(theirs)
    if tolerance:
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance * max(1.0, float(np.abs(theirs).max(initial=0))))
    else:
        np.testing.assert_array_equal(ours, theirs)


def shape_of(random, least=1, ndim=None):
    ndim = ndim or int(random.integers(1, 4))
    return tuple(int(each) for each in random.integers(least, {1: 90, 2: 30, 3: 13}[ndim], ndim))


def footprint_of(random, ndim):
    if random.random() < 0.3:
        return None
    footprint = random.random(tuple(random.integers(1, 5, ndim))) < 0.7
    footprint.flat[random.integers(footprint.size)] = True
    return footprint


def objects(random, shape, count=6):
    return np.where(random.random(shape) < 0.5, 0, random.integers(1, count, shape)).astype(random.choice(("uint8", "int32", "int64")))


@pytest.mark.parametrize("module, theirs", MODULES)
def test_signatures_are_scikit_images(module, theirs):
    for name in module.__all__:
        ours = inspect.signature(getattr(module, name)).parameters
        for each in inspect.signature(inspect.unwrap(getattr(theirs, name))).parameters.values():
            assert each.name in ours, (name, each.name)
            if "DEPRECATED" not in str(each.default):
                assert ours[each.name].default == each.default, (name, each.name)
                assert ours[each.name].kind == each.kind, (name, each.name)


@pytest.mark.parametrize("module", [each for each, _ in MODULES])
def test_what_is_missing_says_what_to_use(module):
    with pytest.raises(AttributeError, match="skimage|chunkwise"):
        module.no_such_function
    if module is restoration:
        with pytest.raises(AttributeError, match=r"chunkwise\.nlm"):
            module.denoise_nl_means


@seeds
@pytest.mark.parametrize("dtype", (*TYPES, "bool"))
def test_gaussian_and_median(random, seed, dtype):
    image = make_image(random, shape_of(random), dtype)
    mode = str(random.choice(("reflect", "constant", "nearest", "mirror", "wrap")))
    tolerance = 1e-5 if dtype == "float32" else 1e-12
    given = {"mode": mode, "cval": 1, "preserve_range": bool(random.integers(2)), "truncate": 3.0}
    sigma = float(random.uniform(0.2, 2.5))
    same(filters.gaussian(image, sigma, **given), sk_filters.gaussian(image, sigma, **given), tolerance)
    if image.ndim > 1:
        axis = int(random.integers(image.ndim))
        same(filters.gaussian(image, sigma, channel_axis=axis, **given), sk_filters.gaussian(image, sigma, channel_axis=axis, **given), tolerance)
    same(filters.median(image), sk_filters.median(image))
    # SciPy takes any footprint of a line for one of ones.
    footprint = footprint_of(random, image.ndim) if image.ndim > 1 else np.ones(3)
    same(filters.median(image, footprint, mode=mode), sk_filters.median(image, footprint, mode=mode))


@seeds
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", ["otsu", "yen", "triangle", "isodata", "multiotsu"])
def test_thresholds(random, seed, dtype, name):
    image = make_image(random, shape_of(random, 8, 2), dtype)
    image = image + (random.random(image.shape) < 0.4) * image.dtype.type(3)
    if name in ("multiotsu", "yen") and image.dtype.kind in "iu":
        # scikit-image tries all pairs of values, and adds up in single precision.
        image = image % image.dtype.type(30) + random.choice((0, 50, 90), image.shape).astype(dtype)
    for bins in (256, 40):
        same(getattr(filters, f"threshold_{name}")(image, nbins=bins), getattr(sk_filters, f"threshold_{name}")(image, nbins=bins),
             {"float32": 1e-6, "float64": 1e-14}.get(dtype, 0.0))


@seeds
@pytest.mark.parametrize("dtype", ("uint8", "uint16", "float32", "float64"))
def test_thresholds_of_windows(random, seed, dtype):
    image = make_image(random, shape_of(random, 8), dtype)
    tolerance = 1e-4 if dtype == "float32" else 1e-9
    size = int(random.choice((3, 5, 7)))
    for name in ("niblack", "sauvola"):
        same(getattr(filters, f"threshold_{name}")(image, size, 0.3), getattr(sk_filters, f"threshold_{name}")(image, size, 0.3), tolerance)
    for method in ("gaussian", "mean", "median"):
        mode = str(random.choice(("reflect", "constant", "nearest", "mirror", "wrap")))
        same(filters.threshold_local(image, size, method, 2, mode, cval=3),
             sk_filters.threshold_local(image, size, method, 2, mode, cval=3), tolerance)
    low, high = np.percentile(image, (40, 80))
    same(filters.apply_hysteresis_threshold(image, low, high), sk_filters.apply_hysteresis_threshold(image, low, high))
    same(filters.apply_hysteresis_threshold(image, high, low), sk_filters.apply_hysteresis_threshold(image, high, low))
    if image.dtype.kind != "f":
        assert abs(filters.threshold_li(image) - sk_filters.threshold_li(image)) <= 0.5


@seeds
def test_labels(random, seed):
    image = objects(random, shape_of(random))
    for connectivity in (None, *range(1, image.ndim + 1)):
        for background in (None, 0, 2, -1):
            same(measure.label(image, background, connectivity=connectivity), sk_measure.label(image, background, connectivity=connectivity))
    ours, theirs = measure.label(image > 2, return_num=True), sk_measure.label(image > 2, return_num=True)
    same(ours[0], theirs[0])
    assert ours[1] == theirs[1]


@seeds
def test_tables(random, seed):
    labels = objects(random, shape_of(random, 5, int(random.integers(2, 4)))).astype("int32")
    intensity = make_image(random, labels.shape, random.choice(("uint8", "float64")))
    properties = ("label", "area", "bbox", "centroid", "intensity_mean", "intensity_max", "num_pixels", "equivalent_diameter_area")
    given = {"properties": properties, "separator": "_", "spacing": (2.0, 0.5, 3.0)[:labels.ndim]}
    ours, theirs = (module.regionprops_table(labels, intensity, **given) for module in (measure, sk_measure))
    assert list(ours) == list(theirs)
    for name, values in theirs.items():
        np.testing.assert_allclose(ours[name], values, rtol=1e-9, err_msg=name)


@seeds
@pytest.mark.parametrize("name", FLAT)
@pytest.mark.parametrize("dtype", ("uint8", "int16", "float32", "bool"))
def test_flat_morphology(random, seed, name, dtype):
    image = make_image(random, shape_of(random, 4), dtype)
    footprint = footprint_of(random, image.ndim)
    if image.ndim == 2 and seed == 0:
        footprint = [(np.ones((3, 1)), 2), (np.ones((1, 3)), 1)]
    mode = str(random.choice(("reflect", "constant", "nearest", "mirror", "wrap", "max", "min", "ignore")))
    same(getattr(morphology, name)(image, footprint, mode=mode), getattr(sk_morphology, name)(image, footprint, mode=mode))
    out = np.empty_like(image)
    assert getattr(morphology, name)(image, footprint, out) is out
    same(out, getattr(sk_morphology, name)(image, footprint))


@seeds
@pytest.mark.parametrize("name", ["binary_erosion", "binary_dilation", "binary_opening", "binary_closing"])
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_binary_morphology(random, seed, name):
    image = make_image(random, shape_of(random, 4), "bool")
    footprint = footprint_of(random, image.ndim)
    for mode in ("max", "min", "ignore"):
        same(getattr(morphology, name)(image, footprint, mode=mode), getattr(sk_morphology, name)(image, footprint, mode=mode))


@seeds
@pytest.mark.parametrize("dtype", TYPES)
def test_reconstruction(random, seed, dtype):
    mask = make_image(random, shape_of(random, 3), dtype)
    seed_image = np.minimum(mask, make_image(random, mask.shape, dtype))
    same(morphology.reconstruction(seed_image, mask), sk_morphology.reconstruction(seed_image, mask))
    cross = np.abs(np.indices((3,) * mask.ndim) - 1).sum(axis=0) <= 1
    same(morphology.reconstruction(mask, seed_image, "erosion", cross), sk_morphology.reconstruction(mask, seed_image, "erosion", cross))
    image_range = np.ptp(mask.astype(float))
    for height in (image_range / 10, image_range / 2, 2 * image_range):
        height = type(height)(height) if dtype.startswith("float") else max(int(height), 1)
        for name in ("h_maxima", "h_minima"):
            with np.errstate(over="ignore"):
                same(getattr(morphology, name)(mask, height), getattr(sk_morphology, name)(mask, height))
    small = (mask % 5).astype(dtype)
    for name in ("local_maxima", "local_minima"):
        for given in ({}, {"connectivity": 1}, {"indices": True}, {"allow_borders": False}):
            ours, theirs = (getattr(module, name)(small, **given) for module in (morphology, sk_morphology))
            if given.get("indices"):
                assert len(ours) == len(theirs)
                for one, other in zip(ours, theirs):
                    np.testing.assert_array_equal(one, other)
            else:
                same(ours, theirs)


@seeds
@pytest.mark.filterwarnings("ignore")
def test_objects(random, seed):
    labels = objects(random, shape_of(random, 3))
    mask = labels > 2
    for most in (0, 2, 9):
        same(morphology.remove_small_objects(labels, max_size=most), sk_morphology.remove_small_objects(labels, max_size=most))
        for connectivity in range(1, mask.ndim + 1):
            for name in ("remove_small_objects", "remove_small_holes"):
                same(getattr(morphology, name)(mask, max_size=most, connectivity=connectivity),
                     getattr(sk_morphology, name)(mask, max_size=most, connectivity=connectivity))
    spacing = None if seed % 2 else (1.0, 2.0, 0.7)[:mask.ndim]
    if mask.any() and not mask.all():
        for name in ("isotropic_erosion", "isotropic_dilation", "isotropic_opening", "isotropic_closing"):
            ours = getattr(morphology, name)(mask, 1.3, spacing=spacing)
            # Without a voxel that is left scikit-image's distances mean nothing.
            if name in ("isotropic_erosion", "isotropic_dilation") or (ours.any() and not ours.all()):
                same(ours, getattr(sk_morphology, name)(mask, 1.3, spacing=spacing))


@seeds
@pytest.mark.parametrize("dtype", ("bool", "uint8", "int16", "float32", "float64"))
def test_area_openings(random, seed, dtype):
    image = make_image(random, shape_of(random, 3), "float64" if dtype == "bool" else dtype)
    image = image > image.mean() if dtype == "bool" else image
    for name in ("area_opening", "area_closing"):
        # It gives 0, or the largest value, where the whole image is smaller, and takes floats from their largest one.
        tolerance = 1e-6 if name == "area_closing" and dtype.startswith("float") else 0
        for size in (each for each in (1, 5, 20) if each <= image.size):
            for connectivity in range(1, image.ndim + 1):
                if dtype == "bool" and name == "area_closing":
                    continue  # scikit-image 0.26 has no negative of it
                same(getattr(morphology, name)(image, size, connectivity), getattr(sk_morphology, name)(image, size, connectivity),
                     tolerance)


@seeds
@pytest.mark.parametrize("dtype", ("uint8", "int16", "uint16", "float32", "float64"))
def test_diameter_openings(random, seed, dtype):
    image = make_image(random, shape_of(random, 3), dtype)
    for name in ("diameter_opening", "diameter_closing"):
        tolerance = 1e-6 if name == "diameter_closing" and dtype.startswith("float") else 0
        for size in (each for each in (1, 2, 4, 7) if each <= max(image.shape)):
            for connectivity in range(1, image.ndim + 1):
                same(getattr(morphology, name)(image, size, connectivity), getattr(sk_morphology, name)(image, size, connectivity),
                     tolerance)


@seeds
def test_segmentation(random, seed):
    labels = objects(random, shape_of(random, 4))
    for given in ({}, {"buffer_size": 1}, {"bgval": 3}, {"mask": random.random(labels.shape) < 0.9}):
        same(segmentation.clear_border(labels, **given), sk_segmentation.clear_border(labels, **given))
    same(segmentation.clear_border(labels > 2), sk_segmentation.clear_border(labels > 2))
    for mode in ("thick", "inner", "outer"):
        # scikit-image rounds the largest number of 64 bits.
        labels = labels.astype("int32") if mode == "outer" else labels
        for connectivity in range(1, labels.ndim + 1):
            same(segmentation.find_boundaries(labels, connectivity, mode), sk_segmentation.find_boundaries(labels, connectivity, mode))
    for offset in (1, 5, 300):
        sparse = labels * labels.dtype.type(7)
        ours, theirs = (module.relabel_sequential(sparse, offset) for module in (segmentation, sk_segmentation))
        same(ours[0], theirs[0])
        np.testing.assert_array_equal(ours[1][sparse], theirs[1][sparse])
        np.testing.assert_array_equal(ours[2][ours[0]], sparse)
    alone = np.zeros(labels.shape, "int32")
    alone.flat[random.integers(alone.size)] = 7
    spacing = (1.0, 2.5, 0.5)[:labels.ndim]
    same(segmentation.expand_labels(alone, 3.3, spacing), sk_segmentation.expand_labels(alone, 3.3, spacing))


@seeds
@pytest.mark.parametrize("mode", ["thick", "inner", "outer"])
@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "float64"])
def test_boundaries_that_are_marked(random, seed, mode, dtype):
    shape = (int(random.integers(2, 20)), int(random.integers(2, 20)))
    labels = objects(random, shape).astype("int32")
    image = make_image(random, shape, dtype) if dtype[0] in "ui" else np.clip(make_image(random, shape, dtype), -1, 1)
    colored = np.stack([image] * 3, axis=-1)
    # With "outer" scikit-image's depend on the number that the background has.
    other = {"background_label": int(labels.max())} if mode != "outer" else {}
    for given in ({}, {"color": (0, 1, 0)}, {"outline_color": (1, 0, 1)}, other):
        for each in (image, colored):
            same(segmentation.mark_boundaries(each, labels, mode=mode, **given),
                 sk_segmentation.mark_boundaries(each, labels, mode=mode, **given))
    with pytest.raises(ValueError, match="its shape"):
        segmentation.mark_boundaries(image[1:], labels)


@seeds
def test_watersheds_of_images_without_equal_voxels(random, seed):
    shape = shape_of(random, 5, int(random.integers(2, 4)))
    image = random.permutation(int(np.prod(shape))).reshape(shape).astype("int32")
    for connectivity in range(1, len(shape) + 1):
        structure = np.abs(np.indices((3,) * len(shape)) - 1).sum(axis=0) <= connectivity
        minima = np.where(chunkwise.ndimage.minimum_filter(image, footprint=structure) == image, image + 1, 0)
        same(segmentation.watershed(image, minima, connectivity), sk_segmentation.watershed(image, minima, connectivity))
        same(segmentation.watershed(image, minima, structure), sk_segmentation.watershed(image, minima, structure))


@pytest.mark.parametrize("call, text", [
    (lambda x: filters.median(x, behavior="rank"), "behavior"),
    (lambda x: filters.threshold_otsu(hist=([1, 2], [0, 1])), "hist"),
    (lambda x: filters.threshold_isodata(x, return_all=True), "return_all"),
    (lambda x: filters.threshold_local(x, 4), "block_size"),
    (lambda x: filters.threshold_li(x, tolerance=1), "tolerance"),
    (lambda x: measure.label(x, connectivity=3), "connectivity"),
    (lambda x: measure.regionprops_table(x, properties=("label", "no_such")), "no_such"),
    (lambda x: morphology.erosion(x, np.ones(3)), "footprint"),
    (lambda x: morphology.reconstruction(x, x, footprint=np.ones((5, 5))), "footprint"),
    (lambda x: morphology.reconstruction(x + 1, x), "seed"),
    (lambda x: morphology.h_maxima(x, 0), "h = 0"),
    (lambda x: morphology.area_opening(x, 9, parent=x), "parent"),
    (lambda x: segmentation.watershed(x, compactness=1), "compactness"),
    (lambda x: segmentation.watershed(x, 5), "markers"),
    (lambda x: segmentation.find_boundaries(x, mode="subpixel"), "mode"),
    (lambda x: segmentation.clear_border(x, 20), "buffer"),
    (lambda x: segmentation.relabel_sequential(x, 0), "[Oo]ffset"),
])
def test_what_cannot_be_done_is_said(random, call, text):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=text):
            call(make_image(random, (9, 8), "uint8") % 100)


@seeds
def test_structure_tensors_and_corners_are_scikit_images(seed):
    random = np.random.default_rng(seed)
    for dtype in TYPES:
        image = make_image(random, shape_of(random, 3, int(random.integers(2, 4))), dtype)
        image = image / 255 if dtype.startswith("float") else image
        for mode in ("constant", "nearest", "reflect", "wrap"):
            sigma = float(random.choice((0.7, 1, 1.6)))
            for ours, theirs in zip(feature.structure_tensor(image, sigma, mode), sk_feature.structure_tensor(image, sigma, mode, order="rc")):
                same(ours, theirs, 2e-6 if theirs.dtype == np.float32 else 1e-12)
        flat = image.reshape(image.shape[0], -1)
        for method in ("k", "eps"):
            same(feature.corner_harris(flat, method), sk_feature.corner_harris(flat, method), 1e-5)
    with pytest.raises(chunkwise.ParameterError, match="cval"):
        feature.structure_tensor(flat, cval=1)
    with pytest.raises(chunkwise.ParameterError, match="sigma"):
        feature.structure_tensor(flat, 0.1)


@seeds
def test_unsharp_masks_are_scikit_images(seed):
    random = np.random.default_rng(seed)
    for dtype in TYPES:
        image = make_image(random, shape_of(random, 3, int(random.integers(2, 4))), dtype)
        image = image / 255 if dtype.startswith("float") else image
        for preserve in (False, True):
            given = {"radius": float(random.choice((0.7, 1, 2.3))), "amount": float(random.choice((0.5, 2))), "preserve_range": preserve,
                     "channel_axis": random.choice((None, 0))}
            theirs = sk_filters.unsharp_mask(image, **given)
            same(filters.unsharp_mask(image, **given), theirs, 2e-6 if theirs.dtype == np.float32 else 1e-12)


@seeds
def test_equalization_is_scikit_images(seed):
    random = np.random.default_rng(seed)
    for dtype in ("uint8", "uint16", "float32", "float64"):
        image = make_image(random, shape_of(random, 5, int(random.integers(2, 4))), dtype)
        if image.shape[-1] in (3, 4):
            continue
        image = image / np.abs(image).max() if dtype.startswith("float") else image
        given = {"kernel_size": random.choice((None, 4, 7)), "clip_limit": float(random.choice((0.01, 0.1, 0.6))),
                 "nbins": int(random.choice((256, 30)))}
        ours, theirs = exposure.equalize_adapthist(image, **given), sk_exposure.equalize_adapthist(image, **given)
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, atol=3e-4)
    with pytest.raises(chunkwise.ParameterError, match="colors"):
        exposure.equalize_adapthist(np.zeros((9, 9, 3)))


@pytest.mark.parametrize("dtype", ("float32", "float64"))
def test_richardson_lucy_is_scikit_images_far_from_the_edge(random, dtype):
    from scipy import ndimage

    truth = np.zeros((70, 66), dtype)
    truth[30:40, 28:36] = random.random((10, 8))
    kernel = np.outer(*(np.hanning(9)[1:-1],) * 2).astype(dtype)
    image = ndimage.convolve(truth, kernel / kernel.sum(), mode="constant") + truth.dtype.type(1e-3)
    given = {"num_iter": 6, "clip": bool(random.integers(2))}
    ours, theirs = (each.richardson_lucy(image, kernel / kernel.sum(), **given) for each in (restoration, sk_restoration))
    assert ours.dtype == theirs.dtype
    np.testing.assert_allclose(ours[25:45, 25:41], theirs[25:45, 25:41], rtol=2e-3, atol=2e-4)


@seeds
def test_rolling_balls_are_scikit_images(seed):
    random = np.random.default_rng(seed)
    for dtype in (*TYPES, "int32"):
        image = make_image(random, shape_of(random), dtype)
        for radius in (1, 4, 7.5):
            theirs = sk_restoration.rolling_ball(image, radius=radius)
            same(restoration.rolling_ball(image, radius=radius), theirs, 1e-6 if dtype.startswith("float") else 0)
    with pytest.raises(chunkwise.ParameterError, match="kernel"):
        restoration.rolling_ball(image, kernel=np.ones((3, 3)))
