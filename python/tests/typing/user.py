# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
# What a user writes; the type checker has nothing to say.
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

import chunkwise
from chunkwise import filters
from chunkwise import ndimage as ndi

image: npt.NDArray[np.float32] = np.zeros((4, 5, 6), np.float32)
smooth: npt.NDArray[np.float32] = chunkwise.gaussian(image, sigma=(1.0, 2.0, 2.0), mode="reflect", memory="1G")
chunkwise.mean(image, 1, output=np.float64, progress=print, threads=2)
chunkwise.wiener(image, radius=1, noise_variance="auto")
chunkwise.convolve(image, kernel=np.ones((3, 3, 3)), correlate=True)
chunkwise.reconstruct(image, image, erosion=True)
chunkwise.gaussian(image, 2, spacing=False)
means: npt.NDArray[np.float32] = ndi.uniform_filter(image, size=3)
tops: npt.NDArray[np.float32] = ndi.white_tophat(input=image, size=3)
f: chunkwise.Filter = filters.Gaussian(sigma=2) | filters.Std(radius=1)
filtered: npt.NDArray[np.float32] = f(image)
halo: tuple[tuple[int, int], ...] = f.halo(image.shape)
parts: Iterator[chunkwise.Region] = chunkwise.regions(f, image.shape, (2, 5, 6))
for part in parts:
    f.run(image[part.input], part, image.shape)
total: float = chunkwise.statistics(image).sum
try:
    chunkwise.median(image, radius=3, memory=1)
except chunkwise.BudgetError as error:
    print(error.needed)
chunkwise.zarr.run(f, "in.zarr", "out.zarr", memory="4G")
