#!/usr/bin/env python3
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Compares networks in windows with MONAI's sliding_window_inference, voxel by voxel.

    compare_patches.py PROGRAM FOLDER

FOLDER is where an environment with torch, monai, onnx is installed if there is none yet. Ends with 77, and says why,
where it cannot be: they are gigabytes."""
import itertools
import pathlib
import subprocess
import sys
import venv

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


def make_network(torch):
    """Two grids, instance normalization, random weights."""
    torch.manual_seed(1)

    class Network(torch.nn.Module):
        def __init__(self):
            super().__init__()
            def block(inputs, outputs, stride=1):
                return torch.nn.Sequential(torch.nn.Conv3d(inputs, outputs, 3, stride, 1),
                                           torch.nn.InstanceNorm3d(outputs, affine=True), torch.nn.LeakyReLU(0.1))
            self.first, self.down = block(1, 6), block(6, 8, 2)
            self.up = torch.nn.ConvTranspose3d(8, 6, 2, 2)
            self.last = torch.nn.Conv3d(12, 3, 1)
            for layer in (self.first[1], self.down[1]):
                torch.nn.init.uniform_(layer.weight, 0.5, 1.5)
                torch.nn.init.uniform_(layer.bias, -0.5, 0.5)

        def forward(self, x):
            first = self.first(x)
            return self.last(torch.cat([first, self.up(self.down(first))], 1))

    return Network().eval()


def compare(program, folder):
    import monai
    import torch
    import numpy

    network = make_network(torch)
    model = folder / "patches.onnx"
    torch.onnx.export(network, torch.zeros(1, 1, 16, 16, 16), str(model), dynamo=False, input_names=["in"],
                      output_names=["out"], opset_version=17,
                      dynamic_axes={"in": {2: "z", 3: "y", 4: "x"}, "out": {2: "z", 3: "y", 4: "x"}})
    failures = 0
    random = numpy.random.default_rng(2)
    trials = [((21, 30, 26), (16, 16, 16)), ((12, 40, 19), (16, 20, 24)), ((16, 16, 16), (16, 16, 16))]
    for (shape, window), overlap, mode in itertools.product(trials, (0, 0.25, 0.5), ("constant", "gaussian")):
        image = random.random(shape, dtype=numpy.float32)
        with torch.inference_mode():
            expected = monai.inferers.sliding_window_inference(torch.from_numpy(image)[None, None], window, 1, network,
                                                               overlap=overlap, mode=mode)[0].numpy()
        write_image(folder / "in.mha", image)
        for channel in range(3):
            done = subprocess.run([program, "network", model, folder / "in.mha", folder / "out.mha", "--channel",
                                   str(channel), "--mode", "patches", "--patch-size",
                                   ",".join(str(n) for n in reversed(window)), "--overlap", str(overlap), "--weighting",
                                   mode, "--boundary", "constant"], capture_output=True, text=True)
            if done.returncode:
                print(done.stderr)
                failures += 1
                continue
            got = read_image(folder / "out.mha", image.shape, numpy)
            error = float(numpy.abs(got - expected[channel]).max() / numpy.abs(expected).max())
            print(f"{shape} in windows of {window}, overlap {overlap}, {mode}: {error:.2g}")
            failures += not error <= 1e-5
    dense = subprocess.run([program, "network", model, folder / "in.mha", folder / "out.mha"], capture_output=True,
                           text=True)
    if dense.returncode == 0 or "patches" not in dense.stderr:
        print("a network that normalizes by its windows was run densely", dense.stderr)
        failures += 1
    return failures


def main():
    """SCRIPT PROGRAM FOLDER makes an environment below FOLDER and runs itself there: SCRIPT PROGRAM FOLDER run."""
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    if len(sys.argv) == 3:
        python = ensure_environment(folder / "environment", ["torch", "monai", "onnx"])
        sys.exit(subprocess.run([python, __file__, program, folder, "run"]).returncode)
    sys.exit(1 if compare(program, folder) else 0)


if __name__ == "__main__":
    main()
