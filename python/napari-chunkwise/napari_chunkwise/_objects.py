# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""The widget for the objects of a labels layer: a table of measures, and operations on labels."""
from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import chunkwise
from chunkwise import _core
from magicgui.types import FileDialogMode
from magicgui.widgets import CheckBox, ComboBox, Container, FileEdit, LineEdit
from napari.layers import Image, Labels

from ._jobs import RunWidget
from ._layers import data_of, geometry_of, is_lazy

Progress = Callable[[float], None]
_ACTIONS = ("Measure", "Keep objects", "Fill holes")


def all_columns(has_intensity: bool) -> list[str]:
    """All that `chunkwise.measure` can find."""
    return [name for name, _, needs, _ in _core.measured_properties() if has_intensity or not needs]


def features_of(table: dict[str, Any]) -> dict[str, Any]:
    """A table as napari joins it with labels: its column "index" has each row's label."""
    return {"index": table["label"], **table}


def check_file(path: Path, replace: bool) -> None:
    """A ParameterError says why a table is not written there."""
    if path.suffix.lower() not in (".csv", ".json"):
        raise chunkwise.ParameterError(f"file: {path.name!r} ends with none of .csv, .json")
    if not path.parent.is_dir():
        raise chunkwise.ParameterError(f"file: there is no folder {path.parent}")
    if path.exists() and not replace:
        raise chunkwise.ParameterError(f'file: {path} exists; "Replace the file" writes over it')


def save(table: dict[str, Any], path: Path, replace: bool) -> None:
    """Writes a whole table or nothing; a file that is there stays, unless it is to be replaced."""
    check_file(path, replace)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        written = Path(folder) / path.name
        chunkwise.write_table(table, written)
        if not replace:
            # Nobody else has made it since the check.
            path.touch(exist_ok=False)
        written.replace(path)


def _number(name: str, control: LineEdit) -> int | None:
    text = control.value.strip()
    try:
        return int(text) if text else None
    except ValueError:
        raise chunkwise.ParameterError(f"{name}: {text!r} is not a whole number") from None


def _array_of(data: Any) -> Any:
    """Voxels for operations on labels: what is lazy as an array of Dask, whose result is lazy too."""
    if not is_lazy(data) or type(data).__module__.partition(".")[0] == "dask":
        return data
    import dask.array

    return dask.array.from_array(data)


class ObjectsWidget(RunWidget):
    """Measures, selects and completes the objects of a labels layer.

    Parameters
    ----------
    napari_viewer : napari.Viewer, or napari.components.ViewerModel
        napari gives it.
    """

    def __init__(self, napari_viewer: Any) -> None:
        self._viewer = napari_viewer
        self.layer_choice = ComboBox(label="Labels", choices=self._label_layers, nullable=True,
                                     tooltip="The layer whose labels are objects; it may be larger than memory")
        self.action = ComboBox(label="Action", choices=_ACTIONS, value="Measure")
        self.in_units = CheckBox(label="Lengths in the layer's units", value=True,
                                 tooltip="Areas and lengths count the layer's scale; else they are in voxels")
        self.image_choice = ComboBox(label="Intensities", choices=self._images, nullable=True,
                                     tooltip="An image of the same shape, whose values are measured too")
        self.all_columns = CheckBox(label="All columns", value=True, tooltip="All that can be measured; else the usual columns")
        self.file = FileEdit(label="Table file", mode=FileDialogMode.OPTIONAL_FILE, filter="*.csv", nullable=True,
                             tooltip="Where the table is written too; none if empty")
        self.replace = CheckBox(label="Replace the file", value=False, tooltip="Write over a file that is there already")
        self.min_size = LineEdit(label="Minimum size (voxels)")
        self.max_size = LineEdit(label="Maximum size (voxels)")
        self.where = LineEdit(label="Conditions", tooltip='Of measured columns, with commas between: area > 100, extent >= 0.5')
        self.remove_border = CheckBox(label="Remove objects at the border", value=False)
        self.keep_largest = LineEdit(label="Number of largest", tooltip="Keep only so many of the largest objects; all if empty")
        self.relabel = CheckBox(label="Renumber", value=False, tooltip="Number the kept objects 1, 2, ...")
        self.measure_form: Container[Any] = Container(
            labels=True, widgets=[self.image_choice, self.all_columns, self.file, self.replace])
        self.keep_form: Container[Any] = Container(labels=True, visible=False, widgets=[
            self.min_size, self.max_size, self.where, self.remove_border, self.keep_largest, self.relabel])
        super().__init__(napari_viewer, [self.layer_choice, self.action, self.measure_form, self.keep_form, self.in_units])
        self.action.changed.connect(self._show_form)
        self._layers_changed()

    def _label_layers(self, _: Any = None) -> list[tuple[str, Any]]:
        return [(each.name, each) for each in reversed(self._viewer.layers) if isinstance(each, Labels)]

    def _images(self, _: Any = None) -> list[tuple[str, Any]]:
        return [(each.name, each) for each in reversed(self._viewer.layers) if isinstance(each, Image)]

    def _layers_changed(self, _: Any = None) -> None:
        self.layer_choice.reset_choices()
        self.image_choice.reset_choices()
        if self.layer_choice.value is None and (labels := self._label_layers()):
            self.layer_choice.value = labels[0][1]

    def _show_form(self, _: Any = None) -> None:
        self.measure_form.visible = self.action.value == "Measure"
        self.keep_form.visible = self.action.value == "Keep objects"
        self.in_units.visible = self.action.value != "Fill holes"

    def _path(self) -> Path | None:
        """The chosen file; it may be typed."""
        return None if self.file.value is None else Path(str(self.file.value)).expanduser()

    def _work(self, layer: Any) -> Callable[[Progress], Any]:
        """The action that the form describes, to be called in a thread; a ParameterError names what is wrong."""
        data, action = data_of(layer), self.action.value
        spacing = [abs(float(each)) for each in layer.scale] if self.in_units.value else [1.0] * layer.ndim
        if action == "Measure":
            return self._measure(data, spacing)
        array = _array_of(data)
        if action == "Fill holes":
            # Tasks have no progress.
            return lambda progress: chunkwise.fill_label_holes(array, **({} if is_lazy(array) else {"progress": progress}))
        selection = {"min_size": _number("minimum size", self.min_size), "max_size": _number("maximum size", self.max_size),
                     "keep_largest": _number("number of largest", self.keep_largest),
                     "where": [each.strip() for each in self.where.value.split(",") if each.strip()],
                     "remove_border": self.remove_border.value, "relabel": self.relabel.value}
        return lambda progress: chunkwise.filter_labels(array, spacing=spacing, progress=progress, **selection)

    def _measure(self, data: Any, spacing: list[float]) -> Callable[[Progress], Any]:
        image, replace = self.image_choice.value, self.replace.value
        path = self._path()
        if image is not None and image.rgb:
            raise chunkwise.ParameterError("intensities: they are of no colour image; split its channels")
        intensity = None if image is None else data_of(image)
        columns = all_columns(image is not None) if self.all_columns.value else None
        if path is not None:
            check_file(path, replace)

        def work(progress: Progress) -> Any:
            table = chunkwise.measure(data, intensity, spacing=spacing, columns=columns, progress=progress)
            # A run that was stopped leaves no file.
            progress(1.0)
            if path is not None:
                save(table, path, replace)
            return table

        return work

    def run(self, _: Any = None) -> None:
        """Runs the action in a thread: a table becomes the layer's features, labels become a new layer."""
        if self._job is not None:
            return
        layer, action, path = self.layer_choice.value, self.action.value, self._path()
        try:
            if layer is None:
                raise chunkwise.ParameterError("labels: there is no layer of labels")
            work = self._work(layer)
        except (chunkwise.Error, TypeError, ValueError) as error:
            self._tell(str(error))
            return

        def show(found: Any) -> None:
            if action == "Measure":
                layer.features = features_of(found)
                self._tell(f"{len(found['label'])} objects measured" + (f", {path} written" if path is not None else ""))
            else:
                self._viewer.layers.append(Labels(found, name=f"{layer.name} {action.lower()}", **geometry_of(layer),
                                                  metadata={**layer.metadata, "chunkwise": action}))
                self._tell(f"{action}: done")

        self.start(work, show)
