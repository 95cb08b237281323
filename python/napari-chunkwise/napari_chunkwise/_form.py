# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Controls for a filter's parameters, made from the engine's own table: names, help, defaults, ranges."""
from __future__ import annotations

import ast
from typing import Any

import chunkwise
import numpy as np
from chunkwise import _core, filters
from chunkwise._table import MODES, ROWS, Parameter, Row
from magicgui.widgets import CheckBox, ComboBox, FileEdit, LineEdit, SpinBox, Widget

#: Larger numbers are typed as text.
_MOST = 2**31 - 1

#: Labels in the words of users, by the table's names; all others are the name with a capital.
_LABELS = {"BoundaryCondition": "Edge of the image", "Constant": "Value beyond the edge", "FullyConnected": "Diagonal neighbors",
           "IgnoreNaN": "Ignore NaN", "SpatialAxes": "Axes", "Transforms": "Use FFT", "TransformProvider": "FFT library",
           "NumberOfBins": "Bins", "NumberOfClasses": "Classes"}
_LENGTHS = ("Distance", "GridOrigin", "GridSpacing", "MaximumDistance", "Radius", "Sigma", "Variance")
_COUNTS = ("KernelRadius", "MaximumKernelWidth", "PatchRadius", "PatchSize", "Radius")
_UNITS = {"Cutoff": "sigmas", "Percentile": "%", "Variance": "scale squared"}
#: Settings that are rarely changed.
_ADVANCED = {"Cutoff", "EmptyValue", "GridOrigin", "GridSpacing", "HeapNodeSize", "KernelRadius", "MaximumError",
             "MaximumKernelWidth", "Modular", "NumberOfHeaps", "OutputMask", "PatchWeighting", "PeriodicAxes", "Precision",
             "Rounding", "SpatialAxes", "Structure", "TransformProvider", "Variance"}
_PAGES = "https://github.com/chunkwise/chunkwise/blob/v{}/docs/reference/formulas.md#{}"


def capitalized(name: str) -> str:
    """"Empty value" for "empty_value"."""
    words = name.replace("_", " ")
    return words[:1].upper() + words[1:]


def label_of(parameter: Parameter) -> str:
    """A parameter's label, with the unit of its numbers."""
    label = _LABELS.get(parameter.engine, capitalized(parameter.name))
    unit = _UNITS.get(parameter.engine, "")
    if not unit and parameter.type in ("real", "reals") and parameter.engine in _LENGTHS:
        unit = "layer's units"
    elif not unit and parameter.type in ("integer", "integers") and parameter.engine in _COUNTS:
        unit = "voxels"
    return f"{label} ({unit})" if unit else label


def is_advanced(parameter: Parameter) -> bool:
    """Whether a form shows a parameter only if it is asked for all."""
    return parameter.engine in _ADVANCED and not parameter.required


def page_of(row: Row) -> str:
    """The address of the page that defines a filter."""
    return _PAGES.format(chunkwise.__version__, row.engine)


def filter_names() -> list[str]:
    """The filters that this build of the engine can run, in the table's order."""
    return list(ROWS)


def _text(value: Any) -> str:
    if value is None:
        return ""
    return ", ".join(map(repr, value)) if isinstance(value, tuple) else str(value)


def make_control(parameter: Parameter, arrays: Any) -> Widget:
    """A parameter's control, with its default. `arrays` gives pairs of a name and an array, for kernels."""
    about: dict[str, Any] = {"name": parameter.name, "label": label_of(parameter),
                             "tooltip": parameter.description}
    default = parameter.default
    if parameter.type == "flag":
        return CheckBox(value=default, **about)
    if parameter.type == "choice":
        return ComboBox(choices=parameter.choices, value=default, **about)
    if parameter.type == "kernel":
        return ComboBox(choices=arrays, nullable=not parameter.required, **about)
    if parameter.type == "network":
        return FileEdit(filter="*.onnx", nullable=True, **about)
    if parameter.type == "integer" and default is not None and not parameter.can_be_auto:
        low = max(parameter.minimum, -_MOST) + (1 if parameter.above_minimum else 0)
        return SpinBox(value=default, min=int(low), max=int(min(parameter.maximum, _MOST)), **about)
    return LineEdit(value=_text(default) if default is not None or parameter.only_with[0] else parameter.example, **about)


def value_of(parameter: Parameter, control: Widget) -> Any:
    """The value of a control, as the filter takes it; None is its default."""
    value = control.value  # type: ignore[attr-defined]
    if not isinstance(control, LineEdit):
        return value
    text = value.strip()
    if not text or (text == "auto" and parameter.can_be_auto):
        return text or None
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        raise chunkwise.ParameterError(f"{parameter.name}: {text!r} is not a number"
                                       + ("" if parameter.count == "one" else ", nor numbers with commas between")) from None


def is_used(row: Row, parameter: Parameter, controls: dict[str, Widget]) -> bool:
    """Whether a parameter has an effect with what others are set to."""
    name, wanted = parameter.only_with
    other = row.by_engine.get(name)
    if other is None or other.name not in controls:
        return True
    value = controls[other.name].value  # type: ignore[attr-defined]
    return str(MODES[value] if other.name == "mode" else value) in wanted.split("|")


def make_filter(row: Row, controls: dict[str, Widget], spacing: Any = None) -> chunkwise.Filter:
    """The filter that a form describes; a ParameterError names the parameter that is wrong."""
    given = {}
    for name, parameter in row.parameters.items():
        if is_used(row, parameter, controls):
            value = value_of(parameter, controls[name])
            given[name] = np.asarray(value) if parameter.type == "kernel" and value is not None else value
    extra = {"spacing": spacing} if row.has_spacing else {}
    made: chunkwise.Filter = getattr(filters, row.class_name)(**given, **extra)
    return made
