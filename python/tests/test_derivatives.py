# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Derivatives, and what follows from them, against NumPy, SciPy and scikit-image."""
from __future__ import annotations

import itertools

import chunkwise
import numpy as np
import pytest
from chunkwise import ndimage as ours
from scipy import ndimage

MODES = ("reflect", "nearest", "constant", "wrap", "mirror")


def noise(shape, dtype=np.float32, seed=5):
    return (np.random.default_rng(seed).random(shape) * 200).astype(dtype)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("order", [(0, 0, 1), (1, 0, 2), (3, 1, 0), (2, 2, 2)])
def test_gaussian_filter_with_orders_is_scipys(mode, order):
    image = noise((17, 14, 21))
    found = ours.gaussian_filter(image, (1.3, 0.8, 2.1), order, mode=mode)
    expected = ndimage.gaussian_filter(image.astype(np.float64), (1.3, 0.8, 2.1), order, mode=mode)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, atol=2e-5 * 200)
    exact = ours.gaussian_filter(image.astype(np.float64), (1.3, 0.8, 2.1), order, mode=mode)
    np.testing.assert_allclose(exact, expected, atol=1e-12 * 200)


@pytest.mark.parametrize("mode", MODES)
def test_gaussian_gradient_magnitude_is_scipys(mode):
    for image in (noise((17, 14, 21), np.float64), noise((40, 33), np.float64)):
        np.testing.assert_allclose(ours.gaussian_gradient_magnitude(image, 1.7, mode=mode),
                                   ndimage.gaussian_gradient_magnitude(image, 1.7, mode=mode), atol=1e-10)


def test_operators_are_those_of_scipy_inside_and_numpy():
    image = noise((15, 12), np.float64)
    inside = (slice(1, -1), slice(1, -1))
    for operator, function, scale in (("sobel", ndimage.sobel, 8), ("prewitt", ndimage.prewitt, 6)):
        for axis in (0, 1):
            order = (int(axis == 0), int(axis == 1))
            found = chunkwise.derivative(image, order, operator=operator)
            np.testing.assert_allclose(found[inside], function(image, axis)[inside] / scale, atol=1e-11)
    for axis in (0, 1):
        found = chunkwise.derivative(image, (int(axis == 0), int(axis == 1)), operator="central")
        # NumPy has differences of neighbors, and of two voxels at the edge.
        np.testing.assert_allclose(found, np.gradient(image, axis=axis), atol=1e-11)
    ramp = np.add.outer(3.0 * np.arange(7), -2.0 * np.arange(5))
    for operator in ("sobel", "prewitt", "scharr", "central"):
        found = chunkwise.gradient(ramp, operator=operator, output_components=True)
        # Components are in the order of the engine's axes, x first.
        np.testing.assert_allclose(found, np.broadcast_to([-2.0, 3.0], found.shape), atol=1e-12)


def test_derivatives_are_exact_for_polynomials_up_to_the_edge():
    z, y, x = np.meshgrid(*(np.arange(n, dtype=float) for n in (9, 11, 13)), indexing="ij")
    image = x**2 * y - 4 * x * y + 7 * z + 100
    np.testing.assert_allclose(chunkwise.derivative(image, (0, 1, 2), sigma=1.5), 2.0, atol=1e-9)
    np.testing.assert_allclose(chunkwise.derivative(image, (0, 0, 3), sigma=1.5), 0.0, atol=1e-9)
    np.testing.assert_allclose(chunkwise.derivative(7 * z - x, (1, 0, 0), sigma=1.5, spacing=(2.0, 1.0, 1.0)), 3.5, atol=1e-12)


def test_eigenvalues_are_lapacks_and_the_same_bits_for_all_threads():
    image = noise((19, 23, 31), np.float64)
    elements = chunkwise.hessian(image, "elements", sigma=1.2, output_components=True)
    matrices = np.empty((*image.shape, 3, 3))
    for number, (row, column) in enumerate(itertools.combinations_with_replacement(range(3), 2)):
        matrices[..., row, column] = matrices[..., column, row] = elements[..., number]
    expected = np.linalg.eigvalsh(matrices)
    found = chunkwise.hessian_eigenvalues(image, 1.2)
    np.testing.assert_allclose(found, np.moveaxis(expected, -1, 0)[::-1], atol=1e-8 * abs(expected).max())
    for threads in (1, 3):
        np.testing.assert_array_equal(chunkwise.hessian_eigenvalues(image, 1.2, threads=threads), found)


def test_eigenvectors_are_lapacks():
    image = noise((13, 12, 17), np.float64)
    for function in (chunkwise.hessian, lambda *a, **k: chunkwise.structure_tensor(a[0], 1.0, result=a[1], **k)):
        elements = function(image, "elements", sigma=1.2, output_components=True)
        matrices = np.empty((*image.shape, 3, 3))
        for number, (row, column) in enumerate(itertools.combinations_with_replacement(range(3), 2)):
            matrices[..., row, column] = matrices[..., column, row] = elements[..., number]
        vectors = np.swapaxes(np.linalg.eigh(matrices)[1], -1, -2)
        # The component of the largest magnitude is positive.
        largest = np.take_along_axis(vectors, abs(vectors).argmax(-1)[..., None], -1)
        expected = (vectors * np.sign(largest)).reshape(*image.shape, 9)
        found = function(image, "eigenvectors", sigma=1.2, output_components=True)
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_divergence_of_a_gradient_is_a_sum_of_second_derivatives():
    image = noise((17, 14, 21), np.float64)
    spacing = (2.0, 0.8, 1.25)
    g = chunkwise.gradient(image, operator="central", output_components=True, spacing=spacing)
    # Components are in the order of the engine's axes, x first.
    found = chunkwise.divergence(g[..., 0], second=g[..., 1], third=g[..., 2], operator="central", spacing=spacing)
    expected = sum(np.gradient(np.gradient(image, step, axis=axis), step, axis=axis) for axis, step in enumerate(spacing))
    np.testing.assert_allclose(found, expected, atol=1e-10)
    smoothed = chunkwise.divergence(image, of_gradient=True, sigma=1.3, spacing=spacing)
    elements = chunkwise.hessian(image, "elements", sigma=1.3, output_components=True, spacing=spacing)
    np.testing.assert_allclose(smoothed, elements[..., 0] + elements[..., 3] + elements[..., 5], atol=1e-11)
    with pytest.raises(chunkwise.ParameterError, match="second"):
        chunkwise.divergence(image, sigma=1)
    with pytest.raises(chunkwise.ParameterError, match="of_gradient"):
        chunkwise.divergence(image, second=image, of_gradient=True, sigma=1)


@pytest.mark.parametrize("result, expected", [("level-set", 2.0), ("mean", 1.0), ("smallest", 1.0), ("largest", 1.0), ("gaussian", 1.0)])
def test_curvature_of_a_sphere_is_that_of_its_radius(result, expected):
    spacing = (2.0, 0.8, 1.25)
    z, y, x = np.meshgrid(*((np.arange(n) - n / 2 + 0.3) * step for n, step in zip((20, 30, 24), spacing)), indexing="ij")
    radius = np.sqrt(x**2 + y**2 + z**2)
    inside = (slice(5, -5), slice(8, -8), slice(6, -6))
    found = chunkwise.curvature(radius**2, result, sigma=1, spacing=spacing)
    expected = expected / radius ** (2 if result == "gaussian" else 1)
    # Principal curvatures that meet are within the root of a rounding.
    np.testing.assert_allclose(found[inside], expected[inside], rtol=1e-6)
    dark = chunkwise.curvature(-(radius**2), "mean", sigma=1, spacing=spacing)
    np.testing.assert_allclose(dark[inside], -1 / radius[inside], rtol=1e-6)
    assert not chunkwise.curvature(np.ones((6, 7, 8)), result, sigma=1).any()


def test_curvature_of_contours_of_two_dimensions():
    y, x = np.meshgrid(np.arange(30) - 14.7, np.arange(40) - 20.2, indexing="ij")
    radius = np.hypot(x, y)
    inside = (slice(5, -5), slice(5, -5))
    np.testing.assert_allclose(chunkwise.curvature(radius**2, sigma=1)[inside], (1 / radius)[inside], rtol=1e-9)
    gradient = 2 * radius
    found = chunkwise.curvature(radius**2, sigma=1, least_gradient=12)[inside]
    np.testing.assert_allclose(found, np.where(gradient > 12, 1 / radius, 0)[inside], rtol=1e-9)
    with pytest.raises(chunkwise.ParameterError, match="gaussian"):
        chunkwise.curvature(radius, "gaussian", sigma=1)


def tubes(shape=(24, 40, 44)):
    z, y, x = np.meshgrid(*(np.arange(n, dtype=float) for n in shape), indexing="ij")
    image = 100 * np.exp(-((y - 20) ** 2 + (z - 12) ** 2) / 8) + 60 * np.exp(-((x - 12) ** 2 + (z - 10) ** 2) / 5)
    return (image + np.random.default_rng(3).random(shape) * 4).astype(np.float64)


def test_ridges_are_those_of_scikit_image_inside():
    filters = pytest.importorskip("skimage.filters")
    image = tubes()
    inside = tuple(slice(8, -8) for _ in range(3))
    for sigma in (1.5, 2.0):
        # One scale: scikit-image has no factor of sigma squared, which the automatic contrast takes out again.
        found = chunkwise.frangi(image, [sigma], black_ridges=False)
        expected = filters.frangi(image, [sigma], black_ridges=False)
        # It takes eigenvalues of the other sign for very small ones.
        assert (abs(found - expected)[inside] > 0.02).mean() < 1e-3
        np.testing.assert_allclose(chunkwise.sato(image, [sigma], black_ridges=False)[inside],
                                   filters.sato(image, [sigma], black_ridges=False)[inside], atol=1)
        # The eigenvalue of the largest magnitude may be another one.
        difference = (chunkwise.meijering(image, [sigma], black_ridges=False)
                      - filters.meijering(image, [sigma], black_ridges=False))
        assert (abs(difference)[inside] > 0.02).mean() < 1e-2


def test_a_constant_from_the_whole_image_is_the_one_that_is_given():
    image = tubes()
    scales = (1.0, 2.0)
    norms = [np.sqrt((chunkwise.hessian_eigenvalues(image, sigma, mode="reflect") ** 2).sum(0)).max() * sigma**2 / 2
             for sigma in scales]
    np.testing.assert_allclose(chunkwise.frangi(image, scales), chunkwise.frangi(image, scales, gamma=norms), atol=1e-7)
    several = chunkwise.frangi(image, scales, gamma=norms)
    each = [chunkwise.frangi(image, [sigma], gamma=norm) for sigma, norm in zip(scales, norms)]
    np.testing.assert_array_equal(several, np.maximum(*each))


def test_structure_tensors_are_those_of_their_definition():
    image = noise((14, 17, 12), np.float64)
    # Components are in the order of the engine's axes, x first.
    gradient = chunkwise.gradient(image, sigma=1.1, output_components=True)
    matrices = np.empty((*image.shape, 3, 3))
    for row, column in itertools.product(range(3), repeat=2):
        matrices[..., row, column] = chunkwise.gaussian(gradient[..., row] * gradient[..., column], 1.7)
    values, vectors = np.linalg.eigh(matrices)
    given = {"sigma": 1.1, "output_components": True}
    found = chunkwise.structure_tensor(image, 1.7, **given)
    np.testing.assert_allclose(found, values, atol=1e-7 * values.max())
    axes = chunkwise.structure_tensor(image, 1.7, result="orientation", **given)
    clear = values[..., 1] - values[..., 0] > 1e-3 * values[..., 2]
    assert clear.mean() > 0.9
    np.testing.assert_allclose(abs((axes * vectors[..., 0]).sum(-1))[clear], 1, atol=1e-6)
    coherence = chunkwise.structure_tensor(image, 1.7, result="coherence", sigma=1.1)
    np.testing.assert_allclose(coherence, (values[..., 2] - values[..., 0]) / (values[..., 2] + values[..., 0]), atol=1e-6)
    for threads in (1, 3):
        np.testing.assert_array_equal(chunkwise.structure_tensor(image, 1.7, threads=threads, **given), found)
    y, x = np.mgrid[:30, :40]
    stripes = np.sin(0.8 * x + 0.6 * y)
    along = chunkwise.structure_tensor(stripes, 3, result="orientation", **given)
    np.testing.assert_allclose(along, np.broadcast_to([-0.6, 0.8], along.shape), atol=0.05)
    assert chunkwise.structure_tensor(stripes, 3, result="coherence", sigma=1.1).min() > 0.9


def test_the_direction_of_a_hessian_is_along_the_tube():
    directions = chunkwise.hessian(tubes(), "direction", sigma=2, output_components=True)
    assert (directions[12, 20, 25:35, 0] > 0.99).all()


def test_what_is_wrong_is_named():
    image = noise((5, 6, 7))
    with pytest.raises(chunkwise.ParameterError, match="order: 3 .*is more than 2"):
        chunkwise.derivative(image, (0, 3, 0), operator="sobel")
    with pytest.raises(chunkwise.ParameterError, match="order: 4"):
        chunkwise.derivative(image, 4, sigma=1)
    with pytest.raises(chunkwise.ParameterError, match="sigma"):
        chunkwise.gradient(image)
    with pytest.raises(chunkwise.ParameterError, match="number: 3 is not below 3"):
        chunkwise.hessian(image, number=3, sigma=1)
    with pytest.raises(chunkwise.ParameterError, match="number: 3 is not below 3"):
        chunkwise.structure_tensor(image, 2, number=3, sigma=1)
    with pytest.raises(chunkwise.ParameterError, match="outer_sigma: .*makes a kernel with a radius of more than 65535"):
        chunkwise.structure_tensor(image, 1e6, sigma=1)
    with pytest.raises(chunkwise.ParameterError, match="contrast: 2 numbers for 1 scales"):
        chunkwise.frangi(image, [1], gamma=(1, 2))
    with pytest.raises(chunkwise.ParameterError, match="measure: sheetness"):
        chunkwise.vesselness(image[0], 1, measure="sheetness", contrast=1)
