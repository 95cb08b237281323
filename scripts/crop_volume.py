#!/usr/bin/env python3
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Cuts a block out of a three-dimensional volume in NIfTI or another format that nibabel reads, and writes it as an
uncompressed .mha of doubles, which ITK streams.

    crop_volume.py IN.nii.gz OUT.mha X0:X1 Y0:Y1 Z0:Z1
"""
import sys

import nibabel
import numpy


def main():
    if len(sys.argv) != 6:
        sys.exit(__doc__)
    volume = nibabel.load(sys.argv[1])
    voxels = numpy.asarray(volume.dataobj).T  # z slowest
    spacing = volume.header.get_zooms()
    if voxels.ndim != 3:
        sys.exit(f"{sys.argv[1]}: a three-dimensional volume is expected")
    ranges = [tuple(int(end) for end in argument.split(":")) for argument in sys.argv[3:6]]
    for (begin, end), extent in zip(ranges, voxels.shape[::-1]):
        if not 0 <= begin < end <= extent:
            sys.exit(f"{begin}:{end} is not within 0:{extent}")
    x, y, z = (slice(*r) for r in ranges)
    block = voxels[z, y, x].astype("<f8")
    offset = [begin * step for (begin, _), step in zip(ranges, spacing)]
    with open(sys.argv[2], "wb") as file:
        file.write(
            "ObjectType = Image\nNDims = 3\nBinaryData = True\nBinaryDataByteOrderMSB = False\n"
            "CompressedData = False\n"
            f"Offset = {' '.join(f'{o:g}' for o in offset)}\n"
            f"ElementSpacing = {' '.join(f'{s:g}' for s in spacing)}\n"
            f"DimSize = {' '.join(str(n) for n in block.shape[::-1])}\n"
            "ElementType = MET_DOUBLE\nElementDataFile = LOCAL\n".encode()
        )
        block.tofile(file)
    print(f"{sys.argv[2]}: {' x '.join(str(n) for n in block.shape[::-1])} voxels, {block.nbytes / 2**20:.1f} MiB")


main()
