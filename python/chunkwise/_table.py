# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""The engine's table of filters in Python's words: names, signatures and docstrings.

Everything here is made from what the engine says of itself, so that Python cannot disagree with the program. Four rows
have other words than the program, because NumPy and SciPy have them: the boundary is ``mode``, its constant ``cval``,
the axes are NumPy's, and lengths are in voxels unless there is a spacing.
"""
from __future__ import annotations

import re
import textwrap
from typing import Any

from . import _core

MODES = {
    "renormalized": "renormalized",
    "nearest": "zero-flux",
    "constant": "constant",
    "reflect": "mirror",
    "mirror": "mirror-center",
    "wrap": "periodic",
}
_MODE_OF = {word: mode for mode, word in MODES.items()}

MODE_HELP = (
    "What windows see beyond the image's edge: nothing, so that the statistic is that of the part of the window "
    "inside the image (renormalized), the nearest voxel, the constant cval, the image mirrored with its edge voxel "
    "repeated (reflect) or not (mirror), or the opposite side (wrap)"
)

#: What every function takes beside its filter's parameters: name, type for stubs, help.
COMMON = (
    ("output", "npt.NDArray[Any] | npt.DTypeLike | None", "The array to write to, or the type of the result."),
    ("backend", 'Literal["auto", "cpu", "cuda"]', "The devices and, without them, the CPU; or one of both alone."),
    ("devices", "Sequence[int] | None", "Which devices, by their number in chunkwise.devices(); all."),
    ("memory", "int | str | None", 'Host memory for scratch, bytes or as "4G"; no limit.'),
    ("device_memory", "int | str | None", "Memory of each device; most of what is free."),
    ("pinned_memory", "int | str | None", "Pinned host memory for each device; 256 MiB."),
    ("threads", "int | None", "Threads of the CPU; one for each core."),
    ("progress", "bool | Callable[[float], object] | None", "True shows it; a function gets the part that is done, "
     "and stops the run if it raises."),
)


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name.replace("NaN", "Nan")).replace("-", "_").lower()


class Parameter:
    """A row of a filter's parameters."""

    __slots__ = ("engine", "name", "type", "count", "help", "default", "example", "required", "choices", "can_be_auto",
                 "minimum", "maximum", "above_minimum", "only_with", "per_axis")

    def __init__(self, row: dict[str, Any]) -> None:
        self.engine: str = row["name"]
        self.type: str = row["type"]
        self.count: str = row["count"]
        self.help: str = row["help"]
        self.default: Any = row["default"]
        #: What a form shows where there is no default: a text, its axes in NumPy's order.
        self.example: str = row["example"]
        if self.count in ("spatial", "axes"):
            self.example = ", ".join(reversed(self.example.split(",")))
        self.required: bool = row["required"]
        self.choices: tuple[str, ...] = row["choices"]
        #: A choice that may be one for each spatial axis.
        self.per_axis: bool = row["choice_per_axis"]
        self.can_be_auto: bool = row["can_be_auto"]
        self.minimum: float = row["minimum"]
        self.maximum: float = row["maximum"]
        self.above_minimum: bool = row["above_minimum"]
        self.only_with: tuple[str, str] = row["only_with"]
        self.name = snake(self.engine)
        if self.engine == "BoundaryCondition":
            self.name = "mode"
            self.choices = tuple(_MODE_OF[word] for word in self.choices)
            self.default = _MODE_OF[self.default]
            self.help = MODE_HELP + ("; one for all axes, or one for each, but for renormalized" if self.per_axis else "")
        elif self.engine == "Constant":
            self.name = "cval"
        elif self.engine == "SpatialAxes":
            self.name = "axes"
            what = self.help.partition(";")[0] if self.help.startswith("Axes") else "The axes along which voxels depend on each other"
            self.help = what + ", by NumPy's count; the last three"
        elif self.engine == "AxisOrder":
            self.help = "The axis of the input for each axis of the result, by NumPy's count; without it the axes are reversed"
        elif self.engine == "PeriodicAxes":
            self.help = "Axes along which the first voxel and the last are neighbors, by NumPy's count"
        elif self.engine == "Structure":
            self.help = "Neighbors as ones in an array of 3 along each of the axes, in place of the connectivity"

    @property
    def annotation(self) -> str:
        one = {"integer": "int", "real": "float", "value": "float", "flag": "bool", "integers": "int", "reals": "float",
               "kernel": "npt.ArrayLike", "network": "str | PathLike[str]"}
        if self.type == "choice":
            text = "Literal[" + ", ".join('"' + choice + '"' for choice in self.choices) + "]"
            text += f" | Sequence[{text}]" if self.per_axis else ""
        elif self.name == "axes":
            text = "int | Sequence[int]"
        elif self.count == "one":
            text = one[self.type]
        elif self.count == "spatial":
            text = f"{one[self.type]} | Sequence[{one[self.type]}]"
        else:
            text = f"Sequence[{one[self.type]}]"
        if self.can_be_auto:
            text += ' | Literal["auto"]'
        if self.default is None and not self.required:
            text += " | None"
        return text

    @property
    def range(self) -> str:
        low, high = self.minimum, self.maximum
        text = []
        if low != float("-inf"):
            text.append(("above " if self.above_minimum else "at least ") + f"{low:g}")
        if high != float("inf"):
            text.append(f"at most {high:g}")
        return " and ".join(text)

    @property
    def description(self) -> str:
        text = self.help + ("" if self.help.endswith(".") else ".")
        if self.range:
            text += f" {self.range[0].upper() + self.range[1:]}."
        return text


class Input:
    """An image that a filter takes beside its first one."""

    __slots__ = ("engine", "name", "help", "required", "before", "own_kind")

    def __init__(self, row: dict[str, Any]) -> None:
        self.engine: str = row["name"]
        self.name = row["option"].replace("-", "_")
        self.help: str = row["help"].replace("IN's", "the input's")
        self.required: bool = row["required"]
        self.before: bool = row["before"]
        self.own_kind: bool = row["own_kind"]


class Row:
    """A filter of the table."""

    def __init__(self, row: dict[str, Any]) -> None:
        self.engine: str = row["name"]
        self.name = self.engine.replace("-", "_")
        self.class_name = "".join(word.capitalize() for word in self.engine.split("-"))
        self.group: str = row["group"]
        self.title: str = row["title"].replace(", IN", ", the input")
        self.output: str = row["output"]
        self.can_be_stage: bool = row["can_be_stage"]
        #: Whether the result's shape may differ from the input's.
        self.has_grid: bool = row["has_grid"]
        self.promises_bits: bool = row["promises_bits"]
        #: What a filter that is a reconstruction starts from: "input", "shifted", "next", "border" or "window"; else "none".
        self.marker: str = row["marker"]
        #: Unless a parameter says so.
        self.erosion: bool = row["erosion"]
        #: Of a reconstruction: "image", "residue" or "extrema".
        self.gives: str = row["gives"]
        self.inputs = tuple(Input(each) for each in row["inputs"])
        rows = [Parameter(each) for each in row["parameters"]]
        self.by_engine = {each.engine: each for each in rows}
        #: Python's names by those of the engine's messages.
        self.names = {each.engine: each.name for each in rows} | {each.engine: each.name for each in self.inputs}
        self.names |= {"UseImageSpacing": "spacing", "Output": "output"}
        self.uses_spacing = "UseImageSpacing" in self.by_engine
        self.has_spacing = self.uses_spacing or "GridSpacing" in self.by_engine
        self.parameters = {each.name: each for each in rows if each.engine != "UseImageSpacing"}
        # Without a comma after what has to be given, the first parameter need not be named either.
        required = [each for each in self.parameters.values() if each.required]
        rest = [each for each in self.parameters.values() if not each.required]
        first = next(iter(self.parameters.values()), None)
        self.positional = required
        if first is not None and not first.required and first.type != "flag":
            self.positional = required + [first]
            rest.remove(first)
        self.named = rest
        #: Results of images of bool are of bool.
        self.keeps_bool = self.output not in ("label", "class", "real", "real-sum", "sum") and self.group in (
            "Ranks of windows", "Flat morphology", "Reconstruction", "Voxel by voxel", "Objects", "Thresholds", "Distances", "Copies of voxels")

    def arguments(self, stub: bool, with_inputs: bool) -> str:
        """The signature's text, after the parenthesis, as code or as a stub has it."""

        def argument(name: str, annotation: str, default: Any, has_default: bool) -> str:
            text = name + (": " + annotation if stub else "")
            return text + ((" = " if stub else "=") + ("..." if stub else repr(default)) if has_default else "")

        parts = []
        if with_inputs:
            parts.append("input" + (": _Image" if stub else ""))
            parts += [argument(each.name, "_Image", None, False) for each in self.inputs if each.required]
        parts += [argument(each.name, each.annotation, each.default, not each.required) for each in self.positional]
        named = []
        if with_inputs:
            named += [argument(each.name, "_Image | None", None, True) for each in self.inputs if not each.required]
        named += [argument(each.name, each.annotation, each.default, True) for each in self.named]
        if self.has_spacing:
            named.append(argument("spacing", "Sequence[float] | Literal[False] | None", None, True))
        if with_inputs:
            named += [argument(name, annotation + ("" if annotation.endswith("None") else ""),
                               "auto" if name == "backend" else None, True) for name, annotation, _ in COMMON]
        if named:
            parts += ["*"] + named
        return ", ".join(parts)

    def document(self, is_class: bool = False) -> str:
        """A docstring in NumPy's style."""
        lines = [self.title + ".", ""]
        if is_class:
            lines += ["A filter as a value: it can be called, compared, pickled, and joined to others with ``|``.", ""]
        lines += ["Parameters", "----------"]

        def entry(name: str, kind: str, text: str) -> None:
            lines.append(f"{name} : {kind}")
            lines.extend(textwrap.wrap(text, 96, initial_indent="    ", subsequent_indent="    "))

        if not is_class:
            entry("input", "array_like, or an image of ITK, SimpleITK, xarray, torch or Dask",
                  "One to five dimensions, the last one fastest: (z, y, x). 8- to 64-bit integers, float32 or float64; bool "
                  "as 0 and 1, float16 as float32.")
            for other in self.inputs:
                entry(other.name, "as input" + ("" if other.required else ", optional"), other.help + ".")
        for each in self.positional + self.named:
            kind = each.annotation.replace(" | None", "").replace("npt.ArrayLike", "array_like")
            if each.type == "choice":
                kind = "{" + ", ".join(repr(choice) for choice in each.choices) + "}"
            default = "" if each.required else ", optional" if each.default is None else f", default {each.default!r}"
            entry(each.name, kind + default, each.description)
        if self.has_spacing:
            entry("spacing", "sequence of float, or False, optional",
                  "Between voxels along each axis, (z, y, x): lengths are in its unit. Without one an image's own "
                  "counts, where its container has one, else lengths are in voxels, as with False.")
        if is_class:
            return "\n".join(lines) + "\n"
        for name, annotation, text in COMMON:
            entry(name, "optional", text)
        result = {
            "input": "The input's type" + ("." if self.keeps_bool else "; of bool float32."),
            "real": "float32; float64 of 32- and 64-bit integers and of float64.",
            "real-sum": "float32 of 8-bit integers and of float32, else float64.",
            "input-unless-signed": "The input's type; of signed integers float32, or float64 for 32 and 64 bits.",
            "sum": "64-bit integers of integers, else float64.",
            "label": "uint32. For an array in memory output='auto' gives the smallest unsigned type that has all labels.",
            "class": "uint8.",
        }[self.output]
        lines += ["", "Returns", "-------", "array of the input's shape, in the input's kind of container" +
                  ("; with output_components one axis more, the last one" if "OutputComponents" in self.by_engine else "")]
        lines.extend(textwrap.wrap(result + " Real results become integers, where these are asked for, by rounding to "
                                   "the nearest, ties to even.", 96, initial_indent="    ", subsequent_indent="    "))
        lines += ["", "Raises", "------", "ParameterError", "    A value that is no value of its parameter; a ValueError.",
                  "BudgetError", "    A budget that not even the least part of the work fits; a MemoryError."]
        lines += ["", "Notes", "-----",
                  "The same bits for any chunks, regions, threads, budgets and devices" +
                  ("" if self.promises_bits else ", but where transforms compute")
                  + ".", "", "Examples", "--------", *self.example()]
        return "\n".join(lines) + "\n"

    def example(self) -> list[str]:
        values = {"real": "1.0", "reals": "1.0", "value": "1", "flag": "True"}
        given = []
        for other in self.inputs:
            if other.required:
                given.append(f"{other.name}=image")
        for each in self.positional:
            if each.type == "kernel":
                given.append(f"{each.name}=np.ones(({'1, ' if each.name == 'kernel_images' else ''}1, 3, 3))")
            elif each.type == "network":
                given.append(f'{each.name}="brain.onnx"')
            elif each.engine == "Radius" and "weights" in self.parameters:
                given.append("kernel=np.ones((1, 3, 3))")
            elif each.type == "choice":
                given.append(f'{each.name}="{each.default or each.choices[0]}"')
            elif each.type.startswith("integer"):
                count = each.count == "axes"
                given.append(f"{each.name}={(0, 1, 2) if count else int(max(each.minimum, 0 if self.has_grid else 1))}")
            else:
                given.append(f"{each.name}={values[each.type]}")
        if "Operator" in self.by_engine and all(each.engine != "Sigma" for each in self.positional):
            given.append("sigma=1.0")
        if "OfGradient" in self.by_engine:
            given.append("of_gradient=True")
        skip = "  # doctest: +SKIP" if any(each.type == "network" for each in self.positional) else ""
        call = f"chunkwise.{self.name}(" + ", ".join(["image", *given]) + ")"
        return [">>> import numpy as np", ">>> import chunkwise", '>>> image = np.ones((4, 5, 6), "uint8")',
                f">>> {call}.shape{skip}", "(4, 5, 6)"]


ROWS = {row["name"]: Row(row) for row in _core.filters()}
BY_NAME = {row.name: row for row in ROWS.values()}
