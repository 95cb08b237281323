#!/usr/bin/env python3
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Draws what the boundary does to a filter's result: the input, the result in three boundary modes, their signed
differences, and a profile to the edge.

    figure.py OUT.png INPUT.mha RENORMALIZED.mha CONSTANT.mha ZERO_FLUX.mha --caption TEXT
"""
import argparse

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402: the backend comes first
import numpy

KINDS = {"MET_FLOAT": "f4", "MET_DOUBLE": "f8", "MET_UCHAR": "u1", "MET_SHORT": "i2", "MET_USHORT": "u2"}
INK = "#222222"
LINE = "#F0E442"
COLORS = {"renormalized": "#0072B2", "zero padding": "#D55E00", "last value": "#009E73", "input": "#BBBBBB"}


def read_mha(path):
    """The voxels, z slowest and not read before they are used, and the spacing, x first."""
    header = {}
    with open(path, "rb") as file:
        while "ElementDataFile" not in header:
            key, _, value = file.readline().decode("ascii").partition("=")
            if not value:
                raise SystemExit(f"{path}: not an uncompressed .mha file")
            header[key.strip()] = value.strip()
        offset = file.tell()
    if header["ElementDataFile"] != "LOCAL" or header.get("CompressedData", "False") == "True":
        raise SystemExit(f"{path}: not an uncompressed .mha file")
    order = ">" if header.get("BinaryDataByteOrderMSB", "False") == "True" else "<"
    shape = tuple(int(n) for n in header["DimSize"].split())[::-1]
    voxels = numpy.memmap(path, order + KINDS[header["ElementType"]], mode="r", offset=offset, shape=shape)
    return voxels, [float(s) for s in header["ElementSpacing"].split()]


def show(axes, image, extent, title, color_map, limits, bar_label=None):
    drawn = axes.imshow(image, cmap=color_map, vmin=limits[0], vmax=limits[1], origin="lower", extent=extent,
                        interpolation="nearest")
    axes.set_title(title, fontsize=10, color=INK, loc="left")
    axes.set_xlabel("x (mm)", fontsize=8)
    axes.set_ylabel("y (mm)", fontsize=8)
    axes.tick_params(labelsize=7)
    if bar_label:
        bar = axes.figure.colorbar(drawn, cax=axes.inset_axes([1.04, 0, 0.05, 1]))
        bar.set_label(bar_label, fontsize=8)
        bar.ax.tick_params(labelsize=7)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output")
    parser.add_argument("images", nargs=4, metavar="IMAGE")
    parser.add_argument("--caption", default="")
    options = parser.parse_args()

    volumes = [read_mha(path) for path in options.images]
    spacing = volumes[0][1]
    shape = volumes[0][0].shape
    if any(voxels.shape != shape for voxels, _ in volumes):
        raise SystemExit("the images differ in size")
    middle = shape[0] // 2
    source, renormalized, constant, zero_flux = (numpy.asarray(voxels[middle], float) for voxels, _ in volumes)

    # Edges in mm: pixels get the aspect that the spacing gives them.
    extent = (0, shape[2] * spacing[0], 0, shape[1] * spacing[1])
    window = (0.0, float(numpy.ceil(source.max() / 10) * 10))
    figure = plt.figure(figsize=(12.4, 8.0), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.06, h_pad=0.08)
    grid = figure.add_gridspec(2, 4)

    for column, (title, image) in enumerate((
        ("Input: block of a T1 brain volume", source),
        ("Renormalized (the default)", renormalized),
        ("Zero padding", constant),
        ("Last-value padding", zero_flux),
    )):
        axes = figure.add_subplot(grid[0, column])
        show(axes, image, extent, title, "gray", window, "intensity" if column == 3 else None)
        if column == 0:
            row = shape[1] // 4
            axes.axhline((row + 0.5) * spacing[1], color=LINE, linewidth=1.2)

    for column, (name, result) in enumerate((("Zero padding", constant), ("Last value", zero_flux)), start=2):
        difference = result - renormalized
        limit = float(numpy.abs(difference).max())
        show(figure.add_subplot(grid[1, column]), difference, extent, f"{name} \N{MINUS SIGN} renormalized", "RdBu_r",
             (-limit, limit), "difference of intensity")

    profile = figure.add_subplot(grid[1, :2])
    x = (numpy.arange(shape[2]) + 0.5) * spacing[0]
    for name, image, width in (("input", source, 0.8), ("zero padding", constant, 2), ("last value", zero_flux, 2),
                               ("renormalized", renormalized, 2)):
        profile.plot(x, image[row], color=COLORS[name], linewidth=width, label=name)
    profile.set_xlim(extent[0], extent[1])
    profile.set_ylim(*window)
    profile.set_title("Along the yellow line", fontsize=10, color=INK, loc="left")
    profile.set_xlabel("x (mm)", fontsize=8)
    profile.set_ylabel("intensity", fontsize=8)
    profile.tick_params(labelsize=7)
    profile.legend(fontsize=8, frameon=False, ncols=4, loc="lower center")
    profile.spines[["top", "right"]].set_visible(False)

    figure.supxlabel(options.caption, fontsize=9, color=INK)
    figure.savefig(options.output, dpi=100)
    print(f"{options.output}: largest difference of zero padding {numpy.abs(constant - renormalized).max():.1f}, "
          f"of last-value padding {numpy.abs(zero_flux - renormalized).max():.1f}, in this slice")


main()
