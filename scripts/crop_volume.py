#!/usr/bin/env python3
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Cuts a block out of a three-dimensional volume in one NIfTI file, and writes it as an uncompressed .mha of doubles, which the
program streams. Needs Python's own library alone.

    crop_volume.py IN.nii.gz OUT.mha X0:X1 Y0:Y1 Z0:Z1
"""
import array
import gzip
import struct
import sys

# The codes of NIfTI for its types of voxels, and those of array.
TYPES = {2: "B", 4: "h", 8: "i", 16: "f", 64: "d", 256: "b", 512: "H", 768: "I"}


def read_nifti(path):
    """The voxels, x fastest, as they are stored; the extent, the spacing, and what stored voxels are multiplied by and
    increased by."""
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
        data = file.read()
    order = next((o for o in "<>" if len(data) >= 348 and struct.unpack_from(o + "i", data)[0] == 348), None)
    if order is None:
        sys.exit(f"{path}: not a NIfTI file")
    dimension, *extent = struct.unpack_from(order + "8h", data, 40)
    code = TYPES.get(struct.unpack_from(order + "h", data, 70)[0])
    if dimension < 3 or any(n != 1 for n in extent[3:dimension]) or code is None:
        sys.exit(f"{path}: a three-dimensional volume of integers or real numbers is expected")
    spacing = struct.unpack_from(order + "4f", data, 76)[1:]
    begin, slope, intercept = struct.unpack_from(order + "3f", data, 108)
    x, y, z = extent[:3]
    voxels = array.array(code)
    voxels.frombytes(data[int(begin):int(begin) + x * y * z * voxels.itemsize])
    if len(voxels) != x * y * z:
        sys.exit(f"{path}: the file ends before its last voxel")
    if (order == "<") != (sys.byteorder == "little"):
        voxels.byteswap()
    return voxels, (x, y, z), spacing, slope if slope else 1.0, intercept if slope else 0.0


def main():
    if len(sys.argv) != 6:
        sys.exit(__doc__)
    voxels, extent, spacing, slope, intercept = read_nifti(sys.argv[1])
    ranges = [tuple(int(end) for end in argument.split(":")) for argument in sys.argv[3:6]]
    for (begin, end), size in zip(ranges, extent):
        if not 0 <= begin < end <= size:
            sys.exit(f"{begin}:{end} is not within 0:{size}")
    sizes = [end - begin for begin, end in ranges]
    with open(sys.argv[2], "wb") as file:
        file.write(
            "ObjectType = Image\nNDims = 3\nBinaryData = True\n"
            f"BinaryDataByteOrderMSB = {sys.byteorder == 'big'}\nCompressedData = False\n"
            f"Offset = {' '.join(f'{begin * step:g}' for (begin, _), step in zip(ranges, spacing))}\n"
            f"ElementSpacing = {' '.join(f'{s:g}' for s in spacing)}\n"
            f"DimSize = {' '.join(map(str, sizes))}\n"
            "ElementType = MET_DOUBLE\nElementDataFile = LOCAL\n".encode()
        )
        (x0, x1), (y0, y1), (z0, z1) = ranges
        for z in range(z0, z1):
            plane = array.array("d")
            for y in range(y0, y1):
                row = (z * extent[1] + y) * extent[0]
                plane.extend(voxels[row + x0:row + x1].tolist())
            if (slope, intercept) != (1.0, 0.0):
                plane = array.array("d", (slope * voxel + intercept for voxel in plane))
            plane.tofile(file)
    print(f"{sys.argv[2]}: {' x '.join(map(str, sizes))} voxels, {8 * sizes[0] * sizes[1] * sizes[2] / 2**20:.1f} MiB")


main()
