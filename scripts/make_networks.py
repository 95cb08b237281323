#!/usr/bin/env python3
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Writes n337, n537, n726 and n926, the networks of the ZNNi paper (table III), as ONNX files.

80 maps, 3 outputs, a ReLU after each convolution, weights from a seed: uniform, of the variance that keeps the values'
size. With --maps fewer maps, for tests.

    make_networks.py FOLDER [NAME...] [--maps N]
"""
import argparse
import array
import importlib.util
import math
import pathlib
import random
import sys

# Kernels of convolutions, 0 for a pooling by 2.
LAYERS = {
    "n337": [2, 0, 3, 0, 3, 0, 3, 3, 3, 3],
    "n537": [4, 0, 5, 0, 5, 0, 5, 5, 5, 5],
    "n726": [6, 0, 7, 0, 7, 7, 7, 7],
    "n926": [8, 0, 9, 0, 9, 9, 9, 9],
}


def load_writer():
    """The writer of ONNX files that the tests have: no library is needed."""
    path = pathlib.Path(__file__).resolve().parent.parent / "test" / "program" / "adversary" / "networks.py"
    spec = importlib.util.spec_from_file_location("networks", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def make_weights(seed, outputs, inputs, kernel):
    """[out][in][z][y][x] as little-endian float32."""
    source = random.Random(seed)
    limit = math.sqrt(6.0 / (inputs * kernel**3))
    values = array.array("f", (limit * (2 * source.random() - 1) for _ in range(outputs * inputs * kernel**3)))
    if sys.byteorder == "big":
        values.byteswap()
    return values.tobytes()


def make_network(name, maps=80):
    onnx = load_writer()
    nodes, tensors = [], []
    at, channels = "in", 1
    layers = LAYERS[name]
    for i, kernel in enumerate(layers):
        last = i + 1 == len(layers)
        if kernel == 0:
            nodes.append(onnx.node("MaxPool", [at], f"p{i}", kernel_shape=[2] * 3, strides=[2] * 3))
            at = f"p{i}"
            continue
        outputs = 3 if last else maps
        shape = (outputs, channels, kernel, kernel, kernel)
        tensors.append(b"".join(onnx.field(1, extent) for extent in shape) + onnx.field(2, 1)
                       + onnx.field(8, f"w{i}") + onnx.field(9, make_weights(i, outputs, channels, kernel)))
        nodes.append(onnx.node("Conv", [at, f"w{i}"], f"c{i}", kernel_shape=[kernel] * 3))
        at = "out" if last else f"r{i}"
        nodes.append(onnx.node("Relu", [f"c{i}"], at))
        channels = outputs
    return onnx.model(nodes, tensors, channels_out=3)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("names", nargs="*", metavar="NAME", default=[], help="which ones; all of them if none is given")
    parser.add_argument("--maps", type=int, default=80)
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in LAYERS]
    if unknown or options.maps < 1:
        parser.error(f"{unknown[0]} is none of {', '.join(LAYERS)}" if unknown else "--maps: at least 1")
    options.folder.mkdir(parents=True, exist_ok=True)
    for name in options.names or LAYERS:
        (options.folder / f"{name}.onnx").write_bytes(make_network(name, options.maps))


if __name__ == "__main__":
    main()
