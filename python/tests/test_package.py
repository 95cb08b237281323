# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""The package's description of itself: signatures, docstrings, stubs, types, the command line, the packages that an
import loads."""
import ast
import builtins
import doctest
import importlib
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import make_image

import chunkwise
from chunkwise import _core, _table, filters

HERE = Path(__file__).resolve().parent
ROWS = list(_table.ROWS.values())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_each_row_is_a_function_and_a_class(row):
    function, made = getattr(chunkwise, row.name), getattr(filters, row.class_name)
    parameters = inspect.signature(function).parameters
    for each in row.parameters.values():
        default = parameters[each.name].default
        assert default is inspect.Parameter.empty if each.required else default == each.default
        assert f"\n{each.name} : " in function.__doc__ and f"\n{each.name} : " in made.__doc__
    engine = {each["name"]: each for each in _core.filters()}[row.engine]
    assert len(engine["parameters"]) == len(row.parameters) + row.uses_spacing
    # No star hides what is Python's own.
    assert (row.name in chunkwise.__all__) != hasattr(builtins, row.name) and row.class_name in filters.__all__


@pytest.mark.parametrize("row", [row for row in ROWS if row.engine != "network"], ids=lambda row: row.name)
def test_each_row_has_an_example_that_runs(row):
    function = getattr(chunkwise, row.name)
    [example] = doctest.DocTestFinder(recurse=False).find(function, row.name, globs={})
    results = doctest.DocTestRunner().run(example)
    assert results.failed == 0 and results.attempted == 4


@pytest.mark.parametrize("name", ["chunkwise", "chunkwise.filters", "chunkwise.ndimage", "chunkwise.skimage", "chunkwise._measure",
                                  "chunkwise._parts", "chunkwise._statistics", "chunkwise.zarr"])
@pytest.mark.filterwarnings("ignore")
def test_modules_have_examples_that_run(name):
    if name.endswith(".zarr"):
        pytest.importorskip("zarr")
    results = doctest.testmod(importlib.import_module(name))
    assert results.failed == 0 and results.attempted > 0


def test_the_readme_is_true():
    results = doctest.testfile(str(HERE.parent / "README.md"), module_relative=False)
    assert results.failed == 0 and results.attempted > 8


def test_stubs_are_those_of_the_table():
    made = subprocess.run([sys.executable, str(HERE.parent / "make_stubs.py"), "--check"], capture_output=True, text=True,
                          check=False)
    assert made.returncode == 0, made.stdout + made.stderr


def mypy(*arguments):
    pytest.importorskip("mypy")
    return subprocess.run([sys.executable, "-m", "mypy", "--no-error-summary", *arguments],
                          capture_output=True, text=True, check=False)


def test_the_packages_types():
    pytest.importorskip("zarr")
    found = mypy("--config-file", str(HERE.parents[1] / "pyproject.toml"), os.environ.get("CHUNKWISE_PYTHON_PACKAGE") or
                 str(HERE.parent / "chunkwise"))
    assert found.returncode == 0, found.stdout


def test_a_users_types():
    found = mypy("--strict", str(HERE / "typing" / "user.py"))
    assert found.returncode == 0, found.stdout
    wrong = mypy("--strict", str(HERE / "typing" / "wrong.py")).stdout.splitlines()
    expected = [i + 1 for i, line in enumerate((HERE / "typing" / "wrong.py").read_text().splitlines())
                if line.endswith("# wrong")]
    assert sorted({int(line.split(":")[1]) for line in wrong if ": error:" in line}) == expected, wrong


def find_circles(folder):
    """Modules that import each other, wherever in a file and for whatever reason."""
    imports = {}
    for file in folder.glob("*.py"):
        found = imports[file.stem] = set()
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and node.level == 1:
                found |= {node.module} if node.module else {each.name for each in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module == "chunkwise":
                found |= {each.name for each in node.names}
            elif isinstance(node, ast.Import):
                found |= {(each.name.split(".") + ["__init__"])[1] for each in node.names
                          if each.name.split(".")[0] == "chunkwise"}
    # "from . import name" of what is no module means the package itself.
    imports = {name: {each if each in imports else "__init__" for each in found - {"_core"}}
               for name, found in imports.items()}
    # A module that imports nothing, or that nothing imports, is in no circle.
    while True:
        imported = set().union(*imports.values())
        left = {name: found & set(imports) for name, found in imports.items() if found & set(imports) and name in imported}
        if left == imports:
            return sorted(imports)
        imports = left


def test_no_module_imports_one_that_imports_it(tmp_path):
    assert find_circles(HERE.parent / "chunkwise") == []
    for name, text in (("a", "from . import _core\nfrom .b import x"), ("b", "def f():\n    from .c import y"),
                       ("c", "from . import a"), ("d", "from .a import z")):
        (tmp_path / f"{name}.py").write_text(text)
    assert find_circles(tmp_path) == ["a", "b", "c"]


def test_an_import_takes_no_other_package():
    code = "import sys, numpy; before = set(sys.modules); import chunkwise; print(*set(sys.modules) - before)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    others = {each.partition(".")[0] for each in loaded}
    assert not others & {"zarr", "dask", "xarray", "torch", "itk", "SimpleITK", "scipy", "tqdm"}


def test_the_command_line(random, tmp_path):
    zarr = pytest.importorskip("zarr")
    if not hasattr(zarr, "create_array"):
        pytest.skip("zarr-python 3 is not here")
    image = make_image(random, (20, 21, 22), "uint8")
    source = zarr.create_array(str(tmp_path / "in.zarr"), shape=image.shape, chunks=(8, 8, 8), dtype="u1")
    source[...] = image

    def call(*arguments):
        return subprocess.run([sys.executable, "-m", "chunkwise", *arguments], capture_output=True, text=True, check=False)

    paths = [str(tmp_path / "in.zarr"), str(tmp_path / "out.zarr")]
    done = call("gaussian", *paths, "--sigma", "1,2,0.5", "--mode", "reflect", "--memory", "1G")
    assert done.returncode == 0, done.stderr
    expected = chunkwise.gaussian(image, (1, 2, 0.5), mode="reflect")
    assert np.array_equal(zarr.open(paths[1], mode="r")[...], expected)
    assert call("gaussian", *paths, "--sigma", "1").returncode == 2
    done = call("entropy", *paths, "--radius", "1", "--range", "0,100", "--overwrite", "--quiet")
    assert done.returncode == 0 and done.stderr == ""
    assert np.array_equal(zarr.open(paths[1], mode="r")[...], chunkwise.entropy(image, 1, range=(0, 100)))
    failed = call("mean", *paths, "--radius", "-1", "--overwrite")
    assert failed.returncode == 2
    assert call("devices").returncode == 0


def test_the_same_bits_as_the_program(random, tmp_path):
    program = os.environ.get("CHUNKWISE_PROGRAM")
    if not program:
        pytest.skip("CHUNKWISE_PROGRAM does not name the program")
    image = make_image(random, (11, 12, 13), "uint8")
    image.tofile(tmp_path / "in.raw")
    (tmp_path / "in.mhd").write_text("NDims = 3\nDimSize = 13 12 11\nElementType = MET_UCHAR\nElementDataFile = in.raw\n")
    checked = 0
    for row in ROWS:
        if any(each.required for each in row.inputs) or row.engine == "network" or any(
                each.type == "kernel" for each in row.parameters.values()):
            continue
        given = {each.name: {"integer": 2, "integers": 2, "reals": 1.5, "real": 0.75, "value": 9, "choice": each.default}[each.type]
                 for each in row.positional}
        if row.engine == "permute-axes":
            given = dict.fromkeys(given, (2, 1, 0))
        options = []
        for each in row.positional:
            option = next(o["option"] for f in _core.filters() if f["name"] == row.engine for o in f["parameters"]
                          if o["name"] == each.engine)
            if not option:
                given.pop(each.name)
            else:
                options += ["--" + option, re.sub(r"[() ]", "", str(given[each.name]))]
        if row.engine in ("derivative", "hessian", "structure-tensor", "divergence", "curvature"):
            given["sigma"] = 1.5
            options += ["--sigma", "1.5"]
        if row.engine == "divergence":
            given["of_gradient"] = True
            options += ["--of-gradient"]
        subprocess.run([program, row.engine, str(tmp_path / "in.mhd"), str(tmp_path / "out.mhd"), "--quiet", *options],
                       check=True)
        result = getattr(filters, row.class_name)(**given)(image)
        theirs = np.fromfile(tmp_path / "out.raw", result.dtype).reshape(result.shape)
        assert np.array_equal(result, theirs), row.engine
        checked += 1
    assert checked > 25
