# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Windows over a part of the image: masks, weights, and NaN that is ignored."""
import chunkwise
import numpy as np
import pytest
from chunkwise import ParameterError

RANDOM = np.random.default_rng(4)
IMAGE = RANDOM.normal(100, 20, (11, 12, 13)).astype(np.float32)
MASK = RANDOM.integers(0, 2, IMAGE.shape).astype(np.uint8)
WEIGHT = RANDOM.uniform(0, 2, IMAGE.shape).astype(np.float32)


def box_sum(values, radius):
    """Over the part of the box inside the image, by its definition."""
    padded = np.pad(values.astype(np.float64), radius)
    total = np.zeros(values.shape)
    width = 2 * radius + 1
    for offset in np.ndindex(width, width, width):
        total += padded[tuple(slice(o, o + n) for o, n in zip(offset, values.shape))]
    return total


@pytest.mark.parametrize("name, weights", [("mask", MASK), ("weight", WEIGHT), ("mask", MASK.astype(np.int32) * -7)])
def test_mean_and_variance_are_weighed(name, weights):
    w = (weights != 0).astype(np.float64) if name == "mask" else weights.astype(np.float64)
    count = box_sum(w, 1)
    mean = box_sum(w * IMAGE, 1) / count
    np.testing.assert_allclose(chunkwise.mean(IMAGE, 1, **{name: weights}), mean, rtol=1e-5)
    variance = box_sum(w * IMAGE.astype(np.float64) ** 2, 1) / count - mean**2
    np.testing.assert_allclose(chunkwise.variance(IMAGE, 1, **{name: weights}), variance, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(chunkwise.sum(IMAGE, 1, **{name: weights}), box_sum(w * IMAGE, 1), rtol=1e-5, atol=1e-3)


def test_nan_is_outside_and_windows_may_be_empty():
    image = IMAGE.copy()
    image[2:8, 2:8, 2:8] = np.nan
    inside = ~np.isnan(image)
    count = box_sum(inside, 1)
    mean = box_sum(np.where(inside, image, 0), 1) / np.where(count > 0, count, 1)
    found = chunkwise.mean(image, 1, ignore_nan=True)
    assert np.array_equal(np.isnan(found), count == 0) and (count == 0).any()
    np.testing.assert_allclose(found[count > 0], mean[count > 0], rtol=1e-5)
    filled = chunkwise.mean(image, 1, ignore_nan=True, empty_value=-1)
    assert (filled[count == 0] == -1).all() and np.array_equal(filled[count > 0], found[count > 0])
    assert np.isnan(chunkwise.mean(image, 1)[count < 27]).any()


def test_a_mask_of_ones_changes_no_bit():
    for image in (IMAGE, IMAGE.astype(np.uint8), IMAGE.astype(np.int16)):
        ones = np.ones(image.shape, np.uint8)
        for call in (lambda **more: chunkwise.mean(image, 2, **more), lambda **more: chunkwise.std(image, 2, **more),
                     lambda **more: chunkwise.gaussian(image, sigma=1.5, **more),
                     lambda **more: chunkwise.maximum(image, 2, **more)):
            assert np.array_equal(call(), call(mask=ones))


def test_morphology_in_a_mask():
    found = chunkwise.maximum(IMAGE, 1, mask=MASK)
    padded = np.pad(np.where(MASK != 0, IMAGE, -np.inf), 1, constant_values=-np.inf)
    expected = np.max([padded[tuple(slice(o, o + n) for o, n in zip(offset, IMAGE.shape))]
                       for offset in np.ndindex(3, 3, 3)], axis=0)
    assert np.array_equal(found, expected.astype(np.float32))


@pytest.mark.parametrize("kind", [np.float32, np.uint8, np.int32])
def test_ranks_and_entropy_in_a_mask(kind):
    image = IMAGE.astype(kind)
    seen = np.where(MASK != 0, image.astype(np.float64), np.nan)
    padded = np.pad(seen, 1, constant_values=np.nan)
    windows = np.sort(np.stack([padded[tuple(slice(o, o + n) for o, n in zip(offset, image.shape))]
                                for offset in np.ndindex(3, 3, 3)]), axis=0)
    count = np.isfinite(windows).sum(axis=0)
    for found, share in ((chunkwise.median(image, 1, mask=MASK), 0.5),
                         (chunkwise.percentile(image, 1, percentile=20, mask=MASK), 0.2)):
        rank = np.floor(share * np.maximum(count - 1, 0)).astype(int)
        expected = np.take_along_axis(windows, rank[None], axis=0)[0]
        assert np.array_equal(found[count > 0], expected[count > 0].astype(kind))
    assert np.array_equal(chunkwise.maximum(MASK, 1) != 0, count > 0)  # where windows see something
    found = chunkwise.entropy(image, 1, number_of_bins=4, range=(60, 140), mask=MASK, output=np.float64)
    bins = np.clip(np.floor((windows - 60) / 20), 0, 3)
    shares = np.stack([(bins == b).sum(axis=0) for b in range(4)]) / np.maximum(count, 1)
    expected = -np.sum(np.where(shares > 0, shares * np.log2(np.where(shares > 0, shares, 1)), 0), axis=0)
    np.testing.assert_allclose(found[count > 0], expected[count > 0], atol=1e-5)


def test_wiener_takes_the_noise_of_the_voxels_inside():
    for name, further in (("mask", MASK), ("weight", WEIGHT * MASK)):
        variance = chunkwise.variance(IMAGE, 1, **{name: further})
        noise = variance[further > 0].astype(np.float64).mean()
        found = chunkwise.wiener(IMAGE, 1, noise_variance="auto", **{name: further})
        np.testing.assert_allclose(found, chunkwise.wiener(IMAGE, 1, noise_variance=noise, **{name: further}), rtol=1e-5)
        assert not np.allclose(found, chunkwise.wiener(IMAGE, 1, noise_variance="auto"), rtol=1e-3)


def test_high_pass_and_boxes_in_a_mask():
    smooth = chunkwise.gaussian(IMAGE, sigma=1, mask=MASK)
    assert np.array_equal(chunkwise.highpass(IMAGE, sigma=1, mask=MASK), IMAGE - smooth)
    radii = RANDOM.integers(0, 3, IMAGE.shape).astype(np.uint8)
    for statistic, same in (("mean", chunkwise.mean), ("sum", chunkwise.sum), ("std", chunkwise.std)):
        found = chunkwise.box(IMAGE, 2, statistic=statistic, mask=MASK)
        np.testing.assert_allclose(found, same(IMAGE, 2, mask=MASK), rtol=1e-5)
        varying = chunkwise.box(IMAGE, 2, statistic=statistic, mask=MASK, radius_image=radii)
        assert np.array_equal(varying[radii == 2], found[radii == 2])
    kernel = np.full((3, 3, 3), 1 / 27)
    for found in (chunkwise.convolve_image(IMAGE, kernel_image=kernel, method="fft", mask=MASK),
                  chunkwise.convolve_varying(IMAGE, kernel_images=kernel[None], grid_size=1, mask=MASK)):
        np.testing.assert_allclose(found, chunkwise.mean(IMAGE, 1, mask=MASK), rtol=1e-5)


def test_what_cannot_be_served_is_refused():
    for message, call in (
        ("beside", lambda: chunkwise.mean(IMAGE, 1, mask=MASK, weight=WEIGHT)),
        ("negative", lambda: chunkwise.mean(IMAGE, 1, weight=-WEIGHT)),
        ("has no effect", lambda: chunkwise.mean(IMAGE, 1, empty_value=3)),
        ("float32", lambda: chunkwise.mean(IMAGE, 1, mask=WEIGHT)),
    ):
        with pytest.raises(ParameterError, match=message):
            call()
    with pytest.raises((ParameterError, ValueError)):
        chunkwise.mean(IMAGE, 1, mask=MASK[1:])
    with pytest.raises(TypeError):
        chunkwise.median(IMAGE, 1, weight=WEIGHT)


@pytest.mark.parametrize("mode, theirs", [("nearest", "extend"), ("wrap", "wrap")])
def test_astropy_interpolates_alike(mode, theirs):
    convolution = pytest.importorskip("astropy.convolution")
    image = IMAGE.astype(np.float64)
    image[RANDOM.random(image.shape) < 0.2] = np.nan
    kernel = RANDOM.uniform(0.1, 1, (3, 3, 3))
    expected = convolution.convolve(image, kernel, boundary=theirs, nan_treatment="interpolate", normalize_kernel=True)
    found = chunkwise.convolve(image, radius=1, weights=list((kernel / kernel.sum()).ravel()), ignore_nan=True,
                               mode=mode)
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_a_mask_may_be_of_bool():
    for call in (chunkwise.mean, chunkwise.gaussian, chunkwise.median):
        assert np.array_equal(call(IMAGE, 1, mask=MASK != 0), call(IMAGE, 1, mask=MASK), equal_nan=True)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16", "int32", "int64", "float32", "float64"])
def test_what_sees_all_voxels_rounds_as_without(dtype):
    image = RANDOM.integers(-100 if np.dtype(dtype).kind != "u" else 0, 100, IMAGE.shape).astype(dtype)
    ones = np.ones(image.shape)
    for output in ("float32", "float64", dtype):
        for rounding in ("nearest", "toward-zero"):
            expected = chunkwise.mean(image, 1, rounding=rounding, output=output)
            seen = []
            if np.dtype(output).kind == "f" or np.dtype(dtype).itemsize < 8:
                seen.append({"mask": ones.astype(np.uint8)})
            seen.append({"weight": ones} if image.dtype.kind == "f" or image.dtype.itemsize > 2
                        else {"weight": ones.astype(np.float32)})
            if image.dtype.kind == "f":
                seen += [{"ignore_nan": True}]
            for given in seen:
                found = chunkwise.mean(image, 1, rounding=rounding, output=output, **given)
                assert np.array_equal(found, expected), (output, rounding, list(given))


def entropies(image, radius, bins, lower, upper):
    """By the definition, of the voxels that are numbers."""
    found = np.full(image.shape, np.nan)
    for at in np.ndindex(*image.shape):
        window = image[tuple(slice(max(i - radius, 0), i + radius + 1) for i in at)].ravel()
        window = window[~np.isnan(window)].astype(np.float64)
        if window.size:
            number = np.clip(np.floor((window - lower) * (bins / (upper - lower))), 0, bins - 1)
            counts = np.unique(number, return_counts=True)[1]
            found[at] = -np.sum(counts / window.size * np.log2(counts / window.size))
    return found


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_nan_is_in_no_bin_of_an_entropy(dtype):
    image = RANDOM.normal(100, 20, (9, 10, 11)).astype(dtype)
    image[RANDOM.random(image.shape) < 0.3] = np.nan
    image[:4, :4, :4] = np.nan
    expected = entropies(image, 1, 16, 40, 160)
    assert np.isnan(expected).any()
    found = chunkwise.entropy(image, 1, number_of_bins=16, range=(40, 160))
    np.testing.assert_allclose(found, expected, atol=1e-5)
    mask = np.ones(image.shape, np.uint8)
    for given in ({"mask": mask}, {"ignore_nan": True}):
        assert np.array_equal(chunkwise.entropy(image, 1, number_of_bins=16, range=(40, 160), **given), found,
                              equal_nan=True)
    known = chunkwise.entropy(image, 1, number_of_bins=16, range="auto")
    assert np.array_equal(chunkwise.entropy(image, 1, number_of_bins=16, range="auto", mask=mask), known, equal_nan=True)
    filled = chunkwise.entropy(image, 1, number_of_bins=16, range=(40, 160), empty_value=-2)
    assert np.array_equal(filled == -2, np.isnan(expected))
