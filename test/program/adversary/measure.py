# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
""""chunkwise measure" against counted voxels: every type, every cut, images larger than the memory, tables larger than it,
outputs that cannot be written."""
import csv
import io
import json
import math
import os
import re
import resource
import struct

from adversary.support import (KINDS, MIB, Image, ProgramTest, files_of, is_real, limit_files, noise, own_mounts, read, run, write,
                               write_sparse)


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


def objects_of(labels):
    """The voxels of each label, as their indices."""
    found = {}
    width, height = labels.size[0], labels.size[1]
    for i, label in enumerate(labels.values):
        if label:
            found.setdefault(label, []).append((i % width, i // width % height, i // (width * height)))
    return dict(sorted(found.items()))


class Measure(ProgramTest):
    size = (13, 11, 9)

    def labels(self, kind="uint8", seed=3, most=4):
        image = noise(self.size, kind, seed, 0 if kind.startswith("u") else -2, most)
        image.spacing = [0.5, 0.75, 2.0]
        image.origin = [10.0, -5.0, 1.5]
        return image

    def intensities(self, kind, seed=5):
        image = noise(self.size, kind, seed, 0, 100)
        image.spacing, image.origin = [0.5, 0.75, 2.0], [10.0, -5.0, 1.5]
        return image

    def assert_rows(self, rows, labels, values=None):
        objects = objects_of(labels)
        self.assertEqual([int(row["label"]) for row in rows], list(objects))
        for row, (label, voxels) in zip(rows, objects.items()):
            self.assertEqual(int(row["num_pixels"]), len(voxels))
            self.assertAlmostEqual(float(row["area"]), len(voxels) * 0.75, places=9)
            for axis in range(3):
                along = [voxel[axis] for voxel in voxels]
                self.assertEqual((int(row[f"bbox-{axis}"]), int(row[f"bbox-{axis + 3}"])), (min(along), max(along) + 1))
                self.assertEqual(int(row[f"first_voxel-{axis}"]), voxels[0][axis])
                mean = sum(along) / len(along)
                self.assertAlmostEqual(float(row[f"centroid-{axis}"]), mean, places=9)
                self.assertAlmostEqual(float(row[f"centroid_physical-{axis}"]),
                                       labels.origin[axis] + labels.spacing[axis] * mean, places=9)
            if values is not None:
                inside = [v for v, each in zip(values.values, labels.values) if each == label]
                self.assertAlmostEqual(float(row["intensity_sum"]), math.fsum(inside), delta=1e-9 * (1 + abs(math.fsum(inside))))
                self.assertEqual((float(row["intensity_min"]), float(row["intensity_max"])), (min(inside), max(inside)))
                ordered = sorted(map(float, inside))
                middle = (ordered[(len(inside) - 1) // 2] + ordered[len(inside) // 2]) / 2
                self.assertAlmostEqual(float(row["intensity_median"]), middle, delta=1e-9 * (1 + abs(middle)))

    def test_every_type_and_cut(self):
        for number, kind in enumerate(each for each in KINDS if not is_real(each)):
            labels = self.labels(kind)
            values = self.intensities(list(KINDS)[(3 * number + 1) % len(KINDS)])
            words = (write(self.folder / "labels.mha", labels), write(self.folder / "values.mha", values), "--quantiles=0.5")
            first = self.assert_runs("measure", *words, "--threads=1").stdout
            self.assert_rows(rows_of(first), labels, values)
            for more in (("--divisions=4",), ("--divisions=9", "--threads=3"), ("--threads=2",)):
                with self.subTest(kind=kind, more=more):
                    self.assertEqual(self.assert_runs("measure", *words, *more).stdout, first)

    def test_flat_images_and_single_rows(self):
        for size in ((17, 1, 1), (1, 1, 9), (5, 7, 1), (1, 8, 5), (12, 9), (1, 6), (7, 1)):
            image = noise(size, "uint8", 7, 0, 2)
            path = write(self.folder / "labels.mha", image)
            first = self.assert_runs("measure", path).stdout
            for divisions in (2, 3, 20):
                with self.subTest(size=size, divisions=divisions):
                    self.assertEqual(self.assert_runs("measure", path, f"--divisions={divisions}").stdout, first)

    def test_files_of_tables(self):
        labels = self.labels()
        path = write(self.folder / "labels.mha", labels)
        table, contacts = self.folder / "table.csv", self.folder / "contacts.csv"
        printed = self.assert_runs("measure", path).stdout
        self.assertEqual(self.assert_runs("measure", path, "--out", table, "--contacts", contacts).stdout, "")
        self.assertEqual(table.read_text(), printed)
        pairs = {}
        at = {voxel: label for label, voxels in objects_of(labels).items() for voxel in voxels}
        for voxel, label in at.items():
            for axis in range(3):
                beside = at.get(tuple(c + (a == axis) for a, c in enumerate(voxel)), label)
                if beside != label:
                    key = (min(label, beside), max(label, beside))
                    pairs[key] = pairs.get(key, 0) + 1
        self.assertEqual([(int(r["label"]), int(r["neighbor"]), int(r["faces"])) for r in rows_of(contacts.read_text())],
                         [(*key, count) for key, count in sorted(pairs.items())])
        as_json = json.loads(self.assert_runs("measure", path, "--json").stdout)
        self.assertEqual([{k: float(v) for k, v in row.items()} for row in rows_of(printed)],
                         [{k: float(v) for k, v in row.items()} for row in as_json])
        self.assert_runs("measure", path, "--out", self.folder / "table.json")
        self.assertEqual(json.loads((self.folder / "table.json").read_text()), as_json)
        chosen = rows_of(self.assert_runs("measure", path, "--columns=area,euler_number").stdout)
        self.assertEqual(list(chosen[0]), ["label", "area", "euler_number"])
        plan = json.loads(self.assert_runs("plan", "measure", path, "--divisions=3", "--json").stdout)
        self.assertEqual(plan["divisions"]["count"], 3)

    def test_an_image_without_objects_has_a_table_without_rows(self):
        path = write(self.folder / "labels.mha", Image((3, 2, 2), "uint8", [0] * 12))
        self.assertEqual(len(self.assert_runs("measure", path).stdout.splitlines()), 1)
        self.assertEqual(json.loads(self.assert_runs("measure", path, "--json").stdout), [])
        self.assert_runs("measure", path, path, "--quantiles=0.5")

    def test_extremes_of_64_bits_keep_their_digits(self):
        labels = Image((4, 1), "uint64", [2**64 - 1, 2**64 - 1, 2**63, 5])
        values = Image((4, 1), "int64", [2**62, 2**62 - 1, -2**63, 7])
        rows = rows_of(self.assert_runs("measure", write(self.folder / "labels.mha", labels),
                                        write(self.folder / "values.mha", values)).stdout)
        self.assertEqual([row["label"] for row in rows], ["5", str(2**63), str(2**64 - 1)])
        self.assertEqual([row["intensity_sum"] for row in rows], ["7", str(-2**63), str(2**63 - 1)])
        self.assertEqual(rows[1]["intensity_min"], str(-2**63))

    def test_nan(self):
        labels = Image((4, 1), "uint8", [1, 1, 2, 2])
        values = Image((4, 1), "float32", [1.0, math.nan, 2.0, math.inf])
        words = (write(self.folder / "labels.mha", labels), write(self.folder / "values.mha", values), "--quantiles=0.5")
        first, second = rows_of(self.assert_runs("measure", *words).stdout)
        for name in ("intensity_sum", "intensity_mean", "intensity_std", "intensity_min", "intensity_max", "intensity_median"):
            self.assertEqual(first[name], "nan")
        self.assertEqual((first["position_min-0"], second["intensity_sum"], second["intensity_min"]), ("1", "inf", "2"))
        self.assertEqual(json.loads(self.assert_runs("measure", *words, "--json").stdout)[0]["intensity_sum"], "nan")

    def test_a_large_image_within_little_memory(self):
        """192 MiB with two objects, within the least memory that is enough."""
        path = write_sparse(self.folder / "large.mha", (512, 512, 192), "uint32")
        size = path.stat().st_size
        with open(path, "r+b") as file:
            for i in range(1, 100):
                file.seek(size - 4 * 500_000 * i)
                file.write(struct.pack("<I", 1 + 70000 * (i % 2)))
        words = ("measure", path, path, "--quantiles=0.5", "--threads=2")
        refused = run(*words, "--memory=1M")
        self.assert_failed(refused, "--memory", 1)
        memory = int(re.search(r"needs (\d+) MiB", refused.stderr).group(1)) + 8
        self.assertLess(memory, 160)
        rows = rows_of(self.assert_runs(*words, f"--memory={memory}M").stdout)
        self.assertEqual([(row["label"], row["num_pixels"], row["intensity_median"]) for row in rows],
                         [("1", "49", "1"), ("70001", "50", "70001")])
        self.assertLessEqual(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024, memory)

    def test_more_labels_than_memory(self):
        count = 500_000
        path = self.folder / "labels.mha"
        write(path, Image((1000, 500), "uint32", [i * 7919 + 1 for i in range(count)]))
        out = self.folder / "table.csv"
        self.assert_refused("measure", path, "--memory=128M", "--out", out, names=("--memory", "labels", "128"), status=1)
        self.assertEqual(files_of(self.folder), ["labels.mha"])
        self.assert_runs("measure", path, "--memory=700M", "--out", out)
        self.assertLessEqual(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024, 700)
        with open(out, encoding="ascii") as file:
            self.assertEqual(sum(1 for _ in file), count + 1)

    def test_what_is_wrong_is_named(self):
        path = write(self.folder / "labels.mha", self.labels())
        real = write(self.folder / "real.mha", self.intensities("float32"))
        small = write(self.folder / "small.mha", noise((5, 4, 3), "uint8"))
        moved = self.intensities("uint8")
        moved.origin = [11.0, -5.0, 1.5]
        moved = write(self.folder / "moved.mha", moved)
        four = write(self.folder / "four.mha", noise((3, 3, 3, 3), "uint8"))
        (self.folder / "link.csv").symlink_to("t.csv")
        for words, names in (
            ((real,), ("LABELS", "float32", "integers")), ((path, small), ("INTENSITY", "voxels")),
            ((path, moved), ("INTENSITY", "lie")), ((path, self.folder / "none.mha"), ("INTENSITY", "none.mha")),
            ((four,), ("LABELS", "4 axes")), ((path, "--columns=colour"), ("--columns", "colour", "num_pixels")),
            ((path, "--columns=intensity_mean"), ("--columns", "intensity_mean")), ((path, "--columns="), "--columns"),
            ((path, "--columns=intensity_median"), ("--columns", "INTENSITY")), ((path, "--quantiles=0.5"), "INTENSITY"),
            ((path, real, "--quantiles=1.5"), "--quantiles"), ((path, "--memory=much"), "--memory"),
            ((path, "--out", self.folder / "none" / "t.csv"), "none"), ((path, "--out", self.folder), self.folder.name),
            ((path, "--out", path), "labels.mha"), ((path, real, "--contacts", real), "real.mha"),
            ((path, "--out", "t.csv", "--contacts", "t.csv"), "--contacts"),
            ((path, "--out", "t.csv", "--contacts", "./t.csv"), "--contacts"),
            ((path, "--out", self.folder / "t.csv", "--contacts", self.folder / "link.csv"), "--contacts"),
        ):
            with self.subTest(words=words):
                self.assert_refused("measure", *words, names=names)
        self.assertEqual(read(path).values, self.labels().values)

    def test_outputs_that_cannot_be_written(self):
        source = write(self.folder / "labels.mha", Image((60, 50), "uint16", list(range(1, 3001))))
        before = files_of(self.folder)
        for option in ("--out", "--contacts"):
            other = ("--out", self.folder / "other.csv") if option == "--contacts" else ()
            result = run("measure", source, option, self.folder / "table.csv", *other, preexec_fn=limit_files(20_000))
            with self.subTest(option=option):
                self.assert_failed(result, "table.csv" if option == "--out" else ".csv")
                self.assertEqual(files_of(self.folder), before)
        with open("/dev/full", "w") as full:
            self.assert_failed(run("measure", source, stdout=full))
        place = self.folder / "place"
        mounts = own_mounts('mkdir -p "$0" && mount -t tmpfs -o size=60k none "$0"', place)
        if mounts:
            script = 'program=$1; shift; "$program" "$@"; status=$?; ls -A "$0"; exit $status'
            result = run("measure", source, "--out", place / "table.csv", before=[*mounts, "sh", "-c", script, place])
            self.assert_failed(result, "table.csv")
            self.assertEqual(result.stdout, "", "left on the full disk")

    def test_labels_that_are_kept(self):
        labels = self.labels("int16", most=7)
        path = write(self.folder / "labels.mha", labels)
        rows = rows_of(self.assert_runs("measure", path).stdout)
        sizes = {int(row["label"]): int(row["num_pixels"]) for row in rows}
        surfaces = {int(row["label"]): float(row["surface_area"]) for row in rows}
        middle = sorted(surfaces.values())[len(surfaces) // 2]
        order = sorted(sizes, key=lambda label: (-sizes[label], label))
        for words, kept in (
            (("--where", f"surface_area >= {middle!r}"), {label for label in sizes if surfaces[label] >= middle}),
            (("--keep-largest=3",), set(order[:3])),
            ((f"--min-size={sizes[order[2]]}", f"--max-size={sizes[order[1]]}"),
             {label for label in sizes if sizes[order[2]] <= sizes[label] <= sizes[order[1]]}),
            (("--where=label > 1", "--where=label != 3", "--keep-largest=2"), {each for each in order if each > 1 and each != 3}),
            (("--remove-border",), set()), ((), set(sizes)),
        ):
            if "--keep-largest=2" in words:
                kept = set(sorted(kept, key=lambda label: (-sizes[label], label))[:2])
            for more in ((), ("--divisions=4",), ("--relabel", "--threads=2")):
                with self.subTest(words=words, more=more):
                    self.assert_runs("filter-labels", path, self.out, *words, *more)
                    names = {each: i for i, each in enumerate(sorted(kept), 1)} if more[:1] == ("--relabel",) else None
                    found = read(self.out)
                    self.assertEqual(list(found.values),
                                     [(names[v] if names else v) if v in kept else 0 for v in labels.values])
                    self.assertEqual((found.kind, found.spacing, found.origin), (labels.kind, labels.spacing, labels.origin))
        shown = json.loads(self.assert_runs("filter-labels", path, self.out, "--keep-largest=2", "--json").stdout)
        self.assertEqual((shown["labels"], shown["kept"]), (len(sizes), 2))
        self.assertEqual(json.loads(self.assert_runs("plan", "filter-labels", path, self.out, "--json").stdout)["reads"], 2)
        # An image may be written anew from itself, and not over an image that it does not hold whole.
        self.assert_runs("filter-labels", path, path, "--keep-largest=2")
        self.assertEqual(len(objects_of(read(path))), 2)

    def test_labels_that_become_others(self):
        labels = self.labels("int16", most=7)
        path = write(self.folder / "labels.mha", labels)
        table = self.folder / "table.csv"
        table.write_text("old,new\n1,5\n2, 5\n3,0\n-4,1\n")
        names = {1: 5, 2: 5, 3: 0}
        expected = [names.get(v, v) for v in labels.values]
        sizes = {v: expected.count(v) for v in set(expected) - {0}}
        largest = min(sizes, key=lambda v: (-sizes[v], v))
        for more in ((), ("--divisions=4",), ("--threads=2",)):
            self.assert_runs("filter-labels", path, self.out, f"--replace={table}", *more)
            self.assertEqual(list(read(self.out).values), expected)
            self.assert_runs("filter-labels", path, self.out, f"--replace={table}", "--keep-largest=1", *more)
            self.assertEqual(list(read(self.out).values), [v if v == largest else 0 for v in expected])
        # As spreadsheets write it: the first pair follows the mark of UTF-8.
        table.write_bytes(b"\xef\xbb\xbf1,5\r\n2,5\r\n3,0\r\n")
        self.assert_runs("filter-labels", path, self.out, f"--replace={table}")
        self.assertEqual(list(read(self.out).values), expected)
        for text, names in (("1,2\n1,3\n", "twice"), ("1,2\nx\n", "line 2"), ("1,40000\n", "40000"), ("0,1\n", "background"), ("1;5\n", "line 1"),
                            ("1,5,2\n", "line 1")):
            table.write_text(text)
            self.assert_refused("filter-labels", path, self.out, f"--replace={table}", names=("--replace", names))
        self.assert_refused("filter-labels", path, self.out, "--replace=gone.csv", names="gone.csv")

    def test_a_large_table_of_new_labels_keeps_to_the_memory(self):
        path = write(self.folder / "labels.mha", noise((9, 8, 7), "uint32", most=7))
        table = self.folder / "table.csv"
        with open(table, "w") as file:
            for begin in range(0, 2000000, 100000):
                file.write("".join(f"{label},{label // 2}\n" for label in range(begin, begin + 100000)))
        result, peak = self.measured("filter-labels", path, self.out, f"--replace={table}", "--memory=64M")
        self.assert_failed(result, ("--memory", "--replace", "table.csv"), 1)
        self.assertLessEqual(peak, 64 * MIB)
        needed = int(re.search(r"needs at least (\d+) MiB", result.stderr).group(1)) + 16
        result, peak = self.measured("filter-labels", path, self.out, f"--replace={table}", f"--memory={needed}M")
        self.assertEqual(result.returncode, 0, str(result))
        self.assertLessEqual(peak, needed * MIB)
        self.assertEqual(list(read(self.out).values), [v // 2 for v in read(path).values])
        table.write_text("," * (30 << 20))
        result, peak = self.measured("filter-labels", path, self.out, f"--replace={table}", "--memory=64M")
        self.assert_failed(result, "--replace")
        self.assertLessEqual(peak, 64 * MIB)

    def test_holes_of_labels(self):
        size = (12, 9, 8)
        values = [0] * (12 * 9 * 8)

        def put(label, low, high):
            for z in range(low[2], high[2]):
                for y in range(low[1], high[1]):
                    for x in range(low[0], high[0]):
                        values[x + 12 * (y + 9 * z)] = label

        put(3, (1, 1, 1), (6, 6, 6))
        put(-7, (6, 1, 1), (11, 6, 6))
        expected = list(values)
        put(0, (2, 2, 2), (4, 4, 4))  # a hole
        put(0, (5, 3, 3), (7, 4, 4))  # between both
        put(0, (9, 3, 3), (11, 4, 4))  # open
        expected = [b if a == 0 and 2 <= i % 12 < 4 and 2 <= i // 12 % 9 < 4 and 2 <= i // 108 < 4 else a
                    for i, (a, b) in enumerate(zip(values, expected))]
        self.assertNotEqual(values, expected)
        image = Image(size, "int16", values)
        image.spacing = [0.5, 0.75, 1.25]
        path = write(self.folder / "labels.mha", image)
        before = files_of(self.folder)
        for more in ((), ("--divisions=4",), ("--threads=2", "--memory=200M")):
            with self.subTest(more=more):
                self.assert_runs("fill-label-holes", path, self.out, *more)
                found = read(self.out)
                self.assertEqual(list(found.values), expected)
                self.assertEqual((found.kind, found.spacing), (image.kind, image.spacing))
        shown = json.loads(self.assert_runs("fill-label-holes", path, self.out, "--json").stdout)
        self.assertEqual(shown["filled"], 1)
        self.out.unlink()
        self.assertEqual(files_of(self.folder), before, "what was between the steps is left")
        self.assert_refused("fill-label-holes", write(self.folder / "real.mha", self.intensities("float32")), self.out, names="integers")

    def test_chains(self):
        image = self.intensities("uint8")
        path = write(self.folder / "in.mha", image)
        self.assert_runs("threshold", path, self.folder / "1.mha", "--method=fixed", "--lower=100")
        self.assert_runs("label", self.folder / "1.mha", self.folder / "2.mha", "--connectivity=2")
        self.assert_runs("filter-labels", self.folder / "2.mha", self.folder / "3.mha", "--where=num_pixels > 1", "--relabel")
        table = self.assert_runs("measure", self.folder / "3.mha", path, "--columns=area,intensity_mean").stdout
        before = files_of(self.folder)
        steps = ("--step", "threshold --method fixed --lower 100", "--step", "label --connectivity 2",
                 "--step", "filter-labels --where 'num_pixels > 1' --relabel")
        for more in ((), ("--memory=300M", "--threads=2", "--backend=cpu", "--quiet")):
            self.assert_runs("chain", path, self.out, *steps, *more)
            self.assertEqual(self.out.read_bytes(), (self.folder / "3.mha").read_bytes())
        self.out.unlink()
        self.assert_runs("chain", path, self.folder / "t.csv", *steps, "--step", f"measure {path} --columns area,intensity_mean")
        self.assertEqual((self.folder / "t.csv").read_text(), table)
        (self.folder / "t.csv").unlink()
        self.assertEqual(files_of(self.folder), before, "what was between the steps is left")
        for words, names in ((("--step", "labels"), "labels"), (("--step", "measure", "--step", "label"), "last"),
                             (("--step", "label --connectivity 7"), "connectivity"), (("--step", "statistics"), "statistics"),
                             (("--step", "chain --step label"), "chain"), (("--step", "mean --radius '1"), "quotation"),
                             (("--step", "mean"), "--radius"), ((), "--step")):
            with self.subTest(words=words):
                self.assert_refused("chain", path, self.out, *words, status=2, names=names)
        # A step that fails ends the chain, and nothing is left.
        result = run("chain", path, self.out, "--step", "threshold --method fixed --lower 100", "--step", "label",
                     preexec_fn=limit_files(600))
        self.assert_failed(result)
        self.assert_refused("chain", self.folder / "gone.mha", self.out, "--step", "label", status=None, names="gone.mha")
        self.assertEqual(files_of(self.folder), before)

    def test_objects_that_touch_are_separated(self):
        size = (26, 12, 11)
        voxels = [200 if min((x - a) ** 2 + (y - 5) ** 2 + (z - 5) ** 2 for a in (7, 15)) <= 25 else (x * y + z) % 50
                  for z in range(11) for y in range(12) for x in range(26)]
        image = Image(size, "uint8", voxels)
        image.spacing = [0.5, 0.5, 0.5]
        path = write(self.folder / "in.mha", image)
        before = files_of(self.folder)
        for more in (("--height=0.25",), ("--height=0.25", "--lower=100", "--memory=300M", "--quiet"),
                     ("--area=2",), ("--height=0.25", "--method=li", "--threads=2", "--table", self.folder / "t.csv")):
            with self.subTest(more=more):
                self.assert_runs("separate", path, self.out, *more)
                found = read(self.out)
                self.assertEqual((found.kind, found.spacing), ("uint32", image.spacing))
                self.assertEqual([v > 0 for v in found.values], [v == 200 for v in voxels])
                at = (5 * 12 + 5) * 26
                self.assertEqual((found.values[at + 7], found.values[at + 15], max(found.values)), (1, 2, 2))
        self.assertEqual((self.folder / "t.csv").read_text(), self.assert_runs("measure", self.out, path).stdout)
        (self.folder / "t.csv").unlink()
        for joined in ("--height=9", "--area=200"):
            self.assert_runs("separate", path, self.out, joined, "--overwrite")
            self.assertEqual(max(read(self.out).values), 1)
        self.out.unlink()
        self.assertEqual(files_of(self.folder), before, "what was between the steps is left")
        for words, names in ((("--height=-1",), "--height"), (("--height=much",), "--height"), (("--connectivity=4",), "--connectivity"),
                             (("--height=1", "--area=2"), "--area"), (("--area=-1",), "--area"), (("--method=most",), "--method"), (("--method=li", "--lower=3"), "--lower")):
            with self.subTest(words=words):
                self.assert_refused("separate", path, self.out, *words, status=2, names=names)
        self.assert_refused("separate", path, path, status=2, names="OUT")
        self.assert_refused("separate", path, self.folder / "out.nothing", status=1, names="OUT")
        # Before any step, so that no labels are there.
        self.assert_refused("separate", path, self.out, "--table", self.out, status=2, names="--table")
        for table in (path, self.folder / "none" / "t.csv"):
            self.assert_refused("separate", path, self.out, "--table", table, status=1, names="--table")
        self.assertEqual(files_of(self.folder), before)
        self.assert_refused("separate", self.folder / "gone.mha", self.out, status=None, names="gone.mha")
        # A step that fails ends the run, and nothing is left.
        self.assert_failed(run("separate", path, self.out, "--lower=100", preexec_fn=limit_files(600)))
        self.assertEqual(files_of(self.folder), before)

    def test_labels_that_cannot_be_filtered(self):
        path = write(self.folder / "labels.mha", self.labels())
        real = write(self.folder / "real.mha", self.intensities("float32"))
        for words, names in (
            ((real,), ("LABELS", "integers")), ((path, "--where=colour > 1"), ("--where", "colour")),
            ((path, "--where=area"), "--where"), ((path, "--where=area > many"), "--where"),
            ((path, "--where=area > nan"), "--where"), ((path, "--where=intensity_mean > 1"), ("--where", "intensities")),
            ((path, "--where=bbox-7 > 1"), ("--where", "bbox-7")), ((path, "--min-size=-1"), "--min-size"),
            ((path, "--keep-largest=0"), "--keep-largest"), ((path, "--memory=1M"), "--memory"),
        ):
            with self.subTest(words=words):
                self.assert_refused("filter-labels", words[0], self.out, *words[1:], names=names)
        result = run("filter-labels", path, self.out, preexec_fn=limit_files(600))
        self.assert_failed(result, "out.mha")
        self.assertEqual(files_of(self.folder), ["labels.mha", "real.mha"])

    def test_a_table_that_is_there_is_replaced_whole(self):
        path = write(self.folder / "labels.mha", self.labels())
        out = self.folder / "table.csv"
        out.write_text("old")
        self.assert_refused("measure", path, "--columns=colour", "--out", out, names="--columns")
        self.assertEqual(out.read_text(), "old")
        link = self.folder / "link.csv"
        os.symlink(out.name, link)
        self.assert_runs("measure", path, "--out", link)
        self.assertTrue(link.is_symlink())
        self.assert_rows(rows_of(out.read_text()), self.labels())
