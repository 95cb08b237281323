# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Every format, type and number of dimensions: read back by other libraries, with the same voxels and geometry, or refused,
or a warning names what is lost."""
import math

import h5py
import mrcfile
import nibabel
import nrrd
import numpy
import SimpleITK
import tifffile

from adversary.support import KINDS, Image, ProgramTest, is_real, limits, noise, read, run, write, written_formats

SIZES = ((9, 8), (7, 6, 5), (6, 5, 4, 3), (5, 4, 3, 3, 2))
SPACING = (0.5, 0.75, 1.25, 1.5, 2.0)
ORIGIN = (-12.5, 8.25, 3.5, 1.0, -2.0)
LOSSY = ("jpg", "jpeg")
# They hold a color table, or nothing but 8 bits, of which no spacing is expected back to the last bit.
PICTURES = ("png", "jpg", "jpeg", "bmp")


def direction(n, turned):
    """Axes x and y are turned by 30 degrees, and of volumes z points the other way."""
    matrix = [[float(i == j) for j in range(n)] for i in range(n)]
    if turned:
        c, s = math.cos(math.pi / 6), math.sin(math.pi / 6)
        matrix[0][:2], matrix[1][:2] = [c, -s], [s, c]
        if n > 2:
            matrix[2][2] = -1.0
            # Still right-handed, as quaternions can have it.
            matrix[0][0], matrix[1][0] = -matrix[0][0], -matrix[1][0]
    return matrix


def as_array(image):
    """Indexed z, y, x."""
    return numpy.frombuffer(image.values.tobytes(), KINDS[image.kind][0]).reshape(image.size[::-1])


def by_simpleitk(path, n):
    image = SimpleITK.ReadImage(str(path))
    m = image.GetDimension()
    matrix = numpy.array(image.GetDirection()).reshape(m, m)
    return (SimpleITK.GetArrayFromImage(image), list(image.GetSpacing()), list(image.GetOrigin()), matrix)


def by_nibabel(path, n):
    image = nibabel.load(str(path))
    data = numpy.asanyarray(image.dataobj)
    affine = numpy.diag([-1, -1, 1, 1]) @ image.affine
    spacing = list(map(float, image.header.get_zooms()))
    m = min(n, 3)
    columns = affine[:m, :m] / numpy.linalg.norm(affine[:3, :m], axis=0)
    return data.T, spacing, list(affine[:m, 3]), columns


def by_nrrd(path, n):
    data, header = nrrd.read(str(path))
    vectors = numpy.array(header["space directions"], float)
    lengths = numpy.linalg.norm(vectors, axis=1)
    return data.T, list(lengths), list(map(float, header["space origin"])), (vectors / lengths[:, None]).T


def by_tifffile(path, n):
    """Resolutions are pixels per inch or centimetre; SimpleITK reads no images of 64-bit pixels."""
    spacing = None
    with tifffile.TiffFile(str(path)) as file:
        tags = file.pages[0].tags
        if n == 2 and "XResolution" in tags and "ResolutionUnit" in tags:
            unit = {2: 25.4, 3: 10.0}.get(int(tags["ResolutionUnit"].value))
            resolutions = [tags[axis + "Resolution"].value for axis in "XY"]
            spacing = [unit * below / above for above, below in resolutions] if unit else [1.0, 1.0]
    return tifffile.imread(str(path)), spacing, None, None


def by_mrcfile(path, n):
    with mrcfile.open(str(path)) as file:
        voxel, origin = file.voxel_size, file.header.origin
        data = numpy.array(file.data)
        # IMOD's stamp says that bytes have no sign, which mrcfile does not look at.
        if data.dtype == numpy.int8:
            data = data.view(numpy.uint8)
        return (data, [float(voxel[a]) for a in "xyz"[:n]], [float(origin[a]) for a in "xyz"[:n]], None)


def by_h5py(path, n):
    with h5py.File(path) as file:
        image = file["ITKImage"]["0"]
        return (image["VoxelData"][...], list(image["Spacing"][...]), list(image["Origin"][...]),
                image["Directions"][...].reshape(n, n).T)


READERS = {
    "mha": (by_simpleitk,), "mhd": (by_simpleitk,), "nrrd": (by_nrrd, by_simpleitk), "nhdr": (by_nrrd, by_simpleitk),
    "nii": (by_nibabel, by_simpleitk), "nii.gz": (by_nibabel, by_simpleitk), "hdr": (by_nibabel, by_simpleitk),
    "img": (by_nibabel, by_simpleitk), "img.gz": (by_nibabel,), "mrc": (by_mrcfile,), "vtk": (by_simpleitk,),
    "tif": (by_tifffile,), "tiff": (by_tifffile,), "h5": (by_h5py,), "hdf5": (by_h5py,), "png": (by_simpleitk,),
    "jpg": (by_simpleitk,), "jpeg": (by_simpleitk,), "bmp": (by_simpleitk,), "gipl": (by_simpleitk,),
    "gipl.gz": (by_simpleitk,), "mgh": (by_nibabel,), "mgz": (by_nibabel,), "mgh.gz": (by_nibabel,), "nia": (),
}


class Formats(ProgramTest):
    def assert_geometry(self, what, found, expected, result, tolerance):
        """The same, or a warning that names it."""
        n = len(expected)
        if found is None and what == "direction" and numpy.array_equal(expected, numpy.eye(n)):
            return  # nothing to be lost
        if found is not None and numpy.shape(found)[:1] and len(found) >= n:
            found = numpy.asarray(found)[:n, :n] if numpy.ndim(expected) == 2 else numpy.asarray(found)[:n]
            if numpy.allclose(found, expected, atol=tolerance):
                return
        said = " ".join(result.warnings())
        self.assertIn(what, said, f"{what} {found} instead of {expected}: {result}")

    def check(self, ending, image, result, path):
        n = len(image.size)
        expected = as_array(image)
        for reader in READERS[ending]:
            try:
                data, spacing, origin, matrix = reader(path, n)
            except Exception as error:  # of whatever kind the library has
                self.fail(f"{reader.__name__}: {type(error).__name__}: {error}: {result}")
            data = numpy.asarray(data)
            if ending == "bmp" and data.ndim == 3 and (data == data[..., :1]).all():
                data = data[..., 0]  # of a gray palette SimpleITK makes colors
            data = data.reshape(expected.shape) if data.size == expected.size else data
            self.assertEqual(data.shape, expected.shape, f"{reader.__name__}: {result}")
            if ending in LOSSY:
                self.assertEqual(data.dtype, expected.dtype)
                continue
            self.assertEqual(data.dtype.newbyteorder("="), expected.dtype, f"{reader.__name__}: {result}")
            self.assertTrue((data == expected).all(), f"{reader.__name__}: other voxels: {result}")
            m = min(n, 3) if reader is by_nibabel else n
            tolerance = 1e-4
            self.assert_geometry("spacing", spacing, image.spacing[:m], result, tolerance)
            self.assert_geometry("origin", origin, image.origin[:m], result, tolerance)
            self.assert_geometry("direction", matrix, [row[:m] for row in image.direction[:m]], result, tolerance)
        # And by the program itself, in any format that it writes.
        copy = self.folder / "copy.mha"
        again = run("identity", path, copy)
        self.assertEqual(again.returncode, 0, str(again))
        back = read(copy)
        self.assertEqual(back.kind, image.kind)
        self.assertEqual([e for e in back.size if e > 1], [e for e in image.size if e > 1])
        if ending not in LOSSY:
            self.assertEqual(back.values, image.values)

    def test_every_format_type_and_dimension(self):
        for ending in written_formats():
            written = 0
            for kind in KINDS:
                for size in SIZES:
                    turned = (len(size) + list(KINDS).index(kind)) % 2 == 1
                    n = len(size)
                    image = Image(size, kind, noise(size, kind, 11).values, SPACING[:n], ORIGIN[:n], direction(n, turned))
                    with self.subTest(ending=ending, kind=kind, dimensions=n, turned=turned):
                        source = write(self.folder / "in.mha", image)
                        for old in self.folder.glob("out.*"):
                            old.unlink()
                        path = self.folder / ("out." + ending)
                        result = run("identity", source, path)
                        if result.returncode != 0:
                            self.assertEqual(list(self.folder.glob("out.*")), [])
                            self.assert_failed(result)
                            continue
                        written += 1
                        self.assertEqual([line for line in result.stderr.splitlines() if "warning" not in line.lower()], [])
                        self.assertLessEqual(len(result.stderr.splitlines()), 1, str(result))
                        self.check(ending, image, result, path)
            self.assertGreater(written, 0 if ending in PICTURES else 3, ending)

    def test_what_others_write_is_read(self):
        """Files by other libraries, which have more ways than the program's own writer."""
        values = noise((7, 6, 5), "int16", 12)
        array = as_array(values)
        swapped = array.astype(">i2")
        out = self.folder
        nrrd.write(str(out / "a.nrrd"), array.T, compression_level=9)
        nrrd.write(str(out / "b.nrrd"), array.T, {"encoding": "raw", "endian": "big"})
        nrrd.write(str(out / "c.nhdr"), array.T, {"encoding": "raw"}, detached_header=True)
        affine = numpy.diag([-0.5, -0.75, 1.25, 1])
        nibabel.save(nibabel.Nifti1Image(array.T, affine), out / "a.nii")
        nibabel.save(nibabel.Nifti1Image(array.T, affine), out / "b.nii.gz")
        nibabel.save(nibabel.Nifti2Image(array.T, affine), out / "c.nii")
        big = nibabel.Nifti1Header(endianness=">")
        big.set_data_dtype(">i2")
        nibabel.save(nibabel.Nifti1Image(swapped.T, affine, big), out / "d.nii")
        nibabel.save(nibabel.Nifti1Pair(array.T, affine), out / "e.img")
        tifffile.imwrite(out / "a.tif", array, photometric="minisblack")
        tifffile.imwrite(out / "b.tif", array, photometric="minisblack", byteorder=">")
        tifffile.imwrite(out / "c.tif", array, photometric="minisblack", bigtiff=True)
        tifffile.imwrite(out / "d.tif", array, photometric="minisblack", compression="zlib", predictor=True)
        tifffile.imwrite(out / "e.tif", array, photometric="minisblack", tile=(16, 16))
        tifffile.imwrite(out / "f.tif", array, photometric="minisblack", rowsperstrip=2)
        with mrcfile.new(str(out / "a.mrc"), array) as file:
            file.voxel_size = (0.5, 0.75, 1.25)
        for name, compressed in (("a.mha", False), ("b.mha", True), ("c.vtk", False), ("d.gipl", False)):
            image = SimpleITK.GetImageFromArray(array)
            image.SetSpacing((0.5, 0.75, 1.25))
            SimpleITK.WriteImage(image, str(out / name), compressed)
        for path in sorted(p for p in out.iterdir() if p.suffix not in (".raw", ".hdr")):
            with self.subTest(file=path.name):
                result = run("identity", path, self.folder / "copy_of.mha")
                if path.suffix in (".gipl",) and result.returncode:
                    self.assert_failed(result)
                    continue
                self.assertEqual(result.returncode, 0, str(result))
                back = read(self.folder / "copy_of.mha")
                self.assertEqual((back.size, back.kind), (values.size, values.kind))
                self.assertEqual(back.values, values.values)
                if path.suffix in (".nii", ".gz", ".img", ".mha", ".vtk", ".mrc"):
                    self.assertTrue(numpy.allclose(back.spacing, (0.5, 0.75, 1.25)), back.spacing)
                self.assertTrue(numpy.isfinite(back.direction).all())
            (self.folder / "copy_of.mha").unlink(missing_ok=True)

    def test_large_values_survive_in_every_type(self):
        for ending in ("mha", "nrrd", "nii", "h5", "tif"):
            for kind in KINDS:
                low, high = limits(kind)
                values = [low, high, 0, 1, high - 1, low + 1] if not is_real(kind) else [math.inf, -math.inf, 1e30, -0.0, 1e-40, 5.0]
                with self.subTest(ending=ending, kind=kind):
                    source = write(self.folder / "in.mha", Image((3, 2), kind, values))
                    path = self.folder / ("o." + ending)
                    result = run("identity", source, path)
                    if result.returncode:
                        self.assert_failed(result)
                        continue
                    self.assert_runs("identity", path, self.out)
                    self.assertEqual(read(self.out).values.tobytes(), read(source).values.tobytes())
