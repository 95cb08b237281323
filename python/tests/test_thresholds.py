# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Thresholds of whole images: numbers, classes, and filters that know their thresholds."""
from __future__ import annotations

import pickle

import chunkwise
import numpy as np
import pytest
from chunkwise import filters


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
