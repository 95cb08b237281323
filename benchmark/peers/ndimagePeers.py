#!/usr/bin/env python3
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Times the functions of chunkwise.ndimage that are used daily beside scipy.ndimage's, on the same arrays.

    ndimagePeers.py [--threads N] [--shape 16x16x16 ...] [--only NAME]

For each function and shape it prints the time of the best call of both, in turn, and SciPy's divided by ours; a row that is
slower than SciPy, and takes more than 25 us, ends with "missed". SciPy has one thread. Ours has N of the processors (2).
"""
import argparse
import os
import time

SHAPES = ("16x16x16", "64x64x64", "256x256x256", "64x64", "1024x1024")
MOST_SECONDS_OF_A_SMALL_CALL = 25e-6


def calls(shape):
    """Names, types of the image, and calls; `made` are arrays that both packages share."""
    import numpy as np

    random = np.random.default_rng(1)
    ndim = len(shape)
    real = random.random(shape, "float32")
    byte = random.integers(0, 256, shape, dtype="uint8")
    truth = real > 0.6
    blocks = np.zeros(shape, bool)
    blocks[tuple(np.ix_(*(np.arange(extent) % 8 < 5 for extent in shape)))] = True
    from scipy import ndimage

    labels = ndimage.label(blocks)[0]
    index = np.arange(1, labels.max() + 1)
    points = np.indices(shape).astype(np.float64) * 0.98 + 0.3
    turned = np.eye(ndim) + 0.02 * random.standard_normal((ndim, ndim))
    weights = random.random((3,) * ndim)
    line = random.random(5)
    fewer = tuple(slice(0, min(extent, 128)) for extent in shape)

    def of(image, call):
        return lambda ndi: call(ndi, image)

    return [
        ("uniform_filter 5", of(real, lambda n, x: n.uniform_filter(x, 5))),
        ("uniform_filter1d 5", of(real, lambda n, x: n.uniform_filter1d(x, 5))),
        ("gaussian_filter 1", of(real, lambda n, x: n.gaussian_filter(x, 1))),
        ("gaussian_filter 1 u8", of(byte, lambda n, x: n.gaussian_filter(x, 1))),
        ("gaussian_filter 3", of(real, lambda n, x: n.gaussian_filter(x, 3))),
        ("gaussian_filter 1 order 1", of(real, lambda n, x: n.gaussian_filter(x, 1, order=(0,) * (ndim - 1) + (1,)))),
        ("gaussian_filter1d 1", of(real, lambda n, x: n.gaussian_filter1d(x, 1))),
        ("gaussian_laplace 1", of(real, lambda n, x: n.gaussian_laplace(x, 1))),
        ("gaussian_gradient_magnitude 1", of(real, lambda n, x: n.gaussian_gradient_magnitude(x, 1))),
        ("sobel", of(real, lambda n, x: n.sobel(x))),
        ("prewitt", of(real, lambda n, x: n.prewitt(x))),
        ("laplace", of(real, lambda n, x: n.laplace(x))),
        ("convolve 3", of(real, lambda n, x: n.convolve(x, weights))),
        ("correlate1d 5", of(real, lambda n, x: n.correlate1d(x, line))),
        ("median_filter 3 u8", of(byte, lambda n, x: n.median_filter(x, 3))),
        ("median_filter 3", of(real, lambda n, x: n.median_filter(x, 3))),
        ("percentile_filter 20 3", of(real, lambda n, x: n.percentile_filter(x, 20, 3))),
        ("rank_filter footprint", of(real, lambda n, x: n.rank_filter(x, 2, footprint=n.generate_binary_structure(ndim, 1)))),
        ("maximum_filter 5", of(real, lambda n, x: n.maximum_filter(x, 5))),
        ("maximum_filter1d 5", of(real, lambda n, x: n.maximum_filter1d(x, 5))),
        ("minimum_filter 5 u8", of(byte, lambda n, x: n.minimum_filter(x, 5))),
        ("minimum_filter1d 5 axis 0", of(real, lambda n, x: n.minimum_filter1d(x, 5, axis=0))),
        ("minimum_filter1d 4", of(real, lambda n, x: n.minimum_filter1d(x, 4))),
        ("grey_erosion 3", of(real, lambda n, x: n.grey_erosion(x, 3))),
        ("grey_dilation 3", of(real, lambda n, x: n.grey_dilation(x, 3))),
        ("grey_opening 3", of(real, lambda n, x: n.grey_opening(x, 3))),
        ("grey_closing 3", of(real, lambda n, x: n.grey_closing(x, 3))),
        ("morphological_gradient 3", of(real, lambda n, x: n.morphological_gradient(x, 3))),
        ("white_tophat 3", of(real, lambda n, x: n.white_tophat(x, 3))),
        ("black_tophat 3 u8", of(byte, lambda n, x: n.black_tophat(x, 3))),
        ("binary_erosion", of(truth, lambda n, x: n.binary_erosion(x))),
        ("binary_dilation", of(truth, lambda n, x: n.binary_dilation(x))),
        ("binary_dilation 3 times", of(truth, lambda n, x: n.binary_dilation(x, iterations=3))),
        ("binary_opening", of(truth, lambda n, x: n.binary_opening(x))),
        ("binary_closing", of(truth, lambda n, x: n.binary_closing(x))),
        ("binary_fill_holes", of(truth, lambda n, x: n.binary_fill_holes(x))),
        ("binary_propagation", of(blocks, lambda n, x: n.binary_propagation(x & truth, mask=x))),
        ("distance_transform_edt", of(truth, lambda n, x: n.distance_transform_edt(x))),
        ("distance_transform_cdt", of(truth, lambda n, x: n.distance_transform_cdt(x))),
        ("label noise", of(truth, lambda n, x: n.label(x))),
        ("label blocks", of(blocks, lambda n, x: n.label(x))),
        ("find_objects", of(labels, lambda n, x: n.find_objects(x))),
        ("sum_labels", of(real, lambda n, x: n.sum_labels(x, labels, index))),
        ("mean", of(real, lambda n, x: n.mean(x, labels, index))),
        ("mean of one", of(real, lambda n, x: n.mean(x, labels, 1))),
        ("mean of all", of(real, lambda n, x: n.mean(x))),
        ("variance", of(real, lambda n, x: n.variance(x, labels, index))),
        ("standard_deviation", of(real, lambda n, x: n.standard_deviation(x, labels, index))),
        ("minimum", of(real, lambda n, x: n.minimum(x, labels, index))),
        ("maximum", of(real, lambda n, x: n.maximum(x, labels, index))),
        ("median", of(real, lambda n, x: n.median(x, labels, index))),
        ("maximum_position", of(real, lambda n, x: n.maximum_position(x, labels, index))),
        ("extrema", of(real, lambda n, x: n.extrema(x, labels, index))),
        ("center_of_mass", of(real, lambda n, x: n.center_of_mass(x, labels, index))),
        ("histogram", of(real, lambda n, x: n.histogram(x, 0, 1, 10, labels, index[:4]))),
        ("zoom 1.5 linear", of(real[fewer], lambda n, x: n.zoom(x, 1.5, order=1))),
        ("zoom 1.5 cubic", of(real[fewer], lambda n, x: n.zoom(x, 1.5))),
        ("zoom 0.5 linear", of(real, lambda n, x: n.zoom(x, 0.5, order=1))),
        ("shift linear", of(real, lambda n, x: n.shift(x, 0.4, order=1))),
        ("shift cubic", of(real, lambda n, x: n.shift(x, 0.4))),
        ("rotate 20 linear", of(real, lambda n, x: n.rotate(x, 20.0, reshape=False, order=1))),
        ("affine_transform nearest", of(real, lambda n, x: n.affine_transform(x, turned, order=0))),
        ("affine_transform linear", of(real, lambda n, x: n.affine_transform(x, turned, order=1))),
        ("affine_transform cubic", of(real, lambda n, x: n.affine_transform(x, turned))),
        ("map_coordinates nearest", of(real, lambda n, x: n.map_coordinates(x, points, order=0))),
        ("map_coordinates linear", of(real, lambda n, x: n.map_coordinates(x, points, order=1))),
        ("map_coordinates cubic", of(real, lambda n, x: n.map_coordinates(x, points))),
        ("spline_filter", of(real, lambda n, x: n.spline_filter(x))),
    ]


def best(call, seconds):
    """Seconds of the best call of one or more that take `seconds`."""
    least, end = float("inf"), time.perf_counter() + seconds
    while True:
        begin = time.perf_counter()
        call()
        now = time.perf_counter()
        least = min(least, now - begin)
        if now >= end:
            return least


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--shape", nargs="*", default=SHAPES)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:options.threads])
    from scipy import ndimage as theirs

    from chunkwise import ndimage as ours

    missed = 0
    for text in options.shape:
        shape = tuple(int(each) for each in text.split("x"))
        print(f"{text}, {options.threads} threads", flush=True)
        for name, call in calls(shape):
            if options.only not in name:
                continue
            # A first call prepares, and may find that others have the processors.
            times = {ours: float("inf"), theirs: float("inf")}
            call(ours)
            for _ in range(2):
                for module in times:
                    if times[module] < 1.0 or times[module] == float("inf"):
                        times[module] = min(times[module], best(lambda: call(module), 0.04))
            mine, peers = times[ours], times[theirs]
            is_missed = mine > max(peers, MOST_SECONDS_OF_A_SMALL_CALL)
            missed += is_missed
            print(f"  {name:30} {1e6 * mine:11.1f} us, SciPy {1e6 * peers:12.1f} us, ratio {peers / mine:7.2f}"
                  f"{'  missed' if is_missed else ''}", flush=True)
    print(f"{missed} missed")


if __name__ == "__main__":
    main()
