#!/usr/bin/env python3
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Makes the drawings of docs/concepts as SVG files.

    make_drawings.py          writes them
    make_drawings.py --check  says whether they are what it would write
"""
import math
import pathlib
import sys

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "docs" / "concepts"
INK, GRAY, PALE = "#1f2933", "#7b8794", "#e4e7eb"
BLUE, PALE_BLUE, ORANGE, PALE_ORANGE, GREEN = "#1f77b4", "#cfe3f3", "#d9730d", "#fbe3cc", "#2f8f4e"


class Drawing:
    """Shapes on a white card, which looks the same on light and dark pages."""

    def __init__(self, width, height, title):
        self.parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
                      'role="img" font-family="DejaVu Sans, Verdana, sans-serif" font-size="13">',
                      f"<title>{title}</title>",
                      f'<rect width="{width}" height="{height}" rx="8" fill="#ffffff"/>']

    def box(self, x, y, width, height, fill="none", stroke=INK, dash="", thick=1.0):
        dashes = f' stroke-dasharray="{dash}"' if dash else ""
        self.parts.append(f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" fill="{fill}" stroke="{stroke}" '
                          f'stroke-width="{thick:g}"{dashes}/>')

    def line(self, points, stroke=INK, thick=1.5, dash=""):
        dashes = f' stroke-dasharray="{dash}"' if dash else ""
        text = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.parts.append(f'<polyline points="{text}" fill="none" stroke="{stroke}" stroke-width="{thick:g}"{dashes}/>')

    def arrow(self, x, y, x2, y2, stroke=INK):
        self.line([(x, y), (x2, y2)], stroke)
        angle = math.atan2(y2 - y, x2 - x)
        self.line([(x2 - 8 * math.cos(angle + turn), y2 - 8 * math.sin(angle + turn)) for turn in (0.45,)] + [(x2, y2)] +
                  [(x2 - 8 * math.cos(angle - 0.45), y2 - 8 * math.sin(angle - 0.45))], stroke)

    def text(self, x, y, words, fill=INK, anchor="start", size=13, weight="normal"):
        words = words.replace("&", "&amp;").replace("<", "&lt;")
        self.parts.append(f'<text x="{x:g}" y="{y:g}" fill="{fill}" text-anchor="{anchor}" font-size="{size}" '
                          f'font-weight="{weight}">{words}</text>')

    def finish(self):
        return "\n".join(self.parts + ["</svg>"]) + "\n"


def draw_chunks():
    d = Drawing(720, 300, "An image is cut into stream blocks and chunks; a chunk is loaded with its halo")
    d.text(110, 28, "image in a file", anchor="middle", weight="bold")
    for slab in range(4):
        d.box(20, 40 + 55 * slab, 180, 55, PALE_BLUE if slab == 1 else PALE)
    d.text(110, 128, "stream block", BLUE, "middle")
    d.text(110, 285, "read in order, once", GRAY, "middle")
    d.arrow(205, 122, 262, 122)

    d.text(370, 28, "stream block in host memory", anchor="middle", weight="bold")
    d.box(270, 62, 200, 135, PALE_BLUE)
    for column in range(1, 4):
        d.line([(270 + 50 * column, 62), (270 + 50 * column, 197)], GRAY, 1)
    for row in range(1, 3):
        d.line([(270, 62 + 45 * row), (470, 62 + 45 * row)], GRAY, 1)
    d.box(320, 107, 50, 45, PALE_ORANGE, ORANGE, thick=2)
    d.box(308, 95, 74, 69, "none", ORANGE, "4 3", 1.5)
    d.text(345, 134, "chunk", ORANGE, "middle")
    d.text(370, 220, "dashed: the chunk and its halo", ORANGE, "middle")
    d.text(370, 285, "chunks in any order, on any device", GRAY, "middle")
    d.arrow(475, 122, 532, 122)

    d.text(620, 28, "device", anchor="middle", weight="bold")
    for row, (words, fill) in enumerate((("load the next chunk", PALE), ("compute this chunk", PALE_ORANGE),
                                         ("store the last chunk", PALE))):
        d.box(540, 62 + 42 * row, 160, 34, fill)
        d.text(620, 84 + 42 * row, words, anchor="middle")
    d.text(620, 220, "at the same time", GRAY, "middle")
    d.text(620, 285, "the same bits for any chunks", GRAY, "middle")
    return d.finish()


def smooth(values, beyond, sigma=2.0):
    """The Gaussian of a row; beyond(i) is the value outside, or None where nothing counts."""
    radius, result = int(4 * sigma), []
    for center in range(len(values)):
        total = weights = 0.0
        for i in range(center - radius, center + radius + 1):
            value = values[i] if 0 <= i < len(values) else beyond(i)
            if value is not None:
                weight = math.exp(-0.5 * ((i - center) / sigma) ** 2)
                total, weights = total + weight * value, weights + weight
        result.append(total / weights)
    return result


def draw_boundary():
    row = [60 + 40 * math.sin(0.55 * i) + 4 * i for i in range(24)]
    n = len(row)
    modes = (("renormalized", lambda i: None, BLUE),
             ("constant 0", lambda i: 0.0, ORANGE),
             ("zero flux (nearest)", lambda i: row[0 if i < 0 else n - 1], GREEN),
             ("mirror", lambda i: row[-1 - i if i < 0 else 2 * n - 1 - i], GRAY),
             ("periodic", lambda i: row[i % n], "#8a4fbf"))
    d = Drawing(720, 340, "A Gaussian near the boundary, in five boundary modes")
    left, top, width, height = 50, 40, 640, 230

    def at(i, value):
        return left + width * (i + 8) / (n + 15), top + height * (1 - value / 200)

    edge, far = at(-0.5, 0)[0], at(n - 0.5, 0)[0]
    d.box(left, top, edge - left, height, PALE, "none")
    d.box(far, top, left + width - far, height, PALE, "none")
    d.text((left + edge) / 2, top - 10, "outside", GRAY, "middle")
    d.text((edge + far) / 2, top - 10, "image", INK, "middle")
    d.text((far + left + width) / 2, top - 10, "outside", GRAY, "middle")
    for i, value in enumerate(row):
        x, y = at(i, value)
        d.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{INK}"/>')
    for column, (name, beyond, color) in enumerate(modes):
        d.line([at(i, value) for i, value in enumerate(smooth(row, beyond))], color, 3 if column == 0 else 1.5)
        x = left + 5 + (0, 115, 220, 375, 475)[column]
        d.line([(x, 298), (x + 22, 298)], color, 3 if column == 0 else 1.5)
        d.text(x + 27, 302, name, size=11)
    d.line([(left, top + height), (left + width, top + height)], INK, 1)
    d.text(left, 326, "dots: voxels of a row; lines: their Gaussian, sigma 2 voxels; the thick line is the default", GRAY, size=11)
    return d.finish()


def draw_exactness():
    d = Drawing(720, 290, "A long window is summed as the end of one block and the beginning of the next")
    left, step = 40, 40

    def cells(y, first, last, fill):
        for i in range(first, last):
            d.box(left + step * i, y, step, 26, fill)

    d.text(left, 26, "blocks begin at index 0 of the image, wherever a chunk begins", weight="bold")
    cells(40, 0, 16, "none")
    for i in range(16):
        d.text(left + step * (i + 0.5), 58, str(i), GRAY, "middle", 11)
    for block in range(4):
        d.box(left + 4 * step * block, 40, 4 * step, 26, "none", INK, thick=2.5)
    d.text(left, 96, "the window of voxel 7, radius 2: the end of one block plus the beginning of the next", weight="bold")
    cells(108, 5, 8, PALE_BLUE)
    cells(108, 8, 10, PALE_ORANGE)
    for i in range(5, 10):
        d.text(left + step * (i + 0.5), 126, str(i), BLUE if i < 8 else ORANGE, "middle", 12)
    d.text(left + 10.3 * step, 126, "(5 + 6 + 7) + (8 + 9), in this order", INK, size=12)
    for row, (words, cuts) in enumerate((("one chunk", (16,)), ("chunks of 6", (6, 12, 16)), ("chunks of 9", (9, 16)))):
        y = 160 + 36 * row
        begin = 0
        for end in cuts:
            d.box(left + step * begin, y, step * (end - begin) - 3, 24, PALE)
            begin = end
        d.box(left + step * 7, y, step, 24, PALE_BLUE, BLUE, thick=2)
        d.text(left + step * 15.8, y + 17, words, GRAY, "end", 12)
    d.text(left, 282, "voxel 7 has the same bits in all three rows", GRAY)
    return d.finish()


# A mean of radius 3 over 512 x 512 x 512 voxels of uint16, from file to file, on two CPU threads: the option --memory, and the
# largest resident memory of the process that GNU time reported, both in MiB.
MEASURED = ((64, 28.8), (96, 52.0), (128, 75.9), (192, 119.9), (256, 129.6), (384, 129.2), (512, 129.4))


def draw_budgets():
    d = Drawing(720, 330, "The memory that a run took, beside its budget")
    left, top, width, height, most = 60, 50, 630, 210, 520
    d.text(left, 28, "mean, radius 3, of an image of 256 MiB, from file to file: MiB of memory", weight="bold")
    for value in (0, 128, 256, 384, 512):
        y = top + height * (1 - value / most)
        d.line([(left, y), (left + width, y)], PALE, 1)
        d.text(left - 8, y + 4, str(value), GRAY, "end", 11)
    slot = width / len(MEASURED)
    for column, (budget, peak) in enumerate(MEASURED):
        x = left + slot * column + 14
        d.box(x, top + height * (1 - budget / most), slot - 28, height * budget / most, "none", ORANGE, "4 3", 1.5)
        d.box(x, top + height * (1 - peak / most), slot - 28, height * peak / most, PALE_BLUE, BLUE)
        d.text(x + slot / 2 - 14, top + height - 6, f"{peak:.0f}", BLUE, "middle", 12)
        d.text(x + slot / 2 - 14, top + height + 18, f"{budget}M", ORANGE, "middle", 12)
    d.text(left, 302, "dashed: the budget, --memory", ORANGE, size=12)
    d.text(left + 210, 302, "filled: the largest memory of the process", BLUE, size=12)
    d.text(left, 321, "input and output together have 512 MiB; from 256M on, the run takes the same memory", GRAY,
           size=11)
    return d.finish()


def main():
    drawings = {"chunks": draw_chunks, "boundary": draw_boundary, "exactness": draw_exactness, "budgets": draw_budgets}
    stale = []
    for name, draw in drawings.items():
        path, text = FOLDER / f"{name}.svg", draw()
        if "--check" not in sys.argv:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            stale.append(path.name)
    if stale:
        sys.exit(f"{', '.join(stale)}: not what the script draws; run scripts/make_drawings.py")


if __name__ == "__main__":
    main()
