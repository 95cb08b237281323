#!/usr/bin/env python3
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Runs the shell and Python blocks of documentation pages, and compiles their C++ blocks.

    run_snippets.py PROGRAM PYTHON PACKAGE [PAGE...]
    run_snippets.py --compile COMPILER [ARGUMENTS...]

PROGRAM is the program chunkwise, PYTHON an interpreter with NumPy, Dask and Zarr, PACKAGE the folder that has the package
chunkwise. Without pages: README.md and all pages of docs but those of docs/reference, which are made.

The blocks of a page run in order in one empty folder: shell blocks by bash, which stops at the first error, Python blocks in one
interpreter. Comments of the page control them:

    <!-- with: in.nii.gz cells.tif -->   makes these images in the folder (see IMAGES)
    <!-- run: COMMAND -->                runs a line of the shell that the page does not show
    <!-- run python: STATEMENTS -->      runs a line of Python that the page does not show
    <!-- run cpp: STATEMENTS -->         statements before the next C++ block that the page does not show
    <!-- not run: REASON -->             leaves the next block out; the reason is printed

The C++ blocks of all pages are the bodies of functions in one source, with the headers of the classes that they name.

Exits with 77 if the program or the package is missing.
"""
import array
import json
import math
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
SECONDS = 120
# Runs blocks in one namespace. Each request and each answer is a line of JSON.
DRIVER = """
import contextlib, io, json, sys, traceback
names, requests, answers = {"__name__": "__main__"}, sys.stdin, sys.stdout
for line in requests:
    shown, error = io.StringIO(), ""
    with contextlib.redirect_stdout(shown):
        try:
            exec(compile(json.loads(line), "<block>", "exec"), names)
        except BaseException:
            error = traceback.format_exc()
    print(json.dumps([shown.getvalue(), error]), file=answers, flush=True)
"""


def spheres(size, count, radius, seed):
    """Bright balls on a dark, noisy background, as 8-bit voxels."""
    chance = random.Random(seed)
    centers = [[chance.uniform(radius, extent - radius) for extent in size] for _ in range(count)]
    voxels = array.array("B", (chance.randrange(20, 40) for _ in range(math.prod(size))))
    for center in centers:
        low = [max(0, int(c - radius)) for c in center]
        high = [min(extent, int(c + radius) + 2) for c, extent in zip(center, size)]
        for z in range(low[2], high[2]):
            for y in range(low[1], high[1]):
                for x in range(low[0], high[0]):
                    if math.dist((x, y, z), center) <= radius:
                        voxels[x + size[0] * (y + size[1] * z)] = chance.randrange(150, 200)
    return voxels


# Name: size, number of balls, their radius. OTHERS is for all other names.
OTHERS = ((40, 36, 32), 8, 7)
IMAGES = {
    "in.nii.gz": ((64, 64, 48), 12, 9),
    "in.mha": ((64, 64, 48), 12, 9),
    "cells.tif": ((96, 96, 24), 20, 6),
    "scan.raw": ((64, 48, 32), 6, 8),
    # Planes.
    "slide.tif": ((64, 64, 1), 6, 6),
    "gel.tif": ((64, 64, 1), 6, 6),
    "fingers.tif": ((64, 64, 1), 6, 6),
}

# Images of other packages; pages that need one that is missing do not run, and say so.
FOUND = {"head.nii.gz": pathlib.Path("/usr/share/mricron/templates/ch2.nii.gz")}


def make_image(program, folder, name):
    if name in FOUND:
        (folder / name).symlink_to(FOUND[name])
        return
    size, count, radius = IMAGES.get(name, OTHERS)
    voxels = spheres(size, count, radius, seed=len(name))
    if name.endswith(".raw"):
        (folder / name).write_bytes(voxels.tobytes())
        return
    with tempfile.TemporaryDirectory() as other:
        plain = pathlib.Path(other) / "image.mha"
        header = (f"ObjectType = Image\nNDims = 3\nDimSize = {size[0]} {size[1]} {size[2]}\nElementSpacing = 0.5 0.5 1\n"
                  "ElementType = MET_UCHAR\nElementDataFile = LOCAL\n")
        plain.write_bytes(header.encode() + voxels.tobytes())
        subprocess.run([program, "identity", plain, folder / name, "--quiet"], check=True)


def read_page(path):
    """The page's images and its blocks: (line, language, text, why it is not run or None)."""
    lines = path.read_text().splitlines()
    images, blocks, reason, number = [], [], None, 0
    while number < len(lines):
        line = lines[number]
        number += 1
        comment = re.fullmatch(r"\s*<!-- (with|run|run python|run cpp|not run): (.+) -->", line)
        if comment and comment[1] == "with":
            images += comment[2].split()
        elif comment and comment[1].startswith("run"):
            blocks.append((number, comment[1][4:] or "sh", comment[2] + "\n", None))
        elif comment:
            reason = comment[2]
        fence = re.match(r"(\s*)(```+)(\w*)", line)
        if not fence:
            continue
        first, text = number, []
        while lines[number].strip() != fence[2]:
            text.append(lines[number][len(fence[1]):])
            number += 1
        number += 1
        if fence[3] in ("sh", "bash", "python", "cpp"):
            blocks.append((first, fence[3], "\n".join(text) + "\n", reason))
        elif reason:
            sys.exit(f"{path}:{first}: 'not run' is followed by a block of '{fence[3]}', which never runs")
        reason = None
    return images, blocks


class Interpreter:
    """A process that runs Python blocks one after the other."""

    def __init__(self, python, folder, environment):
        self.process = subprocess.Popen([python, "-c", DRIVER], cwd=folder, env=environment, text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)

    def run(self, text):
        print(json.dumps(text), file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        return json.loads(answer) if answer else ["", "the interpreter ended"]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def run_page(path, program, python, package):
    """Runs a page's blocks; returns how many ran and how many did not, and prints why. Ends at the first that fails."""
    images, blocks = read_page(path)
    ran = left = 0
    name = path.relative_to(ROOT)
    missing = [str(FOUND[each]) for each in images if each in FOUND and not FOUND[each].exists()]
    if missing:
        print(f"  {name}: not run: {', '.join(missing)} is not here (Debian: mricron-data)")
        return 0, len(blocks)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for image in images:
            make_image(program, folder, image)
        environment = {**os.environ, "HOME": str(folder), "PYTHONPATH": str(package), "PYTHONDONTWRITEBYTECODE": "1", "CHUNKWISE_SOURCE": str(ROOT),
                       "PATH": os.pathsep.join([str(program.parent), str(python.parent), os.environ["PATH"]])}
        interpreter = Interpreter(python, folder, environment)
        for line, language, text, reason in blocks:
            if language == "cpp":
                continue
            if reason:
                print(f"  {name}:{line}: not run: {reason}")
                left += 1
                continue
            if language == "python":
                shown, error = interpreter.run(text)
            else:
                done = subprocess.run(["bash", "-eu", "-o", "pipefail", "-c", text], cwd=folder, env=environment, text=True,
                                      stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS, check=False)
                shown, error = done.stdout, done.stderr if done.returncode else ""
                error = error or (f"exit status {done.returncode}" if done.returncode else "")
            if error:
                sys.exit(f"{name}:{line}: this block fails:\n{text}\n{shown}{error}")
            if os.environ.get("CHUNKWISE_TEST_VERBOSE"):
                print(f"  {name}:{line}\n{shown}")
            ran += 1
        interpreter.close()
    return ran, left


def all_pages():
    """The README and all pages with blocks that were written by hand."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [page for page in pages if page.parent.name != "reference" and read_page(page)[1]]


def make_source(pages):
    """One C++ source with the blocks of all pages, and how many blocks it has."""
    headers, functions, before = set(), [], ""
    for page in pages:
        for line, language, text, reason in read_page(page)[1]:
            if language != "cpp" or reason:
                continue
            if text.count("\n") == 1:
                before += text
                continue
            lines = text.splitlines()
            headers.update(each.split('"')[1] for each in lines if each.startswith("#include"))
            headers.update(f"itk{name}.h" for name in re.findall(r"\bitk::(\w+)", before + text)
                           if (ROOT / f"include/itk{name}.h").exists())
            headers.update(re.findall(r"// (chunkwise\w+\.h)", text))
            body = "\n".join("" if each.startswith("#include") else each for each in lines)
            place = f'#line {line + 1} "{page}"\n'
            function = f"{place}{body}\n" if "main(" in body else f"void Block(char * argv[])\n{{\n{before}{place}{body}\n}}\n"
            functions.append(f"namespace block{len(functions)} {{\n{function}}}\n")
            before = ""
    includes = "".join(f'#include "{each}"\n' for each in ("itkImageFileReader.h", "itkImageFileWriter.h", *sorted(headers)))
    return includes + "using namespace chunkwise;\n" + "".join(functions), len(functions)


def compile_blocks(command):
    source, count = make_source(all_pages())
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "blocks.cxx"
        path.write_text(source)
        if subprocess.run([*command, "-w", "-fsyntax-only", path], check=False).returncode:
            sys.exit("A block does not compile.")
    print(f"{count} blocks of C++ compile.")
    if not count:
        sys.exit("no block was found")


def main():
    if sys.argv[1:2] == ["--compile"]:
        compile_blocks(sys.argv[2:])
        return
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    # Not resolved: an environment's interpreter is a link to one without its packages.
    program, python, package = (pathlib.Path(each).absolute() for each in sys.argv[1:4])
    for path, what in ((program, "the program"), (python, "Python's environment"), (package / "chunkwise", "the Python package")):
        if not path.exists():
            print(f"Skipped: {what} is not at {path}")
            sys.exit(77)
    pages = [pathlib.Path(each).resolve() for each in sys.argv[4:]] or all_pages()
    ran = left = 0
    for page in pages:
        counts = run_page(page, program, python, package)
        print(f"{page.relative_to(ROOT)}: {counts[0]} blocks ran, {counts[1]} did not")
        ran, left = ran + counts[0], left + counts[1]
    print(f"{ran} blocks of {len(pages)} pages ran, {left} did not, for the reasons above.")
    if not ran:
        sys.exit("no block ran")


if __name__ == "__main__":
    main()
