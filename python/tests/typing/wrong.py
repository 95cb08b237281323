# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
# What the type checker must complain of.
import numpy as np

import chunkwise
from chunkwise import filters
from chunkwise import ndimage as ndi

image = np.zeros((4, 5, 6), np.float32)
chunkwise.mean(image)  # wrong
chunkwise.mean(image, radius="1")  # wrong
chunkwise.mean(image, 1, mode="symmetric")  # wrong
chunkwise.mean(image, 1, sigma=2)  # wrong
chunkwise.wiener(image, 1, "automatic")  # wrong
filters.Gaussian(2, 3)  # wrong
text: str = chunkwise.mean(image, 1)  # wrong
words: list[float] = ndi.sobel([1.0, 2.0])  # wrong
ndi.uniform_filter(image, output=3, mode=chunkwise, radius_=3).shapes  # wrong
