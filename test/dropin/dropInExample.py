# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Runs a program that knows nothing of Chunkwise as it is and with the plug-in: the same bits, and the report names what
was served.

    dropInExample.py EXAMPLE PLUGIN_FOLDER OTHER_VERSION_FOLDER WORK_FOLDER
"""

import os
import random
import subprocess
import sys


def run(example, image, threads, variables):
    """The program's lines, as (seconds, checksum) by filter, and all that it said elsewhere."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("CHUNKWISE_DROP_IN", "ITK_AUTOLOAD"))}
    environment.update(variables)
    done = subprocess.run([example, image, str(threads)], env=environment, capture_output=True, text=True)
    results = {}
    for line in done.stdout.splitlines():
        words = line.split()
        if len(words) in (2, 3):
            results[words[0]] = (float(words[1]), words[-1])
    return done.returncode, results, done.stdout + done.stderr


def checksums(results):
    return {name: value[1] for name, value in results.items() if name != "all"}


def expect(condition, *what):
    if not condition:
        sys.exit("failed: " + " ".join(map(str, what)))


def write_volume(name, size):
    generator = random.Random(5)
    voxels = bytes(generator.randrange(256) if i % 2 == 0 else 0 for i in range(2 * size**3))
    with open(name, "wb") as file:
        file.write(
            f"ObjectType = Image\nNDims = 3\nBinaryData = True\nBinaryDataByteOrderMSB = False\n"
            f"DimSize = {size} {size} {size}\nElementType = MET_SHORT\nElementDataFile = LOCAL\n".encode()
        )
        file.write(voxels)


def test(example, plugins, other, work):
    os.makedirs(work, exist_ok=True)
    image = os.path.join(work, "volume.mha")
    report = os.path.join(work, "report.txt")
    write_volume(image, 40)

    # ITK opens all that is in the folder.
    expect(len(os.listdir(plugins)) == 1, "not one plug-in", os.listdir(plugins))

    def ours(**more):
        if os.path.exists(report):
            os.remove(report)
        variables = {"ITK_AUTOLOAD_PATH": plugins, "CHUNKWISE_DROP_IN_REPORT": report}
        variables.update(more)
        code, results, said = run(example, image, 2, variables)
        lines = open(report).read().splitlines() if os.path.exists(report) else []
        return code, results, said, [line.split("\t") for line in lines]

    code, plain, said = run(example, image, 2, {})
    expect(code == 0 and len(plain) == 5, said)

    classes = ["MedianImageFilter", "GrayscaleMorphologicalOpeningImageFilter", "ReconstructionByDilationImageFilter",
               "MeanImageFilter"]
    for level in ("exact", "fast"):
        code, results, said, lines = ours(CHUNKWISE_DROP_IN=level)
        expect(code == 0 and checksums(results) == checksums(plain), level, results, plain, said)
        expect([line[0] for line in lines] == classes, lines)
        for line in lines:
            expect(len(line) == 8 and line[1] == "served" and line[2] in ("cpu", "cuda"), line)
            expect(float(line[3]) > 0 and line[4:] == ["40x40x40", "int16", "int16", "-"], line)

    code, results, said, lines = ours(CHUNKWISE_DROP_IN="off")
    expect(code == 0 and checksums(results) == checksums(plain) and not lines, "off", lines, said)

    code, results, said, lines = ours(CHUNKWISE_DROP_IN_EXCEPT="MedianImageFilter,MeanImageFilter")
    expect(code == 0 and checksums(results) == checksums(plain), "except", said)
    expect([line[0] for line in lines] == classes[1:3], lines)

    code, results, said, lines = ours(CHUNKWISE_DROP_IN_SMALLEST="64001")
    expect(code == 0 and checksums(results) == checksums(plain), "smallest", said)
    expect(all(line[1:3] == ["not served", "itk"] and line[7] == "fewer than 64001 voxels" for line in lines), lines)

    code, results, said, _ = ours(CHUNKWISE_DROP_IN="quick")
    expect(code != 0 and "CHUNKWISE_DROP_IN" in said and '"quick"' in said and "exact, fast or off" in said, code, said)

    # A plug-in of another version says so once and replaces nothing.
    code, results, said, lines = ours(ITK_AUTOLOAD_PATH=other)
    expect(code == 0 and checksums(results) == checksums(plain) and not lines, "other version", said)
    expect(said.count("nothing is replaced") == 1, said)


if __name__ == "__main__":
    test(*sys.argv[1:])
