# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Headers of every format that the program parses itself: valid ones of other programs, and any number in any field."""
import gzip
import math
import random
import re
import struct
import zlib

from adversary import support
from adversary.support import EXHAUSTIVE, MIB, Image, ProgramTest, noise, read, run, write

# The codes and places of fields in the first and the second version of NIfTI.
NIFTI1 = {"bytes": 348, "magic": (344, b"n+1\0"), "dim": ("h", 40), "datatype": ("h", 70), "bits": ("h", 72),
          "pixdim": ("f", 76), "offset": ("f", 108), "slope": ("f", 112), "intercept": ("f", 116), "units": ("B", 123),
          "toffset": ("f", 136), "qform_code": ("h", 252), "sform_code": ("h", 254), "quatern": ("f", 256),
          "srow": ("f", 280), "slice_start": ("h", 74), "slice_end": ("h", 120), "intent_code": ("h", 68)}
NIFTI2 = {"bytes": 540, "magic": (4, b"n+2\0\r\n\x1a\n"), "dim": ("q", 16), "datatype": ("h", 12), "bits": ("h", 14),
          "pixdim": ("d", 104), "offset": ("q", 168), "slope": ("d", 176), "intercept": ("d", 184), "units": ("i", 500),
          "toffset": ("d", 216), "qform_code": ("i", 344), "sform_code": ("i", 348), "quatern": ("d", 352),
          "srow": ("d", 400), "slice_start": ("q", 224), "slice_end": ("q", 232), "intent_code": ("i", 504)}


def nifti(version, size, values, code="h", datatype=4, endian="<", **fields):
    """A file of NIfTI with any of its fields."""
    layout = NIFTI1 if version == 1 else NIFTI2
    header = bytearray(layout["bytes"] + 4)
    struct.pack_into(endian + "i", header, 0, layout["bytes"])
    at, magic = layout["magic"]
    header[at:at + len(magic)] = magic
    n = len(size)
    fields = {"dim": [n, *size, *[1] * (7 - n)], "datatype": [datatype], "bits": [8 * struct.calcsize(code)],
              "pixdim": [1.0] * 8, "offset": [len(header)], "slope": [1], **fields}
    for name, numbers in fields.items():
        kind, at = layout[name]
        numbers = numbers if isinstance(numbers, (list, tuple)) else [numbers]
        struct.pack_into(f"{endian}{len(numbers)}{kind}", header, at, *numbers)
    return bytes(header) + struct.pack(f"{endian}{len(values)}{code}", *values)


def fields_of(content, version):
    """The geometry of a file of NIfTI as it stands there, in the file's unit."""
    layout = NIFTI1 if version == 1 else NIFTI2
    numbers = lambda name, count: struct.unpack_from(f"<{count}{layout[name][0]}", content, layout[name][1])
    return {"pixdim": numbers("pixdim", 8), "srow": numbers("srow", 12), "units": numbers("units", 1)[0],
            "toffset": numbers("toffset", 1)[0], "quatern": numbers("quatern", 6)}


def mrc(size, values, endian="<", mode=1, code="h", axes=(1, 2, 3), steps=(1.0, 1.0, 1.0), stamp=True, version=20140):
    header = bytearray(1024)
    struct.pack_into(endian + "4i", header, 0, *size, mode)
    of_axis = {axis: extent for axis, extent in zip(axes, size)} if 0 not in axes else dict(zip((1, 2, 3), size))
    intervals = [of_axis[axis] for axis in (1, 2, 3)]
    struct.pack_into(endian + "3i", header, 28, *intervals)
    struct.pack_into(endian + "6f", header, 40, *[n * s for n, s in zip(intervals, steps)], 90, 90, 90)
    struct.pack_into(endian + "3i", header, 64, *axes)
    struct.pack_into(endian + "i", header, 108, version)
    header[208:212] = b"MAP "
    header[212:216] = (b"\x44\x44\0\0" if endian == "<" else b"\x11\x11\0\0") if stamp else b"\0\0\0\0"
    return bytes(header) + struct.pack(f"{endian}{len(values)}{code}", *values)


def gipl(size, values, code="h", kind=15):
    header = bytearray(256)
    struct.pack_into(">4H", header, 0, *size, *[1] * (4 - len(size)))
    struct.pack_into(">H4f", header, 8, kind, 1, 1, 1, 1)
    struct.pack_into(">I", header, 252, 0xEFFFE9B0)
    return bytes(header) + struct.pack(f">{len(values)}{code}", *values)


def vtk(body, form=b"BINARY"):
    return b"# vtk DataFile Version 3.0\nA title\n" + form + b"\nDATASET STRUCTURED_POINTS\n" + body


class Headers(ProgramTest):
    def setUp(self):
        super().setUp()
        self.source = noise((4, 3, 2), "int16", 5)

    def put(self, name, content):
        path = self.folder / name
        path.write_bytes(content)
        return path

    def copy_of(self, path, *options, out="copy.mha"):
        """The image that the program reads in a file."""
        self.assert_runs("identity", path, self.folder / out, *options)
        return read(self.folder / out)

    def assert_close(self, numbers, others, what=None):
        self.assertEqual(len(numbers), len(others), what)
        for number, other in zip(numbers, others):
            self.assertAlmostEqual(number, other, delta=1e-5 * max(1, abs(other)), msg=what)

    # VTK

    def vtk_parts(self, values):
        big = lambda code, numbers: struct.pack(f">{len(numbers)}{code}", *numbers)
        text = lambda numbers: (" ".join(map(str, numbers)) + "\n").encode()
        return {
            b"BINARY": (big("h", values), lambda numbers: big("f", numbers), lambda numbers: bytes(numbers)),
            b"ASCII": (text(values), text, text),
        }

    def test_what_may_stand_before_the_voxels_of_vtk(self):
        values = self.source.values.tolist()
        for form, (voxels, floats, small) in self.vtk_parts(values).items():
            cells = b"CELL_DATA 6\nSCALARS c float 1\nLOOKUP_TABLE mine\n" + floats([1.5] * 6) + b"\n" \
                    b"LOOKUP_TABLE mine 2\n" + (small([1, 2, 3, 4] * 2) if form == b"BINARY" else floats([0.5] * 8)) + b"\n" \
                    b"VECTORS v float\n" + floats([10.0, 32.0] * 9) + b"\n"
            field = b"FIELD FieldData 2\nTIME 1 1 float\n" + floats([7.0]) + b"\nMETADATA\nINFORMATION 0\n\n" \
                    b"more 2 3 float\n" + floats([10.0] * 6) + b"\n"
            where = b"DIMENSIONS 4 3 2\nSPACING 0.5 1 2\nORIGIN -1 0 3\n"
            points = b"POINT_DATA 24\nSCALARS s short 1\nLOOKUP_TABLE default\n" + voxels + b"\n"
            for name, body in {
                "plain": where + points,
                "cells first": where + cells + points,
                "cells last": where + points + cells,
                "a field first": field + where + points,
                "a field between": where + field + points,
                "a field of cells": where + cells + field + points,
                "a field of points": where + points.replace(b"SCALARS", field + b"SCALARS"),
                "vectors first": where + points.replace(b"SCALARS", b"VECTORS v float\n" + floats([9.25] * 72) + b"\nSCALARS"),
                "spacing first": b"SPACING 0.5 1 2\nORIGIN -1 0 3\nDIMENSIONS 4 3 2\n" + points,
                "origin first": b"ORIGIN -1 0 3\nDIMENSIONS 4 3 2\nASPECT_RATIO 0.5 1 2\n" + points,
                "no table": where + points.replace(b"LOOKUP_TABLE default\n", b""),
            }.items():
                if form == b"BINARY" and name == "no table" and voxels[:1].isspace():
                    continue
                with self.subTest(form=form, file=name):
                    image = self.copy_of(self.put("in.vtk", vtk(body, form)))
                    self.assertEqual(image.size, (4, 3, 2))
                    self.assertEqual(image.values.tolist(), values)
                    self.assert_close(image.spacing, [0.5, 1, 2])
                    self.assert_close(image.origin, [-1, 0, 3])

    def test_voxels_of_vtk_without_a_table_are_no_lines(self):
        body = b"DIMENSIONS 1500 1500 1\nSPACING 1 1 1\nORIGIN 0 0 0\nPOINT_DATA 2250000\nSCALARS s unsigned_char\n" + bytes(2250000)
        image = self.copy_of(self.put("in.vtk", vtk(body)))
        self.assertEqual((image.size, sum(image.values)), ((1500, 1500), 0))

    def test_vtk_that_contradicts_itself_is_refused(self):
        voxels = bytes(48)
        where = b"DIMENSIONS 4 3 2\nSPACING 1 1 1\nORIGIN 0 0 0\n"
        points = b"POINT_DATA 24\nSCALARS s short 1\nLOOKUP_TABLE default\n" + voxels
        for name, body in {
            "other points": where + points.replace(b"24", b"23"),
            "cells alone": where + points.replace(b"POINT_DATA", b"CELL_DATA"),
            "cells beyond the end": where + b"CELL_DATA 4000000000000000000\nSCALARS c double 4\nLOOKUP_TABLE default\n" + points,
            "a field beyond the end": b"FIELD f 1\na 4000000000 4000000000 double\n" + where + points,
            "a negative field": b"FIELD f 1\na -4 -4 double\n" + where + points,
            "no dimensions": where[where.index(b"SPACING"):] + points,
        }.items():
            with self.subTest(file=name):
                self.assert_refused("identity", self.put("in.vtk", vtk(body)), self.out, names="in.vtk")

    # NIfTI

    def test_units_of_nifti_are_millimeters_and_seconds_inside(self):
        size, values = (6, 5, 4), noise((6, 5, 4), "int16").values.tolist()
        cases = [(1, 1e3), (2, 1.0), (3, 1e-3), (0, 1.0)]
        for version in (1, 2):
            for sform, qform in ((1, 0), (0, 1), (1, 1)):
                for unit, scale in cases:
                    steps, place = [s / scale for s in (0.5, 0.75, 2.0)], [p / scale for p in (-7.0, 11.0, 3.0)]
                    content = nifti(version, size, values, pixdim=[1, *steps, 1, 1, 1, 1], units=unit, sform_code=sform,
                                    qform_code=qform, quatern=[0, 0, 0, *place],
                                    srow=[steps[0], 0, 0, place[0], 0, steps[1], 0, place[1], 0, 0, steps[2], place[2]])
                    with self.subTest(version=version, sform=sform, qform=qform, unit=unit):
                        path = self.put("in.nii", content)
                        image = self.copy_of(path)
                        self.assert_close(image.spacing, [0.5, 0.75, 2])
                        self.assert_close(image.origin, [7, -11, 3])
                        part = self.copy_of(path, "--region", "1,2,1,4,3,3", out="part.mha")
                        self.assert_close(part.spacing, [0.5, 0.75, 2])
                        self.assert_close(part.origin, [6.5, -12.5, 5])
                        # The written file has the file's unit again, whole or in part.
                        for out, options, offset in (("whole.nii", (), (0, 0, 0)),
                                                     ("part.nii", ("--region", "1,2,1,4,3,3"), (1, 2, 1))):
                            self.assert_runs("identity", path, self.folder / out, *options)
                            fields = fields_of((self.folder / out).read_bytes(), version)
                            self.assertEqual(fields["units"] & 7, unit)
                            self.assert_close(fields["pixdim"][1:4], steps)
                            moved = [p + s * o for p, s, o in zip(place, steps, offset)]
                            for code, found in ((sform, fields["srow"][3::4]), (qform, fields["quatern"][3:])):
                                if code:
                                    self.assert_close(found, moved)
                            again = self.copy_of(self.folder / out, out="again.mha")
                            self.assert_close(again.spacing, [0.5, 0.75, 2])

    def test_a_filter_in_millimeters_does_not_depend_on_the_files_unit(self):
        size, values = (9, 8, 7), noise((9, 8, 7), "int16").values.tolist()
        results = []
        for version in (1, 2):
            for unit, scale in ((2, 1.0), (1, 1e3), (3, 1e-3)):
                path = self.put("in.nii", nifti(version, size, values, pixdim=[1, *[0.5 / scale] * 3, 1, 1, 1, 1], units=unit))
                self.assert_runs("gaussian", path, self.out, "--sigma", "0.6", "--output-type", "float32")
                results.append(read(self.out).values)
        # The first version has floats: 0.0005 m is not quite 0.5 mm.
        for result in results[1:]:
            self.assertLess(max(abs(a - b) for a, b in zip(result, results[0])), 1e-6 * max(map(abs, results[0])))

    def test_the_unit_of_time_is_that_of_the_fourth_axis(self):
        values = noise((4, 3, 2, 3), "int16").values.tolist()
        for version in (1, 2):
            for unit, scale in ((8, 1.0), (16, 1e-3), (24, 1e-6), (32, 1.0)):
                with self.subTest(version=version, unit=unit):
                    path = self.put("in.nii", nifti(version, (4, 3, 2, 3), values, units=2 | unit,
                                                    pixdim=[1, 1, 1, 1, 2.5 / scale, 1, 1, 1]))
                    self.assert_close(self.copy_of(path).spacing, [1, 1, 1, 2.5])
                    part = self.folder / "part.nii"
                    self.assert_runs("identity", path, part, "--region", "1,1,0,0,2,2,2,3")
                    self.assert_close(fields_of(part.read_bytes(), version)["pixdim"][4:5], [2.5 / scale])

    def test_a_slope_of_zero_scales_nothing(self):
        values = noise((4, 3), "int16").values.tolist()
        for version in (1, 2):
            for slope in (0, math.nan, math.inf):
                with self.subTest(version=version, slope=slope):
                    image = self.copy_of(self.put("in.nii", nifti(version, (4, 3), values, slope=slope, intercept=5)))
                    self.assertEqual((image.kind, image.values.tolist()), ("int16", values))
            # A small one does.
            image = self.copy_of(self.put("in.nii", nifti(version, (4, 3), values, slope=1e-20, intercept=0)))
            for got, stored in zip(image.values, values):
                self.assertAlmostEqual(got * 1e20, stored, delta=1e-3 * max(1, abs(stored)))

    def test_a_shear_in_nifti_is_read_and_written(self):
        values = noise((4, 3, 2), "int16").values.tolist()
        rows = [2, 0.5, 0, 1, 0, 1.5, 0, 2, 0, 0, 3, 3]
        for version in (1, 2):
            image = self.copy_of(self.put("in.nii", nifti(version, (4, 3, 2), values, sform_code=1, srow=rows)))
            length = math.hypot(0.5, 1.5)
            self.assert_close(image.spacing, [2, length, 3])
            self.assert_close([image.direction[0][1], image.direction[1][1]], [-0.5 / length, -1.5 / length])
            self.assert_runs("identity", self.folder / "copy.mha", self.folder / "again.nii")
            self.assert_close(fields_of((self.folder / "again.nii").read_bytes(), 1)["srow"], rows)

    def test_numbers_of_a_transform_that_are_none_are_refused(self):
        values = noise((4, 3, 2), "int16").values.tolist()
        rows = [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0]
        for version in (1, 2):
            for name, count in (("srow", 12), ("quatern", 6)):
                for at in range(count):
                    for bad in (math.nan, math.inf, -math.inf, 1.7e38 if version == 1 else 1.7e308):
                        numbers = rows[:] if name == "srow" else [0.0] * 6
                        numbers[at] = bad
                        codes = {"sform_code": 1} if name == "srow" else {"qform_code": 1}
                        content = nifti(version, (4, 3, 2), values, **{name: numbers}, **codes)
                        with self.subTest(version=version, field=f"{name}[{at}]", number=bad):
                            result = run("identity", self.put("in.nii", content), self.out)
                            self.assertIn(result.returncode, (0, 1, 2), str(result))
                            if math.isfinite(bad) and name == "srow" and at % 4 == 3:
                                self.assertEqual(result.returncode, 0, str(result))
                            elif not math.isfinite(bad):
                                self.assert_failed(result, "in.nii")

    # MRC

    def test_mrc_of_either_byte_order(self):
        for mode, code, kind in ((0, "b", "int8"), (1, "h", "int16"), (2, "f", "float32"), (6, "H", "uint16")):
            values = noise((5, 4, 3), kind).values.tolist()
            for endian in "<>":
                for stamp in (True, False):
                    with self.subTest(mode=mode, endian=endian, stamp=stamp):
                        image = self.copy_of(self.put("in.mrc", mrc((5, 4, 3), values, endian, mode, code, stamp=stamp)))
                        self.assertEqual((image.size, image.kind), ((5, 4, 3), kind))
                        self.assertEqual(image.values.tolist(), values)

    def test_axes_of_mrc_lie_as_the_header_says(self):
        values = noise((5, 4, 3), "int16").values.tolist()
        for axes in ((1, 2, 3), (3, 2, 1), (2, 1, 3), (3, 1, 2), (2, 3, 1), (1, 3, 2), (0, 0, 0)):
            with self.subTest(axes=axes):
                image = self.copy_of(self.put("in.mrc", mrc((5, 4, 3), values, axes=axes, steps=(2.0, 3.0, 5.0))))
                self.assertEqual((image.size, image.values.tolist()), ((5, 4, 3), values))
                names = axes if axes[0] else (1, 2, 3)
                self.assert_close(image.spacing, [(2.0, 3.0, 5.0)[name - 1] for name in names])
                for a, name in enumerate(names):
                    self.assertEqual([image.direction[row][a] for row in range(3)], [float(row == name - 1) for row in range(3)])
        for axes in ((1, 1, 2), (1, 2, 4), (-1, 2, 3), (1, 2, 0)):
            with self.subTest(axes=axes):
                content = bytearray(mrc((5, 4, 3), values))
                struct.pack_into("<3i", content, 64, *axes)
                self.assert_refused("identity", self.put("in.mrc", bytes(content)), self.out, names=["in.mrc", "axes"])

    # GIPL

    def test_gipl_has_the_axes_that_have_voxels(self):
        values = noise((4, 3, 2, 3), "int16").values.tolist()
        for size, axes in (((4, 3, 2, 1), 3), ((4, 3, 2, 0), 3), ((4, 3, 2, 3), 4), ((4, 3, 0, 1), 2), ((4, 3, 1, 1), 3)):
            with self.subTest(size=size):
                count = math.prod(size[:axes])
                image = self.copy_of(self.put("in.gipl", gipl(size, values[:count])))
                self.assertEqual((image.size, image.values.tolist()), (size[:axes], values[:count]))
                zipped = self.put("in.gipl.gz", gzip.compress(gipl(size, values[:count])))
                self.assertEqual(self.copy_of(zipped).values, image.values)
        self.assert_refused("identity", self.put("in.gipl", gipl((4, 3, 2), values[:24])[:252] + bytes(52)), self.out,
                            names="no GIPL file")
        self.assert_refused("identity", self.put("in.gipl", gipl((4, 0, 0, 0), values[:4])), self.out, names="in.gipl")

    # NRRD

    def test_fields_of_nrrd_are_kept_or_named(self):
        header = (b"NRRD0004\ntype: int16\ndimension: 3\nspace: left-posterior-superior\nsizes: 4 3 2\n"
                  b"space directions: (1,0,0) (0,1,0) (0,0,1)\nspace origin: (0,0,0)\nencoding: raw\nendian: little\n"
                  b'space units: "mm" "mm" "um"\nlabels: "one" "two" "and three"\n'
                  b"measurement frame: (1,0,0) (0,0,1) (0,-1,0)\n\n")
        path = self.put("in.nrrd", header + self.source.values.tobytes())
        for options in ((), ("--region", "1,0,0,2,2,2")):
            self.assert_runs("identity", path, self.folder / "out.nrrd", *options)
            text = (self.folder / "out.nrrd").read_bytes().split(b"\n\n")[0].decode(errors="replace")
            for line in ('space units: "mm" "mm" "um"', 'labels: "one" "two" "and three"',
                         "measurement frame: (1,0,0) (0,0,1) (0,-1,0)"):
                self.assertIn("\n" + line + "\n", text + "\n")
        result = self.assert_runs("identity", path, self.folder / "out.nii")
        for name in ("space units", "labels", "measurement frame"):
            self.assertIn(name, "".join(result.warnings()))
        # Units of axes are those of the space, once the axes have directions.
        for kinds, sizes, units in ((b"domain domain domain", b"4 3 2", b'"a" "b" "c"'),
                                    (b"vector domain domain", b"4 3 2", b'"" "b" "c"')):
            path = self.put("units.nrrd", b"NRRD0004\ntype: int16\ndimension: 3\nsizes: %s\nspacings: nan 1 2\nkinds: %s\n"
                            b"units: %s\nencoding: raw\nendian: little\n\n" % (sizes, kinds, units) + self.source.values.tobytes())
            self.assert_runs("identity", path, self.folder / "out.nrrd")
            text = (self.folder / "out.nrrd").read_bytes().split(b"\n\n")[0].decode()
            self.assertIn('\nspace units: "a" "b" "c"\n' if kinds[:1] == b"d" else '\nspace units: "b" "c"\n', text + "\n")
        # Vectors in the space of the file turn with it.
        for space, frame in (("right-anterior-superior", "(-1,0,0) (0,0,1) (0,1,0)"), ("RAS", "(-1,0,0) (0,0,1) (0,1,0)")):
            turned = header.replace(b"left-posterior-superior", space.encode())
            path = self.put("ras.nrrd", turned + self.source.values.tobytes())
            self.assert_runs("identity", path, self.folder / "out.nrrd")
            self.assertIn(f"measurement frame: {frame}\n", (self.folder / "out.nrrd").read_bytes().split(b"\n\n")[0].decode() + "\n")

    def test_a_refused_nrrd_says_why(self):
        good = (b"NRRD0004\ntype: int16\ndimension: 3\nsizes: 4 3 2\nencoding: raw\nendian: little\n")
        for old, new in ((b"int16", b"int17"), (b"4 3 2", b"4 3 x"), (b"dimension: 3", b"dimension: -3"), (b"raw", b"rar"),
                         (b"sizes", b"seizes"), (b"endian: little", b"endian: middle"), (b"sizes: 4 3 2\n", b"")):
            with self.subTest(field=new):
                path = self.put("in.nrrd", good.replace(old, new) + b"\n" + self.source.values.tobytes())
                result = self.assert_refused("identity", path, self.out, names="in.nrrd")
                self.assertFalse(result.stderr.rstrip().endswith(":"), str(result))
                self.assertGreater(len(result.stderr.rsplit(": ", 1)[-1].split()), 2, str(result))

    # Names

    def test_what_is_written_under_any_name_is_read_again(self):
        source = write(self.folder / "source.mha", self.source)
        for name in ("p%d.mhd", "p%03d 1 20.nhdr", " blank.mhd", " blank.nhdr", "LISTx.nhdr", "LIST.mhd", "LISTx.mhd", "LOCAL.mhd",
                     "Y.IMG", "Y.HDR", "Y.Img", "a b.mhd", "a=b.mhd", "a:b.nhdr", "~x.nhdr", "-.nhdr", "x#.nhdr", "ä.mhd"):
            for options in ((), ("--compress",)):
                if options and name.lower().endswith((".img", ".hdr")):
                    continue
                with self.subTest(name=name, options=options):
                    folder = self.folder / "names"
                    folder.mkdir(exist_ok=True)
                    self.assert_runs("identity", source, folder / name, *options)
                    self.assertEqual(self.copy_of(folder / name).values, self.source.values)
                    for path in folder.iterdir():
                        path.unlink()
        for name in ("a\nb.mhd", "a\nb.nhdr", "a\rb.mhd"):
            with self.subTest(name=name):
                self.assert_refused("identity", source, self.folder / name, names="line break")
        self.assert_runs("identity", source, self.folder / "a\nb.mha")

    def test_a_list_or_pattern_of_files_is_refused(self):
        meta = "ObjectType = Image\nNDims = 2\nDimSize = 2 2\nElementType = MET_UCHAR\nElementDataFile = {}\n"
        nrrd = "NRRD0004\ntype: uint8\ndimension: 2\nsizes: 2 2\nencoding: raw\ndata file: {}\n"
        for ending, text in (("mhd", meta), ("nhdr", nrrd)):
            for name in ("LIST", "LIST 2", "slice%03d.raw 1 20 1"):
                with self.subTest(ending=ending, name=name):
                    path = self.put("in." + ending, text.format(name).encode())
                    self.assert_refused("identity", path, self.out, names=["several files", "in." + ending])

    def test_one_column_of_vectors_is_read_again(self):
        image = Image((3, 10, 1), "int16", noise((30,), "int16").values)
        header = support.meta_header(Image((10, 1), "int16", []), more="ElementNumberOfChannels = 3\n")
        path = self.put("in.mha", header + image.values.tobytes())
        for ending in ("nii", "nii.gz", "nrrd", "hdr", "mhd"):
            with self.subTest(ending=ending):
                self.assert_runs("identity", path, self.folder / ("out." + ending))
                self.assert_runs("identity", self.folder / ("out." + ending), self.folder / "again.mha")
                content = (self.folder / "again.mha").read_bytes()
                self.assertIn(b"ElementNumberOfChannels = 3", content)
                self.assertEqual(content[-60:], image.values.tobytes())

    # Geometry

    def test_a_negative_spacing_is_an_axis_the_other_way_round(self):
        image = noise((4, 3, 2), "int16")
        image.spacing, image.origin = [-2.0, 1.0, -0.5], [10.0, 20.0, 30.0]
        path = write(self.folder / "in.mha", image)
        for ending in ("mha", "nrrd", "nii", "nii.gz", "hdr"):
            with self.subTest(ending=ending):
                self.assert_runs("identity", path, self.folder / ("out." + ending))
                copy = self.copy_of(self.folder / ("out." + ending))
                self.assertEqual(copy.values, image.values)
                self.assert_close(copy.spacing, [2, 1, 0.5])
                self.assert_close(copy.origin, [10, 20, 30])
                self.assert_close([copy.direction[a][a] for a in range(3)], [-1, 1, -1])
        for ending in ("mrc", "vtk"):
            with self.subTest(ending=ending):
                result = self.assert_runs("identity", path, self.folder / ("out." + ending))
                self.assertIn("direction", "".join(result.warnings()))

    # Any number in any field

    def seeds(self):
        """Files by ending, and where each has its numbers: patterns of text, or places and codes."""
        values = self.source.values
        meta = support.meta_header(self.source, more="HeaderSize = 0\nElementNumberOfChannels = 1\n")
        nrrd = (b"NRRD0004\ntype: int16\ndimension: 3\nspace: left-posterior-superior\nsizes: 4 3 2\n"
                b"space directions: (1,0,0) (0,1,0) (0,0,1)\nspace origin: (0,0,0)\nencoding: raw\nendian: little\n"
                b"byte skip: 0\nline skip: 0\n\n")
        plain = (b"NRRD0004\ntype: int16\ndimension: 3\nsizes: 4 3 2\nspacings: 1 1 1\naxis mins: 0 0 0\nencoding: gzip\n"
                 b"endian: little\nbyte skip: 0\n\n")
        points = vtk(b"DIMENSIONS 4 3 2\nSPACING 1 1 1\nORIGIN 0 0 0\nFIELD f 1\na 1 1 int\n" + bytes(4) +
                     b"\nCELL_DATA 6\nSCALARS c char 1\nLOOKUP_TABLE default\n" + bytes(6) +
                     b"\nPOINT_DATA 24\nSCALARS s short 1\nLOOKUP_TABLE default\n")
        rows = [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0]
        result = [("mha", meta, values.tobytes()), ("nrrd", nrrd, values.tobytes()),
                  ("nrrd", plain, gzip.compress(values.tobytes())), ("vtk", points, values.tobytes())]
        for version, layout in ((1, NIFTI1), (2, NIFTI2)):
            content = nifti(version, (4, 3, 2), values.tolist(), sform_code=1, qform_code=1, srow=rows)
            places = [(layout[name][0], layout[name][1] + i * struct.calcsize(layout[name][0]))
                      for name in layout if name not in ("magic", "bytes")
                      for i in range({"dim": 8, "pixdim": 8, "srow": 12, "quatern": 6}.get(name, 1))]
            result.append(("nii", content, places))
        content = mrc((4, 3, 2), values.tolist())
        places = [(">H", at) for at in range(0, 10, 2)] + [(">f", at) for at in range(10, 26, 4)] + [(">d", at) for at in range(204, 236, 8)]
        result.append(("gipl", gipl((4, 3, 2), values.tolist()), [*places, (">i", 252)]))
        result.append(("mrc", content, [("i", at) for at in (*range(0, 40, 4), *range(64, 76, 4), 92, 108)] +
                       [("f", at) for at in (*range(40, 64, 4), *range(76, 88, 4), *range(196, 208, 4))]))
        return result

    def variants(self):
        texts = [b"-1", b"0", b"nan", b"inf", b"-inf", b"1e999", b"1e-320", b"2147483648", b"4294967297", b"3000000000",
                 b"-9223372036854775808", b"9223372036854775807", b"99999999999999999999", b"1" * 400, b"", b"x", b"-0", b"1.5"]
        integers = {"B": [0, 255], "H": [0, 1, 3, 4, 1000, 65535], "h": [-1, 0, 32767, -32768], "i": [-1, 0, 2**31 - 1, -2**31, 65536],
                    "q": [-1, 0, 2**63 - 1, -2**63, 2**32 + 1, 2**62]}
        reals = [math.nan, math.inf, -math.inf, 0.0, -1.0, 1e-38, 3e38]
        for ending, head, rest in self.seeds():
            if isinstance(rest, bytes):
                for match in re.finditer(rb"-?\d+(\.\d+)?", head):
                    for text in texts:
                        yield ending, f"{match.start()}: {text!r}", head[:match.start()] + text + head[match.end():] + rest
                continue
            for kind, at in rest:
                for number in integers.get(kind[-1]) or reals + ([1e308] if kind[-1] == "d" else []):
                    content = bytearray(head)
                    struct.pack_into(kind if kind[0] == ">" else "<" + kind, content, at, number)
                    yield ending, f"{at}: {number}", bytes(content)

    def test_any_number_in_any_field(self):
        cases = list(self.variants())
        chosen = cases if EXHAUSTIVE else random.Random(4).sample(cases, 500)
        for ending, what, content in chosen:
            with self.subTest(ending=ending, field=what):
                path = self.put("in." + ending, content)
                self.out.unlink(missing_ok=True)
                result = run("identity", path, self.out, "--memory=100M")
                if result.returncode != 0:
                    self.assert_failed(result, "in." + ending)
                    self.assertFalse(self.out.exists())
                else:
                    image = read(self.out)
                    self.assertTrue(all(map(math.isfinite, image.spacing + image.origin)), str(result))

    def test_a_number_of_axes_that_is_none(self):
        header = support.meta_header(self.source)
        for axes in (-1, -2, 0, 1, 11, 3000000000, 2**63):
            with self.subTest(axes=axes):
                path = self.put("in.mha", header.replace(b"NDims = 3", b"NDims = %d" % axes) + self.source.values.tobytes())
                self.assert_refused("identity", path, self.out, names="in.mha")

    def test_a_header_may_not_ask_for_more_than_the_file_can_hold(self):
        small = bytes(100)
        huge = Image((60000, 60000, 600), "float64", [])
        meta = support.meta_header(huge, compressed=len(zlib.compress(small)))
        nrrd = b"NRRD0004\ntype: double\ndimension: 3\nsizes: 60000 60000 600\nencoding: %s\nendian: little\n\n"
        files = {
            "a.mha": support.meta_header(huge) + small,
            "b.mha": meta + zlib.compress(small),
            "c.nrrd": nrrd % b"raw" + small,
            "d.nrrd": nrrd % b"gzip" + gzip.compress(small),
            "e.nrrd": nrrd % b"ascii" + b"1 " * 50,
            "f.nii": nifti(2, (60000, 60000, 600), [], datatype=64, code="d") + small,
            "g.nii.gz": gzip.compress(nifti(2, (60000, 60000, 600), [], datatype=64, code="d") + small),
            "h.nii.gz": gzip.compress(nifti(2, (600, 600, 6, 1, 4000000), [], datatype=64, code="d") + small),
            "i.mrc": mrc((60000, 60000, 600), [], mode=2) + small,
            "l.gipl": gipl((65535, 65535, 65535), [], kind=65) + small,
            "m.gipl.gz": gzip.compress(gipl((65535, 65535, 65535), [], kind=65) + small),
            "j.vtk": vtk(b"DIMENSIONS 60000 60000 600\nSPACING 1 1 1\nORIGIN 0 0 0\nPOINT_DATA 2160000000000\n"
                         b"SCALARS s double\nLOOKUP_TABLE default\n") + small,
            "k.mha": support.meta_header(Image((4, 3, 2), "int16", []), more="ElementNumberOfChannels = 4000000000000000000\n") + small,
        }
        for name, content in files.items():
            with self.subTest(file=name):
                path = self.put(name, content)
                for arguments in (("identity", path, self.out), ("statistics", path), ("mean", path, self.out, "--radius=1")):
                    result, peak = self.measured(*arguments, "--memory=100M")
                    self.assert_failed(result, name)
                    self.assertLessEqual(peak, 100 * MIB)

    def test_text_without_white_space_takes_no_memory(self):
        headers = {
            "text.mha": support.meta_header(self.source).replace(b"BinaryData = True", b"BinaryData = False"),
            "text.nrrd": b"NRRD0004\ntype: int16\ndimension: 3\nsizes: 4 3 2\nencoding: ascii\n\n",
            "text.vtk": vtk(b"DIMENSIONS 4 3 2\nSPACING 1 1 1\nORIGIN 0 0 0\nPOINT_DATA 24\nSCALARS s short\nLOOKUP_TABLE default\n",
                            b"ASCII"),
            # One line, and one without an end, as a header.
            "line.mha": b"Comment = ", "line.nrrd": b"NRRD0004\n#", "line.vtk": b"# vtk DataFile Version 3.0\n",
            "lines.mha": b"", "lines.nrrd": b"NRRD0004\n",
        }
        for name, header in headers.items():
            with self.subTest(file=name):
                path = self.folder / name
                with open(path, "wb") as file:
                    file.write(header)
                    if name.startswith("lines"):
                        # One by one: a process counts what its parent held when it was started.
                        for i in range(400000):
                            file.write(b"key%07d%s = %s\n" % (i, b":" if name.endswith("nrrd") else b"", b"v" * 100))
                    else:
                        file.truncate(1 << 30)
                result, peak = self.measured("identity", path, self.out, "--memory=100M")
                self.assert_failed(result, name)
                self.assertLessEqual(peak, 100 * MIB)
                path.unlink()

    def test_metadata_of_stores_keep_to_the_memory(self):
        """A number takes two bytes of text, and more in memory."""
        source = write(self.folder / "source.mha", self.source)
        for count, name in ((30 << 20, "text"), (3 << 20, "metadata")):
            with self.subTest(name):
                store = self.folder / f"{name}.ome.zarr"
                self.assert_runs("identity", source, store, "--zarr=0.4")
                attributes = (store / ".zattrs").read_text()
                (store / ".zattrs").write_text(attributes.rstrip().rstrip("}") + ', "more": [' + "0," * count + "0]}")
                result, peak = self.measured("identity", store, self.out, "--memory=64M")
                self.assert_failed(result, (".zattrs", name), 1)
                self.assertLessEqual(peak, 64 * MIB, str(result))

    # Messages

    def test_no_control_character_of_a_file_reaches_the_terminal(self):
        escape = b"\x1b]0;title\x07\x1b[31m\x9b5m\xc2\x9b\x08"
        header = support.meta_header(self.source)
        voxels = self.source.values.tobytes()
        nrrd = b"NRRD0004\ntype: int16\ndimension: 3\nsizes: 4 3 2\nencoding: raw\nendian: little\n"
        files = {
            "type.mha": header.replace(b"MET_SHORT", b"MET_" + escape) + voxels,
            "line.mha": escape + b"\n" + header + voxels,
            "data.mhd": header.replace(b"LOCAL", escape),
            "text.mha": header.replace(b"BinaryData = True", b"BinaryData = False") + b"1 " + escape + b" 2 3 4 5" + b" 1" * 20,
            "encoding.nrrd": nrrd.replace(b"raw", b"raw" + escape) + b"\n" + voxels,
            "type.vtk": vtk(b"DIMENSIONS 4 3 2\nPOINT_DATA 24\nSCALARS s " + escape + b"\n") + voxels,
            # Lost fields are named, with the file's own words.
            "key.mha": header.replace(b"NDims", b"a" + escape + b"b = text\nNDims") + voxels,
            "key.nrrd": nrrd + b"a" + escape + b"b:=text\n\n" + voxels,
        }
        for name, content in files.items():
            with self.subTest(file=name):
                result = run("identity", self.put(name, content), self.folder / "out.nii")
                self.assertTrue(result.stderr, str(result))
                self.assertFalse(re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\ufffd]", result.stderr), repr(result.stderr))
                self.assertEqual(result.returncode, 0 if name.startswith("key") else 1, str(result))
                if not name.startswith("line.mha"):
                    self.assertIn("\\x1b", result.stderr)
