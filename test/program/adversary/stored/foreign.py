# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Formats whose voxels other libraries decode: PNG, JPEG, BMP, HDF5, DICOM. Damaged files are refused by one line that names
the file, whatever the library below does with them, and rare but valid ones are read right."""
import array
import base64
import os
import random
import re
import struct
import sys
import zlib
from pathlib import Path

from adversary.support import MIB, Image, ProgramTest, files_of, limit_files, noise, read, run, write

# Grays of 16 x 16, sequential and progressive; inks of 8 x 8 as Adobe stores them; grays with Exif orientation 6.
JPEGS = {name: base64.b64decode(text) for name, text in {
    "gray": (
        "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAA0JCgsKCA0LCgsODg0PEyAVExISEyccHhcgLikxMC4pLSwzOko+MzZGNywtQFdBRkxOUlNSMj5aYVpQ"
        "YEpRUk//wAALCAAQABABAREA/8QAFQABAQAAAAAAAAAAAAAAAAAABwb/xAAjEAACAgAFBAMAAAAAAAAAAAABAgMRAAQFITEGEhMiQXHw/9oACAEB"
        "AAA/AJ/p+lKkHcj2rCTpPhXJSeeVY4gjGRw5TsX59tqrm+Rg10AklWokGv31hDRI5dDzcE+YMKzQND3lSxBYdopbtjZ2A5O3OP/Z"
    ),
    "progressive": (
        "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAA0JCgsKCA0LCgsODg0PEyAVExISEyccHhcgLikxMC4pLSwzOko+MzZGNywtQFdBRkxOUlNSMj5aYVpQ"
        "YEpRUk//wgALCAAQABABAREA/8QAFQABAQAAAAAAAAAAAAAAAAAABgX/2gAIAQEAAAABnIjqH//EABkQAAMAAwAAAAAAAAAAAAAAAAADEQESE//a"
        "AAgBAQABBQJBickF1R//xAAZEAADAQEBAAAAAAAAAAAAAAAAARECITH/2gAIAQEABj8CRquRWzwRtxOZfGf/xAAaEAACAwEBAAAAAAAAAAAAAAAB"
        "EQAhQTGB/9oACAEBAAE/IfKKIAUDaltao/U2YSGDWz//2gAIAQEAAAAQr//EAB0QAQACAgIDAAAAAAAAAAAAAAEAESExQWFRcfD/2gAIAQEAAT8Q"
        "rl5Vh1LlS6HqdwCHUK2Lj5hReGITaHI1r3P/2Q=="
    ),
    "cmyk": (
        "/9j/7gAOQWRvYmUAZAAAAAAA/9sAQwACAQEBAQECAQEBAgICAgIEAwICAgIFBAQDBAYFBgYGBQYGBgcJCAYHCQcGBggLCAkKCgoKCgYICwwLCgwJ"
        "CgoK/8AAFAgACAAIBEMRAE0RAFkRAEsRAP/EABQAAQAAAAAAAAAAAAAAAAAAAAn/xAAfEAABAgYDAAAAAAAAAAAAAAAACAkZJDRCRIJRZaP/2gAO"
        "BEMATQBZAEsAAD8ARxyTP2EciSd/6iOKSUlUT/Nwb7beBqf/2Q=="
    ),
    "exif": (
        "/9j/4AAQSkZJRgABAQAAAQABAAD/4QAiRXhpZgAATU0AKgAAAAgAAQESAAMAAAABAAYAAAAAAAD/2wBDAA0JCgsKCA0LCgsODg0PEyAVExISEycc"
        "HhcgLikxMC4pLSwzOko+MzZGNywtQFdBRkxOUlNSMj5aYVpQYEpRUk//wAALCAAIAAgBAREA/8QAFAABAAAAAAAAAAAAAAAAAAAABv/EABYQAAMA"
        "AAAAAAAAAAAAAAAAAAAGQv/aAAgBAQAAPwAmvyf/2Q=="
    ),
}.items()}
# The voxels of shorts(120), 12 x 10, by two encoders.
CODES = {name: base64.b64decode(text) for name, text in {
    "1.2.840.10008.1.2.4.90": (
        "/0//UQApAAAAAAAMAAAACgAAAAAAAAAAAAAADAAAAAoAAAAAAAAAAAABDwEB/1IADAAAAAEAAgQEAAH/XAAKQICIiJCIiJD/ZAAqAAFDcmVhdGVk"
        "IGJ5IEdEQ00vT3BlbkpQRUcgdmVyc2lvbiAyLjUuMP+QAAoAAAAAANsAAf+Tz/wwRAjsixXiBK9b/q54uUvCimQ/wB+YbAD8AiAP2CgQg5pEqKj1"
        "STS/wjZtBE9FIgT6hX8FYyF18JQ0jVg/wD9iuAfsUwD+S8AedI4uUVwpj7hSAOS+DeXyoTYp/ZHoIhtz3KMkcKEeU/oN5Bfnh9Y7csrfMnpnUosb"
        "tDxTCspGOGPaJL66qLloJGMxenQUlPCj7QXQyqnZfPdReFcgOEIqNiYaHc14u3PjMvkoYOk4JVINzY1CF2TgRPCcTs5ZvBFYjpFNFrnWKMrpX//Z"
    ),
    "1.2.840.10008.1.2.4.80": (
        "/9j/9wALEAAKAAwBAREA//gADQH//wASAEMBFABA/9oACAEBAAAAAFEe845i9JxzViaOcFRGnyMUJMW0LSinZ2b1jdUdfIRYpxOHHDJixNE7jLFS"
        "4SWXFtRr2jyVkOFZIDp+VrToG2RzR8SrV6EA4U0AsnPrODAT/EA46UPgwn9etJbDXfgiwKs8V+TrJNaUd9f/bcaFU0Zm3T1jTLdd/oJy4rUuPrXp"
        "8iEix1P+6t64tJOjFibfhS56h2CYnd0JORVOaM8hr+ds32Hq/OdXAP/Z"
    ),
}.items()}


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png(width, height, bits, color, rows, before=(), interlaced=False):
    """`rows` are packed; of an interlaced file those of all passes."""
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, color, 0, 0, interlaced)) +
            b"".join(chunk(*one) for one in before) + chunk(b"IDAT", zlib.compress(b"".join(b"\0" + row for row in rows))) +
            chunk(b"IEND", b""))


def bmp(width, height, bits, data, compression=0, header=40, colors=b"", masks=b"", more=b""):
    """`masks` lie behind a header of 40 bytes, and within longer ones."""
    information = struct.pack("<IiiHHIIiiII", header, width, height, 1, bits, compression, len(data), 0, 0,
                              len(colors) // 4, 0) + masks
    information = information.ljust(header, b"\0") + more
    offset = 14 + len(information) + len(colors)
    return b"BM" + struct.pack("<IHHI", offset + len(data), 0, 0, offset) + information + colors + data


def element(group, number, representation, value):
    value = value.encode() if isinstance(value, str) else value
    value += (b"\0" if representation in ("UI", "OB", "OW") else b" ") * (len(value) % 2)
    head = struct.pack("<HH", group, number) + representation.encode()
    if representation in ("OB", "OW", "SQ", "UN"):
        return head + struct.pack("<HI", 0, len(value)) + value
    return head + struct.pack("<H", len(value)) + value


def short(group, number, value):
    return element(group, number, "US", struct.pack("<H", value))


def dicom(voxels, rows, columns, position=(0, 0, 0), orientation=(1, 0, 0, 0, 1, 0), spacing=(0.5, 0.75), number=1,
          frames=None, photometric="MONOCHROME2", samples=1, bits=16, more=b"", syntax="1.2.840.10008.1.2.1", pixels=None,
          series="1.2.3.4"):
    """A CT slice. `voxels` are bytes; `pixels` the element with them, if they are compressed."""
    uid = f"1.2.3.4.5.{number}"
    secondary = "1.2.840.10008.5.1.4.1.1.7" + (".2" if frames else "")
    kind = "1.2.840.10008.5.1.4.1.1.2" if samples == 1 and photometric != "PALETTE COLOR" and not frames else secondary
    meta = (element(2, 1, "OB", b"\0\1") + element(2, 2, "UI", kind) + element(2, 3, "UI", uid) +
            element(2, 0x10, "UI", syntax) + element(2, 0x12, "UI", "1.2.3"))
    text = "\\".join
    body = (element(8, 0x16, "UI", kind) + element(8, 0x18, "UI", uid) + element(8, 0x60, "CS", "CT") +
            element(0x20, 0xd, "UI", "1.2.3") + element(0x20, 0xe, "UI", series) + element(0x20, 0x13, "IS", str(number)) +
            element(0x20, 0x32, "DS", text(map(str, position))) + element(0x20, 0x37, "DS", text(map(str, orientation))) +
            short(0x28, 2, samples) + element(0x28, 4, "CS", photometric) + (short(0x28, 6, 0) if samples > 1 else b"") +
            (element(0x28, 8, "IS", str(frames)) if frames else b"") + short(0x28, 0x10, rows) + short(0x28, 0x11, columns) +
            element(0x28, 0x30, "DS", text(map(str, spacing))) + short(0x28, 0x100, bits) + short(0x28, 0x101, bits) +
            short(0x28, 0x102, bits - 1) + short(0x28, 0x103, 0) + more +
            (pixels if pixels is not None else element(0x7fe0, 0x10, "OW", voxels)))
    return b"\0" * 128 + b"DICM" + element(2, 0, "UL", struct.pack("<I", len(meta))) + meta + body


def fragment(data):
    """The element with compressed voxels of one frame."""
    return (struct.pack("<HH2sHI", 0x7fe0, 0x10, b"OB", 0, 0xffffffff) + struct.pack("<HHI", 0xfffe, 0xe000, 0) +
            struct.pack("<HHI", 0xfffe, 0xe000, len(data)) + data + struct.pack("<HHI", 0xfffe, 0xe0dd, 0))


def shorts(count, seed=1):
    generator = random.Random(seed)
    return array.array("H", (generator.randrange(1000) for _ in range(count)))


def flips(content, bits):
    """`content` with one bit turned: of each byte, or of as many as `bits`, evenly."""
    generator = random.Random(len(content))
    for at in sorted(generator.sample(range(len(content)), min(bits, len(content)))):
        yield at, content[:at] + bytes([content[at] ^ 1 << generator.randrange(8)]) + content[at + 1:]


class Foreign(ProgramTest):
    def put(self, name, content):
        path = self.folder / name
        path.write_bytes(content)
        return path

    def voxels(self, path, *options):
        """The program's reading of a file: an image of the values, components first."""
        self.out.unlink(missing_ok=True)
        result = self.assert_runs("identity", path, self.out, *options)
        content = self.out.read_bytes()
        channels = re.search(rb"ElementNumberOfChannels = (\d+)", content)
        size = list(map(int, re.search(rb"DimSize = ([\d ]+)", content).group(1).split()))
        kind = re.search(rb"ElementType = (\w+)", content).group(1)
        data = content[content.index(b"LOCAL\n") + 6:]
        values = array.array({b"MET_UCHAR": "B", b"MET_USHORT": "H", b"MET_SHORT": "h", b"MET_FLOAT": "f",
                              b"MET_DOUBLE": "d", b"MET_INT": "i"}[kind], data)
        return size, int(channels.group(1)) if channels else 1, list(values), result

    def refused(self, path, *words):
        self.out.unlink(missing_ok=True)
        result = run("identity", path, self.out)
        self.assert_failed(result, (Path(path).name, *words))
        self.assertFalse(self.out.exists(), str(result))
        return result

    def refused_or_same(self, content, name, expected, what):
        """A change that is not noticed must not change voxels."""
        path = self.put(name, content)
        self.out.unlink(missing_ok=True)
        result = run("identity", path, self.out, timeout=20)
        self.assertIn(result.returncode, (0, 1), f"{what}: {result}")
        if result.returncode == 0:
            self.assertEqual(read(self.out).values.tobytes(), expected, f"{what}: other voxels: {result}")
        else:
            self.assertIn(name, result.stderr, f"{what}: {result}")
        return result.returncode

    # PNG

    def test_a_damaged_png_is_refused_and_the_batch_goes_on(self):
        image = noise((8, 6), "uint8", most=255)
        rows = [bytes(image.values[8 * y:8 * y + 8]) for y in range(6)]
        content = png(8, 6, 8, 0, rows)
        for at in (29, 32, len(content) - 1, len(content) - 20):
            with self.subTest(byte=at):
                damaged = bytearray(content)
                damaged[at] ^= 1
                self.refused(self.put("damaged.png", bytes(damaged)))
        good = self.put("good.png", content)
        result = run("identity", self.folder / "damaged.png", good, "--out", self.folder / "of-{stem}.mha")
        self.assertEqual(result.returncode, 1, str(result))
        self.assertEqual(read(self.folder / "of-good.mha").values, image.values)
        for at, damaged in flips(content, 60):
            self.refused_or_same(damaged, "flipped.png", image.values.tobytes(), f"byte {at}")

    def test_a_png_that_claims_more_than_it_holds(self):
        result = self.refused(self.put("vast.png", png(60000, 60000, 8, 2, [b"\0" * 30])), "expand")
        self.assertNotIn("memory", result.stderr)

    def test_rare_png(self):
        grays = [[0, 1, 1], [1, 0, 1]]
        transparent = (b"tRNS", b"\x80\xff")
        colors = (b"PLTE", bytes([10, 20, 30, 40, 50, 60]))
        twisted = (b"PLTE", bytes([200] * 3 + [7] * 3))
        for name, content, channels, expected in (
                ("1 bit", png(3, 2, 1, 0, [b"\x60", b"\xa0"]), 1, [255 * v for row in grays for v in row]),
                ("2 bits", png(3, 1, 2, 0, [b"\x1c"]), 1, [0, 85, 255]),
                ("4 bits", png(3, 1, 4, 0, [b"\x1f\x20"]), 1, [17, 255, 34]),
                ("palette of grays", png(3, 2, 1, 3, [b"\x60", b"\xa0"], [twisted]), 1, [200, 7, 7, 7, 200, 7]),
                ("palette", png(2, 1, 8, 3, [b"\1\0"], [colors]), 3, [40, 50, 60, 10, 20, 30]),
                ("palette with alpha", png(2, 1, 8, 3, [b"\1\0"], [colors, transparent]), 4, [40, 50, 60, 255, 10, 20, 30, 128]),
                ("16 bits", png(2, 1, 16, 0, [b"\1\2\3\4"]), 1, [0x102, 0x304]),
                ("gray and alpha", png(2, 1, 8, 4, [b"\1\2\3\4"]), 2, [1, 2, 3, 4]),
                # Neither of them changes what is stored.
                ("gamma", png(2, 1, 8, 0, [b"\x40\x80"], [(b"gAMA", struct.pack(">I", 45455))]), 1, [0x40, 0x80]),
                ("significant bits", png(2, 1, 8, 0, [b"\x40\x80"], [(b"sBIT", b"\5")]), 1, [0x40, 0x80]),
                ("significant bits of 16", png(2, 1, 16, 0, [b"\x40\x80\1\2"], [(b"sBIT", b"\x0c")]), 1, [0x4080, 0x102]),
                # The first pass has the first pixel, the sixth the second.
                ("interlaced", png(2, 1, 8, 0, [b"\x11", b"\x22"], interlaced=True), 1, [0x11, 0x22])):
            with self.subTest(name):
                _, found, values, _ = self.voxels(self.put("rare.png", content))
                self.assertEqual((found, values), (channels, expected))
        self.refused(self.put("index.png", png(2, 1, 8, 3, [b"\7\0"], [twisted])))

    # JPEG

    def test_a_damaged_jpeg_is_refused(self):
        for name in ("gray", "progressive", "cmyk"):
            content = JPEGS[name]
            scan = content.rindex(b"\xff\xda")
            for what, damaged in (("half a scan", content[:(scan + len(content)) // 2]),
                                  ("half a scan with an end", content[:(scan + len(content)) // 2] + b"\xff\xd9"),
                                  ("no end", content[:-2]),
                                  ("no scan", content[:content.index(b"\xff\xda")] + b"\xff\xd9")):
                with self.subTest(name=name, what=what):
                    self.refused(self.put("damaged.jpg", damaged))
        # A scan that is missing is quality that is missing.
        content = JPEGS["progressive"]
        scans = [match.start() for match in re.finditer(b"\xff\xda", content)]
        self.assertGreater(len(scans), 2)
        tables = content.rindex(b"\xff\xc4", 0, scans[-1]) if content.rfind(b"\xff\xc4", scans[-2], scans[-1]) > 0 else scans[-1]
        self.refused(self.put("less.jpg", content[:tables] + b"\xff\xd9"))

    def test_flipped_bits_of_a_jpeg_end_no_process(self):
        for name in ("gray", "progressive", "cmyk"):
            for at, damaged in flips(JPEGS[name], 40):
                path = self.put("flipped.jpg", damaged)
                self.out.unlink(missing_ok=True)
                result = run("identity", path, self.out, timeout=20)
                # Without checksums a flipped coefficient is another image.
                self.assertIn(result.returncode, (0, 1), f"{name}, byte {at}: {result}")

    def test_rare_jpeg(self):
        size, channels, values, _ = self.voxels(self.put("cmyk.jpg", JPEGS["cmyk"]))
        self.assertEqual((size, channels), ([8, 8], 3))
        # Red, green and blue are what the inks 16 x, 16 y, 8 (x + y) and 255 - 16 x leave of white.
        for y in range(8):
            for x in range(8):
                key = 16 * x
                for c, ink in enumerate((16 * x, 16 * y, 8 * (x + y))):
                    self.assertAlmostEqual(values[3 * (8 * y + x) + c], (255 - ink) * key / 255, delta=12)
        *_, values, result = self.voxels(self.put("turned.jpg", JPEGS["exif"]))
        self.assertTrue(any("orientation 6" in line and "turned.jpg" in line for line in result.warnings()), str(result))
        self.assertEqual(self.voxels(self.put("gray.jpg", JPEGS["gray"]))[:2], ([16, 16], 1))
        self.assertEqual(self.voxels(self.put("progressive.jpg", JPEGS["progressive"]))[:2], ([16, 16], 1))

    # BMP

    def test_rare_bmp(self):
        table = b"".join(bytes([v, v, v, 0]) for v in (9, 8, 7, 6))
        masks = struct.pack("<IIII", 0xff, 0xff00, 0xff0000, 0xff000000)
        red5 = struct.pack("<III", 0xf800, 0x7e0, 0x1f)
        pixels = bytes([30, 20, 10, 40, 31, 21, 11, 41])
        for name, content, channels, expected in (
                ("32 bits", bmp(2, 1, 32, pixels), 4, [10, 20, 30, 40, 11, 21, 31, 41]),
                ("32 bits, version 4", bmp(2, 1, 32, pixels, 3, 108, masks=masks), 4, [30, 20, 10, 40, 31, 21, 11, 41]),
                ("32 bits, version 5", bmp(2, 1, 32, pixels, 3, 124, masks=masks), 4, [30, 20, 10, 40, 31, 21, 11, 41]),
                ("32 bits, masks behind", bmp(2, 1, 32, pixels, 3, more=masks[:12]), 3, [30, 20, 10, 31, 21, 11]),
                ("24 bits, version 4", bmp(1, 2, 24, bytes([1, 2, 3, 0, 4, 5, 6, 0]), 0, 108), 3, [6, 5, 4, 3, 2, 1]),
                ("24 bits, top first", bmp(1, -2, 24, bytes([1, 2, 3, 0, 4, 5, 6, 0])), 3, [3, 2, 1, 6, 5, 4]),
                ("16 bits", bmp(2, 1, 16, struct.pack("<HH", 0x7c1f, 0x03e0)), 3, [255, 0, 255, 0, 255, 0]),
                ("16 bits, masks", bmp(2, 1, 16, struct.pack("<HH", 0xf800, 0x07ff), 3, more=red5), 3,
                 [255, 0, 0, 0, 255, 255]),
                ("8 bits", bmp(3, 1, 8, b"\0\1\3\0", colors=table), 1, [9, 8, 6]),
                ("8 bits, colors", bmp(2, 1, 8, b"\1\0\0\0", colors=bytes([3, 2, 1, 0, 6, 5, 4, 0])), 3, [4, 5, 6, 1, 2, 3]),
                ("4 bits", bmp(3, 1, 4, b"\x01\x30\0\0", colors=table), 1, [9, 8, 6]),
                ("1 bit", bmp(3, 1, 1, b"\x40\0\0\0", colors=table[:8]), 1, [9, 8, 9]),
                ("runs", bmp(4, 2, 8, b"\3\1\1\2\0\0\0\4\0\1\2\3\0\1", 1, colors=table), 1, [9, 8, 7, 6, 8, 8, 8, 7]),
                ("runs of 4 bits", bmp(4, 1, 4, b"\4\x12\0\1", 2, colors=table), 1, [8, 7, 8, 7])):
            with self.subTest(name):
                _, found, values, _ = self.voxels(self.put("rare.bmp", content))
                self.assertEqual((found, values), (channels, expected))

    def test_a_damaged_bmp_is_refused(self):
        table = bytes(16)
        for what, content in (
                ("24 bits in runs", bmp(6, 7, 24, bytes(140), 1)), ("unknown compression", bmp(6, 7, 24, bytes(140), 128)),
                ("cut", bmp(6, 7, 24, bytes(139))), ("vast", bmp(1 << 30, 1 << 30, 24, bytes(140))),
                ("no width", bmp(0, 7, 24, bytes(140))), ("least height", bmp(6, -(1 << 31), 24, bytes(140))),
                ("color of none", bmp(4, 1, 8, b"\0\1\2\7", colors=table)),
                ("masks that overlap", bmp(2, 1, 32, bytes(8), 3, more=struct.pack("<III", 0xff, 0xff, 0xff00))),
                ("runs without an end", bmp(4, 1, 8, b"\4\1", 1, colors=table)),
                ("runs beyond the image", bmp(4, 1, 8, b"\5\1\0\1", 1, colors=table)),
                ("runs that leave voxels out", bmp(4, 2, 8, b"\4\1\0\1", 1, colors=table)),
                ("vast runs", bmp(60000, 60000, 8, b"\0\1", 1, colors=table)),
                ("header of 41 bytes", bmp(6, 7, 24, bytes(140), 0, 41))):
            with self.subTest(what):
                self.refused(self.put("damaged.bmp", content))

    # DICOM

    def test_truncated_dicom(self):
        voxels = shorts(12 * 10)
        content = dicom(voxels.tobytes(), 10, 12)
        self.assertEqual(self.voxels(self.put("whole.dcm", content))[2], list(voxels))
        for length in (133, 140, 200, len(content) - 240, len(content) - 100, len(content) - 1):
            for name in ("cut.dcm", "cut.dat"):
                with self.subTest(length=length, name=name):
                    self.refused(self.put(name, content[:length]))
        self.refused(self.put("less.dcm", dicom(voxels.tobytes()[:-2], 10, 12)), "238 of 240")

    def write_series(self, name, count=4, **changed):
        """`changed` has functions of a slice's number."""
        folder = self.folder / name
        folder.mkdir()
        for i in range(count):
            fields = {"position": (0, 0, 2 * i), **{key: value(i) for key, value in changed.items()}}
            (folder / f"{(3 * i + 1) % 7}.dcm").write_bytes(dicom(shorts(12 * 10, i).tobytes(), 10, 12, number=i + 1, **fields))
        return folder

    def test_series(self):
        whole = self.write_series("whole")
        size, _, values, _ = self.voxels(whole)
        self.assertEqual((size, values), ([12, 10, 4], [v for i in range(4) for v in shorts(120, i)]))
        for name, changed in (
                ("orientation", {"orientation": lambda i: (0, 1, 0, -1, 0, 0) if i == 2 else (1, 0, 0, 0, 1, 0)}),
                ("spacing", {"spacing": lambda i: (0.5, 0.8) if i == 2 else (0.5, 0.75)}),
                ("gap", {"position": lambda i: (0, 0, 2 * i + (i > 1))}),
                ("place", {"position": lambda i: (0, 0, 2 * min(i, 2))}),
                ("shift", {"position": lambda i: (i == 1, 0, 2 * i)}),
                ("several", {"series": lambda i: f"1.2.3.{4 + i // 2}"})):
            with self.subTest(name):
                self.refused(self.write_series(name, **changed))
        last = whole / "3.dcm"  # of four
        content = last.read_bytes()
        for length in (len(content) - 1, 100, 0):
            with self.subTest(length=length):
                last.write_bytes(content[:length])
                self.refused(whole)
        last.unlink()
        (whole / "notes.txt").write_text("no image\n")
        self.assertEqual(self.voxels(whole)[0], [12, 10, 3])

    def test_rare_dicom(self):
        bytes_ = bytes(range(48))
        ramp = array.array("H", range(24))
        # Runs: a header of 16 numbers, then 8 literal bytes, 4 equal ones, and one that fills.
        frame = struct.pack("<16I", 1, 64, *[0] * 14) + b"\7ABCDEFGH\xfdZ\0"
        runs = fragment(frame)
        lut = [element(0x28, 0x1101 + c, "US", struct.pack("<HHH", 4, 0, 16)) for c in range(3)]
        tables = [element(0x28, 0x1201 + c, "OW", struct.pack("<4H", *(256 * (10 * c + i) for i in range(4)))) for c in range(3)]
        slope = element(0x28, 0x1052, "DS", "-5") + element(0x28, 0x1053, "DS", "2")
        inverse = {"photometric": "MONOCHROME1"}
        for name, content, size, channels, expected in (
                ("frames", dicom(ramp.tobytes(), 3, 4, frames=2), [4, 3, 2], 1, list(ramp)),
                # As all readers over ITK give it: 0 is white, so that it is turned.
                ("inverse", dicom(ramp.tobytes(), 4, 6, **inverse), [6, 4], 1, [65535 - v for v in ramp]),
                ("slope", dicom(ramp.tobytes(), 4, 6, more=slope), [6, 4], 1, [2 * v - 5 for v in ramp]),
                ("colors", dicom(bytes_, 4, 4, samples=3, bits=8, photometric="RGB"), [4, 4], 3, list(bytes_)),
                ("palette", dicom(bytes([0, 1, 2, 3]), 2, 2, bits=8, photometric="PALETTE COLOR",
                                  more=b"".join(lut + tables)), [2, 2], 3,
                 [10 * c + i for i in range(4) for c in range(3)]),
                ("runs", dicom(b"", 3, 4, bits=8, syntax="1.2.840.10008.1.2.5", pixels=runs), [4, 3], 1,
                 list(b"ABCDEFGHZZZZ"))):
            with self.subTest(name):
                found, components, values, _ = self.voxels(self.put("rare.dcm", content))
                self.assertEqual(([n for n in found if n > 1], components, values), (size, channels, expected))
        with self.subTest("runs that are cut"):
            content = dicom(b"", 3, 4, bits=8, syntax="1.2.840.10008.1.2.5", pixels=runs[:-8])
            self.refused(self.put("runs.dcm", content))

    def test_compressed_dicom(self):
        """Read right, cut and damaged: no crash of a library ends a run, and none takes more memory than a file explains."""
        for syntax, code in CODES.items():
            content = dicom(b"", 10, 12, syntax=syntax, pixels=fragment(code))
            self.assertEqual(self.voxels(self.put("whole.dcm", content))[2], list(shorts(120)))
            self.refused(self.put("cut.dcm", content[:-1]))
            self.refused(self.put("half.dcm", dicom(b"", 10, 12, syntax=syntax, pixels=fragment(code[:len(code) // 4 * 2]))))
            for at, damaged in flips(content, 40):
                path = self.put("damaged.dcm", damaged)
                self.out.unlink(missing_ok=True)
                result, peak = self.measured("identity", path, self.out, "--memory=100M", timeout=20)
                self.assertIn(result.returncode, (0, 1), f"byte {at}: {result}")
                self.assertLessEqual(peak, 100 * MIB, f"byte {at}: {result}")

    # HDF5

    def test_damaged_hdf5(self):
        image = noise((6, 5, 40), "uint16")
        source = write(self.folder / "in.mha", image)
        whole = self.folder / "whole.h5"
        for options in ((), ("--compress",)):
            whole.unlink(missing_ok=True)
            self.assert_runs("identity", source, whole, *options)
            content = whole.read_bytes()
            # The index of the chunks: nodes of a tree, whose keys have the size of a chunk and then where it begins.
            nodes = [match.start() for match in re.finditer(b"TREE\x01", content)]
            self.assertTrue(nodes)
            for node in nodes:
                entries = struct.unpack_from("<H", content, node + 6)[0]
                for what, at in (("entries", node + 6), ("first key", node + 24 + 8), ("second key", node + 24 + 48),
                                 ("address", node + 24 + 40), ("end of the first key", node + 24 + 32),
                                 ("end of the second key", node + 24 + 48 + 32), ("within it", node + 24 + 48 + 37)):
                    with self.subTest(options=options, what=what, entries=entries):
                        damaged = bytearray(content)
                        damaged[at] ^= 4
                        self.refused_or_same(bytes(damaged), "damaged.h5", image.values.tobytes(), what)
            for at, damaged in flips(content[:4000], 40):
                self.refused_or_same(damaged + content[4000:], "flipped.h5", image.values.tobytes(), f"byte {at}")

    def test_hdf5_of_one_large_chunk_keeps_the_budget(self):
        """A plane is a chunk: compressed, it is inflated whole for each part that is read."""
        image = Image((4096, 2048, 2), "uint16", array.array("H", bytes(4096 * 2048 * 2 * 2)))
        source = write(self.folder / "in.mha", image)
        large = self.folder / "large.h5"
        self.assert_runs("identity", source, large, "--compress")
        refused = run("identity", large, self.out, "--memory=64M")
        self.assert_failed(refused, "--memory")
        needed = re.search(r"needs (?:at least )?([\d.]+) MiB|([\d.]+) MiB that .* needs", refused.stderr)
        self.assertTrue(needed, str(refused))
        enough = int(float(needed.group(1) or needed.group(2))) + 1
        result, peak = self.measured("identity", large, self.out, f"--memory={enough}M")
        self.assertEqual(result.returncode, 0, str(result))
        self.assertLessEqual(peak, enough * MIB, str(result))

    def test_hdf5_that_itk_did_not_write(self):
        signature = b"\x89HDF\r\n\x1a\n"
        self.refused(self.put("other.h5", signature + bytes(2000)), "HDF5")
        self.refused(self.put("no.h5", b"no HDF5 at all"), "HDF5")

    def test_a_full_disk_says_nothing_of_a_loop(self):
        source = write(self.folder / "in.mha", noise((64, 64, 32), "uint16"))
        target = self.folder / "o.h5"
        result = run("identity", source, target, preexec_fn=limit_files(100000))
        self.assert_failed(result, "o.h5")
        self.assertNotIn("infinite loop", result.stderr)
        self.assertFalse(target.exists())
        self.assertEqual([n for n in files_of(self.folder) if n.startswith(".")], [])

    # The process that reads them

    def test_a_process_that_cannot_be_started_or_lies(self):
        source = write(self.folder / "in.mha", noise((6, 5), "uint8"))
        self.assert_runs("identity", source, self.folder / "a.h5")
        dcm = self.put("a.dcm", dicom(shorts(120).tobytes(), 10, 12))
        greeting = "import os, struct; os.read(0, 24); os.write(0, struct.pack('<IIQI', 0, 0, 4, 1)); os.read(0, 1 << 16); "
        scripts = {
            "dies": "#!/bin/sh\nexit 3\n",
            "crashes": "#!/bin/sh\nkill -SEGV $$\n",
            "crashes later": f"#!{sys.executable}\n{greeting}os.kill(os.getpid(), 11)\n",
            "is another": "#!/bin/sh\necho hello\n",
            "claims a vast reply": f"#!{sys.executable}\n{greeting}os.write(0, struct.pack('<IIQ', 0, 0, 1 << 60)); os.read(0, 1)\n",
            "cuts its reply": f"#!{sys.executable}\n{greeting}os.write(0, struct.pack('<IIQ', 0, 0, 100) + b'x' * 50)\n",
            "claims a vast list": f"#!{sys.executable}\n{greeting}os.write(0, struct.pack('<IIQ', 0, 0, 40) + b'\\xff' * 40)\n",
        }
        for name, script in scripts.items():
            program = self.put("program", script.encode())
            program.chmod(0o755)
            environment = {**os.environ, "CHUNKWISE_FORMATS_MODULE": str(program)}
            for path in (self.folder / "a.h5", dcm):
                with self.subTest(name=name, path=path.name):
                    self.out.unlink(missing_ok=True)
                    result = run("identity", path, self.out, env=environment, timeout=20)
                    self.assert_failed(result, path.name)
            with self.subTest(name=name, path="others"):
                self.out.unlink(missing_ok=True)
                self.assert_runs("identity", source, self.out, env=environment)
