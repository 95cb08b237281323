# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Vectors and colors: each component gets the result of a separate image, whatever the formats and divisions."""
import itertools

import nibabel
import nrrd
import numpy
import SimpleITK
import tifffile

from adversary.networks import small_model
from adversary.support import ProgramTest

SIZE = (9, 11, 13)  # z, y, x


def pixels(size, components, kind, seed):
    random = numpy.random.default_rng(seed)
    if numpy.issubdtype(kind, numpy.integer):
        return random.integers(0, min(numpy.iinfo(kind).max, 60000), (*size, components)).astype(kind)
    return random.normal(size=(*size, components)).astype(kind)


def put(path, array, components):
    SimpleITK.WriteImage(SimpleITK.GetImageFromArray(array, isVector=components > 1), str(path))


def get(path, n):
    """By the library of the format; indexed z, y, x, component."""
    name = str(path)
    if name.endswith((".tif", ".tiff")):
        return tifffile.imread(name)
    if ".nii" in name:
        data = numpy.asanyarray(nibabel.load(name).dataobj)
        data = numpy.stack([data[field] for field in data.dtype.names], -1) if data.dtype.names else data
        return numpy.transpose(data.reshape(*data.shape[:n], -1), (*range(n - 1, -1, -1), n))
    if name.endswith(".nrrd"):
        data, _ = nrrd.read(name)
        return numpy.transpose(data, (*range(n, 0, -1), 0))
    return SimpleITK.GetArrayFromImage(SimpleITK.ReadImage(name))


class Components(ProgramTest):
    def assert_components(self, array, ending, to, words, *more):
        n, components = array.ndim - 1, array.shape[-1]
        source, out = self.folder / ("all." + ending), self.folder / ("result." + to)
        put(source, array, components)
        with self.subTest(ending=ending, to=to, words=words, more=more):
            self.assert_runs(words[0], source, out, *words[1:], *more)
            result = get(out, n)
            for c in range(components):
                put(self.folder / "one.mha", numpy.ascontiguousarray(array[..., c]), 1)
                self.assert_runs(words[0], self.folder / "one.mha", self.folder / "one_result.mha", *words[1:])
                expected = get(self.folder / "one_result.mha", n)
                self.assertTrue(numpy.array_equal(result[..., c], expected), c)

    def test_volumes(self):
        for more in ((), ("--divisions=4",), ("--memory=200M",)):
            for kind, components, ending, to, words in (
                ("uint8", 3, "mha", "mha", ("mean", "--radius=2")),
                ("float32", 2, "nrrd", "nrrd", ("gaussian", "--sigma=1.5")),
                ("float64", 5, "mha", "nrrd", ("median", "--radius=1")),
                ("uint16", 4, "nrrd", "mhd", ("maximum", "--radius=2")),
                ("uint8", 3, "mha", "nii", ("minimum", "--radius=2")),
                ("uint8", 4, "mha", "nii.gz", ("mean", "--radius=2")),
                ("uint8", 3, "mha", "tif", ("variance", "--radius=1")),
                ("float32", 2, "mha", "tif", ("mean", "--radius=1", "--boundary=periodic")),
                ("int16", 5, "mha", "tif", ("mean", "--radius=1", "--boundary=mirror")),
                ("uint8", 3, "nii", "mha", ("opening", "--radius=1")),
                ("float32", 3, "nii", "nii", ("mean", "--radius=1")),
            ):
                self.assert_components(pixels(SIZE, components, numpy.dtype(kind), 3), ending, to, words, *more)

    def test_pictures(self):
        words = ("median", "--radius=1")
        for kind, components, ending, to in (("uint8", 3, "png", "png"), ("uint16", 4, "png", "tif"), ("uint8", 3, "bmp", "png"),
                                             ("uint16", 3, "tif", "png"), ("uint8", 4, "tif", "nii")):
            self.assert_components(pixels(SIZE[1:], components, numpy.dtype(kind), 4), ending, to, words)

    def test_what_needs_the_whole_image(self):
        array = pixels(SIZE, 3, numpy.dtype("uint8"), 5)
        for words in (("fill-holes",), ("sat",), ("h-maxima", "--height=40")):
            self.assert_components(array, "mha", "mha", words)
        # Compressed, NIfTI's vectors come one component after the other.
        array = pixels(SIZE, 2, numpy.dtype("uint16"), 6)
        self.assert_components(array, "nii.gz", "nii.gz", ("mean", "--radius=1"))
        self.assert_refused("mean", self.folder / "all.nii.gz", self.folder / "result.nii.gz", "--radius=1", "--divisions=4",
                            names="in pieces")

    def test_masks_are_of_one_component_or_of_as_many(self):
        array, one = pixels(SIZE, 3, numpy.dtype("uint8"), 6), pixels(SIZE, 1, numpy.dtype("uint8"), 7)[..., 0]
        all_, mask, five = self.folder / "all.mha", self.folder / "mask.mha", self.folder / "five.mha"
        put(all_, array, 3)
        put(mask, one % 2, 1)
        put(five, pixels(SIZE, 5, numpy.dtype("uint8"), 8), 5)
        self.assert_runs("difference", all_, self.out, "--minus", mask, "--output-type=int16")
        expected = array.astype(int) - (one % 2)[..., None]
        self.assertTrue(numpy.array_equal(get(self.out, 3), expected))
        self.assert_refused("difference", all_, self.out, "--minus", five, names="5 components")
        self.assert_refused("difference", mask, self.out, "--minus", all_, names="3 components")
        self.assert_components(array, "mha", "mha", ("mean", "--radius=1", "--mask", str(mask)), "--divisions=3")

    def test_what_has_one_component(self):
        put(self.folder / "all.mha", pixels(SIZE, 3, numpy.dtype("uint8"), 6), 3)
        put(self.folder / "five.mha", pixels(SIZE, 5, numpy.dtype("float32"), 6), 5)
        self.assert_refused("statistics", self.folder / "all.mha", names="3 components")
        self.assert_refused("convolve-image", self.folder / "all.mha", self.out, "--kernel", self.folder / "all.mha",
                            names="3 components")
        for name in ("out.mrc", "out.vtk", "out.gipl"):
            self.assert_refused("identity", self.folder / "five.mha", self.folder / name, names="5 components")

    def test_channels_of_networks(self):
        """They are what runs for each of them give, in every format and however the image is cut."""
        model, source, one = self.folder / "m.onnx", self.folder / "source.mha", self.folder / "one.mha"
        model.write_bytes(small_model())
        exact = ("--precision=reproducible",)
        for size in (SIZE, (2, *SIZE)):
            put(source, pixels(size, 1, numpy.dtype("float32"), 10)[..., 0], 1)
            expected = []
            for c in range(3):
                self.assert_runs("network", model, source, one, f"--channel={c}", *exact)
                expected.append(get(one, len(size)))
            expected = numpy.stack(expected, -1)
            for to, more in itertools.product(("mha", "nrrd", "nii.gz", "tif", "nii") if size is SIZE else ("nrrd",),
                                              ((), ("--divisions=4",), ("--memory=200M",), ("--output-type=float64",))):
                if to == "nii.gz" and more == ("--divisions=4",):
                    continue  # compressed, its components come one after the other
                with self.subTest(size=size, to=to, more=more):
                    out = self.folder / ("result." + to)
                    self.assert_runs("network", model, source, out, "--output-components", *exact, *more)
                    result = get(out, len(size))
                    self.assertEqual(result.dtype, "float64" if "--output-type=float64" in more else "float32")
                    self.assertTrue(numpy.array_equal(result, expected))
        put(source, pixels(SIZE, 1, numpy.dtype("float32"), 10)[..., 0], 1)
        self.assert_runs("network", model, source, self.out, "--output-components", *exact, "--region=2,3,4,5,4,3")
        self.assert_runs("network", model, source, one, "--channel=2", *exact, "--region=2,3,4,5,4,3")
        self.assertTrue(numpy.array_equal(get(self.out, 3)[..., 2], get(one, 3)))
        for more, names in ((("--channel=1",), "--channel"), (("--result=argmax",), "--output-components")):
            self.assert_refused("network", model, source, self.out, "--output-components", *more, names=names)
        for name in ("out.png", "out.mrc", "out.vtk"):
            self.assert_refused("network", model, source, self.folder / name, "--output-components", names="3 components")

    def test_vectors_have_the_divergence_of_their_components(self):
        """A file of vectors stands for a file of each component, in every format and however the image is cut."""
        array = pixels(SIZE, 3, numpy.dtype("float32"), 12)
        parts = [self.folder / f"part{c}.mha" for c in range(3)]
        for c, part in enumerate(parts):
            put(part, array[..., c], 1)
        expected, more = self.folder / "expected.mha", ("--sigma=1", "--voxels")
        self.assert_runs("divergence", parts[0], expected, f"--second={parts[1]}", f"--third={parts[2]}", *more)
        expected = get(expected, 3)
        for form in ("mha", "nrrd", "nii", "nii.gz", "tif", "zarr"):
            source = self.folder / f"vectors.{form}"
            put(self.folder / "source.mha", array, 3)
            self.assert_runs("identity", self.folder / "source.mha", source)
            for options in ((), ("--divisions=3",), ("--memory=200M",), ("--divisions=2", "--threads=1")):
                if form == "nii.gz" and options:
                    continue  # compressed, its components come one after the other
                with self.subTest(form=form, options=options):
                    self.assert_runs("divergence", source, self.out, *more, *options)
                    self.assertTrue(numpy.array_equal(get(self.out, 3), expected))
        source = self.folder / "source.mha"
        self.assert_runs("divergence", source, self.out, *more, "--region=2,1,1,4,5,3")
        self.assertTrue(numpy.array_equal(get(self.out, 3), expected[1:4, 1:6, 2:6]))
        self.assert_refused("divergence", parts[0], self.out, *more, names="--second")
        self.assert_refused("divergence", parts[0], self.out, f"--second={parts[1]}", *more, names="--third")
        self.assert_refused("divergence", source, self.out, f"--second={parts[1]}", *more, names="3 components")
        self.assert_refused("divergence", source, self.out, "--of-gradient", *more, names="--of-gradient")
        self.assert_refused("divergence", source, self.out, "--axes=0,1", *more, names="--third")
        put(self.folder / "five.mha", pixels(SIZE, 5, numpy.dtype("float32"), 6), 5)
        self.assert_refused("divergence", self.folder / "five.mha", self.out, *more, names="5 components")

    def test_windows_along_five_axes(self):
        """One filter has up to three spatial axes; of a sequence of two each has others."""
        random = numpy.random.default_rng(9)
        array = random.integers(0, 255, (3, 4, 5, 6, 7)).astype(numpy.uint8)
        source = self.folder / "five.mha"
        header = ["ObjectType = Image", "NDims = 5", "BinaryData = True", "ElementSpacing = 1 1 1 1 1",
                  "DimSize = 7 6 5 4 3", "ElementType = MET_UCHAR", "ElementDataFile = LOCAL", ""]
        source.write_bytes("\n".join(header).encode() + array.tobytes())
        self.assert_refused("maximum", source, self.out, "--radius=1", "--axes=0,1,2,3", names="one to 3 can be spatial")
        self.assert_runs("sequence", source, self.out, "--step", "maximum --radius 1 --axes 0,1,2", "--step",
                         "maximum --radius 1 --axes 3,4")
        padded = numpy.pad(array, 1)
        expected = numpy.max([padded[tuple(slice(o, o + n) for o, n in zip(offset, array.shape))]
                              for offset in itertools.product(range(3), repeat=5)], axis=0)
        result = numpy.frombuffer(self.out.read_bytes()[-array.nbytes:], numpy.uint8).reshape(array.shape)
        self.assertTrue(numpy.array_equal(result, expected))
