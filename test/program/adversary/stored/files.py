# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""The places of written files: data beside headers, names that are in use, links, and files that are none."""
import os
import stat
import struct

from adversary.support import Image, ProgramTest, files_of, noise, read, run, write, write_sparse

SIZE = (9, 8, 7)


def write_nhdr(path, image, data_file):
    path.with_name(data_file).write_bytes(image.values.tobytes())
    path.write_text(
        "NRRD0004\ntype: uint8\ndimension: 3\nspace: left-posterior-superior\nsizes: {}\nspace directions: (1,0,0) (0,1,0) "
        "(0,0,1)\nspace origin: (0,0,0)\nencoding: raw\ndata file: {}\n".format(" ".join(map(str, image.size)), data_file))
    return path


class Files(ProgramTest):
    def setUp(self):
        super().setUp()
        self.image, self.other = noise(SIZE, "uint8", 1), noise(SIZE, "uint8", 2)
        self.source = write(self.folder / "in.mha", self.image)
        self.other_source = write(self.folder / "other.mha", self.other)

    def voxels(self, path):
        """By way of a file of one piece."""
        copy = self.folder / "copy.mha"
        self.assert_runs("identity", path, copy)
        return read(copy).values

    def assert_kept_or_refused(self, arguments, kept, out, expected):
        """Either nothing happens, with an error, or `out` is right; in both cases the images `kept` are as before."""
        before = files_of(self.folder)
        result = run(*arguments)
        if result.returncode != 0:
            self.assert_failed(result)
            self.assertEqual(files_of(self.folder), before, str(result))
        else:
            self.assertEqual(self.voxels(out), expected.values, str(result))
        for path, image in kept.items():
            self.assertEqual(self.voxels(path), image.values, f"{path.name} after {result}")

    def test_data_that_an_input_needs_are_not_replaced(self):
        out = self.folder / "o.mhd"
        inputs = [write_nhdr(self.folder / "o.nhdr", self.image, "o.raw")]
        inputs.append(write(self.folder / "second-name.mhd", self.image, "o.raw"))
        for path in inputs:
            for arguments in (
                ("identity", path, out), ("difference", self.other_source, out, "--minus", path, "--output-type=int16"),
                ("mean", path, out, "--radius=0", "--divisions=3"),
            ):
                out.unlink(missing_ok=True)
                with self.subTest(input=path.name, subcommand=arguments[0]):
                    expected = self.image if arguments[0] != "difference" else Image(
                        SIZE, "int16", [b - a for a, b in zip(self.image.values, self.other.values)])
                    self.assert_kept_or_refused(arguments, {p: self.image for p in inputs}, out, expected)

    def test_data_of_another_header_are_not_replaced(self):
        for header, name in (("o.nhdr", "o.raw"), ("x.mhd", "o.raw"), ("x.mhd", "o.img"), ("x.mhd", "o.zraw")):
            folder = self.folder / (header + name)
            folder.mkdir()
            make = write_nhdr if header.endswith("nhdr") else write
            for ending in ("mhd", "nhdr", "hdr", "img"):
                out = folder / ("o." + ending)
                if out.name in (header, name):
                    continue
                keeper = make(folder / header, self.image, name)
                with self.subTest(keeper=header, data=name, out=out.name):
                    self.assert_kept_or_refused(
                        ("identity", self.other_source, out), {keeper: self.image}, out, self.other)
                for file in folder.iterdir():
                    file.unlink()

    def test_a_file_that_is_no_data_of_ours_is_not_replaced(self):
        notes = self.folder / "o.raw"
        notes.write_bytes(b"precious")
        self.assert_refused("identity", self.source, self.folder / "o.mhd", names="o.raw")
        self.assertEqual(notes.read_bytes(), b"precious")

    def test_the_data_of_an_old_output_are_replaced(self):
        for ending in ("mhd", "nhdr", "hdr", "img"):
            out = self.folder / ("o." + ending)
            self.assert_runs("identity", self.source, out)
            names = files_of(self.folder)
            self.assert_runs("identity", self.other_source, out)
            self.assertEqual(files_of(self.folder), names)
            self.assertEqual(self.voxels(out), self.other.values)
            for name in names:
                if name.startswith("o."):
                    (self.folder / name).unlink()
            (self.folder / "copy.mha").unlink()

    def test_the_input_is_the_output(self):
        expected = Image(SIZE, "uint8", [max(v - 30, 0) for v in self.image.values])
        thirty = write(self.folder / "thirty.mha", Image(SIZE, "uint8", [30] * len(self.image.values)))
        for ending, data in (("mha", None), ("mhd", "in.raw"), ("mhd", "voxels.bin")):
            for divisions in (1, 3):
                with self.subTest(ending=ending, data=data, divisions=divisions):
                    path = write(self.folder / ("in." + ending), self.image, data)
                    result = run("difference", path, path, "--minus", thirty, "--output-type=uint8",
                                 f"--divisions={divisions}")
                    if result.returncode:
                        self.assert_failed(result)
                        self.assertEqual(read(path).values, self.image.values)
                    else:
                        self.assertEqual(read(path).values, expected.values)

    def test_a_second_input_is_the_output(self):
        for second, other_name in (("b.mha", None), ("b.mhd", "b.raw")):
            path = write(self.folder / second, self.other, other_name)
            result = run("difference", self.source, path, "--minus", path, "--output-type=int16", "--divisions=3")
            if result.returncode:
                self.assert_failed(result)
                self.assertEqual(read(path).values, self.other.values)
            else:
                self.assertEqual(list(read(path).values),
                                 [a - b for a, b in zip(self.image.values, self.other.values)])

    def test_an_output_name_that_is_an_inputs_data(self):
        """Under all the names that a file can have."""
        link = self.folder / "linked"
        link.symlink_to(self.folder, target_is_directory=True)
        path = write(self.folder / "a.mhd", self.image, "data.mha")
        for out in (self.folder / "data.mha", link / "data.mha", self.folder / "." / "data.mha"):
            with self.subTest(out=str(out.relative_to(self.folder))):
                self.assert_refused("identity", path, out)
                self.assertEqual(read(path).values, self.image.values)

    def test_a_link_as_output_stays_a_link(self):
        (self.folder / "real").mkdir()
        for target, exists in (("real/target.mha", True), ("real/new.mha", False)):
            link = self.folder / ("link-" + target[5:])
            link.symlink_to(target)
            if exists:
                write(self.folder / target, self.other)
            with self.subTest(target=target):
                self.assert_runs("identity", self.source, link)
                self.assertTrue(link.is_symlink())
                self.assertEqual(read(self.folder / target).values, self.image.values)
        self.assertEqual([n for n in files_of(self.folder / "real")], ["new.mha", "target.mha"])

    def test_permissions_of_outputs(self):
        old = os.umask(0o027)
        try:
            self.assert_runs("identity", self.source, self.out)
        finally:
            os.umask(old)
        self.assertEqual(stat.S_IMODE(self.out.stat().st_mode), 0o640)

    def test_what_is_no_file_is_refused(self):
        folder = self.folder / "folder.mha"
        folder.mkdir()
        pipe = self.folder / "pipe.mha"
        os.mkfifo(pipe)
        device = self.folder / "device.mha"
        device.symlink_to("/dev/zero")
        for path in (folder, pipe, device):
            for arguments in (
                ("identity", path, self.out), ("statistics", path), ("plan", "identity", path, self.out),
                ("difference", self.source, self.out, "--minus", path), ("reconstruct", self.source, self.out, "--marker", path),
                ("convolve-image", self.source, self.out, "--kernel", path), ("identity", self.source, path),
            ):
                with self.subTest(file=path.name, words=[getattr(a, "name", a) for a in arguments]):
                    self.assert_refused(*arguments, names=path.name, timeout=10)

    def test_a_pipe_as_the_data_of_a_header(self):
        path = write(self.folder / "a.mhd", self.image, "a.raw")
        (self.folder / "a.raw").unlink()
        os.mkfifo(self.folder / "a.raw")
        self.assert_refused("identity", path, self.out, timeout=10)

    def test_inputs_that_are_no_images(self):
        write(self.folder / "rgb.mha", self.image)
        rgb = (self.folder / "rgb.mha").read_bytes().replace(b"ElementDataFile", b"ElementNumberOfChannels = 3\nElementDataFile")
        for name, content, words in (
            ("empty.mha", b"", ()), ("text.mha", b"no image\n", ()), ("empty.nii", b"", ()), ("text.nii.gz", b"no gzip\n", ()),
            ("empty.tif", b"", ()), ("text.nrrd", b"no nrrd\n", ()), ("zeros.vtk", b"\0" * 100, ()), ("text.txt", b"hello\n", ()),
            ("rgb.mha", rgb + self.image.values.tobytes(), ()),
            ("zero-size.mha", self.source.read_bytes().replace(b"DimSize = 9", b"DimSize = 0"), ()),
            ("negative.mha", self.source.read_bytes().replace(b"DimSize = 9", b"DimSize = -9"), ()),
            ("huge.mha", self.source.read_bytes().replace(b"DimSize = 9 8 7", b"DimSize = 3000000000 3000000000 3000000000"), ()),
            ("no-spacing.mha", self.source.read_bytes().replace(b"ElementSpacing = 1.0", b"ElementSpacing = 0.0"), ()),
            ("nan.mha", self.source.read_bytes().replace(b"ElementSpacing = 1.0", b"ElementSpacing = nan"), ()),
        ):
            path = self.folder / name
            path.write_bytes(content)
            for arguments in (("identity", path, self.out), ("gaussian", path, self.out, "--sigma=1"), ("statistics", path),
                              ("difference", self.source, self.out, "--minus", path)):
                if name in ("no-spacing.mha", "nan.mha", "zero-size.mha") and arguments[0] == "statistics":
                    continue
                with self.subTest(file=name, subcommand=arguments[0]):
                    self.assert_refused(*arguments, names=(name, *words) if arguments[0] != "gaussian" else ())

    def test_formats_whose_module_is_not_there(self):
        """HDF5 and DICOM are refused by a line that names the module; other formats do not need it."""
        hdf5, other = self.folder / "o.h5", self.folder / "o.nrrd"
        dicom = self.folder / "a.dcm"
        dicom.write_bytes(b"\0" * 128 + b"DICM")
        self.assert_runs("identity", self.source, hdf5)
        content = hdf5.read_bytes()
        environment = {**os.environ, "CHUNKWISE_FORMATS_MODULE": str(self.folder / "not-there.so")}
        if run("identity", hdf5, self.out, env=environment).returncode == 0:
            self.skipTest("the classes are inside the program")
        self.assert_runs("identity", self.source, other, env=environment)
        for source, target in ((self.source, hdf5), (hdf5, self.out), (dicom, self.out), (self.folder, self.out)):
            with self.subTest(source=source.name, target=target.name):
                self.assert_refused("identity", source, target, "--overwrite", env=environment, out=target,
                                    names=(source.name if target == self.out else target.name, "ChunkwiseFormats", "not-there.so"))
        self.assertEqual(hdf5.read_bytes(), content)

    def test_a_file_that_may_not_be_read(self):
        if os.geteuid() == 0:
            self.skipTest("root may read everything")
        self.source.chmod(0)
        result = self.assert_refused("identity", self.source, self.out, names="in.mha")
        self.assertIn("ermission", result.stderr)

    def test_a_folder_that_may_not_be_written(self):
        if os.geteuid() == 0:
            self.skipTest("root may write everywhere")
        (self.folder / "closed").mkdir(mode=0o500)
        self.assert_refused("identity", self.source, self.folder / "closed" / "o.mha", names="closed")

    def test_a_format_that_cannot_hold_the_image_is_refused_before_work(self):
        """The work would take hours."""
        source = write_sparse(self.folder / "large.mha", (600, 600, 600), "uint16")
        for ending, options in (
            ("png", ()), ("jpg", ()), ("bmp", ()), ("png", ("--output-type=float64",)), ("mrc", ("--output-type=float64",)),
            ("mrc", ("--output-type=uint64",)), ("unknown", ()),
        ):
            with self.subTest(ending=ending, options=options):
                self.assert_refused("nlm", source, self.folder / ("o." + ending), "--radius=9", "--patch=3", "--strength=1",
                                    *options, timeout=30)

    def test_volumes_are_no_pictures(self):
        volume4 = write(self.folder / "four.mha", noise((6, 5, 4, 3), "uint8"))
        for source, endings in ((self.source, ("png", "jpg", "jpeg", "bmp")), (volume4, ("png", "tif", "tiff", "bmp", "mrc"))):
            for ending in endings:
                with self.subTest(dimensions=4 if source == volume4 else 3, ending=ending):
                    self.assert_refused("identity", source, self.folder / ("o." + ending))

    def test_big_endian_and_headers_of_their_own_size(self):
        swapped = Image(SIZE, "int16", noise(SIZE, "int16").values)
        expected = swapped.values[:]
        swapped.values.byteswap()
        path = write(self.folder / "swapped.mha", swapped)
        path.write_bytes(path.read_bytes().replace(b"ByteOrderMSB = False", b"ByteOrderMSB = True"))
        self.assertEqual(self.voxels(path), expected)
        for header_size in ("12", "-1"):
            path = write(self.folder / "skip.mhd", self.image, "skip.raw", more=f"HeaderSize = {header_size}\n")
            raw = self.folder / "skip.raw"
            raw.write_bytes(b"x" * 12 + raw.read_bytes())
            with self.subTest(header_size=header_size):
                self.assertEqual(self.voxels(path), self.image.values)

    def test_nifti_that_is_scaled(self):
        """The slope and intercept of the header are applied, not dropped."""
        header = bytearray(352)
        struct.pack_into("<i", header, 0, 348)
        struct.pack_into("<8h", header, 40, 3, *SIZE, 1, 1, 1, 1)
        struct.pack_into("<2h", header, 70, 2, 8)
        struct.pack_into("<8f", header, 76, 1, 1, 1, 1, 0, 0, 0, 0)
        struct.pack_into("<3f", header, 108, 352, 2.5, -3.0)
        header[344:348] = b"n+1\0"
        path = self.folder / "scaled.nii"
        path.write_bytes(bytes(header) + self.image.values.tobytes())
        copy = self.folder / "copy.mha"
        self.assert_runs("identity", path, copy, "--output-type=float64")
        self.assertEqual(list(read(copy).values), [2.5 * v - 3.0 for v in self.image.values])
