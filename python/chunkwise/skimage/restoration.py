# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""``skimage.restoration``: deconvolution and backgrounds; errors say what comes near the rest."""
from __future__ import annotations

from typing import Any

import numpy as np

from .. import filters
from .._containers import all_take_device_arrays
from .._deconvolution import richardson_lucy
from ._common import Array, as_array, missing, refuse

__all__ = ["richardson_lucy", "rolling_ball"]

__getattr__ = missing("restoration", {
    "denoise_nl_means": "chunkwise.nlm(image, radius=patch_distance, strength=h, patch_radius=patch_size // 2, noise_variance=sigma**2) is "
                        "the same method; its patches end at the image's edge, and no weight is cut off",
    "wiener": "chunkwise.wiener is the local, adaptive filter of scipy.signal.wiener, no deconvolution",
    "denoise_bilateral": "chunkwise.bilateral(image, sigma_spatial, range_sigma=sigma_color) is the same method, in 1 to 3 dimensions, "
                         "with weights that are symmetric; scikit-image's are not",
})


def rolling_ball(image: Any, *, radius: Any = 100, kernel: Any = None, nansafe: bool = False, num_threads: int | None = None,
                 workers: int | None = None, **options: Any) -> Array:
    """``skimage.restoration.rolling_ball`` without a kernel: the erosion with a ball. ``chunkwise.rolling_ball`` has the opening,
    balls of other heights and paraboloids. ``workers``, or ``num_threads``, are ``threads``.
    """
    if kernel is not None:
        refuse("kernel", "an array", "chunkwise.rolling_ball has radius and height")
    if nansafe:
        refuse("nansafe", nansafe, "NaN counts as outside the image")
    array = as_array(image)
    if workers or num_threads:
        options.setdefault("threads", workers or num_threads)
    real = "float32" if array.dtype in (np.float32, np.uint8, np.int8, np.uint16, np.int16) else "float64"
    found = filters.RollingBall(float(radius), background="erosion")(array, output=real, **options)
    return np.asarray(found).astype(array.dtype, copy=False)


all_take_device_arrays(globals())
