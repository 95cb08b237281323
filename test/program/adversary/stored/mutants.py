# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Damaged files of every format end with status 0, 1 or 2, soon, and within the memory.

CHUNKWISE_TEST_MUTANTS is the number of mutants of each seed (20; 500 with CHUNKWISE_TEST_EXHAUSTIVE=1). A failure names
the seed and the mutant's number, which make the same file again, and keeps the file where CHUNKWISE_TEST_KEEP names a
folder. Each file of a store of Zarr is a seed, and so are both files of the journal of a run that was ended early: the run goes
on to the same store, or refuses the journal.
"""
import gzip
import os
import random
import re
import shutil
import struct
import subprocess
import time
import unittest
from pathlib import Path

from adversary import support
from adversary.stored.resume import contents, sealed
from adversary.support import EXHAUSTIVE, ProgramTest, noise, run, write, written_formats

NUMBER = int(os.environ.get("CHUNKWISE_TEST_MUTANTS") or (500 if EXHAUSTIVE else 20))
KEEP = os.environ.get("CHUNKWISE_TEST_KEEP")
MEMORY = 64
# Formats that are read in another process, which takes so much more.
FOREIGN = {".dcm": 128, ".h5": 128}
HANGS = 5.0
NUMBERS = (b"-1", b"0", b"1", b"2", b"3000000000", b"18446744073709551615", b"9223372036854775807", b"1e308", b"nan",
           b"inf", b"-0", b"1.7e38", b"65536", b"5", b"6", b"999999999999999999999999")
INTEGERS = (0, 1, -1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 60000, 1 << 20)
# The limits of these formats, for the seeds that the program writes itself.
FLAT = ("png", "jpg", "jpeg", "bmp")
REPEATED = ("tiff", "hdf5", "jpeg", "gipl.gz", "rec")
# Layouts of stores: both versions with shards, levels and every codec.
STORES = ("0.5,chunks=4x4x4,shards=8x8x4", "0.4,chunks=8x8x4", "0.4,codec=blosc-lz4,chunks=16x16x16", "0.5,codec=gzip,shards=none,chunks=16x16x16",
          "0.4,codec=lz4,chunks=16x16x16", "0.5,codec=blosc,shards=none,chunks=16x16x16", "0.4,codec=zlib,chunks=16x16x16", "0.5,codec=none,chunks=4x4x4,shards=8x8x8")


def dicom(columns=16, rows=12, syntax=b"1.2.840.10008.1.2.1"):
    """A secondary capture of 16 bits, explicit little endian."""

    def element(group, number, kind, value):
        value += (b"\0" if kind == b"UI" else b" ") * (len(value) % 2)
        length = struct.pack("<HI", 0, len(value)) if kind in (b"OB", b"OW") else struct.pack("<H", len(value))
        return struct.pack("<HH", group, number) + kind + length + value

    def number(value):
        return struct.pack("<H", value)

    class_uid, instance = b"1.2.840.10008.5.1.4.1.1.7", b"1.2.826.0.1.3680043.8.498.1"
    meta = (element(2, 1, b"OB", b"\0\1") + element(2, 2, b"UI", class_uid) + element(2, 3, b"UI", instance)
            + element(2, 0x10, b"UI", syntax) + element(2, 0x12, b"UI", b"1.2.826.0.1.3680043.8.498"))
    voxels = noise((columns, rows), "uint16", most=4095).values.tobytes()
    body = b"".join((
        element(8, 0x16, b"UI", class_uid), element(8, 0x18, b"UI", instance), element(8, 0x60, b"CS", b"OT"),
        element(0x20, 0x0D, b"UI", instance + b".1"), element(0x20, 0x0E, b"UI", instance + b".2"),
        element(0x28, 2, b"US", number(1)), element(0x28, 4, b"CS", b"MONOCHROME2"), element(0x28, 0x10, b"US", number(rows)),
        element(0x28, 0x11, b"US", number(columns)), element(0x28, 0x30, b"DS", b"0.5\\0.25"),
        element(0x28, 0x100, b"US", number(16)), element(0x28, 0x101, b"US", number(12)),
        element(0x28, 0x102, b"US", number(11)), element(0x28, 0x103, b"US", number(0)),
        element(0x7FE0, 0x10, b"OW", voxels)))
    return b"\0" * 128 + b"DICM" + element(2, 0, b"UL", struct.pack("<I", len(meta))) + meta + body


def vtk_text(image):
    size = " ".join(map(str, image.size))
    return (f"# vtk DataFile Version 3.0\nseed\nASCII\nDATASET STRUCTURED_POINTS\nDIMENSIONS {size}\nORIGIN 0 0 0\n"
            f"SPACING 1 1 2\nPOINT_DATA {len(image.values)}\nSCALARS s short 1\nLOOKUP_TABLE default\n"
            + " ".join(map(str, image.values)) + "\n").encode()


def bmp(bits, image):
    """Rows from the bottom to the top, of 24 or 32 bits, without a palette."""
    width, height = image.size
    row = b"\0" * ((width * bits + 31) // 32 * 4)
    header = struct.pack("<IiiHHIIiiII", 40, width, height, 1, bits, 0, len(row) * height, 2835, 2835, 0, 0)
    values = image.values.tobytes()
    rows = [(values[y * width:(y + 1) * width] * (bits // 8) + row)[:len(row)] for y in range(height)]
    return b"BM" + struct.pack("<IHHI", 54 + len(row) * height, 0, 0, 54) + header + b"".join(rows)


def mutate(content, number, name):
    """The mutant of this number: the same bytes whenever it is made."""
    generator = random.Random(f"{name}/{number}")
    data = bytearray(content)
    # Headers are damaged more often than voxels.
    near = generator.choice((64, 512, len(data)))

    def place():
        return generator.randrange(max(1, min(near, len(data))))

    for _ in range(generator.choice((1, 1, 1, 2, 4))):
        if not data:
            break
        kind = generator.randrange(7)
        at = place()
        if kind == 0:
            data[at] ^= 1 << generator.randrange(8)
        elif kind == 1:
            data[at] = generator.randrange(256)
        elif kind == 2:
            size = generator.choice((2, 4, 8))
            value = generator.choice(INTEGERS) & ((1 << 8 * size) - 1)
            data[at:at + size] = value.to_bytes(size, generator.choice(("little", "big")))
        elif kind == 3:
            found = list(re.finditer(rb"[-+]?\d+(\.\d+)?", bytes(data[:4096])))
            if found:
                match = generator.choice(found)
                data[match.start():match.end()] = generator.choice(NUMBERS)
        elif kind == 4:
            del data[at:at + generator.choice((1, 2, 4, 16))]
        elif kind == 5:
            data[at:at] = data[at:at + generator.choice((1, 4, 16, 64))]
        else:
            del data[generator.randrange(len(data)):]
    return bytes(data)


class Mutants(ProgramTest):
    def seeds(self):
        """Small files by name; a pair's header is damaged, its voxels are beside it."""
        folder = self.folder / "seeds"
        folder.mkdir()
        volume = write(self.folder / "volume.mha", noise((9, 8, 7), "int16"))
        flat = write(self.folder / "flat.mha", noise((16, 12), "uint8"))
        for ending in written_formats():
            if ending not in REPEATED:
                self.assert_runs("identity", flat if ending in FLAT else volume, folder / f"seed.{ending}")
        write(folder / "deflated.mha", noise((9, 8, 7), "int16"), compress=True)
        write(folder / "series.mha", noise((4, 4, 4, 2, 3), "float64"))
        (folder / "text.vtk").write_bytes(vtk_text(noise((9, 8, 7), "int16")))
        (folder / "text.nrrd").write_bytes(
            b"NRRD0004\ntype: short\ndimension: 3\nsizes: 4 3 2\nencoding: ascii\n\n" + b"1 2 3 4 5 6 " * 4)
        nrrd = b"NRRD0004\ntype: uchar\ndimension: 3\nspace: left-posterior-superior\nsizes: 4 3 2\n"
        (folder / "deflated.nrrd").write_bytes(nrrd + b"encoding: gzip\n\n" + gzip.compress(bytes(range(24)), mtime=0))
        for ending in ("h5", "nrrd", "tif"):
            result = run("identity", volume, folder / f"small.{ending}", "--compress")
            self.assertIn(result.returncode, (0, 1, 2), str(result))
        deep = write(self.folder / "deep.mha", noise((16, 12), "uint16"))
        self.assert_runs("identity", deep, folder / "deep.png")
        for bits in (24, 32):
            (folder / f"colors{bits}.bmp").write_bytes(bmp(bits, noise((7, 5), "uint8")))
        (folder / "image.dcm").write_bytes(dicom())
        if shutil.which("gdcmconv"):
            for option, name in (("--jpegls", "jpegls"), ("--rle", "rle"), ("--j2k", "j2k")):
                subprocess.run(["gdcmconv", option, folder / "image.dcm", folder / f"{name}.dcm"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        data = (".raw", ".zraw", ".img", ".raw.gz")
        return sorted(p for p in folder.iterdir() if not p.name.endswith(data) or p.name == "seed.img")

    def measured(self, arguments):
        """The status, the messages, the seconds of work (or a fourth of the seconds that passed, as other tests may run
        at the same time) and the peak memory in MiB of a run and of the processes below it."""
        error = self.folder / "said"
        actions = [(os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0), (os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0),
                   (os.POSIX_SPAWN_OPEN, 2, str(error), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)]
        begin = time.monotonic()
        child = os.posix_spawn(support.PROGRAM, [support.PROGRAM, *map(str, arguments)], os.environ, file_actions=actions,
                               setpgroup=0)
        while True:
            ended, status, usage = os.wait4(child, os.WNOHANG)
            seconds = time.monotonic() - begin
            if ended:
                break
            if seconds > 4 * HANGS:
                os.killpg(child, 9)
                _, status, usage = os.wait4(child, 0)
                break
            time.sleep(0.0005 if seconds < 0.1 else 0.01)
        worked = max(usage.ru_utime + usage.ru_stime, seconds / 4)
        return os.waitstatus_to_exitcode(status), error.read_text(errors="replace"), worked, usage.ru_maxrss / 1024

    def complaint(self, path, name="identity", *options):
        self.out.unlink(missing_ok=True)
        memory = FOREIGN.get(Path(path).suffix, MEMORY) + (1024 if support.is_sanitized() else 0)
        status, said, seconds, peak = self.measured((name, path, self.out, *options, f"--memory={memory}M", "--threads=2"))
        if status not in (0, 1, 2):
            return f"status {status}: {said[:300]}"
        if peak > memory:
            return f"{peak:.0f} of {memory} MiB, status {status}: {said[:300]}"
        if seconds >= HANGS * (4 if support.is_sanitized() else 1):
            return f"{seconds:.1f} s"
        if status == 0 and not self.out.exists():
            return "status 0 without a result"
        if status != 0:
            lines = said.splitlines()
            if self.out.exists():
                return f"status {status} with a result"
            if len([line for line in lines if line.startswith("chunkwise: ") and "warning" not in line]) != 1:
                return f"not one line of an error: {said[:600]!r}"
            if any(ord(c) < 32 and c not in "\n" or c == "\x7f" for c in said):
                return f"control characters: {said[:600]!r}"
        return None

    def test_mutants_of_every_seed(self):
        seeds = self.seeds()
        self.assertGreaterEqual(len(seeds), 25, [p.name for p in seeds])
        for seed in seeds:
            content = seed.read_bytes()
            with self.subTest(seed=seed.name):
                self.assertIsNone(self.complaint(seed), "the seed itself")
                self.assertTrue(self.out.exists(), "the seed is refused")
            for number in range(NUMBER):
                seed.write_bytes(mutate(content, number, seed.name))
                with self.subTest(seed=seed.name, mutant=number):
                    complaint = self.complaint(seed)
                    if complaint and KEEP:
                        shutil.copy(seed, Path(KEEP) / f"{number}.{seed.name}")
                    self.assertIsNone(complaint)
            seed.write_bytes(content)

    def damage(self, seed, name, ask):
        """Calls `ask` with each mutant of a file in its place, and fails for its complaints."""
        content = seed.read_bytes()
        for number in range(NUMBER):
            damaged = mutate(content, number, name)
            seed.write_bytes(damaged)
            with self.subTest(seed=name, mutant=number):
                complaint = ask()
                if complaint and KEEP:
                    (Path(KEEP) / f"{number}.{name.replace('/', '_')}").write_bytes(damaged)
                self.assertIsNone(complaint)
        seed.write_bytes(content)

    def test_mutants_of_stores(self):
        volume = write(self.folder / "volume.mha", noise((9, 8, 7), "int16"))
        for number, layout in enumerate(STORES):
            store = self.folder / f"{number}.ome.zarr"
            self.assert_runs("identity", volume, store, "--zarr", layout)
            self.assertIsNone(self.complaint(store), "the seed itself")
            files = sorted(path for path in store.rglob("*") if path.is_file())
            metadata = [path for path in files if "zarr" in path.name or path.name == ".zattrs"]
            self.assertGreaterEqual(len(metadata), 2, files)
            chunks = [path for path in files if path not in metadata]
            # Metadata of all layouts differ by their codecs.
            for seed in (metadata if number < 2 else metadata[-1:]) + chunks[:1]:
                self.damage(seed, str(seed.relative_to(self.folder)), lambda: self.complaint(store))

    def test_mutants_of_stores_that_get_levels(self):
        volume = write(self.folder / "volume.mha", noise((9, 8, 300), "uint8"))
        for version in ("0.4", "0.5"):
            store = self.folder / "a.ome.zarr"
            self.assert_runs("identity", volume, store, "--zarr", f"{version},chunks=8x8x64")
            pristine = contents(store)
            for name in [name for name in pristine if "zarr" in name or name == ".zattrs"]:
                def ask():
                    before = contents(store)
                    status, said, seconds, peak = self.measured(("pyramid", store, f"--memory={MEMORY}M", "--threads=2"))
                    after = contents(store)
                    complaint = None
                    if status not in (0, 1, 2) or seconds >= HANGS or peak > MEMORY:
                        complaint = f"status {status}, {seconds:.1f} s, {peak:.0f} MiB: {said[:300]}"
                    elif status != 0 and after != before:
                        complaint = f"status {status}, but another store: {said[:300]}"
                    elif any(after.get(each) != before[each] for each in before if each[:2] == "0/"):
                        complaint = "the first level is another one"
                    for path in [path for path in after if path not in before]:
                        (store / path).unlink()
                    for path, content in before.items():
                        (store / path).write_bytes(content)
                    return complaint
                self.damage(store / name, f"{version}/{name}", ask)
            shutil.rmtree(store)

    def test_mutants_of_journals(self):
        """Every second mutant has the right checksum, so that its text counts."""
        volume = write(self.folder / "volume.mha", noise((40, 36, 64), "uint16"))
        out = self.folder / "out.ome.zarr"
        words = ("median", volume, out, "--radius=3", "--threads=1", "--divisions=16", "--zarr=chunks=16x16x4,shards=32x32x4", "--resume")
        self.assert_runs(*words)
        whole = contents(out)
        shutil.rmtree(out)
        unfinished = self.folder / ".out.ome.zarr.unfinished"
        note = unfinished / ".journal.note"
        process = subprocess.Popen([support.PROGRAM, *map(str, words)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None and not (note.exists() and b'"planes":0' not in note.read_bytes()):
            time.sleep(0.001)
        process.kill()
        process.wait()
        kept = self.folder / "kept"
        unfinished.rename(kept)
        self.assertIn(".journal.note", contents(kept))
        for name in (".journal", ".journal.note"):
            line = (kept / name).read_text().splitlines()[0]
            for number in range(2 * NUMBER):
                damaged = mutate((kept / name).read_bytes() if number % 2 else line.encode(), number, name)
                if number % 2 == 0:
                    damaged = sealed(damaged.decode("latin-1")).encode()
                shutil.copytree(kept, unfinished)
                (unfinished / name).write_bytes(damaged)
                with self.subTest(seed=name, mutant=number):
                    status, said, seconds, peak = self.measured((*words, f"--memory={MEMORY}M"))
                    self.assertIn(status, (0, 1), said)
                    self.assertLess(seconds, HANGS)
                    self.assertLessEqual(peak, MEMORY)
                    self.assertEqual(status == 0, out.exists(), said)
                    if status == 0:
                        self.assertEqual(contents(out), whole, damaged)
                        shutil.rmtree(out)
                    else:
                        self.assertIn("chunkwise: ", said)
                shutil.rmtree(unfinished, ignore_errors=True)


if __name__ == "__main__":
    unittest.main()
