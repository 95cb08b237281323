#!/usr/bin/env python3
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Times labels of connected components by CuPy, and by SciPy and cc3d on the CPU, of the images that
chunkwise_label_benchmark --images FOLDER left: the value is that folder. If it was called with --measure: times
measurements by CuPy and cuCIM, and by SciPy and scikit-image on the CPU. CHUNKWISE_PEERS=gpu leaves out the CPU's."""

import os
import sys
import time
from pathlib import Path

import numpy as np

from peer_report import PeerReport, parse_arguments


ON_CPU = os.environ.get("CHUNKWISE_PEERS") != "gpu"


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


def measure(report, folder):
    """Sums and means, and the default columns of chunkwise.measure under scikit-image's names."""
    try:
        import cupy
        from cupyx.scipy import ndimage as on_gpu
    except ImportError as error:
        cupy = None
        print(f"no CuPy: {error}")
    try:
        from cucim.skimage.measure import regionprops_table as cucim_table
    except ImportError as error:
        cucim_table = None
        print(f"no cuCIM: {error}")
    columns = ("label", "area", "bbox", "extent", "centroid", "equivalent_diameter_area", "inertia_tensor_eigvals",
               "axis_major_length", "axis_minor_length", "euler_number", "intensity_mean", "intensity_std", "intensity_min",
               "intensity_max", "centroid_weighted")
    for file in sorted(Path(folder).glob("*_labels.raw")):
        stem = file.name.removesuffix("_labels.raw")
        name, kind = stem.rsplit("_", 1)
        labels = np.fromfile(file, np.uint32)
        extent = round(len(labels) ** (1 / 3))
        labels = labels.reshape((extent,) * 3).astype(np.int32)
        values = np.fromfile(file.with_name(stem + "_values.raw"), kind).reshape(labels.shape)
        what = f"{name.replace('_', ' ')}; {extent}^3 uint32, {kind}"
        index = np.arange(1, labels.max() + 1)

        def both(module, image, of, which):
            module.sum_labels(image, of, which)
            module.mean(image, of, which)

        if cupy is not None:
            there, image, which = cupy.asarray(labels), cupy.asarray(values), cupy.asarray(index)

            def wait(body):
                body()
                cupy.cuda.Device().synchronize()

            wait(lambda: both(on_gpu, image, there, which))
            row = f"sums and means of labels, {what}"
            report.add("objects", row, best_ms(lambda: wait(lambda: both(on_gpu, image, there, which))), "CuPy")
            if cucim_table is not None:
                for chosen in (columns, tuple(each for each in columns if each != "euler_number")):
                    try:
                        wait(lambda: cucim_table(there, image, properties=chosen))
                        report.add("objects", f"table of measurements, {what}",
                                   best_ms(lambda: wait(lambda: cucim_table(there, image, properties=chosen))), "cuCIM",
                                   "" if "euler_number" in chosen else "without Euler numbers")
                        break
                    except Exception as error:  # not all columns of all versions are there in space
                        print(f"cuCIM: {error}")
        if not ON_CPU:
            continue
        from scipy import ndimage

        report.add("objects", f"sums and means of labels, {what}, CPU", best_ms(lambda: both(ndimage, values, labels, index), 1),
                   "SciPy")


def main():
    options = parse_arguments(__doc__, "folder")
    report = PeerReport(options.csv, "")
    for folder in options.folder or sys.exit("label_peers.py: the folder of the images is missing"):
        if list(Path(folder).glob("*_labels.raw")):
            measure(report, folder)
            continue
        for file in sorted(Path(folder).glob("*.raw")):
            voxels = np.fromfile(file, np.uint8)
            extent = round(len(voxels) ** (1 / 3))
            image = voxels.reshape((extent,) * 3)
            for connectivity, name in ((1, "faces"), (3, "corners")):
                structure = np.sum(np.abs(np.indices((3, 3, 3)) - 1), axis=0) <= connectivity
                row = f"label, {name}, {file.stem.removesuffix('_uint8').replace('_', ' ')}; {extent}^3 uint8"
                on_device(report, row, image, structure)
                if ON_CPU:
                    on_cpu(report, row, image, connectivity, structure)


if __name__ == "__main__":
    main()
