#!/usr/bin/env python3
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Times filters of CuPy and cuCIM on the device of chunkwise_gpu_benchmark, as that times ours: 512^3, derivatives of
256^3 too, device-resident.

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

try:
    from cucim.skimage import feature, filters
except ImportError:
    feature = filters = None

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


def hessian_eigenvalues(image):
    return feature.hessian_matrix_eigvals(feature.hessian_matrix(image, sigma=2, order="rc"))


def derivative_peers(image):
    """The peers' names, with what they compute."""
    bodies = {"gradient magnitude, sigma 2": ("CuPy", lambda: ndimage.gaussian_gradient_magnitude(image, 2, truncate=4))}
    if feature:
        bodies["Hessian eigenvalues, sigma 2"] = ("cuCIM", lambda: hessian_eigenvalues(image))
        bodies["Frangi, sigma 2"] = ("cuCIM", lambda: filters.frangi(image, sigmas=[2], black_ridges=False))
        bodies["structure tensor eigenvalues, sigma 2"] = (
            "cuCIM",
            lambda: feature.structure_tensor_eigenvalues(feature.structure_tensor(image, sigma=2, order="rc")))
    return bodies


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
    for extent in (256, 512) if not options.kind or "float32" in options.kind else ():
        image = noise[:extent, :extent, :extent].copy()
        for name, (library, body) in derivative_peers(image).items():
            report.add("derivatives", f"{name}; {extent}^3 float32", median_ms(body), library)
            cupy.get_default_memory_pool().free_all_blocks()


if __name__ == "__main__":
    main()
