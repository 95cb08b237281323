# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Valid images by chance, of every format, type and geometry, filtered in parts: the result is that of the whole run, bit
for bit. docs/notes/fuzzing.md has what ran.

CHUNKWISE_TEST_SEED and CHUNKWISE_TEST_CASES choose other cases and more of them; CHUNKWISE_TEST_CASE runs one alone.
"""
import array
import gzip
import math
import os
import random
import re
import struct
import zlib
from pathlib import Path

from adversary.support import KIND_OF_META, KINDS, ProgramTest, bits, is_real, limits, run

SEED = int(os.environ.get("CHUNKWISE_TEST_SEED", "1"))
CASES = int(os.environ.get("CHUNKWISE_TEST_CASES", "200"))
ONE = os.environ.get("CHUNKWISE_TEST_CASE")
BOUNDARIES = ("renormalized", "zero-flux", "constant", "mirror", "mirror-center", "periodic")
NRRD_KINDS = {"uint8": "uint8", "int8": "int8", "float32": "float", "float64": "double"}
NIFTI_KINDS = {"uint8": 2, "int16": 4, "int32": 8, "float32": 16, "float64": 64, "int8": 256, "uint16": 512, "uint32": 768,
               "int64": 1024, "uint64": 1280}
VTK_KINDS = {"uint8": "unsigned_char", "int8": "char", "uint16": "unsigned_short", "int16": "short", "uint32": "unsigned_int",
             "int32": "int", "float32": "float", "float64": "double"}
# Why a run in parts may be refused where the whole run is not.
NEEDS_MORE = ("needs the whole image at once", "needs at least", "in pieces", "--memory", "does not fit")


class Case:
    """The parts of one case."""

    def __init__(self, number):
        self.number = number
        self.random = random.Random(SEED * 1_000_003 + number)
        pick = self.random
        self.dimension = pick.choice((2, 3, 3, 3, 3, 4, 5))
        most = {2: 60, 3: 18, 4: 9, 5: 6}[self.dimension]
        self.size = [1 if pick.random() < 0.08 else pick.randint(2, most) for _ in range(self.dimension)]
        self.kind = pick.choice(list(KINDS))
        self.components = pick.choice((1,) * 8 + (2, 3, 4))
        self.spacing = [pick.choice((1.0, 0.5, 0.8, 2.5, 3.0)) for _ in self.size]
        self.origin = [pick.choice((0.0, -12.5, 100.25, 3.0)) for _ in self.size]
        self.direction = [[float(i == j) for j in range(self.dimension)] for i in range(self.dimension)]
        if pick.random() < 0.3:
            # Axes 0 and 1 turned by a right angle.
            self.direction[0][:2], self.direction[1][:2] = [0.0, -1.0], [1.0, 0.0]
        count = math.prod(self.size) * self.components
        low, high = limits(self.kind)
        if is_real(self.kind):
            low, high = -1000, 1000
            values = [pick.choice((pick.uniform(low, high), float(pick.randint(-3, 3)))) for _ in range(count)]
        else:
            if pick.random() < 0.5:
                low, high = max(low, -50), min(high, 200)
            values = [pick.randint(low, high) for _ in range(count)]
        self.values = array.array(KINDS[self.kind][0], values)
        self.words = self.filter()
        self.parts = self.cut()

    def radius(self, most=4):
        pick = self.random
        count = min(self.dimension, 3)
        return "--radius=" + (str(pick.randint(0, most)) if pick.random() < 0.5 else ",".join(
            str(pick.randint(0, most)) for _ in range(count)))

    def filter(self):
        """A subcommand with its options."""
        pick = self.random
        boundary = pick.choice(BOUNDARIES)
        window = [self.radius(), f"--boundary={boundary}"] + (["--constant=7"] if boundary == "constant" else [])
        other = [f"--boundary={pick.choice(BOUNDARIES[1:])}"]
        if pick.random() < 0.3:
            other = ["--boundary=" + ",".join(pick.choice(BOUNDARIES[1:]) for _ in range(min(self.dimension, 3)))]
        sides = window + ([f"--upper{self.radius(3)[1:]}"] if pick.random() < 0.2 else [])
        sides = [sides[0], *other] if pick.random() < 0.2 else sides
        height = f"--height={pick.randint(1, 60)}"
        full = ["--full"] if pick.random() < 0.5 else []
        element = [f"--element={pick.choice(('box', 'ball', 'cross'))}", self.radius(3)]
        sigma = [f"--sigma={pick.choice((0.4, 0.7, 1.3))}", "--voxels"]
        rows = [
            ["identity"], ["mean", *sides], ["sum", *sides], ["variance", *sides], ["std", *sides], ["median", *sides],
            ["percentile", *sides, f"--percentile={pick.randint(0, 100)}"], ["range", *window],
            ["entropy", *window, "--bins=8", "--range=0,100"], ["wiener", *window, "--noise=30"],
            ["nlm", self.radius(1), "--strength=20", *other], ["maximum", *element, *other], ["minimum", *element, *other],
            ["opening", *element], ["closing", *element], ["gaussian", *sigma, *other], ["highpass", *sigma],
            ["log", *sigma, *other], ["convolve", "--radius=1,0", "--weights=1,2,-4"] if self.dimension == 2 else
            ["convolve", "--radius=1,0,0", "--weights=1,2,-4", *other],
            ["fill-holes", *full], ["grind-peaks", *full], ["clear-border", *full], ["h-maxima", height, *full],
            ["h-minima", height], ["h-convex", height], ["h-concave", height, *full], ["regional-maxima", *full],
            ["regional-minima"], ["opening-by-reconstruction", *element], ["closing-by-reconstruction", *element, *full],
            ["box", self.radius()], ["box", self.radius(), "--statistic=std"], ["sat"],
            ["sequence", f"--step=mean {self.radius(2)}", f"--step=median {self.radius(1)}"],
            ["sequence", f"--step=maximum {self.radius(2)}", "--step=gaussian --sigma 0.5 --voxels", "--step=minimum --radius 1"],
        ]
        self.needs_geometry = pick.random() < 0.5
        words = pick.choice(self.further() if self.needs_geometry else rows)
        if words[0] not in ("identity", "sequence") and self.dimension > 2 and pick.random() < 0.1:
            if all("," not in word for word in words if word.startswith(("--radius", "--upper", "--boundary"))) and words[0] != "convolve":
                words = words + ["--axes=0,1"]
        return words

    def further(self):
        """Filters of objects, derivatives, enhancement and other grids. None is of transforms, whose bits follow the cut."""
        pick = self.random
        axes = min(self.dimension, 3)
        numbers = lambda least, most: ",".join(str(pick.randint(least, most)) for _ in range(axes))
        sigma = [f"--sigma={pick.choice((0.4, 0.7, 1.3))}", "--voxels"]
        other = [f"--boundary={pick.choice(BOUNDARIES[1:])}"]
        near = f"--connectivity={pick.randint(1, axes)}"
        low = pick.randint(0, 60)
        rows = [
            ["threshold", f"--method={pick.choice(('otsu', 'li', 'triangle'))}"], ["threshold", f"--thresholds={low},{low + 9}"],
            ["local-threshold", self.radius(3), f"--method={pick.choice(('mean', 'median', 'niblack', 'bernsen'))}"],
            ["hysteresis", f"--low={low}", f"--high={low + 30}"],
            ["distance", f"--to={pick.choice(('contour', 'background', 'foreground'))}"], ["distance", "--maximum=2.5"], ["nearest"],
            ["binary-morphology", f"--radius={pick.choice((1, 1.5, 3))}", f"--operation={pick.choice(('erosion', 'dilation', 'opening', 'closing'))}"],
            ["derivative", *sigma, f"--order={numbers(0, 2)}", *other], ["derivative", "--operator=sobel", "--order=1", *other],
            ["gradient", *sigma, *other], ["hessian", *sigma, f"--result={pick.choice(('eigenvalues', 'elements', 'direction'))}"],
            ["structure-tensor", *sigma, "--outer-sigma=0.8"], ["vesselness", "--scales=0.6,0.9", "--voxels"],
            ["unsharp", *sigma], ["local-normalization", *sigma], ["diffusion", "--iterations=3", "--conductance=2"],
            ["total-variation", "--weight=20", "--iterations=4"], ["bilateral", *sigma, "--range-sigma=30"],
            ["white-top-hat", self.radius(2)], ["black-top-hat", self.radius(2), "--element=ball"], ["rolling-ball", "--radius=2"],
            ["clahe", f"--tile={pick.randint(2, 5)}"],
            ["resample", f"--scale={pick.choice((0.4, 1.5, 2.3))}", f"--interpolation={pick.choice(('nearest', 'linear', 'cubic', 'lanczos'))}"],
            ["resample", "--size=" + numbers(1, 12), f"--outside={pick.choice(('value', 'mirror', 'grid-wrap'))}"],
            ["bin", f"--factor={numbers(1, 3)}", f"--method={pick.choice(('mean', 'maximum', 'median', 'mode'))}"],
            ["crop", f"--lower={numbers(0, 1)}"], ["pad", f"--lower={numbers(0, 4)}", f"--upper={numbers(0, 4)}", f"--outside={pick.choice(('nearest', 'mirror', 'wrap'))}"],
            ["flip", f"--axes={pick.randint(0, axes - 1)}"],
        ]
        if not is_real(self.kind):
            rows += [["label", near, "--rule=equal"], ["label", near], ["area-opening", f"--size={pick.randint(2, 30)}", near],
                     ["watershed", near, f"--height={pick.randint(1, 40)}"], ["watershed", f"--area={pick.randint(2, 20)}", "--lines"],
                     ["boundaries", f"--mode={pick.choice(('inner', 'outer', 'thick'))}"], ["expand-labels", "--distance=2", "--voxels"]]
        return rows

    def cut(self):
        """Options that must not change a voxel."""
        pick = self.random
        words = [f"--threads={pick.randint(1, 6)}"]
        way = pick.random()
        if way < 0.6:
            words.append(f"--divisions={pick.randint(1, 12)}")
        elif way < 0.8:
            words.append(f"--memory={pick.choice(('64M', '100M', '300M'))}")
        self.region = None
        self.has_region = pick.random() < 0.3
        return words

    def choose_region(self, size):
        """A part of a result of this size."""
        if self.has_region:
            pick = self.random
            begin = [pick.randint(0, n - 1) for n in size]
            self.region = begin, [pick.randint(1, n - b) for n, b in zip(size, begin)]
            self.parts.append("--region=" + ",".join(map(str, begin + self.region[1])))

    def __str__(self):
        return (f"case {self.number} of seed {SEED}: {self.size} x {self.components} {self.kind}: "
                f"{' '.join(self.words)} {' '.join(self.parts)}")

    # Writers of headers as others write them.

    def data(self, big):
        """The voxels' bytes."""
        values = self.values[:]
        if big:
            values.byteswap()
        return values.tobytes()

    def meta(self, path, plain=False):
        pick = self.random
        big = not plain and pick.random() < 0.3
        data = self.data(big)
        way = "plain" if plain else pick.choice(("plain", "compressed", "beside", "behind"))
        name = "LOCAL"
        more = ""
        if way == "compressed":
            data = zlib.compress(data)
            more = f"CompressedData = True\nCompressedDataSize = {len(data)}\n"
        elif way in ("beside", "behind"):
            path = path.with_suffix(".mhd")
            name = path.stem + ".voxels"
            skipped = bytes(pick.randint(0, 50)) if way == "behind" else b""
            more = f"HeaderSize = {pick.choice((-1, len(skipped)))}\n" if way == "behind" else ""
            (path.parent / name).write_bytes(skipped + data)
            data = b""
        n = self.dimension
        matrix = " ".join(str(self.direction[row][column]) for column in range(n) for row in range(n))
        element = KINDS[self.kind][1] + ("_ARRAY" if self.components > 1 else "")
        header = (f"ObjectType = Image\nNDims = {n}\nBinaryData = True\nBinaryDataByteOrderMSB = {big}\n{more}"
                  f"TransformMatrix = {matrix}\nOffset = {' '.join(map(str, self.origin))}\n"
                  f"ElementSpacing = {' '.join(map(str, self.spacing))}\nDimSize = {' '.join(map(str, self.size))}\n"
                  f"ElementNumberOfChannels = {self.components}\nElementType = {element}\nElementDataFile = {name}\n")
        path.write_bytes(header.encode() + data)
        return [path]

    def nrrd(self, path):
        pick = self.random
        way = pick.choice(("raw", "gzip", "ascii", "beside"))
        big = way != "ascii" and pick.random() < 0.3
        data = self.data(big)
        sizes, kinds, vectors = list(self.size), ["domain"] * self.dimension, [
            "(" + ",".join(str(self.direction[row][a] * self.spacing[a]) for row in range(self.dimension)) + ")"
            for a in range(self.dimension)]
        if self.components > 1:
            sizes, kinds, vectors = [self.components, *sizes], ["vector", *kinds], ["none", *vectors]
        kind = NRRD_KINDS.get(self.kind, self.kind)
        space = {3: "space: left-posterior-superior"}.get(self.dimension, f"space dimension: {self.dimension}")
        header = (f"NRRD0005\n# by a test\ntype: {kind}\ndimension: {len(sizes)}\n{space}\nsizes: {' '.join(map(str, sizes))}\n"
                  f"space directions: {' '.join(vectors)}\nkinds: {' '.join(kinds)}\nendian: {'big' if big else 'little'}\n"
                  f"encoding: {'raw' if way == 'beside' else way}\nspace origin: ({','.join(map(str, self.origin))})\n")
        if way == "gzip":
            data = gzip.compress(data)
        elif way == "ascii":
            data = " ".join(map(repr, self.values)).encode() + b"\n"
        elif way == "beside":
            path = path.with_suffix(".nhdr")
            skipped = pick.randint(0, 30)
            (path.parent / "voxels.raw").write_bytes(bytes(skipped) + data)
            header += f"byte skip: {skipped}\ndata file: voxels.raw\n"
        path.write_bytes(header.encode() + b"\n" + (b"" if way == "beside" else data))
        return [path]

    def nifti(self, path):
        pick = self.random
        order = pick.choice("<<>")
        dims = [*self.size, 1, 1, 1, 1, 1][:7]
        used = self.dimension
        if self.components > 1 or used > 4:
            return None
        code, size = NIFTI_KINDS[self.kind], bits(self.kind)
        steps = [1.0, *self.spacing, 1, 1, 1, 1, 1][:8]
        if pick.random() < 0.7:
            header = struct.pack(order + "i35xB8h3f4h8f", 348, 0, used, *dims, 0, 0, 0, 0, code, size, 0, *steps)
            header += struct.pack(order + "3fh2B4f2i", 352, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0) + bytes(104)
            header += struct.pack(order + "2h18f", 0, 0, *[0] * 18) + bytes(16) + b"n+1\0" + bytes(4)
        else:
            header = struct.pack(order + "i8s2h8q3d8d", 540, b"n+2\0\r\n\x1a\n", code, size, used, *dims, 0, 0, 0, *steps)
            header += struct.pack(order + "q2d2d2d2q", 544, 0, 0, 0, 0, 0, 0, 0, 0) + bytes(104)
            header += struct.pack(order + "2i18d", 0, 0, *[0] * 18) + bytes(16) + struct.pack(order + "3i", 0, 2, 0) + bytes(20)
        content = header + self.data(order == ">")
        if pick.random() < 0.4:
            path = path.with_suffix(".nii.gz")
            content = gzip.compress(content)
        path.write_bytes(content)
        return [path]

    def vtk(self, path):
        if self.dimension > 3 or self.kind not in VTK_KINDS or self.components != 1:
            return None
        size = [*self.size, 1][:3]
        is_text = self.random.random() < 0.4
        data = " ".join(map(repr, self.values)).encode() if is_text else self.data(True)
        path.write_bytes((f"# vtk DataFile Version 3.0\nby a test\n{'ASCII' if is_text else 'BINARY'}\nDATASET STRUCTURED_POINTS\n"
                          f"DIMENSIONS {' '.join(map(str, size))}\nSPACING 1 2 0.5\nORIGIN 0 -1 3\nPOINT_DATA {math.prod(size)}\n"
                          f"SCALARS values {VTK_KINDS[self.kind]} 1\nLOOKUP_TABLE default\n").encode() + data + b"\n")
        return [path]

    def raw(self, path):
        if self.components != 1:
            return None
        big = self.random.random() < 0.5
        skipped = self.random.randint(0, 40)
        path = path.with_suffix(".raw")
        path.write_bytes(bytes(skipped) + self.data(big))
        return [path, f"--raw={self.kind},{','.join(map(str, self.size))},offset={skipped}{',big-endian' if big else ''}"]

    def own(self, path, plain):
        """By the program, in a format that it also writes; none that loses voxels."""
        if 1 in self.size[2:]:
            return None  # axes of one voxel are not there in all formats
        path = path.with_suffix(self.random.choice((".tif", ".h5", ".mrc", ".gipl", ".png", ".tif", ".nii.gz", ".nhdr")))
        more = ["--compress"] if path.suffix in (".h5", ".nhdr") and self.random.random() < 0.5 else []
        return [path] if run("identity", plain, path, *more).returncode == 0 else None


def parse(path):
    """Extents, components and kind of a plain MetaImage, its geometry, and its voxels' bytes."""
    content = Path(path).read_bytes()
    end = re.search(rb"ElementDataFile *= *LOCAL\r?\n", content).end()
    header = dict(re.findall(r"(?m)^(\w+) *= *(.*?) *$", content[:end].decode(errors="replace")))
    kind = KIND_OF_META[header["ElementType"].replace("_ARRAY", "")]
    size = list(map(int, header["DimSize"].split()))
    geometry = [list(map(float, header[name].split())) for name in ("ElementSpacing", "Offset", "TransformMatrix")]
    return size, int(header.get("ElementNumberOfChannels", "1")), kind, geometry, content[end:]


def crop(size, voxel, data, region):
    begin, extent = region
    strides = [voxel * math.prod(size[:a]) for a in range(len(size))]
    at = [sum(b * s for b, s in zip(begin, strides))]
    for n, stride in reversed(list(zip(extent[1:], strides[1:]))):
        at = [i + j * stride for i in at for j in range(n)]
    return b"".join(data[i:i + extent[0] * voxel] for i in at)


class Structured(ProgramTest):
    def test_a_run_in_parts_is_the_whole_run(self):
        ran = refused = 0
        for number in [int(ONE)] if ONE else range(CASES):
            case = Case(number)
            with self.subTest(case=str(case)):
                done = self.try_case(case)
                ran += done
                refused += not done
        print(f"seed {SEED}: {ran} cases compared, {refused} refused")
        self.assertGreater(ran, refused * 2, "many cases are refused")

    def try_case(self, case):
        for file in self.folder.iterdir():
            if file.is_file():
                file.unlink()
        pick = case.random
        plain = case.meta(self.folder / "plain.mha", plain=True)[0]
        reference = self.folder / "reference.mha"
        whole = run(case.words[0], plain, reference, *case.words[1:], "--threads=1", "--quiet")
        if whole.returncode != 0:
            self.assert_failed(whole)
            return False
        case.choose_region(parse(reference)[0])
        path = self.folder / "in.mha"
        if case.needs_geometry:
            # Lengths count: formats that lose the spacing give other results.
            write = pick.choice((case.meta, case.nrrd))
        else:
            write = pick.choice((case.meta, case.meta, case.nrrd, case.nrrd, case.nifti, case.vtk, case.raw, None, None))
        if write is not None:
            source = write(path.with_suffix({"nrrd": ".nrrd", "nifti": ".nii", "vtk": ".vtk"}.get(write.__name__, ".mha")))
        else:
            source = case.own(path, plain)
        source = source or case.meta(path)
        out = self.folder / ("out" + pick.choice((".mha", ".mha", ".mhd", ".nrrd", ".nii", ".nii.gz", ".tif", ".h5", ".mrc", ".vtk")))
        parts = run(case.words[0], source[0], out, *source[1:], *case.words[1:], *case.parts, "--quiet")
        if parts.returncode != 0 and "holds images of" in parts.stderr:
            out = self.folder / "out.mha"
            parts = run(case.words[0], source[0], out, *source[1:], *case.words[1:], *case.parts, "--quiet")
        if parts.returncode != 0 and "needs the whole image at once" in parts.stderr:
            case.parts = [word for word in case.parts if not word.startswith("--divisions")]
            parts = run(case.words[0], source[0], out, *source[1:], *case.words[1:], *case.parts, "--quiet")
        message = f"{case}: {source[0].name} to {out.name}: {parts}"
        if parts.returncode != 0:
            self.assertTrue(any(why in parts.stderr for why in NEEDS_MORE), message)
            self.assert_failed(parts)
            return False
        result = self.folder / "result.mha"
        if out.suffix == ".mha":
            result = out
        else:
            back = run("identity", out, result, "--quiet")
            self.assertEqual(back.returncode, 0, f"{message}: {back}")
        size, components, kind, geometry, expected = parse(reference)
        voxel = components * bits(kind) // 8
        region = case.region or ([0] * len(size), size)
        expected = crop(size, voxel, expected, region)
        got_size, got_components, got_kind, got_geometry, got = parse(result)
        self.assertEqual((got_components, got_kind), (components, kind), message)
        # A format may have axes of extent 1 more, or fewer.
        strip = lambda sizes: [n for n in sizes if n != 1]
        self.assertEqual(strip(got_size), strip(region[1]), message)
        self.assertTrue(got == expected, f"{message}: {sum(a != b for a, b in zip(got, expected))} bytes differ")
        if source[0].suffix in (".mha", ".mhd", ".nrrd", ".nhdr") and out.suffix in (".mha", ".mhd", ".nrrd"):
            turned = lambda row, a: geometry[2][a * len(size) + row]
            origin = [o + sum(turned(row, a) * geometry[0][a] * region[0][a] for a in range(len(size)))
                      for row, o in enumerate(geometry[1])]
            for one, other in zip(got_geometry, (geometry[0], origin, geometry[2])):
                for x, y in zip(one, other):
                    self.assertAlmostEqual(x, y, places=9, msg=message)
        return True
