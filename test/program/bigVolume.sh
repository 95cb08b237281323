#!/bin/bash
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
#
# bigVolume.sh PROGRAM DIRECTORY [GIB]
#
# Writes a volume of GIB GiB (8) into DIRECTORY, runs the program's mean on it from file to file with the address space of
# the process limited to 1 GiB, compares samples of the result with means computed one by one, and prints the peak
# memory. Needs room for two such volumes; removes them.
set -euo pipefail

program=$(realpath "$1")
directory=$2
gib=${3:-8}
work=$(mktemp -d "$directory/bigVolume.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"

cat > volume.py <<'PYTHON'
import array
import random
import sys

NX, NY, RADIUS = 1024, 1024, 3


def write(gib):
    nz = gib * 512
    block = random.Random(5).randbytes(2 * NX * NY + 65536)
    with open("in.mhd", "w") as header:
        header.write(
            "ObjectType = Image\nNDims = 3\nBinaryData = True\nBinaryDataByteOrderMSB = False\nCompressedData = False\n"
            f"DimSize = {NX} {NY} {nz}\nElementType = MET_USHORT\nElementDataFile = in.raw\n"
        )
    with open("in.raw", "wb") as data:
        for z in range(nz):
            begin = (z * 15838) % 65536
            data.write(block[begin : begin + 2 * NX * NY])


def check(gib):
    extents = (NX, NY, gib * 512)
    rng = random.Random(6)
    edges = [(0, 0, 0), (NX - 1, NY - 1, extents[2] - 1), (0, NY // 2, extents[2] - 1)]
    inside = [tuple(rng.randrange(extent) for extent in extents) for _ in range(2000)]
    with open("in.raw", "rb") as source, open("out.raw", "rb") as result:
        result.seek(0, 2)
        assert result.tell() == 2 * NX * NY * extents[2], "size of the output"
        for center in edges + inside:
            ranges = [range(max(c - RADIUS, 0), min(c + RADIUS + 1, n)) for c, n in zip(center, extents)]
            total = 0
            for z in ranges[2]:
                for y in ranges[1]:
                    source.seek(2 * (ranges[0][0] + NX * (y + NY * z)))
                    total += sum(array.array("H", source.read(2 * len(ranges[0]))))
            count = len(ranges[0]) * len(ranges[1]) * len(ranges[2])
            expected, rest = divmod(total, count)
            expected += 2 * rest > count or (2 * rest == count and expected % 2 == 1)
            result.seek(2 * (center[0] + NX * (center[1] + NY * center[2])))
            (value,) = array.array("H", result.read(2))
            assert value == expected, f"at {center}: {value}, not {expected}"
    print(f"{len(edges + inside)} samples are exact")


{"write": write, "check": check}[sys.argv[1]](int(sys.argv[2]))
PYTHON

python3 volume.py write "$gib"
(
  ulimit -v 1048576
  "$program" mean in.mhd out.mhd --radius 3 --backend cpu --memory 640M --verbose
)
python3 volume.py check "$gib"
