# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""The common code of all themes: images as MetaImage files, runs of the program, and the form of every failed run."""
import array
import math
import os
import random
import re
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib
from pathlib import Path

PROGRAM = None
EXHAUSTIVE = os.environ.get("CHUNKWISE_TEST_EXHAUSTIVE", "") not in ("", "0")
# No run takes so long unless it hangs.
HANGS = 120

# Code of array and struct, and MetaImage's name.
KINDS = {
    "uint8": ("B", "MET_UCHAR"), "int8": ("b", "MET_CHAR"), "uint16": ("H", "MET_USHORT"), "int16": ("h", "MET_SHORT"),
    "uint32": ("I", "MET_UINT"), "int32": ("i", "MET_INT"), "uint64": ("Q", "MET_ULONG_LONG"),
    "int64": ("q", "MET_LONG_LONG"), "float32": ("f", "MET_FLOAT"), "float64": ("d", "MET_DOUBLE"),
}
KIND_OF_META = {meta: kind for kind, (_, meta) in KINDS.items()}
KIND_OF_META.update({"MET_ULONG": "uint64", "MET_LONG": "int64"})
FORMATS = ("mha", "mhd", "nrrd", "nhdr", "nii", "nii.gz", "hdr", "img", "img.gz", "nia", "mrc", "vtk", "tif", "tiff", "h5",
           "hdf5", "png", "jpg", "jpeg", "bmp", "gipl", "gipl.gz", "mgh", "mgz", "mgh.gz")


_sanitized = {}


def is_sanitized():
    """Whether the program has a sanitizer, which takes hundreds of megabytes itself."""
    if PROGRAM not in _sanitized:
        content = Path(PROGRAM).read_bytes()
        _sanitized[PROGRAM] = b"__asan_init" in content or b"__tsan_init" in content
    return _sanitized[PROGRAM]


def is_real(kind):
    return kind.startswith("float")


def bits(kind):
    return int(re.sub(r"\D", "", kind))


def limits(kind):
    """The least and the largest integer of a kind; of floats those up to which it has them all."""
    if is_real(kind):
        most = 2 ** (24 if kind == "float32" else 53)
        return -most, most
    return (0, 2 ** bits(kind) - 1) if kind[0] == "u" else (-(2 ** (bits(kind) - 1)), 2 ** (bits(kind) - 1) - 1)


def to_float32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


class Image:
    """Voxels x fastest, with the geometry that a file says; `direction` row by row as ITK has it."""

    def __init__(self, size, kind, values, spacing=None, origin=None, direction=None):
        self.size, self.kind = tuple(size), kind
        self.values = values if isinstance(values, array.array) else array.array(KINDS[kind][0], values)
        n = len(self.size)
        self.spacing = list(spacing or [1.0] * n)
        self.origin = list(origin or [0.0] * n)
        self.direction = direction or [[float(i == j) for j in range(n)] for i in range(n)]
        self.header = {}


def noise(size, kind, seed=1, least=None, most=None):
    generator = random.Random(seed)
    low, high = limits(kind)
    low, high = (low if least is None else least), (high if most is None else most)
    if is_real(kind):
        low, high = (-1000 if least is None else least), (1000 if most is None else most)
        return Image(size, kind, [to_float32(generator.uniform(low, high)) for _ in range(math.prod(size))])
    return Image(size, kind, [generator.randint(low, high) for _ in range(math.prod(size))])


def meta_header(image, data_file="LOCAL", more="", compressed=None):
    n = len(image.size)
    # MetaImage has the columns of ITK's matrix one after the other.
    matrix = [image.direction[row][column] for column in range(n) for row in range(n)]
    compression = "CompressedData = False\n"
    if compressed is not None:
        compression = f"CompressedData = True\nCompressedDataSize = {compressed}\n"
    return (
        f"ObjectType = Image\nNDims = {n}\n{more}BinaryData = True\nBinaryDataByteOrderMSB = False\n{compression}"
        f"TransformMatrix = {' '.join(map(repr, matrix))}\nOffset = {' '.join(map(repr, image.origin))}\n"
        f"ElementSpacing = {' '.join(map(repr, image.spacing))}\nDimSize = {' '.join(map(str, image.size))}\n"
        f"ElementType = {KINDS[image.kind][1]}\nElementDataFile = {data_file}\n"
    ).encode()


def write(path, image, data_file=None, more="", compress=False):
    """A MetaImage, with its voxels inside, or beside it in `data_file`."""
    path = Path(path)
    data = image.values.tobytes()
    data = zlib.compress(data) if compress else data
    header = meta_header(image, data_file or "LOCAL", more, len(data) if compress else None)
    if data_file:
        (path.parent / data_file).write_bytes(data)
        data = b""
    path.write_bytes(header + data)
    return path


def write_sparse(path, size, kind):
    """A large image of zeros that takes no room on the disk."""
    header = meta_header(Image(size, kind, []))
    with open(path, "wb") as file:
        file.write(header)
        file.truncate(len(header) + math.prod(size) * bits(kind) // 8)
    return Path(path)


def read(path):
    """A MetaImage, with its geometry and all fields of its header; fails if bytes are missing or too many."""
    content = Path(path).read_bytes()
    match = re.match(rb"(?s)(.*?ElementDataFile *= *([^\n]*)\n)(.*)", content)
    if not match:
        raise AssertionError(f"{path} has no header: {content[:80]!r}")
    text, name, data = match.groups()
    header = dict(re.findall(r"(?m)^(\w+) *= *(.*?) *$", text.decode()))
    if name.strip() != b"LOCAL":
        data = (Path(path).parent / name.strip().decode()).read_bytes()
    if header.get("CompressedData") == "True":
        data = zlib.decompress(data)
    kind = KIND_OF_META[header["ElementType"]]
    size = tuple(map(int, header["DimSize"].split()))
    values = array.array(KINDS[kind][0])
    values.frombytes(data)
    if header.get("BinaryDataByteOrderMSB") == "True":
        values.byteswap()
    if len(values) != math.prod(size):
        raise AssertionError(f"{path} has {len(values)} voxels of {size}")
    n = len(size)
    matrix = list(map(float, header.get("TransformMatrix", "").split())) or None
    image = Image(
        size, kind, values, list(map(float, header["ElementSpacing"].split())),
        list(map(float, header.get("Offset", " ".join(["0"] * n)).split())),
        matrix and [[matrix[column * n + row] for column in range(n)] for row in range(n)],
    )
    image.header = header
    return image


class Result:
    def __init__(self, arguments, returncode, stdout, stderr):
        self.arguments, self.returncode, self.stdout, self.stderr = arguments, returncode, stdout, stderr

    def __str__(self):
        return f"chunkwise {' '.join(self.arguments)}: status {self.returncode}: {self.stdout[:500]}{self.stderr[:1000]}"

    def warnings(self):
        return [line for line in self.stderr.splitlines() if "warning" in line.lower()]


def run(*arguments, before=(), timeout=HANGS, preexec_fn=None, **options):
    """Runs the program, `before` it a command that starts it."""
    arguments = [str(a) for a in arguments]
    if is_sanitized() and any(a.startswith("--memory") for a in arguments):
        raise unittest.SkipTest("a sanitizer's memory counts")
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as error:
        options = {"stdout": out, "stderr": error, "stdin": subprocess.DEVNULL, **options}
        process = subprocess.Popen([*map(str, before), PROGRAM, *arguments], preexec_fn=preexec_fn, **options)
        ended = []

        def give_up(*_):
            ended.append(True)
            process.kill()

        previous = signal.signal(signal.SIGALRM, give_up)
        signal.alarm(timeout)
        try:
            _, status = os.waitpid(process.pid, 0)
        finally:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, previous)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        error.seek(0)
        result = Result(arguments, process.returncode, out.read().decode(errors="replace"),
                        error.read().decode(errors="replace"))
        if ended:
            raise AssertionError(f"not ended after {timeout} s: {result}")
        return result


def limit_files(size):
    """Files cannot grow beyond `size` bytes: the effect of a full disk, without one."""

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return limit


def own_mounts(script, folder):
    """A command that runs another one after `script`, in which mount is allowed and seen by nobody else; $0 is
    `folder`. None where the system does not allow it."""
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script + ' && exec "$@"', str(folder)]
    try:
        allowed = subprocess.run([*command, "true"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0
    except OSError:
        allowed = False
    return command if allowed else None


MIB = 1 << 20
# Starts a program and writes its peak memory, in KiB, to a file: of a child of this process the system counts what this
# process held when it started the child.
MEASURE = """
import os, sys
child = os.fork()
if child == 0:
    os.execvp(sys.argv[2], sys.argv[2:])
_, status, usage = os.wait4(child, 0)
with open(sys.argv[1], "w") as file:
    file.write(str(usage.ru_maxrss))
sys.exit(os.waitstatus_to_exitcode(status) % 256)
"""

_help = {}


def help_of(subcommand=None):
    if subcommand not in _help:
        result = run(*([subcommand] if subcommand else []), "--help")
        if result.returncode != 0:
            raise AssertionError(str(result))
        _help[subcommand] = result.stdout
    return _help[subcommand]


def listed_subcommands():
    return [name for name in re.findall(r"(?m)^  ([a-z][a-z0-9-]*)(?: {2,}\S.*)?$", help_of())]


def listed_options(subcommand):
    return re.findall(r"(?m)^ +(?:-\w, *)?--([a-z][\w-]*)", help_of(subcommand))


def written_formats():
    """The endings with which the program can write a small image."""
    with tempfile.TemporaryDirectory() as folder:
        source = write(Path(folder) / "in.mha", noise((5, 4), "uint8"))
        return [e for e in FORMATS if run("identity", source, Path(folder) / f"o.{e}").returncode == 0]


def files_of(folder):
    return sorted(str(p.relative_to(folder)) for p in Path(folder).rglob("*"))


class ProgramTest(unittest.TestCase):
    """Each test has a separate folder."""

    maxDiff = 2000

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="chunkwise-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.out = self.folder / "out.mha"

    def measured(self, *words, before=(), **options):
        """The result of a run, and its peak memory in bytes."""
        if is_sanitized():
            self.skipTest("a sanitizer's memory counts")
        peak = self.folder / "peak"
        result = run(*words, before=(sys.executable, "-S", "-c", MEASURE, peak, *before), **options)
        return result, int(peak.read_text()) * 1024

    def assert_runs(self, *arguments, **options):
        result = run(*arguments, **options)
        self.assertEqual(result.returncode, 0, str(result))
        return result

    def assert_refused(self, *arguments, names=None, status=None, out=None, **options):
        """The run fails with one line that says why (with all of `names`), and leaves the files as they were."""
        before = files_of(self.folder)
        old = out.read_bytes() if out and out.exists() else None
        result = run(*arguments, **options)
        self.assert_failed(result, names, status)
        self.assertEqual(files_of(self.folder), before, str(result))
        if out:
            self.assertEqual(out.read_bytes() if out.exists() else None, old, str(result))
        return result

    def assert_failed(self, result, names=None, status=None):
        if status is None:
            self.assertIn(result.returncode, (1, 2), str(result))
        else:
            self.assertEqual(result.returncode, status, str(result))
        lines = result.stderr.splitlines()
        self.assertEqual(len(lines), 1, str(result))
        self.assertTrue(lines[0].startswith("chunkwise: "), str(result))
        for name in [names] if isinstance(names, str) else names or []:
            self.assertIn(name, lines[0], str(result))
