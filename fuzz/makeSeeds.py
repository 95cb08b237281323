#!/usr/bin/env python3
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Makes the seeds of the fuzz targets: small valid inputs, by Python's own library alone. The result is committed.

usage: makeSeeds.py FOLDER
"""

import gzip
import json
import os
import struct
import sys
import zlib

FOLDER = sys.argv[1]


def write(target, name, data):
    folder = os.path.join(FOLDER, target)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "wb") as file:
        file.write(data if isinstance(data, bytes) else data.encode())


def voxels(count, size=1):
    """Bytes that differ from place to place."""
    return bytes((i * 7 + i // 256 * 3 + 11) % 251 for i in range(count * size))


def squeeze(data):
    return gzip.compress(data, 6, mtime=0)


def metaimage():
    def header(dims, kind, data, *more):
        lines = ["ObjectType = Image", f"NDims = {len(dims)}", "BinaryData = True", *more,
                 "DimSize = " + " ".join(map(str, dims)), f"ElementType = {kind}", f"ElementDataFile = {data}"]
        return ("\n".join(lines) + "\n").encode()

    write("metaimage", "uchar", header([4, 3, 2], "MET_UCHAR", "LOCAL") + voxels(24))
    write("metaimage", "float2d", header([5, 3], "MET_FLOAT", "LOCAL", "BinaryDataByteOrderMSB = True",
                                         "Offset = 1 2", "ElementSpacing = 0.5 2", "TransformMatrix = 0 1 -1 0",
                                         "Comment = text") + voxels(15, 4))
    packed = zlib.compress(voxels(60, 2))
    write("metaimage", "packed", header([5, 4, 3], "MET_SHORT", "LOCAL", "CompressedData = True",
                                        f"CompressedDataSize = {len(packed)}") + packed)
    write("metaimage", "vector", header([3, 2, 2], "MET_USHORT_ARRAY", "LOCAL", "ElementNumberOfChannels = 3",
                                        "HeaderSize = -1") + voxels(36, 2))
    write("metaimage", "text", header([3, 2], "MET_INT", "LOCAL").replace(b"BinaryData = True", b"BinaryData = False")
          + b"1 2 3\n-4 5 6\n")
    write("metaimage", "five", header([2, 2, 2, 2, 2], "MET_DOUBLE", "LOCAL", "AnatomicalOrientation = RAI",
                                      "CenterOfRotation = 0 0 0 0 0") + voxels(32, 8))
    write("metaimage-header", "raw", header([8, 8, 4], "MET_UCHAR", "x.raw", "HeaderSize = 16"))
    write("metaimage-header", "end", header([8, 8, 4], "MET_SHORT", "x.raw", "HeaderSize = -1"))
    write("metaimage-header", "packed", header([16, 16, 16], "MET_UCHAR", "x.zraw", "CompressedData = True"))
    write("metaimage-header", "list", header([8, 8, 2], "MET_UCHAR", "LIST 2") + b"x1.raw\nx2.raw\n")
    write("metaimage-header", "pattern", header([8, 8, 2], "MET_UCHAR", "x%d.raw 1 2 1"))


def nrrd():
    def header(kind, sizes, *more):
        lines = ["NRRD0004", f"type: {kind}", f"dimension: {len(sizes)}", "sizes: " + " ".join(map(str, sizes)), *more]
        return ("\n".join(lines) + "\n\n").encode()

    write("nrrd", "raw", header("uint8", [4, 3, 2], "encoding: raw") + voxels(24))
    write("nrrd", "space", header("short", [4, 3, 2], "encoding: raw", "endian: big", "space: left-posterior-superior",
                                  "space directions: (1,0,0) (0,2,0) (0,0,3)", "space origin: (1,2,3)",
                                  "kinds: domain domain domain", "key:=value") + voxels(24, 2))
    write("nrrd", "gzip", header("float", [5, 4], "encoding: gzip", "endian: little", "spacings: 1 2")
          + squeeze(voxels(20, 4)))
    write("nrrd", "ascii", header("int", [3, 2], "encoding: ascii") + b"1 2 3\n-4 5 6\n")
    write("nrrd", "vector", header("ushort", [3, 3, 2], "encoding: raw", "endian: little",
                                   "kinds: RGB-color domain domain", "axis mins: NaN 0 0", "units: \"\" \"mm\" \"mm\"",
                                   "line skip: 0", "byte skip: 0") + voxels(18, 2))
    write("nrrd-header", "raw", header("uint8", [8, 8, 4], "encoding: raw", "byte skip: -1", "data file: x.raw"))
    write("nrrd-header", "list", header("uint8", [8, 8, 2], "encoding: raw", "data file: LIST") [:-1] + b"x1.raw\nx2.raw\n")
    write("nrrd-header", "pattern", header("uint8", [8, 8, 2], "encoding: raw", "datafile: x%d.raw 1 2 1"))


def nifti():
    def header(dims, code, bits, magic=b"n+1\0", order="<", offset=352.0, slope=0.0, intercept=0.0, sform=0, units=2):
        dim = [len(dims)] + dims + [1] * (7 - len(dims))
        data = struct.pack(order + "i35xB8h3f4h8f", 348, 0, *dim, 0, 0, 0, 0, code, bits, 0, 1, 0.5, 1, 2, 1, 1, 1, 1)
        data += struct.pack(order + "3fh2B4f2i", offset, slope, intercept, 0, 0, units, 0, 0, 0, 0, 0, 0)
        data += b"description".ljust(80, b"\0") + b"".ljust(24, b"\0")
        data += struct.pack(order + "2h6f", 1, sform, 0, 0, 0, 1, 2, 3)
        data += struct.pack(order + "12f", 0, 1, 0, 4, 1, 0, 0, 5, 0, 0, 2, 6) + b"".ljust(16, b"\0") + magic
        assert len(data) == 348
        return data

    plain = header([4, 3, 2], 4, 16) + bytes(4) + voxels(24, 2)
    write("nifti", "short", plain)
    write("nifti", "scaled", header([4, 3, 2], 2, 8, slope=0.5, intercept=-3, sform=1, units=3) + bytes(4) + voxels(24))
    write("nifti", "big", header([4, 3], 16, 32, order=">") + bytes(4) + voxels(12, 4))
    write("nifti", "vector", header([3, 2, 2, 1, 3], 16, 32) + bytes(4) + voxels(36, 4))
    write("nifti", "rgb", header([3, 2, 2], 128, 24) + bytes(4) + voxels(12, 3))
    extension = header([4, 3, 2], 2, 8, offset=384.0) + b"\1\0\0\0" + struct.pack("<2i", 32, 6) + b"extension".ljust(24, b"\0")
    write("nifti", "extension", extension + voxels(24))
    dims = [3, 4, 3, 2, 1, 1, 1, 1]
    second = struct.pack("<i8s2h8q3d8d", 540, b"n+2\0\r\n\x1a\n", 512, 16, *dims, 0, 0, 0, 1, 1, 1, 2, 1, 1, 1, 1)
    second += struct.pack("<q2d2d2d", 544, 1, 0, 0, 0, 0, 0) + bytes(16) + bytes(80 + 24)
    second += struct.pack("<2i6d", 1, 0, 0, 0, 0, 1, 2, 3) + bytes(12 * 8) + struct.pack("<3i", 0, 2, 0) + bytes(16 + 1 + 15)
    assert len(second) == 540, len(second)
    write("nifti", "second", second + bytes(4) + voxels(24, 2))
    write("nifti-compressed", "short", squeeze(plain))
    write("nifti-compressed", "plain", plain)
    write("nifti-header", "pair", header([4, 3, 2], 4, 16, magic=b"ni1\0", offset=0.0))
    write("nifti-header", "analyze", header([4, 3, 2], 4, 16, magic=b"\0\0\0\0", offset=0.0))


def mrc():
    def header(order, nx, ny, nz, mode, stamp, extended=b"", axes=(1, 2, 3)):
        data = struct.pack(order + "10i", nx, ny, nz, mode, 0, 0, 0, nx, ny, nz)
        data += struct.pack(order + "6f3i3f2i", nx, ny * 2, nz * 3, 90, 90, 90, *axes, 0, 255, 100, 1, len(extended))
        data = data.ljust(196, b"\0") + struct.pack(order + "3f", 1, 2, 3) + b"MAP " + stamp
        return data.ljust(1024, b"\0") + extended

    little, big = b"\x44\x44\0\0", b"\x11\x11\0\0"
    write("mrc", "bytes", header("<", 4, 3, 2, 0, little) + voxels(24))
    write("mrc", "shorts", header("<", 4, 3, 2, 1, little, bytes(128)) + voxels(24, 2))
    write("mrc", "floats", header(">", 4, 3, 2, 2, big) + voxels(24, 4))
    write("mrc", "unsigned", header("<", 4, 3, 1, 6, little) + voxels(12, 2))
    write("mrc", "turned", header("<", 4, 3, 2, 0, little, axes=(3, 2, 1)) + voxels(24))


def vtk():
    def header(kind, more="SCALARS scalars short 1\nLOOKUP_TABLE default\n", points="POINT_DATA 24\n"):
        return (f"# vtk DataFile Version 3.0\ntitle\n{kind}\nDATASET STRUCTURED_POINTS\nDIMENSIONS 4 3 2\n"
                f"SPACING 1 2 3\nORIGIN 0.5 0 -1\n{points}{more}").encode()

    write("vtk", "binary", header("BINARY") + voxels(24, 2))
    write("vtk", "text", header("ASCII") + " ".join(map(str, range(24))).encode() + b"\n")
    write("vtk", "vectors", header("BINARY", "VECTORS vectors float\n") + voxels(72, 4))
    write("vtk", "field", header("ASCII", "FIELD FieldData 1\nvalues 1 24 float\n") + b"1.5 " * 24 + b"\n")
    cells = "CELL_DATA 6\nSCALARS cells float 1\nLOOKUP_TABLE default\n1 2 3 4 5 6\nPOINT_DATA 24\n"
    write("vtk", "cells", header("ASCII", points=cells) + b"7 " * 24 + b"\n")


def gipl():
    def header(dims, kind, magic=0xefffe9b0):
        data = struct.pack(">4H", *(dims + [1] * (4 - len(dims)))) + struct.pack(">H", kind)
        data += struct.pack(">4f", 1, 2, 3, 1) + b"line".ljust(80, b"\0") + bytes(4 * 20) + struct.pack(">2B", 0, 0)
        data += struct.pack(">2d", 0, 255) + struct.pack(">4d", 1, 2, 3, 0) + bytes(4 * 4)
        return data.ljust(252, b"\0")[:252] + struct.pack(">I", magic)

    write("gipl", "bytes", header([4, 3, 2], 8) + voxels(24))
    write("gipl", "shorts", header([4, 3, 2], 15) + voxels(24, 2))
    write("gipl", "floats", header([4, 3, 2], 64) + voxels(24, 4))
    write("gipl", "packed", squeeze(header([4, 3, 2], 16) + voxels(24, 2)))


class Tiff:
    """A classic TIFF or BigTIFF, directory by directory."""

    def __init__(self, order="<", big=False):
        self.order = order
        self.big = big
        mark = b"II" if order == "<" else b"MM"
        self.data = bytearray(mark + (struct.pack(order + "3HQ", 43, 8, 0, 0) if big else struct.pack(order + "HI", 42, 0)))
        self.link = 8 if big else 4

    def put(self, data):
        at = len(self.data)
        self.data += data + b"\0" * (len(data) % 2)
        return at

    def page(self, width, height, bits, blocks, tags=(), compression=1, samples=1, sample_format=1, rows=None, tile=None,
             photometric=1, planar=1):
        offsets = [self.put(block) for block in blocks]
        entries = [(256, 4, [width]), (257, 4, [height]), (258, 3, [bits] * samples), (259, 3, [compression]),
                   (262, 3, [photometric]), (277, 3, [samples]), (284, 3, [planar]), (339, 3, [sample_format] * samples)]
        counts = [len(block) for block in blocks]
        if tile:
            entries += [(322, 3, [tile]), (323, 3, [tile]), (324, 4, offsets), (325, 4, counts)]
        else:
            entries += [(273, 4, offsets), (278, 4, [rows or height]), (279, 4, counts)]
        entries += list(tags)
        packed = []
        wide = 8 if self.big else 4
        for tag, kind, values in sorted(entries):
            if isinstance(values, bytes):
                raw, count = values, len(values)
            elif kind == 5:
                raw = b"".join(struct.pack(self.order + "2I", *value) for value in values)
                count = len(values)
            else:
                raw = struct.pack(self.order + str(len(values)) + {3: "H", 4: "I", 12: "d"}[kind], *values)
                count = len(values)
            if len(raw) > wide:
                raw = struct.pack(self.order + ("Q" if self.big else "I"), self.put(raw))
            packed.append(struct.pack(self.order + ("2HQ" if self.big else "2HI"), tag, kind, count) + raw.ljust(wide, b"\0"))
        word = "Q" if self.big else "I"
        at = self.put(struct.pack(self.order + ("Q" if self.big else "H"), len(packed)) + b"".join(packed)
                      + struct.pack(self.order + word, 0))
        self.data[self.link:self.link + wide] = struct.pack(self.order + word, at)
        self.link = at + (8 if self.big else 2) + sum(map(len, packed))

    def get(self):
        return bytes(self.data)


def tiff():
    file = Tiff()
    file.page(5, 4, 8, [voxels(10), voxels(10)], rows=2, tags=[(282, 5, [(10, 1)]), (283, 5, [(20, 1)]), (296, 3, [3])])
    write("tiff", "strips", file.get())
    file = Tiff(">")
    for i in range(3):
        file.page(5, 4, 16, [voxels(20, 2)], tags=[(274, 3, [1])])
    write("tiff", "pages", file.get())
    file = Tiff()
    file.page(20, 18, 16, [zlib.compress(voxels(256, 2))] * 4, compression=8, tile=16, tags=[(317, 3, [2])])
    write("tiff", "tiles", file.get())
    file = Tiff()
    file.page(5, 4, 8, [voxels(60)], samples=3, photometric=2)
    write("tiff", "colors", file.get())
    file = Tiff()
    file.page(5, 4, 8, [voxels(20)] * 3, samples=3, photometric=2, planar=2)
    write("tiff", "planar", file.get())
    file = Tiff(big=True)
    file.page(5, 4, 32, [voxels(20, 4)], sample_format=3)
    write("tiff", "big", file.get())
    file = Tiff()
    # PackBits: one literal run.
    file.page(5, 4, 8, [b"\x13" + voxels(20)], compression=32773, tags=[(274, 3, [4])])
    write("tiff", "packbits", file.get())
    file = Tiff()
    for i in range(2):
        file.page(4, 3, 16, [voxels(12, 2)],
                  tags=[(270, 2, b"ImageJ=1.53\nimages=2\nslices=2\nspacing=2.5\nunit=micron\n\0")])
    write("tiff", "imagej", file.get())
    xml = ('<?xml version="1.0"?><OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06"><Image ID="Image:0">'
           '<Pixels ID="Pixels:0" DimensionOrder="XYZCT" Type="uint8" SizeX="4" SizeY="3" SizeZ="2" SizeC="2" SizeT="1" '
           'PhysicalSizeX="0.5" PhysicalSizeY="0.5" PhysicalSizeZ="2" PhysicalSizeZUnit="µm"><Channel ID="Channel:0:0" '
           'SamplesPerPixel="1"/><TiffData IFD="0" PlaneCount="4"/></Pixels></Image></OME>')
    file = Tiff()
    for i in range(4):
        file.page(4, 3, 8, [voxels(12)], tags=[(270, 2, xml.encode() + b"\0")] if i == 0 else ())
    write("tiff", "ome", file.get())


def png():
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    def image(width, height, bits, color, rows, *chunks, interlaced=0):
        return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">2I5B", width, height, bits, color, 0, 0, interlaced))
                + b"".join(chunks) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))

    write("png", "gray", image(5, 4, 8, 0, b"".join(b"\1" + voxels(5) for _ in range(4))))
    write("png", "deep", image(5, 4, 16, 0, b"".join(b"\4" + voxels(10) for _ in range(4)),
                               chunk(b"sBIT", b"\x0c"), chunk(b"pHYs", struct.pack(">2IB", 2000, 1000, 1))))
    write("png", "colors", image(5, 4, 8, 2, b"".join(b"\2" + voxels(15) for _ in range(4)), chunk(b"gAMA", b"\0\0\xb1\x8f")))
    write("png", "palette", image(5, 4, 4, 3, b"".join(b"\0" + bytes([1, 0x20, 0x10]) for _ in range(4)),
                                  chunk(b"PLTE", voxels(9)), chunk(b"tRNS", b"\xff\x80")))
    write("png", "bits", image(5, 4, 1, 0, b"\0\xa8" * 4))
    write("png", "alpha", image(5, 4, 16, 6, b"".join(b"\3" + voxels(40) for _ in range(4)), chunk(b"tEXt", b"Title\0text")))
    write("png", "interlaced", image(1, 1, 8, 4, b"\0\7\xff", interlaced=1))


def bmp():
    def image(width, height, bits, data, palette=b"", compression=0, header=40):
        info = struct.pack("<I2i2H6I", header, width, height, 1, bits, compression, len(data), 2835, 2835, 0, 0)
        info = info.ljust(header, b"\0")
        return struct.pack("<2sI2HI", b"BM", 14 + len(info) + len(palette) + len(data), 0, 0,
                           14 + len(info) + len(palette)) + info + palette + data

    gray = b"".join(bytes([i, i, i, 0]) for i in range(256))
    write("bmp", "gray", image(5, 3, 8, voxels(24), gray))
    write("bmp", "colors", image(5, 3, 24, voxels(48)))
    write("bmp", "down", image(5, -3, 24, voxels(48)))
    write("bmp", "alpha", image(3, 2, 32, voxels(24)))
    write("bmp", "palette", image(5, 3, 8, bytes([1, 2, 3, 0, 1, 0, 0, 0] * 3), voxels(16), 0))
    write("bmp", "packed", image(4, 2, 8, b"\4\1\0\0\2\2\2\3\0\0\0\1", gray, 1))
    write("bmp", "fourth", image(5, 3, 24, voxels(48), header=108))


def jpeg():
    """Baseline, of constant blocks, with the tables of the standard's annex K for DC alone."""
    def segment(mark, data):
        return bytes([0xff, mark]) + struct.pack(">H", len(data) + 2) + data

    quantisation = segment(0xdb, b"\0" + bytes([8] * 64))
    dc = segment(0xc4, b"\0" + bytes([0, 1, 5, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0]) + bytes(range(12)))
    # One code for the end of a block, one for a value.
    ac = segment(0xc4, b"\x10" + bytes([0, 2] + [0] * 14) + bytes([0, 1]))

    def image(components, bits, *more, mark=0xc0):
        frame = struct.pack(">B2HB", 8, 16, 16, components) + b"".join(bytes([i + 1, 0x11, 0]) for i in range(components))
        scan = bytes([components]) + b"".join(bytes([i + 1, 0]) for i in range(components)) + b"\0\x3f\0"
        bits += "1" * (-len(bits) % 8)
        data = bytes(int(bits[i:i + 8], 2) for i in range(0, len(bits), 8)).replace(b"\xff", b"\xff\0")
        return (b"\xff\xd8" + segment(0xe0, b"JFIF\0\1\1\1\0\x48\0\x48\0\0") + b"".join(more) + quantisation
                + segment(mark, frame) + dc + ac + segment(0xda, scan) + data + b"\xff\xd9")

    # DC of category 3 (code 100), its bits, the end of the block (00).
    write("jpeg", "gray", image(1, "100" + "101" + "00" + "100" + "010" + "00" + "00" + "00" + "100" + "111" + "00"))
    write("jpeg", "colors", image(3, ("100" + "101" + "00" + "00" + "00" + "00" + "00") * 4, segment(0xfe, b"comment")))
    write("jpeg", "four", image(4, ("100" + "101" + "00" + "00" + "00" + "00" + "00" + "00" + "00") * 4,
                                segment(0xee, b"Adobe\0\x64\0\0\0\0\0")))
    write("jpeg", "restart", image(1, "100" + "101" + "00" + "00" * 6, segment(0xdd, b"\0\4")))


def onnx():
    def number(field, value):
        return varint(field << 3) + varint(value)

    def varint(value):
        value &= (1 << 64) - 1
        out = b""
        while value > 127:
            out += bytes([value & 127 | 128])
            value >>= 7
        return out + bytes([value])

    def data(field, value):
        value = value.encode() if isinstance(value, str) else value
        return varint(field << 3 | 2) + varint(len(value)) + value

    def tensor(name, dims, values):
        return b"".join(number(1, d) for d in dims) + number(2, 1) + data(8, name) + data(9, struct.pack(
            f"<{len(values)}f", *values))

    def integers(name, dims, values):
        return b"".join(number(1, d) for d in dims) + number(2, 7) + data(8, name) + data(9, struct.pack(
            f"<{len(values)}q", *values))

    def value(name, dims):
        shape = b"".join(data(1, number(1, d) if isinstance(d, int) else data(2, d)) for d in dims)
        return data(1, name) + data(2, data(1, number(1, 1) + data(2, shape)))

    def ints(name, values):
        return data(5, data(1, name) + b"".join(number(8, v) for v in values) + number(20, 7))

    def text(name, word):
        return data(5, data(1, name) + data(4, word) + number(20, 3))

    def integer(name, v):
        return data(5, data(1, name) + number(3, v) + number(20, 2))

    def real(name, v):
        return data(5, data(1, name) + varint(2 << 3 | 5) + struct.pack("<f", v) + number(20, 1))

    def node(kind, inputs, outputs, *attributes):
        return data(1, b"".join(data(1, i) for i in inputs) + b"".join(data(2, o) for o in outputs) + data(4, kind)
                    + b"".join(attributes))

    def model(nodes, tensors, channels, axes, result):
        shape = [1, channels] + list("zyx")[-axes:]
        graph = b"".join(nodes) + data(2, "g") + b"".join(data(5, t) for t in tensors)
        graph += data(11, value("in", shape)) + data(12, value(result, ["n", "c"] + list("zyx")[-axes:]))
        return number(1, 8) + data(7, graph) + data(8, number(2, 17))

    kernel = [0.1 * i for i in range(18)]
    write("onnx", "convolution", model(
        [node("Conv", ["in", "w", "b"], ["a"], ints("kernel_shape", [3, 3]), ints("pads", [1, 1, 1, 1]),
              ints("strides", [1, 1]), ints("dilations", [1, 1]), integer("group", 1)),
         node("Relu", ["a"], ["out"])],
        [tensor("w", [2, 1, 3, 3], kernel), tensor("b", [2], [0.5, 1])], 1, 2, "out"))
    write("onnx", "volume", model(
        [node("Conv", ["in", "w"], ["a"], ints("kernel_shape", [3, 3, 3]), text("auto_pad", "SAME_UPPER")),
         node("BatchNormalization", ["a", "s", "s", "s", "s"], ["c"], real("epsilon", 1e-5)),
         node("LeakyRelu", ["c"], ["d"], real("alpha", 0.1)), node("Add", ["d", "in"], ["out"])],
        [tensor("w", [1, 1, 3, 3, 3], kernel + kernel[:9]), tensor("s", [1], [1])], 1, 3, "out"))
    write("onnx", "enlarged", model(
        [node("MaxPool", ["in"], ["a"], ints("kernel_shape", [2, 2]), ints("strides", [2, 2])),
         node("Resize", ["a", "", "f"], ["c"], text("mode", "nearest"), text("nearest_mode", "floor"),
              text("coordinate_transformation_mode", "asymmetric")),
         node("Concat", ["c", "in"], ["d"], integer("axis", 1)), node("Softmax", ["d"], ["out"], integer("axis", 1))],
        [tensor("f", [4], [1, 1, 2, 2])], 1, 2, "out"))
    write("onnx", "shapes", model(
        [node("Shape", ["in"], ["a"]), node("Gather", ["a", "i"], ["c"]), node("Unsqueeze", ["c", "z"], ["d"]),
         node("Concat", ["d", "m"], ["e"], integer("axis", 0)), node("Reshape", ["in", "e"], ["f"]),
         node("GlobalAveragePool", ["in"], ["g"]), node("Mul", ["in", "g"], ["out"])],
        [integers("i", [], [0]), integers("z", [1], [0]), integers("m", [1], [-1])], 1, 2, "out"))
    write("onnx", "transposed", model(
        [node("ConvTranspose", ["in", "w"], ["a"], ints("kernel_shape", [2, 2]), ints("strides", [2, 2])),
         node("Pad", ["a", "p"], ["c"], text("mode", "reflect")), node("Slice", ["c", "s", "t", "x"], ["d"]),
         node("AveragePool", ["d"], ["out"], ints("kernel_shape", [2, 2]), ints("strides", [2, 2]))],
        [tensor("w", [1, 1, 2, 2], [1, 2, 3, 4]), integers("p", [8], [0, 0, 1, 1, 0, 0, 1, 1]),
         integers("s", [2], [1, 1]), integers("t", [2], [-1, -1]), integers("x", [2], [2, 3])], 1, 2, "out"))


def reply():
    def text(word):
        return struct.pack("<Q", len(word)) + word

    def numbers(code, *values):
        return struct.pack(f"<Q{len(values)}{code}", len(values), *values)

    def header(name, size, flags, components, n, *texts):
        unit = [float(i == j) for i in range(n) for j in range(n)]
        return (text(name) + struct.pack("<I3Bq", size, *flags, components) + numbers("q", *range(4, 4 + n))
                + numbers("d", *[0.5] * n) + numbers("d", *[1.0] * n) + numbers("d", *unit)
                + struct.pack("<Q", len(texts) // 2) + b"".join(map(text, texts)))

    write("format-reply", "volume", header(b"unsigned_short", 2, (0, 0, 0), 1, 3, b"0008|0060", b"CT"))
    write("format-reply", "vector", header(b"float", 4, (1, 1, 0), 3, 2))
    write("format-reply", "chunks", header(b"double", 8, (1, 1, 0), 1, 4) + numbers("Q", 1, 2, 3, 4) + struct.pack("<QB", 100, 1))


def zarr():
    def store(*files):
        """Each file as a line with its path and length, then its bytes."""
        parts = [(name, data if isinstance(data, bytes) else json.dumps(data).encode()) for name, data in files]
        return b"".join(f"{name} {len(data)}\n".encode() + data for name, data in parts)

    def array(shape, chunk, kind, codecs, **more):
        return {"zarr_format": 3, "node_type": "array", "shape": shape, "data_type": kind, "fill_value": 0, "codecs": codecs,
                "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
                "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}}, "attributes": {}, **more}

    def crc32c(data):
        value = 0xffffffff
        for byte in data:
            value ^= byte
            for _ in range(8):
                value = value >> 1 ^ (0x82f63b78 if value & 1 else 0)
        return struct.pack("<I", value ^ 0xffffffff)

    little = {"name": "bytes", "configuration": {"endian": "little"}}
    big = {"name": "bytes", "configuration": {"endian": "big"}}
    gzip6 = {"name": "gzip", "configuration": {"level": 6}}
    checksum = {"name": "crc32c"}
    # One raw block of Zstandard, and one of LZ4 with literals alone.
    zstd = b"\x28\xb5\x2f\xfd\x20\x18" + struct.pack("<I", 24 << 3 | 1)[:3] + voxels(24)
    lz4 = struct.pack("<I", 24) + b"\xf0\x09" + voxels(24)
    write("zarr", "plain", store(("zarr.json", array([4, 6], [2, 6], "uint16", [big])), ("c/0/0", voxels(12, 2))))
    write("zarr", "gzip", store(("zarr.json", array([3, 4, 5], [3, 4, 5], "float32", [
        {"name": "transpose", "configuration": {"order": [2, 0, 1]}}, little, gzip6, checksum], fill_value="NaN")),
        ("c/0/0/0", squeeze(voxels(60, 4)) + crc32c(squeeze(voxels(60, 4))))))
    write("zarr", "zstd", store(("zarr.json", array([2, 12], [2, 12], "uint8", [little, {
        "name": "zstd", "configuration": {"level": 1}}], dimension_names=["y", "x"])), ("c/0/0", zstd)))
    chunks = [squeeze(voxels(8, 2)), squeeze(voxels(8, 2)[::-1])]
    index = struct.pack("<8Q", 0, len(chunks[0]), 2**64 - 1, 2**64 - 1, 2**64 - 1, 2**64 - 1, len(chunks[0]), len(chunks[1]))
    sharding = {"name": "sharding_indexed", "configuration": {
        "chunk_shape": [2, 4], "codecs": [little, gzip6], "index_codecs": [little, checksum], "index_location": "end"}}
    write("zarr", "shards", store(("zarr.json", array([7, 8], [4, 8], "int16", [sharding], fill_value=-3)),
                                  ("c/0/0", b"".join(chunks) + index + crc32c(index))))
    axes = [{"name": "c", "type": "channel"}, {"name": "y", "type": "space", "unit": "micrometer"}, {"name": "x", "type": "space"}]
    scales = [{"axes": axes, "name": "a", "datasets": [{"path": "0", "coordinateTransformations": [
        {"type": "scale", "scale": [1, 0.5, 0.25]}, {"type": "translation", "translation": [0, 1, 2]}]}]}]
    ome = {"ome": {"version": "0.5", "multiscales": scales, "omero": {"channels": [{"label": "a"}, {"label": "b"}]}}}
    write("zarr", "ome", store(("zarr.json", {"zarr_format": 3, "node_type": "group", "attributes": ome}),
                               ("0/zarr.json", array([2, 3, 4], [1, 3, 4], "uint8", [little])),
                               ("0/c/0/0/0", voxels(12)), ("0/c/1/0/0", voxels(12)[::-1])))
    old = {"zarr_format": 2, "shape": [4, 6], "chunks": [4, 3], "dtype": ">u2", "order": "F", "filters": None, "fill_value": 7,
           "compressor": {"id": "zlib", "level": 1}}
    write("zarr", "second", store((".zarray", old), ("0.0", zlib.compress(voxels(12, 2))), ("0.1", zlib.compress(voxels(12, 2)))))
    write("zarr", "lz4", store((".zarray", {**old, "shape": [2, 12], "chunks": [2, 12], "dtype": "|i1", "order": "C",
                                            "dimension_separator": "/", "compressor": {"id": "lz4"}}), ("0/0", lz4)))


def program():
    lines = {
        "mean": "mean a.mha b.mha --radius 2,3,4 --memory 1.5G --region 0,0,0,4,4,4 --threads 3",
        "raw": "median a.raw b.mha --raw uint16,512,512,300,offset=16,big-endian,spacing=1:2:3 --radius 1",
        "batch": "gaussian a.mha b.mha c.mha --out x{stem}.mha --sigma 1.5 --redo --json",
        "plan": "plan mean a.mha b.mha --radius 1 --device-memory 512MiB --divisions 7 --backend auto --devices 0,1",
        "statistics": "statistics a.mha --json --divisions 3",
        "help": "mean --help",
        "xml": "mean --xml",
        "network": "network m.onnx a.mha b.mha --progress xml --output-type float32 --overwrite --compress --quiet",
    }
    for name, line in lines.items():
        write("command-line", name, "\n".join(line.split(" ")))
    write("command-line", "sequence", "sequence\na.mha\nb.mha\n--step\nmean --radius 2\n--step\nmedian --radius 1,1,1")
    for i, value in enumerate(["12", "-1.5e-3", "1,2,3", "0,0,0,5,1,7", "uint16,512,512,300,offset=64,big-endian,spacing=0.5:0.5:2",
                               "18446744073709551615", "nan", "inf", "0x10", "1.5G", "auto", "on", "mirror", "float32,2,2"]):
        write("value", f"{i:02}", value)
    run = '"run":{"IN":"in.mha 1 2 3","the region":"[0, 0] [4, 10]"}'
    write("journal", "whole", '{"bytes":100,"files":3,"planes":4,' + run + '}\n{"boot":"","bytes":200,"files":6,"planes":8}')
    write("journal", "begun", '{"bytes":0,"files":0,"planes":0,' + run + '}\n')
    write("journal", "another", '{"bytes":9,"files":1,"planes":10,"run":{"IN":"other.mha 1 2 3"}}\n{}')
    write("record", "empty", "{}")
    file = '["/tmp/in.mha", 12, 34, 1700000000, 5, 1700000000, 6]'
    write("record", "whole", '{"made": {"version": "0.1.0", "program": ' + file + ', "engine": ' + file
          + ', "stages": [["identity", {}]], "additionalInputs": {}, "raw": "", "region": [], "outputType": "", '
          '"compress": false, "read": [' + file + ']}, "written": [' + file + ", null, 1e300, -0.5, true]}\n")


for make in (metaimage, nrrd, nifti, mrc, vtk, gipl, tiff, png, bmp, jpeg, onnx, reply, zarr, program):
    make()
