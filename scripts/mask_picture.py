#!/usr/bin/env python3
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Makes docs/mask.png: mask_picture.py PROGRAM [TEMPLATES]. A Gaussian of the head ch2 (Debian's mricron-data), over all of
it and inside the brain ch2bet alone. Needs NumPy and Matplotlib."""
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

SLICE, SIGMA = 90, 4


def read(path):
    content = Path(path).read_bytes()
    header, voxels = content.split(b"ElementDataFile = LOCAL\n", 1)
    fields = dict(line.split(" = ", 1) for line in header.decode().splitlines())
    kind = {"MET_FLOAT": "<f4", "MET_UCHAR": "u1"}[fields["ElementType"]]
    return np.frombuffer(voxels, kind).reshape([int(n) for n in fields["DimSize"].split()][::-1])


def main():
    program = sys.argv[1]
    templates = Path(sys.argv[2] if len(sys.argv) > 2 else "/usr/share/mricron/templates")
    head, brain = templates / "ch2.nii.gz", templates / "ch2bet.nii.gz"
    with tempfile.TemporaryDirectory() as folder:
        def run(name, *words):
            out = Path(folder) / "out.mha"
            subprocess.run([program, name, *map(str, words[:1]), str(out), *map(str, words[1:])], check=True)
            return read(out)[SLICE, ::-1].astype(float)
        gaussian = ("--sigma", SIGMA, "--output-type", "float32")
        image, mask = run("identity", head), run("identity", brain) > 0
        whole, inside = run("gaussian", head, *gaussian), run("gaussian", head, *gaussian, "--mask", brain)
    figure, axes = plt.subplots(1, 4, figsize=(12, 4), facecolor="white")
    difference = np.where(mask, whole - inside, np.nan)
    panels = ((image, "ch2, outline of ch2bet", "gray", 0, 200), (np.where(mask, whole, np.nan), "Gaussian, sigma 4 mm", "gray", 0, 200),
              (np.where(mask, inside, np.nan), "the same in the mask", "gray", 0, 200), (difference, "the first minus the second", "RdBu", -40, 40))
    for axis, (voxels, title, colors, least, most) in zip(axes, panels):
        shown = axis.imshow(voxels, cmap=colors, vmin=least, vmax=most, interpolation="nearest")
        axis.set_title(title, fontsize=10)
        axis.set_axis_off()
    axes[0].contour(mask, [0.5], colors="orange", linewidths=0.8)
    figure.colorbar(shown, ax=axes[3], fraction=0.05)
    figure.tight_layout()
    figure.savefig(Path(__file__).resolve().parent.parent / "docs" / "mask.png", dpi=80)
    edge = mask & ~np.all([np.roll(mask, shift, axis) for axis in (0, 1) for shift in (-2, 2)], axis=0)
    print(f"slice {SLICE}: mean absolute difference {np.nanmean(np.abs(difference[mask])):.2f} in the brain, "
          f"{np.mean(np.abs(difference[edge])):.2f} within 2 voxels of its edge, of a mean of {image[mask].mean():.1f}")


if __name__ == "__main__":
    main()
