# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Functions with the names, signatures and results of scikit-image.

``from chunkwise.skimage import exposure, feature, filters, measure, morphology, segmentation`` is the switch. scikit-image itself is not
needed. A docstring says where a result differs from scikit-image's; a function or an argument that is not here raises an error
that says what to use instead. Images are arrays in memory, and results arrays. Each function that computes with the engine
takes as further keywords what all filters take: backend, memory, threads, progress and so on.

>>> import numpy as np
>>> from chunkwise.skimage import measure
>>> measure.label(np.array([1, 1, 0, 2, 2]))
array([1, 1, 0, 2, 2])
"""
from __future__ import annotations

from typing import Any

_MODULES = ("exposure", "feature", "filters", "measure", "morphology", "restoration", "segmentation")

__all__ = list(_MODULES)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"chunkwise.skimage has no {name}; it has {', '.join(_MODULES)}, and skimage the rest")
