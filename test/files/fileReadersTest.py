#!/usr/bin/env python3
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Writes every format, type and dimension, and reads it with the libraries of others: nibabel, tifffile, pynrrd, h5py,
mrcfile and SimpleITK, which are installed into an environment of the test's own. Then the other way round: what they write
must come through a copy.

Usage: fileReadersTest.py COPY_PROGRAM FOLDER. Exit status 77: skipped, the libraries cannot be installed."""
import pathlib
import subprocess
import sys
import venv

PACKAGES = ["numpy", "nibabel", "tifffile", "pynrrd", "h5py", "SimpleITK", "mrcfile"]


def enter_environment(folder):
    """Starts this script again in an environment that has the libraries."""
    python = folder / "environment" / "bin" / "python"
    if not (folder / "environment" / "complete").exists():
        try:
            venv.create(folder / "environment", with_pip=True, clear=True)
            subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES],
                           check=True, timeout=400)
            (folder / "environment" / "complete").touch()
        except (OSError, subprocess.SubprocessError) as error:
            print(f"Skipped: {', '.join(PACKAGES)} cannot be installed: {error}")
            sys.exit(77)
    sys.exit(subprocess.run([python, __file__, *sys.argv[1:], "--inside"]).returncode)


program = pathlib.Path(sys.argv[1]).resolve()
folder = pathlib.Path(sys.argv[2]).resolve()
folder.mkdir(parents=True, exist_ok=True)
if "--inside" not in sys.argv:
    enter_environment(folder)

import h5py
import mrcfile
import nibabel
import nrrd
import numpy as np
import SimpleITK as sitk
import tifffile

TYPES = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float32", "float64"]
rng = np.random.default_rng(5)
failures = []
checks = 0


def check(condition, what):
    global checks
    checks += 1
    if not condition:
        failures.append(what)
        print("FAILED:", what)


def copy(source, target, *options):
    """The losses that were named, or None where it failed."""
    result = subprocess.run([program, *options, "--seed", str(rng.integers(1000)), source, target], capture_output=True,
                            text=True)
    check(result.returncode == 0, f"{source} to {target}: {result.stderr.strip()}")
    return [line[6:] for line in result.stdout.splitlines()] if result.returncode == 0 else None


def rotation(n):
    q, _ = np.linalg.qr(rng.normal(size=(n, n)))
    return q


class Image:
    """Voxels in the order of NumPy (z, y, x), geometry in ITK's (x, y, z; LPS)."""

    def __init__(self, dtype, dimension):
        self.shape = tuple(int(i) for i in rng.integers(2, 9, size=dimension))
        kind = np.dtype(dtype)
        if kind.kind == "f":
            self.voxels = rng.normal(scale=1000, size=self.shape).astype(kind)
        else:
            info = np.iinfo(kind)
            self.voxels = rng.integers(info.min, info.max, size=self.shape, dtype=kind, endpoint=True)
        self.spacing = 0.25 + rng.random(dimension)
        self.origin = 50 * rng.normal(size=dimension)
        self.direction = np.eye(dimension)
        space = min(3, dimension)
        self.direction[:space, :space] = rotation(space)

    def write_nrrd(self, name):
        """By pynrrd, which is the source of each copy."""
        n = len(self.shape)
        header = {
            "space directions": (self.direction * self.spacing).T,
            "space origin": self.origin,
            "kinds": ["domain"] * n,
            "encoding": "raw",
            "Subject": "a text: with = signs",
        }
        header["space" if n == 3 else "space dimension"] = "left-posterior-superior" if n == 3 else n
        nrrd.write(str(name), self.voxels.T, header)


def same(a, b):
    return a.shape == b.shape and a.dtype.newbyteorder("=") == b.dtype.newbyteorder("=") and bool(np.all(a == b))


def close(a, b, tolerance=1e-5):
    a, b = np.asarray(a, float), np.asarray(b, float)
    return a.shape == b.shape and bool(np.allclose(a, b, rtol=tolerance, atol=tolerance * 10))


def check_simpleitk(name, image, what, direction=True, spacing=True):
    read = sitk.ReadImage(str(name))
    array = sitk.GetArrayFromImage(read)
    n = len(image.shape)
    # A plane may come as a volume of one slice.
    check(same(array.reshape(image.shape), image.voxels), f"{what}: voxels by SimpleITK")
    if spacing:
        check(close(read.GetSpacing()[:n], image.spacing), f"{what}: spacing by SimpleITK {read.GetSpacing()}")
        check(close(read.GetOrigin()[:min(n, 3)], image.origin[:3]), f"{what}: origin by SimpleITK {read.GetOrigin()}")
    if direction:
        check(close(np.reshape(read.GetDirection(), (n, n)), image.direction), f"{what}: direction by SimpleITK")
    return read


def check_nibabel(name, image, what):
    read = nibabel.load(name)
    check(same(np.asarray(read.dataobj).T.reshape(image.shape), image.voxels), f"{what}: voxels by nibabel")
    n = min(3, len(image.shape))
    affine = np.eye(4)
    affine[:n, :n] = image.direction[:n, :n] * image.spacing[:n]
    affine[:n, 3] = image.origin[:n]
    affine[:2] *= -1
    for of, code in (read.get_sform(coded=True), read.get_qform(coded=True)):
        check(code > 0 and close(of[:n, :n], affine[:n, :n]) and close(of[:n, 3], affine[:n, 3], 1e-4),
              f"{what}: geometry by nibabel")
    if len(image.shape) == 4:
        check(close(read.header.get_zooms()[3], image.spacing[3]), f"{what}: step in time by nibabel")


def check_nrrd(name, image, what):
    voxels, header = nrrd.read(str(name))
    check(same(voxels.T, image.voxels), f"{what}: voxels by pynrrd")
    check(close(header["space directions"], (image.direction * image.spacing).T), f"{what}: directions by pynrrd")
    check(close(header["space origin"], image.origin), f"{what}: origin by pynrrd")
    check(header.get("Subject") == "a text: with = signs", f"{what}: text by pynrrd")


def check_all_formats():
    for dtype in TYPES:
        for dimension in (2, 3, 4, 5):
            image = Image(dtype, dimension)
            source = folder / "source.nrrd"
            image.write_nrrd(source)
            what = f"{dtype}, {dimension}-D"
            for name, options in (("a.nrrd", ()), ("b.nrrd", ("--compress",)), ("c.nhdr", ()), ("d.nhdr", ("--compress",))):
                if copy(source, folder / name, *options) is not None:
                    check_nrrd(folder / name, image, f"{name} {what}")
                    if dimension < 5:
                        check_simpleitk(folder / name, image, f"{name} {what}")
            if dimension < 5:
                for name, options in (("a.mha", ()), ("b.mha", ("--compress",)), ("e.mhd", ()), ("f.mhd", ("--compress",))):
                    if copy(source, folder / name, *options) is not None:
                        read = check_simpleitk(folder / name, image, f"{name} {what}")
                        check(read.HasMetaDataKey("Subject") and read.GetMetaData("Subject") == "a text: with = signs",
                              f"{name} {what}: text by SimpleITK")
                for name in ("a.nii", "a.nii.gz", "g.hdr", "h.img"):
                    if copy(source, folder / name) is not None:
                        check_nibabel(folder / name, image, f"{name} {what}")
                        check_simpleitk(folder / name, image, f"{name} {what}")
            if dimension < 4:
                losses = copy(source, folder / "a.tif")
                if losses is not None:
                    check(same(tifffile.imread(folder / "a.tif"), image.voxels), f"a.tif {what}: voxels by tifffile")
                    check("direction" in losses and "origin" in losses, f"a.tif {what}: losses {losses}")
                    with tifffile.TiffFile(folder / "a.tif") as tiff:
                        x = tiff.pages[0].tags["XResolution"].value
                        check(close(10 * x[1] / x[0], image.spacing[0]), f"a.tif {what}: spacing by tifffile")
                if copy(source, folder / "a.vtk") is not None:
                    check_simpleitk(folder / "a.vtk", image, f"a.vtk {what}", direction=False)
                if dtype in ("uint8", "int16", "uint16", "float32") and copy(source, folder / "a.mrc") is not None:
                    with mrcfile.open(folder / "a.mrc", permissive=False) as mrc:
                        voxels = mrc.data.view(np.uint8) if dtype == "uint8" else mrc.data
                        check(same(voxels.reshape(image.shape), image.voxels), f"a.mrc {what}: voxels by mrcfile")
                        size = [float(mrc.voxel_size[axis]) for axis in "xyz"][:dimension]
                        check(close(size, image.spacing), f"a.mrc {what}: spacing by mrcfile {size}")
                        start = [float(mrc.header.origin[axis]) for axis in "xyz"][:dimension]
                        check(close(start, image.origin), f"a.mrc {what}: origin by mrcfile")
            if copy(source, folder / "a.h5") is not None:
                with h5py.File(folder / "a.h5") as file:
                    group = file["ITKImage/0"]
                    check(same(group["VoxelData"][...], image.voxels), f"a.h5 {what}: voxels by h5py")
                    check(close(group["Spacing"][...], image.spacing), f"a.h5 {what}: spacing by h5py")
                    check(close(group["Origin"][...], image.origin), f"a.h5 {what}: origin by h5py")
                    check(close(group["Directions"][...], image.direction.T) or
                          close(group["Directions"][...], image.direction), f"a.h5 {what}: direction by h5py")


def check_what_others_write():
    target = folder / "copy.nrrd"
    for dtype in TYPES:
        image = Image(dtype, 3)
        for order in "<>" if dtype != "uint8" else "<":
            voxels = image.voxels.astype(np.dtype(dtype).newbyteorder(order))
            for options in ({}, {"compression": "zlib"}, {"tile": (16, 16)}, {"bigtiff": True}, {"imagej": True}):
                if options.get("imagej") and (dtype not in ("uint8", "uint16", "float32") or order == "<"):
                    continue
                try:
                    tifffile.imwrite(folder / "w.tif", voxels, byteorder=order, photometric="minisblack", **options)
                except (ImportError, ValueError):
                    continue  # Its codecs are another package.
                if copy(folder / "w.tif", target) is not None:
                    check(same(nrrd.read(str(target))[0].T, image.voxels), f"tifffile {dtype} {order} {options}")
            for kind, suffix in ((nibabel.Nifti1Image, ".nii"), (nibabel.Nifti2Image, ".nii.gz"), (nibabel.Nifti2Image, ".nii"),
                                 (nibabel.Nifti1Pair, ".img")):
                affine = np.eye(4)
                affine[:3, :3] = rotation(3) * [1, 2, 3]
                affine[:3, 3] = [4, 5, 6]
                header = kind.header_class(endianness=order)
                header.set_data_dtype(np.dtype(dtype))
                nibabel.save(kind(image.voxels.T, affine, header), folder / ("w" + suffix))
                if copy(folder / ("w" + suffix), target) is not None:
                    read, fields = nrrd.read(str(target))
                    what = f"nibabel {kind.__name__} {suffix} {dtype} {order}"
                    check(same(read.T, image.voxels), what)
                    lps = affine.copy()
                    lps[:2] *= -1
                    check(close(fields["space directions"].T, lps[:3, :3]), f"{what}: directions")
                    check(close(fields["space origin"], lps[:3, 3]), f"{what}: origin")
            for encoding in ("raw", "gzip", "ascii") if order == "<" else ():
                if encoding == "ascii" and dtype in ("uint64", "int64", "float32", "float64"):
                    continue  # Written with few digits.
                nrrd.write(str(folder / "w.nrrd"), voxels.T, {"encoding": encoding})
                if copy(folder / "w.nrrd", target) is not None:
                    check(same(nrrd.read(str(target))[0].T, image.voxels), f"pynrrd {encoding} {dtype} {order}")
        if dtype in ("int8", "int16", "uint16", "float32"):
            with mrcfile.new(folder / "w.mrc", image.voxels, overwrite=True) as mrc:
                mrc.voxel_size = 1.5
            if copy(folder / "w.mrc", target) is not None:
                check(same(nrrd.read(str(target))[0].T, image.voxels), f"mrcfile {dtype}")
        for suffix in (".mha", ".h5", ".vtk", ".gipl"):
            if suffix == ".gipl" and dtype.endswith("64"):
                continue
            whole = sitk.GetImageFromArray(image.voxels)
            try:
                sitk.WriteImage(whole, str(folder / ("w" + suffix)), suffix == ".mha")
            except RuntimeError:
                continue  # Not every format of ITK has every type.
            if copy(folder / ("w" + suffix), target) is not None:
                check(same(nrrd.read(str(target))[0].T, image.voxels), f"SimpleITK {suffix} {dtype}")


def write_ome(name, planes, order, **options):
    """Planes by (z, c, t), in this order of the axes behind x and y, by tifffile as a plain stack with its own OME-XML."""
    x = planes[0, 0, 0]
    sizes = dict(zip("ZCT", planes.shape[:3]))
    kept = options.pop("directories", None)
    data = options.pop("data", "<TiffData/>")
    components = x.shape[2] if x.ndim == 3 else 1
    names = {"float32": "float", "float64": "double"}
    text = (f'<?xml version="1.0" encoding="UTF-8"?><o:OME xmlns:o="http://www.openmicroscopy.org/Schemas/OME/2016-06"'
            f' UUID="urn:uuid:1"><o:Image ID="Image:0"><o:Pixels ID="Pixels:0" DimensionOrder="XY{order}"'
            f' Type="{options.pop("type", names.get(str(x.dtype), str(x.dtype)))}" SizeX="{x.shape[1]}" SizeY="{x.shape[0]}"'
            f' SizeZ="{sizes["Z"]}" SizeC="{sizes["C"] * components}" SizeT="{sizes["T"]}"{options.pop("more", "")}>'
            f'{data}</o:Pixels></o:Image></o:OME>')
    text = options.pop("xml", text)
    stack = np.empty((planes.shape[0] * planes.shape[1] * planes.shape[2],) + x.shape, x.dtype)
    # The first axis of `order` is the fastest.
    for i, at in enumerate(np.ndindex(*(sizes[axis] for axis in reversed(order)))):
        place = dict(zip(reversed(order), at))
        stack[i] = planes[place["Z"], place["C"], place["T"]]
    if kept is not None:
        stack = stack[kept]
    form = {key: options.pop(key) for key in ("bigtiff", "byteorder") if key in options}
    with tifffile.TiffWriter(name, ome=False, **form) as tiff:
        for i, plane in enumerate(stack):
            tiff.write(plane, photometric="rgb" if components == 3 else "minisblack", metadata=None,
                       description=text.encode() if i == 0 else None, contiguous=False, **options)


def read_copy(name):
    """The values of a copy, as (z, c, t, y, x) and perhaps components."""
    target = folder / "copy.nrrd"
    if copy(name, target) is None:
        return None, None
    voxels, header = nrrd.read(str(target))
    return voxels, header


def check_ome():
    for trial in range(60):
        dtype = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "float32", "float64")[trial % 8]
        shape = tuple(int(i) for i in rng.integers(1, 5, size=3)) + tuple(int(i) for i in rng.integers(2, 40, size=2))
        components = 3 if dtype == "uint8" and trial % 16 == 0 else 1
        if components > 1:
            shape = shape[:2] + (1,) + shape[3:] + (3,)  # Images with components have four axes at most.
        planes = rng.integers(0, 100, size=shape).astype(dtype)
        order = "".join(rng.permutation(list("ZCT")))
        size = rng.random(3) + 0.1
        options = [{}, {"tile": (16, 16)}, {"rowsperstrip": 3}, {"bigtiff": True, "byteorder": ">"}][trial % 4]
        name = folder / "w.ome.tif"
        more = "".join(f' PhysicalSize{axis}="{value!r}" PhysicalSize{axis}Unit="{unit}"'
                       for axis, value, unit in zip("XYZ", map(float, size), ("\u00b5m", "nm", "mm")))
        count = shape[0] * shape[1] * shape[2]
        directories = rng.permutation(count)
        # Now the directories in the order of the planes, now in none: then each is named.
        if trial % 3 == 0:
            steps = dict(zip("ZCT", shape[:3]))
            elements = []
            for i, directory in enumerate(directories):
                rest, place = int(directory), {}
                for axis in order:
                    place[axis] = rest % steps[axis]
                    rest //= steps[axis]
                c = "" if components > 1 and place["C"] == 0 else f' FirstC="{place["C"]}"'
                elements.append(f'<o:TiffData IFD="{i}" FirstZ="{place["Z"]}"{c} FirstT="{place["T"]}" PlaneCount="1">'
                                '<o:UUID FileName="old name.tif">urn:uuid:1</o:UUID></o:TiffData>')
            if components > 1 and shape[1] > 1:
                directories = None  # The standard does not say how FirstC counts colors.
                elements = ["<o:TiffData/>"]
            write_ome(name, planes, order, more=more, directories=directories, data="".join(rng.permutation(elements)),
                      **options)
        else:
            data = ("<o:TiffData/>", f'<o:TiffData IFD="0" PlaneCount="{count}"/>', "")[trial % 3]
            write_ome(name, planes, order, more=more, data=data, **options)
        voxels, header = read_copy(name)
        if voxels is None:
            continue
        what = f"OME-TIFF {dtype}, XY{order}, {shape}"
        # (c, t of components) x, y, z, c, t as NRRD has them.
        expected = np.moveaxis(planes, (3, 4), (1, 0)) if components > 1 else planes
        expected = planes.transpose((4, 3, 0, 1, 2)) if components == 1 else planes.transpose((5, 4, 3, 0, 1, 2))
        space = expected.shape[1:] if components > 1 else expected.shape
        while len(space) > 2 and space[-1] == 1:
            space = space[:-1]
        expected = expected.reshape(((3,) if components > 1 else ()) + space)
        check(same(voxels, expected), f"{what}: voxels {voxels.shape}")
        step = np.abs(header["space directions"])
        spacing = [np.nanmax(step[i + (1 if components > 1 else 0)]) for i in range(min(3, len(space)))]
        check(close(spacing, (size * (1e-3, 1e-6, 1))[:len(spacing)], 1e-12), f"{what}: spacing {spacing}")


def check_ome_of_tifffile():
    for trial in range(40):
        shape = tuple(int(i) for i in rng.integers(1, 5, size=3)) + (17, 33)
        order = ["ZCT", "ZTC", "CZT", "CTZ", "TZC", "TCZ"][trial % 6]
        axes = order[::-1] + "YX"
        voxels = rng.integers(0, 1000, size=[shape["ZCT".index(axis)] for axis in axes[:3]] + [17, 33]).astype(np.uint16)
        name = folder / "w.ome.tif"
        pyramid = trial % 3 == 1
        with tifffile.TiffWriter(name) as tiff:
            tiff.write(voxels, metadata={"axes": axes, "PhysicalSizeZ": 3.0}, subifds=1 if pyramid else 0,
                       photometric="minisblack", tile=(16, 16) if pyramid else None)
            if pyramid:
                tiff.write(voxels[..., ::2, ::2], subfiletype=1, photometric="minisblack", tile=(16, 16))
        with tifffile.TiffFile(name) as tiff:
            series = tiff.series[0]
            peer = series.asarray()
            check(peer.size == voxels.size, "tifffile reads what it wrote")
        read, header = read_copy(name)
        if read is None:
            continue
        expected = voxels.transpose([axes.index(axis) for axis in "XYZCT"])
        space = expected.shape
        while len(space) > 2 and space[-1] == 1:
            space = space[:-1]
        check(same(read, expected.reshape(space)), f"tifffile's OME-TIFF of {axes}, {shape}, pyramid {pyramid}: voxels")
    # Stacks of ImageJ: slices alone stay slices, whatever they are called.
    for shape in ((1, 1, 5), (1, 5, 1), (5, 1, 1), (2, 3, 4), (3, 1, 4), (2, 4, 1), (1, 2, 3)):
        voxels = rng.integers(0, 1000, size=shape + (7, 9)).astype(np.uint16)
        tifffile.imwrite(folder / "w.tif", voxels, imagej=True, metadata={"axes": "TZCYX"})
        read, _ = read_copy(folder / "w.tif")
        if read is not None:
            expected = voxels.transpose((4, 3, 1, 2, 0))
            space = expected.shape
            if sum(n > 1 for n in shape) < 2:
                space = (9, 7, 5)
            while space[-1] == 1:
                space = space[:-1]
            check(same(read, expected.reshape(space)), f"ImageJ's {shape}: voxels {read.shape}")


def check_ome_that_lies():
    planes = rng.integers(0, 100, size=(2, 3, 2, 6, 7)).astype(np.uint16)
    name = folder / "lie.ome.tif"

    def refused(what, says, **options):
        write_ome(name, planes, "ZCT", **options)
        result = subprocess.run([program, name, folder / "copy.nrrd"], capture_output=True, text=True, timeout=60)
        check(result.returncode == 1 and says in result.stderr, f"{what} was not refused: {result.stderr.strip()}")

    one = '<o:TiffData IFD="0" PlaneCount="{}"/>'
    refused("another type", "Type", type="uint8")
    refused("fewer pages", "11 pages", directories=list(range(11)))
    refused("a plane that is nowhere", "does not say where", data=one.format(11))
    refused("more planes than there are", "not in its image", data=one.format(13))
    refused("a plane twice", "twice", data=one.format(12) + '<o:TiffData IFD="3" FirstZ="1"/>')
    refused("a page twice", "twice", data=one.format(11) + '<o:TiffData IFD="3" FirstZ="1" FirstC="2" FirstT="1"/>')
    refused("a page that is not there", "not in its image", data='<o:TiffData IFD="12"/>')
    refused("a place that is not there", "not in its image", data='<o:TiffData IFD="0" FirstC="3"/>')
    refused("a negative number", "IFD", data='<o:TiffData IFD="-1"/>')
    refused("a number that is none", "PlaneCount", data=one.format("1e1"))
    refused("a huge number", "PlaneCount", data=one.format(10**30))
    refused("another file", "another file, b.tif",
            data='<o:TiffData><o:UUID FileName="b.tif">urn:uuid:2</o:UUID></o:TiffData>')
    whole = ('<OME><Image><Pixels DimensionOrder="{}" SizeX="{}" SizeY="6" SizeZ="{}" SizeC="{}" SizeT="{}">{}</Pixels>'
             '</Image></OME>')
    refused("an order without an axis", "DimensionOrder", xml=whole.format("XYZCC", 7, 2, 3, 2, ""))
    refused("an order that begins with z", "DimensionOrder", xml=whole.format("ZXYCT", 7, 2, 3, 2, ""))
    refused("another width", "8 x 6", xml=whole.format("XYZCT", 8, 2, 3, 2, ""))
    refused("more planes than can be", "pages", xml=whole.format("XYZCT", 7, 2**62, 2**62, 2**62, ""))
    refused("fewer planes than pages", "of them", xml=whole.format("XYZCT", 7, 2, 3, 1, '<TiffData IFD="0" PlaneCount="6"/>'))
    refused("no planes", "SizeZ", xml=whole.format("XYZCT", 7, 0, 3, 2, ""))
    refused("two images", "there must be one",
            xml="<OME>" + 2 * whole.format("XYZCT", 7, 2, 3, 2, "").replace("<OME>", "").replace("</OME>", "") + "</OME>")
    refused("no image", "there must be one", xml="<OME/>")
    refused("colors that pages do not have", "SamplesPerPixel",
            xml=whole.format("XYZCT", 7, 2, 3, 2, '<Channel SamplesPerPixel="3"/>'))
    refused("text that ends", "cannot be read", xml=whole.format("XYZCT", 7, 2, 3, 2, "")[:60])
    refused("two axes in one", "ModuloAlongZ",
            xml=whole.format("XYZCT", 7, 2, 3, 2, "").replace("</OME>", "<A><ModuloAlongZ/></A></OME>"))
    refused("what another file describes", "c.companion.ome",
            xml='<OME><BinaryOnly MetadataFile="c.companion.ome" UUID="urn:uuid:3"/></OME>')
    bomb = "<!DOCTYPE OME [<!ENTITY a 'aaaaaaaaaa'>" + "".join(
        f"<!ENTITY {chr(98 + i)} '{10 * f'&{chr(97 + i)};'}'>" for i in range(9)) + "]>"
    refused("entities of entities", "document type", xml=bomb + whole.format("XYZCT", 7, 2, 3, 2, "<A>&j;</A>"))
    refused("a file of the machine", "document type",
            xml="<!DOCTYPE OME [<!ENTITY a SYSTEM 'file:///etc/passwd'>]>" + whole.format("XYZCT", 7, 2, 3, 2, "<A>&a;</A>"))
    # Deep, and long, is no matter.
    deep = 200000 * "<a>" + 200000 * "</a>"
    write_ome(name, planes, "ZCT", xml=whole.format("XYZCT", 7, 2, 3, 2, deep + 3000000 * " "))
    voxels, _ = read_copy(name)
    check(voxels is not None and same(voxels, planes.transpose((4, 3, 0, 1, 2))), "deep OME-XML")
    # Cut at any byte, or with any byte changed, it is refused, or the voxels are those of some order of whole planes.
    pages = {planes[at].tobytes() for at in np.ndindex(2, 3, 2)}
    text = whole.format("XYZCT", 7, 2, 3, 2, '<TiffData IFD="0" PlaneCount="12"/>')
    for trial in range(150):
        changed = bytearray(text.encode())
        if trial % 3 == 0:
            changed = changed[: int(rng.integers(1, len(changed)))]
        else:
            changed[int(rng.integers(len(changed)))] = int(rng.integers(32, 127))
        write_ome(name, planes, "ZCT", xml=changed.decode())
        result = subprocess.run([program, name, folder / "copy.nrrd"], capture_output=True, text=True, timeout=60)
        check(result.returncode in (0, 1), f"{changed}: {result.returncode}")
        if result.returncode == 0:
            voxels, _ = nrrd.read(str(folder / "copy.nrrd"))
            found = voxels.reshape(7, 6, -1).transpose((2, 1, 0))
            check({plane.tobytes() for plane in found} == pages and len(found) == 12, f"{changed}: other voxels")


def check_dicom():
    voxels = rng.integers(0, 1000, size=(5, 7, 6), dtype=np.int16)
    series = folder / "series"
    series.mkdir(exist_ok=True)
    for i in range(5):
        one = sitk.GetImageFromArray(voxels[i:i + 1])
        one.SetSpacing((0.5, 0.5, 2))
        for key, value in (("0008|0060", "CT"), ("0020|000e", "1.2.3.4"), ("0020|000d", "1.2.3"), ("0020|0013", str(i)),
                           ("0020|0032", f"0\\0\\{2 * i}"), ("0020|0037", "1\\0\\0\\0\\1\\0")):
            one.SetMetaData(key, value)
        writer = sitk.ImageFileWriter()
        writer.KeepOriginalImageUIDOn()
        # Names in another order than places.
        writer.SetFileName(str(series / f"{(3 * i) % 5}.dcm"))
        writer.Execute(one)
    target = folder / "copy.nrrd"
    if copy(series, target) is not None:
        read, header = nrrd.read(str(target))
        check(bool(np.all(read.T == voxels)), "DICOM series: voxels")
        check(close(np.diag(header["space directions"]), (0.5, 0.5, 2)), "DICOM series: spacing")
    (series / "1.dcm").unlink()
    result = subprocess.run([program, series, target], capture_output=True, text=True)
    check(result.returncode == 1 and "evenly" in result.stderr, f"DICOM series with a gap: {result.stderr}")


check_all_formats()
check_what_others_write()
check_ome()
check_ome_of_tifffile()
check_ome_that_lies()
check_dicom()
print(f"{checks} checks, {len(failures)} failed")
sys.exit(1 if failures else 0)
