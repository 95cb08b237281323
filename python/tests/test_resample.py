# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Arrays on other grids, beside SciPy."""
from __future__ import annotations

import chunkwise
import numpy as np
import pytest
from chunkwise import filters
from chunkwise import ndimage as ndi

MODES = ["constant", "grid-constant", "nearest", "mirror", "reflect", "grid-mirror", "grid-wrap"]


def _image(*shape: int, dtype: str = "float64") -> np.ndarray:
    return np.random.default_rng(len(shape)).integers(0, 100, shape).astype(dtype)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("order", [0, 1, 3])
def test_affine_transforms_are_those_of_scipy(order, mode):
    scipy = pytest.importorskip("scipy.ndimage")
    # The edges of paddings of splines differ by about their pole to the power of the padding.
    bound = 1e-9 if order < 3 else 1e-4 if mode in ("nearest", "grid-constant") else 1e-7
    for shape, seed in (((23, 31), 1), ((9, 12, 17), 2), ((40,), 3)):
        image = _image(*shape)
        random = np.random.default_rng(seed)
        matrix = random.normal(size=(len(shape), len(shape))) * 0.3 + np.eye(len(shape))
        offset = random.normal(size=len(shape)) * 4
        output_shape = tuple(each + 3 for each in shape)
        for given in (matrix, np.diag(matrix), np.hstack([matrix, offset[:, None]])):
            # SciPy takes the offset of a homogeneous matrix from the matrix.
            keywords = dict(offset=offset, output_shape=output_shape, order=order, mode=mode, cval=7.0)
            np.testing.assert_allclose(ndi.affine_transform(image, given, **keywords),
                                       scipy.affine_transform(image, given, **keywords), atol=bound, rtol=bound)


@pytest.mark.parametrize("mode", ["grid-constant", "nearest"])
def test_splines_beyond_an_edge_are_those_of_an_image_with_a_wide_edge(mode):
    scipy = pytest.importorskip("scipy.ndimage")
    image, width = _image(23, 31), 120
    wide = np.pad(image, width, **({"constant_values": 7.0} if mode == "grid-constant" else {"mode": "edge"}))
    for offset in ((2.25, -4.5), (-19.75, 0.5), (0.0, 60.25)):
        expected = scipy.shift(wide, offset, mode="mirror")[width:-width, width:-width]
        np.testing.assert_allclose(ndi.shift(image, offset, mode=mode, cval=7.0), expected, atol=1e-10, rtol=0)
    if mode == "grid-constant":
        np.testing.assert_array_equal(ndi.shift(image, 80.25, mode=mode, cval=7.0), 7.0)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("order", [0, 1, 3])
def test_zoom_shift_and_rotate_are_those_of_scipy(order, mode):
    scipy = pytest.importorskip("scipy.ndimage")
    bound = 1e-9 if order < 3 else 1e-4 if mode in ("nearest", "grid-constant") else 1e-7
    image = _image(19, 26)

    def compare(name, *given, **keywords):
        ours = getattr(ndi, name)(image, *given, order=order, mode=mode, **keywords)
        np.testing.assert_allclose(ours, getattr(scipy, name)(image, *given, order=order, mode=mode, **keywords),
                                   atol=bound, rtol=bound)

    compare("zoom", 1.7)
    compare("zoom", (0.6, 2.25), cval=3.0)
    if mode.startswith("grid") or mode in ("nearest", "reflect", "mirror"):
        compare("zoom", (1.5, 0.7), grid_mode=True)
    compare("shift", (2.3, -4.6), cval=-2.0)
    compare("shift", 0.4, prefilter=False)
    compare("rotate", 33.0)
    compare("rotate", -71.5, reshape=False, cval=5.0)
    if order:
        compare("rotate", 90)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("order", [0, 1, 3])
def test_values_at_points_are_those_of_scipy(order, mode):
    scipy = pytest.importorskip("scipy.ndimage")
    bound = 1e-9 if order < 3 else 1e-4 if mode in ("nearest", "grid-constant") else 1e-7
    random = np.random.default_rng(5)
    for shape, grid in (((23, 31), (4, 5)), ((9, 12, 17), (6, 5, 4)), ((9, 12, 17), (70,)), ((40,), (5, 8)), ((8, 9), (0, 3))):
        image = _image(*shape)
        points = np.stack([random.uniform(-6, extent + 5, grid) for extent in shape])
        keywords = dict(order=order, mode=mode, cval=7.0)
        expected = scipy.map_coordinates(image, points, **keywords)
        found = ndi.map_coordinates(image, points, **keywords)
        assert found.shape == grid and found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, atol=bound, rtol=bound)
        if order == 3 and mode not in ("nearest", "grid-constant"):
            coefficients = ndi.spline_filter(image, mode=mode)
            np.testing.assert_allclose(ndi.map_coordinates(coefficients, points, prefilter=False, **keywords),
                                       scipy.map_coordinates(coefficients, points, prefilter=False, **keywords), atol=bound, rtol=bound)


@pytest.mark.parametrize("order", range(2, 6))
def test_coefficients_of_splines_are_those_of_scipy(order):
    scipy = pytest.importorskip("scipy.ndimage")
    for mode in ("mirror", "reflect", "nearest", "constant", "grid-wrap", "grid-mirror", "grid-constant", "wrap"):
        for shape in ((63, 71), (3, 60, 4), (5,), (1, 9)):
            image = _image(*shape)
            if min(shape) < 60 and mode in ("reflect", "nearest", "grid-mirror"):
                # SciPy's first coefficients of short axes are not exact: those here meet the definition.
                if order == 3:
                    padded = np.pad(ndi.spline_filter1d(image, mode=mode), [(0, 0)] * (len(shape) - 1) + [(1, 1)], "symmetric")
                    np.testing.assert_allclose((padded[..., :-2] + 4 * padded[..., 1:-1] + padded[..., 2:]) / 6, image, atol=1e-9)
                continue
            np.testing.assert_allclose(ndi.spline_filter(image, order, mode=mode), scipy.spline_filter(image, order, mode=mode), atol=1e-9)
            np.testing.assert_allclose(ndi.spline_filter1d(image, order, axis=0, mode=mode),
                                       scipy.spline_filter1d(image, order, axis=0, mode=mode), atol=1e-9)
    image = _image(8, 9, dtype="uint8")
    np.testing.assert_array_equal(ndi.spline_filter1d(image, 1), image)
    for wrong in ({"order": 1}, {"order": 6}, {"mode": "mirrored"}):
        with pytest.raises(chunkwise.ParameterError, match=next(iter(wrong))):
            ndi.spline_filter(image, **wrong)
    target = np.empty(image.shape, np.float32)
    assert ndi.spline_filter(image, order, output=target) is target
    np.testing.assert_allclose(target, scipy.spline_filter(image.astype(float), order), rtol=1e-6, atol=1e-4)
    turned = image + 1j * image[::-1]
    np.testing.assert_allclose(ndi.spline_filter(turned, order, output=complex), scipy.spline_filter(turned, order, output=complex), atol=1e-9)


ALL_MODES = [*MODES, "wrap"]


@pytest.mark.parametrize("mode", ALL_MODES)
@pytest.mark.parametrize("order", range(6))
def test_splines_by_numpy_are_those_of_scipy(order, mode):
    scipy = pytest.importorskip("scipy.ndimage")
    if order in (0, 1, 3) and mode != "wrap":
        shapes = [(5, 6, 7, 3)]  # more dimensions than the engine resamples
    else:
        shapes = [(63,), (70, 61)]
    # Coefficients near the edge are those of a padding, of 12 voxels in SciPy; with reflect they are not exact along short axes.
    bound = 1e-9 if order < 2 else 1e-3 if mode in ("nearest", "grid-constant") else 1e-7
    random = np.random.default_rng(order)
    for shape in shapes:
        prefilter = len(shape) < 4 or "reflect" not in mode and mode not in ("grid-mirror", "nearest")
        image, ndim = _image(*shape), len(shape)
        keywords = dict(order=order, mode=mode, cval=7.0, prefilter=prefilter)

        def compare(name, *given, image=image, **more):
            ours, theirs = (getattr(each, name)(image, *given, **keywords, **more) for each in (ndi, scipy))
            assert ours.dtype == theirs.dtype
            np.testing.assert_allclose(ours, theirs, atol=bound, rtol=bound)

        compare("affine_transform", random.normal(size=(ndim, ndim)) * 0.3 + np.eye(ndim), offset=random.normal(size=ndim) * 4,
                output_shape=tuple(each + 3 for each in shape))
        compare("shift", random.uniform(-9, 9, ndim))
        if not mode.startswith("grid"):
            compare("zoom", random.uniform(0.4, 1.6, ndim))
        points = np.stack([random.uniform(-2.5 * extent, 3.5 * extent, (4, 9)) for extent in shape])
        compare("map_coordinates", points)
        compare("map_coordinates", points, image=image + 1j * image[::-1])


@pytest.mark.parametrize("interpolation", ["nearest", "label", "linear", "cubic", "lanczos"])
def test_views_in_any_direction(interpolation):
    image = _image(6, 7, 8, dtype="int16")
    for view in (image[::-1], image[:, ::-1], image[..., ::-1], image[::-2, ::3, ::-1]):
        # With points beyond the edges, where voxels at the edge are seen.
        for given in ({"scale": 1.7}, {"affine": [[1, 0, 0, 4], [0, 1, 0, -3], [0, 0, 1, 6.25]], "antialias": False}):
            np.testing.assert_array_equal(chunkwise.resample(view, interpolation=interpolation, **given),
                                          chunkwise.resample(view.copy(), interpolation=interpolation, **given))


def test_points_that_are_far_or_no_numbers():
    scipy = pytest.importorskip("scipy.ndimage")
    image = _image(5, 6)
    # SciPy's indices overflow at 2^63.
    points = np.array([[np.nan, 1.0, 2.0, 1e18, 2.0], [2.0, np.nan, 3.0, 2.0, -1e15]])
    for order in (0, 1, 3):
        for mode in ("constant", "wrap", "reflect"):
            given = dict(order=order, mode=mode, cval=-1.0, prefilter=False)
            np.testing.assert_allclose(ndi.map_coordinates(image, points, **given), scipy.map_coordinates(image, points, **given))
    assert ndi.map_coordinates(image, points, order=1, mode="nearest", cval=-1.0).tolist() == [-1.0, -1.0, *image[[2, 4, 2], [3, 2, 0]]]
    infinite = np.array([[np.inf, 1.0], [2.0, -np.inf]])
    assert ndi.map_coordinates(image, infinite, order=1, cval=-1.0).tolist() == [-1.0, -1.0]
    assert ndi.map_coordinates(image, infinite, order=1, mode="nearest").tolist() == [image[-1, 2], image[1, 0]]


def test_results_of_other_dimensions_and_types():
    scipy = pytest.importorskip("scipy.ndimage")
    image = _image(7, 9)

    def both(name, *given, **keywords):
        ours, theirs = (getattr(each, name)(*given, **keywords) for each in (ndi, scipy))
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, atol=1e-9)

    both("affine_transform", image, [[0.5], [1.0]], output_shape=(9,), order=1)
    both("affine_transform", image, np.eye(2, 4), output_shape=(4, 5, 2, 3), order=1)
    for order in (1, 2):
        both("zoom", image + 2j, 1.5, order=order)
        both("rotate", image * 1j, 90, order=order)
        both("geometric_transform", image, lambda at, by: (at[1] / by, at[0] + 0.25), (6, 5), order=order, extra_arguments=(2,),
             mode="mirror")
        both("geometric_transform", image, lambda at, by: (by * at[0], at[0]), (6,), order=order, extra_keywords={"by": 2})
    whole = (np.arange(63, dtype=np.uint64) + 2**60).reshape(7, 9)
    np.testing.assert_array_equal(ndi.shift(whole, (1, 0), order=0, mode="wrap")[1:], whole[:-1])
    # The same for any number of threads.
    large = _image(40, 41, 42)
    assert ndi.zoom(large, 1.3, order=2, threads=1).tobytes() == ndi.zoom(large, 1.3, order=2, threads=3).tobytes()


def test_displacements_move_points():
    scipy = pytest.importorskip("scipy.ndimage")
    image = _image(12, 14, 16)
    random = np.random.default_rng(6)
    vectors = random.normal(size=(3, *image.shape)) * 2
    expected = scipy.map_coordinates(image, np.indices(image.shape) + vectors, order=1, mode="nearest")
    moved = chunkwise.resample(image, displacements=vectors, outside="nearest")
    np.testing.assert_allclose(moved, expected, atol=1e-9)
    # On a grid with other voxels: size, spacing, origin and rows of the direction.
    coarse = np.full((3, 4, 4, 4), 1.5)
    grid = [4, 4, 4, 5, 5, 5, 0, 0, 0, *np.eye(3).ravel()]
    inside = chunkwise.resample(image, displacements=coarse, displacement_grid=grid, outside="nearest")
    np.testing.assert_allclose(inside, scipy.shift(image, -1.5, order=1, mode="nearest"), atol=1e-9)
    assert chunkwise.resample(image, displacements=vectors, threads=1).tobytes() == chunkwise.resample(image, displacements=vectors).tobytes()
    for given, message in (({"displacements": vectors[:2]}, "components"), ({"displacements": coarse}, "of the output"),
                           ({"displacements": np.full_like(vectors, np.nan)}, "finite"), ({"displacement_grid": grid}, "displacements")):
        with pytest.raises(chunkwise.ParameterError, match=message):
            chunkwise.resample(image, **given)
    with pytest.raises(chunkwise.ParameterError, match="coordinates"):
        ndi.map_coordinates(image, vectors[:2])


def test_outputs_have_the_types_that_are_asked_for():
    image = _image(8, 9, dtype="uint8")
    assert ndi.zoom(image, 2, order=1).dtype == np.uint8
    assert ndi.zoom(image, 2, order=1, output=np.float32).dtype == np.float32
    target = np.empty((16, 18), np.int16)
    assert ndi.zoom(image, 2, order=1, output=target) is target
    exact = ndi.zoom(image, 2, order=1, output=np.float64)
    np.testing.assert_array_equal(target, np.rint(exact))
    np.testing.assert_array_equal(ndi.shift(image, 0), image)
    np.testing.assert_array_equal(ndi.shift(image, (1, 0), order=0)[1:], image[:-1])
    np.testing.assert_array_equal(ndi.rotate(image, 180, order=1), image[::-1, ::-1])


def test_arrays_keep_their_edges():
    image = _image(6, 8, 10, dtype="float32")
    assert chunkwise.resample(image, scale=2).shape == (12, 16, 20)
    assert chunkwise.resample(image, scale=(0.5, 1, 2)).shape == (3, 8, 20)
    assert chunkwise.resample(image, size=(4, 4, 5)).shape == (4, 4, 5)
    assert chunkwise.resample(image, output_spacing=(2, 1, 1)).shape == (3, 8, 10)
    halves = chunkwise.resample(image, scale=(1, 1, 0.5), interpolation="nearest")
    np.testing.assert_array_equal(halves, image[:, :, 1::2])
    # The axes of a transform are the array's.
    moved = chunkwise.resample(image, affine=[[1, 0, 0, 0], [0, 1, 0, 2], [0, 0, 1, 0]], interpolation="nearest")
    np.testing.assert_array_equal(moved[:, :6], image[:, 2:])
    constant = np.full((7, 9), 0.1, np.float32)
    for interpolation in ("linear", "cubic", "lanczos"):
        assert (chunkwise.resample(constant, scale=1.37, interpolation=interpolation) == constant[0, 0]).all()
    labels = np.repeat(np.arange(4, dtype=np.uint64) + 2**60, 4)[None]
    np.testing.assert_array_equal(chunkwise.resample(labels, size=(1, 4), interpolation="label"), labels[:, ::4])
    assert filters.Resample(scale=2)(image, threads=1).tobytes() == filters.Resample(scale=2)(image, threads=2).tobytes()


def test_what_makes_no_grid_is_refused():
    image = _image(6, 7)
    for given, message in (({"scale": 0}, "scale"), ({"affine": [1, 2, 3]}, "affine: 3 numbers"), ({"size": (0, 3)}, "size"),
                           ({"interpolation": "cubical"}, "interpolation")):
        with pytest.raises(chunkwise.ParameterError, match=message):
            chunkwise.resample(image, **given)
    for given, message in (({"order": 6}, "order: 6"), ({"order": 1.5}, "order: 1.5"), ({"mode": "periodic"}, "grid-wrap")):
        with pytest.raises(chunkwise.ParameterError, match=message):
            ndi.zoom(image, 2, **given)
    with pytest.raises(chunkwise.ParameterError, match="from an array of 2 dimensions to one of 3"):
        ndi.affine_transform(image, np.eye(2), output_shape=(3, 3, 3))
    with pytest.raises(TypeError, match="no function"):
        ndi.geometric_transform(image, "mapping")


def test_truth_values_stay_what_they_are_where_no_mean_is_taken():
    image = np.random.default_rng(2).random((6, 7)) > 0.5
    for interpolation in ("nearest", "label"):
        result = chunkwise.resample(image, scale=2, interpolation=interpolation)
        assert result.dtype == bool and np.array_equal(result, np.repeat(np.repeat(image, 2, 0), 2, 1))
    assert chunkwise.resample(image, scale=2).dtype == np.float32


def test_images_without_voxels():
    assert chunkwise.resample(np.zeros((0, 4)), scale=2).shape == (0, 8)
    with pytest.raises(chunkwise.ParameterError, match="no voxels"):
        chunkwise.resample(np.zeros((0, 4)), size=(3, 3))


@pytest.mark.parametrize("order", (0, 1, 3))
@pytest.mark.parametrize("mode", MODES)
def test_values_at_points_depend_on_their_point_alone(order, mode):
    scipy = pytest.importorskip("scipy.ndimage")
    image = _image(9, 14, 33, dtype="float32")
    random = np.random.default_rng(4)
    points = np.stack([random.uniform(-4, extent + 3, 20000) for extent in image.shape])
    found = ndi.map_coordinates(image, points, order=order, mode=mode, cval=7)
    halves = [ndi.map_coordinates(image, points[:, part], order=order, mode=mode, cval=7) for part in (slice(0, 123), slice(123, None))]
    assert np.concatenate(halves).tobytes() == found.tobytes()
    turned = np.asfortranarray(image)
    assert ndi.map_coordinates(turned, points, order=order, mode=mode, cval=7, threads=1).tobytes() == found.tobytes()
    if order < 3:
        np.testing.assert_allclose(found, scipy.map_coordinates(image, points, order=order, mode=mode, cval=7), atol=1e-4)


def test_points_that_are_nowhere_have_the_constant():
    image = _image(5, 6, dtype="float32")
    points = np.array([[1.0, np.nan, np.inf, -np.inf, 1e300], [2.0, 2.0, 2.0, np.nan, 3.0]])
    for order in (0, 1, 3):
        for mode in ("constant", "mirror", "nearest"):
            found = ndi.map_coordinates(image, points, order=order, mode=mode, cval=7)
            assert found[1] == found[3] == 7
            assert (found[2] != 7) == (mode == "nearest") and (found[4] != 7) == (mode != "constant")
    assert ndi.map_coordinates(image > 0.5, points[:, :1], order=0).dtype == bool
