# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""label: connected components by the definition, and the same however little memory there is."""
import collections
import itertools

from adversary.support import Image, ProgramTest, noise, read, run, write


def labels_of(image, connectivity, alike=lambda a, b: True):
    """By breadth-first search in raster order."""
    size = image.size + (1,) * (3 - len(image.size))
    steps = [step for step in itertools.product((-1, 0, 1), repeat=3) if 0 < sum(map(abs, step)) <= connectivity]
    labels = [0] * len(image.values)
    count = 0
    for seed, value in enumerate(image.values):
        if value == 0 or labels[seed]:
            continue
        count += 1
        labels[seed] = count
        queue = collections.deque([seed])
        while queue:
            at = queue.popleft()
            x, y, z = at % size[0], at // size[0] % size[1], at // size[0] // size[1]
            for dx, dy, dz in steps:
                if 0 <= x + dx < size[0] and 0 <= y + dy < size[1] and 0 <= z + dz < size[2]:
                    other = at + dx + size[0] * (dy + size[1] * dz)
                    if image.values[other] != 0 and not labels[other] and alike(image.values[at], image.values[other]):
                        labels[other] = count
                        queue.append(other)
    return labels


class Labels(ProgramTest):
    def test_are_those_of_the_definition(self):
        for size in ((23, 17, 11), (70, 9), (1, 1), (5, 1, 130)):
            image = noise(size, "uint8", seed=len(size), most=2)
            path = write(self.folder / "in.mha", image)
            for connectivity in (1, 2, 3):
                with self.subTest(size=size, connectivity=connectivity):
                    self.assert_runs("label", path, self.out, f"--connectivity={connectivity}")
                    result = read(self.out)
                    self.assertEqual(result.kind, "uint32")
                    self.assertEqual(list(result.values), labels_of(image, connectivity))
                    self.assert_runs("label", path, self.out, f"--connectivity={connectivity}", "--rule=equal", "--output-type=int64")
                    self.assertEqual(list(read(self.out).values), labels_of(image, connectivity, lambda a, b: a == b))

    def test_are_the_same_in_little_memory(self):
        """An image of 10 MB, whose labels have 38 MB."""
        image = noise((120, 200, 400), "uint8", most=1)
        path = write(self.folder / "in.mha", image)
        for more in ((), ("--connectivity=3", "--rule=within", "--tolerance=0", "--label-background", "--periodic=2")):
            with self.subTest(more=more):
                whole = self.folder / "whole.nrrd"
                self.assert_runs("label", path, whole, *more)
                expected = whole.read_bytes()
                for memory in ("60M", "72M"):
                    self.assert_runs("label", path, whole, f"--memory={memory}", *more)
                    self.assertEqual(whole.read_bytes(), expected)

    def test_too_many_leave_no_file(self):
        values = noise((64, 64, 64), "uint8", most=1).values
        path = write(self.folder / "in.mha", Image((64, 64, 64), "uint8", values))
        result = run("label", path, self.out, "--output-type=uint8")
        self.assertEqual(result.returncode, 1, str(result))
        self.assertIn("components", result.stderr)
        self.assertFalse(self.out.exists())
