# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""The module's window in a separate Qt, without 3D Slicer: pytest, with CHUNKWISE_PROGRAM naming the program."""
import os
import sys
import types
from pathlib import Path

import pytest

if not os.environ.get("DISPLAY"):
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
pytest.importorskip("PySide6")
from PySide6 import QtCore, QtUiTools, QtWidgets  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parent))
from test_logic import SIZE, read, write, write_labels  # noqa: E402

from ChunkwiseLib import logic, panel  # noqa: E402


class Qt:
    """As Slicer has them: all classes in one place."""

    def __getattr__(self, name):
        return getattr(QtWidgets, name, None) or getattr(QtCore, name)


qt = Qt()


class Host:
    def __init__(self):
        self.shown = []
        self.tables = []

    def extent(self):
        return SIZE

    def visible_region(self, source):
        return logic.region_of_slice(SIZE, 2, 5)

    def show(self, result, is_preview):
        self.shown.append((is_preview, read(result)))

    def show_table(self, file):
        self.tables.append(Path(file).read_text().splitlines())


@pytest.fixture(scope="module")
def application():
    yield QtWidgets.QApplication.instance() or QtWidgets.QApplication([])


@pytest.fixture
def window(application):
    file = QtCore.QFile(str(Path(panel.__file__).parents[1] / "Resources/UI/Chunkwise.ui"))
    file.open(QtCore.QFile.ReadOnly)
    widget = QtUiTools.QUiLoader().load(file)
    ui = types.SimpleNamespace(**{c.objectName(): c for c in widget.findChildren(QtCore.QObject) if c.objectName()})
    window = panel.Panel(qt, ui, logic.Program(), Host())
    window.widget = widget
    return window


def wait(window):
    loop = QtCore.QElapsedTimer()
    loop.start()
    while window.run and loop.elapsed() < 60000:
        QtWidgets.QApplication.processEvents(QtCore.QEventLoop.AllEvents, 50)
    assert window.run is None


def set_images(window, source, result):
    window.ui.sourceEdit.setText(str(source))
    window.ui.resultEdit.setText(str(result))
    window.update_plan()


def select(window, name):
    found = window.ui.filterTree.findItems(name, QtCore.Qt.MatchExactly | QtCore.Qt.MatchRecursive)
    window.ui.filterTree.setCurrentItem(found[0])


def test_all_filters_can_be_chosen_and_have_editors(window):
    assert {"measure", "filter-labels", "fill-label-holes"} < set(window.program.commands)
    for name, filter_ in window.program.commands.items():
        select(window, name)
        assert window.filter.name == name
        assert set(window.editors) == {p.flag for p in filter_.parameters if not p.is_of_machine}
        folded = [p for p in filter_.parameters if p.advanced and not p.is_of_machine]
        assert window.ui.advancedForm.rowCount() == len(folded)
        assert window.ui.parameterForm.rowCount() == len(window.editors) - len(folded)
        assert window.ui.advancedBox.isHidden() == (not folded)
        assert name in logic.OPERATIONS or filter_.page.endswith("#" + name) and filter_.page in window.ui.filterHelp.text()
    window.ui.searchEdit.setText("percentile")
    assert window.ui.filterTree.topLevelItemCount() >= 1
    assert not window.ui.filterTree.findItems("fill-holes", QtCore.Qt.MatchExactly | QtCore.Qt.MatchRecursive)


def test_advanced_parameters_are_folded_until_asked_for(window):
    select(window, "gaussian")
    assert window.editors["axes"].parent() is window.ui.advancedWidget and window.ui.advancedWidget.isHidden()
    window.ui.advancedBox.setChecked(True)
    assert not window.ui.advancedWidget.isHidden() and window.editors["axes"].isEnabled()


def test_apply_and_preview(window, tmp_path):
    source, result = write(tmp_path / "in.mha"), tmp_path / "out.mha"
    select(window, "median")
    window.editors["radius"].setText("2")
    window.editors["radius"].editingFinished.emit()
    window.editors["boundary"].setCurrentText("mirror")
    set_images(window, source, result)
    assert "--radius 2" in window.ui.commandEdit.text() and "mirror" in window.ui.commandEdit.text()
    assert window.ui.commandEdit.cursorPosition() == 0  # the command is shown from its beginning
    assert "division" in window.ui.planLabel.text()
    window.ui.applyButton.click()
    assert not window.ui.applyButton.isEnabled() and window.ui.cancelButton.isEnabled()
    wait(window)
    assert window.ui.statusLabel.text() == "done" and window.ui.applyButton.isEnabled()
    window.ui.previewButton.click()
    wait(window)
    (is_first, (size, _, values)), (is_second, (part_size, _, part)) = window.host.shown
    assert (is_first, is_second) == (False, True)
    assert part_size == [SIZE[0], SIZE[1], 1]
    plane = SIZE[0] * SIZE[1]
    assert list(part) == list(values[5 * plane:6 * plane])


def test_stores_of_zarr_are_read_written_and_shown(window, tmp_path):
    source, store = write(tmp_path / "in.mha"), tmp_path / "out.ome.zarr"
    select(window, "identity")
    set_images(window, source, store)
    window.ui.applyButton.click()
    wait(window)
    assert window.ui.statusLabel.text() == "done" and logic.is_store(store)
    set_images(window, store, tmp_path / "again.ome.zarr")
    window.ui.showButton.click()
    wait(window)
    window.ui.previewButton.click()
    wait(window)
    (size, _, values) = read(source)
    plane = SIZE[0] * SIZE[1]
    assert [(is_preview, shown[0], list(shown[2])) for is_preview, shown in window.host.shown] == [
        (False, size, list(values)), (False, size, list(values)), (True, [*SIZE[:2], 1], list(values[5 * plane:6 * plane]))]
    window.MOST_BYTES_SHOWN = 100
    window.ui.showButton.click()
    assert "no level" in window.ui.statusLabel.text() and window.run is None


def test_errors_are_red_and_told(window, tmp_path):
    select(window, "median")
    set_images(window, write(tmp_path / "in.mha"), tmp_path / "out.mha")
    assert window.ui.planLabel.styleSheet() == ""
    window.editors["radius"].setText("-1")
    window.editors["radius"].editingFinished.emit()
    assert "red" in window.ui.planLabel.styleSheet() and "--radius" in window.ui.planLabel.text()
    window.ui.applyButton.click()
    wait(window)
    assert "--radius" in window.ui.statusLabel.text()
    assert window.host.shown == []


def test_sequences_are_saved_loaded_and_run(window, tmp_path):
    for name in ("gaussian", "range"):
        select(window, name)
        window.ui.addStepButton.click()
    assert window.ui.stepList.count() == 2
    set_images(window, write(tmp_path / "in.mha"), tmp_path / "out.mha")
    assert "sequence" in window.ui.commandEdit.text()
    window.save_steps(tmp_path / "steps.json")
    window.ui.stepList.setCurrentRow(0)
    window.ui.removeStepButton.click()
    assert window.ui.stepList.count() == 1
    window.load_steps(tmp_path / "steps.json")
    assert window.ui.stepList.count() == 2
    window.ui.applyButton.click()
    wait(window)
    assert window.host.shown


def test_cancel_and_batch_and_machine(window, tmp_path):
    select(window, "nlm")
    set_images(window, write(tmp_path / "large.mha", (90, 90, 90)), tmp_path / "out.mha")
    window.editors["radius"].setText("9")
    window.editors["radius"].editingFinished.emit()
    window.ui.deviceBox.setCurrentIndex(1)
    assert window.machine()["backend"] == "cpu"
    window.ui.memorySlider.setValue(25)
    assert window.machine()["memory"] == logic.memory_text(window.devices["cpu"]["memoryAvailable"] * 25 // 100)
    window.ui.applyButton.click()
    window.ui.cancelButton.click()
    wait(window)
    assert window.ui.statusLabel.text() == "cancelled"
    for i in (1, 2):
        write(tmp_path / f"b{i}.mha", seed=i)
    select(window, "median")
    set_images(window, tmp_path / "b*.mha", tmp_path / "done" / "{stem}.mha")
    window.ui.applyButton.click()
    wait(window)
    assert sorted(p.name for p in (tmp_path / "done").glob("*.mha")) == ["b1.mha", "b2.mha"]


def test_labels_are_measured_and_filtered(window, tmp_path):
    labels, table = write_labels(tmp_path / "l.mha"), tmp_path / "t.csv"
    select(window, "measure")
    window.editors["columns"].setText("label,num_pixels")
    window.editors["columns"].editingFinished.emit()
    set_images(window, labels, tmp_path / "t.mha")
    assert "is a table" in window.ui.planLabel.text() and "red" in window.ui.planLabel.styleSheet()
    set_images(window, labels, table)
    assert "1 division" in window.ui.planLabel.text() and window.ui.planLabel.styleSheet() == ""
    window.ui.addStepButton.click()
    assert window.ui.stepList.count() == 0 and "no step of a sequence" in window.ui.statusLabel.text()
    window.ui.previewButton.click()
    assert "no preview" in window.ui.statusLabel.text() and window.run is None
    window.ui.applyButton.click()
    assert window.ui.progressBar.maximum() == 0
    wait(window)
    assert window.host.tables == [["label,num_pixels", "3,3", "7,26"]] and window.host.shown == []
    assert window.ui.statusLabel.text() == "done" and window.ui.progressBar.value() == window.ui.progressBar.maximum() == 100
    select(window, "filter-labels")
    window.editors["min-size"].setText("4")
    window.editors["min-size"].editingFinished.emit()
    window.editors["relabel"].setChecked(True)
    set_images(window, labels, tmp_path / "o.mha")
    window.ui.applyButton.click()
    wait(window)
    assert sorted(window.host.shown[-1][1][2]) == [0] * (336 - 26) + [1] * 26
    select(window, "fill-label-holes")
    assert window.ui.planLabel.text() == "" and window.ui.commandEdit.text().startswith("chunkwise fill-label-holes")
    window.ui.applyButton.click()
    wait(window)
    assert sorted(window.host.shown[-1][1][2]) == [0] * (336 - 30) + [3] * 3 + [7] * 27


def test_a_measurement_is_cancelled(window, tmp_path):
    select(window, "measure")
    set_images(window, write_labels(tmp_path / "l.mha", 20), tmp_path / "t.csv")
    window.ui.applyButton.click()
    window.ui.cancelButton.click()
    wait(window)
    assert window.ui.statusLabel.text() == "cancelled" and window.host.tables == []
    assert os.listdir(tmp_path) == ["l.mha"]
