# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""--region: exactly that part of the whole result, of every subcommand, and where it lies."""
import math

from adversary.subcommands import REQUIRED, Inputs, all_subcommands
from adversary.support import MIB, Image, ProgramTest, noise, read, write, write_sparse

SIZE = (14, 12, 11)
REGIONS = ("3,2,4,5,6,3", "0,0,0,14,12,11", "13,11,10,1,1,1", "0,5,0,14,1,11", "0,0,7,2,2,2")
# The bound, in parts of the largest value: transforms have a bound instead of bits.
BOUND = 2e-6
THROUGH_TRANSFORMS = ("convolve-image", "convolve-varying")


def crop(image, numbers):
    begin, size = numbers[: len(numbers) // 2], numbers[len(numbers) // 2:]
    strides = [math.prod(image.size[:a]) for a in range(len(image.size))]
    at = [sum(b * s for b, s in zip(begin, strides))]
    for extent, stride in reversed(list(zip(size, strides))):
        at = [i + j * stride for i in at for j in range(extent)]
    # From the slowest axis to x.
    return [image.values[i] for i in at]


class Regions(ProgramTest):
    def assert_part(self, whole, numbers, tolerance=0.0):
        part = read(self.out)
        self.assertEqual(part.size, tuple(numbers[len(numbers) // 2:]))
        self.assertEqual(part.kind, whole.kind)
        self.assertEqual(part.spacing, whole.spacing)
        self.assertEqual(part.direction, whole.direction)
        for a, origin in enumerate(part.origin):
            steps = sum(whole.direction[a][b] * whole.spacing[b] * n for b, n in enumerate(numbers[: len(part.size)]))
            self.assertAlmostEqual(origin, whole.origin[a] + steps, places=9)
        expected = crop(whole, numbers)
        if tolerance:
            for a, b in zip(part.values, expected):
                self.assertLessEqual(abs(a - b), tolerance * max(map(abs, whole.values)))
        else:
            self.assertEqual(list(part.values), expected)

    def test_every_subcommand(self):
        inputs = Inputs(self.folder, SIZE)
        trials = [(name, REQUIRED[name], BOUND if name in THROUGH_TRANSFORMS else 0.0) for name in all_subcommands(self)]
        trials += [("gaussian", {"sigma": "0.6", "fft": None, "output-type": "float32"}, BOUND),
                   ("convolve-image", {"kernel": "@kernel", "method": "direct"}, 0.0),
                   ("convolve-image", {"kernel": "@kernel", "method": "direct", "valid": None}, 0.0),
                   ("wiener", {"radius": "1", "noise": "auto"}, 0.0), ("mean", {"radius": "2", "boundary": "periodic"}, 0.0),
                   ("sat", {"summed-axes": "2"}, 0.0),
                   ("sequence", {"step": ["gaussian --sigma 0.6", "range --radius 1"]}, 0.0)]
        for name, options, tolerance in trials:
            words = [name, inputs.path, self.out, *inputs.arguments(options)]
            self.assert_runs(*words)
            whole = read(self.out)
            for text in REGIONS:
                for more in ((), ("--divisions=3",)):
                    with self.subTest(subcommand=name, options=options, region=text, more=more):
                        numbers = list(map(int, text.split(",")))
                        if any(extent < size for extent, size in zip(whole.size, SIZE)):
                            numbers = [min(b, n - 1) for b, n in zip(numbers, whole.size)] + [
                                min(s, n - min(b, n - 1)) for b, s, n in zip(numbers, numbers[3:], whole.size)]
                        result = self.assert_runs_or_needs_all(
                            *words, "--region=" + ",".join(map(str, numbers)), *more, allowed=bool(more))
                        if result:
                            self.assert_part(whole, numbers, tolerance)

    def assert_runs_or_needs_all(self, *words, allowed):
        """Divisions are refused where the whole image is needed at once."""
        if not allowed:
            return self.assert_runs(*words)
        from adversary.support import run
        result = run(*words)
        if result.returncode and "needs the whole image at once" in result.stderr:
            return None
        self.assertEqual(result.returncode, 0, str(result))
        return result

    def test_two_and_four_dimensions_and_directions(self):
        for size, text in (((9, 8), "2,3,4,5"), ((6, 5, 4, 3), "1,2,0,1,3,2,4,2"), ((7, 1, 1), "3,0,0,2,1,1")):
            image = noise(size, "int16", 5)
            n = len(size)
            image.spacing = [0.5 + a for a in range(n)]
            image.origin = [10.0 * a - 3 for a in range(n)]
            # Axes 0 and 1 turned by a right angle.
            image.direction = [[float(i == j) for j in range(n)] for i in range(n)]
            image.direction[0][:2], image.direction[1][:2] = [0.0, -1.0], [1.0, 0.0]
            path = write(self.folder / "in.mha", image)
            for words in (("mean", path, self.out, "--radius=1"), ("fill-holes", path, self.out)):
                with self.subTest(size=size, subcommand=words[0]):
                    self.assert_runs(*words)
                    whole = read(self.out)
                    self.assert_runs(*words, "--region", text)
                    self.assert_part(whole, list(map(int, text.split(","))))

    def test_an_estimate_is_that_of_the_whole_image(self):
        """The region's own estimate would differ."""
        values = [0] * 500 + [(37 * i) % 251 for i in range(500)]
        path = write(self.folder / "in.mha", Image((10, 10, 10), "float32", [float(v) for v in values]))
        for words in (("wiener", "--radius=1", "--noise=auto"), ("entropy", "--radius=1", "--range=auto")):
            words = (words[0], path, self.out, *words[1:])
            self.assert_runs(*words)
            whole = read(self.out)
            for text in ("0,0,4,10,10,3", "2,3,0,4,4,2"):
                for more in ((), ("--divisions=2",), ("--memory=1G",)):
                    with self.subTest(subcommand=words[0], region=text, more=more):
                        self.assert_runs(*words, "--region", text, *more)
                        self.assert_part(whole, list(map(int, text.split(","))))

    def test_what_is_left_out_is_not_counted(self):
        """Voxels that are cut to the type are those of the region alone."""
        path = write(self.folder / "in.mha", Image((4, 3), "int16", [300] * 6 + [5] * 6))
        self.assertEqual(len(self.assert_runs("identity", path, self.out, "--output-type=uint8").warnings()), 1)
        result = self.assert_runs("identity", path, self.out, "--output-type=uint8", "--region=2,2,2,1")
        self.assertEqual(result.stderr, "")
        self.assertEqual(list(read(self.out).values), [5, 5])

    def test_a_part_of_a_large_image_takes_little_memory(self):
        source = write_sparse(self.folder / "large.mha", (2000, 2000, 500), "uint16")
        self.assert_runs("median", source, self.out, "--radius=2", "--region=900,900,200,64,64,16", "--memory=160M")
        self.assertEqual(read(self.out).size, (64, 64, 16))

    def test_a_part_of_a_long_axis_takes_little_memory(self):
        """No filter has a table with a number for each voxel of an axis: such a table takes some gigabytes here."""
        length = 1 << 31
        for axis in range(3):
            size = [length if a == axis else 1 for a in range(3)]
            source = write_sparse(self.folder / "long.mha", size, "uint8")
            for words in (("gaussian", "--sigma=2"), ("highpass", "--sigma=2"), ("unsharp", "--sigma=2"), ("log", "--sigma=2"),
                          ("derivative", "--sigma=2", f"--order={','.join('1' if a == axis else '0' for a in range(3))}"),
                          ("mean", "--radius=2"), ("median", "--radius=1"), ("std", "--radius=2"), ("opening", "--radius=2"),
                          ("nlm", "--radius=1", "--strength=9"), ("bilateral", "--sigma=2", "--range-sigma=9"),
                          ("resample", "--affine", ",".join(str(int(a == b) if b < 3 else 0.25 * (a == axis)) for a in range(3) for b in range(4)))):
                for begin in (0, length - 64):
                    region = [begin if a == axis else 0 for a in range(3)] + [64 if a == axis else 1 for a in range(3)]
                    with self.subTest(axis=axis, words=words, begin=begin):
                        result, peak = self.measured(words[0], source, self.out, *words[1:], "--memory=100M",
                                                     f"--region={','.join(map(str, region))}")
                        self.assertEqual(result.returncode, 0, str(result))
                        self.assertLessEqual(peak, 100 * MIB, str(result))
                        self.assertEqual(list(read(self.out).size), region[3:])
