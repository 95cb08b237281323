#!/usr/bin/env python3
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""The four networks of the ZNNi paper on the CPU: Chunkwise and torch (oneDNN) in one run, on two threads.

    networkPeers.py BENCHMARK [--networks n337,...] [--extents 16,32,...] [--seconds 60] [--csv FILE]

BENCHMARK is the program chunkwise_network_benchmark. Run it with a Python that has torch. A figure is of output voxels
a second. torch runs fragments of poolings as batches, which is its fastest way; each runs at growing extents until a run
takes longer than --seconds, and its best counts. Beside wall time both have the processors' time: on a machine that
others use, only that can be compared. The limit is the rate of torch's fastest layer and an image without borders: what
torch could do at most with any amount of memory."""
import argparse
import platform
import re
import subprocess
import sys
import time

from benchmarkRows import make_row, write_rows

LAYERS = {
    "n337": [2, 0, 3, 0, 3, 0, 3, 3, 3, 3],
    "n537": [4, 0, 5, 0, 5, 0, 5, 5, 5, 5],
    "n726": [6, 0, 7, 0, 7, 7, 7, 7],
    "n926": [8, 0, 9, 0, 9, 9, 9, 9],
}
FIELDS = {"n337": 85, "n537": 163, "n726": 117, "n926": 155}
THREADS = 2


def make_weights(torch, name):
    weights, channels = [], 1
    for i, kernel in enumerate(LAYERS[name]):
        if kernel == 0:
            weights.append(None)
            continue
        outputs = 3 if i + 1 == len(LAYERS[name]) else 80
        weights.append(torch.randn(outputs, channels, kernel, kernel, kernel) * (2 / (channels * kernel**3)) ** 0.5)
        channels = outputs
    return weights


def pool_fragments(torch, x):
    extent = [n - 1 for n in x.shape[2:]]
    parts = [x[:, :, a:a + extent[0], b:b + extent[1], c:c + extent[2]] for a in (0, 1) for b in (0, 1) for c in (0, 1)]
    return torch.cat([torch.nn.functional.max_pool3d(part, 2) for part in parts])


def run_torch(torch, name, weights, extent):
    """Seconds, seconds of processors, and the best rate of a layer in FLOP a second of processors on all threads. For the
    fragments behind a pooling, which all take the same time, a batch of some 200 000 voxels is run."""
    x = torch.rand(1, 1, *[extent + FIELDS[name] - 1] * 3)
    best = wall = processor = 0.0
    batches = 1.0
    with torch.inference_mode():
        for weight in weights:
            began, before = time.perf_counter(), time.process_time()
            x = pool_fragments(torch, x) if weight is None else torch.nn.functional.conv3d(x, weight).relu_()
            took = time.process_time() - before
            wall += batches * (time.perf_counter() - began)
            processor += batches * took
            if weight is None:
                kept = min(x.shape[0], -(-200000 // x[0, 0].numel()))
                batches *= x.shape[0] / kept
                x = x[:kept].clone()
            else:
                best = max(best, THREADS * 2 * weight[0].numel() * x.numel() / max(took, 1e-9))
    return wall, processor, best


def run_ours(benchmark, name, extent):
    text = subprocess.run([benchmark, "cpu", str(extent), name], check=True, capture_output=True, text=True).stdout
    wall = float(re.search(r"chunks, ([0-9.]+) s,", text).group(1))
    processor = float(re.search(r"([0-9.]+) s of processors", text).group(1))
    return wall, processor


def cost(name):
    """FLOP of an output voxel of an image without borders."""
    total, channels = 0, 1
    convolutions = [k for k in LAYERS[name] if k]
    for i, kernel in enumerate(convolutions):
        outputs = 3 if i + 1 == len(convolutions) else 80
        total += 2 * channels * outputs * kernel**3
        channels = outputs
    return total


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("benchmark")
    parser.add_argument("--networks", default=",".join(LAYERS))
    parser.add_argument("--extents", default="16,32,48,64,96,128")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--csv")
    options = parser.parse_args()
    try:
        import torch
    except (ImportError, OSError) as error:
        print(f"skipped: torch cannot be used: {error}")
        return 77
    torch.set_num_threads(THREADS)
    rows = []
    for name in options.networks.split(","):
        weights = make_weights(torch, name)
        best = {"ours": (0.0, 0.0, 0), "torch": (0.0, 0.0, 0)}
        limit = 0.0
        for who in best:
            for extent in map(int, options.extents.split(",")):
                if who == "torch":
                    wall, processor, rate = run_torch(torch, name, weights, extent)
                    limit = max(limit, rate / cost(name))
                else:
                    wall, processor = run_ours(options.benchmark, name, extent)
                voxels = extent**3
                print(f"{name} {who} {extent}^3: {voxels / wall:.0f} voxel/s, "
                      f"{THREADS * voxels / processor:.0f} by processor time", flush=True)
                best[who] = max(best[who], (THREADS * voxels / processor, voxels / wall, extent))
                if wall > options.seconds:
                    break
        ours, peer = best["ours"], best["torch"]
        print(f"{name}: {ours[0] / peer[0]:.1f} times torch by processor time, {ours[1] / peer[1]:.1f} by the clock; torch "
              f"without borders at most {limit:.0f} voxel/s")
        rows.append(make_row("network", f"{name}, float32, 2 threads, time of processors; {ours[2]}^3 outputs of uint8",
                             f"{ours[0] / 1e6:.4g}", "Mvoxel/s", f"{peer[0] / 1e6:.4g}",
                             f"torch {torch.__version__} at {peer[2]}^3", f"{limit / 1e6:.4g}",
                             "torch's fastest layer without borders", "",
                             device=platform.processor() or platform.machine()))
    write_rows(options.csv, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
