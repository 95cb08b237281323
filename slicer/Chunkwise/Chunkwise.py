# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""The module Chunkwise of 3D Slicer: what needs Slicer itself. All else is in ChunkwiseLib."""
import os
import tempfile

import ctk
import numpy
import qt
import slicer
import vtk
from slicer.ScriptedLoadableModule import (
    ScriptedLoadableModule, ScriptedLoadableModuleTest, ScriptedLoadableModuleWidget)

from ChunkwiseLib import logic, panel

SETTING = "Chunkwise/Program"
PAGE = "https://github.com/chunkwise/chunkwise/blob/main/slicer/README.md"


class Chunkwise(ScriptedLoadableModule):
    def __init__(self, parent):
        super().__init__(parent)
        parent.title = "Chunkwise"
        parent.categories = ["Filtering"]
        parent.contributors = ["The Chunkwise Contributors"]
        parent.helpText = (
            "Image filters that are exact at the image's edge, for volumes of any size. The preview of a slice is exactly "
            "that part of the result. Radii are along the axes of the voxels' indices. "
            f'<a href="{PAGE}">How to use this module</a>')
        parent.acknowledgementText = (
            "The method of heaps of morphological reconstruction is covered by US patent 10,095,556; see the extension's README.")


class SceneHost:
    """The window's sources of images: volumes of the scene by name, or files that are never loaded."""

    def __init__(self, ui):
        self.ui = ui

    def volume(self):
        """The volume that the slice views show; None if there is none."""
        node_id = slicer.app.layoutManager().sliceWidget("Red").sliceLogic().GetSliceCompositeNode().GetBackgroundVolumeID()
        return slicer.mrmlScene.GetNodeByID(node_id) if node_id else None

    def export(self, volume):
        """A volume as a file that can be read in pieces: MetaImage, not compressed."""
        file = os.path.join(slicer.app.temporaryPath, f"chunkwise-{os.getpid()}-{volume.GetID()}.mha")
        slicer.util.exportNode(volume, file, {"useCompression": 0})
        return file

    def extent(self):
        return list(self.volume().GetImageData().GetDimensions())

    def visible_region(self, source):
        """The region of the ROI if one is shown, else of the slice in the red view."""
        volume = self.volume()
        if not volume:
            raise logic.ChunkwiseError("a preview needs a volume in the slice views")
        extent = self.extent()
        to_voxels = vtk.vtkMatrix4x4()
        volume.GetRASToIJKMatrix(to_voxels)
        for roi in slicer.util.getNodesByClass("vtkMRMLMarkupsROINode"):
            if roi.GetDisplayVisibility():
                bounds = [0.0] * 6
                roi.GetRASBounds(bounds)
                corners = numpy.array([to_voxels.MultiplyPoint((bounds[i], bounds[2 + j], bounds[4 + k], 1))[:3]
                                       for i in (0, 1) for j in (0, 1) for k in (0, 1)])
                return logic.region_of_bounds(extent, corners.min(0), corners.max(0))
        slice_to_ras = slicer.app.layoutManager().sliceWidget("Red").sliceLogic().GetSliceNode().GetSliceToRAS()
        normal = to_voxels.MultiplyPoint([slice_to_ras.GetElement(i, 2) for i in range(3)] + [0])[:3]
        origin = to_voxels.MultiplyPoint([slice_to_ras.GetElement(i, 3) for i in range(3)] + [1])[:3]
        axis = int(numpy.argmax(numpy.abs(normal)))
        return logic.region_of_slice(extent, axis, int(round(origin[axis])))

    def show(self, result, is_preview):
        volume = slicer.util.loadVolume(result, {"name": "Chunkwise preview" if is_preview else "Chunkwise result", "show": False})
        slicer.util.setSliceViewerLayers(foreground=volume, foregroundOpacity=1.0 if is_preview else 0.5)

    def show_table(self, file):
        """A table node, beside the slices."""
        table = slicer.util.loadTable(file)
        layout = slicer.app.layoutManager()
        layout.setLayout(slicer.modules.tables.logic().GetLayoutWithTable(layout.layout))
        selection = slicer.app.applicationLogic().GetSelectionNode()
        selection.SetActiveTableID(table.GetID())
        slicer.app.applicationLogic().PropagateTableSelection()


class ChunkwiseWidget(ScriptedLoadableModuleWidget):
    def setup(self):
        super().setup()
        try:
            program = logic.Program(slicer.app.settings().value(SETTING) or None)
        except logic.ChunkwiseError as error:
            self._ask_for_program(str(error))
            return
        widget = slicer.util.loadUI(self.resourcePath("UI/Chunkwise.ui"))
        self.layout.addWidget(widget)
        ui = slicer.util.childWidgetVariables(widget)
        ui.parameterForm = ui.parameterBox.layout()
        ui.advancedForm = ui.advancedWidget.layout()
        host = SceneHost(ui)
        self.panel = panel.Panel(qt, ui, program, host)
        take = qt.QPushButton("Take the visible volume")
        take.toolTip = "Writes it to a file; volumes that are files already need not be loaded"
        take.connect("clicked()", self._take)
        widget.layout().insertWidget(widget.layout().indexOf(ui.imageBox), take)
        self.host = host

    def _take(self):
        volume = self.host.volume()
        if volume:
            self.panel.ui.sourceEdit.setText(self.host.export(volume))
            if not self.panel.ui.resultEdit.text:
                self.panel.ui.resultEdit.setText(os.path.join(tempfile.gettempdir(), volume.GetName() + "-chunkwise.mha"))
            self.panel.update_plan()

    def _ask_for_program(self, why):
        self.layout.addWidget(qt.QLabel(why))
        chooser = ctk.ctkPathLineEdit()
        chooser.filters = ctk.ctkPathLineEdit.Files
        chooser.connect("currentPathChanged(QString)", lambda path: slicer.app.settings().setValue(SETTING, path))
        self.layout.addWidget(chooser)
        self.layout.addWidget(qt.QLabel("Reload the module, or restart Slicer, afterwards."))
        self.layout.addStretch(1)


class ChunkwiseTest(ScriptedLoadableModuleTest):
    """In Slicer itself: that a preview is what the result has there."""

    def runTest(self):
        slicer.mrmlScene.Clear()
        volume = slicer.mrmlScene.AddNewNodeByClass("vtkMRMLScalarVolumeNode")
        voxels = numpy.random.default_rng(1).integers(0, 1000, (12, 13, 14)).astype(numpy.int16)
        slicer.util.updateVolumeFromArray(volume, voxels)
        slicer.util.setSliceViewerLayers(background=volume, fit=True)
        host = SceneHost(None)
        program = logic.Program(slicer.app.settings().value(SETTING) or None)
        source = host.export(volume)
        region = host.visible_region(source)
        with tempfile.TemporaryDirectory() as folder:
            arrays = []
            for name, part in (("whole", None), ("part", region)):
                file = os.path.join(folder, name + ".mha")
                program.start(logic.Job([("median", {"radius": "2"})], source, file, region=part)).wait()
                arrays.append(slicer.util.arrayFromVolume(slicer.util.loadVolume(file)))
        x, y, z, nx, ny, nz = region
        assert numpy.array_equal(arrays[1], arrays[0][z:z + nz, y:y + ny, x:x + nx])
        self.delayDisplay("The preview is that part of the result")
