#!/usr/bin/env python3
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Cuts a block out of an 8-bit NIfTI volume and writes it as an uncompressed .mha of doubles, which ITK streams.

    crop_volume.py IN.nii.gz OUT.mha X0:X1 Y0:Y1 Z0:Z1
"""
import gzip
import struct
import sys

import numpy


def read_nifti(path):
    """The voxels, z slowest, and the spacing in mm, x first."""
    with gzip.open(path) as file:
        data = file.read()
    (header_bytes,) = struct.unpack_from("<i", data, 0)
    shape = struct.unpack_from("<8h", data, 40)
    (kind,) = struct.unpack_from("<h", data, 70)
    spacing = struct.unpack_from("<8f", data, 76)
    (offset,) = struct.unpack_from("<f", data, 108)
    if header_bytes != 348 or shape[0] != 3 or kind != 2:
        sys.exit(f"{path}: a little-endian three-dimensional volume of 8-bit voxels is expected")
    voxels = numpy.frombuffer(data, numpy.uint8, count=shape[1] * shape[2] * shape[3], offset=int(offset))
    return voxels.reshape(shape[3], shape[2], shape[1]), spacing[1:4]


def main():
    if len(sys.argv) != 6:
        sys.exit(__doc__)
    voxels, spacing = read_nifti(sys.argv[1])
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
