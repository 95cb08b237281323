# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Objects that touch, from an image to labels."""
from __future__ import annotations

from typing import Any

from . import _core, filters
from ._filter import foreseen


def choose_method(method: str | None, lower: float | None, upper: float | None) -> Any:
    """How the threshold is found: as given, by a range if there is one, or by Otsu's method."""
    isRange = method is None and not (lower is None and upper is None)
    return "fixed" if isRange else method or "otsu"


def make_watershed(connectivity: int, height: float | None, area: float | None, spacing: Any) -> Any:
    """The watershed by a height, of 1 if no size is given, or by an area."""
    if area is None:
        return filters.Watershed(connectivity, height=1 if height is None else height)
    return filters.Watershed(connectivity, height=0 if height is None else height, area=area, spacing=spacing)


def separate(image: Any, method: str | None = None, *, lower: float | None = None, upper: float | None = None,
             height: float | None = None, area: float | None = None, connectivity: int = 1, spacing: Any = None, output: Any = None,
             memory: int | str | None = None, threads: int | None = None) -> Any:
    """Labels of the objects above a threshold, separated where they touch and are narrow.

    A threshold finds the objects. Each voxel of them has a distance to their contour. A watershed of these distances
    parts the objects: it is ``watershed(distance(mask, "contour"), mask=mask, height=1)`` with
    ``mask = threshold(image, method)``.

    Parameters
    ----------
    image : array_like, or an image that the filters take
        One to three dimensions, or more, of which the last three are spatial.
    method : str, optional
        How the threshold follows from the histogram of the whole image, as of `threshold`; by default "otsu".
    lower, upper : float, optional
        In place of a method: the range of values inside objects.
    height : float, optional
        Two parts of an object are separate if the distance to the contour falls by so much on every path between them,
        in units of spacing. 0 or more; by default 1.
    area : float, optional
        In place of a height: two parts of an object are separate if each has this area, in 3-D this volume, where they
        meet, in units of spacing.
    connectivity : int
        Neighbors share a face (1), a face or an edge (2), or also a corner (3).
    spacing : sequence of float, optional
        Lengths of voxels along each axis; by default those of the image, or 1.
    output : array or dtype, optional
        As of `watershed`; by default uint32.
    memory, threads
        Those of every filter.

    Returns
    -------
    array of integers, or the kind of image that came
        0 where no object is, and labels 1, 2, ... in the raster order of the first voxels that are farthest from the
        contour. The same labels for all numbers of threads and chunks.

    Raises
    ------
    ParameterError
        A parameter is wrong; the message names it and the values that are allowed.

    Examples
    --------
    >>> import numpy as np, chunkwise
    >>> image = np.zeros((7, 13), np.uint8)
    >>> image[1:6, 1:6] = image[1:6, 7:12] = 200
    >>> image[3, 6] = 200
    >>> labels = chunkwise.separate(image)
    >>> labels[3]
    array([0, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 0], dtype=uint32)
    """
    options: dict[str, Any] = {"memory": memory, "threads": threads}
    distance, watershed = filters.Distance("contour", spacing=spacing), make_watershed(connectivity, height, area, spacing)
    try:
        mask = filters.Threshold(choose_method(method, lower, upper), lower=lower, upper=upper)(image, **options)
        return watershed(distance(mask, **options), None, mask, output=output, **options)
    except _core.BudgetError as error:
        from ._windows import shape_of

        shape = shape_of(image)
        raise foreseen(error, [(distance, shape, "uint8"), (watershed, shape, "float32")], options) from None
