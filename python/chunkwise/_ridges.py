# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Ridges by the eigenvalues of the Hessian, by scikit-image's names."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from . import filters


def _ridges(image: Any, sigmas: Any, measure: Any, black_ridges: bool, mode: str, cval: float, spacing: Any,
            options: dict[str, Any], **given: Any) -> Any:
    border: dict[str, Any] = {"mode": mode, **({"cval": cval} if mode == "constant" else {})}
    scales = tuple(float(each) for each in (sigmas if isinstance(sigmas, Iterable) else (sigmas,)))
    return filters.Vesselness(scales, measure=measure, dark=bool(black_ridges), spacing=spacing, **given, **border)(image, **options)


def frangi(image: Any, sigmas: Any = range(1, 10, 2), alpha: float = 0.5, beta: float = 0.5, gamma: Any = None,
           black_ridges: bool = True, mode: str = "reflect", cval: float = 0, *, spacing: Any = None, **options: Any) -> Any:
    """Frangi's vesselness, the largest over all scales: ``skimage.filters.frangi``.

    Parameters
    ----------
    image : array_like, or an image that the filters take
        Two or three dimensions.
    sigmas : iterable of float
        Standard deviations of the Gaussians, in units of spacing.
    alpha : float
        How far tubes must differ from sheets.
    beta : float
        How much tubes may look like blobs.
    gamma : float or sequence of float, optional
        The norm of the Hessian, times sigma squared, from which on a structure counts, one number or one for each scale. By
        default half the largest norm of the whole image at each scale.
    black_ridges : bool
        Dark structures on a bright background.
    mode, cval
        The values beyond the image's edge. "renormalized" uses none; derivatives of quadratic images are then exact up to the edge.
    spacing : sequence of float, optional
        Lengths of voxels along each axis.
    **options
        Those of every filter: output, backend, devices, memory, ...

    Returns
    -------
    array of float, or the kind of image that came
        From 0 to 1. The same bits for all numbers of threads and chunks.
    """
    return _ridges(image, sigmas, "frangi", black_ridges, mode, cval, spacing, options, alpha=alpha, beta=beta,
                   contrast="auto" if gamma is None else gamma)


def sato(image: Any, sigmas: Any = range(1, 10, 2), black_ridges: bool = True, mode: str = "reflect", cval: float = 0, *,
         spacing: Any = None, **options: Any) -> Any:
    """Sato's tubeness, times sigma squared: ``skimage.filters.sato``. Parameters as of frangi."""
    return _ridges(image, sigmas, "sato", black_ridges, mode, cval, spacing, options)


def meijering(image: Any, sigmas: Any = range(1, 10, 2), black_ridges: bool = True, mode: str = "reflect", cval: float = 0,
              *, spacing: Any = None, **options: Any) -> Any:
    """Meijering's neuriteness, over the largest one of the whole image at each scale: ``skimage.filters.meijering``.
    Parameters as of frangi."""
    return _ridges(image, sigmas, "meijering", black_ridges, mode, cval, spacing, options)


def hessian_eigenvalues(image: Any, sigma: Any = 1, mode: str = "renormalized", cval: float = 0, *, spacing: Any = None,
                        **options: Any) -> Any:
    """The eigenvalues of the Hessian of the image smoothed by a Gaussian, as of ``skimage.feature.hessian_matrix_eigvals``.

    Parameters
    ----------
    image : array_like
        Two or three dimensions.
    sigma : float or sequence of float
        Standard deviation along each axis, in units of spacing.
    mode, cval, spacing, **options
        As of frangi.

    Returns
    -------
    array of float
        The first axis has the eigenvalues in descending order; they are within 6e-8 of the largest magnitude, also where
        several are equal.
    """
    border: dict[str, Any] = {"mode": mode, **({"cval": cval} if mode == "constant" else {})}
    found = filters.Hessian(sigma=sigma, output_components=True, spacing=spacing, **border)(image, **options)
    return np.moveaxis(np.asarray(found), -1, 0)[::-1]
