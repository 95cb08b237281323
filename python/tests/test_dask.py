# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Over Dask's arrays: the bits of one run over the whole image, for any chunks."""
import pickle

import numpy as np
import pytest
from conftest import make_image

import chunkwise
from chunkwise import filters
from chunkwise import ndimage as ndi

dask = pytest.importorskip("dask")
ndimage = pytest.importorskip("scipy.ndimage")
da = pytest.importorskip("dask.array")

SHAPE = (13, 17, 19)


def random_chunks(random, shape):
    chunks = []
    for extent in shape:
        cuts = sorted(set(int(each) for each in random.integers(1, extent, random.integers(0, 4))))
        chunks.append(tuple(int(each) for each in np.diff([0, *cuts, extent])))
    return tuple(chunks)


FILTERS = [
    filters.Mean(radius=2), filters.Mean(radius=(0, 5, 1)), filters.Gaussian(sigma=2.0, mode="reflect"),
    filters.Variance(radius=30), filters.Median(radius=1), filters.Maximum(radius=3), filters.Opening(radius=(1, 2, 4)),
    filters.Gaussian(sigma=1.0) | filters.Std(radius=1), filters.Mean(radius=2, mode="wrap"), filters.Log(sigma=1.5),
    filters.Convolve(kernel=np.arange(27.0).reshape(3, 3, 3)), filters.Mean(radius=3, axes=(1,)),
    filters.OpeningByReconstruction(radius=1), filters.Deconvolve(np.ones((3, 2, 4)), number_of_iterations=2),
    filters.Deconvolve(np.ones((3, 4)), number_of_iterations=2, axes=(1, 2)),
    filters.OpeningByReconstruction(radius=1, axes=(1, 2)), filters.AreaOpening(size=40), filters.AreaClosing(size=9, axes=(0, 2)),
    filters.HMaxima(height=3, axes=(1, 2)),
]


def test_what_needs_the_whole_image_is_lazy_and_reads_it_once(random):
    reads = []

    def read(block_info=None):
        place = block_info[None]["array-location"]
        reads.append(place)
        return image[tuple(slice(int(a), int(b)) for a, b in place)]

    image = make_image(random, SHAPE, "uint8")
    x = da.map_blocks(read, chunks=random_chunks(random, SHAPE), dtype=image.dtype, meta=np.empty((0, 0, 0), "uint8"))
    lazy = chunkwise.area_opening(x, size=30)
    assert not reads and isinstance(lazy, da.Array) and lazy.chunks == x.chunks
    assert np.array_equal(lazy.compute(scheduler="synchronous"), chunkwise.area_opening(image, size=30))
    assert len(reads) == len(set(map(tuple, reads))) == x.npartitions


@pytest.mark.parametrize("filter", FILTERS, ids=repr)
@pytest.mark.parametrize("dtype", ["float32", "uint16"])
def test_each_filter_gives_the_bits_of_the_whole(random, filter, dtype):
    image = make_image(random, SHAPE, dtype)
    expected = filter(image)
    for _ in range(4):
        chunks = random_chunks(random, SHAPE)
        x = da.from_array(image, chunks=chunks)
        lazy = filter(x)
        assert isinstance(lazy, da.Array) and lazy.dtype == expected.dtype and lazy.chunks == chunks
        assert np.array_equal(lazy.compute(scheduler="threads"), expected)
        from_source = chunkwise.dask.apply(filter, image, chunks=chunks)
        assert np.array_equal(from_source.compute(scheduler="threads"), expected)


def test_a_deconvolution_is_one_task_for_the_whole_image(random):
    image, kernel = make_image(random, SHAPE, "uint8"), np.ones((3, 3, 2))
    weight = (image > 9).astype("uint8")
    x = da.from_array(image, chunks=random_chunks(random, SHAPE))
    for mask in (weight, da.from_array(weight, chunks=(13, 4, 7))):
        lazy = chunkwise.deconvolve(x, kernel, number_of_iterations=3, weight=mask, accelerate=True)
        assert lazy.chunks == x.chunks
        assert np.array_equal(lazy.compute(), chunkwise.deconvolve(image, kernel, number_of_iterations=3, weight=weight,
                                                                   accelerate=True))
    nodes = random.uniform(0.1, 1, (4, 3, 3, 2))
    assert np.array_equal(chunkwise.deconvolve_varying(x, nodes, (1, 2, 2), number_of_iterations=2).compute(),
                          chunkwise.deconvolve_varying(image, nodes, (1, 2, 2), number_of_iterations=2))
    with pytest.raises(chunkwise.ParameterError, match="number_of_iterations"):
        chunkwise.deconvolve(x, kernel, number_of_iterations=0)
    for clip in (True, False):
        lazy = chunkwise.richardson_lucy(x, kernel / 18, num_iter=2, clip=clip, weight=weight)
        assert isinstance(lazy, da.Array) and lazy.chunks == x.chunks
        assert np.array_equal(lazy.compute(), chunkwise.richardson_lucy(image, kernel / 18, num_iter=2, clip=clip, weight=weight))


def test_a_source_has_a_task_for_each_block(random):
    image = make_image(random, (20, 20, 20), "uint8")
    lazy = chunkwise.dask.apply(filters.Mean(radius=4), image, chunks=(2, 2, 2))
    assert lazy.npartitions == 1000
    assert len(dict(lazy.__dask_graph__())) <= 1100
    again = chunkwise.dask.apply(filters.Mean(radius=4), image, chunks=(2, 2, 2))
    other = chunkwise.dask.apply(filters.Mean(radius=5), image, chunks=(2, 2, 2))
    assert lazy.name == again.name != other.name


def test_in_two_processes(random, tmp_path):
    zarr = pytest.importorskip("zarr")
    image = make_image(random, (12, 20, 24), "float32")
    source = zarr.open(str(tmp_path / "in.zarr"), mode="w", shape=image.shape, chunks=(4, 8, 8), dtype="f4")
    source[...] = image
    f = filters.Gaussian(sigma=1.5)
    lazy = chunkwise.dask.apply(f, source)
    with dask.config.set(num_workers=2):
        assert np.array_equal(lazy.compute(scheduler="processes"), f(image))


def test_filters_of_two_images(random):
    image, marker = make_image(random, SHAPE, "float32"), make_image(random, SHAPE, "float32")
    chunks = random_chunks(random, SHAPE)
    lazy = filters.Difference()(da.from_array(image, chunks=chunks), da.from_array(marker, chunks=chunks))
    assert np.array_equal(lazy.compute(), image - marker)


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
@pytest.mark.parametrize("shape", [(9, 20, 30), (41, 37)])
def test_summed_area_tables(random, dtype, shape):
    image = make_image(random, shape, dtype)
    for given in ({}, {"squares": True}):
        f = filters.Sat(**given)
        expected = f(image)
        for _ in range(4):
            lazy = f(da.from_array(image, chunks=random_chunks(random, shape)))
            assert np.array_equal(lazy.compute(scheduler="threads"), expected)


def test_statistics(random):
    image = (make_image(random, SHAPE, "float32") * 1e10) ** 3
    image[2, 3, 4] = np.nan
    expected = chunkwise.statistics(image)
    for _ in range(3):
        found = chunkwise.statistics(da.from_array(image, chunks=random_chunks(random, SHAPE)))
        assert found == expected
    assert expected.nans == 1 and expected.voxels == image.size - 1


def spiral(extent):
    """A way through all of an image."""
    mask = np.zeros((extent, extent), "uint8")
    low, high = 0, extent - 1
    while low <= high:
        mask[low, max(low - 2, 0):high + 1] = 200
        mask[low:high + 1, high] = 200
        mask[high, low:high + 1] = 200
        mask[low + 2:high + 1, low] = 200
        low, high = low + 2, high - 2
    return mask


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("erosion", [False, True])
def test_reconstruction_in_rounds(random, full, erosion):
    for shape, dtype in (((11, 12, 13), "uint8"), ((30, 31), "float32"), ((11, 12, 13), "int16")):
        mask = make_image(random, shape, dtype)
        marker = np.minimum(mask, mask.mean().astype(dtype)) if not erosion else np.maximum(mask, mask.mean().astype(dtype))
        marker[random.random(shape) < 0.9] = mask.min() if not erosion else mask.max()
        marker = np.maximum(marker, mask) if erosion else np.minimum(marker, mask)
        expected = chunkwise.reconstruct(mask, marker, erosion=erosion, fully_connected=full)
        chunks = random_chunks(random, shape)
        for rounds in (1, 1000):
            lazy = chunkwise.dask.reconstruction(da.from_array(marker, chunks=chunks), da.from_array(mask, chunks=chunks),
                                                 erosion, fully_connected=full, rounds=rounds)
            assert np.array_equal(lazy.compute(), expected)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint32", "int64", "float32", "float64"])
def test_forests_give_the_bits_of_the_whole(random, dtype):
    """Plateaus, ridges and NaN in blocks of any size, down to one voxel; a marker in one place, so that ways are long."""
    for turn in range(8):
        shape = tuple(int(each) for each in random.integers(1, 12, random.integers(1, 4)))
        mask = random.integers(-3, 4, shape).astype(dtype) if turn % 2 else make_image(random, shape, dtype)
        erosion, full = bool(turn & 2), bool(turn & 4)
        beyond = mask.min() if not erosion else mask.max()
        marker = np.where(random.random(shape) < 0.02, mask, beyond)
        if np.dtype(dtype).kind == "f":
            mask[random.random(shape) < 0.1] = np.nan
            mask[random.random(shape) < 0.1] = -0.0
            marker[random.random(shape) < 0.1] = np.nan
            marker[random.random(shape) < 0.1] = np.inf
        expected = chunkwise.reconstruct(mask, marker, erosion=erosion, fully_connected=full)
        chunks = tuple((1,) * each for each in shape) if turn == 3 else random_chunks(random, shape) if min(shape) > 1 else 2
        lazy = chunkwise.dask.reconstruction(da.from_array(marker, chunks=chunks), da.from_array(mask, chunks=chunks),
                                             erosion, fully_connected=full, rounds=1)
        found = lazy.compute()
        assert found.tobytes() == expected.tobytes() or (
            np.array_equal(found, expected, equal_nan=found.dtype.kind == "f")
            and np.array_equal(np.signbit(found)[found == 0], np.signbit(expected)[expected == 0]))


def test_reconstruction_along_a_spiral():
    mask = spiral(41)
    marker = np.zeros_like(mask)
    marker[0, 0] = 200
    expected = chunkwise.reconstruct(mask, marker)
    assert (expected == 200).sum() > 400
    x, y = da.from_array(marker, chunks=8), da.from_array(mask, chunks=8)
    assert np.array_equal(chunkwise.dask.reconstruction(x, y).compute(), expected)
    # Ways through all blocks: rounds alone take many, forests one step.
    for rounds in (1, 3, 10000):
        assert np.array_equal(chunkwise.dask.reconstruction(x, y, rounds=rounds).compute(), expected)
    with pytest.raises(ValueError, match="rounds"):
        chunkwise.dask.reconstruction(x, y, rounds=0)
    empty = chunkwise.dask.reconstruction(x[:0], y[:0])
    assert empty.shape == (0, 41)


def test_parts_of_forests_are_checked():
    from chunkwise import _core
    f = filters.Reconstruct()
    operation = f._operation((4, 4), "uint8", "uint8", further=("MarkerImage",))
    block = np.ones((4, 2), "uint8")
    part = _core.contract(operation, block, block, (0, 0), (4, 4))
    assert _core.join(operation, "uint8", [[0, 2, 4], [0, 4]], [part, part]) == [b"", b""]
    for arguments, text in (
            (("uint8", [[0, 2, 4], [0, 4]], [part]), "contractions"), (("uint16", [[0, 2, 4], [0, 4]], [part, part]), "kind"),
            (("uint8", [[0, 2, 4], [0, 4]], [part, part[:-1]]), "contraction"), (("uint8", [[0], [0, 4]], []), "cuts"),
            (("uint8", [[0, 1, 4], [0, 4]], [part, part + b"x"]), "contraction")):
        with pytest.raises(ValueError, match=text):
            _core.join(operation, *arguments)
    with pytest.raises(ValueError, match="border"):
        _core.raise_border(operation, b"123", block, (0, 0), (4, 4))
    with pytest.raises(ValueError, match="image"):
        _core.contract(operation, block, block, (3, 0), (4, 4))
    with pytest.raises(ValueError, match="mask"):
        _core.contract(operation, block, block.astype("int16"), (0, 0), (4, 4))
    with pytest.raises(ValueError, match="not a reconstruction"):
        _core.contract(filters.Mean(radius=1)._operation((4, 4), "uint8", "uint8"), block, block, (0, 0), (4, 4))


@pytest.mark.parametrize("filter", [
    filters.HMaxima(height=20), filters.HMinima(height=20), filters.HConvex(height=20), filters.HConcave(height=20),
    filters.FillHoles(), filters.GrindPeaks(), filters.ClearBorder(fully_connected=True),
    filters.Hysteresis(100, 240), filters.Hysteresis(90.5, 90.5)], ids=repr)
def test_what_is_made_of_reconstructions(random, filter):
    image = make_image(random, (10, 11, 12), "uint8")
    for array in (image, image.astype("float32")):
        lazy = filter(da.from_array(array, chunks=random_chunks(random, array.shape)))
        assert np.array_equal(lazy.compute(), filter(array))


def with_special_values(random, array):
    if array.dtype.kind == "f":
        for value in (np.nan, np.inf, -np.inf, -0.0, 0.0, np.finfo(array.dtype).smallest_subnormal):
            array[random.random(array.shape) < 0.05] = value
    return array


@pytest.mark.parametrize("filter", [
    filters.RegionalMaxima(), filters.RegionalMinima(), filters.RegionalMaxima(fully_connected=True, flat_is_maxima=False),
    filters.RegionalMinima(foreground_value=3, background_value=7), filters.RegionalMinima(flat_is_minima=False)], ids=repr)
@pytest.mark.parametrize("dtype", ["uint8", "int64", "float32", "bool"])
def test_regional_extrema(random, filter, dtype):
    """Plateaus over many blocks, ends of the type, and images of one value."""
    for turn in range(3):
        shape = tuple(int(each) for each in random.integers(2, 12, 3 - turn))
        image = make_image(random, shape, dtype) if turn % 3 == 0 else random.integers(0, 3, shape).astype(dtype)
        if np.dtype(dtype).kind in "iu" and turn % 3 == 1:
            limits = np.iinfo(dtype)
            image[random.random(shape) < 0.4] = limits.min
            image[random.random(shape) < 0.4] = limits.max
        image = with_special_values(random, image)
        if turn == 2:
            image[...] = image.ravel()[0]
        expected = filter(image)
        with dask.config.set(scheduler="synchronous"):
            found = filter(da.from_array(image, chunks=random_chunks(random, shape))).compute()
        assert found.dtype == expected.dtype and np.array_equal(found, expected)


def test_regional_extrema_at_the_ends_of_floats():
    image = np.array([np.nan, -np.inf, np.nan, 1, -np.inf, -np.inf, np.nan, np.inf, np.nan, np.inf, 2, -0.0, 0.0, -0.0], "float32")
    for filter in (filters.RegionalMaxima(), filters.RegionalMinima()):
        for array in (image, -image, image[:3], image[4:6]):
            assert np.array_equal(filter(da.from_array(array, chunks=2)).compute(), filter(array))


@pytest.mark.parametrize("filter", [
    filters.OpeningByReconstruction(radius=1), filters.ClosingByReconstruction(radius=(0, 2, 1)),
    filters.OpeningByReconstruction(), filters.OpeningByReconstruction(radius=2, element="ball", preserve_intensities=True),
    filters.ClosingByReconstruction(radius=1, fully_connected=True, preserve_intensities=True),
    filters.ClosingByReconstruction(kernel=np.array([[[0, 1, 0], [1, 1, 1], [0, 1, 0]]]))], ids=repr)
@pytest.mark.parametrize("dtype", ["uint8", "float32", "bool"])
def test_openings_and_closings_by_reconstruction(random, filter, dtype):
    for turn in range(2):
        shape = tuple(int(each) for each in random.integers(4, 14, 3))
        image = make_image(random, shape, dtype) if turn % 2 else random.integers(0, 4, shape).astype(dtype)
        image = with_special_values(random, image)
        expected = filter(image)
        with dask.config.set(scheduler="synchronous"):
            found = filter(da.from_array(image, chunks=random_chunks(random, shape)), threads=1).compute()
        assert found.dtype == expected.dtype
        assert np.array_equal(found, expected, equal_nan=found.dtype.kind == "f")


def test_bool_stays_bool(random):
    image = np.zeros((9, 9), bool)
    image[4, 4] = image[0, :5] = image[7, 6:8] = True
    for filter in (filters.GrindPeaks(), filters.ClearBorder(), filters.FillHoles(), filters.HMaxima(height=1),
                   filters.HConvex(height=1), filters.HConcave(height=1), filters.HMinima(height=0)):
        for array in (image, ~image):
            found = filter(da.from_array(array, chunks=3)).compute()
            assert found.dtype == bool and np.array_equal(found, filter(array))


def test_a_source_of_chunks_is_reconstructed(random, tmp_path):
    zarr = pytest.importorskip("zarr")
    image = random.integers(0, 9, (9, 10, 11)).astype("uint8")
    source = zarr.open(str(tmp_path / "in.zarr"), mode="w", shape=image.shape, chunks=(4, 5, 6), dtype="u1")
    source[...] = image
    for filter in (filters.FillHoles(), filters.OpeningByReconstruction(radius=1), filters.RegionalMinima()):
        found = chunkwise.dask.apply(filter, source)
        assert np.array_equal(found.compute(), filter(image))
        assert chunkwise.dask.apply(filter, image, chunks=(3, 10, 4)).chunks == ((3, 3, 3), (10,), (4, 4, 3))


def test_xarray_stays_lazy(random):
    xarray = pytest.importorskip("xarray")
    image = make_image(random, (8, 9, 10), "float32")
    lazy = xarray.DataArray(da.from_array(image, chunks=4), dims=("t", "y", "x"), coords={"x": np.arange(10) * 0.5})
    result = chunkwise.gaussian(lazy, sigma=1.0)
    assert isinstance(result.data, da.Array) and result.dims == lazy.dims
    assert np.array_equal(result.values, chunkwise.gaussian(image, sigma=1.0, axes=(1, 2), spacing=(1, 1, 0.5)))


def test_what_cannot_be_done_is_said(random):
    x = da.from_array(make_image(random, (8, 8, 8), "float32"), chunks=4)
    with pytest.raises(ValueError, match="whole image"):
        chunkwise.wiener(x, radius=1, noise_variance="auto")
    with pytest.raises(ValueError, match="one kind"):
        chunkwise.h_maxima(x, height=1, output="float64")
    with pytest.raises(ValueError, match="radius"):
        chunkwise.mean(x, radius=-1)


def test_keys_tell_filters_apart():
    made = [filters.Mean(radius=1), filters.Mean(radius=(1, 1, 1)), filters.Mean(radius=2), filters.Median(radius=1),
            filters.Mean(radius=1, mode="wrap"), filters.Convolve(kernel=np.ones((3, 3))),
            filters.Convolve(kernel=np.eye(3)), filters.Mean(radius=1) | filters.Mean(radius=2),
            filters.Gaussian(sigma=1), filters.Gaussian(sigma=1, spacing=(1, 2, 3))]
    assert len({each.key for each in made}) == len(made) == len(set(made))
    for each in made:
        copy = pickle.loads(pickle.dumps(each))
        assert copy == each and copy.key == each.key and hash(copy) == hash(each) and type(copy) is type(each)


def test_further_images_keep_their_names_and_types(random):
    image = make_image(random, SHAPE, "int8")
    mask = (make_image(random, SHAPE, "float32") > 0).astype("uint8")
    weight = np.abs(make_image(random, SHAPE, "float32"))
    radii = random.integers(0, 3, SHAPE).astype("int16")
    x = da.from_array(image, chunks=7)
    for filter, others in ((filters.Mean(radius=1), (mask,)), (filters.Mean(radius=1), (None, weight)),
                           (filters.Box(radius=2), (None, mask)), (filters.Box(radius=2), (radii, None, weight)),
                           (filters.Box(radius=2), (radii, mask)), (filters.Median(radius=1), (mask.astype("int64"),))):
        expected = filter(image, *others)
        for first, further in ((x, others), (x, [None if each is None else da.from_array(each, chunks=5)
                                                 for each in others])):
            lazy = filter(first, *further)
            assert lazy.dtype == expected.dtype
            assert np.array_equal(lazy.compute(), expected, equal_nan=True)
        assert np.array_equal(chunkwise.dask.apply(filter, image, *others, chunks=(7, 7, 7)).compute(), expected,
                              equal_nan=True)
    with pytest.raises(ValueError, match=r"mask: its shape is \(14, 17, 19\), the input's is \(13, 17, 19\)"):
        filters.Mean(radius=1)(x, np.ones((14, 17, 19), "uint8"))


def test_reconstruction_of_two_types_has_that_of_both(random):
    image = make_image(random, (9, 10), "uint8")
    marker = image.astype("uint16") + 500
    f = filters.Reconstruct(erosion=True)
    expected = f(image, marker)
    lazy = f(da.from_array(image, chunks=4), da.from_array(marker, chunks=4))
    assert lazy.dtype == expected.dtype and np.array_equal(lazy.compute(), expected)


@pytest.mark.parametrize("trial", range(12))
def test_labels_of_blocks_are_those_of_the_whole(random, trial):
    ndim = 2 + trial % 2
    shape = tuple(int(each) for each in random.integers(8, 28, ndim))
    connectivity = 1 + trial // 2 % ndim
    dtype = ["uint8", "bool", "float32"][trial % 3]
    image = (random.random(shape) < random.uniform(0.2, 0.7)).astype(dtype)
    expected = ndimage.label(image, ndimage.generate_binary_structure(ndim, connectivity))[0]
    filter = filters.Label(connectivity=connectivity)
    lazy = da.from_array(image, chunks=random_chunks(random, shape))
    labels = filter(lazy)
    assert labels.chunks == lazy.chunks and labels.dtype == "uint32"
    with dask.config.set(scheduler="threads"):
        assert np.array_equal(labels.compute(), expected)
        # A source is read by the tasks themselves.
        from_source = chunkwise.dask.apply(filter, image, chunks=random_chunks(random, shape), output="int64")
        assert from_source.dtype == "int64" and np.array_equal(from_source.compute(), expected)


def test_labels_of_values_and_of_periodic_images_in_blocks(random):
    image = random.integers(0, 3, (17, 19, 23)).astype("int16")
    lazy = da.from_array(image, chunks=(5, 7, 23))
    for filter in (filters.Label(rule="equal", connectivity=3), filters.Label(rule="within", tolerance=1, background=2),
                   filters.Label(label_background=True, rule="equal"), filters.Label(periodic_axes=(0, 2)),
                   filters.Label(axes=(1, 2))):
        assert np.array_equal(filter(lazy).compute(scheduler="threads"), filter(image)), filter
        assert np.array_equal(pickle.loads(pickle.dumps(filter(lazy))).compute(scheduler="sync"), filter(image)), filter


def test_labels_take_two_tasks_for_each_block():
    lazy = da.zeros((100, 100, 100), chunks=10, dtype="uint8")
    tasks = set(filters.Label()(lazy).__dask_graph__()) - set(lazy.__dask_graph__())
    assert len(tasks) <= 2200


def test_labels_of_blocks_that_cannot_be(random):
    lazy = da.from_array(np.arange(1000).reshape(10, 100) % 2, chunks=(10, 25))
    with pytest.raises(RuntimeError, match="500 components; uint8 has labels up to 255"):
        filters.Label(structure=[0, 0, 0, 0, 1, 0, 0, 0, 0])(lazy, output="uint8").compute(scheduler="sync")
    with pytest.raises(TypeError, match="memory: tasks of labels have no such option"):
        filters.Label()(lazy, memory="1G")
    with pytest.raises(ValueError, match="on the CPU"):
        filters.Label()(lazy, backend="cuda")
    operation = filters.Label()._operation((4, 4), "uint8", "uint32")
    with pytest.raises(ValueError, match="a summary has 3 bytes"):
        chunkwise._core.join_labels(operation, [([0, 0], [4, 4])], [b"abc"])
    with pytest.raises(ValueError, match="a summary has label 16843009 of 0"):
        chunkwise._core.join_labels(operation, [([0, 0], [4, 4])],
                                    [b"\0" * 16 + b"\1" * (len(chunkwise._core.summarise_labels(
                                        operation, np.zeros((4, 4), "uint8"), [0, 0], 1)) - 16)])
    with pytest.raises(ValueError, match="1 summaries of 2 blocks"):
        chunkwise._core.join_labels(operation, [([0, 0], [4, 2]), ([0, 2], [4, 4])], [b"abc"])
    with pytest.raises(ValueError, match="of another block"):
        chunkwise._core.write_labels(operation, np.zeros((4, 4), "uint8"), b"abc", np.zeros((4, 4), "uint32"), [0, 0], 1)
    with pytest.raises(ValueError, match="finds no components"):
        chunkwise._core.summarise_labels(filters.Mean(radius=1)._operation((4, 4), "uint8", "uint8"),
                                         np.zeros((4, 4), "uint8"), [0, 0], 1)


def test_chunks_of_unknown_extents_are_refused(random):
    x = da.from_array(random.integers(0, 9, 50), chunks=10)
    x = x[x > 3]
    for filter in (filters.Mean(1), filters.Label()):
        with pytest.raises(chunkwise.ParameterError, match="compute_chunk_sizes"):
            chunkwise.dask.apply(filter, x)


def test_arrays_in_memory_take_one_task_for_each_block(random):
    image = random.normal(size=(20, 21, 22)).astype("float32")
    mask = image > 0
    lazy, lazy_mask = da.from_array(image, chunks=(6, 7, 5)), da.from_array(mask, chunks=(10, 7, 11))
    for f in (filters.Mean(radius=(1, 9, 2)), filters.Median(radius=1, mode="reflect"), filters.Gaussian(sigma=1.0) | filters.Std(1)):
        made = chunkwise.dask.apply(f, lazy)
        assert len(made.__dask_graph__()) == made.npartitions
        assert np.array_equal(made.compute(), f(image))
    made = chunkwise.dask.apply(filters.Mean(radius=2), lazy, lazy_mask)
    assert len(made.__dask_graph__()) == made.npartitions
    assert np.array_equal(made.compute(), filters.Mean(radius=2)(image, mask), equal_nan=True)
    assert made.name == chunkwise.dask.apply(filters.Mean(radius=2), lazy, lazy_mask).name
    assert made.name != chunkwise.dask.apply(filters.Mean(radius=2), lazy).name


@pytest.mark.parametrize("name, arguments", [
    ("uniform_filter", (4,)), ("median_filter", (4,)), ("rank_filter", (2, (3, 2, 1))),
    ("percentile_filter", (30, None, np.eye(3)[None] + np.eye(3)[::-1, None])), ("uniform_filter", (3, None, "mirror")),
    ("uniform_filter", (3, None, "reflect", 0.0, (1, 0, -1))), ("grey_dilation", (None, None, np.arange(12.0).reshape(1, 3, 4))), ("sobel", ()), ("laplace", ()), ("gaussian_filter", (1.0, (0, 1, 0))), ("white_tophat", (3,)),
    ("morphological_gradient", (4,)), ("gaussian_gradient_magnitude", (1.0,)), ("binary_dilation", ()),
    ("binary_hit_or_miss", ()), ("binary_fill_holes", ())])
def test_functions_of_scipy_are_lazy(random, name, arguments):
    image = random.normal(size=(14, 15, 16)).astype("float32")
    image = image > 0.3 if name.startswith("binary") else image
    lazy = getattr(ndi, name)(da.from_array(image, chunks=(6, 7, 16)), *arguments)
    assert isinstance(lazy, da.Array) and np.array_equal(lazy.compute(), getattr(ndi, name)(image, *arguments))


def test_what_needs_an_array_in_memory_is_said():
    lazy = da.zeros((3, 3, 3, 3), chunks=2)
    with pytest.raises(ValueError, match="array in memory"):
        ndi.median_filter(lazy, 3)


class Source:
    """Slices of an array, and the chunks that they are made of."""

    def __init__(self, array, chunks):
        self.array, self.shape, self.dtype, self.chunks = array, array.shape, array.dtype, chunks

    def __getitem__(self, part):
        return self.array[part]


def on_grids():
    yield from (filters.Bin(factor=3), filters.Bin(factor=(2, 1, 4), method="median"), filters.BinSum(factor=2), filters.Flip(axes=(0, 2)),
                filters.Crop(lower=(3, 0, 2), upper=(1, 2, 0)), filters.PermuteAxes((1, 2, 0)), filters.Resample(scale=0.5),
                filters.Resample(scale=(2, 1, 0.7), interpolation="cubic"), filters.Resample(scale=0.4, interpolation="label"),
                filters.Resample(affine=[[0.9, 0.1, 0, 1], [-0.1, 0.9, 0.2, 3], [0, 0.05, 1, 0]]),
                filters.ConvolveImage(np.ones((3, 3, 3)), valid=True))
    for outside in ("constant", "mirror", "wrap"):
        yield filters.Pad(lower=(3, 0, 5), upper=(1, 2, 9), outside=outside)


@pytest.mark.parametrize("filter", on_grids(), ids=lambda f: f"{f.name}-{f.parameters.get('outside', '')}")
def test_other_grids_have_the_bits_of_the_whole(random, filter):
    image = random.integers(0, 200, (19, 13, 21)).astype("float32" if filter.name == "convolve-image" else "uint8")
    whole = filter(image)
    lazy = da.from_array(image, chunks=random_chunks(random, image.shape))
    computed = lazy.map_blocks(lambda block: block + 0, dtype=lazy.dtype)
    for made in (filter(lazy), filter(computed), chunkwise.dask.apply(filter, Source(image, (5, 7, 9))),
                 chunkwise.dask.apply(filter, lazy, chunks=5)):
        assert made.shape == whole.shape and made.dtype == whole.dtype
        np.testing.assert_array_equal(made.compute(), whole)
        assert made.name != filter(lazy).name or made.chunks == filter(lazy).chunks
    assert len(filter(lazy).__dask_graph__()) == filter(lazy).npartitions


def test_grids_end_where_the_chunks_of_the_image_end():
    lazy = da.zeros((40, 50, 60), chunks=(10, 20, 30), dtype="uint8").map_blocks(lambda block: block + 0)
    for filter, chunks in ((filters.Bin(factor=2), ((5, 5, 5, 5), (10, 10, 5), (15, 15))),
                           (filters.Flip(), ((10, 10, 10, 10), (10, 20, 20), (30, 30))),
                           (filters.PermuteAxes((2, 0, 1)), ((30, 30), (10, 10, 10, 10), (20, 20, 10))),
                           (filters.Crop(lower=(10, 20, 0)), ((10, 10, 10), (20, 10), (30, 30)))):
        made = filter(lazy)
        assert made.chunks == chunks
        assert len(set(made.__dask_graph__()) - set(lazy.__dask_graph__())) == made.npartitions


@pytest.mark.parametrize("mode", ["constant", "nearest", "mirror", "reflect", "grid-wrap"])
def test_grids_are_cut_whatever_the_edge(random, mode):
    image = random.integers(0, 200, (60, 90)).astype("float32")
    lazy = da.from_array(image, chunks=(15, 30))
    for call, least in ((lambda x: ndi.zoom(x, 2, order=1, mode=mode), (4, 3)), (lambda x: ndi.shift(x, 1.5, order=1, mode=mode), (4, 3)),
                        (lambda x: ndi.zoom(x, 10, order=1, mode=mode), (20, 15))):
        made = call(lazy)
        assert made.numblocks >= least and all(each <= 60 for each in made.chunks[0])
        np.testing.assert_array_equal(made.compute(), call(image))


def test_functions_of_scipy_on_other_grids_are_lazy(random):
    image = random.integers(0, 200, (14, 15, 16)).astype("uint8")
    lazy = da.from_array(image, chunks=(6, 7, 16))
    for call in (lambda x: ndi.zoom(x, (0.5, 2, 1.1), order=1), lambda x: ndi.zoom(x, 0.5, order=0), lambda x: ndi.shift(x, 1.5),
                 lambda x: ndi.rotate(x, 20, axes=(1, 2), order=1, output=np.float32)):
        assert isinstance(call(lazy), da.Array)
        np.testing.assert_array_equal(call(lazy).compute(), call(image))
    with pytest.raises(chunkwise.ParameterError, match="only arrays in memory"):
        ndi.zoom(lazy, 2, order=2)
