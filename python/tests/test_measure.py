# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""chunkwise.measure against scikit-image, the measurements of chunkwise.ndimage against SciPy."""
import math

import numpy as np
import pytest
from scipy import ndimage as scipy_ndi

import chunkwise
from chunkwise import ndimage as ndi

LABEL_TYPES = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64")
VALUE_TYPES = (*LABEL_TYPES, "float32", "float64", "bool")


def random_labels(random, shape, dtype):
    """Blobs of a few labels, not all numbers between."""
    noise = scipy_ndi.zoom(random.random([max(2, each // 3) for each in shape]), [each / max(2, each // 3) for each in shape],
                           order=0)
    labels = np.array([0, 0, 1, 2, 5, 6, 100])[(noise * 7).astype(int)[tuple(slice(each) for each in shape)]]
    return labels.astype(dtype)


def random_values(random, shape, dtype):
    if dtype == "bool":
        return random.random(shape) < 0.5
    if dtype.startswith("float"):
        return (random.random(shape) * 200 - 40).astype(dtype)
    return random.integers(0 if dtype.startswith("u") else -100, 120, shape).astype(dtype)


def trials(random, count=25):
    for _ in range(count):
        ndim = int(random.integers(1, 4))
        shape = tuple(int(each) for each in random.integers(3, {1: 90, 2: 30, 3: 14}[ndim], ndim))
        labels = random_labels(random, shape, random.choice(LABEL_TYPES))
        yield labels, random_values(random, labels.shape, str(random.choice(VALUE_TYPES)))


def test_measurements_are_those_of_scikit_image(random):
    measure = pytest.importorskip("skimage.measure")
    same = ("label", "num_pixels", "area", "bbox", "area_bbox", "extent", "equivalent_diameter_area", "euler_number",
            "inertia_tensor", "inertia_tensor_eigvals", "axis_major_length", "axis_minor_length", "intensity_mean",
            "intensity_min", "intensity_max", "intensity_std", "intensity_median")
    for _ in range(25):
        ndim = int(random.integers(2, 4))
        shape = tuple(int(each) for each in random.integers(3, {2: 30, 3: 14}[ndim], ndim))
        labels = random_labels(random, shape, random.choice(("uint8", "int16", "uint32", "int64")))
        if not labels.any():
            continue
        values = random_values(random, labels.shape, str(random.choice(("uint8", "int16", "float32", "float64"))))
        spacing = tuple(random.choice([0.5, 1.0, 1.25, 3.0], ndim))
        found = chunkwise.measure(labels, values, spacing=spacing, columns=[
            *same, "centroid", "centroid_physical", "centroid_weighted", "centroid_weighted_physical", "orientation"])
        expected = measure.regionprops_table(labels.astype(np.int64), values.astype(np.float64), spacing=spacing, properties=[
            *same, "centroid", "centroid_weighted", *(["orientation"] if ndim == 2 else [])])
        for name, column in expected.items():
            mine = found[name.replace("centroid_weighted", "centroid_weighted_physical").replace(
                "centroid-", "centroid_physical-")]
            # For one voxel, or a line of them, all axes serve.
            if name == "orientation":
                continue
            # The root takes half of the digits where the true length is 0.
            close = dict(rtol=1e-7, atol=1e-5 if "axis" in name else 1e-8)
            np.testing.assert_allclose(mine, column, err_msg=name, **close)
        for axis in range(ndim):
            np.testing.assert_allclose(found[f"centroid-{axis}"] * spacing[axis], found[f"centroid_physical-{axis}"])
        if ndim == 2:
            clear = found["axis_major_length"] > found["axis_minor_length"] + 1e-6
            turn = (found["orientation"] - expected["orientation"] + math.pi / 2) % math.pi - math.pi / 2
            np.testing.assert_allclose(turn[clear], 0, atol=1e-6)


def test_contacts_and_surfaces_are_counted(random):
    for labels, _ in trials(random, 10):
        spacing = (0.5, 2.0, 3.0)[:labels.ndim]
        volume = math.prod(spacing)
        pairs, area = {}, {}
        for axis in range(labels.ndim):
            face = volume / spacing[axis]
            padded = np.pad(labels, [(1, 1) if a == axis else (0, 0) for a in range(labels.ndim)])
            first = np.take(padded, range(padded.shape[axis] - 1), axis).ravel().tolist()
            second = np.take(padded, range(1, padded.shape[axis]), axis).ravel().tolist()
            for a, b in zip(first, second):
                if a != b:
                    for each in {a, b} - {0}:
                        area[each] = area.get(each, 0) + face
                    if a and b:
                        key = (min(a, b), max(a, b))
                        count, sum_ = pairs.get(key, (0, 0.0))
                        pairs[key] = (count + 1, sum_ + face)
        found = chunkwise.contacts(labels, spacing=spacing)
        assert list(zip(found["label"].tolist(), found["neighbor"].tolist())) == sorted(pairs)
        assert found["faces"].tolist() == [pairs[key][0] for key in sorted(pairs)]
        np.testing.assert_allclose(found["area"], [pairs[key][1] for key in sorted(pairs)])
        table = chunkwise.measure(labels, spacing=spacing)
        np.testing.assert_allclose(table["surface_area"], [area[each] for each in table["label"].tolist()])


FUNCTIONS = ("sum_labels", "sum", "mean", "variance", "standard_deviation", "minimum", "maximum", "median",
             "minimum_position", "maximum_position", "center_of_mass", "extrema")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_those_of_scipy(random, name):
    mine, theirs = getattr(ndi, name), getattr(scipy_ndi, name)
    for labels, values in trials(random):
        present = [int(each) for each in np.unique(labels)]
        # SciPy adds up in the type of the input, and does not subtract booleans.
        given = values.astype("float64") if values.dtype == bool or name in ("sum", "sum_labels", "mean") else values
        if name in ("minimum_position", "maximum_position", "extrema"):
            # No two voxels are alike.
            given = random.permutation(values.size).reshape(values.shape).astype("float32")
        if name == "center_of_mass":
            given = np.abs(values.astype("float64")) + 1
        for index in (None, present[-1], present, np.array(present + present[:1])):
            if index is None and not (labels > 0).any():
                continue
            if index is not None and name == "median" and given.dtype.itemsize < 4:
                # SciPy's mean of two middle voxels wraps around.
                given = given.astype("float64")
            found, expected = mine(given, labels, index), theirs(given, labels, index)
            if name == "extrema":
                for a, b in zip(found, expected):
                    np.testing.assert_array_equal(a, b)
            else:
                assert np.shape(found) == np.shape(expected)
                # SciPy computes in float32 there.
                np.testing.assert_allclose(found, expected, rtol=1e-6 if given.dtype == np.float32 else 1e-9, atol=1e-9)
        found, expected = mine(given), theirs(given)
        if name == "extrema":
            assert tuple(map(str, map(np.asarray, found))) == tuple(map(str, map(np.asarray, expected)))
        else:
            np.testing.assert_allclose(found, expected, rtol=1e-6 if given.dtype == np.float32 else 1e-9, atol=1e-9)


def test_positions_are_those_of_the_first_such_voxel():
    # SciPy takes any of them.
    values, labels = np.array([[3, 1, 1], [1, 3, 3]]), np.array([[1, 2, 1], [2, 1, 2]])
    assert ndi.minimum_position(values, labels, [1, 2]) == [(0, 2), (0, 1)]
    assert ndi.maximum_position(values, labels, [1, 2]) == [(0, 0), (1, 2)]


def test_labels_that_are_missing():
    values, labels = np.array([1.0, 2.0, 3.0, 5.0]), np.array([1, 1, 0, 4])
    for name in ("sum_labels", "minimum", "maximum", "mean", "variance"):
        with np.errstate(all="ignore"):
            expected = getattr(scipy_ndi, name)(values, labels, [1, 2, 4, 0])
        np.testing.assert_array_equal(getattr(ndi, name)(values, labels, [1, 2, 4, 0]), expected)


def test_more_axes_than_three(random):
    values, labels = random.integers(0, 100, (3, 4, 2, 5)), random.integers(0, 4, (3, 4, 2, 5))
    for name in ("sum_labels", "minimum_position", "median"):
        np.testing.assert_array_equal(getattr(ndi, name)(values, labels, [1, 2, 3]),
                                      getattr(scipy_ndi, name)(values, labels, [1, 2, 3]))
    with pytest.raises(chunkwise.ParameterError, match="4 dimensions"):
        chunkwise.measure(labels)


def test_boxes_and_histograms(random):
    for labels, values in trials(random):
        labels = labels.astype(np.int32)
        for most in (0, 3, 120):
            assert ndi.find_objects(labels, most) == scipy_ndi.find_objects(labels, most)
        if labels.any():
            present = [each for each in np.unique(labels).tolist() if each]
            found = ndi.histogram(values.astype(float), 0, 100, 7, labels, present)
            expected = scipy_ndi.histogram(values.astype(float), 0, 100, 7, labels, present)
            assert [each.tolist() for each in found] == [each.tolist() for each in expected]
            np.testing.assert_array_equal(ndi.histogram(values.astype(float), 0, 100, 7),
                                          scipy_ndi.histogram(values.astype(float), 0, 100, 7))


def test_sums_are_exact_and_nan_spreads():
    values = np.array([1e20, 1.0, -1e20, np.nan, 3.0, np.inf])
    labels = np.array([1, 1, 1, 2, 2, 3])
    table = chunkwise.measure(labels, values, quantiles=(0.5,), columns=(
        "intensity_sum", "intensity_mean", "intensity_min", "position_min", "intensity_std"))
    assert table["intensity_sum"][0] == 1.0 and table["intensity_sum"][2] == np.inf
    for name in ("intensity_sum", "intensity_mean", "intensity_min", "intensity_std", "intensity_median"):
        assert math.isnan(table[name][1])
    assert table["position_min-0"].tolist() == [2, 3, 5]
    big = chunkwise.measure(np.ones(3, "uint8"), np.full(3, 2**62 - 1, "int64"), columns=("intensity_sum",))
    assert big["intensity_sum"].dtype == np.float64 and big["intensity_sum"][0] == 3 * 2.0**62
    assert chunkwise.measure(np.ones(3, "uint8"), np.full(3, 2**61, "int64"))["intensity_sum"].tolist() == [3 * 2**61]


def test_results_do_not_depend_on_threads_or_memory_order(random):
    labels, values = random.integers(0, 50, (40, 50, 60), dtype="uint16"), random.random((40, 50, 60))
    table = chunkwise.measure(labels, values, quantiles=(0.1, 0.5), threads=1)
    for other in (chunkwise.measure(labels, values, quantiles=(0.1, 0.5), threads=4),
                  chunkwise.measure(np.asfortranarray(labels), values[:, :, ::-1][:, :, ::-1], quantiles=(0.1, 0.5)),
                  chunkwise.measure(labels, values, quantiles=(0.1, 0.5), memory="4M")):
        assert list(other) == list(table)
        for name in table:
            np.testing.assert_array_equal(other[name], table[name])


def test_filtered_labels(random):
    for labels, _ in trials(random, 15):
        table = chunkwise.measure(labels, spacing=2.0)
        column = random.choice(["area", "num_pixels", "surface_area", "bbox-0", "euler_number", "label"])
        least = float(np.median(table[column])) if len(table["label"]) else 0.0
        most = int(random.integers(1, 4))
        kept = [each for each, value in zip(table["label"].tolist(), table[column].tolist()) if value >= least]
        sizes = dict(zip(table["label"].tolist(), table["num_pixels"].tolist()))
        kept = sorted(sorted(kept, key=lambda each: (-sizes[each], each))[:most])
        found = chunkwise.filter_labels(labels, where=f"{column} >= {least!r}", keep_largest=most, spacing=2.0)
        np.testing.assert_array_equal(found, np.where(np.isin(labels, kept), labels, 0))
        assert found.dtype == labels.dtype
        numbered = chunkwise.filter_labels(labels, where=[f"{column} >= {least!r}"], keep_largest=most, relabel=True, spacing=2.0)
        for number, label in enumerate(kept, 1):
            np.testing.assert_array_equal(numbered == number, labels == label)
        assert np.count_nonzero(numbered) == np.count_nonzero(found)
        inner = chunkwise.filter_labels(labels, remove_border=True, max_size=1000)
        border = np.ones(labels.shape, bool)
        border[tuple(slice(1, -1) for _ in labels.shape)] = False
        np.testing.assert_array_equal(inner, np.where(np.isin(labels, labels[border]), 0, labels))
    skimage = pytest.importorskip("skimage.morphology")
    labels = random_labels(random, (30, 30), "int32")
    counts = np.bincount(labels.ravel())
    least = int(np.median(counts[counts > 0]))
    np.testing.assert_array_equal(chunkwise.remove_small_objects(labels, least),
                                  skimage.remove_small_objects(labels, max_size=least - 1))
    for match, call in (("where.*colour", lambda: chunkwise.filter_labels(labels, where="colour > 1")),
                        ("where", lambda: chunkwise.filter_labels(labels, where="area")),
                        ("min_size", lambda: chunkwise.filter_labels(labels, min_size=-1)),
                        ("keep_largest", lambda: chunkwise.filter_labels(labels, keep_largest=0))):
        with pytest.raises(chunkwise.ParameterError, match=match):
            call()


def test_what_cannot_be_measured_is_refused():
    labels = np.ones((3, 4), "uint8")
    for match, call in (
        ("labels.*float32", lambda: chunkwise.measure(labels.astype("float32"))),
        ("intensity.*shape", lambda: chunkwise.measure(labels, np.ones((4, 3)))),
        ("columns.*colour", lambda: chunkwise.measure(labels, columns=("colour",))),
        ("columns.*needs", lambda: chunkwise.measure(labels, columns=("intensity_mean",))),
        ("quantiles", lambda: chunkwise.measure(labels, quantiles=(0.5,))),
        ("spacing", lambda: chunkwise.measure(labels, spacing=(1, 2, 3))),
        ("spacing", lambda: chunkwise.measure(labels, spacing=0)),
        ("no voxels", lambda: chunkwise.measure(labels[:0])),
        ("quantiles", lambda: chunkwise.measure(labels, labels, quantiles=(1.5,))),
        ("index", lambda: ndi.mean(labels, index=1)),
        ("labels.*shape", lambda: ndi.mean(labels, np.ones((2, 2), int))),
    ):
        with pytest.raises(chunkwise.ParameterError, match=match):
            call()
    many = np.arange(1, 300001, dtype="uint32")
    with pytest.raises(chunkwise.BudgetError):
        chunkwise.measure(many, memory="4M")
    assert len(chunkwise.measure(many, columns=("label",))["label"]) == 300000
