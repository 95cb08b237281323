# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Deconvolution: the definition, scikit-image where nothing touches the edge, and kernels from beads."""
from __future__ import annotations

import chunkwise
import numpy as np
import pytest

signal = pytest.importorskip("scipy.signal")


def _definition(image, kernel, iterations, weight=None, background=0.0):
    weight = np.ones(image.shape) if weight is None else weight
    below = [n - 1 - n // 2 for n in kernel.shape]
    norm = signal.correlate(weight, kernel, "full", "direct")
    seen = norm > 0.01 * kernel.sum()
    u = np.where(seen, (weight * (image - background)).sum() / weight.sum(), 0.0)
    for _ in range(iterations):
        expected = signal.convolve(u, kernel, "valid", "direct") + background
        u = np.where(seen, u * signal.correlate(weight * image / expected, kernel, "full", "direct") / np.where(seen, norm, 1), 0)
    return u[tuple(slice(b, b + n) for b, n in zip(below, image.shape))]


@pytest.mark.parametrize("shape, size", [((20, 17), (5, 4)), ((9, 10, 11), (3, 2, 5))])
def test_richardson_lucy_as_the_definition_says(shape, size):
    random = np.random.default_rng(1)
    image, kernel = random.uniform(5, 90, shape), random.uniform(0.1, 1, size)
    kernel /= kernel.sum()
    weight = (random.uniform(size=shape) > 0.2).astype(np.float32)
    found = chunkwise.deconvolve(image, kernel, number_of_iterations=4, weight=weight, background=2.5)
    np.testing.assert_allclose(found, _definition(image, kernel, 4, weight, 2.5), rtol=1e-8)
    assert found.dtype == np.float64
    for threads in (1, 2):
        again = chunkwise.deconvolve(image, kernel, number_of_iterations=4, weight=weight, background=2.5, threads=threads)
        np.testing.assert_array_equal(found, again)


@pytest.mark.parametrize("iterations", [5, 40])
def test_floats_are_as_near_to_the_object_as_the_reference_in_double(iterations):
    random = np.random.default_rng(7)
    light = np.full((70, 66), 5.0)
    for y, x in random.integers(0, 60, (40, 2)):
        light[y:y + 5, x:x + 4] += random.uniform(20, 300)
    kernel = np.outer(*[signal.windows.gaussian(9, 1.8)] * 2)
    kernel /= kernel.sum()
    image = random.poisson(signal.convolve(light, kernel, "valid", "direct")).astype(np.float32)
    truth = light[4:-4, 4:-4]
    reference = _definition(image.astype(np.float64), kernel, iterations)
    found = chunkwise.deconvolve(image, kernel, number_of_iterations=iterations)
    assert found.dtype == np.float32
    errors = [np.linalg.norm(each - truth) / np.linalg.norm(truth) for each in (found, reference)]
    assert abs(errors[0] - errors[1]) < 1e-5 * errors[1]
    assert np.linalg.norm(found - reference) < 1e-5 * np.linalg.norm(reference)


def _smooth(least):
    n = rest = least
    for prime in (2, 3, 5):
        while rest % prime == 0:
            rest //= prime
    return n if rest == 1 else _smooth(least + 1)


@pytest.mark.parametrize("dtype", [np.float64, np.uint8])
@pytest.mark.parametrize("algorithm, options", [
    ("wiener", {"noise_variance": 3e4}), ("tikhonov", {"regularization_constant": 0.01}), ("inverse", {})])
def test_spectra_as_the_definition_says(algorithm, options, dtype):
    random = np.random.default_rng(5)
    image, kernel = random.uniform(5, 90, (23, 20, 11)).astype(dtype), random.uniform(0.1, 1, (4, 3, 5))
    kernel /= kernel.sum()
    padded = [_smooth(n + k) for n, k in zip(image.shape, kernel.shape)]
    before = [(p - n) // 2 for p, n in zip(padded, image.shape)]
    grown = np.pad(image.astype(float), [(b, p - n - b) for b, p, n in zip(before, padded, image.shape)], "edge")
    spectrum = np.fft.fftn(grown)
    blur = np.fft.fftn(np.roll(np.pad(kernel, [(0, p - k) for p, k in zip(padded, kernel.shape)]),
                               [-(k // 2) for k in kernel.shape], (0, 1, 2)))
    power = np.abs(blur) ** 2
    if algorithm == "wiener":
        power += 3e4 / (np.abs(spectrum) ** 2 - 3e4)
    power += options.get("regularization_constant", 0)
    kept = (np.abs(blur) if algorithm == "inverse" else np.abs(power)) >= 0.02
    expected = np.fft.ifftn(np.where(kept, spectrum * blur.conj() / power, 0)).real
    expected = expected[tuple(slice(b, b + n) for b, n in zip(before, image.shape))]
    found = chunkwise.deconvolve(image, kernel, algorithm=algorithm, kernel_zero_magnitude_threshold=0.02, **options)
    assert found.dtype == (np.float64 if dtype == np.float64 else np.float32)
    np.testing.assert_allclose(found, expected, rtol=1e-5 if dtype == np.uint8 else 1e-9, atol=1e-5 if dtype == np.uint8 else 1e-8)
    again = chunkwise.deconvolve(image, kernel, algorithm=algorithm, kernel_zero_magnitude_threshold=0.02, threads=1, **options)
    np.testing.assert_array_equal(found, again)


def test_scikit_image_finds_the_same_far_from_the_edge():
    restoration = pytest.importorskip("skimage.restoration")
    truth = np.zeros((61, 60))
    truth[28:33, 27:30] = 0.9
    kernel = np.outer(*[signal.windows.gaussian(9, 1.4)] * 2)
    kernel /= kernel.sum()
    image = signal.convolve(truth, kernel, "same") + 1e-3
    expected = restoration.richardson_lucy(image, kernel, num_iter=8)
    found = chunkwise.richardson_lucy(image, kernel, num_iter=8)
    np.testing.assert_allclose(found[20:41, 20:38], expected[20:41, 20:38], rtol=2e-3, atol=2e-4)


def test_masked_voxels_do_not_count():
    random = np.random.default_rng(3)
    image, kernel = random.uniform(5, 90, (30, 31)), np.ones((3, 3))
    weight = np.ones(image.shape, np.uint8)
    weight[10:12, 7:9] = 0
    wrong = image.copy()
    wrong[10:12, 7:9] = np.nan
    expected = chunkwise.deconvolve(image, kernel, weight=weight)
    np.testing.assert_array_equal(chunkwise.deconvolve(wrong, kernel, weight=weight), expected)
    np.testing.assert_array_equal(chunkwise.deconvolve(wrong, kernel), expected)


def test_beads_are_averaged_at_their_centroids():
    image = np.full((60, 70), 100.0)
    y, x = np.mgrid[:60, :70]
    places = [(20.3, 20.1), (21.7, 50.4), (45.0, 30.6)]
    for v, u in places:
        image += 900 * np.exp(-((y - v) ** 2 + (x - u) ** 2) / (2 * 1.8**2))
    kernel = chunkwise.average_beads(image, places, (15, 13))
    assert kernel.shape == (15, 13) and abs(kernel.sum() - 1) < 1e-12
    center = [(kernel * np.arange(n).reshape(s)).sum() for n, s in ((15, (-1, 1)), (13, (1, -1)))]
    np.testing.assert_allclose(center, (7, 6), atol=0.05)
    with pytest.raises(ValueError, match="none of 1"):
        chunkwise.average_beads(image, [(1, 1)], (15, 13))
    with pytest.raises(ValueError, match="odd"):
        chunkwise.average_beads(image, places, (14, 13))
    with pytest.raises(ValueError, match="no light"):
        chunkwise.average_beads(np.ones((40, 40)), [(20, 20)], (5, 5))


def test_reports_have_the_divergence_of_each_iteration():
    random = np.random.default_rng(4)
    image, kernel = random.uniform(5, 90, (20, 21)).astype("float32"), np.ones((3, 3))
    for _ in range(2):
        with chunkwise.reports() as found:
            chunkwise.deconvolve(image, kernel, number_of_iterations=3)
            chunkwise.mean(image, 1)
        assert len(found) == 2 and found[1]["figures"] == []
        divergence = [number for name, number in found[0]["figures"] if name.startswith("divergence")]
        assert len(divergence) == 3 and divergence[0] > divergence[1] > divergence[2] > 0
    chunkwise.mean(image, 1)
    assert len(found) == 2


def test_errors_name_the_parameter():
    image, kernel = np.ones((9, 9), np.float32), np.ones((3, 3))
    with pytest.raises(chunkwise.ParameterError, match="number_of_iterations"):
        chunkwise.deconvolve(image, kernel, number_of_iterations=0)
    with pytest.raises(chunkwise.ParameterError, match="background"):
        chunkwise.deconvolve(image, kernel, background=-1)
    with pytest.raises(chunkwise.ParameterError, match="kernel_image"):
        chunkwise.deconvolve(image, -kernel)
