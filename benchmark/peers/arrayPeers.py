#!/usr/bin/env python3
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Times chunkwise.ndimage beside scipy.ndimage or, with --cupy, beside cupyx.scipy.ndimage, on the same arrays.

    arrayPeers.py [--cupy] [--extent 512] [--repeat 3] [--threads N] [--csv FILE]

Needs the package chunkwise and its peers: SciPy and, for the reconstruction, scikit-image; or CuPy. The limit is a copy
of the array by NumPy or on the device. SciPy and scikit-image take one thread: they have no more. The reconstruction's
image is smoothed noise. Also told: what a call takes beside the run itself, and what the import takes beside NumPy's.
"""
import argparse
import importlib
import os
import statistics
import subprocess
import sys
import time

from benchmarkRows import DEVICE, make_row, write_rows

# Name, type, the call of both packages, and how many times as fast as SciPy and as CuPy ours shall be.
FILTERS = [
    ("uniform 5^3", "float32", lambda n, x: n.uniform_filter(x, 5), 10, 5),
    ("Gaussian, sigma 2", "float32", lambda n, x: n.gaussian_filter(x, 2), 9, 10),
    ("median 3^3", "uint8", lambda n, x: n.median_filter(x, 3), 30, 7),
    ("maximum 5^3", "float32", lambda n, x: n.maximum_filter(x, 5), 12, 5),
    ("grey opening 5^3", "float32", lambda n, x: n.grey_opening(x, (5, 5, 5)), 12, 4),
]


def best(call, repeat, synchronize):
    """Seconds of the best call: others may use the processors."""
    times = []
    for _ in range(repeat):
        begin = time.perf_counter()
        call()
        synchronize()
        times.append(time.perf_counter() - begin)
    return min(times)


def median_of_calls(call, count):
    times = []
    for _ in range(count):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def call_and_engine(call, count):
    """Seconds of a call, and of the engine within it."""
    from chunkwise import _core

    execute = _core.execute
    inside = []

    def timed(*arguments):
        begin = time.perf_counter()
        report = execute(*arguments)
        inside.append(time.perf_counter() - begin)
        return report

    _core.execute = timed
    try:
        return median_of_calls(call, count), statistics.median(inside)
    finally:
        _core.execute = execute


def import_seconds(name):
    code = f"import numpy, time; begin = time.perf_counter(); import {name}; print(time.perf_counter() - begin)"
    command = [sys.executable, "-c", code]
    return min(float(subprocess.run(command, check=True, capture_output=True).stdout) for _ in range(5))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cupy", action="store_true")
    parser.add_argument("--extent", type=int, default=512)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--csv")
    parser.add_argument("--name", default=DEVICE)
    arguments = parser.parse_args()
    import numpy as np

    import chunkwise
    import chunkwise.ndimage as ours

    package = "cupyx.scipy.ndimage" if arguments.cupy else "scipy.ndimage"
    peer = importlib.import_module(package)
    cupy = importlib.import_module("cupy") if arguments.cupy else None
    synchronize = cupy.cuda.Device().synchronize if cupy else lambda: None
    options = {} if cupy else {"backend": "cpu", "threads": arguments.threads}
    rng = np.random.default_rng(1)
    rows = []

    def add_row(row, ours, unit, *rest):
        rows.append(make_row("array", row, f"{ours:.4g}", unit, *rest, device=arguments.name))

    def add(row, seconds, peer_seconds, peer_name, limit, target):
        print(f"{row:44} {seconds * 1e3:9.2f} ms, {peer_seconds / seconds:6.2f} times as fast as {peer_name}, "
              f"{seconds / limit:6.2f} times a copy", flush=True)
        add_row(row, seconds * 1e3, "ms", f"{peer_seconds * 1e3:.4g}", peer_name, f"{limit * 1e3:.4g}",
                "device copy" if cupy else "NumPy copy", f"peer/{target}")

    size = f"{arguments.extent}^3"
    for name, kind, call, scipy_target, cupy_target in FILTERS:
        shape = (arguments.extent,) * 3
        image = rng.integers(0, 255, shape, dtype="uint8") if kind == "uint8" else rng.random(shape, dtype=kind)
        if cupy:
            image = cupy.asarray(image)
        out = image.copy()

        class Ours:
            def __getattr__(self, attribute):
                return lambda *args: getattr(ours, attribute)(*args, output=out, **options)

        class Peer:
            def __getattr__(self, attribute):
                return lambda *args: getattr(peer, attribute)(*args, output=out)

        def copy():
            out[...] = image

        for warm in (copy, lambda: call(Ours(), image)) + ((lambda: call(Peer(), image),) if cupy else ()):
            warm()
        synchronize()
        limit = best(copy, 5, synchronize)
        seconds = best(lambda: call(Ours(), image), 10 if cupy else arguments.repeat, synchronize)
        peer_seconds = best(lambda: call(Peer(), image), arguments.repeat if cupy else 1, synchronize)
        add(f"{name}; {size} {kind}", seconds, peer_seconds, package, limit, cupy_target if cupy else scipy_target)
    if not cupy:
        from skimage.morphology import reconstruction

        extent = arguments.extent // 2
        image = ours.gaussian_filter(rng.random((extent,) * 3, dtype="float32"), 2, **options)
        marker = image - np.float32(0.02)
        out = image.copy()
        options["fully_connected"] = True
        seconds = best(lambda: chunkwise.reconstruct(image, marker, output=out, **options), arguments.repeat, synchronize)
        del options["fully_connected"]
        peer_seconds = best(lambda: reconstruction(marker, image), 1, synchronize)
        limit = best(lambda: np.copyto(out, image), 5, synchronize)
        add(f"reconstruction by dilation, 26 neighbours; {extent}^3 float32, smoothed", seconds, peer_seconds, "skimage", limit, 80)
        small = rng.random((64, 64, 64), dtype="float32")
        target = small.copy()
        whole, inside = call_and_engine(lambda: chunkwise.identity(small, output=target, backend="cpu", threads=1), 300)
        print(f"a call of identity, 64^3 float32, one thread: {whole * 1e6:.0f} us, of which the engine {inside * 1e6:.0f} us; "
              f"a copy {median_of_calls(lambda: np.copyto(target, small), 300) * 1e6:.0f} us; import beside NumPy "
              f"{import_seconds('chunkwise') * 1e3:.0f} ms")
        add_row("what a call adds to the engine's time; 64^3 float32", (whole - inside) * 1e6, "us", "", "", "", "", "50")
    write_rows(arguments.csv, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
