# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""The widget: a layer, a filter, its parameters, an exact preview of the visible slice, and runs in the background."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import chunkwise
import numpy as np
from chunkwise._table import ROWS
from magicgui.widgets import CheckBox, ComboBox, Container, Label
from napari.layers import Image, Labels
from qtpy.QtCore import QTimer
from qtpy.QtWidgets import QSizePolicy

from ._form import capitalized, filter_names, is_advanced, is_used, make_control, make_filter, page_of
from ._jobs import INTERVAL, Cancelled, Job, RunWidget, make_readable
from ._layers import (compute_part, compute_whole, contrast_of, data_of, geometry_of, is_lazy, visible_place)

#: The color of links, which can be read in napari's dark and light themes.
_LINK = "#3d8fd9"


class FilterWidget(RunWidget):
    """Chunkwise's filters over an image layer.

    Parameters
    ----------
    napari_viewer : napari.Viewer, or napari.components.ViewerModel
        napari gives it.
    """

    def __init__(self, napari_viewer: Any) -> None:
        self._viewer = napari_viewer
        self._preview_job: Job | None = None
        self._preview_is_due = False
        self._is_showing = False
        self._kept: dict[Any, Any] = {}
        self._preview_layer: Any = None
        self.layer_choice = ComboBox(label="Layer", choices=self._images, nullable=True,
                                     tooltip="The image to filter; it may be larger than memory")
        self.filter_choice = ComboBox(label="Filter", choices=filter_names(), value="gaussian")
        self.title = Label()
        self.help = Label()
        self.form: Container[Any] = Container(labels=True)
        self.show_advanced = CheckBox(label="Advanced parameters", value=False, tooltip="Show settings that are rarely changed")
        self.advanced: Container[Any] = Container(labels=True, visible=False)
        self.in_units = CheckBox(label="Lengths in the layer's units", value=True,
                                 tooltip="Lengths count the layer's scale; else they are in voxels")
        self.preview = CheckBox(label="Preview", value=False,
                                tooltip="The visible slice, exactly as it will be in the result")
        super().__init__(napari_viewer, [self.layer_choice, self.filter_choice, self.title, self.help, self.form,
                                         self.show_advanced, self.advanced, self.in_units, self.preview])
        self.help.native.setOpenExternalLinks(True)
        policy = self.help.native.sizePolicy()
        policy.setHorizontalPolicy(QSizePolicy.Policy.Expanding)
        self.help.native.setSizePolicy(policy)
        make_readable(self.title)
        self.show_advanced.changed.connect(self._fold)
        self.filter_choice.changed.connect(self._make_form)
        for each in (self.layer_choice, self.in_units, self.preview):
            each.changed.connect(self._ask_for_preview)
        self._followed: Any = None
        self.layer_choice.changed.connect(self._follow)
        for event in (napari_viewer.dims.events.point, napari_viewer.dims.events.order, napari_viewer.dims.events.ndisplay):
            event.connect(self._ask_for_preview)
        # One preview for all that changes within an interval.
        self._soon = QTimer()
        self._soon.setSingleShot(True)
        self._soon.setInterval(INTERVAL)
        self._soon.timeout.connect(self._start_preview)
        self._layers_changed()
        self._make_form()

    # The choices of the user

    def _layers_of(self, *kinds: type) -> Iterator[Any]:
        return (each for each in reversed(self._viewer.layers) if isinstance(each, kinds) and each is not self._preview_layer)

    def _images(self, _: Any = None) -> list[tuple[str, Any]]:
        return [(each.name, each) for each in self._layers_of(Image)]

    def _arrays(self, _: Any = None) -> list[tuple[str, Any]]:
        return [(each.name, each) for each in self._layers_of(Image, Labels)]

    def _layers_changed(self, _: Any = None) -> None:
        if self._is_showing:
            return
        if self._preview_layer is not None and self._preview_layer not in self._viewer.layers:
            self._preview_layer = None
        self.layer_choice.reset_choices()
        if self.layer_choice.value is None and (images := self._images()):
            self.layer_choice.value = images[0][1]
        for each in (*self.form, *self.advanced):
            if isinstance(each, ComboBox):
                each.reset_choices()
        self._ask_for_preview()

    def _follow(self, layer: Any) -> None:
        """The preview changes with the layer's voxels and scale."""
        for each, connect in ((self._followed, False), (layer, True)):
            if each is not None:
                for event in (each.events.data, each.events.scale):
                    (event.connect if connect else event.disconnect)(self._ask_for_preview)
        self._followed = layer

    def _make_form(self, _: Any = None) -> None:
        row = ROWS[self.filter_choice.value]
        self.title.value = row.title
        self.help.value = f'<a style="color: {_LINK}" href="{page_of(row)}">Formula and parameters</a>'
        self.form.clear()
        self.advanced.clear()
        self._controls = {name: make_control(each, self._arrays) for name, each in row.parameters.items()}
        self._inputs = [ComboBox(name=each.name, label=capitalized(each.name), tooltip=each.help,
                                 choices=self._arrays, nullable=not each.required) for each in row.inputs]
        for each in (*self._inputs, *self._controls.values()):
            folded = each.name in row.parameters and is_advanced(row.parameters[each.name])
            (self.advanced if folded else self.form).append(each)
            each.changed.connect(self._ask_for_preview)
        self._fold()
        for each in self._controls.values():
            if isinstance(each, ComboBox):
                each.changed.connect(self._show_what_counts)
        self._show_what_counts()
        self.in_units.enabled = row.has_spacing
        self._ask_for_preview()

    def _fold(self, _: Any = None) -> None:
        self.show_advanced.visible = len(self.advanced) > 0
        self.advanced.visible = len(self.advanced) > 0 and bool(self.show_advanced.value)

    def _show_what_counts(self, _: Any = None) -> None:
        row = ROWS[self.filter_choice.value]
        for name, control in self._controls.items():
            control.enabled = is_used(row, row.parameters[name], self._controls)

    def filter(self) -> chunkwise.Filter:
        """The filter that the form describes; a ParameterError names what is wrong."""
        row, layer = ROWS[self.filter_choice.value], self.layer_choice.value
        spacing = None
        if row.has_spacing and self.in_units.value and layer is not None:
            # The channels of a colour image have no length.
            spacing = (*(abs(float(each)) for each in layer.scale), *(1.0 for _ in range(layer.rgb)))
        controls = {name: _Data(each) if row.parameters[name].type == "kernel" else each
                    for name, each in self._controls.items()}
        made = make_filter(row, controls, spacing)
        if layer is not None and layer.rgb:
            if "axes" not in row.parameters:
                raise chunkwise.ParameterError(f"layer: {row.engine} takes no colour image; split its channels")
            if made.parameters.get("axes") is None:
                made = made.replaced(axes=tuple(range(max(layer.ndim - 3, 0), layer.ndim)))
        return made

    def _chosen(self) -> tuple[Any, chunkwise.Filter, Any, list[Any]]:
        layer = self.layer_choice.value
        if layer is None:
            raise chunkwise.ParameterError("layer: there is none to filter")
        others = [None if each.value is None else data_of(each.value) for each in self._inputs]
        return layer, self.filter(), data_of(layer), others

    # The preview

    def _ask_for_preview(self, _: Any = None) -> None:
        # Changes that the preview itself makes in the viewer are no reason for another one.
        if self._is_showing:
            return
        if not self.preview.value:
            self._kept.clear()
            self._remove_preview()
            if self._preview_job is not None:
                self._preview_job.cancel()
            return
        self._soon.start()

    def _remove_preview(self) -> None:
        layer, self._preview_layer = self._preview_layer, None
        if layer is not None and layer in self._viewer.layers:
            self._is_showing = True
            try:
                self._viewer.layers.remove(layer)
            finally:
                self._is_showing = False

    def _show_error(self, error: Exception) -> None:
        """The whole message; what the preview shows is no result of this form."""
        self._remove_preview()
        self._tell(str(error))

    def _start_preview(self) -> None:
        if self._preview_job is not None:
            # Its result is out of date.
            self._preview_is_due = True
            self._preview_job.cancel()
            return
        if not self.preview.value:
            return
        try:
            layer, filter, data, others = self._chosen()
            place = visible_place(self._viewer, layer)
            if ROWS[filter.name].has_grid:
                raise chunkwise.ParameterError("preview: the result has another grid than the layer; Run makes it")
        except (chunkwise.Error, LookupError, TypeError, ValueError) as error:
            self._show_error(error)
            return
        self._tell("")

        def done(part: Any, error: Exception | None) -> None:
            self._preview_job = None
            if self._preview_is_due:
                # Something has changed since this one began.
                pass
            elif error is None and self.preview.value and layer in self._viewer.layers:
                self._is_showing = True
                try:
                    self._show_preview(layer, filter, place, part)
                finally:
                    self._is_showing = False
            elif error is not None and not isinstance(error, Cancelled):
                self._show_error(error)
            if self._preview_is_due:
                self._preview_is_due = False
                self._soon.start()

        self._preview_job = Job(lambda progress: compute_part(filter, data, others, place, progress, self._kept), done)

    def _show_preview(self, layer: Any, filter: chunkwise.Filter, place: tuple[slice, ...], part: Any) -> None:
        where = geometry_of(layer, [each.start for each in place])
        about = {"name": f"{layer.name} preview", "metadata": {"chunkwise": repr(filter)},
                 "contrast_limits": contrast_of(layer, part), "colormap": layer.colormap}
        old, self._preview_layer = self._preview_layer, None
        if layer.rgb:
            del about["colormap"], about["contrast_limits"]
        selected = list(self._viewer.layers.selection)
        preview = Image(part, rgb=layer.rgb, **where, **about)
        if old is not None and old in self._viewer.layers:
            at = self._viewer.layers.index(old)
            preview.opacity, preview.visible, preview.name = old.opacity, old.visible, old.name
            self._viewer.layers.remove(old)
        else:
            at = self._viewer.layers.index(layer) + 1
        self._preview_layer = preview
        self._viewer.layers.insert(at, preview)
        self._viewer.layers.selection = {each for each in selected if each in self._viewer.layers}

    # Runs

    def run(self, _: Any = None) -> None:
        """Filters the whole layer in a thread; the result is a new layer. A lazy layer stays lazy."""
        if self._job is not None:
            return
        try:
            layer, filter, data, others = self._chosen()
            filter_of = repr(filter)
        except (chunkwise.Error, TypeError, ValueError) as error:
            self._tell(str(error))
            return
        shape = tuple(data.shape)
        try:
            place = visible_place(self._viewer, layer)
        except LookupError:
            place = tuple(slice(0, each) if a >= len(shape) - 2 else slice(each // 2, each // 2 + 1)
                          for a, each in enumerate(shape))

        def work(progress: Callable[[float], None]) -> Any:
            result = compute_whole(filter, data, others, progress)
            if layer.rgb:
                return result, None
            # The display's limits of what is lazy come from one slice, not from all of it.
            if is_lazy(result) and np.dtype(result.dtype) == data.dtype:
                return result, contrast_of(layer, np.empty(0, data.dtype))
            same = tuple(result.shape) == shape
            return result, contrast_of(layer, np.asarray(result[place] if same and is_lazy(result) else result))

        def show(found: Any) -> None:
            result, limits = found
            self.preview.value = False
            lower = [(a - b) // 2 for a, b in zip(shape, result.shape)]
            about = {} if limits is None else {"contrast_limits": limits, "colormap": layer.colormap}
            self._viewer.layers.append(Image(
                result, name=f"{layer.name} {filter.name}", rgb=layer.rgb, **geometry_of(layer, lower), **about,
                metadata={**layer.metadata, "chunkwise": filter_of}))
            self._tell(filter_of)

        self.start(work, show)


class _Data:
    """A control that chooses a layer, for its voxels."""

    def __init__(self, control: Any) -> None:
        self.value = None if control.value is None else data_of(control.value)
