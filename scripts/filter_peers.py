#!/usr/bin/env python3
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Times CuPy's functions on the images that chunkwise_filter_benchmark --images FOLDER left: the value is that folder.

The names of rows are the benchmark's."""

import sys
from pathlib import Path

from cupyx.scipy.fft import next_fast_len

from gpu_peers import cupy, median_ms, ndimage
from peer_report import PeerReport, parse_arguments

KINDS = {"noise": "float32", "blobs": "uint8", "sparse": "uint8", "labels": "uint32", "smooth": "uint8",
         "smooth of 16 bits": "uint16"}


def open_by_ball(image, radius):
    """As morphology with a ball is made of distances."""
    eroded = ndimage.distance_transform_edt(image, float64_distances=False) > radius
    return ndimage.distance_transform_edt(~eroded, float64_distances=False) <= radius


def expand(image, distance):
    """As cucim.skimage.segmentation.expand_labels does it."""
    far, nearest = ndimage.distance_transform_edt(image == 0, return_indices=True, float64_distances=False)
    labels = image[tuple(nearest)]
    return cupy.where(far <= distance, labels, 0)


def sauvola(image, size):
    mean = ndimage.uniform_filter(image, size)
    deviation = cupy.sqrt(cupy.maximum(ndimage.uniform_filter(image * image, size) - mean * mean, 0))
    return image > mean * (1 + 0.2 * (deviation / 500 - 1))


def otsu(image):
    """As skimage.filters.threshold_otsu does it."""
    counts = cupy.bincount(image.ravel()).astype("float64")
    values = cupy.arange(len(counts))
    below, above = cupy.cumsum(counts), cupy.cumsum(counts[::-1])[::-1]
    mean_below = cupy.cumsum(counts * values) / cupy.maximum(below, 1)
    mean_above = cupy.cumsum((counts * values)[::-1])[::-1] / cupy.maximum(above, 1)
    variance = below[:-1] * above[1:] * (mean_below[:-1] - mean_above[1:]) ** 2
    return image > values[variance.argmax()]


def multi_otsu(image):
    """Two thresholds of 8 bits: the variances of all pairs, as skimage.filters.threshold_multiotsu tries them."""
    counts = cupy.bincount(image.ravel(), minlength=256).astype("float64")
    zeros = cupy.zeros(1)
    number = cupy.concatenate([zeros, cupy.cumsum(counts)])
    total = cupy.concatenate([zeros, cupy.cumsum(counts * cupy.arange(256))])

    def variance(begin, end):
        return (total[end] - total[begin]) ** 2 / cupy.maximum(number[end] - number[begin], 1)

    first, second = cupy.meshgrid(cupy.arange(1, 257), cupy.arange(1, 257), indexing="ij")
    found = cupy.where(first < second, variance(0 * first, first) + variance(first, second)
                       + variance(second, 0 * second + 256), -1).argmax()
    return (image >= found // 256 + 1).astype("uint8") + (image >= found % 256 + 1)


def hysteresis(image, low, high):
    labels, count = ndimage.label(image > low)
    keeps = cupy.zeros(count + 1, bool)
    keeps[labels[image > high]] = True
    keeps[0] = False
    return keeps[labels]


def unsharp(image, sigma, amount):
    return image + amount * (image - ndimage.gaussian_filter(image, sigma, mode="nearest"))


def total_variation(image, weight, iterations):
    """Chambolle's projection, as cucim.skimage.restoration.denoise_tv_chambolle does it."""
    ahead = [tuple(slice(1, None) if a == b else slice(None) for b in range(3)) for a in range(3)]
    behind = [tuple(slice(None, -1) if a == b else slice(None) for b in range(3)) for a in range(3)]
    field = cupy.zeros((3, *image.shape), image.dtype)
    gradient = cupy.zeros_like(field)
    divergence = cupy.zeros_like(image)
    result = image
    for _ in range(iterations):
        for a in range(3):
            divergence = -field[a] if a == 0 else divergence - field[a]
            divergence[ahead[a]] += field[a][behind[a]]
        result = image + divergence
        for a in range(3):
            gradient[a][behind[a]] = cupy.diff(result, axis=a)
        norm = cupy.sqrt((gradient * gradient).sum(axis=0)) * (1 / 6 / weight) + 1
        field = (field - gradient / 6) / norm
    return result


def richardson_lucy(image):
    """An iteration as cucim.skimage.restoration.richardson_lucy does it, with spectra of the kernel that are kept, as a
    loop of one's own would have them."""
    n = 33
    axis = cupy.arange(n, dtype="float32") - n // 2
    kernel = cupy.exp(-(axis[:, None, None] ** 2) / 98 - (axis[None, :, None] ** 2 + axis[None, None, :] ** 2) / 32)
    kernel /= kernel.sum()
    shape = [next_fast_len(size + n - 1) for size in image.shape]
    spectra = [cupy.fft.rfftn(each, shape) for each in (kernel, kernel[::-1, ::-1, ::-1])]
    inner = tuple(slice(n // 2, n // 2 + size) for size in image.shape)

    def convolve(what, spectrum):
        return cupy.fft.irfftn(cupy.fft.rfftn(what, shape) * spectrum, shape)[inner]

    estimate = cupy.full(image.shape, 0.5, "float32")

    def iterate():
        blurred = convolve(estimate, spectra[0])
        ratio = cupy.where(blurred < 1e-12, 0, image / blurred)
        estimate[...] *= convolve(ratio, spectra[1])

    return iterate


# Row, image, extent, type of ours, function.
ROWS = [
    ("distance to the background", "objects", "blobs", 512, "float32",
     lambda image: ndimage.distance_transform_edt(image, float64_distances=False)),
    ("distance to a voxel in 10,000", "objects", "sparse", 512, "float32",
     lambda image: ndimage.distance_transform_edt(image, float64_distances=False)),
    ("expand labels by 10", "objects", "labels", 256, "uint32", lambda image: expand(image, 10)),
    ("opening by a ball, radius 20", "objects", "blobs", 512, "uint8", lambda image: open_by_ball(image, 20)),
    ("local threshold by Sauvola, radius 7", "objects", "noise", 512, "uint8", lambda image: sauvola(image, 15)),
    ("threshold by Otsu", "objects", "smooth of 16 bits", 512, "uint8", otsu),
    ("threshold by multi-Otsu, 3 classes", "objects", "smooth", 512, "uint8", multi_otsu),
    ("hysteresis", "objects", "noise", 512, "uint8", lambda image: hysteresis(image, 900, 1500)),
    ("white top-hat, radius 2", "window", "noise", 512, "float32", lambda image: ndimage.white_tophat(image, 5)),
    ("unsharp mask, sigma 2", "enhancement", "noise", 512, "float32", lambda image: unsharp(image, 2, 0.5)),
    ("total variation, 50 iterations", "enhancement", "noise", 256, "float32",
     lambda image: total_variation(image, 300, 50)),
]


def main():
    options = parse_arguments(__doc__, "folder")
    report = PeerReport(options.csv, cupy.cuda.runtime.getDeviceProperties(0)["name"].decode())
    for folder in options.folder or sys.exit("filter_peers.py: the folder of the images is missing"):
        for title, capability, name, extent, output, function in ROWS:
            file = Path(folder) / f"{name.replace(' ', '_')}_{extent}_voxels.raw"
            if file.exists():
                image = cupy.fromfile(file, KINDS[name]).reshape((extent,) * 3)
                row = f"{title}; {extent}^3 {KINDS[name]} to {output}"
                report.add(capability, row, median_ms(lambda: function(image)), "CuPy")
        file = Path(folder) / "noise_512_voxels.raw"
        if file.exists():
            row = "Richardson-Lucy, an iteration, kernel 33^3; 512^3 float32 to float32"
            iterate = richardson_lucy(cupy.fromfile(file, "float32").reshape((512,) * 3))
            report.add("deconvolution", row, median_ms(iterate), "CuPy")


if __name__ == "__main__":
    main()
