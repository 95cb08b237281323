#!/usr/bin/env python3
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Compares the Python package on two machines: results must have the same bytes.

    compare_packages.py RESULTS.npz

Without the file, it computes some two hundred results and writes them. With it, it computes them again and compares. Transforms
promise a bound and not bits, and axes of objects depend on the C library: they are compared with a tolerance. Exits with 1 if a result differs.
"""
import pathlib
import platform
import sys

import chunkwise
import numpy as np
from chunkwise import ndimage as ndi
from chunkwise.skimage import restoration

# Axes of objects come from the C library's cosine, which differs in the last bit.
TOLERANCES = {"transforms": 1e-5, "convolve_image": 1e-5, "measure": 1e-15}
CALLS = {
    "mean": lambda x: chunkwise.mean(x, radius=2),
    "sum": lambda x: chunkwise.sum(x, radius=1),
    "std": lambda x: chunkwise.std(x, radius=2),
    "median of 3": lambda x: chunkwise.median(x, radius=1),
    "median of 5": lambda x: chunkwise.median(x, radius=2),
    "percentile": lambda x: chunkwise.percentile(x, radius=2, percentile=30),
    "gaussian": lambda x: chunkwise.gaussian(x, sigma=1.7),
    "gaussian, reflect": lambda x: chunkwise.gaussian(x, sigma=2.3, mode="reflect"),
    "gaussian in a mask": lambda x: chunkwise.gaussian(x, sigma=1.2, mask=MASK, empty_value=0),
    "mean in a mask": lambda x: chunkwise.mean(x, radius=2, mask=MASK, empty_value=0),
    "highpass": lambda x: chunkwise.highpass(x, sigma=2),
    "log": lambda x: chunkwise.log(x, sigma=1.5),
    "maximum": lambda x: chunkwise.maximum(x, radius=2),
    "opening": lambda x: chunkwise.opening(x, radius=1),
    "range": lambda x: chunkwise.range(x, radius=1),
    "wiener": lambda x: chunkwise.wiener(x, radius=1, noise_variance="auto"),
    "entropy": lambda x: chunkwise.entropy(x, radius=1, range=(0, 255)),
    "nlm": lambda x: chunkwise.nlm(x, radius=1, strength=20),
    "h_maxima": lambda x: chunkwise.h_maxima(x, height=1),
    "fill_holes": lambda x: chunkwise.fill_holes(x),
    "sat": lambda x: chunkwise.sat(x),
    "box": lambda x: chunkwise.box(x, radius=2),
    "zoom, linear": lambda x: ndi.zoom(x, 1.3, order=1),
    "zoom, cubic": lambda x: ndi.zoom(x, 1.3),
    "affine_transform": lambda x: ndi.affine_transform(x, np.eye(3) * 0.9 + 0.01),
    "gradient": lambda x: chunkwise.gradient(x, sigma=1.5),
    "hessian_eigenvalues": lambda x: chunkwise.hessian_eigenvalues(x, sigma=1.5),
    "frangi": lambda x: chunkwise.frangi(x, sigmas=(1, 2)),
    "structure_tensor": lambda x: chunkwise.structure_tensor(x, sigma=1, outer_sigma=2),
    "curvature": lambda x: chunkwise.curvature(x, sigma=1.5),
    "diffusion": lambda x: chunkwise.diffusion(x, iterations=3),
    "coherence_diffusion": lambda x: chunkwise.coherence_diffusion(x, iterations=2),
    "total_variation": lambda x: chunkwise.total_variation(x, weight=0.1, iterations=5),
    "bilateral": lambda x: chunkwise.bilateral(x, sigma=1, range_sigma=20),
    "unsharp": lambda x: chunkwise.unsharp(x, sigma=1),
    "clahe": lambda x: chunkwise.clahe(x),
    "distance": lambda x: chunkwise.distance(x > np.median(x)),
    "label": lambda x: chunkwise.label(x > np.median(x)),
    "expand_labels": lambda x: chunkwise.expand_labels(LABELS, 2),
    "watershed": lambda x: chunkwise.watershed(x),
    "threshold, otsu": lambda x: chunkwise.threshold(x, method="otsu"),
    "threshold, li": lambda x: chunkwise.threshold(x, method="li"),
    "local_threshold": lambda x: chunkwise.local_threshold(x, radius=3),
    "rolling_ball": lambda x: chunkwise.rolling_ball(x, radius=4),
    "measure": lambda x: np.concatenate([np.asarray(v, "float64") for v in chunkwise.measure(LABELS, x).values()]),
    "statistics": lambda x: np.array(tuple(chunkwise.statistics(x)), "float64"),
    "transforms": lambda x: chunkwise.gaussian(x, sigma=3, transforms=True, output="float32"),
    "convolve_image": lambda x: chunkwise.convolve_image(x, np.ones((7, 7, 7), "float32")),
    "richardson_lucy": lambda x: restoration.richardson_lucy(x, np.ones((3, 3, 3)) / 27, num_iter=3),
    "sobel": lambda x: ndi.sobel(x),
    "spline_filter": lambda x: ndi.spline_filter(x),
    "gaussian_laplace": lambda x: ndi.gaussian_laplace(x, 1.2, output="float32"),
    "rank_filter": lambda x: ndi.rank_filter(x, 3, size=3),
    "sequence": lambda x: (chunkwise.filters.Gaussian(sigma=2) | chunkwise.filters.Std(radius=1))(x),
}
chance = np.random.default_rng(7)
SHAPE = (12, 20, 26)
IMAGES = {
    "uint8": chance.integers(0, 255, SHAPE, "uint8"),
    "int16": chance.integers(-3000, 3000, SHAPE).astype("int16"),
    "float32": chance.random(SHAPE, "float32"),
    "float64": chance.random(SHAPE),
}
LABELS = chunkwise.label(IMAGES["uint8"] > 200)
MASK = IMAGES["uint8"] > 100


def differ(name, expected, found):
    """A text if the two results differ, else an empty one."""
    if expected.dtype != found.dtype or expected.shape != found.shape:
        return f"{found.dtype}{found.shape} in place of {expected.dtype}{expected.shape}"
    if expected.tobytes() == found.tobytes():
        return ""
    largest = np.nanmax(np.abs(expected.astype("float64") - found.astype("float64")))
    scale = np.nanmax(np.abs(expected.astype("float64")))
    if largest <= TOLERANCES.get(name, 0) * scale:
        return ""
    return f"the largest difference is {largest:g} of {scale:g}"


def main(path):
    expected = dict(np.load(path)) if path.exists() else None
    results = {}
    for name, call in CALLS.items():
        for kind, image in IMAGES.items():
            results[f"{name} of {kind}"] = np.asarray(call(image))
    print(f"{len(results)} results of {platform.machine()}")
    if expected is None:
        np.savez(path, **results)
        return 0
    wrong = 0
    for key, found in results.items():
        text = differ(key.rsplit(" of ", 1)[0], expected[key], found)
        if text:
            wrong += 1
            print(f"{key}: {text}")
    same = sum(expected[key].tobytes() == found.tobytes() for key, found in results.items())
    print(f"{same} have the same bytes, {len(results) - same - wrong} are within their bound, {wrong} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(pathlib.Path(sys.argv[1])))
