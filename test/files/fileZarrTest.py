#!/usr/bin/env python3
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Stores of Zarr that zarr-python writes come through a copy, and it reads the stores that a copy writes. Stores that
lie or are damaged are refused.

Usage: fileZarrTest.py COPY_PROGRAM FOLDER [CASES [SEED]]. Exit status 77: skipped, zarr cannot be installed."""
import json
import pathlib
import shutil
import subprocess
import sys
import venv

PACKAGES = ["numpy", "zarr>=3.0.8", "numcodecs"]


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
arguments = [word for word in sys.argv[3:] if word != "--inside"]
if "--inside" not in sys.argv:
    try:
        import numcodecs  # noqa: F401
        import zarr

        if int(zarr.__version__.split(".")[0]) < 3:
            raise ImportError
    except ImportError:
        enter_environment(folder)

import warnings

import numcodecs
import numpy as np
import zarr
from zarr.codecs import BloscCodec, BytesCodec, Crc32cCodec, GzipCodec, ShardingCodec, TransposeCodec, ZstdCodec

try:
    import tensorstore
except ImportError:
    tensorstore = None

warnings.simplefilter("ignore")
CASES = int(arguments[0]) if arguments else 60
rng = np.random.default_rng(int(arguments[1]) if len(arguments) > 1 else 7)
TYPES = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float32", "float64"]
NAMES = {"unsigned char": "uint8", "signed char": "int8", "unsigned short": "uint16", "short": "int16",
         "unsigned int": "uint32", "int": "int32", "unsigned long long": "uint64", "long long": "int64", "float": "float32",
         "double": "float64"}
failures = []
checks = 0


def check(condition, what):
    global checks
    checks += 1
    if not condition:
        failures.append(what)
        print("FAILED:", what)
    return condition


def pick(values):
    return values[int(rng.integers(len(values)))]


def run(*words):
    return subprocess.run([program, *words], capture_output=True, text=True, timeout=120)


def copy(source, target, *options):
    if pathlib.Path(target).suffix == ".zarr":
        shutil.rmtree(target, ignore_errors=True)
    result = run(*options, "--seed", str(rng.integers(1000)), source, target)
    check(result.returncode == 0, f"{source} to {target} {options}: {result.stderr.strip()}")
    return result.returncode == 0


def read_nrrd(file):
    """Voxels with the slowest axis first, and the header."""
    data = pathlib.Path(file).read_bytes()
    end = data.index(b"\n\n") + 2
    header = dict(line.split(":", 1) for line in data[:end].decode().splitlines()
                  if ":" in line and not line.startswith("#"))
    kind = np.dtype(NAMES.get(header["type"].strip(), header["type"].strip()))
    sizes = [int(n) for n in header["sizes"].split()]
    return np.frombuffer(data[end:], kind).reshape(sizes[::-1]), header


def write_nrrd(file, voxels, spacing, origin, components):
    sizes = " ".join(str(n) for n in voxels.shape[::-1])
    n = len(spacing)
    vectors = ["(" + ",".join(repr(float(spacing[a]) if a == b else 0.0) for b in range(n)) + ")" for a in range(n)]
    kinds = ["domain"] * n
    if components:
        vectors.insert(0, "none")
        kinds.insert(0, "vector")
    kind = {"float32": "float", "float64": "double"}.get(voxels.dtype.name, voxels.dtype.name)
    text = (f"NRRD0004\ntype: {kind}\ndimension: {voxels.ndim}\nspace dimension: {n}\nsizes: {sizes}\n"
            f"space directions: {' '.join(vectors)}\nspace origin: ({','.join(repr(float(o)) for o in origin)})\n"
            f"kinds: {' '.join(kinds)}\nendian: little\nencoding: raw\n\n")
    pathlib.Path(file).write_bytes(text.encode() + voxels.tobytes())


def draw_voxels(shape, kind):
    kind = np.dtype(kind)
    smooth = rng.random() < 0.5
    if kind == bool:
        return rng.random(shape) < 0.3
    if kind.kind == "f":
        voxels = rng.normal(scale=100, size=shape).astype(kind)
        return np.round(voxels) if smooth else voxels
    info = np.iinfo(kind)
    low, high = (0, 4) if smooth else (info.min, info.max)
    return rng.integers(low, high, size=shape, dtype=kind, endpoint=True)


def draw_fill(kind):
    kind = np.dtype(kind)
    if kind == bool:
        return bool(rng.integers(2))
    if kind.kind == "f":
        return pick([0.0, 1.5, float("nan"), float("inf"), -float("inf"), -2.25])
    info = np.iinfo(kind)
    return int(pick([0, 1, info.min, info.max]))


def draw_compressors(version):
    name = pick(["blosclz", "lz4", "lz4hc", "zlib", "zstd"])
    if version == 2:
        return pick([None, numcodecs.Blosc(cname=name, clevel=int(rng.integers(10)), shuffle=int(rng.integers(3))),
                     numcodecs.Zstd(level=int(rng.integers(1, 10))), numcodecs.LZ4(), numcodecs.GZip(level=5),
                     numcodecs.Zlib(level=1)])
    return pick([None, (Crc32cCodec(),), (ZstdCodec(level=1),), (ZstdCodec(level=3, checksum=True),), (GzipCodec(level=5),),
                 (BloscCodec(cname=name, clevel=int(rng.integers(1, 10)), shuffle=pick(["noshuffle", "shuffle", "bitshuffle"])),),
                 (GzipCodec(level=1), Crc32cCodec()), (ZstdCodec(level=1), GzipCodec(level=1)),
                 (Crc32cCodec(), ZstdCodec(level=1)), (BloscCodec(cname="lz4", clevel=5), ZstdCodec(level=1), Crc32cCodec())])


def as_read(voxels):
    """Bool becomes uint8, float16 float32, and a line a plane."""
    kind = {"bool": "uint8", "float16": "float32"}.get(voxels.dtype.name, voxels.dtype.newbyteorder("="))
    voxels = voxels.astype(kind)
    return voxels[None] if voxels.ndim == 1 else voxels


def same(a, b):
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == np.ascontiguousarray(b).tobytes()


def same_level(a, b):
    """Modes do not tell 0 from -0, and means of float64 depend on the order of their sums."""
    if a.dtype.kind != "f":
        return same(a, b)
    return a.shape == b.shape and b.dtype == a.dtype and np.allclose(
        a, b, rtol=0, atol=1e-12 if a.dtype == np.float64 else 0, equal_nan=True)


def check_array(i):
    """One array by zarr-python, with what it may have."""
    store = folder / "in.zarr"
    shutil.rmtree(store, ignore_errors=True)
    version = pick([2, 3])
    kind = pick(TYPES + ["bool", "float16"])
    rank = int(rng.integers(1, 6))
    shape = tuple(int(n) for n in rng.integers(1, {1: 200, 2: 40, 3: 20, 4: 9, 5: 6}[rank], size=rank))
    chunks = tuple(int(rng.integers(1, n + 3)) for n in shape)
    fill = draw_fill(kind)
    dtype = np.dtype(kind)
    big = dtype.itemsize > 1 and rng.random() < 0.4
    options = {"fill_value": fill}
    compressors = draw_compressors(version)
    separator = pick(["/", "."])
    if version == 2:
        options.update(order=pick(["C", "F"]), compressors=compressors,
                       chunk_key_encoding={"name": "v2", "separator": separator})
        dtype = dtype.newbyteorder(">" if big else "<")
    else:
        bytes_codec = BytesCodec(endian=("big" if big else "little") if dtype.itemsize > 1 else None)
        codecs = [bytes_codec, *(compressors or ())]
        transpose = [TransposeCodec(order=tuple(int(a) for a in rng.permutation(rank)))] if rng.random() < 0.4 else []
        options["chunk_key_encoding"] = {"name": pick(["default", "v2"]), "separator": separator}
        if rng.random() < 0.5:
            inner = chunks
            order = rng.permutation(rank) if rng.random() < 0.3 else np.arange(rank)
            if list(order) != list(range(rank)):
                # zarr-python compares a shard with its chunks as if nothing were transposed before.
                inner = (min(inner),) * rank
            outer = [TransposeCodec(order=tuple(int(a) for a in order))] if list(order) != list(range(rank)) else []
            chunks = tuple(int(n * rng.integers(1, 4)) for n in inner)
            index = [BytesCodec(endian=pick(["big", "little"])), *pick([[], [Crc32cCodec()]])]
            # The shard's own axes are those after the outer transposition.
            sharding = ShardingCodec(chunk_shape=tuple(inner[int(a)] for a in order), codecs=[*transpose, *codecs],
                                     index_codecs=index, index_location=pick(["start", "end"]))
            options.update(filters=outer, serializer=sharding, compressors=None)
        else:
            options.update(filters=transpose, serializer=bytes_codec, compressors=compressors)
    what = f"array {i}: {version} {dtype} {shape} {chunks} {options}"
    array = zarr.create_array(store, shape=shape, chunks=chunks, dtype=dtype, zarr_format=version,
                              config={"write_empty_chunks": bool(rng.integers(2))}, **options)
    voxels = draw_voxels(shape, kind)
    if rng.random() < 0.4:
        # The rest has the fill value.
        begin = [int(rng.integers(n)) for n in shape]
        part = tuple(slice(b, int(rng.integers(b, n + 1))) for b, n in zip(begin, shape))
        array[part] = voxels[part].astype(dtype)
        voxels = np.asarray(array[...])
    else:
        array[...] = voxels.astype(dtype)
    if copy(store, folder / "out.nrrd"):
        read, _ = read_nrrd(folder / "out.nrrd")
        check(same(read, as_read(voxels)), f"{what}: other voxels")


UNITS = {"millimeter": 1, "micrometer": 1e-3, "nanometer": 1e-6, "meter": 1e3, "angstrom": 1e-7, None: 1}


def check_group(i):
    """A group of OME-Zarr by zarr-python."""
    store = folder / "in.ome.zarr"
    shutil.rmtree(store, ignore_errors=True)
    version = pick([2, 3])
    axes = pick(["yx", "zyx", "cyx", "czyx", "tzyx", "tyx", "tczyx", "tcyx"])
    shape = tuple(int(rng.integers(1, 5 if axis in "tc" else 12)) for axis in axes)
    kind = pick(TYPES)
    unit = pick(list(UNITS))
    scale = [1.0 if a in "tc" else float(rng.integers(1, 100)) / 8 for a in axes]
    moved = [0.0 if a == "c" else float(rng.integers(-50, 50)) for a in axes]
    described = []
    for a in axes:
        axis = {"name": a, "type": {"t": "time", "c": "channel"}.get(a, "space")}
        if a in "zyx" and unit:
            axis["unit"] = unit
        described.append(axis)
    path = pick(["0", "scale0/image"])
    transformations = [{"type": "scale", "scale": scale}, {"type": "translation", "translation": moved}]
    scales = {"axes": described, "datasets": [{"path": path, "coordinateTransformations": transformations}], "name": "a"}
    if version == 2:
        scales["version"] = "0.4"
    attributes = {"multiscales": [scales]}
    if version == 3:
        attributes = {"ome": {"version": "0.5", **attributes}}
    group = zarr.open_group(store, mode="w", zarr_format=version, attributes=attributes)
    array = group.create_array(path, shape=shape, chunks=tuple(int(rng.integers(1, n + 1)) for n in shape), dtype=kind)
    voxels = draw_voxels(shape, kind)
    array[...] = voxels
    # (t, z, y, x, c) without missing axes.
    sizes = dict(zip(axes, shape))
    full = voxels.reshape(tuple(sizes.get(a, 1) for a in "tczyx"))
    expected = np.moveaxis(full, 1, -1)
    if "t" not in axes:
        expected = expected[0]
        if "z" not in axes:
            expected = expected[0]
    if sizes.get("c", 1) == 1:
        expected = expected[..., 0]
    what = f"group {i}: {version} {axes} {shape} {kind}"
    for source in (store, store / path):
        if copy(source, folder / "out.nrrd"):
            read, header = read_nrrd(folder / "out.nrrd")
            check(same(read, expected), f"{what}: other voxels")
            n = expected.ndim - (1 if sizes.get("c", 1) > 1 else 0)
            vectors = [v for v in header["space directions"].split() if v != "none"]
            spacing = [float(v.strip("()").split(",")[a]) for a, v in enumerate(vectors)]
            origin = [float(v) for v in header["space origin"].strip().strip("()").split(",")]
            factor = UNITS[unit]
            for a, name in enumerate("xyzt"[:n]):
                if name in axes:
                    k = axes.index(name)
                    f = factor if name != "t" else 1
                    check(np.isclose(spacing[a], scale[k] * f, rtol=1e-14), f"{what}: spacing {spacing} {scale} {unit}")
                    check(np.isclose(origin[a], moved[k] * f, rtol=1e-14), f"{what}: origin {origin} {moved} {unit}")


def check_order(array, store, what):
    """Chunks of shards follow each other in the order of the index, without gaps, and the index is the last."""
    sharding = array.metadata.codecs[0]
    inner = np.array(array.shards) // np.array(array.chunks)
    for file in (store / "c").rglob("*"):
        if file.is_file():
            data = file.read_bytes()
            size = 16 * int(np.prod(inner))
            index = np.frombuffer(data[-size - 4:-4], "<u8").reshape(-1, 2)
            there = index[index[:, 0] != 2**64 - 1]
            ends = np.cumsum(there[:, 1], dtype=np.uint64)
            check(len(there) > 0 and list(there[:, 0]) == [0, *ends[:-1]] and int(ends[-1]) + size + 4 == len(data),
                  f"{what}: order of chunks in {file}: {index.tolist()} {sharding}")


def check_written(i):
    """Written stores are read by zarr-python, and by a copy again."""
    kind = pick(TYPES)
    n = int(rng.integers(2, 5))
    components = int(rng.integers(2, 4)) if rng.random() < 0.3 else 0
    shape = tuple(int(k) for k in rng.integers(1, {2: 60, 3: 24, 4: 9}[n], size=n)) + ((components,) if components else ())
    voxels = draw_voxels(shape, kind)
    if rng.random() < 0.3:
        voxels[: shape[0] // 2] = 0
    spacing = [float(k) / 16 for k in rng.integers(1, 40, size=n)]
    origin = [float(k) for k in rng.integers(-9, 9, size=n)]
    write_nrrd(folder / "source.nrrd", voxels, spacing, origin, components)
    parts = [pick(["0.5", "0.4"])]
    size = lambda: "x".join(str(int(k)) for k in rng.integers(1, 12, size=n))  # noqa: E731
    if rng.random() < 0.7:
        parts.append("chunks=" + size())
        if parts[0] == "0.5" and rng.random() < 0.6:
            chunk = [int(k) for k in parts[1][7:].split("x")]
            parts.append("shards=" + "x".join(str(int(c * rng.integers(1, 4))) for c in chunk))
    if parts[0] == "0.5" and len(parts) < 3 and rng.random() < 0.3:
        parts.append("shards=none")
    if rng.random() < 0.8:
        parts.append("codec=" + pick(["none", "zstd", "zstd:7", "blosc", "blosc-lz4:3", "blosc-zlib", "blosc-blosclz:9", "gzip:1",
                                      "zlib", "lz4", "blosc-lz4hc"]))
    what = f"written {i}: {kind} {shape} {','.join(parts)}"
    target = folder / "out.ome.zarr"
    if not copy(folder / "source.nrrd", target, "--zarr", ",".join(parts)):
        return
    group = zarr.open_group(target, mode="r")
    ome = dict(group.attrs)
    ome = ome["ome"] if parts[0] == "0.5" else ome
    scales = ome["multiscales"][0]
    names = "".join(axis["name"] for axis in scales["axes"])
    wanted = {2: "yx", 3: "zyx", 4: "tzyx"}[n]
    wanted = wanted.replace("t", "tc") if components and n == 4 else ("c" + wanted if components else wanted)
    check(names == wanted, f"{what}: axes {names}")
    expected = np.moveaxis(voxels, -1, 1 if n == 4 else 0) if components else voxels
    array = group["0"]
    read = np.asarray(array[...])
    check(same(read, expected), f"{what}: other voxels by zarr-python")
    if tensorstore:
        driver = {"driver": "zarr3" if parts[0] == "0.5" else "zarr", "kvstore": f"file://{target / '0'}"}
        try:
            read = tensorstore.open(driver, open=True).result().read().result()
            check(same(np.asarray(read), expected), f"{what}: other voxels by tensorstore")
        except ValueError as error:
            # It knows neither numcodecs' LZ4 and zlib of version 3, nor LZ4 of version 2.
            check("lz4" in parts[-1] or "zlib" in parts[-1], f"{what}: tensorstore: {error}")
    if array.shards:
        check_order(array, target / "0", what)
    # Other boxes in another order.
    cut = folder / "cut" / "out.ome.zarr"
    cut.parent.mkdir(exist_ok=True)
    if copy(folder / "source.nrrd", cut, "--zarr", ",".join(parts)):
        check(files_of(cut) == files_of(target), f"{what}: its files depend on how it is cut")
    check(array.metadata.zarr_format == (3 if parts[0] == "0.5" else 2), f"{what}: version")
    transformations = scales["datasets"][0]["coordinateTransformations"]
    for k, name in enumerate(names):
        a = "xyzt".find(name)
        check(transformations[0]["scale"][k] == (1 if a < 0 else spacing[a]), f"{what}: scale")
        if len(transformations) > 1:
            check(transformations[1]["translation"][k] == (0 if a < 0 else origin[a]), f"{what}: translation")
    if copy(target, folder / "again.nrrd"):
        again, _ = read_nrrd(folder / "again.nrrd")
        check(same(again, voxels), f"{what}: other voxels when it is read again")


def smooth_level(voxels, axes):
    """Means with the weights 1 3 3 1 along each axis, of the voxels that exist."""
    is_real = voxels.dtype.kind == "f"
    total = voxels.astype("float64" if is_real else object)
    weights = np.ones(voxels.shape, dtype="int64")
    for axis in axes:
        n = total.shape[axis]
        if n == 1:
            continue
        bins = (n + 1) // 2

        def at(values, k):
            places = 2 * np.arange(bins) + k
            inside = (places >= 0) & (places < n)
            shape = [1] * values.ndim
            shape[axis] = bins
            return np.take(values, np.clip(places, 0, n - 1), axis) * inside.reshape(shape).astype("int64")

        total, weights = (sum(at(each, k) * w for k, w in ((-1, 1), (0, 3), (1, 3), (2, 1))) for each in (total, weights))
    if is_real:
        return (total / weights).astype(voxels.dtype)
    floor = total // weights
    twice = 2 * (total - floor * weights)
    return (floor + ((twice > weights) | ((twice == weights) & (floor % 2 == 1)))).astype(voxels.dtype)


def reduce_level(voxels, axes, reducer):
    """The next level by its definition: blocks of two along `axes`, of the voxels that exist."""
    if reducer == "gaussian":
        return smooth_level(voxels, axes)
    parts, exist = [voxels], [np.ones(voxels.shape, bool)]
    for axis in axes:
        size = voxels.shape[axis]
        if size == 1:
            continue
        halves, masks = [], []
        for part, mask in zip(parts, exist):
            for begin in (0, 1):
                half = np.take(part, range(begin, size, 2), axis)
                there = np.take(mask, range(begin, size, 2), axis)
                missing = (size + 1) // 2 - half.shape[axis]
                pad = [(0, missing if a == axis else 0) for a in range(part.ndim)]
                halves.append(np.pad(half, pad))
                masks.append(np.pad(there, pad))
        parts, exist = halves, masks
    values, there = np.stack(parts), np.stack(exist)
    count = there.sum(0)
    if reducer == "min" or reducer == "max":
        limits = np.iinfo(voxels.dtype) if voxels.dtype.kind != "f" else None
        worst = (limits.max if limits else np.inf) if reducer == "min" else (limits.min if limits else -np.inf)
        # The first one of 0 and -0.
        candidates = np.where(there, values, np.array(worst, voxels.dtype))
        return np.take_along_axis(candidates, getattr(np, "arg" + reducer)(candidates, axis=0)[None], 0)[0]
    if reducer == "mean":
        if voxels.dtype.kind == "f":
            total = np.zeros(count.shape)
            for value, mask in zip(values, there):
                total = total + np.where(mask, value.astype(np.float64), 0)
            return (total / count).astype(voxels.dtype)
        total = np.where(there, values.astype(object), 0).sum(0)
        down = total // count
        rest = 2 * (total - down * count)
        up = (rest > count) | ((rest == count) & (down % 2 == 1))
        return (down + up.astype(int)).astype(voxels.dtype)
    if reducer == "mode":
        best, most = np.zeros_like(values[0]), np.zeros(count.shape, int)
        for value, mask in zip(values, there):
            same_ = ((values == value) & there).sum(0) * mask
            better = (same_ > most) | ((same_ == most) & mask & (value < best))
            best, most = np.where(better, value, best), np.where(better, same_, most)
        return best
    if voxels.dtype.kind == "f":
        # 0 and -0 keep their order.
        ordered = np.sort(np.where(there, values, np.inf), axis=0, kind="stable")
    else:
        # Missing voxels are sorted behind the others.
        order = np.lexsort((values, ~there), axis=0)
        ordered = np.take_along_axis(values, order, 0)
    return np.take_along_axis(ordered, ((count - 1) // 2)[None], 0)[0]


def is_close(a, b, reducer):
    """Gaussian means of real numbers, which are added in another order here: a small part of the largest number."""
    if reducer != "gaussian" or a.dtype.kind != "f":
        return False
    finite = np.isfinite(b)
    most = np.abs(b[finite]).max(initial=0)
    return np.array_equal(finite, np.isfinite(a)) and np.allclose(a[finite], b[finite], rtol=0, atol=4 * np.finfo(a.dtype).eps * most)


def check_pyramid(i):
    """All levels of a pyramid are what their definition says."""
    kind = pick(TYPES)
    n = int(rng.integers(2, 5))
    components = 2 if rng.random() < 0.3 and n < 4 else 0
    shape = {2: (int(rng.integers(3, 40)), int(rng.integers(257, 1100))),
             3: (int(rng.integers(1, 12)), int(rng.integers(257, 600)), int(rng.integers(1, 20))),
             4: (2, int(rng.integers(1, 4)), int(rng.integers(1, 9)), int(rng.integers(257, 560)))}[n]
    voxels = draw_voxels(shape + ((components,) if components else ()), kind)
    spacing, origin = [0.5, 2.0, 4.0, 1.0][:n], [1.0, -2.0, 0.0, 0.0][:n]
    write_nrrd(folder / "source.nrrd", voxels, spacing, origin, components)
    reducer = pick(["mean", "mode", "min", "max", "median", "gaussian"])
    parts = [pick(["0.5", "0.4"]), f"pyramid={reducer}"]
    if rng.random() < 0.6:
        chunk = [2 * int(k) for k in rng.integers(2, 30, size=min(n, 3))]
        parts.append("chunks=" + "x".join(map(str, chunk)))
        if parts[0] == "0.5" and rng.random() < 0.5:
            parts.append("shards=" + "x".join(str(k * int(rng.integers(1, 5))) for k in chunk))
    target = folder / "out.ome.zarr"
    what = f"pyramid {i}: {kind} {voxels.shape} {','.join(parts)}"
    if not copy(folder / "source.nrrd", target, "--zarr", ",".join(parts)):
        return
    group = zarr.open_group(target, mode="r")
    ome = dict(group.attrs)
    scales = (ome["ome"] if parts[0] == "0.5" else ome)["multiscales"][0]
    names = "".join(axis["name"] for axis in scales["axes"])
    expected = np.moveaxis(voxels, -1, 0) if components else voxels
    axes = [k for k, name in enumerate(names) if name in "zyx"]
    for k, level in enumerate(scales["datasets"]):
        if k > 0:
            expected = reduce_level(expected, axes, reducer)
        read = np.asarray(group[level["path"]][...])
        if not check(same_level(read, expected) or is_close(read, expected, reducer), f"{what}: other voxels at level {k}"):
            return
        expected = read
        transformations = level["coordinateTransformations"]
        for axis in axes:
            a = "xyz".find(names[axis])
            size, factor = shape[n - 1 - a], 1
            for _ in range(k):
                factor *= 2 if size > 1 else 1
                size = (size + 1) // 2
            check(transformations[0]["scale"][axis] == spacing[a] * factor, f"{what}: scale of level {k}")
            check(transformations[1]["translation"][axis] == origin[a] + spacing[a] * (factor - 1) / 2,
                  f"{what}: translation of level {k}")
    check(len(scales["datasets"]) > 1 and max(expected.shape[a] for a in axes) <= 256, f"{what}: levels")
    cut = folder / "cut" / "out.ome.zarr"
    cut.parent.mkdir(exist_ok=True)
    if copy(folder / "source.nrrd", cut, "--zarr", ",".join(parts)):
        check(files_of(cut) == files_of(target), f"{what}: its files depend on how it is cut")


def files_of(store):
    return {path.relative_to(store): path.read_bytes() for path in sorted(store.rglob("*")) if path.is_file()}


def check_levels(i):
    """Levels of a store that zarr-python made are what their definition says; all else stays as it was."""
    store = folder / "levels" / "in.ome.zarr"
    shutil.rmtree(store.parent, ignore_errors=True)
    version = pick([2, 3])
    axes = pick(["yx", "zyx", "cyx", "czyx", "tzyx", "tyx", "tczyx", "xyz", "zxy"])
    shape = [int(rng.integers(1, 3 if axis in "tc" else 9)) for axis in axes]
    shape[axes.index(pick([a for a in axes if a not in "tc"]))] = int(rng.integers(257, 1100))
    kind = pick(TYPES)
    scale = [1.0 if a in "tc" else float(rng.integers(1, 100)) / 8 for a in axes]
    moved = [0.0 if a == "c" else float(rng.integers(-50, 50)) for a in axes]
    path, second = pick([("0", "1"), ("s0", "s1"), ("image", "1"), ("scale0/image", "1")])
    transformations = [{"type": "scale", "scale": scale}, {"type": "translation", "translation": moved}]
    transformations = transformations[: int(rng.integers(1, 3))]
    types = {"t": "time", "c": "channel"}
    scales = {"axes": [{"name": a, "type": types.get(a, "space")} for a in axes], "name": "a", "mine": {"b": 1, "a": [2]},
              "datasets": [{"path": path, "coordinateTransformations": transformations, "mine": 3}]}
    if version == 2:
        scales["version"] = "0.4"
    attributes = {"multiscales": [scales], "mine": "kept"}
    if version == 3:
        attributes = {"ome": {"version": "0.5", **attributes}}
    group = zarr.open_group(store, mode="w", zarr_format=version, attributes=attributes)
    voxels = draw_voxels(tuple(shape), kind)
    array = group.create_array(path, shape=shape, chunks=tuple(int(rng.integers(1, n + 1)) for n in shape), dtype=kind,
                               **({"order": pick(["C", "F"])} if version == 2 else {}))
    array[...] = voxels
    is_consolidated = rng.random() < 0.5
    if is_consolidated:
        zarr.consolidate_metadata(store)
    before = files_of(store)
    reducer = pick(["mean", "mode", "min", "max", "median", "gaussian"])
    parts = []
    if rng.random() < 0.6:
        parts.append("chunks=" + "x".join(str(2 * int(k)) for k in rng.integers(2, 30, size=2)))
    what = f"levels {i}: {version} {kind} {axes} {shape} {reducer} {parts} {path}"

    def add(name, *more):
        return run("--levels", name, "--zarr", ",".join(parts), "--seed", str(rng.integers(1000)), *more, store, store)

    def compare(name):
        opened = zarr.open_group(store, mode="r", use_consolidated=is_consolidated)
        ome = dict(opened.attrs)
        ome = ome["ome"] if version == 3 else ome
        found = ome["multiscales"][0]
        check(ome["mine"] == "kept" and found["mine"] == scales["mine"] and found["type"] == name, f"{what}: attributes {ome}")
        expected = voxels
        sizes = list(shape)
        factor = [1] * len(axes)
        for k, level in enumerate(found["datasets"]):
            if k > 0:
                expected = reduce_level(expected, [axes.index(a) for a in "zyx" if a in axes], name)
                factor = [f * (2 if n > 1 and a in "xyz" else 1) for f, n, a in zip(factor, sizes, axes)]
                sizes = [(n + 1) // 2 if a in "xyz" else n for n, a in zip(sizes, axes)]
            check(level["path"] == (path if k == 0 else second.replace("1", str(k))), f"{what}: path {level['path']}")
            read = np.asarray(opened[level["path"]][...])
            if not check(same_level(read, expected) or is_close(read, expected, name), f"{what}: other voxels at level {k}"):
                return
            expected = read
            of_level = level["coordinateTransformations"]
            check(of_level[0]["scale"] == [s * f for s, f in zip(scale, factor)], f"{what}: scale of level {k}")
            if k == 0:
                check(of_level == transformations, f"{what}: transformations of the first level")
            else:
                first = moved if len(transformations) == 2 else [0] * len(axes)
                check(of_level[1]["translation"] == [m + s * (f - 1) / 2 for m, s, f in zip(first, scale, factor)],
                      f"{what}: translation of level {k}")
        check(len(found["datasets"]) > 1 and max(n for n, a in zip(sizes, axes) if a in "xyz") <= 256, f"{what}: levels")
        after = files_of(store)
        changed = [str(name_) for name_ in before if before[name_] != after.get(name_)]
        known = ({"zarr.json"} if version == 3 else {".zattrs", ".zmetadata"})
        check(set(changed) <= known and ".zattrs" in changed + [".zattrs"] * (version == 3), f"{what}: {changed} changed")
        check(list(store.parent.iterdir()) == [store], f"{what}: something is left beside the store")

    result = add(reducer)
    if not check(result.returncode == 0, f"{what}: {result.stderr}"):
        return
    compare(reducer)
    made = files_of(store)
    result = add(reducer)
    check(result.returncode == 1 and "--overwrite" in result.stderr and files_of(store) == made, f"{what}: {result.stderr}")
    other = pick(["mean", "max", "gaussian"])
    result = add(other, "--overwrite")
    if check(result.returncode == 0, f"{what}: {result.stderr}"):
        compare(other)


def check_levels_refused():
    """Stores that get no levels stay as they are."""
    store = folder / "levels" / "bad.ome.zarr"
    shutil.rmtree(store.parent, ignore_errors=True)
    axes = [{"name": "y", "type": "space"}, {"name": "x", "type": "space"}]
    scale = [{"type": "scale", "scale": [1.0, 1.0]}]

    def make(version=3, shape=(4, 300), kind="uint8", datasets=None, images=1):
        scales = {"axes": axes, "datasets": datasets or [{"path": "0", "coordinateTransformations": scale}]}
        attributes = {"multiscales": [scales] * images}
        group = zarr.open_group(store, mode="w", zarr_format=version,
                                attributes={"ome": attributes} if version == 3 else attributes)
        group.create_array("0", shape=shape, dtype=kind)[...] = 1
        return group

    def refused(says, *more, name=store):
        before = files_of(store)
        result = run("--levels", "mean", *more, name, name)
        check(result.returncode == 1 and says in result.stderr and files_of(store) == before,
              f"levels are not refused with {says!r}: {result.stderr}")

    make(shape=(256, 256))
    refused("needs no levels")
    for kind in ("bool", "float16"):
        make(kind=kind)
        refused("bool or float16")
    make(datasets=[{"path": "0"}])
    refused("scale")
    make(images=2)
    refused("2 images")
    make(datasets=[{"path": path, "coordinateTransformations": scale} for path in ("0", "0")])
    refused("first one", "--overwrite")
    make(datasets=[{"path": path, "coordinateTransformations": scale} for path in ("0", "../../levels")])
    refused("leads out of", "--overwrite")
    make(version=2)
    refused("shards", "--zarr", "shards=64x64")
    refused("array", name=store / "0")
    group = make()
    for parts in ("0.4", "pyramid=max", "chunks=3x3,shards=none", "chunks=4x4,0.5"):
        refused("even" if "3x3" in parts else "new stores", "--zarr", parts)
    group.create_array("1", shape=(4, 4), dtype="uint8")
    refused('has "1"')
    check(run("--levels", "mean", "--overwrite", store, store).returncode == 0, "an array that is no level is replaced")


def check_refusals():
    """Errors name what is wrong; a chunk that is not there has the fill value."""
    store = folder / "bad.zarr"
    voxels = rng.integers(0, 1000, size=(12, 20, 30), dtype=np.uint16)

    def make(shards=(8, 16, 16), compressors=(ZstdCodec(level=1), Crc32cCodec()), version=3, **options):
        shutil.rmtree(store, ignore_errors=True)
        array = zarr.create_array(store, shape=voxels.shape, chunks=(4, 8, 16), shards=shards, dtype=voxels.dtype,
                                  compressors=compressors, zarr_format=version, fill_value=77, **options)
        array[...] = voxels
        return store / ("zarr.json" if version == 3 else ".zarray")

    def refused(what, *says):
        target = folder / "bad.nrrd"
        target.unlink(missing_ok=True)
        result = run(store, target)
        check(result.returncode == 1 and all(word in result.stderr for word in says) and not target.exists(),
              f"{what} was not refused: {result.returncode} {result.stderr.strip()}")

    def change(metadata, function):
        content = json.loads(metadata.read_text())
        function(content)
        metadata.write_text(json.dumps(content))

    # Chunks and shards.
    for shards in ((8, 16, 16), None):
        make(shards)
        chunk = store / "c/0/0/1"
        data = chunk.read_bytes()
        for cut in (0, 1, len(data) // 2, len(data) - 1):
            chunk.write_bytes(data[:cut])
            refused(f"a chunk cut to {cut} bytes", "c/0/0/1")
        chunk.write_bytes(data + b"x")
        refused("a chunk with a byte more", "c/0/0/1")
        for at in rng.integers(0, len(data), size=12):
            changed = bytearray(data)
            changed[at] ^= 1 << int(rng.integers(8))
            chunk.write_bytes(changed)
            refused(f"a chunk with another byte {at}", "c/0/0/1")
        chunk.unlink()
        if check(run(store, folder / "out.nrrd").returncode == 0, "a chunk that is not there"):
            read, _ = read_nrrd(folder / "out.nrrd")
            expected = voxels.copy()
            expected[: 8 if shards else 4, : 16 if shards else 8, 16:] = 77
            check(same(read, expected), "a chunk that is not there has the fill value")
        chunk.mkdir()
        refused("a folder in place of a chunk", "c/0/0/1")
    # Places in an index without a checksum.
    shutil.rmtree(store)
    sharding = ShardingCodec(chunk_shape=(4, 8, 16), codecs=[BytesCodec(), ZstdCodec()], index_codecs=[BytesCodec()])
    array = zarr.create_array(store, shape=voxels.shape, chunks=(8, 16, 16), dtype=voxels.dtype, serializer=sharding,
                              compressors=None, fill_value=0)
    array[...] = voxels
    chunk = store / "c/0/0/0"
    data = bytearray(chunk.read_bytes())
    for place, bytes_ in ((2**63, 16), (0, 2**64 - 1), (len(data), 1), (2**64 - 8, 16)):
        data[-64:-48] = place.to_bytes(8, "little") + bytes_.to_bytes(8, "little")
        chunk.write_bytes(data)
        refused("a place beyond the shard", "c/0/0/0", "beyond")
    # Expansion beyond what the codec can.
    make(None, (ZstdCodec(level=1),))

    def enlarge(content):
        content["shape"] = [2**20, 2**20, 2**14]
        content["chunk_grid"]["configuration"]["chunk_shape"] = [2**20, 2**10, 2**10]

    change(store / "zarr.json", enlarge)
    result = run("--seed", "1", store, folder / "bad.nrrd")
    check(result.returncode == 1 and ("expand" in result.stderr or "bytes" in result.stderr or "space" in result.stderr),
          f"chunks of a terabyte: {result.stderr}")
    # Metadata.
    metadata = make()
    text = metadata.read_text()
    for says, function in (
            ("shape", lambda m: m.update(shape=[-1, 20, 30])), ("shape", lambda m: m.update(shape="all")),
            ("counted", lambda m: m.update(shape=[2**62, 2**62, 2**62])), ("shape", lambda m: m.update(shape=[1.5, 2, 3])),
            ("no voxels", lambda m: m.update(shape=[0, 20, 30])), ("axes", lambda m: m.update(shape=[])),
            ("chunk_shape", lambda m: m["chunk_grid"]["configuration"].update(chunk_shape=[0, 16, 16])),
            ("chunk_shape", lambda m: m["chunk_grid"]["configuration"].update(chunk_shape=[8, 16])),
            ("counted", lambda m: m["chunk_grid"]["configuration"].update(chunk_shape=[2**62, 2**62, 2**62])),
            ("divide", lambda m: m["chunk_grid"]["configuration"].update(chunk_shape=[9, 16, 16])),
            ("regular", lambda m: m["chunk_grid"].update(name="rectilinear")),
            ("data_type", lambda m: m.update(data_type="complex64")), ("data_type", lambda m: m.pop("data_type")),
            ("fill_value", lambda m: m.update(fill_value=70000)), ("fill_value", lambda m: m.update(fill_value="NaN")),
            ("zarr_format", lambda m: m.update(zarr_format=4)), ("node_type", lambda m: m.update(node_type="list")),
            ("codec", lambda m: m.update(codecs=[])), ("codecs", lambda m: m.pop("codecs")),
            ("packbits", lambda m: m.update(codecs=[{"name": "packbits"}])),
            ("indices", lambda m: m["codecs"][0]["configuration"].update(index_codecs=[{"name": "zstd", "configuration": {}}])),
            ("axis twice", lambda m: m["codecs"].insert(0, {"name": "transpose", "configuration": {"order": [0, 0, 1]}})),
            ("order", lambda m: m["codecs"].insert(0, {"name": "transpose", "configuration": {"order": [0, 1, 7]}})),
            ("understood", lambda m: m.update(secret={"name": "x"})),
            ("storage", lambda m: m.update(storage_transformers=[{"name": "x"}])),
            ("separator", lambda m: m["chunk_key_encoding"].update(configuration={"separator": "../"})),
            ("key_encoding", lambda m: m["chunk_key_encoding"].update(name="hash"))):
        metadata.write_text(text)
        change(metadata, function)
        refused(f"metadata with another {says}", says)
    for content in ("", "{", "[]", "null", "1", text[:-3], '{"zarr_format": 3, "node_type": "array", "shape": ' + "[" * 100000,
                    "[" * 100000 + "]" * 100000, '{"a":' * 100000 + "1" + "}" * 100000):
        metadata.write_text(content)
        refused(f"metadata {content[:40]!r}", "zarr.json")
    metadata.write_text(text)
    change(metadata, lambda m: m.update(extra={"must_understand": False}))
    check(run(store, folder / "out.nrrd").returncode == 0, "what need not be understood")
    # Version 2.
    metadata = make(None, None, 2)
    text = metadata.read_text()
    for says, function in (("filters", lambda m: m.update(filters=[{"id": "delta"}])), ("order", lambda m: m.update(order="A")),
                           ("dtype", lambda m: m.update(dtype="<U4")), ("dtype", lambda m: m.update(dtype=[["a", "<i4"]])),
                           ("lzma", lambda m: m.update(compressor={"id": "lzma"})), ("chunks", lambda m: m.pop("chunks")),
                           ("zarr_format", lambda m: m.update(zarr_format=1)),
                           ("separator", lambda m: m.update(dimension_separator="-"))):
        metadata.write_text(text)
        change(metadata, function)
        refused(f"version 2 with another {says}", says)
    # Groups.
    group = zarr.open_group(store, mode="w")
    refused("a group without an image", "multiscales")
    group.create_array("0", shape=(4, 5), dtype="uint8")[...] = 1
    axes = [{"name": "y", "type": "space"}, {"name": "x", "type": "space"}]

    def describe(**fields):
        scales = {"axes": axes, "datasets": [{"path": "0"}], **fields}
        group.attrs["ome"] = {"version": "0.5", "multiscales": [scales]}

    describe()
    check(run(store, folder / "out.nrrd").returncode == 0, "a group with an image")
    for path in ("../bad.zarr/0", "/etc", "..", "", "0/../../bad.zarr/0"):
        describe(datasets=[{"path": path}])
        refused(f"a path {path!r}", "path")
    describe(datasets=[{"path": "7"}])
    refused("a path to nothing", "no array")
    describe(datasets=[])
    refused("no datasets", "datasets")
    describe(axes=axes + [{"name": "z", "type": "space"}])
    refused("more axes than the array has", "axes")
    describe(axes=[{"name": "x", "type": "space"}] * 2)
    refused("an axis twice", "axes")
    for scale in ([1], ["a", 1], [1, None]):
        describe(datasets=[{"path": "0", "coordinateTransformations": [{"type": "scale", "scale": scale}]}])
        refused(f"a scale {scale}", "scale")
    describe()
    # Stores that may not be replaced, and options that cannot be used.
    (folder / "folder.zarr").mkdir(exist_ok=True)
    result = run(folder / "out.nrrd", folder / "folder.zarr")
    check(result.returncode == 1 and "no store" in result.stderr, f"a folder that is no store: {result.stderr}")
    result = run(store / "0", store)
    check(result.returncode == 1 and "would replace" in result.stderr, f"a store that is an input: {result.stderr}")
    full = folder / "full.zarr"
    shutil.rmtree(full, ignore_errors=True)
    check(run(folder / "out.nrrd", full).returncode == 0, "a new store")
    check(run(folder / "out.nrrd", full).returncode == 0, "a store is replaced")
    zarr.create_array(str(full / "labels" / "cells"), shape=(4, 4), dtype="uint8")[...] = 7
    result = run(folder / "out.nrrd", full)
    check(result.returncode == 1 and "labels" in result.stderr, f"a store with labels beside its image: {result.stderr}")
    check((zarr.open_array(str(full / "labels" / "cells"), mode="r")[...] == 7).all(), "the labels are still there")
    for option in ("0.6", "chunks=0x1", "chunks=1x2x3x4x5", "codec=none:3", "codec=zstd:23", "codec=lzma", "0.4,shards=8x8x8",
                   "chunks=64x64,shards=65x64", "", ",", "chunks=", "pyramid=", "pyramid=sum"):
        result = run("--zarr", option, folder / "out.nrrd", folder / "refused.zarr")
        check(result.returncode != 0 or option == "", f"--zarr {option} was not refused")


def check_zips():
    """Stores in archives, with shards, as groups and with files that were written again; archives that lie."""
    import zipfile

    voxels = rng.integers(0, 60000, size=(20, 30, 40), dtype="uint16")
    archive = folder / "in.ome.zarr.zip"

    def write(version, shards, ome, compression=zipfile.ZIP_STORED, codec="auto"):
        archive.unlink(missing_ok=True)
        store = zarr.storage.ZipStore(archive, mode="w", compression=compression)
        options = {"chunks": (5, 16, 16), "dtype": "uint16", "shape": voxels.shape, "compressors": codec}
        if shards:
            options["shards"] = (10, 32, 32)
        if ome:
            axes = [{"name": name, "type": "space", "unit": "micrometer"} for name in "zyx"]
            scale = [{"type": "scale", "scale": [2.0, 0.5, 0.25]}]
            scales = {"axes": axes, "datasets": [{"path": "s0", "coordinateTransformations": scale}]}
            about = {"ome": {"version": "0.5", "multiscales": [scales]}} if version == 3 else {"multiscales": [{"version": "0.4", **scales}]}
            group = zarr.create_group(store, zarr_format=version, attributes=about)
            array = group.create_array("s0", **options)
        else:
            array = zarr.create_array(store, zarr_format=version, **options)
        array[...] = 0
        array[...] = voxels
        store.close()

    def matches(source, what):
        if copy(source, folder / "out.nrrd"):
            read, header = read_nrrd(folder / "out.nrrd")
            check(same(read, voxels), f"{what}: other voxels")
            return header
        return {}

    for version, shards, ome in ((2, False, False), (3, False, False), (3, True, False), (2, False, True), (3, True, True)):
        write(version, shards, ome)
        header = matches(archive, f"zip {version} {shards} {ome}")
        if ome:
            check("0.00025" in header.get("space directions", ""), f"zip {version} {shards}: geometry {header}")
            matches(archive / "s0", f"a level of zip {version} {shards}")
    write(3, False, False, zipfile.ZIP_DEFLATED)
    result = run(archive, folder / "out.nrrd")
    check(result.returncode == 1 and "compresses zarr.json" in result.stderr, f"a compressed archive: {result.stderr}")
    # Cut, and bytes of the lists changed: an error, or the right voxels; never others, a signal or much memory.
    write(3, True, True)
    good = archive.read_bytes()
    begin = good.index(b"PK\x01\x02")
    for trial in range(150):
        bad = bytearray(good)
        if trial % 5 == 0:
            bad = bad[: int(rng.integers(len(good)))]
        else:
            for _ in range(int(rng.integers(1, 4))):
                bad[int(rng.integers(begin, len(good)))] = int(rng.integers(256))
        archive.write_bytes(bad)
        result = run(archive, folder / "out.nrrd")
        check(result.returncode in (0, 1), f"damaged archive {trial}: status {result.returncode} {result.stderr}")
        check(result.returncode == 1 or trial % 5, f"archive {trial} that was cut is read")
    # Bytes of the files themselves, of chunks that nothing else would notice.
    for version, shards in ((2, False), (3, False), (3, True)):
        write(version, shards, False, codec=None)
        good = archive.read_bytes()
        begin = good.index(b"PK\x01\x02")
        found = 0
        for trial in range(25):
            bad = bytearray(good)
            bad[int(rng.integers(begin))] ^= 1 << int(rng.integers(8))
            archive.write_bytes(bad)
            result = run("--seed", str(trial), archive, folder / "out.nrrd")
            found += "checksum (CRC-32)" in result.stderr
            check(result.returncode == 1 or same(read_nrrd(folder / "out.nrrd")[0], voxels),
                  f"zip {version} {shards} {trial}: other voxels are read")
        check(found > 15, f"zip {version} {shards}: only {found} of 25 damaged archives are told by their checksums")
    archive.unlink()


def check_labels():
    """Labels that come into a store: its groups name them, and all else stays as it was."""
    store = folder / "labels" / "in.ome.zarr"
    for version in (2, 3):
        for consolidated in (False, True):
            shutil.rmtree(store.parent, ignore_errors=True)
            scales = {"axes": [{"name": a, "type": "space", "unit": "millimeter"} for a in "zyx"],
                      "datasets": [{"path": "0", "coordinateTransformations": [{"type": "scale", "scale": [4.0, 2.0, 0.5]}]}]}
            about = {"multiscales": [{**scales, "version": "0.4"}]} if version == 2 else {"ome": {"version": "0.5", "multiscales": [scales]}}
            group = zarr.open_group(store, mode="w", zarr_format=version, attributes=about)
            group.create_array("0", shape=(3, 20, 300), chunks=(2, 8, 32), dtype="uint8")[...] = 1
            if consolidated:
                zarr.consolidate_metadata(store)
            voxels = rng.integers(0, 5, size=(3, 20, 300), dtype="uint32")
            what = f"labels {version} {consolidated}"
            before = files_of(store)

            def refused(says, target, kind="uint32", components=0, *options):
                shape = (3, 20, 300) + ((components,) if components else ())
                write_nrrd(folder / "source.nrrd", np.zeros(shape, kind), [0.5, 2.0, 4.0], [0.0] * 3, components)
                result = run(*options, folder / "source.nrrd", target)
                check(result.returncode == 1 and says in result.stderr, f"{what}: {says}: {result.stderr}")
                check(files_of(store) == before, f"{what}: {says}: the store has changed")

            refused("integers of one component", store / "labels" / "a", "float32")
            refused("integers of one component", store / "labels" / "a", "uint8", 3)
            refused("is asked for", store / "labels" / "a", "uint8", 0, "--zarr", "0.5" if version == 2 else "0.4")
            refused("pyramid=mode", store / "labels" / "a", "uint8", 0, "--zarr", "pyramid=mean")
            refused("begin with .", store / "labels" / ".a")
            refused("", store / "0" / "labels" / "a")
            # Nothing is left of a run that fails after it has begun.
            bad = folder / "bad.zarr"
            zarr.create_array(bad, shape=(3, 20, 300), chunks=(3, 20, 100), dtype="uint8", zarr_format=2, overwrite=True)[...] = 1
            (bad / "0.0.2").write_bytes(b"no chunk")
            result = run(bad, store / "labels" / "a")
            check(result.returncode == 1 and files_of(store) == before, f"{what}: a run that fails: {result.stderr}")
            source = folder / "labels.nrrd"
            write_nrrd(source, voxels, [0.5, 2.0, 4.0], [0.0] * 3, 0)
            for name, reducer in (("b", None), ("a", "mode"), ("b", "max")):
                if not copy(source, store / "labels" / name, *(["--zarr", f"pyramid={reducer}"] if reducer else [])):
                    return
            opened = zarr.open_group(store, mode="r", use_consolidated=consolidated)
            attributes = dict(opened["labels"].attrs)
            check((attributes["ome"] if version == 3 else attributes)["labels"] == ["b", "a"], f"{what}: {attributes}")
            for name, levels in (("a", 2), ("b", 2)):
                own = dict(opened[f"labels/{name}"].attrs)
                own = own["ome"] if version == 3 else own
                check(own["image-label"]["source"] == {"image": "../../"}, f"{what}: {own}")
                check(own["multiscales"][0]["datasets"][0]["coordinateTransformations"][0]["scale"] == [4.0, 2.0, 0.5], f"{what}: {own}")
                check(same(np.asarray(opened[f"labels/{name}/0"][...]), voxels), f"{what}: other voxels")
                check(len(own["multiscales"][0]["datasets"]) == levels and opened[f"labels/{name}/1"].shape == (2, 10, 150), f"{what}: {own}")
            after = files_of(store)
            changed = {str(name) for name in before if before[name] != after.get(name)}
            check(changed == ({"zarr.json" if version == 3 else ".zmetadata"} if consolidated else set()), f"{what}: {changed} changed")
            check(copy(store / "labels" / "a", folder / "out.nrrd") and same(read_nrrd(folder / "out.nrrd")[0], voxels), f"{what}: read again")
            check(sorted(each.name for each in (store / "labels").iterdir() if not each.name.startswith(".z")) ==
                  ["a", "b"] + ["zarr.json"] * (version == 3), f"{what}: something is left")


for case in range(CASES):
    (check_array, check_group, check_written, check_array, check_pyramid, check_written, check_levels)[case % 7](case)
check_levels_refused()
check_zips()
check_labels()
check_refusals()
print(f"{checks} checks, {len(failures)} failed")
sys.exit(1 if failures else 0)
