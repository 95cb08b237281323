# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Watersheds: the definition, and scikit-image's where both have one answer."""
from __future__ import annotations

import itertools

import chunkwise
import numpy as np
import pytest

ndimage = pytest.importorskip("scipy.ndimage")


def _forest(image, labels, connectivity, inside):
    """Kruskal's algorithm over all edges."""
    voxels, labels, index = image.ravel(), labels.ravel().astype(int).copy(), np.arange(image.size).reshape(image.shape)
    labels[~inside.ravel()] = 0
    edges = []
    for offset in itertools.product((-1, 0, 1), repeat=image.ndim):
        if offset <= (0,) * image.ndim or sum(map(abs, offset)) > connectivity:
            continue
        here = tuple(slice(max(0, -o), n - max(0, o)) for o, n in zip(offset, image.shape))
        there = tuple(slice(max(0, o), n - max(0, -o)) for o, n in zip(offset, image.shape))
        edges += [(max(voxels[i], voxels[j]), min(voxels[i], voxels[j]), i, j)
                  for i, j in zip(index[here].ravel(), index[there].ravel()) if inside.flat[i] and inside.flat[j]]
    parents = list(range(image.size))

    def find(i):
        while parents[i] != i:
            parents[i] = i = parents[parents[i]]
        return i

    for *_, i, j in sorted(edges):
        i, j = find(i), find(j)
        if i != j and (labels[i] == 0 or labels[j] == 0):
            labels[i] = max(labels[i], labels[j])
            parents[j] = i
    return np.array([labels[find(i)] for i in range(image.size)]).reshape(image.shape)


@pytest.mark.parametrize("dtype", ["uint8", "int64", "float32"])
@pytest.mark.parametrize("connectivity", [1, 2, 3])
def test_markers_grow_as_the_definition_says(dtype, connectivity):
    random = np.random.default_rng(connectivity)
    image = random.integers(0, 9, (7, 8, 9)).astype(dtype)
    markers = (random.integers(0, 30, image.shape) == 0) * random.integers(1, 200, image.shape)
    mask = random.integers(0, 5, image.shape) > 0
    whole = chunkwise.watershed(image, connectivity, markers=markers)
    assert whole.dtype == np.uint32
    np.testing.assert_array_equal(whole, _forest(image, markers, connectivity, np.ones(image.shape, bool)))
    expected = _forest(image, markers, connectivity, mask)
    for threads in (1, 3):
        found = chunkwise.watershed(image, connectivity, markers=markers, mask=mask, threads=threads)
        np.testing.assert_array_equal(found, expected)
    smallest = chunkwise.watershed(image, connectivity, markers=markers, mask=mask, output="auto")
    assert smallest.dtype == np.uint8
    np.testing.assert_array_equal(smallest, expected)


def test_nan_has_no_label_and_parts_basins():
    image = np.array([[0, 1, np.nan, 1, 0]], np.float32)
    np.testing.assert_array_equal(chunkwise.watershed(image), [[1, 1, 0, 2, 2]])
    np.testing.assert_array_equal(chunkwise.watershed(image, markers=np.array([[7, 0, 3, 0, 0]])), [[7, 7, 0, 0, 0]])


def test_minima_are_merged_by_height():
    image = np.array([3, 1, 4, 2, 9, 0, 9], np.uint8)
    np.testing.assert_array_equal(chunkwise.watershed(image), [1, 1, 1, 2, 3, 3, 3])
    np.testing.assert_array_equal(chunkwise.watershed(image, height=2), [1, 1, 1, 2, 3, 3, 3])
    np.testing.assert_array_equal(chunkwise.watershed(image, height=3), [1, 1, 1, 1, 2, 2, 2])
    np.testing.assert_array_equal(chunkwise.watershed(image, height=200), [1] * 7)
    np.testing.assert_array_equal(chunkwise.watershed(image, lines=True), [1, 1, 1, 0, 0, 3, 3])


def _merged(image, size, by_volume):
    """Kruskal's algorithm of an image without ties: where two trees meet, one that is smaller than the size is merged."""
    voxels, index = image.ravel().tolist(), np.arange(image.size).reshape(image.shape)
    parents, members, measured = list(range(image.size)), [[i] for i in range(image.size)], [(None, 0)] * image.size
    edges = [(max(voxels[i], voxels[j]), min(voxels[i], voxels[j]), i, j) for axis in range(image.ndim)
             for i, j in zip(np.delete(index, -1, axis).ravel(), np.delete(index, 0, axis).ravel())]

    def find(i):
        while parents[i] != i:
            i = parents[i]
        return i

    for high, *_, i, j in sorted(edges):
        i, j = find(i), find(j)
        for k in (i, j):
            # The largest one of the trees that have met at this level counts.
            below = [high - voxels[v] for v in members[k] if voxels[v] < high]
            measured[k] = measured[k] if measured[k][0] == high else (high, sum(below) if by_volume else len(below))
        if i != j and min(measured[i], measured[j]) < (high, size):
            parents[j] = i
            members[i] += members[j]
            measured[i] = max(measured[i], measured[j])
    return np.array([find(i) for i in range(image.size)]).reshape(image.shape)


@pytest.mark.parametrize("by_volume", [False, True])
def test_minima_are_merged_by_size(by_volume):
    random = np.random.default_rng(7)
    image = ndimage.gaussian_filter(random.standard_normal((11, 12, 13)), 0.8).ravel()
    image = np.argsort(np.argsort(image)).reshape(11, 12, 13).astype(np.uint16)
    counts = set()
    for size in (2, 9, 40, 200, 4000, 60000):
        given = {"volume": size} if by_volume else {"area": size}
        found = chunkwise.watershed(image, **given)
        counts.add(int(found.max()))
        pairs = np.unique(np.stack([found.ravel(), _merged(image, size, by_volume).ravel()]), axis=1)
        assert pairs.shape[1] == len(np.unique(pairs[0])) == len(np.unique(pairs[1])) == found.max()
        # A voxel of half the length has an eighth of the size.
        given = {name: value / 8 for name, value in given.items()}
        np.testing.assert_array_equal(chunkwise.watershed(image, spacing=(0.5, 0.5, 0.5), threads=2, **given), found)
    assert len(counts) > 3


def test_minima_are_merged_by_size_in_floating_point_and_in_masks():
    image = np.array([3, 1, 3.5, 2, 9, 0, 9, np.nan, 5, 4, 6, 5], np.float32)
    np.testing.assert_array_equal(chunkwise.watershed(image, area=3), [1, 1, 1, 1, 1, 1, 1, 0, 2, 2, 2, 2])
    np.testing.assert_array_equal(chunkwise.watershed(image, area=2), [1, 1, 1, 1, 1, 1, 1, 0, 2, 2, 2, 2])
    np.testing.assert_array_equal(chunkwise.watershed(image, volume=9), [1, 1, 1, 1, 2, 2, 2, 0, 3, 3, 3, 3])
    np.testing.assert_array_equal(chunkwise.watershed(image, volume=9.5), [1, 1, 1, 1, 1, 1, 1, 0, 2, 2, 2, 2])
    # -0 and 0 are one level.
    np.testing.assert_array_equal(chunkwise.watershed(np.array([-0.0, -0.0, 0, -0.0, -0.0], np.float32), area=2), [1] * 5)
    mask = image != 9
    np.testing.assert_array_equal(chunkwise.watershed(image, mask=mask, area=9), [1, 1, 1, 1, 0, 2, 0, 0, 3, 3, 3, 3])


def test_minima_of_images_without_ties_are_those_of_scikit_image():
    segmentation = pytest.importorskip("skimage.segmentation")
    random = np.random.default_rng(5)
    image = ndimage.gaussian_filter(random.standard_normal((24, 25, 26)), 1.5).ravel()
    # Ranks: no two values are equal.
    image = np.argsort(np.argsort(image)).reshape(24, 25, 26).astype(np.int32)
    for connectivity in (1, 2, 3):
        structure = ndimage.generate_binary_structure(3, connectivity)
        minima = ndimage.label(ndimage.minimum_filter(image, footprint=structure) == image, structure)[0]
        found = chunkwise.watershed(image, connectivity)
        assert found.max() == minima.max() > 20
        np.testing.assert_array_equal(found, segmentation.watershed(image, minima, connectivity))
        np.testing.assert_array_equal(found, chunkwise.watershed(image, connectivity, markers=minima))


def test_wrong_values_are_named():
    image = np.zeros((4, 5), np.uint8)
    with pytest.raises(chunkwise.ParameterError, match="markers"):
        chunkwise.watershed(image, markers=np.zeros((4, 5), np.float32))
    with pytest.raises(chunkwise.ParameterError, match="markers"):
        chunkwise.watershed(image, markers=np.zeros((5, 4), np.uint8))
    with pytest.raises(chunkwise.ParameterError, match="height"):
        chunkwise.watershed(image, markers=image, height=2)
    with pytest.raises(chunkwise.ParameterError, match="height"):
        chunkwise.watershed(image, height=-1)
    with pytest.raises(chunkwise.ParameterError, match="area"):
        chunkwise.watershed(image, markers=image, area=2)
    with pytest.raises(chunkwise.ParameterError, match="volume"):
        chunkwise.watershed(image, area=2, volume=3)
    with pytest.raises(chunkwise.ParameterError, match="area"):
        chunkwise.watershed(image, area=float("nan"))
    with pytest.raises(chunkwise.Error, match="-3"):
        chunkwise.watershed(image, markers=np.full((4, 5), -3))
    with pytest.raises(chunkwise.Error, match="300"):
        chunkwise.watershed(image, markers=np.full((4, 5), 300), output="uint8")


def test_objects_that_touch_are_separated():
    image = np.zeros((20, 30, 40), np.float32)
    z, y, x = np.indices(image.shape)
    centers = ((9, 9, 9), (9, 9, 23), (10, 20, 31))
    for center, radius in zip(centers, (8, 8, 7)):
        image[(z - center[0]) ** 2 + (y - center[1]) ** 2 + (x - center[2]) ** 2 <= radius**2] = 100
    image += np.random.default_rng(3).normal(0, 4, image.shape).astype(np.float32)
    mask = image > 50
    assert ndimage.label(mask)[1] == 1
    labels = chunkwise.separate(image)
    assert labels.dtype == np.uint32 and labels.max() == 3
    np.testing.assert_array_equal(labels > 0, mask)
    assert sorted(labels[center] for center in centers) == [1, 2, 3]
    for given in ({"method": "li"}, {"lower": 50}, {"method": "fixed", "lower": 50, "upper": 200}, {"threads": 2, "memory": "64M"}):
        np.testing.assert_array_equal(chunkwise.separate(image, **given), labels)
    # By the definition, and without any fall that is large enough.
    distances = chunkwise.distance(mask, "contour")
    np.testing.assert_array_equal(labels, chunkwise.watershed(distances, mask=mask, height=1))
    np.testing.assert_array_equal(chunkwise.separate(image, height=20), mask)
    # In voxels of half the length distances fall by half as much.
    np.testing.assert_array_equal(chunkwise.separate(image, height=0.5, spacing=(0.5, 0.5, 0.5)), labels)
    # A part of so many voxels where it meets another one has an eighth of that in voxels of half the length.
    np.testing.assert_array_equal(chunkwise.separate(image, area=100), labels)
    np.testing.assert_array_equal(chunkwise.separate(image, area=100 / 8, spacing=(0.5, 0.5, 0.5)), labels)
    np.testing.assert_array_equal(chunkwise.separate(image, area=1000), mask)
    assert chunkwise.separate(image, output="uint8").dtype == np.uint8
    for name, given in (("height", {"height": -1}), ("area", {"height": 1, "area": 2}), ("connectivity", {"connectivity": 4}), ("method", {"method": "most"}),
                        ("lower", {"method": "otsu", "lower": 3})):
        with pytest.raises(chunkwise.ParameterError, match=name):
            chunkwise.separate(image, **given)
