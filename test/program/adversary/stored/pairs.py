# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Every pair of types of a first and a second input: the numbers are right, or the pair is refused."""
from fractions import Fraction

from adversary.support import KINDS, Image, ProgramTest, is_real, limits, noise, read, run, write

WIDTH, HEIGHT = 4, 3


def extremes(kind, count=WIDTH * HEIGHT):
    """Values that a cast to another type would change."""
    low, high = limits(kind)
    some = [low, high, 0, 1, -1, 100, 200, 260, 300, 1000, -5, 70000]
    values = [v for v in some if low <= v <= high]
    if is_real(kind):
        values = [0.5, -2.25] + values
    return [values[i % len(values)] for i in range(count)]


class Pairs(ProgramTest):
    def for_each_pair(self, subcommand, make, check, *options):
        """make(first kind, second kind): both images and the option of the second. check(first, second, output, result)
        judges those pairs that are not refused."""
        ran = 0
        for first in KINDS:
            for second in KINDS:
                with self.subTest(subcommand=subcommand, first=first, second=second):
                    a, b, option = make(first, second)
                    paths = write(self.folder / "a.mha", a), write(self.folder / "b.mha", b)
                    self.out.unlink(missing_ok=True)
                    result = run(subcommand, paths[0], self.out, option, paths[1], *options)
                    if result.returncode != 0:
                        self.assert_failed(result, option)
                        self.assertFalse(self.out.exists())
                        # Radii are integers, whatever the image is.
                        if subcommand != "box":
                            self.assertNotEqual(first, second, "equal types cannot be refused")
                        continue
                    ran += 1
                    check(a, b, read(self.out), result)
        self.assertGreater(ran, len(KINDS) + 20, "almost all pairs are refused")

    def assert_value(self, value, exact, kind, message):
        """Rounded to the kind, and once more to what it was computed in."""
        relative = 2.0 ** (-22 if kind == "float32" else -51)
        self.assertLessEqual(abs(Fraction(value) - Fraction(exact)), abs(Fraction(exact)) * Fraction(relative), message)

    def test_difference(self):
        def make(first, second):
            values = extremes(second)
            return (Image((WIDTH, HEIGHT), first, extremes(first)),
                    Image((WIDTH, HEIGHT), second, values[5:] + values[:5]), "--minus")

        def check(a, b, out, result):
            for x, y, value in zip(a.values, b.values, out.values):
                self.assert_value(value, Fraction(x) - Fraction(y), out.kind, f"{x} - {y}: {result}")

        self.for_each_pair("difference", make, check, "--output-type=float64")

    def test_difference_of_one_type(self):
        """In the type that it has when none is named."""
        for kind in KINDS:
            with self.subTest(kind=kind):
                values = extremes(kind)
                a, b = (Image((WIDTH, HEIGHT), kind, v) for v in (values, values[5:] + values[:5]))
                result = self.assert_runs("difference", write(self.folder / "a.mha", a), self.out, "--minus",
                                          write(self.folder / "b.mha", b))
                out = read(self.out)
                self.assertTrue(is_real(out.kind), out.kind)
                for x, y, value in zip(a.values, b.values, out.values):
                    self.assert_value(value, Fraction(x) - Fraction(y), out.kind, f"{x} - {y}: {result}")

    def test_integers_of_integers_are_exact(self):
        """Sums, ranges and differences as any integers: what their type cannot hold is cut, all else is there."""
        near = [2**53 + 1, 2**53 - 1, -(2**53) - 1, 2**31, 2**32 - 1, 3, 0, 2**62 + 1, 2**63 - 1, -(2**63), 2**64 - 1, -7]

        def window(values, i):
            x, y = i % WIDTH, i // WIDTH
            return [values[v * WIDTH + u] for v in range(max(y - 1, 0), min(y + 2, HEIGHT))
                    for u in range(max(x - 1, 0), min(x + 2, WIDTH))]

        filters = {
            ("sum", "--radius=1"): lambda a, b, i: sum(window(a, i)),
            ("box", "--statistic=sum", "--radius=1"): lambda a, b, i: sum(window(a, i)),
            ("range", "--radius=1"): lambda a, b, i: max(window(a, i)) - min(window(a, i)),
            ("difference", "--minus"): lambda a, b, i: a[i] - b[i],
            ("identity",): lambda a, b, i: a[i],
            ("sequence", "--step=sum --radius 1", "--step=identity"): lambda a, b, i: sum(window(a, i)),
        }
        kinds = [kind for kind in KINDS if not is_real(kind)]
        for source in kinds:
            low, high = limits(source)
            some = [min(max(v, low), high) for v in near]
            others = some[3:] + some[:3]
            paths = [write(self.folder / f"{name}.mha", Image((WIDTH, HEIGHT), source, values))
                     for name, values in (("a", some), ("b", others))]
            for (name, *options), define in filters.items():
                more = [options[0], paths[1]] if name == "difference" else options
                for target in kinds if source in ("int64", "uint64", "int32", "uint32") else ("int64", "uint8"):
                    with self.subTest(filter=name, source=source, target=target):
                        self.assert_runs(name, paths[0], self.out, *more, "--output-type=" + target)
                        least, most = limits(target)
                        if name == "sequence" and source in ("int64", "uint64"):
                            # Between its steps it has the input's type.
                            least, most = max(least, low), min(most, high)
                        self.assertEqual(list(read(self.out).values),
                                         [min(max(define(some, others, i), least), most) for i in range(len(some))])

    def test_reconstruct(self):
        def make(first, second):
            marker = extremes(second)
            return Image((WIDTH, HEIGHT), first, extremes(first)), Image((WIDTH, HEIGHT), second, marker), "--marker"

        def check(mask, marker, out, result):
            # By dilation under the mask, neighbours share a face: grow until nothing changes.
            state = [min(Fraction(a), Fraction(b)) for a, b in zip(mask.values, marker.values)]
            while True:
                grown = [
                    min(Fraction(mask.values[i]), max(
                        state[y * WIDTH + x]
                        for x, y in ((i % WIDTH, i // WIDTH), (i % WIDTH - 1, i // WIDTH), (i % WIDTH + 1, i // WIDTH),
                                     (i % WIDTH, i // WIDTH - 1), (i % WIDTH, i // WIDTH + 1))
                        if 0 <= x < WIDTH and 0 <= y < HEIGHT))
                    for i in range(len(state))
                ]
                if grown == state:
                    break
                state = grown
            low, high = limits(out.kind)
            for value, exact in zip(out.values, state):
                if not is_real(out.kind) and result.warnings():
                    self.assertLessEqual(abs(Fraction(value) - min(max(exact, low), high)), Fraction(1, 2), str(result))
                else:
                    self.assert_value(value, exact, out.kind, str(result))

        self.for_each_pair("reconstruct", make, check)

    def test_radius_image(self):
        most = 2

        def make(first, second):
            low, high = limits(second)
            some = [v for v in (0, 1, 2, 3, 256, 257, -1, -255, high, low, 65536) if low <= v <= high]
            radii = [some[i % len(some)] for i in range(WIDTH * HEIGHT)]
            return (Image((WIDTH, HEIGHT), first, [i * 5 % 11 for i in range(WIDTH * HEIGHT)]),
                    Image((WIDTH, HEIGHT), second, radii), "--radius-image")

        def check(image, radii, out, result):
            for i, value in enumerate(out.values):
                radius = int(min(max(radii.values[i], 0), most))
                x, y = i % WIDTH, i // WIDTH
                total = sum(
                    image.values[v * WIDTH + u]
                    for v in range(max(y - radius, 0), min(y + radius + 1, HEIGHT))
                    for u in range(max(x - radius, 0), min(x + radius + 1, WIDTH))
                )
                self.assertEqual(value, total, f"{radii.values[i]} at {i}: {result}")

        self.for_each_pair("box", make, check, "--statistic=sum", f"--radius={most}", "--output-type=float64")

    def convolved(self, image, kernel, size):
        """With zeros beyond the edge; the kernel's center is at half its size."""
        kx, ky = size
        result = []
        for i in range(WIDTH * HEIGHT):
            x, y = i % WIDTH, i // WIDTH
            taps = [
                Fraction(kernel[q * kx + p]) * Fraction(image[v * WIDTH + u])
                for q in range(ky) for p in range(kx)
                for u, v in ((x + kx // 2 - p, y + ky // 2 - q),)
                if 0 <= u < WIDTH and 0 <= v < HEIGHT
            ]
            result.append((sum(taps), sum(map(abs, taps))))
        return result

    def assert_convolved(self, subcommand, make, *options):
        def check(image, kernel, out, result):
            exact = self.convolved(image.values, kernel.values, kernel.size[:2])
            largest = max(size for _, size in exact)
            for value, (sum_of_taps, _) in zip(out.values, exact):
                # In float for small types, and through transforms in proportion to the largest.
                self.assertLessEqual(abs(Fraction(value) - sum_of_taps), largest * Fraction(1, 2**19), str(result))

        self.for_each_pair(subcommand, make, check, "--boundary=constant", "--output-type=float64", *options)

    def kernel_values(self, kind):
        low, high = limits(kind)
        some = [v for v in (1, 300, -2, 70000, 5, 200) if low <= v <= high]
        if is_real(kind):
            some[1] = 0.375
        return [some[i % len(some)] for i in range(6)]

    def test_kernel_of_a_convolution(self):
        self.assert_convolved("convolve-image", lambda first, second: (
            noise((WIDTH, HEIGHT), first, 9, 0, 100), Image((3, 2), second, self.kernel_values(second)), "--kernel"),
            "--method=direct")

    def test_kernels_of_a_convolution_that_varies(self):
        self.assert_convolved("convolve-varying", lambda first, second: (
            noise((WIDTH, HEIGHT), first, 9, 0, 100), Image((3, 2, 1), second, self.kernel_values(second)), "--kernels"),
            "--grid=1")

    def test_second_images_of_another_shape_or_place_are_refused(self):
        first = write(self.folder / "a.mha", noise((6, 5, 4), "uint8"))
        others = {
            "size": noise((6, 5, 3), "uint8"), "dimension": noise((6, 5), "uint8"),
            "spacing": Image((6, 5, 4), "uint8", [0] * 120, spacing=[2, 1, 1]),
            "origin": Image((6, 5, 4), "uint8", [0] * 120, origin=[2, 1, 1]),
            "direction": Image((6, 5, 4), "uint8", [0] * 120, direction=[[-1, 0, 0], [0, -1, 0], [0, 0, 1]]),
        }
        for what, image in others.items():
            second = write(self.folder / "b.mha", image)
            for subcommand, option, more in (("difference", "--minus", ()), ("reconstruct", "--marker", ()),
                                             ("box", "--radius-image", ("--radius=1",))):
                with self.subTest(subcommand=subcommand, what=what):
                    self.assert_refused(subcommand, first, self.out, option, second, *more, names=option)
