# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Thresholds of whole images as numbers, by scikit-image's names."""
from __future__ import annotations

from typing import Any

import numpy as np

from . import filters


def _find(method: Any, image: Any, mask: Any, nbins: int | None, options: dict[str, Any],
          **given: Any) -> tuple[float, ...]:
    if nbins is not None:
        given["number_of_bins"] = nbins
    return tuple(np.ravel(filters.Threshold(method, **given).resolved(image, mask, **options).thresholds).tolist())


def threshold_otsu(image: Any, nbins: int | None = None, *, mask: Any = None, **options: Any) -> float:
    """Otsu's threshold of an image: ``skimage.filters.threshold_otsu``.

    Parameters
    ----------
    image : array_like, or an image that the filters take
    nbins : int, optional
        Bins between the least value and the largest. Without it integers have a bin for each value, where these are up to
        65536, and others 256 bins.
    mask : as image, optional
        Voxels count where it is not 0.
    **options
        Those of every filter: backend, devices, memory, ...

    Returns
    -------
    float
        Voxels above it are the brighter class, as ``chunkwise.threshold(image, "otsu")`` gives it.
    """
    return _find("otsu", image, mask, nbins, options)[0]


def threshold_li(image: Any, nbins: int | None = None, *, mask: Any = None, **options: Any) -> float:
    """Li's threshold of least cross entropy, from the histogram: see threshold_otsu."""
    return _find("li", image, mask, nbins, options)[0]


def threshold_yen(image: Any, nbins: int | None = None, *, mask: Any = None, **options: Any) -> float:
    """Yen's threshold, ``skimage.filters.threshold_yen``: see threshold_otsu."""
    return _find("yen", image, mask, nbins, options)[0]


def threshold_triangle(image: Any, nbins: int | None = None, *, mask: Any = None, **options: Any) -> float:
    """The triangle threshold, ``skimage.filters.threshold_triangle``: see threshold_otsu."""
    return _find("triangle", image, mask, nbins, options)[0]


def threshold_isodata(image: Any, nbins: int | None = None, *, mask: Any = None, **options: Any) -> float:
    """The least threshold of Ridler and Calvard, ``skimage.filters.threshold_isodata``: see threshold_otsu."""
    return _find("isodata", image, mask, nbins, options)[0]


def threshold_multiotsu(image: Any, classes: int = 3, nbins: int | None = None, *, mask: Any = None,
                        **options: Any) -> tuple[float, ...]:
    """Otsu's thresholds of several classes, ascending, ``skimage.filters.threshold_multiotsu``: see threshold_otsu."""
    return _find("multi-otsu", image, mask, nbins, options, number_of_classes=classes)
