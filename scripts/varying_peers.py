#!/usr/bin/env python3
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Times convolutions that vary over the image in torch.fft, as chunkwise_gpu_benchmark times ours: M x M, kernels of
100 x 100 on a grid, bilinear between, zeros beyond the edge, device-resident, the kernels' spectra at hand.

Two ways, all transforms of a kind in one batch: "nodes" convolves the square that a node contributes to, weighs it and
adds it up; "cells" transforms each square between nodes once, for the four nodes at its corners. The fastest of several lengths of the transforms counts. The values, if there are any, are M."""

import statistics
import sys

from peer_report import PeerReport, parse_arguments

try:
    import torch
except ImportError as error:
    print(f"no peers: {error}")
    sys.exit(0)

KERNEL = 100
CENTER = 50
REPEATS = 10


def median_ms(body):
    for _ in range(2):
        body()
    times = []
    for _ in range(REPEATS):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        body()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times)


def hat(spacing):
    """The weight of a node over the two cells around it, the nodes half a voxel off the grid of voxels."""
    at = (torch.arange(2 * spacing, device="cuda", dtype=torch.float32) + 0.5) / spacing
    return torch.minimum(at, 2 - at)


def squares(image, cells, spacing, extent, below, above):
    """A view of the squares of `extent` voxels and what the kernel needs around them, `spacing` apart, the first half a
    spacing before the image. Zeros are around it."""
    padding = spacing // 2 + max(below, above) + 2 * spacing
    padded = torch.nn.functional.pad(image, (padding, padding, padding, padding))
    first = padding - spacing // 2 - below
    pitch = padded.shape[1]
    return padded.as_strided(
        (cells, cells, extent + below + above, extent + below + above),
        (spacing * pitch, spacing, pitch, 1),
        first * pitch + first,
    )


def by_nodes(image, spectra, nodes, spacing, length):
    extent = 2 * spacing
    below = KERNEL - 1 - CENTER
    # A node is in the middle of its square, which begins a spacing before it.
    blocks = squares(image, nodes, spacing, extent, below, CENTER)
    result = torch.fft.irfft2(torch.fft.rfft2(blocks, s=(length, length)) * spectra, s=(length, length))
    first = KERNEL - 1
    kept = result[:, :, first : first + extent, first : first + extent]
    weight = hat(spacing)
    kept = kept * (weight[:, None] * weight[None, :])
    out = torch.zeros(((nodes + 1) * spacing, (nodes + 1) * spacing), device="cuda")
    for y in range(2):
        for x in range(2):
            part = kept[:, :, y * spacing : (y + 1) * spacing, x * spacing : (x + 1) * spacing]
            rows = slice(y * spacing, (y + nodes) * spacing)
            columns = slice(x * spacing, (x + nodes) * spacing)
            out[rows, columns] += part.permute(0, 2, 1, 3).reshape(nodes * spacing, nodes * spacing)
    half = spacing // 2
    return out[half:-half, half:-half]


def by_cells(image, spectra, nodes, spacing, length):
    below = KERNEL - 1 - CENTER
    blocks = squares(image, nodes + 1, spacing, spacing, below, CENTER)
    transformed = torch.fft.rfft2(blocks, s=(length, length))
    weight = hat(spacing)
    out = torch.zeros((nodes + 1, nodes + 1, spacing, spacing), device="cuda")
    first = KERNEL - 1
    for y in range(2):
        for x in range(2):
            # The cells of which each node is the corner; at the edge a cell has fewer.
            cells = (slice(1 - y, nodes + 1 - y), slice(1 - x, nodes + 1 - x))
            result = torch.fft.irfft2(transformed[cells] * spectra, s=(length, length))
            kept = result[:, :, first : first + spacing, first : first + spacing]
            wy = weight[(1 - y) * spacing :][:spacing]
            wx = weight[(1 - x) * spacing :][:spacing]
            out[cells].addcmul_(kept, wy[:, None] * wx[None, :])
    half = spacing // 2
    return out.permute(0, 2, 1, 3).reshape((nodes + 1) * spacing, -1)[half:-half, half:-half]


def main():
    options = parse_arguments(__doc__, "extent", type=int)
    sizes = options.extent or [1024, 2048, 4096]
    report = PeerReport(options.csv, torch.cuda.get_device_name())
    print(f"torch {torch.__version__}, {report.device}")
    for extent in sizes:
        for spacing in (256, 128):
            nodes = extent // spacing
            image = torch.rand((extent, extent), device="cuda")
            kernels = torch.rand((nodes, nodes, KERNEL, KERNEL), device="cuda")
            best = {}
            results = {}
            for name, body, least, lengths in (
                ("nodes", by_nodes, 2 * spacing + KERNEL - 1, (360, 375, 384, 400, 612, 616, 625, 640, 648)),
                ("cells", by_cells, spacing + KERNEL - 1, (228, 240, 243, 250, 256, 360, 375, 384, 400)),
            ):
                for length in [length for length in lengths if least <= length < least * 1.15]:
                    spectra = torch.fft.rfft2(kernels, s=(length, length))
                    results[name] = body(image, spectra, nodes, spacing, length)
                    ms = median_ms(lambda: body(image, spectra, nodes, spacing, length))
                    best[name] = min(best.get(name, (ms, length)), (ms, length))
            inside = slice(extent // 2 - 64, extent // 2 + 64)
            a = results["nodes"][inside, inside]
            difference = ((a - results["cells"][inside, inside]).norm() / a.norm()).item()
            ways = ", ".join(f"{name} {ms:.3f} ms ({length})" for name, (ms, length) in best.items())
            row = f"varying kernels of 100^2, as a filter; every {spacing}, {extent}^2 float32"
            note = f"{ways}; difference of the two {difference:.1e}"
            report.add("convolution", row, min(best.values())[0], "torch.fft", note)


if __name__ == "__main__":
    main()
