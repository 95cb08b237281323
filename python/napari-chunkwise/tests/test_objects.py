# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Objects of labels layers in the plug-in: tables, files, operations, lazy layers, runs that are stopped."""
import os
import time

import numpy as np
import pytest

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
pytest.importorskip("napari", reason="napari is not installed (scripts/run_python_tests.sh installs it)")
pytest.importorskip("napari_chunkwise", reason="napari-chunkwise is not installed")

import chunkwise
import dask.array as da
from napari.components import ViewerModel
from napari_chunkwise._objects import ObjectsWidget, all_columns
from qtpy.QtWidgets import QApplication

SCALE = (2.0, 0.5, 0.25)


@pytest.fixture
def viewer():
    application = QApplication.instance() or QApplication([])
    yield ViewerModel()
    application.processEvents()


@pytest.fixture(scope="module")
def labels():
    random = np.random.default_rng(4)
    found = chunkwise.label((random.random((12, 20, 23)) < 0.2).astype("uint8")).astype("uint16")
    found[3:8, 4:12, 4:12] = 0
    found[3:8, 4:12, 4:12] = 900
    found[5, 7:9, 7:9] = 0
    return found


def finish(widget, seconds=60):
    end = time.monotonic() + seconds
    while widget._job is not None:
        assert time.monotonic() < end, "it took too long"
        QApplication.processEvents()
        time.sleep(0.005)


def run(widget, **values):
    for name, value in values.items():
        getattr(widget, name).value = value
    widget.run()
    finish(widget)


def assert_features(layer, table):
    features = layer.features
    assert list(features) == ["index", *table]
    for name, column in table.items():
        np.testing.assert_array_equal(features[name], column)
    np.testing.assert_array_equal(features["index"], table["label"])


@pytest.mark.parametrize("lazy", [False, True])
def test_features_are_the_table(viewer, labels, lazy):
    image = np.random.default_rng(1).random(labels.shape, "float32")
    wrap = (lambda each: da.from_array(each, chunks=(5, 20, 9))) if lazy else (lambda each: each)
    viewer.add_image(wrap(image), name="stain")
    layer = viewer.add_labels(wrap(labels), scale=SCALE)
    widget = ObjectsWidget(viewer)
    assert widget.layer_choice.value is layer and widget.image_choice.value is None
    run(widget)
    assert_features(layer, chunkwise.measure(labels, spacing=SCALE, columns=all_columns(False)))
    run(widget, in_units=False, image_choice=viewer.layers["stain"])
    assert_features(layer, chunkwise.measure(labels, image, columns=all_columns(True)))
    assert {"intensity_mean", "area"} <= set(layer.features)
    run(widget, all_columns=False, in_units=True)
    assert_features(layer, chunkwise.measure(labels, image, spacing=SCALE))
    assert widget.progress.value == widget.progress.max and len(viewer.layers) == 2
    # The row of a label is the one that napari shows under the cursor.
    area = layer.features.set_index("index")["num_pixels"][900]
    assert area == np.count_nonzero(labels == 900)
    viewer.dims.set_point(0, 2 * 4)
    shown = layer._get_properties((2 * 4, 0.5 * 5, 0.25 * 5), dims_displayed=[1, 2], world=True)
    assert "label: 900" in shown


def test_a_table_is_saved_and_no_file_is_lost(viewer, labels, tmp_path):
    layer = viewer.add_labels(labels)
    widget = ObjectsWidget(viewer)
    path, other = tmp_path / "table.csv", tmp_path / "other.csv"
    run(widget, file=path)
    table = chunkwise.measure(labels, columns=all_columns(False))
    chunkwise.write_table(table, other)
    assert path.read_bytes() == other.read_bytes() and str(path) in widget.status.value
    path.write_text("mine")
    layer.features = {}
    run(widget)
    assert path.read_text() == "mine" and "Replace the file" in widget.status.value and not len(layer.features.columns)
    run(widget, replace=True)
    assert path.read_bytes() == other.read_bytes()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["other.csv", "table.csv"]
    for wrong, text in ((tmp_path / "table.xls", "none of .csv"), (tmp_path / "none" / "table.csv", "no folder")):
        run(widget, file=wrong)
        assert text in widget.status.value and not wrong.exists()


@pytest.mark.parametrize("kind", ["numpy", "dask", "zarr"])
def test_results_are_those_of_the_functions(viewer, labels, kind):
    data = labels
    if kind == "dask":
        data = da.from_array(labels, chunks=(5, 20, 9))
    elif kind == "zarr":
        data = pytest.importorskip("zarr").array(labels, chunks=(5, 20, 9))
    layer = viewer.add_labels(data, name="cells", scale=SCALE, translate=(1, 2, 3), metadata={"mine": 1})
    widget = ObjectsWidget(viewer)
    for values, options in (
            ({"min_size": "3", "max_size": "300"}, {"min_size": 3, "max_size": 300}),
            ({"min_size": "", "max_size": "", "where": "area > 0.5, num_pixels<300"}, {"where": ["area > 0.5", "num_pixels<300"]}),
            ({"where": "", "remove_border": True, "keep_largest": "5", "relabel": True},
             {"remove_border": True, "keep_largest": 5, "relabel": True})):
        run(widget, layer_choice=layer, action="Keep objects", **values)
        made = viewer.layers[-1]
        expected = chunkwise.filter_labels(labels, spacing=SCALE, **options)
        assert 0 < np.count_nonzero(expected) < np.count_nonzero(labels)
        assert made.data.dtype == labels.dtype and isinstance(made.data, np.ndarray) == (kind == "numpy")
        np.testing.assert_array_equal(np.asarray(made.data), expected)
    run(widget, layer_choice=layer, action="Fill holes")
    made = viewer.layers[-1]
    expected = chunkwise.fill_label_holes(labels)
    assert np.count_nonzero(expected == 900) > np.count_nonzero(labels == 900)
    np.testing.assert_array_equal(np.asarray(made.data), expected)
    assert made.name == "cells fill holes" and made.metadata["mine"] == 1 and len(viewer.layers) == 5
    np.testing.assert_array_equal(made.scale, SCALE)
    np.testing.assert_array_equal(made.translate, (1, 2, 3))


def test_of_a_pyramid_the_finest_level_counts(viewer, labels):
    layer = viewer.add_labels([labels, labels[::2, ::2, ::2]], multiscale=True)
    widget = ObjectsWidget(viewer)
    run(widget)
    assert_features(layer, chunkwise.measure(labels, columns=all_columns(False)))


def test_planes_are_measured(viewer, labels):
    layer = viewer.add_labels(labels[4], scale=(0.5, 3))
    run(ObjectsWidget(viewer))
    assert_features(layer, chunkwise.measure(labels[4], spacing=(0.5, 3), columns=all_columns(False)))


@pytest.mark.parametrize("action", ["Measure", "Keep objects"])
def test_a_run_can_be_stopped(viewer, tmp_path, action):
    data = da.ones((400, 8, 8), chunks=(1, 8, 8), dtype="uint8").map_blocks(lambda each: (time.sleep(0.02), each)[1], dtype="uint8")
    layer = viewer.add_labels(data[:, :1])
    widget = ObjectsWidget(viewer)
    widget.action.value, widget.file.value = action, tmp_path / "table.csv"
    widget.run()
    assert widget.cancel_button.enabled and not widget.run_button.enabled
    widget.cancel()
    finish(widget)
    assert widget.status.value == "stopped" and widget.run_button.enabled and not widget.cancel_button.enabled
    assert len(viewer.layers) == 1 and not len(layer.features.columns) and not list(tmp_path.iterdir())


def test_a_run_that_is_stopped_or_overtaken_writes_no_file(viewer, labels, tmp_path, monkeypatch):
    layer = viewer.add_labels(labels)
    widget = ObjectsWidget(viewer)
    path, measure = tmp_path / "table.csv", chunkwise.measure
    widget.file.value = path

    def with_last(act):
        def run(*arrays, **options):
            found = measure(*arrays, **options)
            act()
            return found
        return run

    monkeypatch.setattr(chunkwise, "measure", with_last(widget.cancel))
    run(widget)
    assert widget.status.value == "stopped" and not list(tmp_path.iterdir())
    # Another program makes the file meanwhile.
    monkeypatch.setattr(chunkwise, "measure", with_last(lambda: path.write_text("mine")))
    run(widget)
    assert "exists" in widget.status.value and path.read_text() == "mine" and list(tmp_path.iterdir()) == [path]
    assert not len(layer.features.columns)


@pytest.mark.parametrize("values, text", [
    ({"action": "Keep objects", "min_size": "two"}, "minimum size: 'two' is not a whole number"),
    ({"action": "Keep objects", "min_size": "-1"}, "min_size"), ({"action": "Keep objects", "keep_largest": "0"}, "keep_largest"),
    ({"action": "Keep objects", "where": "<b> large"}, "where")])
def test_what_is_wrong_is_said(viewer, labels, values, text):
    widget = ObjectsWidget(viewer)
    widget.run()
    assert "there is no layer of labels" in widget.status.value
    viewer.add_labels(labels)
    run(widget, **values)
    assert text in widget.status.value and len(viewer.layers) == 1 and widget.run_button.enabled and widget.progress.value == 0


def test_intensities_of_another_shape_or_of_colours_are_refused(viewer, labels):
    layer = viewer.add_labels(labels)
    colours = viewer.add_image(np.zeros((*labels.shape, 3), "uint8"), rgb=True)
    other = viewer.add_image(np.zeros((3, 4, 5), "uint8"))
    widget = ObjectsWidget(viewer)
    for image, text in ((colours, "colour"), (other, "shape")):
        run(widget, image_choice=image)
        assert text in widget.status.value and not len(layer.features.columns)
