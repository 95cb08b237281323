#!/usr/bin/env python3
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Runs whole networks in the program and in other runtimes, and compares every voxel.

    compare_networks.py PROGRAM FOLDER

FOLDER is where an environment with onnxruntime is installed if there is none yet. Ends with 77, and says why, where it
cannot be. The networks are n337, n537, n726 and n926 with few maps, and the network of examples/network.

A network of strides is given every shift of an image (the others have been dropped from the grid), so that its outputs,
interleaved, are those of the dense network."""
import itertools
import pathlib
import subprocess
import sys
import venv

HERE = pathlib.Path(__file__).resolve().parent
SKIPPED = 77


def ensure_environment(folder, packages):
    """The Python of an environment that has these packages of PyPI."""
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
    if subprocess.run([python, "-c", "import " + ", ".join(packages)], capture_output=True).returncode:
        made = subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages],
                              capture_output=True, text=True)
        if made.returncode:
            print(f"skipped: {' and '.join(packages)} cannot be installed: {made.stderr.strip().splitlines()[-1:]}")
            sys.exit(SKIPPED)
    return python


def write_image(path, values):
    """A MetaImage of float32, [z][y][x]."""
    extents = " ".join(str(n) for n in reversed(values.shape))
    header = (f"ObjectType = Image\nNDims = 3\nBinaryData = True\nBinaryDataByteOrderMSB = False\n"
              f"DimSize = {extents}\nElementType = MET_FLOAT\nElementDataFile = LOCAL\n")
    path.write_bytes(header.encode() + values.astype("<f4").tobytes())


def read_image(path, shape, numpy):
    data = path.read_bytes()
    return numpy.frombuffer(data[len(data) - 4 * int(numpy.prod(shape)):], "<f4").reshape(shape)


def run_dense(session, image, pools, field, numpy):
    """What the network of strides gives for every window."""
    extent = [n - field + 1 for n in image.shape]
    result = numpy.empty((3, *extent), numpy.float32)
    stride = 2**pools
    for shift in itertools.product(range(stride), repeat=3):
        part = image[tuple(slice(s, None) for s in shift)]
        if min(n - field for n in part.shape) < 0:
            continue
        got = session.run(None, {"in": part[None, None]})[0][0]
        places = tuple(slice(s, None, stride) for s in shift)
        wanted = result[(slice(None), *places)].shape[1:]
        result[(slice(None), *places)] = got[(slice(None), *(slice(0, n) for n in wanted))]
    return result


def compare(program, folder):
    import numpy
    import onnxruntime
    sys.path.insert(0, str(HERE))
    import make_networks

    random = numpy.random.default_rng(1)
    fields = {"n337": 85, "n537": 163, "n726": 117, "n926": 155}
    failures = 0

    def check(name, expected, got, bound):
        nonlocal failures
        error = float(numpy.abs(expected - got).max() / numpy.abs(expected).max())
        print(f"{name}: largest error over largest output {error:.2g}, {expected.shape[0]} x {expected.shape[1:]} voxels")
        failures += not error <= bound

    def run(model, image, out, channel, *options):
        write_image(folder / "in.mha", image)
        subprocess.run([program, "network", model, folder / "in.mha", out, "--channel", str(channel), *options], check=True,
                       capture_output=True)

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    # With few maps, of which some are always 0, results are small beside what they are made of.
    for name, field in fields.items():
        model = folder / f"{name}.onnx"
        model.write_bytes(make_networks.make_network(name, maps=4))
        session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        image = random.random((field + 3, field + 2, field + 4), dtype=numpy.float32)
        pools = make_networks.LAYERS[name].count(0)
        expected = run_dense(session, image, pools, field, numpy)
        begin = (field - 1) // 2
        inside = tuple(slice(begin, begin + n) for n in expected.shape[1:])
        for precision in ("float32", "reproducible"):
            got = numpy.empty_like(expected)
            for channel in range(3):
                run(model, image, folder / "out.mha", channel, "--precision", precision)
                got[channel] = read_image(folder / "out.mha", image.shape, numpy)[inside]
            check(f"{name}, {precision}", expected, got, 5e-5 if precision == "float32" else 1e-5)
    model = HERE.parent / "examples" / "network" / "brain.onnx"
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    image = random.random((32, 40, 48), dtype=numpy.float32)
    expected = session.run(None, {session.get_inputs()[0].name: image[None, None]})[0][0]
    got = numpy.empty_like(expected)
    for channel in range(len(expected)):
        run(model, image, folder / "out.mha", channel)
        got[channel] = read_image(folder / "out.mha", image.shape, numpy)
    check("brain, float32", expected, got, 1e-5)
    return failures


def main(script, compare, packages):
    """SCRIPT PROGRAM FOLDER makes an environment below FOLDER and runs itself there: SCRIPT PROGRAM FOLDER run."""
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    if len(sys.argv) == 3:
        python = ensure_environment(folder / "environment", packages)
        sys.exit(subprocess.run([python, script, program, folder, "run"]).returncode)
    sys.exit(1 if compare(program, folder) else 0)


if __name__ == "__main__":
    main(__file__, compare, ["numpy", "onnxruntime"])
