#!/usr/bin/env python3
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Makes the pictures of docs/gallery.md: make_gallery.py PROGRAM [TEMPLATES]. Runs the page's commands on the head ch2 (Debian's
mricron-data) and draws a slice before and after each of them. Needs NumPy and Matplotlib."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import matplotlib
import numpy as np

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

DOCS = pathlib.Path(__file__).resolve().parent.parent / "docs"
SLICE = 80
# Name: colors, least and largest value shown.
COLORS = {"log": ("RdBu", -12, 12), "std": ("gray", 0, 40), "range": ("gray", 0, 120), "domes": ("gray", 0, 40),
          "classes": ("viridis", 0, 3), "objects": ("tab10", 0, 9)}


def read(path):
    header, voxels = path.read_bytes().split(b"ElementDataFile = LOCAL\n", 1)
    fields = dict(line.split(" = ", 1) for line in header.decode().splitlines())
    kind = {"MET_FLOAT": "<f4", "MET_UCHAR": "u1", "MET_UINT": "<u4"}[fields["ElementType"]]
    return np.frombuffer(voxels, kind).reshape([int(n) for n in fields["DimSize"].split()][::-1])[SLICE, ::-1].astype(float)


def main():
    program = pathlib.Path(sys.argv[1]).absolute()
    templates = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else "/usr/share/mricron/templates")
    page = (DOCS / "gallery.md").read_text()
    pictures = DOCS / "gallery"
    pictures.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "head.nii.gz").write_bytes((templates / "ch2.nii.gz").read_bytes())
        environment = {**os.environ, "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}"}
        subprocess.run([program, "identity", folder / "head.nii.gz", folder / "head.mha", "--quiet"], check=True)
        head = read(folder / "head.mha")
        for commands, name in re.findall(r"```sh\n(.*?)```\n\n!\[.*?\]\(gallery/(\w+)\.png\)", page, re.DOTALL):
            subprocess.run(["sh", "-eu", "-c", commands], cwd=folder, env=environment, check=True)
            after = read(folder / f"{name}.mha")
            colors, least, most = COLORS.get(name, ("gray", 0, 160))
            if name == "objects":
                after = np.where(after > 0, after % 10, np.nan)
            figure, axes = plt.subplots(1, 2, figsize=(6.4, 3.8), facecolor="white")
            for axis, (voxels, shade, low, high) in zip(axes, ((head, "gray", 0, 160), (after, colors, least, most))):
                axis.imshow(voxels, cmap=shade, vmin=low, vmax=high, interpolation="nearest")
                axis.set_axis_off()
            figure.subplots_adjust(0.01, 0.01, 0.99, 0.99, 0.02)
            figure.savefig(pictures / f"{name}.png", dpi=64)
            plt.close(figure)


if __name__ == "__main__":
    main()
