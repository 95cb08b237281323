#!/usr/bin/env python3
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Builds the extension over an engine that is built already, and runs the tests: run.py BUILD_DIR WORK_DIR [more
packages] [-- pytest's arguments]. Everything goes below WORK_DIR. Ends with 77, which is "skipped", where this Python is
too old, has no headers, or PyPI cannot be reached."""
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parent
PLUGIN = SOURCE / "napari-chunkwise"
SKIPPED = 77


def skip(reason):
    print("skipped:", reason)
    sys.exit(SKIPPED)


def call(*command, **options):
    result = subprocess.run([str(each) for each in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            **options)
    return result.returncode, result.stdout.strip()


def must(*command):
    status, text = call(*command)
    if status != 0:
        print(text)
        sys.exit("failed: " + " ".join(map(str, command)))


def make_environment(folder, packages):
    """An environment with the packages; made once for the same ones."""
    requirements = HERE / "requirements.txt"
    wanted = hashlib.sha256((requirements.read_text() + sys.version + " ".join(packages)).encode()).hexdigest()
    python, made = folder / "bin" / "python3", folder / "made-for"
    if not made.exists() or made.read_text() != wanted:
        for command in ((sys.executable, "-m", "venv", "--clear", folder),
                        (python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--retries", "1", "--timeout",
                         "20", "-r", requirements, *packages)):
            status, text = call(*command)
            if status != 0:
                skip("no Python environment could be made: " + (text.splitlines() or ["no reason given"])[-1])
        made.write_text(wanted)
    return python


def main():
    arguments = sys.argv[1:]
    forPytest = arguments[arguments.index("--") + 1:] if "--" in arguments else []
    arguments = arguments[:arguments.index("--")] if "--" in arguments else arguments
    build, work, packages = Path(arguments[0]).resolve(), Path(arguments[1]).resolve(), arguments[2:]
    if sys.version_info < (3, 11):
        skip("Python " + sys.version.split()[0] + " is older than 3.11")
    if not (Path(sysconfig.get_path("include")) / "Python.h").exists():
        skip("Python's headers are not here (Debian: python3-dev)")
    work.mkdir(parents=True, exist_ok=True)
    python = make_environment(work / "environment", packages)

    prefix, extension, package = work / "prefix", work / "extension", work / "package"
    shutil.rmtree(prefix, ignore_errors=True)
    must("cmake", "--install", build, "--prefix", prefix)
    must("cmake", "-S", SOURCE, "-B", extension, f"-DCMAKE_PREFIX_PATH={prefix}", f"-DPython_EXECUTABLE={python}",
         "-DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF")
    must("cmake", "--build", extension)
    shutil.rmtree(package, ignore_errors=True)
    shutil.copytree(SOURCE / "chunkwise", package / "chunkwise", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    for module in extension.glob("_core*.so"):
        shutil.copy(module, package / "chunkwise")

    environment = {**os.environ, "PYTHONPATH": str(package), "CHUNKWISE_PYTHON_PACKAGE": str(package / "chunkwise"),
                   "PYTHONDONTWRITEBYTECODE": "1"}
    program = prefix / "bin" / "chunkwise"
    if program.exists():
        environment["CHUNKWISE_PROGRAM"] = str(program)
    folders = [[HERE, PLUGIN / "tests"]]
    if "napari" in packages:
        plugin = work / "plugin"
        shutil.rmtree(plugin, ignore_errors=True)
        must(python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps", "--target", plugin, PLUGIN)
        environment["PYTHONPATH"] += os.pathsep + str(plugin)
        # Qt runs in a separate process: others fork.
        folders = [[HERE], [PLUGIN / "tests"]]
    status = [subprocess.run([str(python), "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "-c",
                              str(SOURCE.parent / "pyproject.toml"), *map(str, each), *forPytest], env=environment,
                             cwd=work).returncode for each in folders]
    if os.environ.get("CHUNKWISE_TEST_EXHAUSTIVE"):
        calls = [["run_scipy_tests.py", "--limit", "3", package] for package in ("scipy.ndimage", "skimage", "dask_image")]
        for name, *arguments in (*calls, ["fuzz_ndimage.py", "--cases", "10000"]):
            found = subprocess.run([str(python), str(HERE / name), *arguments], env=environment, cwd=work).returncode
            status.append(0 if found == SKIPPED else found)
    sys.exit(max(status))


if __name__ == "__main__":
    main()
