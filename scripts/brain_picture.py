#!/usr/bin/env python3
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Makes docs/brain.png: brain_picture.py PROGRAM [TEMPLATES]. The brain that the example's network finds in the head ch2
(Debian's mricron-data), beside that of ch2bet. Needs NumPy and Matplotlib."""
import subprocess
import sys
import tempfile
from pathlib import Path

from mask_picture import plt, read

ROOT = Path(__file__).resolve().parent.parent
SLICES = (("axial", 0, 90), ("coronal", 1, 100), ("sagittal", 2, 85))


def main():
    program = sys.argv[1]
    templates = Path(sys.argv[2] if len(sys.argv) > 2 else "/usr/share/mricron/templates")
    head = templates / "ch2.nii.gz"
    with tempfile.TemporaryDirectory() as folder:
        def run(name, *words):
            out = Path(folder) / "out.mha"
            subprocess.run([program, name, *words, out, "--quiet"], check=True)
            return read(out)
        image, other = run("identity", head), run("identity", templates / "ch2bet.nii.gz") > 0
        out = Path(folder) / "brain.mha"
        subprocess.run([program, "network", ROOT / "examples/network/brain.onnx", head, out, "--result", "argmax",
                        "--input-scale", repr(1 / 255), "--output-type", "uint8", "--quiet"], check=True)
        brain = read(out) > 0
    figure, axes = plt.subplots(1, 3, figsize=(9, 3.4), facecolor="white")
    for axes_of_slice, (title, axis, index) in zip(axes, SLICES):
        part = (slice(None),) * axis + (index,)
        # The y axis goes up on a page, as z and y do in the head.
        axes_of_slice.imshow(image[part], cmap="gray", origin="lower", interpolation="nearest")
        axes_of_slice.contour(other[part], [0.5], colors="#0072B2", linewidths=0.9)
        axes_of_slice.contour(brain[part], [0.5], colors="#E69F00", linewidths=0.9)
        axes_of_slice.set_title(f"{title} slice {index}", fontsize=10)
        axes_of_slice.set_axis_off()
    dice = 2 * (brain & other).sum() / (brain.sum() + other.sum())
    figure.text(0.5, 0.02, f"orange: chunkwise network brain.onnx; blue: ch2bet; Dice {dice:.3f}", ha="center", fontsize=9)
    figure.tight_layout(rect=(0, 0.06, 1, 1))
    figure.savefig(ROOT / "docs" / "brain.png", dpi=80)


if __name__ == "__main__":
    main()
