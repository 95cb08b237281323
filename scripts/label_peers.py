#!/usr/bin/env python3
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Times labels of connected components by CuPy, and by SciPy and cc3d on the CPU, of the images that
chunkwise_label_benchmark --images FOLDER left: the value is that folder."""

import sys
import time
from pathlib import Path

import numpy as np

from peer_report import PeerReport, parse_arguments


def best_ms(body, repeats=3):
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        body()
        times.append(1e3 * (time.perf_counter() - begin))
    return min(times)


def on_device(report, row, image, structure):
    try:
        import cupy
        from cupyx.scipy import ndimage
    except ImportError as error:
        print(f"no CuPy: {error}")
        return
    there = cupy.asarray(image)
    out = cupy.empty(image.shape, cupy.int32)

    def label():
        ndimage.label(there, structure, output=out)
        cupy.cuda.Device().synchronize()

    label()
    report.add("objects", row, best_ms(label), "CuPy")


def on_cpu(report, row, image, connectivity, structure):
    try:
        from scipy import ndimage
    except ImportError as error:
        print(f"no SciPy: {error}")
        return
    report.add("objects", row + ", CPU", best_ms(lambda: ndimage.label(image, structure, np.int32), 1), "SciPy")
    try:
        import cc3d
    except ImportError:
        return
    neighbors = {1: 6, 3: 26}[connectivity]
    report.add("objects", row + ", CPU", best_ms(lambda: cc3d.connected_components(image, connectivity=neighbors)), "cc3d")


def main():
    options = parse_arguments(__doc__, "folder")
    report = PeerReport(options.csv, "")
    for folder in options.folder or sys.exit("label_peers.py: the folder of the images is missing"):
        for file in sorted(Path(folder).glob("*.raw")):
            voxels = np.fromfile(file, np.uint8)
            extent = round(len(voxels) ** (1 / 3))
            image = voxels.reshape((extent,) * 3)
            for connectivity, name in ((1, "faces"), (3, "corners")):
                structure = np.sum(np.abs(np.indices((3, 3, 3)) - 1), axis=0) <= connectivity
                row = f"label, {name}, {file.stem.removesuffix('_uint8').replace('_', ' ')}; {extent}^3 uint8"
                on_device(report, row, image, structure)
                on_cpu(report, row, image, connectivity, structure)


if __name__ == "__main__":
    main()
