# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Files that end too early, in every format and at every eighth of their length, are no input."""
import gzip

from adversary.support import EXHAUSTIVE, ProgramTest, files_of, noise, run, write, written_formats

# A volume has none of these formats.
FLAT = ("png", "jpg", "jpeg", "bmp")
# Their last bytes are neither voxels nor checksums.
LOOSE_END = ("tif", "tiff", "h5", "hdf5", "vtk", "nia", "mgh", "mgz", "mgh.gz")


class Truncation(ProgramTest):
    def assert_noticed(self, ending, path, second):
        """`second` is an image of the same voxels, which nobody cuts."""
        whole = {p: p.read_bytes() for p in path.parent.iterdir()}
        for cut, content in whole.items():
            lengths = [len(content) * part // 8 for part in range(8)]
            if ending not in LOOSE_END:
                lengths.append(len(content) - 8)
            for length in lengths:
                cut.write_bytes(content[:length])
                runs = [("identity", path, self.out), ("difference", second, self.out, "--minus", path)]
                if EXHAUSTIVE or length == len(content) // 2:
                    runs += [("statistics", path), ("measure", path), ("measure", second, path)]
                for arguments in runs:
                    with self.subTest(ending=ending, file=cut.name, length=f"{length} of {len(content)}",
                                      subcommand=arguments[0]):
                        self.out.unlink(missing_ok=True)
                        result = run(*arguments)
                        self.assertFalse(self.out.exists(), str(result))
                        self.assert_failed(result)
                        self.assertTrue(any(p.name in result.stderr for p in whole), str(result))
                        self.assertEqual([n for n in files_of(self.folder) if n.startswith(".")], [])
            cut.write_bytes(content)
        with self.subTest(ending=ending, length="whole"):
            self.assert_runs("difference", second, self.out, "--minus", path)

    def test_every_format(self):
        for ending in written_formats():
            folder = self.folder / ("as." + ending)
            folder.mkdir()
            second = write(self.folder / "second.mha", noise((40, 32) if ending in FLAT else (16, 13, 11), "uint8"))
            path = folder / ("image." + ending)
            self.assert_runs("identity", second, path)
            self.assert_noticed(ending, path, second)

    def test_compressed_meta_images(self):
        image = noise((16, 13, 11), "uint8")
        second = write(self.folder / "second.mha", image)
        for ending, data_file in (("mha", None), ("mhd", "image.zraw")):
            folder = self.folder / ("as." + ending)
            folder.mkdir()
            path = write(folder / ("image." + ending), image, data_file, compress=True)
            self.assert_noticed(ending, path, second)

    def test_compressed_nrrd(self):
        image = noise((16, 13, 11), "uint8")
        second = write(self.folder / "second.mha", image)
        header = (b"NRRD0004\ntype: uint8\ndimension: 3\nspace: left-posterior-superior\nsizes: 16 13 11\n"
                  b"space directions: (1,0,0) (0,1,0) (0,0,1)\nspace origin: (0,0,0)\nencoding: gzip\n")
        data = gzip.compress(image.values.tobytes())
        for ending, files in (
            ("nrrd", {"image.nrrd": header + b"\n" + data}),
            ("nhdr", {"image.nhdr": header + b"data file: image.raw.gz\n", "image.raw.gz": data}),
        ):
            folder = self.folder / ("as." + ending)
            folder.mkdir()
            for name, content in files.items():
                (folder / name).write_bytes(content)
            self.assert_noticed(ending, folder / ("image." + ending), second)
