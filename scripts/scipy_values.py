#!/usr/bin/env python3
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Writes what SciPy's filters make of a small image: scipy_values.py test/operations/scipyValues.inc, with which
chunkwiseScipyTest.cxx compares.

A string literal with, in lines, the image's extents, the image, and for each filter and boundary mode their names
(Chunkwise's) and the values, x fastest.
"""

import sys

import numpy
import scipy
from scipy import ndimage

EXTENTS = (6, 5, 4)  # x, y, z
RADII = (2, 1, 3)
SIZE = tuple(2 * r + 1 for r in reversed(RADII))
SIGMA = (0.4, 0.9, 0.6)  # z, y, x
CONSTANT = 7.0
MODES = {"zero-flux": "nearest", "constant": "constant", "mirror": "reflect", "periodic": "wrap"}


def kernel():
    weights = numpy.arange(1.0, 1.0 + numpy.prod(SIZE)).reshape(SIZE)
    return (weights * 7) % 11 - 4


FILTERS = {
    "mean": lambda image, **mode: ndimage.uniform_filter(image, SIZE, **mode),
    "gaussian": lambda image, **mode: ndimage.gaussian_filter(image, SIGMA, radius=RADII[::-1], **mode),
    "maximum": lambda image, **mode: ndimage.maximum_filter(image, SIZE, **mode),
    "minimum": lambda image, **mode: ndimage.minimum_filter(image, SIZE, **mode),
    "median": lambda image, **mode: ndimage.median_filter(image, SIZE, **mode),
    "opening": lambda image, **mode: ndimage.grey_opening(image, SIZE, **mode),
    "closing": lambda image, **mode: ndimage.grey_closing(image, SIZE, **mode),
    "standard deviation": lambda image, **mode: ndimage.generic_filter(image, numpy.std, SIZE, **mode),
    "convolution": lambda image, **mode: ndimage.correlate(image, kernel(), **mode),
}


def write(file, words, values):
    file.write(" ".join([*words, *(repr(float(v)) for v in numpy.ravel(values))]) + "\n")


def main():
    generator = numpy.random.default_rng(11)
    image = generator.integers(-200, 200, EXTENTS[::-1]) / 4.0
    with open(sys.argv[1], "w", encoding="ascii") as file:
        file.write(f"// SciPy {scipy.__version__}, scripts/scipy_values.py\n")
        file.write('R"values(')
        file.write(" ".join(map(str, EXTENTS)) + "\n")
        write(file, [], image)
        for name, run in FILTERS.items():
            for ours, theirs in MODES.items():
                write(file, [name.replace(" ", "_"), ours], run(image, mode=theirs, cval=CONSTANT))
        file.write(')values"\n')


if __name__ == "__main__":
    main()
