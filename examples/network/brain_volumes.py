# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""The volumes of Debian's package mricron-data, as training and check use them."""
import os

import nibabel
import numpy

Templates = "/usr/share/mricron/templates"
InputScale = 1 / 255  # the voxels are 8-bit; the network was trained on values from 0 to 1


def load(name, directory):
    """The voxels as float32, [x][y][z] as nibabel has them."""
    return numpy.asarray(nibabel.load(os.path.join(directory, name)).dataobj, dtype=numpy.float32)


def on_grid_of_head(better, shape):
    """ch2better.nii.gz has voxels of 0.5 mm; those at whole millimetres are voxels of ch2.nii.gz's grid."""
    result = numpy.zeros(shape, numpy.float32)
    every_second = better[::2, ::2, 1::2]  # from -75, -107, -69 mm
    x, y, z = 90 - 75, 125 - 107, 71 - 69
    result[x : x + every_second.shape[0], y : y + every_second.shape[1], z : z + every_second.shape[2]] = every_second
    return result


def dice(a, b):
    """Dice of two masks: 1 where they agree, 0 where they have nothing in common."""
    both = a.sum() + b.sum()
    return float(2 * numpy.logical_and(a, b).sum() / both) if both else 1.0
