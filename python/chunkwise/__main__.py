# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""From store to store on the command line: ``python -m chunkwise gaussian in.zarr out.zarr --sigma 2 --memory 4G``.

The subcommands and their options are the engine's table of filters, with Python's names and defaults.
"""
from __future__ import annotations

import argparse
import sys
from typing import Any

import chunkwise

from . import filters
from ._table import ROWS, Parameter


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)


def _read(parameter: Parameter, text: str) -> Any:
    if parameter.type in ("choice", "network") or (parameter.can_be_auto and text == "auto"):
        return text
    if parameter.type == "kernel":
        import numpy as np

        return np.load(text, allow_pickle=False)
    try:
        numbers = tuple(_number(each) for each in text.split(","))
    except ValueError:
        raise chunkwise.ParameterError(f"{parameter.name}: {text!r} is not a number or numbers with commas") from None
    return numbers[0] if len(numbers) == 1 else numbers


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m chunkwise", description=__doc__.split("\n\n")[0].replace("``", ""),
                                     allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"chunkwise {chunkwise.__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="FILTER")
    commands.add_parser("devices", help="List the devices that can compute")
    for row in ROWS.values():
        if any(each.required for each in row.inputs):
            continue
        command = commands.add_parser(row.engine, help=row.title, description=row.title + ".", allow_abbrev=False)
        command.add_argument("source", help="A Zarr array, or an image of OME-Zarr, of which level 0 is read")
        command.add_argument("output", help="A folder or address that is made, stored as the source is")
        for each in row.parameters.values():
            option = "--" + each.name.replace("_", "-")
            help = each.description.replace("%", "%%")
            if each.type == "flag":
                command.add_argument(option, action=argparse.BooleanOptionalAction, default=each.default, help=help)
            else:
                command.add_argument(option, required=each.required, default=None, help=help,
                                     metavar="FILE" if each.type in ("kernel", "network") else None,
                                     choices=each.choices if each.type == "choice" else None)
        if row.has_spacing:
            command.add_argument("--spacing", help="Between voxels, z,y,x; instead of the source's. none: lengths are in "
                                 "voxels")
        command.add_argument("--memory", default="4G", help="For blocks and scratch (4G)")
        command.add_argument("--dtype", help="The type of the result")
        command.add_argument("--backend", default="auto", choices=("auto", "cpu", "cuda"), help="What computes")
        command.add_argument("--threads", type=int, help="Threads of the CPU")
        command.add_argument("--overwrite", action="store_true", help="Replace an output that is there")
        command.add_argument("--no-resume", action="store_true", help="Begin anew where a run was interrupted")
        command.add_argument("--quiet", action="store_true", help="Show no progress")
    return parser


def main(arguments: list[str] | None = None) -> int:
    given = _parser().parse_args(arguments)
    if given.command == "devices":
        for each in chunkwise.devices():
            print(f"{each['index']}: {each['name']}, {each['memory']} bytes")
        if not chunkwise.devices():
            print(f"none: {chunkwise.why_no_devices()}")
        return 0
    row = ROWS[given.command]
    try:
        values: dict[str, Any] = {}
        for parameter in row.parameters.values():
            value = getattr(given, parameter.name)
            if value is not None:
                values[parameter.name] = value if parameter.type == "flag" else _read(parameter, value)
        if row.has_spacing and given.spacing:
            values["spacing"] = False if given.spacing == "none" else tuple(map(float, given.spacing.split(",")))
        made = getattr(filters, row.class_name)(**values)
        chunkwise.zarr.run(made, given.source, given.output, memory=given.memory, dtype=given.dtype,
                           overwrite=given.overwrite, resume=not given.no_resume, backend=given.backend,
                           threads=given.threads, progress=not given.quiet)
    except (chunkwise.Error, OSError, TypeError, ValueError) as error:
        print(f"chunkwise: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("chunkwise: interrupted; the same command goes on from here", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
