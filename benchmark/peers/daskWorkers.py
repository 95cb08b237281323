#!/usr/bin/env python3
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Times filters over Dask with several worker processes beside one.

    daskWorkers.py FOLDER [--extent 500] [--workers 4] [--repeat 2] [--csv FILE]

Needs chunkwise, zarr, dask and distributed. The image is uint16, from a Zarr store in FOLDER and into another one there, in
blocks of a tenth of each side, so that there are 1,000. A worker is a process that computes a task at a time on one thread:
the host needs as many cores. The limit is the number of workers. Tells what the graph has of tasks and compares the bits.
"""
import argparse
import pathlib
import shutil
import sys
import time

from benchmarkRows import make_row, write_rows


def create(path, lazy):
    import zarr

    chunks = tuple(each[0] for each in lazy.chunks)
    return zarr.create_array(str(path), shape=lazy.shape, chunks=chunks, dtype=lazy.dtype, compressors=None, overwrite=True)


def timed(client, lazy, path):
    """Seconds of a run into a new store."""
    import dask.array

    target = create(path, lazy)
    begin = time.monotonic()
    client.compute(dask.array.store(lazy, target, lock=False, compute=False)).result()
    return time.monotonic() - begin


def main():
    import dask.array
    import numpy as np
    import zarr
    from distributed import Client, LocalCluster

    import chunkwise
    from chunkwise import filters

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--extent", type=int, default=500)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--csv")
    options = parser.parse_args()
    shape, block = (options.extent,) * 3, options.extent // 10
    source = options.folder / "dask-in.zarr"
    target = options.folder / "dask-out.zarr"
    image = np.random.default_rng(1).integers(0, 4096, shape, dtype="uint16")
    store = create(source, dask.array.from_array(image, chunks=block))
    store[...] = image
    rows = []
    try:
        for name, each in (("median, radius 2", filters.Median(radius=2)), ("Gaussian, sigma 2", filters.Gaussian(sigma=2.0))):
            lazy = chunkwise.dask.apply(each, store, chunks=(block,) * 3, threads=1, backend="cpu")
            expected = each(image, backend="cpu")
            seconds = {}
            for workers in (1, options.workers):
                with LocalCluster(n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
                    with Client(cluster) as client:
                        client.wait_for_workers(workers)
                        client.run(__import__, "chunkwise.dask")
                        seconds[workers] = min(timed(client, lazy, target) for _ in range(options.repeat))
                if not np.array_equal(zarr.open_array(str(target), mode="r")[...], expected):
                    print(f"{name}: {workers} workers gave other bits", file=sys.stderr)
                    return 1
            one, several = seconds[1], seconds[options.workers]
            print(f"{name:18} {lazy.npartitions} blocks, {len(dict(lazy.__dask_graph__()))} tasks: one worker {one:.2f} s, "
                  f"{options.workers} workers {several:.2f} s, {one / several:.2f} times as fast", flush=True)
            row = f"{name}, {options.workers} worker processes of Dask; {options.extent}^3 uint16, 1000 blocks"
            rows.append(make_row("array", row, f"{several:.4g}", "s", f"{one:.4g}", "one worker", "", "",
                                 f"peer/{7 * options.workers / 8:g}"))
    finally:
        shutil.rmtree(source, ignore_errors=True)
        shutil.rmtree(target, ignore_errors=True)
    write_rows(options.csv, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
