# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""The plug-in without a screen: forms, the preview's bits, lazy layers, runs that are stopped."""
import os
import time

import numpy as np
import pytest

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
pytest.importorskip("napari", reason="napari is not installed (scripts/run_python_tests.sh installs it)")
pytest.importorskip("napari_chunkwise", reason="napari-chunkwise is not installed")

import chunkwise
import dask.array as da
from chunkwise import filters
from chunkwise._table import ROWS
from magicgui.widgets import SpinBox
from napari.components import ViewerModel
from napari.layers import Image
from napari_chunkwise._form import is_advanced
from napari_chunkwise._layers import compute_part, geometry_of
from napari_chunkwise._widget import FilterWidget
from qtpy.QtCore import Qt
from qtpy.QtWidgets import QApplication

SHAPE = (9, 14, 17)


@pytest.fixture(scope="session")
def application():
    return QApplication.instance() or QApplication([])


@pytest.fixture
def viewer(application):
    return ViewerModel()


@pytest.fixture
def random(request):
    return np.random.default_rng(len(request.node.name))


def wait_until(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it took too long"
        QApplication.processEvents()
        time.sleep(0.005)


def run(widget):
    before = list(widget._viewer.layers)
    widget.run()
    wait_until(lambda: widget._job is None)
    made = [each for each in widget._viewer.layers if each not in before]
    assert len(made) == 1, widget.status.value
    return made[0]


def preview_of(widget):
    widget.preview.value = True
    wait_until(lambda: widget._preview_job is None and not widget._soon.isActive())
    return widget._preview_layer


def choose(widget, name, **values):
    widget.filter_choice.value = name
    for key, value in values.items():
        widget._controls[key].value = value


def test_manifest():
    from npe2 import PluginManager, PluginManifest
    manifest = PluginManifest.from_distribution("napari-chunkwise")
    manifest.validate_imports()
    assert manifest.name == "napari-chunkwise" and [
        each.display_name for each in manifest.contributions.widgets] == ["Filters", "Objects"]
    manager = PluginManager()
    manager.register(manifest)
    assert manager.get_command("napari-chunkwise.filters").title == "Boundary-exact filters"
    assert [each.command for each in manager.menus()["napari/layers/filter"]] == ["napari-chunkwise.filters"]
    assert [each.command for each in manager.menus()["napari/layers/measure"]] == ["napari-chunkwise.objects"]


def test_forms_are_the_table(viewer):
    viewer.add_image(np.zeros(SHAPE, "uint8"))
    widget = FilterWidget(viewer)
    names = list(widget.filter_choice.choices)
    assert set(ROWS) == set(names) and len(names) > 20
    for name in names:
        widget.filter_choice.value = name
        row = ROWS[name]
        assert widget.title.value == row.title
        assert f"formulas.md#{row.engine}" in widget.help.value
        assert [each.name for each in widget._inputs] == [each.name for each in row.inputs]
        assert list(widget._controls) == list(row.parameters)
        for parameter in row.parameters.values():
            control = widget._controls[parameter.name]
            assert control.tooltip == parameter.description
            assert control.label[0].isupper() and "_" not in control.label
            assert (control in list(widget.advanced)) == is_advanced(parameter) == (control not in list(widget.form))
            if isinstance(control, SpinBox):
                assert parameter.minimum <= control.min and control.max <= parameter.maximum
        shown = {each.name for each in row.parameters.values() if each.default is None and each.example}
        if not any(each.type in ("kernel", "network") and each.required for each in row.parameters.values()):
            # Untouched controls are the filter with the table's defaults, and its examples if there is none.
            assert set(widget.filter().parameters) <= shown, name


def test_labels_have_units_and_advanced_parameters_are_folded(viewer):
    viewer.add_image(np.zeros(SHAPE, "uint8"))
    widget = FilterWidget(viewer)
    choose(widget, "gaussian")
    labels = {name: control.label for name, control in widget._controls.items()}
    assert (labels["sigma"], labels["cutoff"], labels["mode"]) == ("Sigma (layer's units)", "Cutoff (sigmas)", "Edge of the image")
    widget.show(run=False)
    assert not widget.advanced.visible and not widget._controls["axes"].visible
    widget.show_advanced.value = True
    assert widget.advanced.visible and widget._controls["axes"].visible
    choose(widget, "median")
    assert widget._controls["radius"].label == "Radius (voxels)" and widget.advanced.visible
    choose(widget, "difference")
    assert not widget.show_advanced.visible and not widget.advanced.visible
    widget.close()


def test_what_has_no_effect_cannot_be_set(viewer):
    viewer.add_image(np.zeros(SHAPE, "uint8"))
    widget = FilterWidget(viewer)
    choose(widget, "mean", cval="7")
    assert not widget._controls["cval"].enabled and widget.filter().parameters == {"radius": 1}
    choose(widget, "mean", mode="constant", cval="7")
    assert widget._controls["cval"].enabled and widget.filter().parameters == {"radius": 1, "mode": "constant", "cval": 7}


def test_every_filter_previews_what_it_gives(viewer, random):
    layer = viewer.add_image(random.integers(0, 99, SHAPE).astype("uint16"), name="noise", scale=(3, 1, 2))
    viewer.add_image(np.minimum(layer.data, random.integers(0, 99, SHAPE)).astype("uint16"), name="other")
    viewer.add_image(np.arange(1.0, 28).reshape(3, 3, 3), name="kernel")
    widget = FilterWidget(viewer)
    widget.layer_choice.value = layer
    viewer.dims.set_point(0, 4 * 3.0)
    seen = 0
    for name in widget.filter_choice.choices:
        choose(widget, name)
        if "kernel_images" in widget._controls:
            continue  # a stack of kernels with a grid
        if ROWS[name].parameters.keys() & {"model"}:
            continue  # the file of a network
        for each in (*widget._inputs, *widget._controls.values()):
            if each.name in ("marker", "minus") or name == "divergence" and each in widget._inputs:
                each.value = viewer.layers["other"]
            elif each.name == "kernel_image":
                each.value = viewer.layers["kernel"]
            elif each.name == "sigma" and each.value == "":
                each.value = "1"  # derivatives have none by default
        preview = preview_of(widget)
        if ROWS[name].has_grid:
            assert preview is None and "another grid" in widget.status.value
            continue
        assert preview is not None, (name, widget.status.value)
        data = preview.data
        result = run(widget)
        assert data.shape == (1, *SHAPE[1:]) and data.dtype == result.dtype
        np.testing.assert_array_equal(data, result.data[4:5], err_msg=name)
        assert widget._preview_layer is None and not widget.preview.value
        viewer.layers.remove(result)
        seen += 1
    assert seen > 20


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_previews_of_other_directions(viewer, random, order):
    layer = viewer.add_image(random.random(SHAPE, "float32"), scale=(2, 1, 0.5), translate=(7, -3, 1))
    widget = FilterWidget(viewer)
    viewer.dims.order = order
    expected = chunkwise.gaussian(layer.data, sigma=1.0, spacing=(2, 1, 0.5))
    axis = order[0]
    choose(widget, "gaussian", sigma="1")
    for at in (0, 3, SHAPE[axis] - 1):
        viewer.dims.set_point(axis, layer.data_to_world([at] * 3)[axis])
        preview = preview_of(widget)
        place = tuple(slice(at, at + 1) if a == axis else slice(None) for a in range(3))
        np.testing.assert_array_equal(preview.data, expected[place])
        # It lies where the layer's own slice does.
        corner = [at if a == axis else 0 for a in range(3)]
        np.testing.assert_allclose(preview.data_to_world((0, 0, 0)), layer.data_to_world(corner))
        np.testing.assert_allclose(preview.data_to_world((1, 2, 3)), layer.data_to_world(np.add(corner, (1, 2, 3))))
    viewer.dims.set_point(axis, 1000)
    widget.in_units.value = False
    preview = preview_of(widget)
    np.testing.assert_array_equal(preview.data, chunkwise.gaussian(layer.data, sigma=1.0)[place])


def test_the_result_is_where_the_layer_is(viewer, random):
    affine = np.eye(4)
    affine[0, 1], affine[2, 3] = 0.25, 5
    layer = viewer.add_image(random.random(SHAPE, "float32"), name="cells", scale=(2, 1, 0.5), translate=(7, -3, 1),
                             rotate=(10, 20, 30), shear=(0.1, 0, 0), affine=affine, metadata={"from": "a microscope"},
                             units=("um", "um", "um"), colormap="magma")
    widget = FilterWidget(viewer)
    choose(widget, "median", radius="1")
    result = run(widget)
    np.testing.assert_array_equal(result.data, chunkwise.median(layer.data, radius=1))
    for point in ((0, 0, 0), (3, 4, 5)):
        np.testing.assert_allclose(result.data_to_world(point), layer.data_to_world(point))
    assert result.metadata == {"from": "a microscope", "chunkwise": repr(filters.Median(radius=1))}
    assert result.name == "cells median" and result.units == layer.units and result.colormap.name == "magma"
    part = Image(layer.data[2:, 1:, 3:], **geometry_of(layer, (2, 1, 3)))
    np.testing.assert_allclose(part.data_to_world((1, 1, 1)), layer.data_to_world((3, 2, 4)))
    # The result that is smaller, too.
    viewer.add_image(np.ones((3, 5, 1)), name="kernel")
    widget.layer_choice.value = layer
    choose(widget, "convolve-image", kernel_image=viewer.layers["kernel"], valid=True)
    result = run(widget)
    np.testing.assert_allclose(result.data_to_world((0, 0, 0)), layer.data_to_world((1, 2, 0)))


class Counting:
    """A source that counts the voxels that are read."""

    def __init__(self, array):
        self.array, self.shape, self.dtype, self.ndim, self.read = array, array.shape, array.dtype, array.ndim, 0

    def __getitem__(self, key):
        part = self.array[key]
        self.read += part.size
        return part


@pytest.mark.parametrize("chunks", [(2, 32, 32), (4, 8, 32)])
def test_what_is_lazy_stays_lazy(viewer, random, chunks):
    source = Counting(random.integers(0, 200, (64, 32, 32)).astype("uint8"))
    layer = viewer.add_image(da.from_array(source, chunks=chunks), contrast_limits=(0, 200))
    widget = FilterWidget(viewer)
    viewer.dims.set_point(0, 31)
    choose(widget, "mean", radius="2")
    source.read = 0
    preview = preview_of(widget)
    np.testing.assert_array_equal(preview.data, chunkwise.mean(source.array, radius=2)[31:32])
    assert 0 < source.read <= 12 * 32 * 32
    source.read = 0
    result = run(widget)
    assert isinstance(result.data, da.Array) and result.data.chunks == layer.data.chunks
    # No more than the display shows.
    assert source.read < source.array.size // 2 and tuple(result.contrast_limits) == (0, 200)
    np.testing.assert_array_equal(result.data.compute(), chunkwise.mean(source.array, radius=2))
    widget.layer_choice.value = layer
    choose(widget, "h-maxima", height="20")
    assert preview_of(widget) is None and "whole image" in widget.status.value


def test_zarr_and_pyramids(viewer, random, tmp_path):
    zarr = pytest.importorskip("zarr")
    image = random.random((12, 16, 18), "float32")
    store = zarr.open(str(tmp_path / "in.zarr"), mode="w", shape=image.shape, chunks=(4, 8, 9), dtype="f4")
    store[...] = image
    viewer.add_image(store, contrast_limits=(0, 1))
    widget = FilterWidget(viewer)
    choose(widget, "variance", radius="2")
    result = run(widget)
    assert isinstance(result.data, da.Array)
    np.testing.assert_array_equal(result.data.compute(), chunkwise.variance(image, radius=2))
    layer = viewer.add_image([da.from_array(image, chunks=8), da.from_array(image[::2, ::2, ::2], chunks=8)], multiscale=True)
    widget.layer_choice.value = layer
    np.testing.assert_array_equal(run(widget).data.compute(), chunkwise.variance(image, radius=2))


def test_time_series_and_colours(viewer, random):
    series = random.integers(0, 255, (3, 5, 12, 13)).astype("uint8")
    viewer.add_image(series, scale=(1, 4, 2, 2))
    widget = FilterWidget(viewer)
    viewer.dims.set_point(0, 1)
    choose(widget, "maximum", radius="2")
    at = int(np.round(viewer.dims.point[1] / 4))
    np.testing.assert_array_equal(preview_of(widget).data, chunkwise.maximum(series, radius=2)[1:2, at:at + 1])
    colours = random.integers(0, 255, (20, 21, 3)).astype("uint8")
    widget.layer_choice.value = viewer.add_image(colours, rgb=True)
    result = run(widget)
    assert result.rgb
    np.testing.assert_array_equal(result.data, np.stack([chunkwise.maximum(colours[..., c], radius=2) for c in range(3)], -1))


def test_a_run_can_be_stopped(viewer, random):
    viewer.add_image(random.random((100, 100, 100), "float32"))
    widget = FilterWidget(viewer)
    choose(widget, "nlm", strength="0.5", patch_radius="2", radius="7")
    widget.run()
    assert widget.cancel_button.enabled and not widget.run_button.enabled
    begin = time.monotonic()
    wait_until(lambda: widget.progress.value > 0, 120)
    widget.cancel()
    wait_until(lambda: widget._job is None, 20)
    assert widget.status.value == "stopped" and len(viewer.layers) == 1 and widget.run_button.enabled, begin
    choose(widget, "mean", radius="1")
    assert len(run(widget).data) == 100


def test_a_newer_preview_replaces_an_older_one(viewer, random):
    image = random.random((40, 64, 64), "float32")
    viewer.add_image(image)
    widget = FilterWidget(viewer)
    choose(widget, "median", radius="3")
    widget.preview.value = True
    for at in range(20):
        viewer.dims.set_point(0, at)
        QApplication.processEvents()
        time.sleep(0.01)
    preview = preview_of(widget)
    np.testing.assert_array_equal(preview.data, chunkwise.median(image, radius=3)[19:20])
    assert sum("preview" in each.name for each in viewer.layers) == 1
    widget.preview.value = False
    assert len(viewer.layers) == 1


def test_the_preview_follows_the_layer(viewer, random):
    layer = viewer.add_image(random.integers(0, 99, SHAPE).astype("uint8"), scale=(2, 1, 1))
    widget = FilterWidget(viewer)
    for name, function in (("fill-holes", chunkwise.fill_holes), ("gaussian", None)):
        choose(widget, name)
        for _ in range(3):
            layer.data = random.integers(0, 99, SHAPE).astype("uint8")
            viewer.dims.set_point(0, 2 * 5)
            expected = function(layer.data) if function else chunkwise.gaussian(layer.data, 1.0, spacing=(2, 1, 1))
            np.testing.assert_array_equal(preview_of(widget).data, expected[5:6])
    layer.scale = (4, 1, 1)
    viewer.dims.set_point(0, 4 * 5)
    np.testing.assert_array_equal(preview_of(widget).data, chunkwise.gaussian(layer.data, 1.0, spacing=(4, 1, 1))[5:6])


def test_progress_ends_at_its_end(viewer, random):
    viewer.add_image(random.random(SHAPE, "float32"))
    widget = FilterWidget(viewer)
    choose(widget, "mean", radius="1")
    run(widget)
    assert widget.progress.value == widget.progress.max
    choose(widget, "mean", radius="-1")
    widget.run()
    wait_until(lambda: widget._job is None)
    assert "radius" in widget.status.value and widget.progress.value == 0


def test_a_preview_of_another_form_is_not_left_there(viewer, random):
    viewer.add_image(random.random(SHAPE, "float32"))
    widget = FilterWidget(viewer)
    choose(widget, "mean", radius="1")
    assert preview_of(widget) in viewer.layers
    choose(widget, "mean", radius="one")
    assert preview_of(widget) is None and len(viewer.layers) == 1 and "radius" in widget.status.value
    choose(widget, "mean", radius="2")
    assert preview_of(widget) in viewer.layers and widget.status.value == ""


def test_a_long_message_is_whole(viewer):
    viewer.add_image(np.zeros(SHAPE, "uint8"))
    widget = FilterWidget(viewer)
    text = "a parameter <b> has no such value: " + "many words " * 60
    widget._tell(text)
    label = widget.status.native
    assert label.text() == text and label.wordWrap()
    assert label.textFormat() == Qt.TextFormat.PlainText and label.heightForWidth(320) > 5 * label.fontMetrics().height()


@pytest.mark.parametrize("name, values, text", [
    ("mean", {"radius": "-1"}, "radius"), ("mean", {"radius": "one"}, "radius: 'one' is not a number"),
    ("gaussian", {"sigma": "-1"}, "sigma"), ("h-maxima", {"height": ""}, "height"),
    ("percentile", {"percentile": "101"}, "percentile"), ("mean", {"radius": "1, 1"}, "radius")])
def test_what_is_wrong_is_said(viewer, name, values, text):
    widget = FilterWidget(viewer)
    widget.run()
    assert "layer" in widget.status.value
    viewer.add_image(np.zeros(SHAPE, "uint8"))
    choose(widget, name, **values)
    widget.run()
    wait_until(lambda: widget._job is None)
    assert text in widget.status.value and len(viewer.layers) == 1
    viewer.dims.ndisplay = 3
    choose(widget, "mean", radius="1")
    assert preview_of(widget) is None and "2D" in widget.status.value


def test_parts_are_those_of_the_whole(random):
    image = random.random((11, 12, 13), "float32")
    for f in (filters.Gaussian(sigma=1.5), filters.Sat(), filters.FillHoles(), filters.Wiener(radius=1, noise_variance="auto"),
              filters.Mean(radius=2, mode="wrap")):
        for place in ((slice(0, 11), slice(3, 4), slice(0, 13)), (slice(10, 11), slice(2, 12), slice(0, 5))):
            np.testing.assert_array_equal(compute_part(f, image, (), place), f(image)[place])
