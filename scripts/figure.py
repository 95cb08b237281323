#!/usr/bin/env python3
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Draws what the boundary does to a filter's result: the input, the result in three boundary modes, their signed
differences, and a profile to the edge. Needs Pillow and the font DejaVu Sans.

    figure.py OUT.png INPUT.mha RENORMALIZED.mha CONSTANT.mha ZERO_FLUX.mha --caption TEXT
"""
import argparse
import array
import math
import os
import sys

from PIL import Image, ImageDraw, ImageFont

KINDS = {"MET_FLOAT": "f", "MET_DOUBLE": "d", "MET_UCHAR": "B", "MET_SHORT": "h", "MET_USHORT": "H"}
INK = "#222222"
LINE = "#F0E442"
COLORS = {"renormalized": "#0072B2", "zero padding": "#D55E00", "last value": "#009E73", "input": "#BBBBBB"}
# ColorBrewer's RdBu, from blue to red.
DIVERGING = [(5, 48, 97), (33, 102, 172), (67, 147, 195), (146, 197, 222), (209, 229, 240), (247, 247, 247), (253, 219, 199),
             (244, 165, 130), (214, 96, 77), (178, 24, 43), (103, 0, 31)]
FONT = "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf"
SIZE = (1240, 800)
SCALE = 2  # drawn larger and reduced, so that lines are smooth


class Volume:
    def __init__(self, path):
        header = {}
        self.path = path
        with open(path, "rb") as file:
            while "ElementDataFile" not in header:
                key, _, value = file.readline().decode("ascii").partition("=")
                if not value:
                    raise SystemExit(f"{path}: not an uncompressed .mha file")
                header[key.strip()] = value.strip()
            self.offset = file.tell()
        if header["ElementDataFile"] != "LOCAL" or header.get("CompressedData", "False") == "True":
            raise SystemExit(f"{path}: not an uncompressed .mha file")
        self.swaps = (header.get("BinaryDataByteOrderMSB", "False") == "True") != (sys.byteorder == "big")
        self.extent = tuple(int(n) for n in header["DimSize"].split())
        self.kind = KINDS[header["ElementType"]]
        self.spacing = [float(s) for s in header["ElementSpacing"].split()]

    def read_slice(self, z):
        """The rows of one slice."""
        x, y, _ = self.extent
        voxels = array.array(self.kind)
        with open(self.path, "rb") as file:
            file.seek(self.offset + z * x * y * voxels.itemsize)
            voxels.fromfile(file, x * y)
        if self.swaps:
            voxels.byteswap()
        return [voxels[row * x:(row + 1) * x].tolist() for row in range(y)]


def flat(rows):
    return [value for row in rows for value in row]


def gray(part):
    return (round(255 * part),) * 3


def diverging(part):
    place = part * (len(DIVERGING) - 1)
    low = min(int(place), len(DIVERGING) - 2)
    return tuple(round(a + (b - a) * (place - low)) for a, b in zip(DIVERGING[low], DIVERGING[low + 1]))


def ticks(low, high, most=8):
    """Round numbers within a range."""
    raw = (high - low) / most
    power = 10 ** math.floor(math.log10(raw))
    step = next(power * m for m in (1, 2, 5, 10) if power * m >= raw)
    return [step * k for k in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def text_of(number):
    return f"{number:g}".replace("-", "\N{MINUS SIGN}")


class Canvas:
    """Coordinates are pixels of the final picture."""

    def __init__(self):
        self.image = Image.new("RGB", (SIZE[0] * SCALE, SIZE[1] * SCALE), "white")
        self.draw = ImageDraw.Draw(self.image)

    def text(self, x, y, text, size, anchor="lt", fill=INK):
        self.draw.text((x * SCALE, y * SCALE), text, font=ImageFont.truetype(FONT, round(size * SCALE)), anchor=anchor, fill=fill)

    def upright(self, x, y, text, size):
        """Text that reads from bottom to top, around this center."""
        font = ImageFont.truetype(FONT, round(size * SCALE))
        left, top, right, bottom = font.getbbox(text)
        label = Image.new("RGB", (right - left + 4, bottom - top + 4), "white")
        ImageDraw.Draw(label).text((2 - left, 2 - top), text, font=font, fill=INK)
        label = label.rotate(90, expand=True)
        self.image.paste(label, (round(x * SCALE - label.width / 2), round(y * SCALE - label.height / 2)))

    def line(self, points, fill=INK, width=1.0):
        self.draw.line([(x * SCALE, y * SCALE) for x, y in points], fill=fill, width=max(1, round(width * SCALE)), joint="curve")

    def picture(self, box, image):
        left, top, right, bottom = (round(n * SCALE) for n in box)
        self.image.paste(image.resize((right - left, bottom - top), Image.NEAREST), (left, top))

    def frame(self, box, sides="ltrb"):
        left, top, right, bottom = box
        for side, line in zip("ltrb", (((left, top), (left, bottom)), ((left, top), (right, top)), ((right, top), (right, bottom)),
                                       ((left, bottom), (right, bottom)))):
            if side in sides:
                self.line(line, width=0.8)

    def axes(self, box, x_range, y_range, x_label, y_label):
        left, top, right, bottom = box
        for tick in ticks(*x_range):
            x = left + (tick - x_range[0]) / (x_range[1] - x_range[0]) * (right - left)
            self.line(((x, bottom), (x, bottom + 4)), width=0.8)
            self.text(x, bottom + 7, text_of(tick), 9.5, "mt")
        for tick in ticks(*y_range):
            y = bottom - (tick - y_range[0]) / (y_range[1] - y_range[0]) * (bottom - top)
            self.line(((left - 4, y), (left, y)), width=0.8)
            self.text(left - 7, y, text_of(tick), 9.5, "rm")
        self.text((left + right) / 2, bottom + 22, x_label, 11, "mt")
        self.upright(left - 38, (top + bottom) / 2, y_label, 11)

    def panel(self, box, rows, extent, title, colors, limits, bar_label=None):
        low, high = limits
        size = (len(rows[0]), len(rows))
        image = Image.new("RGB", size)
        image.putdata([colors(min(max((value - low) / (high - low), 0), 1)) for value in flat(rows[::-1])])
        left, top, right, bottom = box
        self.picture(box, image)
        self.frame(box)
        self.axes(box, (0, extent[0]), (0, extent[1]), "x (mm)", "y (mm)")
        self.text(left, top - 8, title, 13, "ls")
        if bar_label:
            bar = (right + 8, top, right + 18, bottom)
            ramp = Image.new("RGB", (1, 256))
            ramp.putdata([colors(1 - k / 255) for k in range(256)])
            self.picture(bar, ramp)
            self.frame(bar)
            for tick in ticks(low, high):
                y = bottom - (tick - low) / (high - low) * (bottom - top)
                self.line(((bar[2], y), (bar[2] + 4, y)), width=0.8)
                self.text(bar[2] + 7, y, text_of(tick), 9.5, "lm")
            self.upright(bar[2] + 38, (top + bottom) / 2, bar_label, 11)

    def save(self, path):
        self.image.resize(SIZE, Image.LANCZOS).save(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output")
    parser.add_argument("images", nargs=4, metavar="IMAGE")
    parser.add_argument("--caption", default="")
    options = parser.parse_args()
    if not os.path.exists(FONT):
        raise SystemExit(f"{FONT} is missing: install fonts-dejavu-core")

    volumes = [Volume(path) for path in options.images]
    x, y, z = volumes[0].extent
    if any(volume.extent != (x, y, z) for volume in volumes):
        raise SystemExit("the images differ in size")
    source, renormalized, constant, zero_flux = (volume.read_slice(z // 2) for volume in volumes)
    spacing = volumes[0].spacing
    # Edges in mm: pixels get the aspect that the spacing gives them.
    extent = (x * spacing[0], y * spacing[1])
    window = (0.0, math.ceil(max(flat(source)) / 10) * 10)

    canvas = Canvas()
    width = 218
    height = round(width * extent[1] / extent[0])
    lefts = (54, 336, 612, 950)
    tops = (46, 430)
    for left, (title, rows) in zip(lefts, (
        ("Input: block of a T1 brain volume", source),
        ("Renormalized (the default)", renormalized),
        ("Zero padding", constant),
        ("Last-value padding", zero_flux),
    )):
        box = (left, tops[0], left + width, tops[0] + height)
        canvas.panel(box, rows, extent, title, gray, window, "intensity" if rows is zero_flux else None)
        if rows is source:
            at = box[3] - (y // 4 + 0.5) / y * height
            canvas.line(((box[0], at), (box[2], at)), LINE, 1.6)

    largest = {}
    for left, (name, rows) in zip(lefts[2:], (("Zero padding", constant), ("Last value", zero_flux))):
        difference = [[a - b for a, b in zip(*pair)] for pair in zip(rows, renormalized)]
        largest[name] = max(abs(value) for value in flat(difference))
        limits = (-largest[name], largest[name])
        canvas.panel((left, tops[1], left + width, tops[1] + height), difference, extent, f"{name} \N{MINUS SIGN} renormalized",
                     diverging, limits, "difference of intensity")

    box = (lefts[0], tops[1] - 40, lefts[1] + width, tops[1] + height + 30)
    for name, rows, thickness in (("input", source, 0.9), ("zero padding", constant, 2), ("last value", zero_flux, 2),
                                  ("renormalized", renormalized, 2)):
        profile = rows[y // 4]
        canvas.line([(box[0] + (i + 0.5) / x * (box[2] - box[0]), box[3] - value / window[1] * (box[3] - box[1]))
                     for i, value in enumerate(profile)], COLORS[name], thickness)
    canvas.frame(box, "lb")
    canvas.axes(box, (0, extent[0]), window, "x (mm)", "intensity")
    canvas.text(box[0], box[1] - 8, "Along the yellow line", 13, "ls")
    for place, name in enumerate(COLORS):
        left = box[0] + 18 + 118 * place
        canvas.line(((left, box[3] - 14), (left + 20, box[3] - 14)), COLORS[name], 2)
        canvas.text(left + 26, box[3] - 14, name, 11, "lm")

    canvas.text(SIZE[0] / 2, SIZE[1] - 12, options.caption, 12, "mb")
    canvas.save(options.output)
    print(f"{options.output}: largest difference of zero padding {largest['Zero padding']:.1f}, "
          f"of last-value padding {largest['Last value']:.1f}, in this slice")


main()
