#!/usr/bin/env python3
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""The costs of the Python package, and how fast it is beside scipy.ndimage: python_speed.py [EXTENT [THREADS]].

Prints the time of an import beside NumPy's, what a call on 64^3 float32 costs above the engine's own time, and, for an
image of EXTENT^3 (256) and THREADS threads (2), the best of three times of both, in turn, and their ratio. SciPy has one
thread. If CuPy and the engine find a GPU, the same for CuPy's arrays beside cupyx.scipy.ndimage.
"""
import subprocess
import sys
import time

import numpy as np
from scipy import ndimage as theirs

import chunkwise
from chunkwise import _core, filters
from chunkwise import ndimage as ours


CALLS = (
    ("uniform 5^3", "float32", lambda ndi, x, **k: ndi.uniform_filter(x, 5, **k)),
    ("Gaussian sigma 2", "float32", lambda ndi, x, **k: ndi.gaussian_filter(x, 2, **k)),
    ("median 3^3", "uint8", lambda ndi, x, **k: ndi.median_filter(x, 3, **k)),
    ("maximum 5^3", "float32", lambda ndi, x, **k: ndi.maximum_filter(x, 5, **k)),
    ("grey opening 5^3", "float32", lambda ndi, x, **k: ndi.grey_opening(x, 5, **k)),
)


def best(call, repeats=3):
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return min(times)


def import_seconds():
    code = ("import time, numpy; begin = time.perf_counter(); import chunkwise; print(time.perf_counter() - begin)")
    return min(float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
               for _ in range(5))


def overhead(function, made, repeats=300):
    """The time of a call, above that of the engine's run with everything at hand."""
    image = np.random.default_rng(1).random((64, 64, 64), "float32")
    output = np.empty_like(image)
    operation = made._operation(image.shape, "float32", "float32")
    options = _core.make_options("auto", [], 0, 0, 0, 0, None)
    zeros, extent = [0, 0, 0], list(image.shape)

    def engine():
        _core.execute(operation, [image], zeros, output, zeros, extent, zeros, extent, options)

    differences, bare = [], []
    for _ in range(repeats):
        a = best(engine, 1)
        b = best(lambda: function(image, output=output), 1)
        differences.append(b - a)
        bare.append(a)
    return np.median(differences), np.median(bare)


def main():
    extent = int(sys.argv[1]) if len(sys.argv) > 1 else 256
    threads = int(sys.argv[2]) if len(sys.argv) > 2 else 2
    print(f"import chunkwise beside NumPy: {1e3 * import_seconds():.1f} ms")
    for name, function, made in (("mean 3^3", lambda x, output: chunkwise.mean(x, 1, output=output), filters.Mean(1)),
                                 ("identity", lambda x, output: chunkwise.identity(x, output=output), filters.Identity())):
        more, bare = overhead(function, made)
        print(f"call on 64^3 float32, {name}: {1e6 * more:.0f} us above the engine's {1e6 * bare:.0f} us")
    random = np.random.default_rng(2)
    real = random.random((extent,) * 3, "float32")
    byte = random.integers(0, 256, (extent,) * 3, dtype="uint8")
    print(f"{extent}^3, {threads} threads, scipy.ndimage has one:")
    for name, kind, call in CALLS:
        image = real if kind == "float32" else byte
        mine = best(lambda: call(ours, image, threads=threads))
        scipys = best(lambda: call(theirs, image), 1 if name.startswith("median") else 2)
        mine = min(mine, best(lambda: call(ours, image, threads=threads)))
        print(f"  {name}, {kind}: {mine:.3f} s, scipy {scipys:.3f} s, ratio {scipys / mine:.1f}")
    compare_on_device(real, byte)


def compare_on_device(real, byte):
    try:
        import cupy
        from cupyx.scipy import ndimage as cupys
    except ImportError:
        return
    if not chunkwise.devices():
        return
    print(f"{real.shape[0]}^3 in the memory of {chunkwise.devices()[0]['name']}, ms:")
    for name, kind, call in CALLS:
        image = cupy.asarray(real if kind == "float32" else byte)
        output = cupy.empty_like(image)

        def run(module):
            call(module, image, output=output)
            cupy.cuda.Device().synchronize()

        times = {module: [] for module in (ours, cupys)}
        for _ in range(3):
            for module in times:
                run(module)
                times[module].append(best(lambda: run(module), 10))
        mine, theirs_ = (1e3 * min(each) for each in times.values())
        print(f"  {name}, {kind}: {mine:.2f}, cupyx {theirs_:.2f}, ratio {theirs_ / mine:.1f}", flush=True)


if __name__ == "__main__":
    main()
