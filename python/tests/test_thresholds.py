# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Thresholds of whole images: numbers, classes, and filters that know their thresholds."""
from __future__ import annotations

import pickle

import chunkwise
import numpy as np
import pytest
from chunkwise import filters
from conftest import make_image


def _image(dtype: str, seed: int = 3) -> np.ndarray:
    random = np.random.default_rng(seed)
    values = np.concatenate([random.normal(60, 9, 3000), random.normal(100, 8, 2400)])
    random.shuffle(values)
    return np.clip(values, 0, 127).reshape(9, 20, 30).astype(dtype)


def _otsu(values: np.ndarray) -> float:
    """For whole numbers, by the definition."""
    candidates = np.unique(values)[:-1].astype(float)
    gains = [(values <= t).mean() * (values > t).mean() * (values[values <= t].mean() - values[values > t].mean()) ** 2
             for t in candidates]
    return float(candidates[int(np.argmax(gains))])


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16", "int32", "uint64"])
def test_otsu_is_that_of_the_definition(dtype):
    image = _image(dtype)
    threshold = chunkwise.threshold_otsu(image)
    assert threshold == _otsu(image.astype(float))
    result = chunkwise.threshold(image)
    assert result.dtype == np.uint8
    np.testing.assert_array_equal(result, image > threshold)
    mask = np.random.default_rng(4).integers(0, 2, image.shape, "uint8")
    within = chunkwise.threshold_otsu(image, mask=mask)
    assert within == _otsu(image[mask != 0].astype(float))
    np.testing.assert_array_equal(chunkwise.threshold(image, mask=mask), (image > within) & (mask != 0))


def test_floats_have_bins_and_nan_is_outside():
    image = _image("float32") / np.float32(7)
    image[0, 0, :5] = np.nan
    lowest, highest = np.nanmin(image), np.nanmax(image)
    for nbins in (None, 16):
        width = (float(highest) - float(lowest)) / (nbins or 256)
        threshold = chunkwise.threshold_otsu(image, nbins)
        assert ((threshold - lowest) / width) % 1 == pytest.approx(0.5, abs=1e-6)
    result = chunkwise.threshold(image, "otsu")
    assert not result[0, 0, :5].any() and result.any()


@pytest.mark.parametrize("method", ["li", "yen", "triangle", "isodata", "moments", "huang", "max-entropy", "renyi", "kittler",
                                    "shanbhag"])
def test_every_method_parts_the_image_at_its_threshold(method):
    image = _image("uint8")
    known = filters.Threshold(method).resolved(image)
    assert not known.is_automatic and filters.Threshold(method).is_automatic
    np.testing.assert_array_equal(known(image), image > known.thresholds[0])
    np.testing.assert_array_equal(chunkwise.threshold(image, method), known(image))
    assert pickle.loads(pickle.dumps(known)) == known
    # A filter that knows its threshold computes parts.
    np.testing.assert_array_equal(known(image[2:5]), known(image)[2:5])


def test_classes_and_ranges():
    image = _image("uint8")
    thresholds = chunkwise.threshold_multiotsu(image, 4)
    assert len(thresholds) == 3 and list(thresholds) == sorted(thresholds)
    expected = np.digitize(image, thresholds, right=True)
    np.testing.assert_array_equal(chunkwise.threshold(image, "multi-otsu", number_of_classes=4), expected)
    np.testing.assert_array_equal(chunkwise.threshold(image, thresholds=thresholds), expected)
    assert chunkwise.threshold_multiotsu(image, 2) == (chunkwise.threshold_otsu(image),)
    np.testing.assert_array_equal(chunkwise.threshold(image, "fixed", lower=60, upper=80), (image >= 60) & (image <= 80))
    assert not filters.Threshold("fixed", lower=3).is_automatic


def test_what_is_wrong_is_named():
    image = _image("uint8")
    for wrong, message in (({"method": "otsu", "lower": 3}, "lower: it has an effect only with"),
                           ({"thresholds": (3, 2)}, "thresholds"), ({"number_of_classes": 4}, "multi-otsu"),
                           ({"method": "fixed", "lower": 3, "thresholds": 4.0}, "thresholds: it has an effect only with")):
        with pytest.raises(chunkwise.ParameterError, match=message):
            chunkwise.threshold(image, **wrong)
    with pytest.raises(chunkwise.ParameterError, match="no finite voxel"):
        chunkwise.threshold_otsu(np.full((3, 4), np.nan))
    with pytest.raises(chunkwise.ParameterError):
        chunkwise.threshold_multiotsu(np.zeros((3, 4), "uint8"))
    assert chunkwise.threshold_otsu(np.full((3, 4), 9, "uint8")) == 9


def test_scikit_image_has_the_same_thresholds():
    skimage = pytest.importorskip("skimage.filters")
    image = _image("uint8")
    for name in ("otsu", "yen", "triangle", "isodata"):
        assert getattr(chunkwise, f"threshold_{name}")(image) == getattr(skimage, f"threshold_{name}")(image), name
    assert chunkwise.threshold_li(image) == pytest.approx(skimage.threshold_li(image.copy()), abs=1e-5)
    for classes in (2, 3, 4):
        np.testing.assert_array_equal(chunkwise.threshold_multiotsu(image, classes), skimage.threshold_multiotsu(image, classes))


def _windows(image: np.ndarray, radius: int) -> np.ndarray:
    """Means and standard deviations of windows that end at the image's edge."""
    means, deviations = np.empty(image.shape), np.empty(image.shape)
    for index in np.ndindex(*image.shape):
        window = image[tuple(slice(max(i - radius, 0), i + radius + 1) for i in index)].astype(float)
        means[index], deviations[index] = window.mean(), window.std()
    return np.stack([means, deviations])


@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint32", "float32", "float64"])
def test_local_thresholds_are_those_of_the_definition(dtype):
    image = _image(dtype)
    mean, deviation = _windows(image, 2)
    found = chunkwise.threshold_niblack(image, 5, 0.3)
    assert found.dtype == (np.float32 if dtype in ("uint8", "int16", "float32") else np.float64)
    np.testing.assert_allclose(found, mean - 0.3 * deviation, rtol=1e-4)
    half = 1.0 if dtype.startswith("float") else (float(np.iinfo(dtype).max) - float(np.iinfo(dtype).min)) / 2
    np.testing.assert_allclose(chunkwise.threshold_sauvola(image, 5), mean * (1 + 0.2 * (deviation / half - 1)), rtol=1e-4)
    np.testing.assert_allclose(chunkwise.threshold_sauvola(image, (5, 5, 5), 0.5, 40), mean * (1 + 0.5 * (deviation / 40 - 1)), rtol=1e-4)
    np.testing.assert_allclose(chunkwise.threshold_local(image, 5, "mean", 3, "renormalized"), mean - 3, rtol=1e-5)
    # The classes are those of the comparison.
    classes = chunkwise.local_threshold(image, 2, method="niblack", k=0.3)
    assert classes.dtype == np.uint8
    np.testing.assert_array_equal(classes, image > found)
    mask = np.random.default_rng(4).integers(0, 2, image.shape, "uint8")
    inside = chunkwise.local_threshold(image, 2, method="median", mask=mask)
    np.testing.assert_array_equal(inside, (image > chunkwise.threshold_local(image, 5, "median", mode="renormalized", mask=mask)) & (mask != 0))


def test_what_is_wrong_with_a_window_is_named():
    image = _image("uint8")
    for call, message in ((lambda: chunkwise.threshold_niblack(image, 4), "window_size: 4 is not an odd"),
                          (lambda: chunkwise.threshold_local(image, 3, "generic"), "method: 'generic' is none of"),
                          (lambda: chunkwise.threshold_local(image, 3, mode="symmetric"), "symmetric"),
                          (lambda: chunkwise.threshold_sauvola(image, r=0), "r: 0")):
        with pytest.raises(ValueError, match=message):
            call()


def test_scikit_image_has_the_same_local_thresholds():
    skimage = pytest.importorskip("skimage.filters")
    image = _image("uint8")
    inner = (slice(2, -2),) * 3
    np.testing.assert_allclose(chunkwise.threshold_niblack(image, 5)[inner], skimage.threshold_niblack(image, 5)[inner], rtol=1e-5)
    np.testing.assert_allclose(chunkwise.threshold_sauvola(image, 5)[inner], skimage.threshold_sauvola(image, 5)[inner], rtol=1e-5)
    for method in ("gaussian", "mean", "median"):
        for mode in ("reflect", "nearest", "wrap", "constant"):
            ours = chunkwise.threshold_local(image, 5, method, 2.5, mode, cval=7)
            np.testing.assert_allclose(ours, skimage.threshold_local(image.astype(float), 5, method, 2.5, mode, cval=7), rtol=1e-5)


def test_hysteresis():
    from collections import deque
    image = np.random.default_rng(8).integers(0, 100, (9, 14, 15)).astype("int16")
    kept = image > 95
    queue = deque(zip(*np.nonzero(kept)))
    while queue:
        at = np.array(queue.popleft())
        for step in np.vstack([np.eye(3, dtype=int), -np.eye(3, dtype=int)]):
            there = tuple(at + step)
            if all(0 <= i < n for i, n in zip(there, image.shape)) and not kept[there] and image[there] > 60:
                kept[there] = True
                queue.append(there)
    assert 0 < kept.sum() < (image > 60).sum()
    np.testing.assert_array_equal(chunkwise.hysteresis(image, 60, 95), kept)
    found = chunkwise.apply_hysteresis_threshold(image, 60, 95)
    assert found.dtype == bool and (found == kept).all()
    np.testing.assert_array_equal(chunkwise.apply_hysteresis_threshold(image, 60, 60), image > 60)
    with pytest.raises(chunkwise.ParameterError, match="low: 3 is more than high, 2|low"):
        chunkwise.hysteresis(image, 3, 2)


def test_scikit_image_has_the_same_hysteresis():
    skimage = pytest.importorskip("skimage.filters")
    image = _image("float32") / 7
    np.testing.assert_array_equal(chunkwise.apply_hysteresis_threshold(image, 9, 14), skimage.apply_hysteresis_threshold(image, 9, 14))


@pytest.mark.parametrize("method", ["otsu", "li", "multi-otsu", "triangle"])
@pytest.mark.parametrize("dtype", ["uint16", "float32"])
def test_thresholds_of_arrays_that_are_not_in_memory(random, tmp_path, method, dtype):
    da, zarr = pytest.importorskip("dask.array"), pytest.importorskip("zarr")
    image = make_image(random, (23, 31, 17), dtype)
    inside = (image > np.median(image)).astype(np.uint8)
    array = zarr.open(str(tmp_path / "a.zarr"), mode="w", shape=image.shape, chunks=(5, 8, 17), dtype=dtype)
    array[...] = image
    lazy = da.from_array(image, chunks=(7, 9, 17))
    automatic = filters.Threshold(method)
    for others, their in (((), ()), ((inside,), (da.from_array(inside, chunks=(7, 9, 17)),))):
        known = automatic.resolved(image, *others)
        assert automatic.resolved(lazy, *their) == known
        assert automatic.resolved(array, *others) == known
        assert np.array_equal(known(lazy, *their).compute(), automatic(image, *others))
    with pytest.raises(chunkwise.BudgetError):
        automatic.resolved(lazy, memory=1000)
