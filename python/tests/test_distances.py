# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Distances compared with SciPy's, and with what follows from these."""
import numpy as np
import pytest
import scipy.ndimage as scipy_ndi

import chunkwise
from chunkwise import ndimage as ndi

SHAPES = [(37,), (21, 34), (9, 14, 17), (1, 40, 1), (3, 1, 50)]
SAMPLINGS = [None, 2.0, 0.3, (1.0, 7.0, 0.3)]


def blobs(random, shape, rarity):
    return random.random(shape) > rarity


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("rarity", [0.02, 0.3, 0.9])
def test_distances_are_those_of_scipy(shape, sampling, rarity):
    random = np.random.default_rng(len(shape) + int(100 * rarity))
    image = blobs(random, shape, rarity)
    image.flat[random.integers(image.size)] = False
    sampling = sampling[:len(shape)] if isinstance(sampling, tuple) else sampling
    for dtype in (bool, np.uint8, np.int16, np.float32):
        ours = ndi.distance_transform_edt(image.astype(dtype), sampling)
        theirs = scipy_ndi.distance_transform_edt(image.astype(dtype), sampling)
        assert ours.dtype == theirs.dtype == np.float64
        np.testing.assert_allclose(ours, theirs, rtol=1e-15)


@pytest.mark.parametrize("shape", SHAPES)
def test_indices_lead_to_the_first_nearest_voxel(shape):
    random = np.random.default_rng(7)
    image = blobs(random, shape, 0.1)
    image.flat[random.integers(image.size)] = False
    sampling = (1.0, 2.0, 0.5)[:len(shape)]
    distances, indices = ndi.distance_transform_edt(image, sampling, return_indices=True)
    assert indices.dtype == np.int32 and indices.shape == (len(shape), *shape)
    assert not image[tuple(indices)].any()
    apart = (indices - np.indices(shape)) * np.array(sampling).reshape(-1, *(1,) * len(shape))
    np.testing.assert_allclose(np.sqrt((apart ** 2).sum(0)), distances, rtol=1e-15)
    zeros = np.argwhere(~image)
    for voxel in np.ndindex(shape):
        squares = (((zeros - voxel) * sampling) ** 2).sum(1)
        assert tuple(indices[(slice(None), *voxel)]) == tuple(zeros[squares.argmin()])


@pytest.mark.parametrize("shape", [*SHAPES, (4, 5, 6, 3)])
def test_distances_in_steps(random, shape):
    for rarity in (0.02, 0.3, 0.95, 1.0):
        image = random.random(shape) < rarity
        for metric in ("taxicab", "chessboard", "manhattan"):
            theirs = scipy_ndi.distance_transform_cdt(image, metric)
            ours, indices = ndi.distance_transform_cdt(image, metric, return_indices=True)
            assert ours.dtype == theirs.dtype
            np.testing.assert_array_equal(ours, theirs)
            if image.all():
                assert (indices == -1).all()
                continue
            assert not image[tuple(indices)].any()
            steps = np.abs(indices - np.indices(shape))
            np.testing.assert_array_equal(steps.max(0) if metric == "chessboard" else steps.sum(0), theirs)
            brute = ndi.distance_transform_bf(image, metric)
            assert brute.dtype == np.uint32
            np.testing.assert_array_equal(brute, theirs)
        structure = ndi.generate_binary_structure(len(shape), len(shape))
        np.testing.assert_array_equal(ndi.distance_transform_cdt(image, structure), scipy_ndi.distance_transform_cdt(image, structure))
    if len(shape) < 4:
        np.testing.assert_array_equal(ndi.distance_transform_bf(image[..., :0], return_indices=True)[1].shape,
                                      (len(shape), *image[..., :0].shape))
        half = random.random(shape) < 0.5
        half.flat[0] = False
        np.testing.assert_allclose(ndi.distance_transform_bf(half, sampling=0.5), scipy_ndi.distance_transform_bf(half, sampling=0.5))
    targets = np.empty(shape, np.int32), np.empty((len(shape), *shape), np.int32)
    assert ndi.distance_transform_cdt(image, return_indices=True, distances=targets[0], indices=targets[1]) is None
    np.testing.assert_array_equal(targets[0], scipy_ndi.distance_transform_cdt(image))


def test_metrics_that_are_not_there():
    image = np.ones((3, 4))
    for call in (lambda: ndi.distance_transform_cdt(image, "euclidean"), lambda: ndi.distance_transform_bf(image, "mean"),
                 lambda: ndi.distance_transform_cdt(image, np.eye(3))):
        with pytest.raises((chunkwise.ParameterError, RuntimeError), match="metric"):
            call()
    with pytest.raises(RuntimeError, match="at least one"):
        ndi.distance_transform_cdt(image, return_distances=False)


def test_results_go_into_arrays():
    image = np.ones((5, 6), np.uint8)
    image[2, 3] = 0
    distances, indices = np.empty((5, 6)), np.empty((2, 5, 6), np.int32)
    assert ndi.distance_transform_edt(image, return_indices=True, distances=distances, indices=indices) is None
    np.testing.assert_array_equal(distances, scipy_ndi.distance_transform_edt(image))
    assert (indices[0] == 2).all() and (indices[1] == 3).all()
    only = ndi.distance_transform_edt(image, return_distances=False, return_indices=True)
    np.testing.assert_array_equal(only, indices)
    for wrong in ({"distances": np.empty((5, 6), np.float32)}, {"distances": np.empty((6, 5))},
                  {"indices": np.empty((2, 5, 6), np.int32)}, {"return_distances": False}):
        with pytest.raises(RuntimeError):
            ndi.distance_transform_edt(image, **wrong)
    with pytest.raises(chunkwise.ParameterError, match="three axes"):
        ndi.distance_transform_edt(np.ones((2, 2, 2, 2)))
    with pytest.raises(chunkwise.ParameterError, match="sampling"):
        ndi.distance_transform_edt(image, sampling=(1, 2, 3))


def test_without_a_voxel_of_zero_distances_are_infinite():
    distances, indices = ndi.distance_transform_edt(np.ones((3, 4)), return_indices=True)
    assert np.isinf(distances).all() and (indices == -1).all()
    assert ndi.distance_transform_edt(np.zeros((3, 4))).max() == 0


def test_labels_expand_to_where_they_meet():
    random = np.random.default_rng(3)
    labels = np.where(random.random((20, 30, 25)) > 0.99, random.integers(1, 200, (20, 30, 25)), 0).astype(np.uint8)
    distances, indices = scipy_ndi.distance_transform_edt(labels == 0, return_indices=True)
    for distance in (0.0, 1.0, 3.5, 100.0):
        ours = chunkwise.expand_labels(labels, distance=distance)
        assert ours.dtype == labels.dtype
        np.testing.assert_array_equal(ours != 0, distances <= distance)
        np.testing.assert_array_equal(ours[labels != 0], labels[labels != 0])
        # If one label alone is nearest, it is SciPy's too.
        ties = ours != np.where(distances <= distance, labels[tuple(indices)], 0)
        for voxel in np.argwhere(ties):
            squares = ((np.argwhere(labels) - voxel) ** 2).sum(1)
            near = labels[labels != 0][squares == squares.min()]
            assert near[0] == ours[tuple(voxel)] and (near != near[0]).any()


@pytest.mark.parametrize("radius", [1.0, 2.5, 6.0])
def test_morphology_with_balls(radius):
    random = np.random.default_rng(5)
    image = scipy_ndi.gaussian_filter(random.random((25, 30, 20)), 2) > 0.5
    reach = int(radius)
    z, y, x = np.ogrid[-reach:reach + 1, -reach:reach + 1, -reach:reach + 1]
    ball = z * z + y * y + x * x <= radius * radius
    eroded = scipy_ndi.binary_erosion(image, ball, border_value=1)
    dilated = scipy_ndi.binary_dilation(image, ball)
    for operation, expected in (("dilation", dilated), ("erosion", eroded),
                                ("opening", scipy_ndi.binary_dilation(eroded, ball)),
                                ("closing", scipy_ndi.binary_erosion(dilated, ball, border_value=1))):
        ours = chunkwise.binary_morphology(image, radius=radius, morphology=operation)
        np.testing.assert_array_equal(ours != 0, expected, err_msg=operation)


def test_other_features():
    random = np.random.default_rng(6)
    labels = np.kron(random.integers(0, 4, (4, 5)), np.ones((5, 6), int)).astype(np.int32)
    ours = chunkwise.distance(labels, features="others", output=np.float64)
    expected = np.zeros(labels.shape)
    for label in np.unique(labels[labels != 0]):
        expected[labels == label] = scipy_ndi.distance_transform_edt(labels == label)[labels == label]
    np.testing.assert_array_equal(ours, expected)
    np.testing.assert_array_equal(chunkwise.distance(labels, features="objects", output=np.float64),
                                  scipy_ndi.distance_transform_edt(labels == 0))
    capped = chunkwise.distance(labels, maximum_distance=2.0, output=np.float64)
    np.testing.assert_array_equal(capped, np.minimum(scipy_ndi.distance_transform_edt(labels), 2.0))
    squares = chunkwise.distance(labels, squared_distance=True, output=np.int32)
    np.testing.assert_array_equal(squares, np.rint(scipy_ndi.distance_transform_edt(labels) ** 2))
