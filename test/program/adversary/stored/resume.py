# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Runs that end early and go on with --resume: the store is that of a run that nobody ended, file by file."""
import array
import json
import math
import os
import random
import shutil
import signal
import subprocess
import time

from adversary import support
from adversary.support import EXHAUSTIVE, Image, ProgramTest, files_of, limit_files, own_mounts, run, write

# Longer than 256 voxels, so that there are levels.
SIZE = (40, 36, 288)
KILLS = 100 if EXHAUSTIVE else 5
# The computation takes most of the time, so that a signal can meet a run anywhere.
SLOW = ("median", "--radius=4", "--threads=1", "--divisions=72")
SHARDS = "--zarr=chunks=16x16x4,shards=32x32x4"
CASES = {
    "shards": (*SLOW, SHARDS),
    "wide": ("median", "--radius=16", *SLOW[2:], SHARDS),
    "levels": (*SLOW, SHARDS + ",pyramid=mean"),
    "chunks": (*SLOW, "--zarr=0.4,chunks=16x16x4"),
    "region": (*SLOW, SHARDS, "--region=5,6,7,30,25,270"),
    "memory": ("bilateral", "--sigma=2", "--range-sigma=9000", "--threads=2", "--memory=96M", "--divisions=72", SHARDS + ",pyramid=max"),
    "deep": (*SLOW, SHARDS.replace("32x32x4", "32x32x16") + ",pyramid=mean"),
    "channels": (*SLOW, SHARDS.replace("32x32x4", "32x32x8")),
    "sequence": ("sequence", "--step=median --radius 3", "--step=gaussian --sigma 1", "--divisions=72", "--threads=1", SHARDS),
}


def contents(store):
    return {str(path.relative_to(store)): path.read_bytes() for path in sorted(store.rglob("*")) if path.is_file()}


def sealed(line):
    """A line of a journal with its checksum, CRC-32C."""
    value = 0xFFFFFFFF
    for byte in line.encode():
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    return f"{line}\n{value ^ 0xFFFFFFFF}\n"


class Resume(ProgramTest):
    def setUp(self):
        super().setUp()
        values = array.array("H", random.Random(7).randbytes(2 * math.prod(SIZE)))
        # A part without any voxels has no chunks.
        values[: len(values) // 8] = array.array("H", bytes(2 * (len(values) // 8)))
        self.source = write(self.folder / "in.mha", Image(SIZE, "uint16", values))
        self.channels = write(self.folder / "channels.mha", Image((SIZE[0], SIZE[1] // 3, SIZE[2]), "uint16", values), more="ElementNumberOfChannels = 3\n")
        self.out = self.folder / "out.ome.zarr"
        self.unfinished = self.folder / ".out.ome.zarr.unfinished"

    def words(self, case):
        name, *options = CASES[case]
        return (name, self.channels if case == "channels" else self.source, self.out, *options)

    def whole(self, case):
        """The store of a run that nobody ends, and its seconds."""
        began = time.monotonic()
        self.assert_runs(*self.words(case))
        seconds = time.monotonic() - began
        store = contents(self.out)
        shutil.rmtree(self.out)
        return store, seconds

    def start(self, *words):
        # Tests that run in the background ignore interrupts, and so would the program.
        process = subprocess.Popen([support.PROGRAM, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        self.addCleanup(lambda: (process.kill(), process.communicate()))
        return process

    def end_early(self, case, share=0.5, number=signal.SIGKILL):
        """Ends a run when so much of it is noted."""
        process = self.start(*self.words(case), "--resume")
        journal = self.unfinished / ".journal.note"
        deadline = time.monotonic() + support.HANGS
        while not journal.exists() or json.loads(journal.read_text().splitlines()[0])["planes"] < share * SIZE[2]:
            self.assertIsNone(process.poll(), "the run ended before it was ended")
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.002)
        process.send_signal(number)
        process.communicate()
        self.assertEqual(process.returncode, -number)

    def assert_goes_on(self, case, store, least=1):
        report = json.loads(self.assert_runs(*self.words(case), "--resume", "--json").stdout)
        self.assertGreaterEqual(report["resumedVoxels"], least)
        self.assertEqual(contents(self.out), store)
        # A process that is killed while it removes its folder may leave an empty one.
        left = [path for path in self.folder.iterdir() if not path.name.startswith(".") or any(path.iterdir())]
        self.assertEqual(sorted(path.name for path in left), ["channels.mha", "in.mha", "out.ome.zarr"])

    def test_random_moments(self):
        generator = random.Random(5)
        for case in CASES if EXHAUSTIVE else ("levels", "region", "channels", "deep"):
            store, seconds = self.whole(case)
            kills, resumed = 0, 0
            while kills < KILLS:
                process = self.start(*self.words(case), "--resume", "--json")
                time.sleep(generator.uniform(0, 0.7 * seconds))
                process.kill()
                out, error = process.communicate()
                kills += 1
                if process.returncode == 0:
                    resumed += json.loads(out)["resumedVoxels"] > 0
                else:
                    self.assertEqual(process.returncode, -signal.SIGKILL, error)
                if self.out.exists():
                    # It may also have been killed after the store had its name.
                    self.assertEqual(contents(self.out), store, case)
                    shutil.rmtree(self.out)
            with self.subTest(case=case):
                self.end_early(case)
                self.assert_goes_on(case, store)
                self.assertGreater(resumed, 0 if EXHAUSTIVE else -1)
            shutil.rmtree(self.out)

    def test_signals_and_failures_keep_what_is_written(self):
        store, _ = self.whole("levels")
        self.assertIn("1/zarr.json", store)
        for number in (signal.SIGINT, signal.SIGTERM):
            self.end_early("levels", 0.3, number)
            # A whole store is replaced as a whole.
            self.out.mkdir()
            (self.out / ".zgroup").write_text('{"zarr_format": 2}')
            self.assert_goes_on("levels", store, 0.3 * math.prod(SIZE))
            shutil.rmtree(self.out)
        # A shard that is larger than files may be, or a failure before any plane is written.
        self.assert_failed(run(*self.words("shards"), "--resume", preexec_fn=limit_files(2000)))
        self.assertEqual(files_of(self.folder), ["channels.mha", "in.mha"])

    def test_other_runs_are_refused(self):
        self.end_early("shards")
        before = files_of(self.folder)
        name, *options = CASES["shards"]
        other = write(self.folder / "other.mha", support.read(self.source))
        cases = [
            ((name, self.source, self.out, *options[1:], "--radius=3"), "the filter or its parameters"),
            (("mean", self.source, self.out, *options), "the filter or its parameters"),
            ((name, other, self.out, *options), "IN"),
            ((name, self.source, self.out, *options, "--region=0,0,0,9,9,9"), "the region"),
            ((name, self.source, self.out, *options, "--output-type=float32"), "the pixel types"),
            ((name, self.source, self.out, *options[:-1], "--zarr=chunks=16x16x4"), "the layout of the store"),
        ]
        for words, named in cases:
            with self.subTest(named=named, words=words[0]):
                result = run(*words, "--resume")
                self.assert_failed(result, [named, "remove", self.unfinished.name])
                self.assertEqual(files_of(self.folder), sorted([*before, "other.mha"]))
        os.utime(self.source)
        self.assert_failed(run(*self.words("shards"), "--resume"), ["other values of: IN;"])
        # Without --resume nothing is taken, and nothing lost.
        self.assert_runs(*self.words("shards"))
        self.assertTrue(self.unfinished.exists())
        shutil.rmtree(self.unfinished)
        self.assert_runs(*self.words("shards"), "--resume")

    def test_damaged_journals(self):
        store, _ = self.whole("shards")
        self.end_early("shards")
        journal = self.unfinished / ".journal"
        text = journal.read_bytes()
        number = text.index(b'"planes":') + 9
        for name, damaged in (("empty", b""), ("cut", text[:-20]), ("longer", text + b"1"), ("another number", text[:number] + b"9" + text[number + 1:])):
            with self.subTest(name):
                journal.write_bytes(damaged)
                self.assert_failed(run(*self.words("shards"), "--resume"), ["damaged", "remove"])
        journal.write_bytes(text)
        # A note that was being written is none.
        (self.unfinished / ".journal.part").write_bytes(text[:30])
        kept = self.unfinished / "out.ome.zarr"
        kept.rename(self.folder / "away")
        self.assert_failed(run(*self.words("shards"), "--resume"), ["journal"])
        (self.folder / "away").rename(kept)
        self.assert_goes_on("shards", store)

    def test_journals_that_tell_what_cannot_be(self):
        """They are whole, but no run has written them."""
        store, _ = self.whole("shards")
        self.end_early("shards", 0.3)
        files = {name: self.unfinished / name for name in (".journal", ".journal.note")}
        texts = {name: file.read_text() for name, file in files.items()}
        journal, note = (json.loads(text.splitlines()[0]) for text in texts.values())
        self.assertEqual(sealed(json.dumps(note, separators=(",", ":"))), texts[".journal.note"])
        cases = [(".journal", {**journal, "planes": planes}) for planes in (-4, 3, SIZE[2] + 4, 2**63, "12", None, [1])]
        cases += [(".journal.note", {**note, "planes": planes}) for planes in (SIZE[2] + 4, 10**12, "12", SIZE[2] - 1, {})]
        cases += [(name, {key: value for key, value in entries.items() if key != missing})
                  for name, entries in ((".journal", {**journal, "planes": 4}), (".journal.note", note)) for missing in entries]
        cases += [(".journal", entries) for entries in ([], 3, {**journal, "planes": 4, "run": 3}, {**journal, "planes": 4, "run": {"IN": 3}})]
        for name, entries in cases:
            with self.subTest(name=name, entries=entries):
                files[name].write_text(sealed(json.dumps(entries)))
                if name == ".journal":
                    files[".journal.note"].unlink()
                result = run(*self.words("shards"), "--resume")
                self.assert_failed(result, [self.out.name, "is damaged", "remove"])
                for each, text in texts.items():
                    files[each].write_text(text)
        self.assert_goes_on("shards", store)

    def test_files_that_were_removed_or_cut(self):
        for case in ("shards", "levels", "chunks"):
            store, _ = self.whole(case)
            self.end_early(case)
            level = self.unfinished / self.out.name / "0"
            # In the last layer that counts, and in one before it.
            planes = json.loads((self.unfinished / ".journal.note").read_text().splitlines()[0])["planes"]
            for layer in (planes // 4 - 1, planes // 8):
                file = next((level if case == "chunks" else level / "c").glob(f"{layer}/0/0"))
                content = file.read_bytes()
                for name, change in (("removed", file.unlink), ("cut", lambda: file.write_bytes(content[:-1]))):
                    with self.subTest(case=case, change=name):
                        change()
                        self.assert_failed(run(*self.words(case), "--resume"), ["files", "bytes", "remove", self.unfinished.name])
                        self.assertFalse(self.out.exists())
                        file.write_bytes(content)
            # Levels below, which are made anew, may be missing.
            shutil.rmtree(self.unfinished / self.out.name / "1", ignore_errors=True)
            self.assert_goes_on(case, store)
            shutil.rmtree(self.out)

    def test_a_note_of_another_system_does_not_come_back(self):
        """Two systems share the folder: what one has noted is void once the other has begun anew."""
        store, _ = self.whole("wide")
        self.end_early("wide", 0.2)
        note = self.unfinished / ".journal.note"
        text = note.read_text()
        of_another = sealed(json.dumps({**json.loads(text.splitlines()[0]), "boot": "another one"}))
        note.write_text(of_another)
        first = self.unfinished / self.out.name / "of the first run"
        first.touch()
        process = self.start(*self.words("wide"), "--resume")
        while first.exists() and process.poll() is None:
            pass
        self.assertFalse(first.exists(), "the program does not begin anew")
        process.kill()
        process.communicate()
        if note.read_text() == of_another:
            note.write_text(text)
        self.assert_goes_on("wide", store, 0)

    def test_links_in_place_of_the_folder_are_not_followed(self):
        other = self.folder / "other"
        other.mkdir()
        (other / "file").touch()
        self.unfinished.symlink_to(other)
        self.assert_refused(*self.words("shards"), "--resume", names=[self.unfinished.name, "no folder"])
        self.unfinished.unlink()
        self.unfinished.touch()
        self.assert_refused(*self.words("shards"), "--resume", names=[self.unfinished.name, "no folder"])

    def test_two_runs_at_once(self):
        store, _ = self.whole("shards")
        first = self.start(*self.words("shards"), "--resume")
        while not (self.unfinished / ".journal.note").exists():
            time.sleep(0.002)
        first.send_signal(signal.SIGSTOP)
        self.assert_failed(run(*self.words("shards"), "--resume"), ["another run", self.unfinished.name])
        first.send_signal(signal.SIGCONT)
        self.assertEqual(first.wait(support.HANGS), 0)
        self.assertEqual(contents(self.out), store)
        self.assertFalse(self.unfinished.exists())

    def test_a_full_disk_that_gets_more_room(self):
        place = self.folder / "small"
        place.mkdir()
        before = own_mounts('mount -t tmpfs -o size=400k none "$0"', place)
        if not before:
            self.skipTest("mounting is not allowed here")
        store, _ = self.whole("levels")
        name, *options = CASES["levels"]
        script = ('program=$1; shift; "$program" "$@"; first=$?; mount -o remount,size=20m "$0"; "$program" "$@" || exit 9; '
                  'cp -r "$0"/out.ome.zarr "$0"/../copy; ls -A "$0"; exit $first')
        result = run(name, self.source, place / "out.ome.zarr", *options, "--resume", "--json",
                     before=[*before, "sh", "-c", script, place])
        self.assertEqual(result.returncode, 1, result)
        report, _, names = result.stdout.rpartition("}\n")
        self.assertGreater(json.loads(report + "}")["resumedVoxels"], 0)
        self.assertEqual(names.split(), ["out.ome.zarr"])
        self.assertEqual(contents(self.folder / "copy"), store)

    def test_what_cannot_be_resumed(self):
        self.assert_refused("mean", self.source, self.folder / "out.mha", "--radius=1", "--resume", names=["OUT", "stores of Zarr"])
        for words in (("label",), ("sat", "--output-type=uint64"), ("fill-holes",), ("h-maxima", "--height=9")):
            with self.subTest(words=words):
                result = self.assert_runs(words[0], self.source, self.out, *words[1:], "--resume")
                self.assertEqual(len(result.warnings()), 1, result)
                self.assertIn("--resume", result.warnings()[0])
                shutil.rmtree(self.out)
