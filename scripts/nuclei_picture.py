#!/usr/bin/env python3
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Makes docs/nuclei.png and docs/touching.png: counts the nuclei of a real image, the stained tissue that scikit-image ships,
and parts nuclei that touch. Needs the packages chunkwise, scikit-image and Pillow."""
from pathlib import Path

import chunkwise
import numpy as np
from PIL import Image
from skimage import color, data


def count(image):
    """Labels of nuclei in an RGB image, and their table."""
    # The blue stain, hematoxylin, of which nuclei have much; from 0 to 1.
    stain = np.ascontiguousarray(color.rgb2hed(image)[..., 0], "float32")
    smooth = chunkwise.gaussian(stain, sigma=1.5)
    # Stained more than their surroundings, and more than the least of nuclei.
    mask = chunkwise.local_threshold(smooth, radius=25, method="mean", offset=-0.012)
    mask &= chunkwise.threshold(smooth, "otsu")
    labels = chunkwise.label(mask, connectivity=2)
    # Fragments within holes would keep these open.
    labels = chunkwise.filter_labels(labels, min_size=40, relabel=True)
    labels = chunkwise.fill_label_holes(labels)
    return labels, chunkwise.measure(labels, stain, columns=("area", "centroid", "intensity_mean"))


def draw(image, labels):
    """The image with the boundaries of labels in yellow."""
    drawn = image.copy()
    drawn[chunkwise.find_boundaries(labels, mode="inner")] = (255, 255, 0)
    return drawn


def save(parts, name):
    Image.fromarray(np.concatenate(parts, axis=1)).save(Path(__file__).resolve().parent.parent / "docs" / name, optimize=True)


def main():
    image = data.immunohistochemistry()
    labels, table = count(image)
    random = np.random.default_rng(1)
    colors = random.integers(60, 256, (int(labels.max()) + 1, 3), "uint8")
    colors[0] = 255
    part = np.s_[190:510, 150:470]
    save([image[part], draw(image, labels)[part], colors[labels][part]], "nuclei.png")
    separated = chunkwise.filter_labels(chunkwise.separate(labels > 0, lower=1, area=15), min_size=40, relabel=True)
    large = [each[190:310, 150:310].repeat(2, axis=0).repeat(2, axis=1) for each in (image, labels, separated)]
    save([large[0], draw(large[0], large[1]), draw(large[0], large[2])], "touching.png")
    areas = table["area"]
    print(f"{len(areas)} nuclei, area {np.median(areas):.0f} pixels in the median, {areas.min():.0f} to {areas.max():.0f}")
    print(f"{separated.max()} separated")


if __name__ == "__main__":
    main()
