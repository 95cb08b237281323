#!/usr/bin/env python3
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Makes the pages of docs/reference from the engine's table of filters and docs/reference/formulas.toml.

    make_reference.py PROGRAM PYTHON PACKAGE           writes formulas.md, commands.md and python.md
    make_reference.py PROGRAM PYTHON PACKAGE --check   says whether the pages are what it would write

PROGRAM is the program chunkwise, PYTHON an interpreter with NumPy, PACKAGE the folder that has the package chunkwise. Exits with 77 if
one is missing. A filter without a formula is an error. Formulas of filters that the
program was built without, such as networks, are named.
"""
import collections
import json
import os
import pathlib
import re
import subprocess
import sys

try:
    import tomllib
except ImportError:
    print('Skipped: this needs Python 3.11 or newer')
    sys.exit(77)

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "docs" / "reference"
HEAD = "<!-- Made by scripts/make_reference.py; not edited by hand. -->\n"
# A parameter of so many filters is explained once.
COMMON = 5
# Prints [group, name, signature, docstring] for each public function and class of the package.
DUMP = """
import inspect, json, re, chunkwise
from chunkwise import _core, _table, dask, ndimage, zarr
groups = {_table.ROWS[each["name"]].name: each["group"] for each in _core.filters()}
found = []
for module, names in ((chunkwise, [*(name for name in chunkwise.__all__ if name not in _table.BY_NAME), *_table.BY_NAME]), (ndimage, ndimage.__all__), (zarr, ["run", "pyramid", "measure", "separate", "filter_labels", "fill_label_holes"]), (dask, dask.__all__)):
    for name in names:
        each = getattr(module, name)
        if inspect.ismodule(each):
            continue
        group = groups.get(name, "Other functions and classes") if module is chunkwise else module.__name__
        try:
            signature = str(inspect.signature(each))
        except ValueError:
            signature = ""
        signature = re.sub(r"ForwardRef\\('(.*?)'\\)", r"\\1", signature)
        found.append([group, module.__name__ + "." + name, signature, inspect.getdoc(each) or ""])
# Filters come first.
print(json.dumps(sorted(found, key=lambda each: each[0] == "Other functions and classes")))
"""


def cell(text):
    return str(text).replace("|", "\\|").replace("<", "&lt;")


def range_of(parameter):
    """The allowed values in words, or nothing."""
    if parameter["choices"]:
        return ", ".join(f"`{each}`" for each in parameter["choices"])
    low, high = parameter["minimum"], parameter["maximum"]
    words = []
    if low not in ("-inf", None):
        words.append(f"above {low:g}" if parameter["aboveMinimum"] else f"at least {low:g}")
    if high not in ("inf", None):
        words.append(f"at most {high:g}")
    return " and ".join(words)


def name_of(parameter):
    """The option of the program, or the name in the table for a parameter that the program does not have."""
    return f"`--{parameter['option']}`" if parameter["option"] else f"{parameter['name']} (ITK, Python)"


def default_of(parameter):
    if parameter["required"]:
        return "required"
    default = parameter["default"]
    return f"`{default}`" if default not in (None, "") else ""


def row_of(parameter):
    return f"| {name_of(parameter)} | {cell(parameter['help'])} | {default_of(parameter)} | {range_of(parameter)} |"


TABLE = ["| Option | Meaning | Default | Allowed |", "|---|---|---|---|"]
OUTPUTS = {
    "input": "that of the input",
    "input-unless-signed": "that of the input; floating point for signed integers",
    "real": "floating point",
    "real-sum": "floating point",
    "sum": "64-bit integers, or `float64`",
    "label": "`uint32`",
    "class": "`uint8`",
}


def make_formulas(filters, formulas):
    missing = [each["name"] for each in filters if each["name"] not in formulas]
    extra = sorted(set(formulas) - {each["name"] for each in filters})
    if extra:
        print(f"docs/reference/formulas.toml: this program has no filter {', '.join(extra)}")
    if missing:
        sys.exit(f"docs/reference/formulas.toml: no formula for {', '.join(missing)}")
    uses = collections.Counter(json.dumps(each) for row in filters for each in row["parameters"])
    common = [json.loads(text) for text, count in uses.items() if count >= COMMON]
    lines = [HEAD, "# Formulas and parameters", "",
             "All filters, from the engine's own table: what each one computes, and its parameters. $x$ is the input, $y$ the output,",
             "$p$ and $q$ are voxels. $N(p)$ is the part of the window around $p$ that is inside the image, and inside the mask if",
             "there is one. So the formulas hold up to the edge: this is the boundary `renormalized`. For the other ones read $x$ as the",
             "[image continued beyond its edge](../concepts/boundary.md).", "",
             "Options are those of the program. In Python they are arguments, with `_` for `-`; ITK has setters:",
             "[all classes](../filters.md).", "", "## Parameters that many filters share", "", *TABLE, *map(row_of, common), ""]
    group = None
    for row in filters:
        if row["group"] != group:
            group = row["group"]
            lines += [f"## {group}", ""]
        entry = formulas[row["name"]]
        lines += [f"### {row['name']}", "", row["title"] + ".", "", f"$$ {entry['formula']} $$", ""]
        if "text" in entry:
            lines += [entry["text"], ""]
        own = [each for each in row["parameters"] if each not in common]
        shared = [name_of(each) for each in row["parameters"] if each in common]
        images = [f"| `--{each['option']}` (image) | {cell(each['help'])} | {'required' if each['required'] else ''} | |"
                  for each in row["inputs"]]
        if own or images:
            lines += [*TABLE, *map(row_of, own), *images, ""]
        if shared:
            lines += ["Shared: " + ", ".join(shared) + ".", ""]
        exact = "The same bits for any chunks." if row["promisesBits"] else "Exact, unless transforms or reduced precision are used."
        if row["name"] == "network":
            exact = "Bounded; the same bits with the precision `reproducible`."
        lines += [f"Output type: {OUTPUTS.get(row['output'], row['output'])}. {exact}", ""]
    return "\n".join(lines)


def make_commands(program, filters):
    def run(*arguments):
        done = subprocess.run([program, *arguments], capture_output=True, text=True, check=True, env={**os.environ, "COLUMNS": "120"})
        return "\n".join(line.rstrip() for line in done.stdout.strip("\n").splitlines())

    text = run("--help")
    subcommands = [line.split()[0] for line in text.splitlines() if line.startswith("  ") and not line.startswith("   ") and
                   not line.startswith("  -")]
    rows = {each["name"] for each in filters}
    lines = [HEAD, "# Commands", "", "```text", text, "```", "",
             "The options of a filter are those of [its parameters](formulas.md) and these, here those of `identity`:", "",
             "```text", run("identity", "--help"), "```", ""]
    for name in subcommands:
        if name not in rows:
            lines += [f"## {name}", "", "```text", run(name, "--help"), "```", ""]
    return "\n".join(lines)


def split_entries(text):
    """The docstring as pieces: entries such as "memory : optional" with what is indented below them, and other lines."""
    pieces = []
    for line in text.splitlines():
        indented = line.startswith("    ") and pieces and re.match(r"\w+ : ", pieces[-1])
        if indented:
            pieces[-1] += "\n" + line
        else:
            pieces.append(line)
    return pieces


def make_python(python, package):
    done = subprocess.run([python, "-c", DUMP], capture_output=True, text=True, check=False,
                          env={**os.environ, "PYTHONPATH": str(package), "PYTHONDONTWRITEBYTECODE": "1"})
    if done.returncode:
        sys.exit(done.stderr)
    found = json.loads(done.stdout)
    uses = collections.Counter(piece for _, _, _, text in found for piece in set(split_entries(text)) if "\n" in piece)
    common = [piece for piece, count in uses.items() if count >= COMMON and re.match(r"\w+ : ", piece)]
    # In the order of the docstrings, whatever the order of sets.
    places = {}
    for piece in (piece for _, _, _, text in found for piece in split_entries(text)):
        places.setdefault(piece, len(places))
    common.sort(key=places.get)
    lines = [HEAD, "# Python functions", "",
             "The docstrings of the package, which are made from the engine's table of filters. [The guide](../python.md) comes first.", "",
             "## Parameters that many functions share", "", "```text", *common, "```", ""]
    group = None
    for each, name, signature, text in found:
        if each != group:
            group = each
            lines += [f"## {group}", ""]
        own = "\n".join(piece for piece in split_entries(text) if piece not in common)
        shared = [piece.split(" : ")[0] for piece in split_entries(text) if piece in common]
        lines += [f"### {name}", "", "```text", name.rsplit(".", 1)[-1] + signature, "", own, "```", ""]
        if shared:
            lines += ["Shared: " + ", ".join(f"`{each}`" for each in shared) + ".", ""]
    return "\n".join(lines)


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    program, python, package = (pathlib.Path(each).absolute() for each in sys.argv[1:4])
    for path, what in ((program, "the program"), (python, "Python's environment"), (package / "chunkwise", "the Python package")):
        if not path.exists():
            print(f"Skipped: {what} is not at {path}")
            sys.exit(77)
    filters = json.loads(subprocess.run([program, "filters", "--json"], capture_output=True, text=True, check=True).stdout)
    formulas = tomllib.loads((FOLDER / "formulas.toml").read_text())
    pages = {"formulas.md": make_formulas(filters, formulas), "commands.md": make_commands(program, filters),
             "python.md": make_python(python, package)}
    stale = []
    for name, text in pages.items():
        if "--check" not in sys.argv:
            (FOLDER / name).write_text(text)
        elif not (FOLDER / name).exists() or (FOLDER / name).read_text() != text:
            stale.append(name)
    if stale:
        sys.exit(f"docs/reference: {', '.join(stale)} are not what scripts/make_reference.py makes")


if __name__ == "__main__":
    main()
