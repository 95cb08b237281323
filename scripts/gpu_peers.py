#!/usr/bin/env python3
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Times CuPy's filters on the device of chunkwise_gpu_benchmark, as that times ours: 512^3, device-resident.

The values, if there are any, are the names of the pixel kinds: float32, uint16."""

import math
import sys

from peer_report import PeerReport, parse_arguments

try:
    import cupy
    import numpy
    from cupyx.scipy import ndimage
except ImportError as error:
    print(f"no peers: {error}")
    sys.exit(0)

EXTENT = 512
REPEATS = 10


def median_ms(body):
    body()
    times = []
    for _ in range(REPEATS):
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        begin.record()
        body()
        end.record()
        end.synchronize()
        times.append(cupy.cuda.get_elapsed_time(begin, end))
    return sorted(times)[REPEATS // 2]


def standard_deviation(image, size, out):
    mean = ndimage.uniform_filter(image, size)
    squares = ndimage.uniform_filter(image * image, size)
    cupy.sqrt(cupy.maximum(squares - mean * mean, 0), out=out)


def turn(image, order, out):
    """About the center, by 0.2 about z after 0.1 about x."""
    about_z = [[math.cos(0.2), -math.sin(0.2), 0], [math.sin(0.2), math.cos(0.2), 0], [0, 0, 1]]
    about_x = [[1, 0, 0], [0, math.cos(0.1), -math.sin(0.1)], [0, math.sin(0.1), math.cos(0.1)]]
    matrix = (numpy.array(about_z) @ numpy.array(about_x))[::-1, ::-1]
    center = (numpy.array(image.shape) - 1) / 2
    matrix, offset = cupy.asarray(matrix), cupy.asarray(center - matrix @ center)
    return lambda: ndimage.affine_transform(image, matrix, offset, order=order, output=out)


def peers(image, out):
    return {
        "affine transform, linear": turn(image, 1, out),
        "affine transform, cubic B-spline": turn(image, 3, out),
        "mean, radius 2": lambda: ndimage.uniform_filter(image, 5, output=out),
        "mean, radius 15": lambda: ndimage.uniform_filter(image, 31, output=out),
        "Gaussian, sigma 2": lambda: ndimage.gaussian_filter(image, 2, truncate=4, output=out),
        "Gaussian, sigma 10": lambda: ndimage.gaussian_filter(image, 10, truncate=4, output=out),
        "standard deviation, radius 2": lambda: standard_deviation(image, 5, out),
        "maximum, radius 2": lambda: ndimage.maximum_filter(image, 5, output=out),
        "maximum, radius 15": lambda: ndimage.maximum_filter(image, 31, output=out),
        "opening, radius 2": lambda: ndimage.grey_opening(image, 5, output=out),
        "median, radius 1": lambda: ndimage.median_filter(image, 3, output=out),
        "median, radius 2": lambda: ndimage.median_filter(image, 5, output=out),
        "Laplacian of Gaussian, sigma 2": lambda: ndimage.gaussian_laplace(image, 2, truncate=4, output=out),
    }


def main():
    options = parse_arguments(__doc__, "kind")
    report = PeerReport(options.csv, cupy.cuda.runtime.getDeviceProperties(0)["name"].decode())
    noise = cupy.random.random((EXTENT, EXTENT, EXTENT), dtype=cupy.float32) * 1678
    # There is no entropy filter. Squares of 16-bit integers would overflow in the standard deviation.
    for kind, without in (("float32", ()), ("uint16", ("standard deviation, radius 2",))):
        if options.kind and kind not in options.kind:
            continue
        image = noise.astype(kind)
        out = cupy.empty_like(image)
        copy = median_ms(lambda: cupy.copyto(out, image))
        print(f"CuPy {cupy.__version__}, {EXTENT}^3 {image.dtype}, device-resident; device copy {copy:.3f} ms")
        for name, body in peers(image, out).items():
            if name not in without:
                capability = {"median": "rank", "affine": "resampling"}.get(name.split(",")[0].split()[0], "window")
                report.add(capability, f"{name}; {EXTENT}^3 {kind}", median_ms(body), "CuPy")


if __name__ == "__main__":
    main()
