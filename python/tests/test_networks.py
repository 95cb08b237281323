# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Networks from torch to a store of segments, as docs/howto/segment.md has it: MONAI's BasicUNet and nnU-Net's PlainConvUNet with
random weights. Skips itself without torch, onnxscript, monai and dynamic-network-architectures."""
import numpy as np
import pytest

import chunkwise

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("onnxscript", reason="onnxscript, with which torch writes ONNX files, is not installed")

WINDOW = 32
CLASSES = 3


def basic_unet():
    nets = pytest.importorskip("monai.networks.nets", reason="monai is not installed")
    return nets.BasicUNet(spatial_dims=3, in_channels=1, out_channels=CLASSES, features=(4, 4, 8, 8, 16, 4))


def plain_conv_unet():
    unet = pytest.importorskip("dynamic_network_architectures.architectures.unet",
                               reason="dynamic-network-architectures is not installed")
    return unet.PlainConvUNet(
        input_channels=1, n_stages=3, features_per_stage=(4, 8, 8), conv_op=torch.nn.Conv3d, kernel_sizes=3, strides=(1, 2, 2),
        n_conv_per_stage=1, num_classes=CLASSES, n_conv_per_stage_decoder=1, conv_bias=True, norm_op=torch.nn.InstanceNorm3d,
        norm_op_kwargs={"eps": 1e-5, "affine": True}, nonlin=torch.nn.LeakyReLU, nonlin_kwargs={"inplace": True})


class Probabilities(torch.nn.Module):
    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, x):
        return torch.softmax(self.network(x), 1)


def export(network, path):
    torch.onnx.export(network, (torch.zeros(1, 1, WINDOW, WINDOW, WINDOW),), str(path), dynamo=True)
    return path


def in_windows(network, image, overlap):
    """The mean of all windows of an image whose extents the windows fill."""
    step = int(WINDOW * (1 - overlap))
    total, weights = np.zeros((CLASSES, *image.shape)), np.zeros(image.shape)
    for corner in np.ndindex(*((n - WINDOW) // step + 1 for n in image.shape)):
        place = tuple(slice(step * each, step * each + WINDOW) for each in corner)
        with torch.inference_mode():
            total[(slice(None), *place)] += network(torch.from_numpy(image[place].copy())[None, None])[0].numpy()
        weights[place] += 1
    return total / weights


@pytest.fixture(scope="module", params=[basic_unet, plain_conv_unet], ids=["BasicUNet", "PlainConvUNet"])
def trained(request, tmp_path_factory):
    torch.manual_seed(1)
    network = request.param().eval()
    folder = tmp_path_factory.mktemp("model")
    image = np.random.default_rng(2).normal(size=(48, 32, 64)).astype("float32")
    return network, export(network, folder / "model.onnx"), image


OPTIONS = {"inference_mode": "patches", "patch_size": WINDOW, "overlap": 0.5}


def test_every_channel_is_what_torch_computes_in_windows(trained):
    network, model, image = trained
    expected = in_windows(network, image, 0.5)
    result = chunkwise.network(image, model, output_components=True, **OPTIONS)
    assert result.shape == (*image.shape, CLASSES)
    assert np.abs(np.moveaxis(result, -1, 0) - expected).max() <= 1e-5 * np.abs(expected).max()
    # Rounding decides between classes that are nearly equal.
    first, second = np.sort(expected, axis=0)[:-3:-1]
    clear = first - second > 1e-4 * np.abs(expected).max()
    classes = chunkwise.network(image, model, output_mode="argmax", output="uint8", **OPTIONS)
    assert clear.mean() > 0.9
    assert np.array_equal(classes[clear], expected.argmax(0)[clear])


def test_probabilities(trained, tmp_path):
    network, _, image = trained
    model = export(Probabilities(network), tmp_path / "probabilities.onnx")
    part = np.ascontiguousarray(image[:WINDOW, :WINDOW, :WINDOW])
    found = chunkwise.network(part, model, output_components=True, inference_mode="patches", patch_size=WINDOW)
    with torch.inference_mode():
        expected = Probabilities(network)(torch.from_numpy(part)[None, None])[0].numpy()
    assert np.abs(np.moveaxis(found, -1, 0) - expected).max() <= 1e-5
    assert np.abs(found.sum(-1) - 1).max() <= 1e-5


def test_a_store_larger_than_its_memory_is_segmented(trained, tmp_path):
    zarr = pytest.importorskip("zarr")
    da = pytest.importorskip("dask.array")
    _, model, image = trained
    segment = chunkwise.filters.Network(model, output_mode="argmax", precision="reproducible", **OPTIONS)
    expected = segment(image, output="uint8")
    store = zarr.create_array(tmp_path / "in.zarr", shape=image.shape, chunks=(16, 16, 16), dtype="float32")
    store[:] = image
    told = []
    report = chunkwise.zarr.run(segment, tmp_path / "in.zarr", tmp_path / "out.zarr", memory="200M",
                                dtype="uint8", progress=told.append)
    assert np.array_equal(zarr.open(tmp_path / "out.zarr")[:], expected) and report.blocks >= 1
    assert told == sorted(told) and told[-1] == 1
    assert np.array_equal(segment(da.from_array(image, chunks=(24, 32, 32)), output="uint8").compute(), expected)
    assert np.array_equal(segment(torch.from_numpy(image), output="uint8").numpy(), expected)
