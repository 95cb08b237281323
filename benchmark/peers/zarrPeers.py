#!/usr/bin/env python3
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Times a Gaussian from Zarr to Zarr beside a plain copy of the store, and beside dask-image.

    zarrPeers.py FOLDER [--gib 32] [--memory 1G] [--threads N] [--sigma 2] [--without-dask] [--csv FILE]

Needs chunkwise, zarr and, for the peer, dask-image. The image is uint16 of 2048 x 2048 planes in chunks of 16 x 256 x 512:
smoothed noise of which each chunk holds another part, with the codec that zarr chooses. FOLDER needs room for
two of it. Each run is a separate process, whose seconds, seconds of processors and largest memory are told; the store that it
wrote is removed. The limit is the copy: as many threads, each of which reads a chunk and writes it. dask-image has a worker thread for
each processor. Its result is the image's type after each axis, ours after the last: they are not compared.
"""
import argparse
import concurrent.futures
import os
import pathlib
import shutil
import sys

from benchmarkRows import DEVICE, boxes_of, make_row, measure, write_rows

CHUNKS = (16, 256, 512)


def make(path, planes):
    import numpy as np
    import zarr

    import chunkwise

    shape = (planes, 2048, 2048)
    noise = np.random.default_rng(1).integers(0, 4096, tuple(chunk + 64 for chunk in CHUNKS), dtype="uint16")
    smooth = chunkwise.gaussian(noise, sigma=1)
    image = zarr.create_array(path, shape=shape, chunks=CHUNKS, dtype="uint16", overwrite=True)

    def write(numbered):
        number, where = numbered
        begins = (number * step % 61 for step in (17, 29, 41))
        image[where] = smooth[tuple(slice(begin, begin + a.stop - a.start) for begin, a in zip(begins, where))]

    with concurrent.futures.ThreadPoolExecutor() as pool:
        list(pool.map(write, enumerate(boxes_of(shape, CHUNKS))))


def run(what, source, output, options):
    """The work of a separate process."""
    if what == "make":
        make(source, int(options.gib * 2**30 / (2048 * 2048 * 2)))
    elif what == "copy":
        import zarr

        image = zarr.open(source, mode="r")
        copy = zarr.create_array(output, shape=image.shape, chunks=image.chunks, dtype=image.dtype)
        with concurrent.futures.ThreadPoolExecutor(options.threads) as pool:
            list(pool.map(lambda where: copy.__setitem__(where, image[where]), boxes_of(image.shape, CHUNKS)))
    elif what == "ours":
        import chunkwise

        report = chunkwise.zarr.run(chunkwise.filters.Gaussian(sigma=options.sigma), source, output, memory=options.memory,
                                    backend="cpu", threads=options.threads)
        print(report.bytes_read / (options.gib * 2**30))
    else:
        import dask
        import dask.array as da
        from dask_image.ndfilters import gaussian_filter

        with dask.config.set(scheduler="threads", num_workers=options.threads):
            da.to_zarr(gaussian_filter(da.from_zarr(source), sigma=options.sigma), output)


def measure_one(what, output, options):
    """The figures of a process that does `what`, which it prints."""
    if output:
        shutil.rmtree(output, ignore_errors=True)
    figures = measure([sys.executable, __file__, options.folder, *sys.argv[2:], "--run", what], output)
    print(f"{what:6} {figures[0]:8.1f} s, {figures[1]:8.1f} s of processors, {figures[2]:7.0f} MiB at most", flush=True)
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--gib", type=float, default=32)
    parser.add_argument("--memory", default="1G")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--sigma", type=float, default=2)
    parser.add_argument("--without-dask", action="store_true")
    parser.add_argument("--csv")
    parser.add_argument("--name", default=DEVICE)
    parser.add_argument("--run", help=argparse.SUPPRESS)
    options = parser.parse_args()
    folder = pathlib.Path(options.folder)
    source, output = str(folder / "source.zarr"), str(folder / "output.zarr")
    if options.run:
        run(options.run, source, output, options)
        return 0
    folder.mkdir(parents=True, exist_ok=True)
    measure_one("make", None, options)
    stored = sum(file.stat().st_size for file in pathlib.Path(source).rglob("*") if file.is_file())
    print(f"{options.gib:g} GiB of voxels, {stored / 2**30:.2f} GiB stored")
    copy = measure_one("copy", output, options)
    ours = measure_one("ours", output, options)
    print(f"       {ours[0] / copy[0]:.2f} times the copy, {float(ours[3]):.3f} times the image read")
    peer = None if options.without_dask else measure_one("dask", output, options)
    if peer:
        print(f"       {peer[0] / ours[0]:.2f} times ours, {peer[2] / ours[2]:.1f} times our memory")
    shutil.rmtree(source)
    row = f"Gaussian, sigma {options.sigma:g}, Zarr to Zarr; {options.gib:g} GiB uint16, memory {options.memory}"
    write_rows(options.csv, [make_row("array", row, f"{ours[0]:.4g}", "s", f"{peer[0]:.4g}" if peer else "",
                                      "dask-image" if peer else "", f"{copy[0]:.4g}", "copy by zarr", "limit*1.3",
                                      device=options.name)])
    return 0


if __name__ == "__main__":
    sys.exit(main())
