#!/usr/bin/env python3
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Times the program from OME-Zarr to OME-Zarr beside copies of the store by tensorstore and zarr.

    zarrFiles.py PROGRAM FOLDER [--gib 4] [--memory 1G] [--threads N] [--rounds 2] [--processor-time] [--csv FILE]

Needs numpy, tensorstore and zarr. The image is uint16 of 2048 x 2048 planes, noise of 12 bits smoothed by a box, in chunks of
128 x 128 x 32 and shards of 1024 x 1024 x 32 voxels, Zstandard at level 3; so is each output. FOLDER needs room for three
of it. Each run is a separate process; the shortest of several rounds counts, in which all take turns. Copies have a
thread for each of `threads`, which reads a shard and writes it. With --processor-time the seconds of all processors count, for a
machine that does other work at a time.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import shutil
import sys

from benchmarkRows import DEVICE, boxes_of, make_row, measure, write_rows

SHARD, CHUNK = (32, 1024, 1024), (32, 128, 128)
LAYOUT = "chunks=128x128x32,shards=1024x1024x32,codec=zstd:3"
TURN = "0.99985,-0.01745,0,18,0.01745,0.99985,0,-17.7,0,0,1,0.3"
OURS = {
    "identity": ["identity", f"--zarr={LAYOUT}"],
    "identity with its levels": ["identity", f"--zarr={LAYOUT},pyramid=mean"],
    "gaussian --sigma 2": ["gaussian", "--sigma=2", f"--zarr={LAYOUT}"],
    "resample, turned by a degree, linear": ["resample", f"--affine={TURN}", f"--zarr={LAYOUT}"],
}


def create(path, shape):
    import zarr

    return zarr.create_array(path, shape=shape, chunks=CHUNK, shards=SHARD, dtype="uint16", fill_value=0, overwrite=True,
                             dimension_names=["z", "y", "x"], compressors=zarr.codecs.ZstdCodec(level=3))


def make(path, planes):
    import numpy as np

    noise = np.random.default_rng(1).integers(0, 4096, tuple(n + 65 for n in SHARD), dtype="uint16")
    for axis in range(3):
        noise = (np.delete(noise, 0, axis) + np.delete(noise, -1, axis)) // 2
    image = create(path, (planes, 2048, 2048))
    for number, where in enumerate(boxes_of(image.shape, SHARD)):
        begins = (number * step % 61 for step in (17, 29, 41))
        image[where] = noise[tuple(slice(begin, begin + a.stop - a.start) for begin, a in zip(begins, where))]


def copy(library, source, output, threads):
    import zarr

    image = zarr.open(source, mode="r")
    to = create(output, image.shape)
    if library == "tensorstore":
        import tensorstore

        context = tensorstore.Context({"data_copy_concurrency": {"limit": threads}})
        image, to = (tensorstore.open({"driver": "zarr3", "kvstore": "file://" + path}, open=True, context=context).result()
                     for path in (source, output))

        def one(where):
            to[where].write(image[where]).result()
    else:
        zarr.config.set({"threading.max_workers": threads})

        def one(where):
            to[where] = image[where]

    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        list(pool.map(one, boxes_of(image.shape, SHARD)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("folder")
    parser.add_argument("--gib", type=float, default=4)
    parser.add_argument("--memory", default="1G")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--processor-time", action="store_true")
    parser.add_argument("--csv")
    parser.add_argument("--name", default=DEVICE)
    parser.add_argument("--run", help=argparse.SUPPRESS)
    options = parser.parse_args()
    folder = pathlib.Path(options.folder).resolve()
    source, output = str(folder / "source.zarr"), str(folder / "output.ome.zarr")
    if options.run:
        make(source, int(options.gib * 128)) if options.run == "make" else copy(options.run, source, output, options.threads)
        return 0
    folder.mkdir(parents=True, exist_ok=True)
    again = [sys.executable, __file__, options.program, str(folder), *sys.argv[3:], "--run"]
    measure([*again, "make"], None)
    common = [f"--memory={options.memory}", f"--threads={options.threads}", "--backend=cpu", "--quiet", "--json"]
    runs = {library: [*again, library] for library in ("tensorstore", "zarr")}
    runs.update({row: [options.program, words[0], source, output, *words[1:], *common] for row, words in OURS.items()})
    best = {}
    for _ in range(options.rounds):
        for name, words in runs.items():
            *figures, printed = measure(words, output)
            figures = (*figures, json.loads(printed)["secondsComputing"] if printed else 0)
            best[name] = min(best.get(name, figures), figures)
            print(f"{name:40} {figures[0]:8.1f} s, {figures[1]:8.1f} s of processors, {figures[2]:6.0f} MiB at most, "
                  f"{figures[3]:8.1f} s of computing", flush=True)
    shutil.rmtree(source)
    seconds = {name: figures[1 if options.processor_time else 0] for name, figures in best.items()}
    # The name, the limit and what a run may take of that.
    copies = min(("tensorstore", "zarr"), key=seconds.get)
    limits = {"identity": (f"a copy by {copies}", seconds[copies], "limit*1.1"),
              "identity with its levels": ("the same without levels", seconds["identity"], "limit*1.15")}
    rows = []
    for row in OURS:
        name, limit, target = "our copy", seconds["identity"], ""
        if row in limits:
            name, limit, target = limits[row]
        elif not options.processor_time:
            name, limit = "the longer of our copy and computing", max(limit, best[row][3])
            target = "limit*1.2" if row.startswith("gaussian") else "limit*2"
        kind = ", processor time" if options.processor_time else ""
        rows.append(make_row("file-to-file", f"{row}, OME-Zarr; {options.gib:g} GiB uint16, {options.memory}{kind}",
                             f"{seconds[row]:.4g}", "s", f"{seconds[copies]:.4g}", f"a copy by {copies}", f"{limit:.4g}", name,
                             target, device=options.name))
        print(f"{row:40} {seconds[row] / limit:.2f} times {name}")
    write_rows(options.csv, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
