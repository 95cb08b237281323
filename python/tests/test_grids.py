# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Bins and copies to other grids, and the levels of images."""
import json

import numpy as np
import pytest

import chunkwise
from chunkwise import filters

KINDS = ("uint8", "int16", "uint32", "int64", "float32", "float64")
MODES = {"constant": "constant", "nearest": "edge", "reflect": "symmetric", "mirror": "reflect", "wrap": "wrap"}


def noise(shape, kind, seed=1):
    values = np.random.default_rng(seed).integers(0, 250, shape)
    return values.astype(kind) if np.dtype(kind).kind == "u" else (values - 90).astype(kind)


def blocks_of(image, factor):
    """The blocks along the last axis, with NaN for voxels that are not there."""
    padded = np.pad(image.astype(float), [(0, -n % f) for n, f in zip(image.shape, factor)], constant_values=np.nan)
    cut = padded.reshape([each for n, f in zip(padded.shape, factor) for each in (n // f, f)])
    order = [*range(0, cut.ndim, 2), *range(1, cut.ndim, 2)]
    return cut.transpose(order).reshape(*cut.shape[::2], -1)


@pytest.mark.parametrize("kind", KINDS)
def test_bins_are_numpys(kind):
    image = noise((13, 9, 16), kind)
    for factor in ((2, 2, 2), (3, 1, 5), (1, 4, 100)):
        blocks = blocks_of(image, [min(a, b) for a, b in zip(factor, image.shape)])
        mean = np.nanmean(blocks, axis=-1)
        np.testing.assert_allclose(chunkwise.bin(image, factor), mean if image.dtype.kind == "f" else np.rint(mean), rtol=1e-6)
        np.testing.assert_array_equal(chunkwise.bin(image, factor, method="minimum"), np.nanmin(blocks, axis=-1))
        np.testing.assert_array_equal(chunkwise.bin(image, factor, method="maximum"), np.nanmax(blocks, axis=-1))
        np.testing.assert_array_equal(chunkwise.bin(image, factor, method="median"),
                                      np.nanquantile(blocks, 0.5, axis=-1, method="lower"))
        np.testing.assert_array_equal(chunkwise.bin_sum(image, factor), np.nansum(blocks, axis=-1))


@pytest.mark.parametrize("kind", KINDS)
def test_copies_are_numpys(kind):
    image = noise((7, 9, 5), kind)
    np.testing.assert_array_equal(chunkwise.crop(image, (1, 2, 0), upper=(0, 3, 4)), image[1:, 2:-3, :-4])
    for ours, theirs in MODES.items():
        np.testing.assert_array_equal(chunkwise.pad(image, (1, 2, 0), upper=(0, 3, 14), outside=ours),
                                      np.pad(image, ((1, 0), (2, 3), (0, 14)), mode=theirs))
    for axes in (0, 2, (0, 1), (0, 1, 2)):
        np.testing.assert_array_equal(chunkwise.flip(image, axes=axes), np.flip(image, axes))
    for order in ((1, 2, 0), (2, 0, 1), (0, 2, 1)):
        np.testing.assert_array_equal(chunkwise.permute_axes(image, order), image.transpose(order))
    np.testing.assert_array_equal(chunkwise.permute_axes(image), image.T)
    assert chunkwise.flip(image > 40).dtype == bool


def test_of_five_dimensions_and_of_none_of_the_voxels():
    image = noise((2, 3, 4, 5, 6), "uint16")
    np.testing.assert_array_equal(chunkwise.permute_axes(image, (4, 0, 3, 1, 2)), image.transpose(4, 0, 3, 1, 2))
    np.testing.assert_array_equal(chunkwise.bin(image, 2, method="maximum", axes=(0, 4)),
                                  image.reshape(2, 3, 4, 5, 3, 2).max((0, 5))[None])
    assert chunkwise.flip(np.zeros((0, 4))).shape == (0, 4)
    assert chunkwise.bin(np.zeros((0, 5))).shape == (0, 3)


def test_errors_name_the_parameter_before_anything_is_made():
    image = noise((3, 4), "uint8")
    for name, call in (("factor", lambda: chunkwise.bin(image, 0)), ("factor", lambda: chunkwise.bin(image, (1, 2, 3))),
                       ("upper", lambda: chunkwise.crop(image, 1, upper=2)), ("lower", lambda: chunkwise.pad(image, -1)),
                       ("outside_value", lambda: chunkwise.pad(image, 1, outside_value=256)),
                       ("axis_order", lambda: chunkwise.permute_axes(image, (0, 0)))):
        with pytest.raises(chunkwise.ParameterError, match=name):
            call()
    with pytest.raises((chunkwise.Error, MemoryError)):
        chunkwise.pad(image, 2**40)


def open_zarr():
    zarr = pytest.importorskip("zarr")
    if not hasattr(zarr, "create_array"):
        pytest.skip("zarr-python 3 is not here")
    return zarr


def test_stores_get_the_results_of_other_grids(tmp_path):
    zarr = open_zarr()
    image = noise((30, 41, 37), "int16")
    source = zarr.create_array(str(tmp_path / "in.zarr"), shape=image.shape, chunks=(8, 16, 16), dtype=image.dtype)
    source[...] = image
    for number, each in enumerate((filters.Bin(factor=3), filters.Pad(lower=(9, 0, 5), outside="mirror"), filters.Flip(),
                                   filters.PermuteAxes(), filters.Crop(lower=4), filters.Resample(scale=0.5))):
        path = tmp_path / f"{number}.zarr"
        chunkwise.zarr.run(each, source, str(path), memory="32M")
        np.testing.assert_array_equal(zarr.open(str(path))[...], each(image), err_msg=repr(each))


@pytest.mark.parametrize("version", (2, 3))
def test_levels_are_bins_of_the_level_before(tmp_path, version):
    zarr = open_zarr()
    image = noise((2, 9, 50, 61), "uint16")
    path = tmp_path / "image.zarr"
    axes = [{"name": "t", "type": "time"}] + [{"name": name, "type": "space"} for name in "zyx"]
    scales = [{"axes": axes, "datasets": [{"path": "s0", "coordinateTransformations": [
        {"type": "scale", "scale": [1, 2, 0.5, 0.5]}, {"type": "translation", "translation": [0, 10, 20, 30]}]}]}]
    given = {"multiscales": scales} if version == 2 else {"ome": {"version": "0.5", "multiscales": scales}}
    group = zarr.open_group(str(path), mode="w", zarr_format=version, attributes=given)
    level = group.create_array("s0", shape=image.shape, chunks=(1, 4, 16, 16), dtype=image.dtype)
    level[...] = image
    seen = []
    assert chunkwise.zarr.pyramid(path, method="median", levels=3, memory="64M", progress=seen.append) == 3
    assert seen == sorted(seen) and seen[-1] == 1
    found = json.loads(json.dumps(dict(zarr.open_group(str(path), mode="r").attrs)))
    found = found.get("ome", found)["multiscales"][0]
    assert [each["path"] for each in found["datasets"]] == ["s0", "s1", "s2"]
    assert found["datasets"][2]["coordinateTransformations"] == [
        {"type": "scale", "scale": [1, 8, 2, 2]}, {"type": "translation", "translation": [0, 13, 20.75, 30.75]}]
    once = chunkwise.bin(image, 2, method="median")
    np.testing.assert_array_equal(group["s1"][...], once)
    np.testing.assert_array_equal(group["s2"][...], chunkwise.bin(once, 2, method="median"))
    with pytest.raises(FileExistsError, match="levels"):
        chunkwise.zarr.pyramid(path)
    assert chunkwise.zarr.pyramid(path, levels=2, overwrite=True) == 2
    np.testing.assert_array_equal(group["s1"][...], chunkwise.bin(image, 2))
    assert chunkwise.zarr.pyramid(path, method="gaussian", levels=2, overwrite=True, memory="32M") == 2
    np.testing.assert_array_equal(group["s1"][...], chunkwise.bin(image, 2, method="gaussian"))
    chunkwise.zarr.run(filters.Mean(radius=1), path, tmp_path / "filtered.zarr", pyramid="maximum")
    with pytest.raises(chunkwise.ParameterError, match="pyramid"):
        chunkwise.zarr.run(filters.Mean(radius=1), path, np.zeros(image.shape, image.dtype), pyramid="mean")
    zarr.open_group(str(tmp_path / "empty.zarr"), mode="w")
    with pytest.raises(chunkwise.ParameterError, match="no multiscales"):
        chunkwise.zarr.pyramid(tmp_path / "empty.zarr")


def test_levels_do_not_take_the_place_of_the_first(tmp_path):
    zarr = open_zarr()
    image = noise((9, 50, 61), "uint16")
    path = tmp_path / "image.zarr"
    axes = [{"name": name, "type": "space"} for name in "zyx"]
    scales = [{"axes": axes, "datasets": [{"path": "1", "coordinateTransformations": [{"type": "scale", "scale": [1, 1, 1]}]}]}]
    group = zarr.open_group(str(path), mode="w", zarr_format=3, attributes={"ome": {"version": "0.5", "multiscales": scales}})
    level = group.create_array("1", shape=image.shape, chunks=(4, 16, 16), dtype=image.dtype)
    level[...] = image
    assert chunkwise.zarr.pyramid(path, levels=2, overwrite=True) == 2
    np.testing.assert_array_equal(group["1"][...], image)
    np.testing.assert_array_equal(group["2"][...], chunkwise.bin(image, 2))
