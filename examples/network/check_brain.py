#!/usr/bin/env python3
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Runs the program's `network` command with brain.onnx on two volumes of Debian's package mricron-data and compares the
masks with ch2bet > 0. Exits with 1 if one agrees less than it should.

    check_brain.py CHUNKWISE [--network FILE] [--templates DIR] [-- OPTION...]

The text after -- is given to the program as it is, say "--memory 200M".
"""
import argparse
import os
import subprocess
import sys
import tempfile

import nibabel
import numpy

from brain_volumes import InputScale, Templates, dice, load, on_grid_of_head

# The least Dice with ch2bet > 0. README.md has what was measured.
LeastOfHead = 0.92
LeastOfBetter = 0.71


def mask_of(program, network, options, image, folder):
    output = os.path.join(folder, "mask.nii.gz")
    command = [program, "network", network, image, output, "--result", "argmax", "--input-scale", repr(InputScale)]
    command += ["--output-type", "uint8", *options]
    print(" ".join(command), flush=True)
    status = subprocess.run(command).returncode
    if status:
        sys.exit(f"{program} ended with {status}")
    mask = nibabel.load(output)
    values = numpy.asarray(mask.dataobj)
    if values.dtype != numpy.uint8 or values.max(initial=0) > 1:
        sys.exit(f"{output}: 8-bit voxels of 0 and 1 are expected, not {values.dtype} up to {values.max(initial=0)}")
    return values > 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    default = os.path.join(os.path.dirname(os.path.abspath(__file__)), "brain.onnx")
    parser.add_argument("--network", default=default)
    parser.add_argument("--templates", default=Templates, help="where mricron-data's volumes are")
    # argparse takes what follows "--" for positional arguments only where no option came before.
    words = sys.argv[1:]
    end = words.index("--") if "--" in words else len(words)
    arguments, options = parser.parse_args(words[:end]), words[end + 1 :]

    head = os.path.join(arguments.templates, "ch2.nii.gz")
    brain = load("ch2bet.nii.gz", arguments.templates) > 0
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        # The network was made for voxels of 1 mm, which ch2better does not have.
        better = os.path.join(folder, "better.nii.gz")
        voxels = on_grid_of_head(load("ch2better.nii.gz", arguments.templates), brain.shape)
        nibabel.save(nibabel.Nifti1Image(voxels.astype(numpy.uint8), nibabel.load(head).affine), better)
        for name, image, least in (("ch2", head, LeastOfHead), ("ch2better", better, LeastOfBetter)):
            mask = mask_of(arguments.program, arguments.network, options, image, folder)
            if mask.shape != brain.shape:
                sys.exit(f"{name}: the mask has {mask.shape} voxels, the image {brain.shape}")
            agreement = dice(mask, brain)
            print(f"{name}: Dice {agreement:.4f}, at least {least} is expected", flush=True)
            failed = failed or agreement < least
    if failed:
        sys.exit("The network finds less of the brain than it should")


main()
