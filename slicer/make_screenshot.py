#!/usr/bin/env python3
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Makes the picture of the README, without 3D Slicer's application: the module's window in PySide6, and slices of a volume and of the
result by Slicer's own libraries. The volume is the head ch2 of Debian's mricron-data. CHUNKWISE_PROGRAM names the program. Needs the
packages of test/slicer/requirements.txt: make_screenshot.py [FILE]"""
import os
import subprocess
import sys
import tempfile
import types
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "Chunkwise"))

import slicer  # noqa: E402
from ChunkwiseLib import logic, panel  # noqa: E402
from PySide6 import QtCore, QtGui, QtUiTools, QtWidgets  # noqa: E402
from vtk.util.numpy_support import vtk_to_numpy  # noqa: E402

HEAD = "/usr/share/mricron/templates/ch2.nii.gz"
SLICE_WIDTH, SLICE_HEIGHT, SLICE_OFFSET = 420, 515, 20


class Views:
    """A scene of Slicer's, and the view of an axial slice of a volume."""

    def __init__(self):
        self.scene = slicer.vtkMRMLScene()
        self.application = slicer.vtkSlicerApplicationLogic()
        self.application.SetMRMLScene(self.scene)
        self.gray = slicer.vtkMRMLColorTableNode()
        self.gray.SetTypeToGrey()
        self.scene.AddNode(self.gray)
        self.logic = slicer.vtkMRMLSliceLogic()
        self.logic.SetMRMLScene(self.scene)
        self.logic.AddSliceNode("Red")

    def draw(self, file):
        """The slice of a file as a picture."""
        volume, storage, display = (each() for each in (
            slicer.vtkMRMLScalarVolumeNode, slicer.vtkMRMLVolumeArchetypeStorageNode, slicer.vtkMRMLScalarVolumeDisplayNode))
        for node in (volume, storage, display):
            self.scene.AddNode(node)
        storage.SetFileName(file)
        assert storage.ReadData(volume), file
        display.SetAndObserveColorNodeID(self.gray.GetID())
        volume.SetAndObserveDisplayNodeID(display.GetID())
        self.logic.GetSliceNode().SetDimensions(SLICE_WIDTH, SLICE_HEIGHT, 1)
        self.logic.GetSliceCompositeNode().SetBackgroundVolumeID(volume.GetID())
        self.logic.FitSliceToBackground()
        self.logic.SetSliceOffset(SLICE_OFFSET)
        port = self.logic.GetImageDataConnection()
        port.GetProducer().Update()
        image = port.GetProducer().GetOutputDataObject(port.GetIndex())
        voxels = vtk_to_numpy(image.GetPointData().GetScalars()).reshape(SLICE_HEIGHT, SLICE_WIDTH, 4)[::-1, :, :3].copy()
        picture = QtGui.QImage(voxels.data, SLICE_WIDTH, SLICE_HEIGHT, 3 * SLICE_WIDTH, QtGui.QImage.Format_RGB888)
        return QtGui.QPixmap.fromImage(picture.copy())


class Qt:
    """Qt's classes in one place, as Slicer has them."""

    def __getattr__(self, name):
        return getattr(QtWidgets, name, None) or getattr(QtCore, name)


class Host:
    """Stands in for the part of Slicer that shows results."""

    result = None

    def show(self, result, is_preview):
        self.result = result


def make_window(host, program):
    file = QtCore.QFile(str(HERE / "Chunkwise/Resources/UI/Chunkwise.ui"))
    file.open(QtCore.QFile.ReadOnly)
    widget = QtUiTools.QUiLoader().load(file)
    ui = types.SimpleNamespace(**{each.objectName(): each for each in widget.findChildren(QtCore.QObject) if each.objectName()})
    return widget, panel.Panel(Qt(), ui, program, host)


def main():
    application = QtWidgets.QApplication([])
    host, views, program = Host(), Views(), logic.Program()
    widget, window = make_window(host, program)
    with tempfile.TemporaryDirectory() as folder:
        # Short names, as the window shows them.
        os.chdir(folder)
        subprocess.run([os.environ["CHUNKWISE_PROGRAM"], "identity", HEAD, "head.mha", "--quiet"], check=True)
        window.ui.searchEdit.setText("gradient")
        window.choose("gradient", {"sigma": "1.5"})
        window.ui.sourceEdit.setText("head.mha")
        window.ui.resultEdit.setText("edges.mha")
        window.update_plan()
        window.apply()
        while window.run is not None:
            application.processEvents()
        assert host.result, window.ui.statusLabel.text()
        pictures = [views.draw(each) for each in ("head.mha", host.result)]
    whole = QtWidgets.QWidget()
    layout = QtWidgets.QHBoxLayout(whole)
    layout.setContentsMargins(0, 0, 0, 0)
    layout.addWidget(widget)
    slices = QtWidgets.QVBoxLayout()
    for picture in pictures:
        label = QtWidgets.QLabel()
        label.setPixmap(picture)
        slices.addWidget(label)
    layout.addLayout(slices)
    whole.resize(500 + SLICE_WIDTH, 2 * SLICE_HEIGHT)
    assert whole.grab().save(sys.argv[1] if len(sys.argv) > 1 else str(HERE / "screenshot.png"))


if __name__ == "__main__":
    main()
