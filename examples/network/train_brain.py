#!/usr/bin/env python3
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Trains a small network that finds the brain in a T1 image of a head, and writes it as ONNX.

    train_brain.py [OUT.onnx] [--steps 80,30,70] [--threads 1] [--templates DIR] [--weights FILE]

The data are Debian's package mricron-data: ch2.nii.gz, a head of 1 mm voxels, and ch2bet.nii.gz, its brain, whose
voxels above 0 are the labels. Only the left half of the head is trained on, joined to its own mirror image; the right
half is kept for the score. PyTorch is Debian's python3-torch, nibabel python3-nibabel.

The network has one input channel, 8-bit voxels / 255, and two output channels, logits of background and brain: the
larger one wins (argmax). It is a U-Net of four grids (1, 2, 4, 8 mm), with convolutions of 3 x 3 x 3 that pad with
zeros. Each extent of the image must be a multiple of 8 where the program that runs it does not see to that.
"""
import argparse
import math
import os
import time

import numpy
import torch
from torch import nn
from torch.nn import functional

from brain_volumes import InputScale, Templates, dice, load, on_grid_of_head

Block = 96  # voxels along each axis of what one step at 1 mm sees


def convolution(inputs, outputs, dilation=1):
    """A convolution that keeps the grid. The export folds the normalization into its weights."""
    return nn.Sequential(
        nn.Conv3d(inputs, outputs, 3, padding=dilation, dilation=dilation, bias=False),
        nn.BatchNorm3d(outputs),
        nn.ReLU(),
    )


class BrainNetwork(nn.Module):
    """Neck and brain are told apart on the grids of 2, 4 and 8 mm, where a layer costs little and sees far;
    that of 1 mm finds the outline."""

    def __init__(self):
        super().__init__()
        self.fine = convolution(1, 8)
        self.middle = convolution(1, 8)
        self.coarse = nn.Sequential(convolution(8, 24), convolution(24, 24, 2))
        self.coarsest = nn.Sequential(convolution(24, 24), convolution(24, 24, 2), convolution(24, 24))
        self.coarse_up = convolution(24 + 24, 16)
        self.middle_up = convolution(16 + 8, 8)
        self.fine_up = convolution(8 + 8, 8)
        self.logits = nn.Conv3d(8, 2, 3, padding=1)
        self.coarse_logits = nn.Conv3d(16, 2, 3, padding=1)  # for training alone
        self.down = nn.MaxPool3d(2)
        self.up = nn.Upsample(scale_factor=2, mode="nearest")

    def features(self, image):
        """Images of 2 and of 4 mm, from an image of 2 mm."""
        middle = self.middle(image)
        coarse = self.coarse(self.down(middle))
        coarsest = self.coarsest(self.down(coarse))
        return middle, self.coarse_up(torch.cat([self.up(coarsest), coarse], 1))

    def outline(self, image, middle, coarse):
        middle = self.middle_up(torch.cat([self.up(coarse), middle], 1))
        return self.logits(self.fine_up(torch.cat([self.up(middle), self.fine(image)], 1)))

    def forward(self, image):
        return self.outline(image, *self.features(self.down(image)))


def as_tensor(voxels):
    """[1][1][z][y][x]: the order of axes in which the program gives images to a network."""
    return torch.from_numpy(numpy.ascontiguousarray(voxels.T))[None, None]


def padded(voxels):
    """Continues the edge at the upper ends, up to multiples of 8, as the program does."""
    return numpy.pad(voxels, [(0, -n % 8) for n in voxels.shape], mode="edge")


def first_half_mirrored(voxels):
    """The half of lower x and its mirror image; the plane in the middle is nobody's and stays once."""
    half = voxels[: voxels.shape[0] // 2 + 1]
    return numpy.concatenate([half, half[-2::-1]])


def random(low, high):
    return low + (high - low) * torch.rand(()).item()


def random_head(image, label):
    """The head turned, scaled, shifted, with other intensities: what another scanner might have made of it. Beyond the
    volume are zeros: an image that ends within the head is nothing special."""
    rotation = torch.eye(3)
    shift = torch.zeros(3)
    turned = random(0, 1) < 0.75  # the others are not blurred by interpolation either
    if turned:
        for axis in range(3):
            angle = random(-0.2, 0.2)
            turn = torch.eye(3)
            i, j = [a for a in range(3) if a != axis]
            turn[i, i] = turn[j, j] = math.cos(angle)
            turn[i, j] = math.sin(angle)
            turn[j, i] = -math.sin(angle)
            rotation = rotation @ turn
        zoom = random(0.87, 1.15)
        rotation = rotation * torch.tensor([zoom * random(0.95, 1.05) for _ in range(3)])
        shift = torch.tensor([random(-0.25, 0.25) for _ in range(3)])
    if random(0, 1) < 0.5:
        rotation[:, 0] = -rotation[:, 0]
    # In coordinates from -1 to 1 across the volume.
    size = torch.tensor(image.shape[:1:-1], dtype=torch.float32)  # x, y, z
    matrix = torch.cat([rotation * size / size[:, None], shift[:, None]], 1)[None]
    grid = functional.affine_grid(matrix, image.shape, align_corners=False)
    image = functional.grid_sample(image, grid, align_corners=False)
    label = functional.grid_sample(label, grid, mode="nearest", align_corners=False)
    if random(0, 1) < 0.1:
        image = image * label  # a brain that was extracted already
    gamma = random(0.8, 1.25)
    image = random(0.6, 1.5) * 0.4 * (image.clamp(min=0) / 0.4) ** gamma  # 0.4 is the brightness of white matter
    bias = functional.interpolate(torch.randn(1, 1, 3, 3, 3), image.shape[2:], mode="trilinear", align_corners=True)
    image = image * torch.exp(random(0, 0.2) * bias)
    image = image + max(0, random(-0.02, 0.03)) * torch.randn_like(image)
    return image.clamp(min=0), label


def loss_of(logits, label):
    """Cross-entropy, which each voxel counts in, and Dice, which is what is scored."""
    target = label[:, 0].long()
    brain = functional.softmax(logits, 1)[:, 1]
    overlap = (2 * (brain * target).sum() + 1) / (brain.sum() + target.sum() + 1)
    return functional.cross_entropy(logits, target) + 1 - overlap


def train_stage(title, parameters, rate, trial, steps):
    """`trial` gives logits and labels."""
    optimizer = torch.optim.Adam(parameters, lr=rate)
    begin = time.time()
    for step in range(1, steps + 1):
        for group in optimizer.param_groups:
            group["lr"] = rate * min(1, step / 10) * (0.5 + 0.5 * math.cos(math.pi * (step - 1) / steps)) + 1e-5
        loss = loss_of(*trial())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"{title}, step {step}: loss {loss.item():.3f}, {time.time() - begin:.0f} s", flush=True)


def train(image, label, steps):
    """First the layers that see the whole head, for voxels of 4 mm; then the layers that find the outline, on blocks, given
    the features of the former. After the first stage the normalizations of the former keep their statistics: with those
    of two heads at a time the network would learn to rely on what it does not have when it is run."""
    network = BrainNetwork()
    middle_image = functional.max_pool3d(image, 2)
    middle_label = (functional.avg_pool3d(label, 2) > 0.5).float()

    def trial_of_coarse():
        # Two heads at a time: PyTorch 1.13 takes a slow path for small single ones.
        heads = [random_head(middle_image, middle_label) for _ in range(2)]
        images, labels = (torch.cat(tensors) for tensors in zip(*heads))
        logits = network.coarse_logits(network.features(images)[1])
        return logits, (functional.avg_pool3d(labels, 2) > 0.5).float()

    def trial_of_outline():
        some_image, some_label = random_head(image, label)
        with torch.no_grad():
            middle, coarse = network.features(network.down(some_image))
        corner = [4 * torch.randint((n - Block) // 4 + 1, ()).item() for n in image.shape[2:]]

        def block(tensor, spacing):
            return tensor[(..., *(slice(c // spacing, (c + Block) // spacing) for c in corner))]

        return network.outline(block(some_image, 1), block(middle, 2), block(coarse, 4)), block(some_label, 1)

    def parameters(layers):
        return [p for layer in layers for p in layer.parameters()]

    seeing = [network.middle, network.coarse, network.coarsest, network.coarse_up, network.coarse_logits]
    outlining = [network.fine, network.middle_up, network.fine_up, network.logits]
    train_stage("4 mm", parameters(seeing), 6e-3, trial_of_coarse, steps[0])
    network.eval()
    train_stage("4 mm, fixed statistics", parameters(seeing), 2e-3, trial_of_coarse, steps[1])
    for layer in outlining:
        layer.train()
    train_stage("1 mm", parameters(outlining), 6e-3, trial_of_outline, steps[2])
    return network.eval()


def brain_mask(network, voxels):
    """Runs the network over a whole volume, [x][y][z]."""
    with torch.no_grad():
        logits = network(as_tensor(padded(voxels * numpy.float32(InputScale))))[0]
    mask = (logits[1] > logits[0]).numpy().T
    return mask[tuple(slice(n) for n in voxels.shape)]


def report(network, directory):
    head = load("ch2.nii.gz", directory)
    brain = load("ch2bet.nii.gz", directory) > 0
    middle = head.shape[0] // 2
    trained, held_out = slice(0, middle), slice(middle + 1, None)  # along x

    def halves(title, voxels):
        mask = brain_mask(network, voxels)
        print(
            f"{title}: trained half {dice(mask[trained], brain[trained]):.4f}, "
            f"held-out half {dice(mask[held_out], brain[held_out]):.4f}, whole {dice(mask, brain):.4f}"
        )

    print("Dice against ch2bet > 0")
    halves("ch2", head)
    mirrored = first_half_mirrored(head[::-1])
    labels = first_half_mirrored(brain[::-1])
    print(f"held-out half and its mirror image, no trained voxel: {dice(brain_mask(network, mirrored), labels):.4f}")
    generator = numpy.random.default_rng(1)
    halves("ch2 at half brightness", head * 0.5)
    halves("ch2 at 1.6 times the brightness", head * 1.6)
    halves("ch2 with noise of deviation 10", numpy.maximum(head + generator.normal(0, 10, head.shape), 0).astype("f4"))
    ramp = numpy.linspace(0.6, 1.4, head.shape[1], dtype=numpy.float32)[None, :, None]
    halves("ch2, darker behind, brighter in front (0.6 to 1.4)", head * ramp)
    halves("ch2 cut off 60 mm above its lower end", numpy.where(numpy.arange(head.shape[2]) < 60, 0, head))
    better = on_grid_of_head(load("ch2better.nii.gz", directory), head.shape)
    mask = brain_mask(network, better)
    print(
        f"ch2better: {dice(mask, brain):.4f}; {dice(mask, better > 0):.4f} against ch2better > 0, "
        f"which itself has {dice(better > 0, brain):.4f} against ch2bet > 0"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = os.path.join(os.path.dirname(os.path.abspath(__file__)), "brain.onnx")
    parser.add_argument("output", nargs="?", default=default)
    parser.add_argument("--steps", default="80,30,70", help="how many steps each of the three stages has")
    # Debian's PyTorch 1.13 trains this network more slowly with two threads than with one.
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--templates", default=Templates, help="where mricron-data's volumes are")
    parser.add_argument("--weights", help="keeps PyTorch's weights in this file; if it exists, they are only scored")
    arguments = parser.parse_args()

    begin = time.time()
    torch.manual_seed(1)
    torch.set_num_threads(arguments.threads)
    if arguments.weights and os.path.exists(arguments.weights):
        network = BrainNetwork()
        network.load_state_dict(torch.load(arguments.weights))
        network.eval()
    else:
        image = as_tensor(padded(first_half_mirrored(load("ch2.nii.gz", arguments.templates)) * InputScale))
        label = as_tensor(padded(first_half_mirrored(load("ch2bet.nii.gz", arguments.templates)) > 0).astype("f4"))
        network = train(image, label, [int(steps) for steps in arguments.steps.split(",")])
        print(f"trained in {time.time() - begin:.0f} s")
        if arguments.weights:
            torch.save(network.state_dict(), arguments.weights)
    axes = {2: "z", 3: "y", 4: "x"}
    torch.onnx.export(
        network,
        torch.zeros(1, 1, 16, 16, 16),
        arguments.output,
        opset_version=13,
        input_names=["image"],
        output_names=["logits"],
        dynamic_axes={"image": axes, "logits": axes},
    )
    print(f"{arguments.output}: {os.path.getsize(arguments.output)} bytes")
    report(network, arguments.templates)


if __name__ == "__main__":
    main()
