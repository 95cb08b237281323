# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""``skimage.restoration``: nothing of it has the same meaning here; errors say what comes near."""
from __future__ import annotations

from ._common import missing

__all__: list[str] = []

__getattr__ = missing("restoration", {
    "denoise_nl_means": "chunkwise.nlm(image, radius=patch_distance, strength=h, patch_radius=patch_size // 2, noise_variance=sigma**2) is "
                        "the same method; its patches end at the image's edge, and no weight is cut off",
    "wiener": "chunkwise.wiener is the local, adaptive filter of scipy.signal.wiener, no deconvolution",
    "denoise_bilateral": "scikit-image has it; chunkwise.nlm keeps edges too",
})
