# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""chunkwise.measure against scikit-image, the measurements of chunkwise.ndimage against SciPy."""
import math
import warnings

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


def test_labels_may_be_real_numbers():
    values, labels = np.array([1.0, 2.0, 3.0, 5.0]), np.array([0.5, 0.0, 2.0, 2.0])
    assert ndi.maximum_position(values, labels) == scipy_ndi.maximum_position(values, labels) == (3,)
    np.testing.assert_array_equal(ndi.median(values, np.rint(labels), [2, 0]), scipy_ndi.median(values, np.rint(labels), [2, 0]))
    for index in (2, [2, 0.5, 7.25], np.array([[0.0], [2.0]]), []):
        for name in ("mean", "maximum_position", "sum"):
            np.testing.assert_array_equal(getattr(ndi, name)(values, labels, index), getattr(scipy_ndi, name)(values, labels, index))
    with pytest.raises(chunkwise.ParameterError, match="float64 is no type of labels"):
        ndi.mean(values, np.array([1, 2, 0, 2]), [1.5])


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


def _holes_filled(labels):
    """By the definition: a breadth-first search through each part of the background."""
    result = labels.copy()
    steps = [step for axis in range(labels.ndim) for step in (np.eye(labels.ndim, dtype=int)[axis], -np.eye(labels.ndim, dtype=int)[axis])]
    seen = np.zeros(labels.shape, bool)
    for start in zip(*np.nonzero(labels == 0)):
        if seen[start]:
            continue
        seen[start] = True
        part, touched, is_open = [start], set(), False
        for at in part:
            for step in steps:
                there = tuple(int(i) for i in np.array(at) + step)
                if not all(0 <= i < n for i, n in zip(there, labels.shape)):
                    is_open = True
                elif labels[there] != 0:
                    touched.add(labels[there])
                elif not seen[there]:
                    seen[there] = True
                    part.append(there)
        if not is_open and len(touched) == 1:
            for at in part:
                result[at] = next(iter(touched))
    return result


@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint32", "int64"])
def test_holes_of_labels_are_filled(dtype):
    random = np.random.default_rng(12)
    for shape in ((12, 13, 14), (40, 30), (50,)):
        labels = random.choice([0, 1, 1, 1, 1, 5], shape).astype(dtype)
        if np.dtype(dtype).kind == "i":
            labels[labels == 5] = -5
        expected = _holes_filled(labels)
        assert (expected != labels).any() or len(shape) == 3 or len(shape) == 1
        found = chunkwise.fill_label_holes(labels)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(chunkwise.fill_label_holes(np.asfortranarray(labels)), expected)
    ring = np.ones((5, 5), dtype)
    ring[2, 2] = 0
    assert (chunkwise.fill_label_holes(ring) == 1).all()


def test_labels_that_become_others():
    labels = np.array([[1, 1, 0, 4], [4, 7, 7, 7], [9, 9, 9, 2]], "int16")
    found = chunkwise.filter_labels(labels, replace={1: 4, 9: 0, 7: -3})
    np.testing.assert_array_equal(found, [[4, 4, 0, 4], [4, -3, -3, -3], [0, 0, 0, 2]])
    # Sizes are those of the merged objects, and a table is applied once.
    np.testing.assert_array_equal(chunkwise.filter_labels(labels, replace=[(1, 4), (4, 1)], min_size=3, relabel=True),
                                  [[0, 0, 0, 0], [0, 1, 1, 1], [2, 2, 2, 0]])
    np.testing.assert_array_equal(chunkwise.filter_labels(labels, replace={1: 4}, keep_largest=1),
                                  np.where(np.isin(labels, (1, 4)), 4, 0))
    for match, replace in (("replace: 70000", {70000: 1}), ("0 becomes 3", {0: 3}), ("twice", [(1, 2), (1, 3)]), ("replace: .*1.5", {1.5: 2})):
        with pytest.raises(chunkwise.ParameterError, match=match):
            chunkwise.filter_labels(labels, replace=replace)


def _boundaries(labels, connectivity, mode):
    result = np.zeros(labels.shape, bool)
    for at in np.ndindex(*labels.shape):
        differs = touches = False
        for step in np.ndindex(*(3,) * labels.ndim):
            step = np.array(step) - 1
            there = tuple(int(i) for i in np.array(at) + step)
            if all(0 <= i < n for i, n in zip(there, labels.shape)) and labels[there] != labels[at]:
                differs |= abs(step).sum() <= connectivity
                touches |= labels[there] != 0 and labels[at] != 0
        result[at] = differs and {"thick": True, "inner": labels[at] != 0, "outer": labels[at] == 0 or touches}[mode]
    return result


@pytest.mark.parametrize("mode", ["thick", "inner", "outer"])
def test_boundaries_of_labels(mode):
    segmentation = pytest.importorskip("skimage.segmentation")
    random = np.random.default_rng(13)
    for shape in ((9, 10, 11), (30, 20)):
        labels = chunkwise.median(random.choice([0, 0, 3, 8], shape).astype("uint16"), radius=1)
        for connectivity in range(1, len(shape) + 1):
            expected = _boundaries(labels, connectivity, mode)
            found = chunkwise.find_boundaries(labels, connectivity, mode)
            assert found.dtype == bool and 0 < found.sum() < found.size
            np.testing.assert_array_equal(found, expected)
            np.testing.assert_array_equal(found, segmentation.find_boundaries(labels, connectivity, mode))
            np.testing.assert_array_equal(chunkwise.boundaries(labels, boundary_mode=mode, connectivity=connectivity), expected)


def _same_tables(found, expected):
    assert list(found) == list(expected)
    for name, column in expected.items():
        np.testing.assert_array_equal(found[name], column, err_msg=name)
        assert found[name].dtype == column.dtype


def test_arrays_that_are_not_in_memory(tmp_path):
    da = pytest.importorskip("dask.array")
    zarr = pytest.importorskip("zarr")
    random = np.random.default_rng(14)
    for shape, chunks in (((17, 12, 13), (5, 4, 6)), ((1, 20, 9), (1, 6, 9)), ((40, 30), (7, 11)), ((60,), (13,))):
        labels = random.choice([0, 0, 3, 8, 70], shape).astype("uint16")
        values = random.normal(50, 20, shape).astype("float32")
        lazy, other = da.from_array(labels, chunks=chunks), da.from_array(values, chunks=tuple(2 * each for each in chunks))
        expected = chunkwise.measure(labels, values, quantiles=(0.5, 0.9), spacing=2.0)
        _same_tables(chunkwise.measure(lazy, other, quantiles=(0.5, 0.9), spacing=2.0), expected)
        _same_tables(chunkwise.measure(lazy, values, quantiles=(0.5, 0.9), spacing=2.0), expected)
        _same_tables(chunkwise.measure(lazy), chunkwise.measure(labels))
        _same_tables(chunkwise.contacts(lazy), chunkwise.contacts(labels))
        where = str(tmp_path / f"{len(shape)}{shape[0]}.zarr")
        stored = zarr.open(where, mode="w", shape=shape, chunks=chunks, dtype="uint16")
        stored[...] = labels
        _same_tables(chunkwise.measure(stored, columns=("area", "centroid")), chunkwise.measure(labels, columns=("area", "centroid")))
        _same_tables(chunkwise.zarr.measure(where, spacing=0.5), chunkwise.measure(labels, spacing=0.5))
    reads = []

    def block(block_info=None):
        reads.append(block_info[None]["chunk-location"])
        return np.ones(block_info[None]["chunk-shape"], "uint8")

    counted = da.map_blocks(block, chunks=((4, 4), (5,)), dtype="uint8", meta=np.empty((0, 0), "uint8"))
    assert chunkwise.measure(counted, columns="area")["area"].tolist() == [40]
    assert sorted(reads) == [(0, 0), (1, 0)], "each block is computed once"
    for match, call in (("float32", lambda: chunkwise.measure(da.zeros((3, 4), dtype="float32"))),
                        ("shape", lambda: chunkwise.measure(da.zeros((3, 4), dtype="uint8"), da.zeros((3, 5)))),
                        ("dimensions", lambda: chunkwise.measure(da.zeros((1, 1, 3, 4), dtype="uint8")))):
        with pytest.raises(ValueError, match=match):
            call()


def test_an_error_of_what_reads_is_its_own():
    da = pytest.importorskip("dask.array")

    def fail(block):
        raise RuntimeError("the disk broke")

    lazy = da.zeros((4, 4), dtype="uint8", chunks=2).map_blocks(fail, dtype="uint8", meta=np.empty((0, 0), "uint8"))
    with pytest.raises(RuntimeError, match="the disk broke"):
        chunkwise.measure(lazy)


def test_tables_are_written(tmp_path):
    import csv
    import json

    labels = np.array([[1, 1, 0], [0, 2, 2]], "uint8")
    table = chunkwise.measure(labels, np.array([[1, np.nan, 0], [0, 2, 4]], "float32"), columns=("area", "intensity_mean"))
    chunkwise.write_table(table, tmp_path / "t.csv")
    rows = list(csv.DictReader(open(tmp_path / "t.csv")))
    assert [row["label"] for row in rows] == ["1", "2"] and [row["intensity_mean"] for row in rows] == ["nan", "3.0"]
    chunkwise.write_table(table, tmp_path / "t.json")
    shown = json.load(open(tmp_path / "t.json"))
    assert shown == [{"label": 1, "area": 2.0, "intensity_mean": "nan"}, {"label": 2, "area": 2.0, "intensity_mean": 3.0}]
    chunkwise.write_table(chunkwise.measure(np.zeros((2, 2), "uint8")), tmp_path / "none.json")
    assert json.load(open(tmp_path / "none.json")) == []
    with pytest.raises(ValueError, match="none of .csv"):
        chunkwise.write_table(table, tmp_path / "t.txt")


def test_tables_are_written_as_arrow(tmp_path):
    pytest.importorskip("pyarrow")
    import pyarrow.feather
    import pyarrow.parquet

    table = chunkwise.measure(np.random.default_rng(3).integers(0, 5, (9, 9)).astype("uint8"))
    chunkwise.write_table(table, tmp_path / "t.parquet")
    chunkwise.write_table(table, tmp_path / "t.feather")
    for found in (pyarrow.parquet.read_table(tmp_path / "t.parquet"), pyarrow.feather.read_table(tmp_path / "t.feather")):
        _same_tables({name: found[name].to_numpy() for name in found.column_names}, table)


def test_value_indices():
    ndimage = pytest.importorskip("scipy.ndimage")
    if not hasattr(ndimage, "value_indices"):
        pytest.skip("this SciPy has none")
    random = np.random.default_rng(15)
    for array in (random.integers(-2, 4, (5, 6, 7)), random.integers(0, 9, (40,)).astype("uint8"), np.zeros((0, 3), "int16")):
        for ignore in (None, 0, 77):
            found, expected = chunkwise.ndimage.value_indices(array, ignore_value=ignore), ndimage.value_indices(array, ignore_value=ignore)
            assert set(found) == set(expected)
            for value, places in expected.items():
                assert len(found[value]) == len(places)
                for a, b in zip(found[value], places):
                    np.testing.assert_array_equal(a, b)
    with pytest.raises(ValueError):
        chunkwise.ndimage.value_indices(np.zeros(3))


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_the_memory_that_a_budget_error_names_is_enough(random, threads):
    for shape, stride in (((20, 30, 60), 1), ((150, 200), 10**12 + 7), ((40000,), 1)):
        labels = ndi.label(random.random(shape) > 0.6)[0].astype(np.int64) * stride
        values = (random.normal(size=shape) * 10.0 ** random.integers(-3, 4, shape)).astype("float32")
        for call in (lambda **given: chunkwise.measure(labels, values, **given),
                     lambda **given: chunkwise.measure(labels, values, quantiles=(0.1, 0.5), columns=("area",), **given),
                     lambda **given: chunkwise.contacts(labels, **given),
                     lambda **given: chunkwise.filter_labels(labels, min_size=3, **given),
                     lambda **given: chunkwise.fill_label_holes(labels, **given),
                     lambda **given: ndi.mean(values, labels, [stride, 2 * stride], **given)):
            expected = call(threads=threads)
            with pytest.raises(chunkwise.BudgetError) as caught:
                call(memory=5000, threads=threads)
            needed = caught.value.needed
            assert str(needed) in str(caught.value)
            found = call(memory=needed, threads=threads)
            for a, b in zip(*((each.values() if isinstance(each, dict) else [each]) for each in (found, expected))):
                np.testing.assert_array_equal(a, b)
            # It is no more than some times the least: threads keep more where there is more.
            with pytest.raises(chunkwise.BudgetError):
                call(memory=needed // 16, threads=threads)


def test_the_memory_that_stages_need_is_named_at_once(random):
    image = random.random((30, 40, 50)).astype("float32")
    for call in (lambda memory: chunkwise.threshold(image, "otsu", memory=memory), lambda memory: chunkwise.separate(image, memory=memory),
                 lambda memory: chunkwise.threshold_otsu((image * 1e6).astype("int32"), memory=memory),
                 lambda memory: ndi.distance_transform_edt(image > 0.5, return_indices=True, memory=memory)):
        with pytest.raises(chunkwise.BudgetError) as caught:
            call(1000)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # so little memory costs time
            call(caught.value.needed)


def test_labels_of_64_bits_are_told_apart():
    big = 2**53
    labels = np.array([big, big + 1, big + 1, big + 2], np.uint64)
    values, index = np.array([1.0, 2, 4, 8]), np.array([big, big + 1, big + 2])
    assert ndi.labeled_comprehension(values, labels, index, np.sum, float, -1).tolist() == [1, 6, 8]
    assert [each.sum() for each in ndi.histogram(values, 0, 10, 4, labels, index)] == [1, 2, 1]
    assert ndi.sum_labels(values, labels, index).tolist() == [1, 6, 8]
    signed = np.array([-5, -5, 1, 1])
    unsigned = np.array([2**64 - 5, 1], np.uint64)
    assert ndi.sum_labels(values, signed, unsigned).tolist() == [0, 12]
    assert ndi.sum_labels(values, signed.view(np.uint64), np.array([-5, 1])).tolist() == [0, 12]
    assert [each.sum() for each in ndi.histogram(values, 0, 10, 4, signed, unsigned)] == [0, 2]


@pytest.mark.parametrize("labels,most", [(np.array([1, 2**63], "u8"), 0), (np.array([[1, 2**62]]), 0), (np.array([1, 2]), 2**63),
                                         (np.array([[[[2**61]]]]), 0)])
def test_objects_of_huge_labels_are_refused(labels, most):
    with pytest.raises(chunkwise.Error, match="bytes"):
        ndi.find_objects(labels, most)


def test_boxes_of_objects_keep_the_budget():
    labels = np.arange(1, 200001)
    with pytest.raises(chunkwise.BudgetError) as error:
        ndi.find_objects(labels, memory="1K")
    assert len(ndi.find_objects(labels, memory=error.value.needed)) == 200000
    with pytest.raises(chunkwise.ParameterError, match="backend: 'cuda'"):
        ndi.find_objects(labels, backend="cuda")


@pytest.mark.parametrize("dtype", ["int32", "uint8", "int64"])
def test_labels_of_dask_are_filtered_as_those_in_memory(random, dtype):
    da = pytest.importorskip("dask.array")
    labels = random.integers(0, 40, (13, 11, 17)).astype(dtype)
    labels[labels % 3 == 0] = 0
    if dtype == "int64":
        labels[labels == 7] = -5
        labels[labels == 8] = 2**60
    lazy = da.from_array(labels, chunks=(5, 11, 6))
    for chosen in ({}, {"min_size": 60}, {"max_size": 62}, {"keep_largest": 3}, {"relabel": True, "min_size": 58}, {"remove_border": True},
                   {"where": ["extent > 0.02", "bbox-0 <= 1"]}, {"replace": {1: 2, 4: 0, 5: 99}, "relabel": True},
                   {"where": "centroid-2 > 8.1", "spacing": 2.0}, {"where": "area >= 500", "spacing": (2, 2, 2), "keep_largest": 2}):
        result = chunkwise.filter_labels(lazy, **chosen)
        assert result.dtype == labels.dtype and result.chunks == lazy.chunks
        np.testing.assert_array_equal(result.compute(), chunkwise.filter_labels(labels, **chosen), str(chosen))
    with pytest.raises(chunkwise.ParameterError, match="where"):
        chunkwise.filter_labels(lazy, where="weight > 3")
    with pytest.raises(chunkwise.ParameterError, match="where"):
        chunkwise.filter_labels(lazy, where="area")


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "uint64"])
def test_holes_of_labels_of_dask_are_those_in_memory(random, dtype):
    da = pytest.importorskip("dask.array")
    filled = 0
    for shape, chunks in (((12, 13, 14), (5, 13, 4)), ((12, 13, 14), (12, 13, 14)), ((40, 30), (7, (9, 0, 21))), ((50,), (11,)),
                          ((1, 30, 31), (1, 8, 9))):
        labels = random.choice([0, 1, 1, 1, 1, 1, 1, 7], shape).astype(dtype)
        labels[(slice(None),) * (len(shape) - 1) + (slice(4, 9),)] = 1
        labels[tuple(slice(each // 2, each // 2 + 1) if each > 2 else slice(None) for each in shape)] = 0
        if dtype == "int64":
            labels[labels == 7] = -(2**62)
        if dtype == "uint64":
            labels[labels == 7] = 2**64 - 1
        lazy = da.from_array(labels, chunks=chunks)
        found = chunkwise.fill_label_holes(lazy)
        assert found.dtype == labels.dtype and found.chunks == lazy.chunks
        expected = chunkwise.fill_label_holes(labels)
        np.testing.assert_array_equal(found.compute(scheduler="synchronous"), expected)
        filled += int((expected != labels).sum())
    assert filled > 20
    lazy = da.zeros((80, 80, 80), chunks=8, dtype=dtype)
    tasks = len(chunkwise.fill_label_holes(lazy).__dask_graph__())
    assert tasks <= 8 * 1000, tasks
    with pytest.raises(TypeError, match="memory"):
        chunkwise.fill_label_holes(lazy, memory="1G")
    with pytest.raises(chunkwise.ParameterError, match="labels"):
        chunkwise.fill_label_holes(da.zeros((2, 2, 2, 2), dtype="uint8"))
