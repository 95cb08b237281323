#!/usr/bin/env python3
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Times the program from file to file beside copies of the same file, in the same run.

    fileToFile.py PROGRAM FOLDER [--size GIB] [--memory SIZE] [--threads N] [--backend B] [--repeat N] [--csv FILE]
                  [--filters NAME,...] [--processor-time | --in-memory]

The image is smoothed noise of uint16, in planes of 1024 x 1024, in FOLDER: the storage that is measured. The peer is cp; the
limit is a copy of the file into a new one by as many threads as the program has, each of them reading and writing at
positions. Copies and runs take turns, and a figure is the best of --repeat: storage in memory is as fast as the pages
that it gets. Times are of the whole process. --devices are the program's.

If others use the processors too, --processor-time compares what processors did, of the user and in the system. The limit
is then what cp takes, and what the filter takes of the user in one division, without reading beside it.

Few processors that compute bound it: with --in-memory the limit is the larger of cp and of what the filter computes
for in one division.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import resource
import subprocess
import sys
import time

from benchmarkRows import DEVICE, make_row, write_rows

PLANE = 1024 * 1024 * 2
# Arguments, and the most times the limit that a run may take.
FILTERS = {
    "identity": ([], 1.3),
    "mean": (["--radius", "2"], 1.25),
    "gaussian": (["--sigma", "2"], 1.25),
    "median": (["--radius", "1"], 1.25),
    "opening": (["--radius", "2"], 1.25),
    "h-maxima": (["--height", "500"], 1.5),
}


def make_image(path, planes, program):
    """Noise, smoothed by the program, from one block of 64 planes that repeats with other gray values."""
    header = (
        "ObjectType = Image\nNDims = 3\nBinaryData = True\nBinaryDataByteOrderMSB = False\nCompressedData = False\n"
        f"DimSize = 1024 1024 {planes}\nElementType = MET_USHORT\nElementDataFile = LOCAL\n"
    )
    block = os.urandom(PLANE * 64)
    rough = path.with_name("rough.mha")
    with open(rough, "wb") as file:
        file.write(header.encode())
        for first in range(0, planes, 64):
            file.write(block[: PLANE * min(64, planes - first)])
    subprocess.run([program, "mean", rough, path, "--radius", "1", "--quiet", "--memory", "2G"], check=True)
    rough.unlink()


def copy_by_threads(source, target, threads):
    """Copies the file in pieces of 8 MiB."""
    size = source.stat().st_size
    piece = 8 << 20
    with open(source, "rb", buffering=0) as reader, open(target, "wb", buffering=0) as writer:
        def move(first):
            buffer = bytearray(piece)
            for at in range(first * piece, size, threads * piece):
                count = os.preadv(reader.fileno(), [buffer], at)
                if count != min(piece, size - at) or os.pwrite(writer.fileno(), memoryview(buffer)[:count], at) != count:
                    raise OSError(f"{target}: a piece was not copied whole")

        with concurrent.futures.ThreadPoolExecutor(threads) as pool:
            list(pool.map(move, range(threads)))


def processor_seconds():
    """Times of the programs that have ended: of the user, in the system."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime, usage.ru_stime


def timed(target, call):
    """The seconds of a call that makes a new file, which is removed afterwards: elapsed, of the user, in the system."""
    target.unlink(missing_ok=True)
    before = processor_seconds()
    begin = time.monotonic()
    result = call()
    seconds = time.monotonic() - begin
    after = processor_seconds()
    target.unlink()
    return (seconds, after[0] - before[0], after[1] - before[1]), result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--size", type=float, default=4, help="GiB of the image (4)")
    parser.add_argument("--memory", default="512M", help="the program's host memory (512M)")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="threads of the limit's copy (all)")
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--devices")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--filters", default=",".join(FILTERS))
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--processor-time", action="store_true")
    kinds.add_argument("--in-memory", action="store_true")
    parser.add_argument("--csv")
    parser.add_argument("--name", default=DEVICE)
    arguments = parser.parse_args()
    source = arguments.folder / "benchmark-in.mha"
    target = arguments.folder / "benchmark-out.mha"
    planes = max(1, round(arguments.size * (1 << 30) / PLANE))
    make_image(source, planes, arguments.program)
    rows = []
    failed = False
    try:
        for name in arguments.filters.split(","):
            options, target_ratio = FILTERS[name]
            command = [arguments.program, name, source, target, *options, "--memory", arguments.memory]
            command += ["--backend", arguments.backend, "--json"]
            if arguments.devices:
                command += ["--devices", arguments.devices]
            best = {}
            report = {}
            calls = {
                "cp": lambda: subprocess.run(["cp", source, target], check=True),
                "copy": lambda: copy_by_threads(source, target, arguments.threads),
                "ours": lambda: subprocess.run(command, stdout=subprocess.PIPE, check=True),
            }
            whole = command[: command.index("--memory")] + ["--divisions", "1", "--backend", arguments.backend, "--json"]
            if arguments.processor_time or arguments.in_memory:
                calls["copy"] = lambda: subprocess.run(whole, stdout=subprocess.PIPE, check=True)
            for _ in range(arguments.repeat):
                for what, call in calls.items():
                    times, result = timed(target, call)
                    seconds = times[0]
                    if arguments.processor_time:
                        seconds = times[1] if what == "copy" else times[1] + times[2]
                    elif arguments.in_memory and what == "copy":
                        seconds = json.loads(result.stdout)["secondsComputing"]
                    if seconds < best.get(what, float("inf")):
                        best[what] = seconds
                        if what == "ours":
                            report = json.loads(result.stdout)
            limit_name = f"a copy by {arguments.threads} threads"
            if arguments.processor_time:
                best["copy"] += best["cp"]
                limit_name = "cp and computing in memory"
            elif arguments.in_memory:
                best["copy"] = max(best["copy"], best["cp"])
                limit_name = "the larger of cp and computing in memory"
            ratio = best["ours"] / best["copy"]
            print(
                f"{name:10} {best['ours']:7.2f} s, {ratio:5.2f} times {limit_name} ({best['copy']:.2f} s), "
                f"{best['ours'] / best['cp']:5.2f} times cp ({best['cp']:.2f} s)",
                flush=True,
            )
            print("   ", json.dumps(report), flush=True)
            row = f"{name} {' '.join(options)}; {planes / 512:.4g} GiB uint16, {arguments.memory}".replace("  ", " ")
            row += ", processor time" if arguments.processor_time else ""
            rows.append(make_row("file-to-file", row.replace(" ;", ";"), f"{best['ours']:.3g}", "s", f"{best['cp']:.3g}", "cp",
                                 f"{best['copy']:.3g}", limit_name, f"limit*{target_ratio}", device=arguments.name))
    except subprocess.CalledProcessError as error:
        print(error, file=sys.stderr)
        failed = True
    finally:
        source.unlink(missing_ok=True)
        target.unlink(missing_ok=True)
    write_rows(arguments.csv, rows)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
