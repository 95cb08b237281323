#!/usr/bin/env python3
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""A U-Net over a whole volume: Chunkwise densely, and MONAI's SlidingWindowInferer at overlaps of 0.25 and 0.5.

    unetPeers.py PROGRAM FOLDER [--extent 128] [--window 96] [--features 32,32,64,128,256,32] [--backend cpu|cuda]
                 [--threads 2] [--precision float32] [--memory 200M]

MONAI's BasicUNet with batch normalization and random weights. Run it with a Python that has torch, monai, onnx and numpy;
FOLDER gets the network and the images. Each run is a separate process. Times are of computing alone, without imports and
files, wall and processors; peak memory is the process's, beside what it held before it began (torch) or in all
(Chunkwise). If it fits, torch computes the whole volume at once: what the dense result must be, while windows see zeros
beyond their edges."""
import argparse
import json
import os
import pathlib
import resource
import subprocess
import sys
import time


def make_network(torch, features):
    from monai.networks.nets import BasicUNet

    torch.manual_seed(1)
    network = BasicUNet(spatial_dims=3, in_channels=1, out_channels=2, features=features, norm="batch").eval()
    for module in network.modules():
        # For extents that are not multiples of 16, which are not used here; its export reshapes constants.
        if hasattr(module, "is_pad"):
            module.is_pad = False
        if isinstance(module, torch.nn.BatchNorm3d):
            torch.nn.init.uniform_(module.weight, 0.5, 1.5)
            torch.nn.init.uniform_(module.bias, -0.5, 0.5)
            torch.nn.init.uniform_(module.running_mean, -0.2, 0.2)
            torch.nn.init.uniform_(module.running_var, 0.5, 1.5)
    return network


def run_torch(arguments, overlap):
    """In a separate process: overlap < 0 is the whole volume at once. Prints what it took as JSON."""
    import monai
    import numpy
    import torch

    torch.set_num_threads(arguments.threads)
    device = "cuda" if arguments.backend == "cuda" else "cpu"
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = arguments.precision == "tensorfloat32"
    network = make_network(torch, arguments.features).to(device)
    image = torch.from_numpy(numpy.load(arguments.folder / "in.npy"))[None, None]
    window = [arguments.window] * 3
    inferer = monai.inferers.SlidingWindowInferer(window, sw_batch_size=1, overlap=max(overlap, 0), sw_device=device,
                                                  device="cpu")
    with torch.inference_mode():
        network(torch.zeros(1, 1, *[32] * 3, device=device))
        held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        wall, processor = time.perf_counter(), time.process_time()
        result = network(image.to(device)).cpu() if overlap < 0 else inferer(image, network)
        wall, processor = time.perf_counter() - wall, time.process_time() - processor
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    numpy.save(arguments.folder / "torch.npy", result[0].float().numpy())
    print(json.dumps({"seconds": wall, "processors": processor, "bytes": 1024 * (peak - held), "all": 1024 * peak}))


def run_chunkwise(arguments):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([arguments.program, "network", arguments.folder / "unet.onnx", arguments.folder / "in.mha",
                           arguments.folder / "out.mha", "--output-components", "--boundary", "constant", "--backend",
                           arguments.backend, "--threads", str(arguments.threads), "--precision", arguments.precision,
                           "--json", "--overwrite", "--quiet",
                           *(["--memory", arguments.memory] if arguments.memory else [])], capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    report = json.loads(done.stdout)
    return {"seconds": report["secondsComputing"], "bytes": report["peakMemory"], "all": report["peakMemory"],
            "processors": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--extent", type=int, default=128)
    parser.add_argument("--window", type=int, default=96)
    parser.add_argument("--features", default="32,32,64,128,256,32", type=lambda text: [int(n) for n in text.split(",")])
    parser.add_argument("--backend", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--precision", choices=("float32", "tensorfloat32", "reproducible"), default="float32")
    parser.add_argument("--memory", help="Chunkwise's limit")
    parser.add_argument("--overlap", type=float, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.overlap is not None:
        run_torch(arguments, arguments.overlap)
        return

    import numpy
    import torch

    arguments.folder.mkdir(parents=True, exist_ok=True)
    torch.onnx.export(make_network(torch, arguments.features), torch.zeros(1, 1, 32, 32, 32),
                      str(arguments.folder / "unet.onnx"), dynamo=False, input_names=["in"], output_names=["out"],
                      opset_version=17, dynamic_axes={"in": {2: "z", 3: "y", 4: "x"}, "out": {2: "z", 3: "y", 4: "x"}})
    image = numpy.random.default_rng(2).random([arguments.extent] * 3, dtype=numpy.float32)
    numpy.save(arguments.folder / "in.npy", image)
    header = ("ObjectType = Image\nNDims = 3\nBinaryData = True\nDimSize = {0} {0} {0}\nElementType = MET_FLOAT\n"
              "ElementDataFile = LOCAL\n").format(arguments.extent)
    (arguments.folder / "in.mha").write_bytes(header.encode() + image.tobytes())

    own = run_chunkwise(arguments)
    data = (arguments.folder / "out.mha").read_bytes()[-8 * image.size:]
    result = numpy.moveaxis(numpy.frombuffer(data, numpy.float32).reshape(*image.shape, 2), -1, 0)
    voxels = image.size

    def say(name, run, rest=""):
        print(f"{name}: {voxels / run['seconds'] / 1e6:.3g} Mvoxel/s, {run['seconds']:.3g} s, {run['processors']:.3g} s of "
              f"processors; {run['bytes'] / 2**20:.0f} MiB of {run['all'] / 2**20:.0f}{rest}", flush=True)

    print(f"BasicUNet{tuple(arguments.features)}, {arguments.extent}^3 voxels, {arguments.precision}, {arguments.backend}")
    say("Chunkwise, dense", own)
    for name, overlap in (("torch, whole", -1), (f"MONAI, windows of {arguments.window}, overlap 0.25", 0.25),
                          (f"MONAI, windows of {arguments.window}, overlap 0.5", 0.5)):
        done = subprocess.run([sys.executable, *sys.argv, f"--overlap={overlap}"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": str(arguments.threads)})
        if done.returncode:
            print(name + ": failed:", (done.stderr.strip().splitlines() or [str(done.returncode)])[-1])
            continue
        run = json.loads(done.stdout.splitlines()[-1])
        other = numpy.load(arguments.folder / "torch.npy")
        error = numpy.abs(other - result).max() / numpy.abs(other).max()
        say(name, run, f"; Chunkwise is {run['seconds'] / own['seconds']:.2f} times as fast "
            f"({run['processors'] / own['processors']:.2f} by processors), with {own['bytes'] / max(run['bytes'], 1):.2f} of "
            f"its memory; results differ by {error:.2g}")


if __name__ == "__main__":
    main()
