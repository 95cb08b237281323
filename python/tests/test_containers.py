# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Images of other packages come back as such, in their place in space. Packages that are not here skip."""
import numpy as np
import pytest
from conftest import make_image

import chunkwise
from chunkwise import _containers
from chunkwise import ndimage as ndi

SPACING = (0.5, 0.7, 2.0)  # x, y, z
ORIGIN = (-10.0, 3.0, 7.5)
DIRECTION = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])


def in_voxels(image, **given):
    return chunkwise.gaussian(image, sigma=tuple(1.0 / each for each in SPACING[::-1]), **given)


@pytest.mark.parametrize("dtype", ["float32", "uint8", "int16"])
def test_itk(random, dtype):
    itk = pytest.importorskip("itk", reason="itk is not installed")
    voxels = make_image(random, (6, 7, 8), dtype)
    image = itk.image_from_array(voxels)
    image.SetSpacing(SPACING)
    image.SetOrigin(ORIGIN)
    image.SetDirection(itk.matrix_from_array(DIRECTION))
    opened = _containers.open_image(image)
    assert np.shares_memory(opened.array, itk.array_view_from_image(image))
    result = chunkwise.gaussian(image, sigma=1.0)
    assert type(result) is type(image)
    assert tuple(result.GetSpacing()) == SPACING and tuple(result.GetOrigin()) == ORIGIN
    assert np.array_equal(itk.array_from_matrix(result.GetDirection()), DIRECTION)
    assert np.array_equal(itk.array_from_image(result), in_voxels(voxels))
    assert np.array_equal(itk.array_from_image(chunkwise.gaussian(image, sigma=1.0, spacing=False)),
                          chunkwise.gaussian(voxels, sigma=1.0))
    assert np.array_equal(itk.array_from_image(ndi.gaussian_filter(image, 1.0)), ndi.gaussian_filter(voxels, 1.0))
    output = np.empty(voxels.shape, "float64")
    assert chunkwise.mean(image, 1, output=output) is output
    result = chunkwise.mean(image, 1)
    del image, opened
    assert np.array_equal(itk.array_from_image(result), chunkwise.mean(voxels, 1))


def test_itk_refuses_what_has_components(random):
    itk = pytest.importorskip("itk", reason="itk is not installed")
    image = itk.image_from_array(make_image(random, (5, 6, 3), "uint8"), is_vector=True)
    with pytest.raises(ValueError, match="components"):
        chunkwise.mean(image, 1)


def test_simple_itk(random):
    sitk = pytest.importorskip("SimpleITK", reason="SimpleITK is not installed")
    voxels = make_image(random, (6, 7, 8), "float32")
    image = sitk.GetImageFromArray(voxels)
    image.SetSpacing(SPACING)
    image.SetOrigin(ORIGIN)
    image.SetDirection(DIRECTION.ravel())
    result = chunkwise.gaussian(image, sigma=1.0)
    assert isinstance(result, sitk.Image)
    assert (result.GetSpacing(), result.GetOrigin()) == (SPACING, ORIGIN)
    assert result.GetDirection() == tuple(DIRECTION.ravel())
    assert np.array_equal(sitk.GetArrayFromImage(result), in_voxels(voxels))
    assert np.array_equal(sitk.GetArrayFromImage(ndi.maximum_filter(image, 3)), ndi.maximum_filter(voxels, 3))
    marker = sitk.GetImageFromArray(voxels - 1)
    marker.CopyInformation(image)
    assert np.array_equal(sitk.GetArrayFromImage(chunkwise.reconstruct(image, marker)),
                          chunkwise.reconstruct(voxels, voxels - 1))
    # Components are filtered one by one; four dimensions stay an image of four.
    several = chunkwise.gaussian(sitk.Compose(image, image * 2), sigma=1.0)
    assert several.GetNumberOfComponentsPerPixel() == 2 and several.GetSpacing() == SPACING
    assert np.array_equal(sitk.GetArrayFromImage(several)[..., 0], in_voxels(voxels))
    four = sitk.GetImageFromArray(make_image(random, (3, 4, 5, 6), "uint8"), isVector=False)
    four.SetSpacing((1.0, 2.0, 3.0, 4.0))
    result = chunkwise.median(four, 1)
    assert result.GetDimension() == 4 and result.GetSpacing() == four.GetSpacing()
    assert np.array_equal(sitk.GetArrayFromImage(result), chunkwise.median(sitk.GetArrayFromImage(four), 1))


def test_xarray(random):
    xarray = pytest.importorskip("xarray", reason="xarray is not installed")
    voxels = make_image(random, (2, 6, 7, 8), "float32")
    image = xarray.DataArray(voxels, dims=("c", "z", "y", "x"), attrs={"unit": "mm"}, name="volume",
                             coords={"z": 7.5 + 2.0 * np.arange(6), "y": 3 + 0.7 * np.arange(7), "x": 4 - 0.5 * np.arange(8)})
    result = chunkwise.gaussian(image, sigma=1.0)
    assert isinstance(result, xarray.DataArray)
    assert result.dims == image.dims and result.attrs == image.attrs and result.name == "volume"
    assert all(np.array_equal(result[each], image[each]) for each in "zyx")
    np.testing.assert_allclose(result.values, np.stack([in_voxels(each) for each in voxels]), rtol=1e-6)
    # Which axes are those of space, their names say.
    turned = chunkwise.median(image.transpose("z", "x", "c", "y"), 1)
    assert np.array_equal(turned.transpose("c", "z", "y", "x").values, chunkwise.median(image, 1).values)
    uneven = image.assign_coords(x=np.arange(8.0) ** 2)
    with pytest.raises(ValueError, match="axis 3 are not evenly"):
        chunkwise.gaussian(uneven, sigma=1.0)
    assert np.array_equal(chunkwise.gaussian(uneven, sigma=1.0, spacing=False).values,
                          chunkwise.gaussian(voxels, sigma=1.0, axes=(1, 2, 3)))
    # If no length lies along them, coordinates may be anything.
    assert np.array_equal(chunkwise.gaussian(uneven, sigma=1.0, axes=(1, 2)).values,
                          chunkwise.gaussian(image, sigma=1.0, axes=(1, 2)).values)
    assert np.array_equal(chunkwise.mean(uneven, 1).values, chunkwise.mean(image, 1).values)
    with pytest.raises(TypeError, match="Dataset"):
        chunkwise.mean(image.to_dataset(), 1)


def test_torch(random):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    voxels = make_image(random, (6, 7, 8), "float32")
    tensor = torch.from_numpy(voxels.copy())
    assert np.shares_memory(_containers.open_image(tensor).array, tensor.numpy())
    result = chunkwise.median(tensor, 1)
    assert isinstance(result, torch.Tensor) and np.array_equal(result.numpy(), chunkwise.median(voxels, 1))
    assert np.array_equal(chunkwise.median(tensor[:, ::2], 1).numpy(), chunkwise.median(voxels[:, ::2], 1))
    kernel = np.ones((3, 3, 3)) / 27
    for call in (chunkwise.deconvolve, chunkwise.richardson_lucy):
        result = call(tensor, torch.from_numpy(kernel))
        assert isinstance(result, torch.Tensor) and np.array_equal(result.numpy(), call(voxels, kernel))
    with pytest.raises(ValueError, match="gradient"):
        chunkwise.mean(tensor.requires_grad_(), 1)


def test_lists_are_arrays():
    assert np.array_equal(chunkwise.maximum([[1, 2, 3], [4, 5, 6]], 1), [[5, 6, 6], [5, 6, 6]])


def refuses(call, image, mask, what, values):
    with pytest.raises(ValueError, match="mask: its " + what) as caught:
        call(image, mask)
    for each in values:
        assert each in str(caught.value)


@pytest.mark.parametrize("package", ["SimpleITK", "itk"])
def test_a_mask_must_lie_where_the_image_does(random, package):
    module = pytest.importorskip(package, reason=package + " is not installed")

    def made(voxels, **given):
        place = {"SetSpacing": SPACING, "SetOrigin": ORIGIN, "SetDirection": DIRECTION, **given}
        image = module.GetImageFromArray(voxels) if package == "SimpleITK" else module.image_from_array(voxels)
        for setter, value in place.items():
            if setter == "SetDirection":
                value = value.ravel() if package == "SimpleITK" else module.matrix_from_array(value)
            getattr(image, setter)(value)
        return image

    voxels = make_image(random, (6, 7, 8), "float32")
    mask = (voxels > 0).astype(np.uint8)
    image = made(voxels)
    expected = np.asarray(chunkwise.mean(voxels, 1, mask=mask))

    def call(image, mask):
        return chunkwise.mean(image, 1, mask=mask)

    def array(result):
        return module.GetArrayFromImage(result) if package == "SimpleITK" else module.array_from_image(result)

    near = tuple(each + 1e-9 for each in ORIGIN)
    for same in (mask, made(mask), made(mask, SetOrigin=near)):
        assert np.array_equal(array(call(image, same)), expected, equal_nan=True)
    assert np.array_equal(call(voxels, made(mask)), expected, equal_nan=True)
    refuses(call, image, made(mask, SetOrigin=(-10.0, 3.0, 8.0)), "origin", ("-10.0, 3.0, 8.0", "-10.0, 3.0, 7.5"))
    refuses(call, image, made(mask, SetSpacing=(0.5, 0.7, 2.5)), "spacing", ("0.5, 0.7, 2.5", "0.5, 0.7, 2.0"))
    refuses(call, image, made(mask, SetDirection=np.eye(3)), "direction", ("1.0, 0.0, 0.0", "0.0, -1.0, 0.0"))
    with pytest.raises(ValueError, match="weight: its origin"):
        chunkwise.mean(image, 1, weight=made(np.ones_like(voxels), SetOrigin=(0.0, 0.0, 0.0)))
    with pytest.raises(ValueError, match="marker: its origin"):
        chunkwise.reconstruct(image, made(voxels, SetOrigin=(0.0, 0.0, 0.0)))


def test_a_mask_must_have_the_coordinates_of_the_image(random):
    xarray = pytest.importorskip("xarray", reason="xarray is not installed")
    voxels = make_image(random, (6, 7), "float32")
    bits = (voxels > 0).astype(np.uint8)
    y, x = np.arange(6) * 2.0 + 1, np.arange(7) * 0.5

    def made(array, y, x, dims=("y", "x")):
        return xarray.DataArray(array, dims=dims, coords={dims[0]: y, dims[1]: x})

    image = made(voxels, y, x)
    expected = chunkwise.mean(voxels, 1, mask=bits)

    def call(image, mask):
        return chunkwise.mean(image, 1, mask=mask)

    for same in (bits, made(bits, y, x), xarray.DataArray(bits, dims=("y", "x"))):
        assert np.array_equal(call(image, same).values, expected, equal_nan=True)
    refuses(call, image, made(bits, y, x + 0.25), "origin", ("0.25", "0.0"))
    refuses(call, image, made(bits, y * 1.5, x), "spacing", ("3.0", "2.0"))
    refuses(call, image, made(bits, y, x[::-1]), "spacing", ("-0.5", "0.5"))
    refuses(call, image, made(bits, y, x, ("x", "y")), "dims", ("'x', 'y'", "'y', 'x'"))
    dask = pytest.importorskip("dask.array")
    lazy = made(dask.from_array(voxels, chunks=3), y, x)
    assert np.array_equal(call(lazy, made(bits, y, x)).values, expected, equal_nan=True)
    refuses(call, lazy, made(dask.from_array(bits, chunks=3), y, x + 0.25), "origin", ("0.25", "0.0"))
