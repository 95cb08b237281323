# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""TIFF and OME-TIFF files that are unusual, contradict themselves, or end too early: read right, or refused by name."""
import base64
import lzma
import struct
import zlib

from adversary.support import EXHAUSTIVE, KINDS, MIB, Image, ProgramTest, read, run, write

BYTE, ASCII, SHORT, LONG, RATIONAL, SBYTE, UNDEFINED, FLOAT, DOUBLE, LONG8 = 1, 2, 3, 4, 5, 6, 7, 11, 12, 16
CODES = {BYTE: "B", SHORT: "H", LONG: "I", SBYTE: "b", UNDEFINED: "B", FLOAT: "f", DOUBLE: "d", LONG8: "Q"}
(SUBFILE, WIDTH, HEIGHT, BITS, COMPRESSION, PHOTOMETRIC, FILLORDER, DESCRIPTION, OFFSETS, ORIENTATION, SAMPLES, ROWS, COUNTS,
 XRESOLUTION, YRESOLUTION, PLANAR, UNIT, PREDICTOR, COLORMAP, TILE_WIDTH, TILE_HEIGHT, TILE_OFFSETS, TILE_COUNTS, SUBIFDS,
 EXTRA, FORMAT, NODATA, DEPTH) = (254, 256, 257, 258, 259, 262, 266, 270, 273, 274, 277, 278, 279, 282, 283, 284, 296, 317, 320,
                                  322, 323, 324, 325, 330, 338, 339, 42113, 32997)
DEFLATE, LZW, PACKBITS, JPEG, LZMA = 8, 5, 32773, 7, 34925


class Tiff:
    """Bytes of a file of pages: (tags, blocks) with tags {number: (type, values)}. Offsets and counts follow from the
    blocks, unless the tags have them. Directories, then what does not fit into them, then the blocks of all pages."""

    def __init__(self, pages, end="<", big=False, next_of_last=0, description_last=False):
        self.end, self.big = end, big
        word, directory = ("Q", 20) if big else ("I", 12)
        self.next_at = []
        head = (b"II" if end == "<" else b"MM") + self.pack("H", 43 if big else 42)
        head += self.pack("HHQ", 8, 0, 16) if big else self.pack("I", 8)
        for attempt in range(2):
            starts = [0, 0, 0] if attempt == 0 else starts
            bodies, extras, data, late = [], b"", b"", b""
            position = len(head)
            base = 0 if attempt == 0 else end_of_directories
            base_data = 0 if attempt == 0 else end_of_directories + end_of_extras
            base_late = 0 if attempt == 0 else base_data + end_of_data
            self.next_at = []
            for number, (tags, blocks) in enumerate(pages):
                tags = dict(tags)
                tiled = TILE_WIDTH in tags
                offsets, counts = [], []
                for block in blocks:
                    offsets.append(base_data + len(data) if block else 0)
                    counts.append(len(block))
                    data += block
                kind = LONG8 if big else LONG
                tags.setdefault(TILE_OFFSETS if tiled else OFFSETS, (kind, offsets))
                tags.setdefault(TILE_COUNTS if tiled else COUNTS, (kind, counts))
                tags = {tag: of for tag, of in tags.items() if of is not None}
                body = self.pack("Q" if big else "H", len(tags))
                for tag in sorted(tags):
                    type_, values = tags[tag]
                    if type_ == ASCII:
                        raw, count = values, len(values)
                    elif type_ == RATIONAL:
                        raw, count = self.pack(f"{len(values)}I", *values), len(values) // 2
                    else:
                        raw, count = self.pack(f"{len(values)}{CODES[type_]}", *values), len(values)
                    body += self.pack("HH" + word, tag, type_, count)
                    if len(raw) <= struct.calcsize(word):
                        body += raw.ljust(struct.calcsize("=" + word), b"\0")
                    elif tag == DESCRIPTION and description_last:
                        body += self.pack(word, base_late + len(late))
                        late += raw
                    else:
                        body += self.pack(word, base + len(extras))
                        extras += raw + b"\0" * (len(raw) % 2)
                position += len(body) + struct.calcsize("=" + word)
                self.next_at.append(position - struct.calcsize("=" + word))
                last = number + 1 == len(pages)
                bodies.append(body + self.pack(word, next_of_last if last else position))
            end_of_directories, end_of_extras, end_of_data = position, len(extras), len(data)
        self.bytes = head + b"".join(bodies) + extras + data + late

    def pack(self, form, *values):
        return struct.pack(self.end + form, *values)


def tags_of(image, page_height=None, components=1, more=()):
    code = KINDS[image.kind][0]
    width, height = image.size[0], page_height or image.size[1]
    tags = {WIDTH: (SHORT, [width]), HEIGHT: (SHORT, [height]), COMPRESSION: (SHORT, [1]),
            BITS: (SHORT, [8 * image.values.itemsize] * components), PHOTOMETRIC: (SHORT, [2 if components > 2 else 1]),
            SAMPLES: (SHORT, [components]), ROWS: (SHORT, [height]),
            FORMAT: (SHORT, [3 if code in "fd" else 2 if code.islower() else 1] * components)}
    tags.update(dict(more))
    return tags


def gradient(size, kind="uint8", seed=0):
    count = 1
    for n in size:
        count *= n
    return Image(size, kind, [(7 * i + seed + i // 5) % 251 for i in range(count)])


def raw(image, end="<"):
    values = image.values[:]
    if end == ">":
        values.byteswap()
    return values.tobytes()


def strips(data, row_bytes, rows):
    return [data[at:at + rows * row_bytes] for at in range(0, len(data), rows * row_bytes)]


def tiles(data, width, height, size, columns, rows):
    """Tiles of an image, filled up with 0xEE beyond its edge."""
    found = []
    for y in range(0, height, rows):
        for x in range(0, width, columns):
            tile = b""
            for row in range(y, y + rows):
                line = data[(row * width + x) * size:(row * width + min(width, x + columns)) * size] if row < height else b""
                tile += line.ljust(columns * size, b"\xee")
            found.append(tile)
    return found


def pack_bits(data):
    return b"".join(bytes([len(part) - 1]) + part for part in strips(data, 1, 128))


def lzw(data):
    """Codes of 9 bits, with a reset before there are longer ones."""
    bits, count = 0, 0
    for i, byte in enumerate(data):
        for code in ([256] if i % 200 == 0 else []) + [byte]:
            bits, count = bits << 9 | code, count + 9
    bits, count = bits << 9 | 257, count + 9
    pad = -count % 8
    return (bits << pad).to_bytes((count + pad) // 8, "big")


def difference(image, row, samples=1):
    """Horizontal differencing, as predictor 2 has it."""
    values, most = image.values, 2 ** (8 * image.values.itemsize)
    out = []
    for at in range(0, len(values), row * samples):
        line = values[at:at + row * samples]
        out += [(v - (line[i - samples] if i >= samples else 0)) % most for i, v in enumerate(line)]
    return Image(image.size, image.kind, out)


OME = ('<?xml version="1.0" encoding="UTF-8"?><OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06"><Image ID="Image:0">'
       '<Pixels ID="Pixels:0" DimensionOrder="XYZCT" Type="uint8" SizeX="6" SizeY="5" SizeZ="2" SizeC="3" SizeT="1" {}>'
       '<TiffData/></Pixels></Image></OME>')


def ome(more='PhysicalSizeX="0.5" PhysicalSizeXUnit="mm"', text=None, **options):
    """Six pages of 6 x 5 voxels, two slices in three channels."""
    image = gradient((6, 5, 2, 3))
    pages = []
    for i, page in enumerate(strips(raw(image), 6, 5)):
        tags = tags_of(image)
        if i == 0:
            tags[DESCRIPTION] = (ASCII, (OME.format(more) if text is None else text).encode() + b"\0")
        pages.append((tags, [page]))
    return image, Tiff(pages, **options)


class TiffTest(ProgramTest):
    def put(self, content, name="in.tif"):
        path = self.folder / name
        path.write_bytes(content.bytes if isinstance(content, Tiff) else content)
        return path

    def assert_reads(self, content, image, spacing=None, warns=None, name="in.tif"):
        path = self.put(content, name)
        result = self.assert_runs("identity", path, self.out)
        got = read(self.out)
        self.assertEqual((got.size, got.kind), (image.size, image.kind), str(result))
        self.assertEqual(got.values, image.values, str(result))
        if spacing:
            for expected, found in zip(spacing, got.spacing):
                self.assertAlmostEqual(found / expected, 1, 9, str(result) + str(got.spacing))
        for text in [warns] if isinstance(warns, str) else warns or []:
            self.assertTrue(any(text in line for line in result.warnings()), str(result))
        if warns is None:
            self.assertEqual(result.warnings(), [], str(result))
        return result

    def assert_not_read(self, content, *names):
        self.out.unlink(missing_ok=True)
        path = self.put(content)
        return self.assert_refused("identity", path, self.out, names=["in.tif", *names])


class Structure(TiffTest):
    """Directories."""

    def pages(self, **options):
        image = gradient((6, 5, 4))
        return image, Tiff([(tags_of(image), [page]) for page in strips(raw(image), 6, 5)], **options)

    def test_directories_that_are_not_complete(self):
        # The directories at the end of the file: the chain ends where the file is cut.
        for big in (False, True):
            image, tiff = self.pages(big=big)
            head, word = (16, 8) if big else (8, 4)
            moved = tiff.bytes[:head] + tiff.bytes[tiff.next_at[-1] + word:]
            shift = len(moved) - head
            data_shift = tiff.next_at[-1] + word - head
            pages = []
            for i, page in enumerate(strips(raw(image), 6, 5)):
                pages.append((tags_of(image, more={OFFSETS: (LONG, [head + 30 * i])}.items()), [page]))
            directories = Tiff(pages, big=big)
            part = bytearray(directories.bytes[head:directories.next_at[-1] + word])
            for at in directories.next_at[:-1]:
                form = "<Q" if big else "<I"
                value, = struct.unpack_from(form, directories.bytes, at)
                struct.pack_into(form, part, at - head, value + shift)
            first = moved[:head - word] + struct.pack("<Q" if big else "<I", head + shift)
            self.assertGreater(data_shift, 0)
            whole = first + moved[head:] + bytes(part)
            self.assert_reads(whole, image)
            for at in directories.next_at:
                for cut in range(word + 1):
                    with self.subTest(big=big, directory=at, missing=cut):
                        content = whole[:at + shift + cut]
                        if len(content) < len(whole):
                            self.assert_not_read(content, "is not complete")

    def test_directories_that_form_a_loop(self):
        for big in (False, True):
            for target in range(4):
                image, tiff = self.pages(big=big)
                starts = [16 if big else 8] + [at + (8 if big else 4) for at in tiff.next_at]
                with self.subTest(big=big, back_to=target):
                    self.assert_not_read(self.pages(big=big, next_of_last=starts[target])[1], "loop")

    def test_directories_beyond_the_file(self):
        for big, offsets in ((False, (5000, 2**32 - 1, 2**31)), (True, (5000, 2**63 - 1, 2**63, 2**64 - 1))):
            for offset in offsets:
                with self.subTest(big=big, offset=offset):
                    self.assert_not_read(self.pages(big=big, next_of_last=offset)[1], "is not complete", str(offset))

    def test_directories_that_overlap(self):
        # Each begins in the one before, as small files would have millions.
        image = gradient((6, 5))
        tiff = bytearray(Tiff([(tags_of(image), [raw(image)])]).bytes)
        count = 3000
        chain = b"".join(struct.pack("<HI", 0, len(tiff) + 6 * (i + 1)) for i in range(count))
        struct.pack_into("<I", tiff, 4, len(tiff))
        self.assert_not_read(bytes(tiff) + chain + b"\0" * 6, "in.tif")

    def test_too_many_tags(self):
        image, tiff = self.pages(big=True)
        content = bytearray(tiff.bytes)
        for count in (2**63, 2**64 - 1, 2**32, 200):
            struct.pack_into("<Q", content, 16, count)
            self.assert_not_read(bytes(content), "is not complete")

    def test_byte_orders(self):
        image = gradient((6, 5), "uint16")
        for end in "<>":
            for big in (False, True):
                self.assert_reads(Tiff([(tags_of(image), [raw(image, end)])], end=end, big=big), image)
        content = bytearray(Tiff([(tags_of(image), [raw(image)])]).bytes)
        content[:2] = b"MM"
        self.assert_not_read(bytes(content), "byte order MM")
        content[:2] = b"IM"
        self.assert_not_read(bytes(content), "II or MM")
        content = bytearray(Tiff([(tags_of(image), [raw(image)])], big=True).bytes)
        content[4] = 4
        self.assert_not_read(bytes(content), "8 bytes")

    def test_pages_that_differ(self):
        image = gradient((6, 5))
        other = {WIDTH: (SHORT, [5]), HEIGHT: (SHORT, [4]), BITS: (SHORT, [16]), FORMAT: (SHORT, [2]),
                 ORIENTATION: (SHORT, [4]), COMPRESSION: (SHORT, [DEFLATE])}
        names = {WIDTH: "ImageWidth=5", HEIGHT: "ImageLength=4", BITS: "BitsPerSample=16", FORMAT: "SampleFormat=2",
                 ORIENTATION: "Orientation=4", COMPRESSION: "Compression=8"}
        for tag, value in other.items():
            with self.subTest(tag=names[tag]):
                pages = [(tags_of(image), [raw(image)]), (tags_of(image, more=[(tag, value)]), [raw(image) * 2])]
                self.assert_not_read(Tiff(pages), "page 2", names[tag])

    def test_smaller_images_and_masks_are_passed_over(self):
        image, small = gradient((6, 5)), gradient((3, 2))
        for kind, warns in ((1, None), (4, "transparency mask")):
            pages = [(tags_of(image), [raw(image)]), (tags_of(small, more=[(SUBFILE, (LONG, [kind]))]), [raw(small)])]
            self.assert_reads(Tiff(pages), image, warns=warns)

    def test_tags_that_stand_twice(self):
        # The first counts, as with libtiff.
        image = gradient((6, 5))
        content = bytearray(Tiff([(tags_of(image, more=[(WIDTH + 45000, (SHORT, [3]))]), [raw(image)])]).bytes)
        at = content.index(struct.pack("<HH", WIDTH + 45000, SHORT))
        struct.pack_into("<H", content, at, WIDTH)
        self.assert_reads(bytes(content), image)


class Geometry(TiffTest):
    """Orientation and spacing."""

    def turned(self, image, orientation, components=1):
        """As PIL turns it: `image` is what is stored."""
        w, h = image.size[:2]
        pages = len(image.values) // (w * h * components)
        result = []
        swaps = orientation > 4
        for page in range(pages):
            def at(x, y):
                begin = ((page * h + y) * w + x) * components
                return image.values[begin:begin + components]
            for y in range(w if swaps else h):
                for x in range(h if swaps else w):
                    column, row = (y, x) if swaps else (x, y)
                    if orientation in (2, 3, 7, 8):
                        column = w - 1 - column
                    if orientation in (3, 4, 6, 7):
                        row = h - 1 - row
                    result += at(column, row)
        size = (h, w) if swaps else (w, h)
        return Image(size + image.size[2:], image.kind, result)

    def files(self, image, more, components=1):
        row = image.size[0] * components * image.values.itemsize
        pages = strips(raw(image), row, image.size[1])
        plain = tags_of(image, components=components, more=more)
        yield "one strip", Tiff([(plain, [page]) for page in pages])
        yield "strips", Tiff([(dict(plain, **{}) | {ROWS: (SHORT, [2])}, strips(page, row, 2)) for page in pages])
        yield "compressed", Tiff([(plain | {ROWS: (SHORT, [2]), COMPRESSION: (SHORT, [DEFLATE])},
                                   [zlib.compress(s) for s in strips(page, row, 2)]) for page in pages])
        tile = {TILE_WIDTH: (SHORT, [16]), TILE_HEIGHT: (SHORT, [16]), ROWS: None}
        yield "tiles", Tiff([(plain | tile | {OFFSETS: None, COUNTS: None},
                              tiles(page, image.size[0], image.size[1], components * image.values.itemsize, 16, 16))
                             for page in pages])

    def test_orientation(self):
        for orientation in range(1, 9):
            for size in ((19, 17), (7, 5, 3)):
                image = gradient(size, "uint16")
                for name, tiff in self.files(image, [(ORIENTATION, (SHORT, [orientation]))]):
                    with self.subTest(orientation=orientation, size=size, file=name):
                        self.assert_reads(tiff, self.turned(image, orientation))

    def test_orientation_of_colors(self):
        # Channel by channel, as MetaImage has them side by side.
        for orientation in range(1, 9):
            stored = gradient((3 * 6, 5))
            image = Image((6, 5), "uint8", stored.values)
            for name, tiff in self.files(image, [(ORIENTATION, (SHORT, [orientation]))], components=3):
                with self.subTest(orientation=orientation, file=name):
                    self.assert_runs("identity", self.put(tiff), self.out)
                    content = self.out.read_bytes()
                    self.assertTrue(content.endswith(self.turned(image, orientation, 3).values.tobytes()))

    def test_orientation_in_divisions(self):
        image = gradient((40, 30, 8), "uint16")
        for orientation in (2, 3, 4, 6):
            tiff = next(self.files(image, [(ORIENTATION, (SHORT, [orientation]))]))[1]
            expected = self.turned(image, orientation)
            self.assert_reads(tiff, expected)
            self.assert_runs("identity", self.put(tiff), self.out, "--divisions", 4)
            self.assertEqual(read(self.out).values, expected.values)
            self.assert_runs("identity", self.put(tiff), self.out, "--region", "3,5,2,11,9,4")
            w, h = expected.size[:2]
            part = [expected.values[(z * h + y) * w + x] for z in range(2, 6) for y in range(5, 14) for x in range(3, 14)]
            self.assertEqual(list(read(self.out).values), part)

    def test_orientation_turns_the_spacing_too(self):
        image = gradient((6, 5))
        more = [(XRESOLUTION, (RATIONAL, [20, 1])), (YRESOLUTION, (RATIONAL, [5, 1])), (UNIT, (SHORT, [3]))]
        tiff = Tiff([(tags_of(image, more=more + [(ORIENTATION, (SHORT, [6]))]), [raw(image)])])
        self.assert_reads(tiff, self.turned(image, 6), spacing=(2, 0.5))

    def test_no_orientation_that_exists(self):
        image = gradient((6, 5))
        tiff = Tiff([(tags_of(image, more=[(ORIENTATION, (SHORT, [9]))]), [raw(image)])])
        self.assert_not_read(tiff, "Orientation=9", "1 to 8")

    def test_units(self):
        image = gradient((6, 5))
        for unit, mm in ((2, 25.4), (3, 10)):
            more = [(XRESOLUTION, (RATIONAL, [300, 7])), (YRESOLUTION, (RATIONAL, [100, 1])), (UNIT, (SHORT, [unit]))]
            self.assert_reads(Tiff([(tags_of(image, more=more), [raw(image)])]), image, spacing=(mm * 7 / 300, mm / 100))

    def test_spacing_that_cannot_be_used(self):
        image = gradient((6, 5))
        for more, warns in (
            ([(XRESOLUTION, (RATIONAL, [4, 1])), (YRESOLUTION, (RATIONAL, [2, 1])), (UNIT, (SHORT, [1]))], "ResolutionUnit=1"),
            ([(XRESOLUTION, (RATIONAL, [4, 0])), (YRESOLUTION, (RATIONAL, [4, 0])), (UNIT, (SHORT, [2]))], "XResolution"),
            ([(XRESOLUTION, (FLOAT, [float("nan")])), (UNIT, (SHORT, [2]))], "XResolution"),
        ):
            self.assert_reads(Tiff([(tags_of(image, more=more), [raw(image)])]), image, spacing=(1, 1), warns=warns)

    def imagej(self, lines, unit=1, resolution=(4, 1)):
        image = gradient((6, 5, 3))
        more = {XRESOLUTION: (RATIONAL, resolution), YRESOLUTION: (RATIONAL, resolution), UNIT: (SHORT, [unit])}
        pages = []
        for i, page in enumerate(strips(raw(image), 6, 5)):
            text = ("ImageJ=1.54f\nimages=3\nslices=3\n" + lines + "\n").encode("latin-1") + b"\0"
            pages.append((tags_of(image, more=(more | ({DESCRIPTION: (ASCII, text)} if i == 0 else {})).items()), [page]))
        return image, Tiff(pages)

    def test_units_of_imagej(self):
        for unit, mm in (("um", 1e-3), ("micron", 1e-3), ("\\u00B5m", 1e-3), ("\xb5m", 1e-3), ("nm", 1e-6), ("mm", 1), ("cm", 10),
                         ("inch", 25.4), ("m", 1000)):
            with self.subTest(unit=unit):
                image, tiff = self.imagej(f"unit={unit}\nspacing=2.5\nloop=false")
                self.assert_reads(tiff, image, spacing=(mm / 4, mm / 4, 2.5 * mm))
        image, tiff = self.imagej("spacing=0.5", unit=2)
        self.assert_reads(tiff, image, spacing=(25.4 / 4, 25.4 / 4, 12.7))
        # ImageJ takes the amount of a negative one.
        image, tiff = self.imagej("unit=mm\nspacing=-3.0", unit=2)
        self.assert_reads(tiff, image, spacing=(1 / 4, 1 / 4, 3))

    def test_units_of_imagej_that_are_none(self):
        for lines, warns in (("unit=pixel\nspacing=2.5", "unit=pixel"), ("unit=sec\nspacing=2.5", "unit=sec"),
                             ("spacing=2.5", "ResolutionUnit=1"), ("unit=pixel", "unit=pixel")):
            with self.subTest(lines=lines):
                image, tiff = self.imagej(lines)
                self.assert_reads(tiff, image, spacing=(1, 1, 1), warns=warns)
        image, tiff = self.imagej("unit=mm\nspacing=nonsense")
        self.assert_reads(tiff, image, spacing=(1 / 4, 1 / 4, 1), warns="spacing=nonsense")
        image, tiff = self.imagej("unit=pixel", resolution=(1, 1))
        self.assert_reads(tiff, image, spacing=(1, 1, 1))

    def test_images_that_imagej_names_and_that_are_not_there(self):
        image, tiff = self.imagej("unit=mm")
        self.assert_not_read(tiff.bytes.replace(b"images=3", b"images=4"), "3 of the 4 images")
        one = gradient((6, 5, 3))
        text = b"ImageJ=1.54f\nimages=%d\nslices=3\n\0"
        for images, complete in ((3, True), (4, False), (9, False)):
            tags = tags_of(one, more=[(DESCRIPTION, (ASCII, text % images))])
            tiff = Tiff([(tags, [raw(one)[:30]])])
            content = tiff.bytes + raw(one)[30:]
            if complete:
                self.assert_reads(content, one)
            else:
                self.assert_not_read(content, "images that its description names")
        # The form of tifffile: the voxels of all pages follow the first.
        tags = tags_of(one, more=[(DESCRIPTION, (ASCII, b'{"shape": [3, 5, 6], "truncated": true}\0'))])
        self.assert_not_read(Tiff([(tags, [raw(one)])]), "truncated")

    def test_spacing_that_tiff_cannot_hold(self):
        image = gradient((6, 5, 3))
        for axis in range(3):
            # An axis of negative spacing is one of positive spacing that points the other way, which TIFF cannot say.
            with self.subTest(axis=axis, value=-2.0):
                image.spacing = [1.0, 1.0, 1.0]
                image.spacing[axis] = -2.0
                result = self.assert_runs("identity", write(self.folder / "s.mha", image), self.folder / "out.tif")
                self.assertTrue(any("direction" in line for line in result.warnings()), str(result))
                self.assert_runs("identity", self.folder / "out.tif", self.folder / "back.mha")
                spacing = [2.0 if a == axis and a < 2 else 1.0 for a in range(3)]
                self.assertEqual([round(value, 6) for value in read(self.folder / "back.mha").spacing], spacing)
                (self.folder / "out.tif").unlink()
            with self.subTest(axis=axis, value=0.0):
                image.spacing[axis] = 0.0
                self.assert_failed(run("identity", write(self.folder / "s.mha", image), self.folder / "out.tif"))
                self.assertFalse((self.folder / "out.tif").exists())
        image.spacing = [1e-12, 1.0, 1.0]
        result = self.assert_runs("identity", write(self.folder / "s.mha", image), self.folder / "out.tif")
        self.assertTrue(any("spacing" in line for line in result.warnings()), str(result))


class Ome(TiffTest):
    def test_whole(self):
        image, tiff = ome()
        self.assert_reads(tiff, image, spacing=(0.5, 1, 1))
        image, tiff = ome(description_last=True)
        self.assert_reads(tiff, image, spacing=(0.5, 1, 1))

    def test_text_that_is_cut_with_the_file(self):
        # The description is the last of the file, as many programs write it.
        image, tiff = ome(description_last=True)
        for cut in (1, 2, 100, 400):
            with self.subTest(cut=cut):
                self.assert_not_read(tiff.bytes[:-cut], "is not complete", "ImageDescription")

    def test_text_that_is_cut(self):
        text = OME.format("")
        for length in (len(text) - 1, len(text) - 6, len(text) // 2, 170):
            with self.subTest(length=length):
                self.assert_not_read(ome(text=text[:length])[1], "OME-XML")
        # Without its beginning it still names the schema.
        for begin in (1, 30, 39):
            with self.subTest(begin=begin):
                self.assert_not_read(ome(text=text[begin:])[1], "OME-XML")

    def test_sizes_that_are_no_lengths(self):
        for more, warns in (('PhysicalSizeX="0.5" PhysicalSizeXUnit="pixel"', "pixel"), ('PhysicalSizeX="-1"', "-1"),
                            ('PhysicalSizeZ="nan"', "PhysicalSizeZ"), ('PhysicalSizeY="1 mm"', "PhysicalSizeY")):
            with self.subTest(more=more):
                image, tiff = ome(more)
                self.assert_reads(tiff, image, spacing=(1, 1, 1), warns=[warns, "OME-XML"])


class Samples(TiffTest):
    """How samples are stored."""

    def assert_samples_refused(self, more, *names, size=64):
        image = gradient((6, 5))
        tags = tags_of(image, more=more.items())
        self.assert_not_read(Tiff([(tags, [bytes(size * 30)])]), *names)

    def test_types_that_cannot_be_used(self):
        for bits in (1, 2, 4, 12, 24, 0, 128):
            with self.subTest(bits=bits):
                self.assert_samples_refused({BITS: (SHORT, [bits])}, f"BitsPerSample={bits}", "8, 16, 32 or 64")
        for bits in (8, 16, 24):
            with self.subTest(bits=bits, format=3):
                self.assert_samples_refused({BITS: (SHORT, [bits]), FORMAT: (SHORT, [3])}, f"BitsPerSample={bits}", "32 or 64")
        for form in (0, 5, 6, 7):
            with self.subTest(format=form):
                self.assert_samples_refused({FORMAT: (SHORT, [form])}, f"SampleFormat={form}", "1 (unsigned)")

    def test_colors_that_cannot_be_used(self):
        self.assert_samples_refused({PHOTOMETRIC: (SHORT, [3]), COLORMAP: (SHORT, [0] * 768)}, "PhotometricInterpretation=3",
                                    "table of colors")
        for value, samples in ((5, 4), (6, 3), (8, 3), (2, 1), (2, 2)):
            with self.subTest(photometric=value):
                self.assert_samples_refused({PHOTOMETRIC: (SHORT, [value]), SAMPLES: (SHORT, [samples]),
                                             BITS: (SHORT, [8] * samples), FORMAT: (SHORT, [1] * samples)},
                                            f"PhotometricInterpretation={value}")

    def test_samples_of_several_types(self):
        self.assert_samples_refused({SAMPLES: (SHORT, [3]), BITS: (SHORT, [8, 16, 8]), PHOTOMETRIC: (SHORT, [2])}, "BitsPerSample=8",
                                    "16", "same for all samples")
        self.assert_samples_refused({SAMPLES: (SHORT, [3]), BITS: (SHORT, [8] * 3), FORMAT: (SHORT, [1, 1, 2]),
                                     PHOTOMETRIC: (SHORT, [2])}, "SampleFormat=1", "same for all samples")

    def test_tags_with_values_that_cannot_be(self):
        for tag, value, name in ((ROWS, 0, "RowsPerStrip=0"), (PLANAR, 3, "PlanarConfiguration=3"), (FILLORDER, 3, "FillOrder=3"),
                                 (SAMPLES, 0, "SamplesPerPixel=0"), (WIDTH, 0, "ImageWidth=0"), (DEPTH, 2, "ImageDepth=2"),
                                 (COMPRESSION, 9999, "Compression=9999"), (COMPRESSION, 6, "Compression=6"),
                                 (PREDICTOR, 2, "Predictor=2")):
            with self.subTest(tag=name):
                self.assert_samples_refused({tag: (SHORT, [value])}, name, "allowed")
        self.assert_samples_refused({WIDTH: (ASCII, b"six\0")}, "ImageWidth", "type 2")
        self.assert_samples_refused({WIDTH: (LONG, [2**32 - 1]), HEIGHT: (LONG, [2**32 - 1])}, "ImageWidth=4294967295")

    def test_rows_per_strip(self):
        image = gradient((6, 5))
        for rows in (5, 6, 2**31, 2**32 - 1):
            self.assert_reads(Tiff([(tags_of(image, more=[(ROWS, (LONG, [rows]))]), [raw(image)])]), image)
        self.assert_reads(Tiff([(tags_of(image, more=[(ROWS, None)]), [raw(image)])]), image)

    def test_brightness_is_as_it_is_stored(self):
        image = gradient((6, 5))
        self.assert_reads(Tiff([(tags_of(image, more=[(PHOTOMETRIC, (SHORT, [0]))]), [raw(image)])]), image)

    def test_order_of_bits(self):
        image = gradient((6, 5))
        reverse = bytes(int(f"{byte:08b}"[::-1], 2) for byte in raw(image))
        self.assert_reads(Tiff([(tags_of(image, more=[(FILLORDER, (SHORT, [2]))]), [reverse])]), image)

    def test_components_that_lie_apart(self):
        for kind in ("uint8", "uint16", "float32"):
            for rows in (5, 2):
                for compressed in (False, True):
                    for pages in (1, 2):
                        planes = gradient((6, 5, 3 * pages), kind)
                        tags = tags_of(planes, components=3, more={PLANAR: (SHORT, [2]), ROWS: (SHORT, [rows])}.items())
                        row = 6 * planes.values.itemsize
                        file = []
                        for page in strips(raw(planes), row, 15):
                            blocks = [s for plane in strips(page, row, 5) for s in strips(plane, row, rows)]
                            if compressed:
                                tags = tags | {COMPRESSION: (SHORT, [DEFLATE])}
                                blocks = [zlib.compress(s) for s in blocks]
                            file.append((tags, blocks))
                        with self.subTest(kind=kind, rows=rows, compressed=compressed, pages=pages):
                            self.assert_runs("identity", self.put(Tiff(file)), self.out)
                            expected = [planes.values[(3 * z + c) * 30 + i] for z in range(pages) for i in range(30)
                                        for c in range(3)]
                            expected = Image((1,), kind, expected).values.tobytes()
                            self.assertTrue(self.out.read_bytes().endswith(expected))

    def test_extra_samples(self):
        for samples, photometric in ((4, 2), (5, 2), (2, 1), (7, 1)):
            image = gradient((6 * samples, 5))
            tags = tags_of(Image((6, 5), "uint8", image.values), components=samples,
                           more={PHOTOMETRIC: (SHORT, [photometric])}.items())
            self.assert_runs("identity", self.put(Tiff([(tags, [raw(image)])])), self.out)
            self.assertTrue(self.out.read_bytes().endswith(image.values.tobytes()))


class Blocks(TiffTest):
    """Strips and tiles."""

    CODERS = {DEFLATE: zlib.compress, PACKBITS: pack_bits, LZW: lzw, 32946: zlib.compress, LZMA: lzma.compress}
    # 16 x 16 pixels: gray with steps of 8 along x and 4 along y, and one color, 200, 100, 50.
    GRAY = base64.b64decode(
        "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAMCAgMCAgMDAwMEAwMEBQgFBQQEBQoHBwYIDAoMDAsKCwsNDhIQDQ4RDgsLEBYQERMUFRUVDA8XGBYU"
        "GBIUFRT/wAALCAAQABABAREA/8QAFQABAQAAAAAAAAAAAAAAAAAACAf/xAAZEAABBQAAAAAAAAAAAAAAAAAABgciM1H/2gAIAQEAAD8ADTbJuqGC"
        "qbZN1QwlTbJuqGCrbZN1Qw//2Q==")
    COLOR = base64.b64decode(
        "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAMCAgMCAgMDAwMEAwMEBQgFBQQEBQoHBwYIDAoMDAsKCwsNDhIQDQ4RDgsLEBYQERMUFRUVDA8XGBYU"
        "GBIUFRT/2wBDAQMEBAUEBQkFBQkUDQsNFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBT/wAARCAAQABAD"
        "AREAAhEBAxEB/8QAFQABAQAAAAAAAAAAAAAAAAAAAAT/xAAUEAEAAAAAAAAAAAAAAAAAAAAA/8QAFgEBAQEAAAAAAAAAAAAAAAAAAAcI/8QAFBEB"
        "AAAAAAAAAAAAAAAAAAAAAP/aAAwDAQACEQMRAD8AkQ9pAAAB/9k=")

    def jpeg(self, content, samples, photometric=None):
        image = Image((16, 16), "uint8", [0] * 256)
        photometric = photometric or {1: 1, 3: 6}[samples]
        more = {COMPRESSION: (SHORT, [JPEG]), PHOTOMETRIC: (SHORT, [photometric])}
        if samples == 3:
            more[530] = (SHORT, [1, 1])
        return Tiff([(tags_of(image, components=samples, more=more.items()), [content])])

    def test_jpeg(self):
        self.assert_runs("identity", self.put(self.jpeg(self.GRAY, 1)), self.out)
        for i, value in enumerate(read(self.out).values):
            self.assertAlmostEqual(value, 8 * (i % 16) + 4 * (i // 16), delta=6)
        self.assert_runs("identity", self.put(self.jpeg(self.COLOR, 3)), self.out)
        for i, value in enumerate(self.out.read_bytes()[-768:]):
            self.assertAlmostEqual(value, (200, 100, 50)[i % 3], delta=4)

        self.assert_not_read(self.jpeg(self.COLOR, 3, photometric=1), "PhotometricInterpretation=1", "6 (YCbCr)")

    def test_jpeg_that_is_damaged(self):
        # Its decoder makes up what is missing, and only warns.
        scan = self.GRAY.index(b"\xff\xda") + 10
        for content in (self.GRAY[:scan + 8] + b"\xff\xd9", self.GRAY[:scan + 20], self.GRAY[:scan] + b"\xff\xd9"):
            with self.subTest(bytes=len(content)):
                self.assert_not_read(self.jpeg(content, 1), "is damaged or not complete")

    def test_codecs(self):
        for kind in ("uint8", "int16", "uint32", "float64"):
            image = gradient((20, 18), kind)
            size = image.values.itemsize
            for codec, coder in self.CODERS.items():
                tags = tags_of(image, more={COMPRESSION: (SHORT, [codec]), ROWS: (SHORT, [7])}.items())
                with self.subTest(kind=kind, codec=codec):
                    self.assert_reads(Tiff([(tags, [coder(s) for s in strips(raw(image), 20 * size, 7)])]), image)
                    tags = tags | {TILE_WIDTH: (SHORT, [16]), TILE_HEIGHT: (SHORT, [16]), ROWS: None}
                    self.assert_reads(Tiff([(tags, [coder(t) for t in tiles(raw(image), 20, 18, size, 16, 16)])]), image)

    def test_predictor(self):
        for kind in ("uint8", "uint16", "uint32", "uint64"):
            image = gradient((20, 18), kind)
            tags = tags_of(image, more={COMPRESSION: (SHORT, [DEFLATE]), PREDICTOR: (SHORT, [2])}.items())
            self.assert_reads(Tiff([(tags, [zlib.compress(raw(difference(image, 20)))])]), image)
        tags = tags_of(image, more={COMPRESSION: (SHORT, [DEFLATE]), PREDICTOR: (SHORT, [3])}.items())
        self.assert_not_read(Tiff([(tags, [zlib.compress(raw(image))])]), "Predictor=3", "floating point")
        tags = tags_of(image, more={COMPRESSION: (SHORT, [DEFLATE]), PREDICTOR: (SHORT, [9])}.items())
        self.assert_not_read(Tiff([(tags, [zlib.compress(raw(image))])]), "Predictor=9")

    def test_predictor_of_colors_and_other_byte_orders(self):
        for kind in ("uint8", "uint16", "uint32"):
            for samples in (3, 1):
                image = gradient((20 * samples, 18), kind)
                coded = difference(image, 20, samples)
                tags = tags_of(Image((20, 18), kind, image.values), components=samples,
                               more={COMPRESSION: (SHORT, [DEFLATE]), PREDICTOR: (SHORT, [2])}.items())
                for end in "<>":
                    with self.subTest(kind=kind, samples=samples, end=end):
                        self.assert_runs("identity", self.put(Tiff([(tags, [zlib.compress(raw(coded, end))])], end=end)), self.out)
                        self.assertTrue(self.out.read_bytes().endswith(image.values.tobytes()))

    def test_predictor_of_floating_point(self):
        for kind in ("float32", "float64"):
            image = gradient((20, 18), kind)
            size = image.values.itemsize
            rows = []
            for row in strips(raw(image, ">"), 20 * size, 1):
                planes = b"".join(row[byte::size] for byte in range(size))
                rows.append(bytes((b - (planes[i - 1] if i else 0)) % 256 for i, b in enumerate(planes)))
            tags = tags_of(image, more={COMPRESSION: (SHORT, [DEFLATE]), PREDICTOR: (SHORT, [3])}.items())
            for end in "<>":
                with self.subTest(kind=kind, end=end):
                    self.assert_reads(Tiff([(tags, [zlib.compress(b"".join(rows))])], end=end), image)

    def test_last_strip_with_all_rows(self):
        image = gradient((20, 18))
        blocks = [zlib.compress(s.ljust(140, b"\xee")) for s in strips(raw(image), 20, 7)]
        tags = tags_of(image, more={COMPRESSION: (SHORT, [DEFLATE]), ROWS: (SHORT, [7])}.items())
        self.assert_reads(Tiff([(tags, blocks)]), image)

    def test_tiles_larger_than_the_image(self):
        image = gradient((6, 5), "uint16")
        for columns, rows in ((16, 16), (64, 16), (16, 128)):
            for codec, coder in ((1, bytes), (DEFLATE, zlib.compress)):
                tags = tags_of(image, more={TILE_WIDTH: (SHORT, [columns]), TILE_HEIGHT: (SHORT, [rows]), ROWS: None,
                                            COMPRESSION: (SHORT, [codec])}.items())
                self.assert_reads(Tiff([(tags, [coder(t) for t in tiles(raw(image), 6, 5, 2, columns, rows)])]), image)

    def test_blocks_that_are_damaged(self):
        image = gradient((32, 32), "uint16")
        for codec, coder in self.CODERS.items():
            whole = coder(raw(image))
            for tile in (False, True):
                more = {COMPRESSION: (SHORT, [codec])}
                if tile:
                    more |= {TILE_WIDTH: (SHORT, [32]), TILE_HEIGHT: (SHORT, [32]), ROWS: None}
                tags = tags_of(image, more=more.items())
                # The last bytes of LZMA are no voxels.
                for cut in (len(whole) // 2, len(whole) - (60 if codec == LZMA else 12), 3):
                    with self.subTest(codec=codec, tile=tile, cut=cut):
                        self.assert_not_read(Tiff([(tags, [whole[:cut]])]), "is damaged")
                if coder is zlib.compress:
                    # Its checksum tells of every bit.
                    for at in range(2, len(whole), 11):
                        with self.subTest(codec=codec, tile=tile, flipped=at):
                            flipped = whole[:at] + bytes([whole[at] ^ 16]) + whole[at + 1:]
                            self.assert_not_read(Tiff([(tags, [flipped])]), "is damaged")

    def test_blocks_that_the_file_does_not_have(self):
        image = gradient((6, 5), "int16")
        row = 12
        for nodata, text in ((0, "0"), (-9, "-9")):
            expected = Image((6, 5), "int16", image.values)
            expected.values[12:24] = type(image.values)("h", [nodata] * 12)
            for codec, coder in ((1, bytes), (DEFLATE, zlib.compress)):
                blocks = [coder(s) for s in strips(raw(image), row, 2)]
                blocks[1] = b""
                more = {ROWS: (SHORT, [2]), COMPRESSION: (SHORT, [codec])}
                if nodata:
                    more[NODATA] = (ASCII, b"-9\0")
                with self.subTest(codec=codec, nodata=nodata):
                    self.assert_reads(Tiff([(tags_of(image, more=more.items()), blocks)]), expected,
                                      warns=["strips that are not in the file", f": 1; their voxels are {text}"])
        self.assertTrue(any("strips that are not" in line for line in self.assert_runs("statistics", self.put(
            Tiff([(tags_of(image, more=more.items()), blocks)]))).warnings()))
        # One of the two alone is damage, but for plain strips, whose bytes can be counted.
        tags = tags_of(image, more={COMPRESSION: (SHORT, [DEFLATE]), COUNTS: (LONG, [0])}.items())
        self.assert_not_read(Tiff([(tags, [zlib.compress(raw(image))])]), "strip 0 of page 1 has 0 bytes")
        tags = tags_of(image, more={COMPRESSION: (SHORT, [DEFLATE]), OFFSETS: (LONG, [0])}.items())
        self.assert_not_read(Tiff([(tags, [zlib.compress(raw(image))])]), "from byte 0 on")
        self.assert_reads(Tiff([(tags_of(image, more=[(COUNTS, (LONG, [0]))]), [raw(image)])]), image)
        self.assert_reads(Tiff([(tags_of(image, more=[(COUNTS, None)]), [raw(image)])]), image)

    def test_blocks_that_are_too_few_or_too_small(self):
        image = gradient((6, 5))
        tags = tags_of(image, more=[(ROWS, (SHORT, [2]))])
        self.assert_not_read(Tiff([(tags, strips(raw(image), 6, 2)[:2])]), "2 values of StripOffsets", "needs 3")
        self.assert_not_read(Tiff([(tags | {OFFSETS: None}, [raw(image)])]), "0 values of StripOffsets")
        self.assert_not_read(Tiff([(tags_of(image), [raw(image)[:-1]])]), "strip 0 of page 1 has 29 bytes", "30")
        self.assert_not_read(Tiff([(tags_of(image, more=[(COUNTS, (LONG, [30]))]), [raw(image)[:-1]])]), "is not complete")

    def test_sizes_beyond_all_numbers(self):
        image = gradient((6, 5))
        for name, more in (
            ("offset", {OFFSETS: (LONG8, [2**63 - 10])}), ("offset", {OFFSETS: (LONG8, [2**64 - 10])}),
            ("count", {COUNTS: (LONG8, [2**63]), COMPRESSION: (SHORT, [DEFLATE])}),
            ("count", {COUNTS: (LONG8, [2**64 - 1]), COMPRESSION: (SHORT, [DEFLATE])}),
            ("size", {WIDTH: (LONG, [2**31 - 1]), HEIGHT: (LONG, [2**31 - 1]), ROWS: (LONG, [2**31 - 1])}),
            ("size", {WIDTH: (LONG8, [2**63])}), ("tile", {TILE_WIDTH: (LONG, [2**31 - 1]), TILE_HEIGHT: (LONG, [2**31 - 1])}),
            ("tile", {TILE_WIDTH: (LONG8, [2**63]), TILE_HEIGHT: (LONG8, [2**63])}),
            ("samples", {SAMPLES: (LONG8, [2**63]), BITS: (SHORT, [8])}),
        ):
            with self.subTest(what=name, more=more):
                self.assert_not_read(Tiff([(tags_of(image, more=more.items()), [raw(image)])], big=True))
        # A description of more bytes than there are.
        content = bytearray(Tiff([(tags_of(image, more=[(DESCRIPTION, (ASCII, b"x" * 100))]), [raw(image)])], big=True).bytes)
        at = content.index(struct.pack("<HH", DESCRIPTION, ASCII))
        for count in (2**63, 2**64 - 1, len(content)):
            struct.pack_into("<Q", content, at + 4, count)
            self.assert_not_read(bytes(content), "ImageDescription", "is not complete")

    def test_a_small_file_takes_little_memory(self):
        image = gradient((6, 5))
        for codec, coder in ((1, bytes), *self.CODERS.items()):
            for extent in (60000, 10000):
                for samples in (1, 4):
                    more = {WIDTH: (LONG, [60000]), HEIGHT: (LONG, [60000]), TILE_WIDTH: (LONG, [extent]),
                            TILE_HEIGHT: (LONG, [extent]), ROWS: None, COMPRESSION: (SHORT, [codec]),
                            SAMPLES: (SHORT, [samples]), BITS: (SHORT, [8] * samples), FORMAT: (SHORT, [1] * samples)}
                    tags = tags_of(image, more=more.items())
                    number = (60000 // extent) ** 2
                    with self.subTest(codec=codec, extent=extent, samples=samples):
                        self.put(Tiff([(tags, [coder(raw(image))] * number)]))
                        self.out.unlink(missing_ok=True)
                        result, peak = self.measured("identity", self.folder / "in.tif", self.out, "--memory=100M")
                        self.assert_failed(result, status=1)
                        self.assertFalse(self.out.exists())
                        self.assertLessEqual(peak, 100 * MIB)

    def test_large_descriptions_and_lists_keep_to_the_memory(self):
        """They are in the file, so that it may ask for them."""
        text, number, tags = 100 << 20, 10 << 20, 5000000

        def fields(rows, more):
            common = [(WIDTH, SHORT, 1, 4), (HEIGHT, LONG, 1, rows), (BITS, SHORT, 1, 8), (COMPRESSION, SHORT, 1, 1),
                      (PHOTOMETRIC, SHORT, 1, 1), (SAMPLES, SHORT, 1, 1)]
            return struct.pack("<2sHIH", b"II", 42, 8, len(common + more)) + b"".join(
                struct.pack("<HHI", *each[:3]) + struct.pack("<I", each[3]) for each in sorted(common + more)) + bytes(4)

        for name, head, part, times in (
                ("ImageDescription", fields(3, [(DESCRIPTION, ASCII, text, 1000), (OFFSETS, LONG, 1, 500),
                                                (ROWS, SHORT, 1, 3), (COUNTS, LONG, 1, 12)]), b"d" * 1000, text // 1000 + 1),
                ("strips", fields(number, [(OFFSETS, LONG, number, 1000), (ROWS, SHORT, 1, 1), (COUNTS, LONG, number, 1000)]),
                 struct.pack("<I", 600) * 250, number // 250 + 1),
                ("directory", struct.pack("<2sHHHQQ", b"II", 43, 8, 0, 16, tags),
                 struct.pack("<HHQQ", WIDTH, SHORT, 1, 4) * 50, tags // 50)):
            path = self.folder / "large.tif"
            with open(path, "wb") as file, self.subTest(name):
                file.write(head if name == "directory" else head.ljust(1000, b"\0"))
                # One by one: a process counts what its parent held when it was started.
                for _ in range(times):
                    file.write(part)
                file.write(bytes(8))
                file.flush()
                result, peak = self.measured("identity", path, self.out, "--memory=64M")
                self.assert_failed(result, ("large.tif", name), 1)
                self.assertLessEqual(peak, 64 * MIB, str(result))
        self.assertFalse(self.out.exists())

    def test_large_blocks_count_in_the_budget(self):
        # One strip of 64 MB that zlib makes small: more than 80 MB cannot hold beside the program.
        image = Image((8192, 8192), "uint8", [])
        coded = zlib.compress(bytes(8192 * 8192))
        tags = tags_of(image, more={COMPRESSION: (SHORT, [DEFLATE]), ROWS: (LONG, [8192])}.items())
        path = self.put(Tiff([(tags, [coded])]))
        self.assert_refused("identity", path, self.out, "--memory", "80M", names="--memory")
        self.assert_runs("identity", path, self.out)
        self.assertTrue(self.out.read_bytes().endswith(bytes(8192 * 8192)))


class Truncation(TiffTest):
    def seeds(self):
        image = gradient((6, 5))
        yield "strips", image, Tiff([(tags_of(image, more=[(ROWS, (SHORT, [2]))]), strips(raw(image), 6, 2))]).bytes
        tile = {TILE_WIDTH: (SHORT, [16]), TILE_HEIGHT: (SHORT, [16]), ROWS: None}
        yield "tiles", image, Tiff([(tags_of(image, more=tile.items()), tiles(raw(image), 6, 5, 1, 16, 16))]).bytes
        deflate = {COMPRESSION: (SHORT, [DEFLATE]), ROWS: (SHORT, [2])}
        yield "deflate", image, Tiff([(tags_of(image, more=deflate.items()),
                                       [zlib.compress(s) for s in strips(raw(image), 6, 2)])]).bytes
        yield "LZW", image, Tiff([(tags_of(image, more=[(COMPRESSION, (SHORT, [LZW]))]), [lzw(raw(image))])]).bytes
        yield "OME", *(lambda i, t: (i, t.bytes))(*ome())
        yield "OME at the end", *(lambda i, t: (i, t.bytes))(*ome(description_last=True))
        yield "BigTIFF", image, Tiff([(tags_of(image), [raw(image)])], big=True).bytes

    def test_at_every_byte(self):
        for name, image, content in self.seeds():
            path = self.put(content)
            self.assert_reads(content, image)
            self.out.unlink()
            for length in range(0, len(content), 1 if EXHAUSTIVE or len(content) < 500 else 7):
                path.write_bytes(content[:length])
                result = run("identity", path, self.out)
                with self.subTest(file=name, length=f"{length} of {len(content)}"):
                    if result.returncode == 0:
                        self.assertEqual(result.warnings(), [])
                        got = read(self.out)
                        self.assertEqual((got.size, got.values), (image.size, image.values))
                        self.out.unlink()
                    else:
                        self.assert_failed(result)

