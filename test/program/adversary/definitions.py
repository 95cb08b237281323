# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Each subcommand against its definition, written with NumPy and SciPy as plainly as it can be."""
import itertools
import json
import math

import numpy
from scipy import ndimage, signal

from adversary.networks import weights
from adversary.subcommands import REQUIRED, Inputs, all_subcommands
from adversary.support import KINDS, ProgramTest, noise, read, write

SIZE = (14, 12, 11)
FACES = ndimage.generate_binary_structure(3, 1)


def array_of(image):
    return numpy.array(image.values, numpy.float64).reshape(image.size[::-1])


def windows(a, radius):
    """For each voxel the part of its box that is inside the image."""
    radius = numpy.broadcast_to(radius, a.ndim)
    for index in numpy.ndindex(a.shape):
        yield index, a[tuple(slice(max(i - r, 0), i + r + 1) for i, r in zip(index, radius))]


def of_windows(function, radius=1):
    def filtered(a, _):
        out = numpy.empty(a.shape)
        for index, window in windows(a, radius):
            out[index] = function(window)
        return out

    return filtered


def percentile(fraction):
    return of_windows(lambda w: numpy.sort(w, None)[int(fraction * (w.size - 1))])


def maximum(a, _=None):
    return of_windows(numpy.max)(a, None)


def minimum(a, _=None):
    return of_windows(numpy.min)(a, None)


def wiener(a, _):
    mean, variance = of_windows(numpy.mean)(a, None), of_windows(numpy.var)(a, None)
    safe = numpy.maximum(variance, 1e-300)
    return numpy.where(variance > 900, mean + (safe - 900) / safe * (a - mean), mean)


def non_local_means(a, _, radius=1, patch=1, strength=30.0):
    out = numpy.empty(a.shape)
    box = list(itertools.product(range(-patch, patch + 1), repeat=3))
    for p in numpy.ndindex(a.shape):
        weights = values = 0.0
        for step in itertools.product(range(-radius, radius + 1), repeat=3):
            q = tuple(i + s for i, s in zip(p, step))
            if not all(0 <= i < n for i, n in zip(q, a.shape)):
                continue
            squares = [
                (a[s] - a[t]) ** 2
                for o in box
                for s, t in ((tuple(i + d for i, d in zip(p, o)), tuple(i + d for i, d in zip(q, o))),)
                if all(0 <= i < n and 0 <= j < n for i, j, n in zip(s, t, a.shape))
            ]
            weight = numpy.exp(-numpy.mean(squares) / strength**2)
            weights += weight
            values += weight * a[q]
        out[p] = values / weights
    return out


def convolve(a, kernel):
    """The kernel's center is at half its size; the part inside is scaled up to the sum of all weights."""
    def plain(image):
        full = signal.convolve(image, kernel, mode="full", method="direct")
        return full[tuple(slice(k // 2, k // 2 + n) for k, n in zip(kernel.shape, image.shape))]

    return plain(a) * kernel.sum() / plain(numpy.ones(a.shape))


def entropy(window):
    counts = numpy.bincount(numpy.clip((window.ravel() * 8 / 256).astype(int), 0, 7), minlength=8)
    p = counts[counts > 0] / window.size
    return -(p * numpy.log2(p)).sum()


def gaussian_rows(n, sigma):
    """The sampled Gaussian, cut at 4 sigmas, renormalized over what is inside: a matrix along an axis."""
    radius = int(numpy.ceil(4 * sigma))
    distance = numpy.arange(n)[None, :] - numpy.arange(n)[:, None]
    weights = numpy.where(abs(distance) <= radius, numpy.exp(-0.5 * (distance / sigma) ** 2), 0)
    return weights / weights.sum(1, keepdims=True)


def along(a, matrix, axis):
    return numpy.moveaxis(numpy.tensordot(matrix, a, (1, axis)), 0, axis)


def spacing(inputs):
    return inputs.image.spacing[::-1]


def gaussian(a, inputs, sigma=0.6):
    for axis, step in enumerate(spacing(inputs)):
        a = along(a, gaussian_rows(a.shape[axis], sigma / step), axis)
    return a


def second_derivative_rows(n, sigma):
    """Weights g (a + b t + c t t) with moments 0, 0, 2 over the taps inside: docs/laplacian-of-gaussian.md."""
    radius = max(int(numpy.ceil(4 * sigma)), 2)
    matrix = numpy.zeros((n, n))
    for i in range(n):
        taps = numpy.arange(max(i - radius, 0), min(i + radius + 1, n))
        t = taps - i
        g = numpy.exp(-0.5 * (t / sigma) ** 2)
        moments = numpy.array([[(g * t ** (j + k)).sum() for k in range(3)] for j in range(3)])
        matrix[i, taps] = g * (numpy.linalg.solve(moments, [0, 0, 2]) @ numpy.array([t**0, t, t * t]))
    return matrix


def laplacian(a, inputs, sigma=0.6):
    total = numpy.zeros(a.shape)
    for axis, step in enumerate(spacing(inputs)):
        term = along(a, second_derivative_rows(a.shape[axis], sigma / step), axis) / step**2
        for other, other_step in enumerate(spacing(inputs)):
            if other != axis:
                term = along(term, gaussian_rows(a.shape[other], sigma / other_step), other)
        total += term
    return total


def derivative_rows(n, sigma, order):
    """Weights g times the polynomial with moments 0, ..., 0 and order! over the taps inside: docs/derivatives.md."""
    radius = max(int(numpy.ceil(4 * sigma)), 1)
    matrix = numpy.zeros((n, n))
    for i in range(n):
        taps = numpy.arange(max(i - radius, 0), min(i + radius + 1, n))
        t = taps - i
        g = numpy.exp(-0.5 * (t / sigma) ** 2)
        powers = numpy.array([t**k for k in range(order + 1)], float)
        moments = (powers * g / g.sum()) @ powers.T
        wanted = numpy.append(numpy.zeros(order), math.factorial(order))
        matrix[i, taps] = g / g.sum() * (numpy.linalg.solve(moments, wanted) @ powers)
    return matrix


def derivative(a, inputs, along_axis=2, sigma=0.6):
    for axis, step in enumerate(spacing(inputs)):
        order = int(axis == along_axis)
        a = along(a, derivative_rows(a.shape[axis], sigma / step, order) / step**order, axis)
    return a


def gradient(a, inputs):
    return numpy.sqrt(sum(derivative(a, inputs, axis) ** 2 for axis in range(3)))


def hessian(a, inputs, sigma=0.6):
    """The Hessian of each voxel, of the image smoothed."""
    matrices = numpy.empty((*a.shape, 3, 3))
    for row, column in itertools.product(range(3), repeat=2):
        element = a
        for axis, step in enumerate(spacing(inputs)):
            order = (axis == row) + (axis == column)
            element = along(element, derivative_rows(a.shape[axis], sigma / step, order) / step**order, axis)
        matrices[..., row, column] = element
    return matrices


def level_set_curvature(a, inputs):
    """The divergence of the unit gradient: the trace of the Hessian on the plane across the gradient, over its length."""
    slopes = numpy.stack([derivative(a, inputs, axis) for axis in range(3)], -1)
    length = numpy.linalg.norm(slopes, axis=-1)
    n = slopes / length[..., None]
    across = numpy.eye(3) - n[..., None] * n[..., None, :]
    return numpy.einsum("...ij,...ji->...", across, hessian(a, inputs)) / length


def structure_tensors(a, inputs, outer=0.8):
    """The smoothed products of derivatives."""
    derivatives = [derivative(a, inputs, axis) for axis in range(3)]
    matrices = numpy.empty((*a.shape, 3, 3))
    for row, column in itertools.product(range(3), repeat=2):
        matrices[..., row, column] = gaussian(derivatives[row] * derivatives[column], inputs, outer)
    return matrices


def coherence_diffusion(a, inputs, alpha=0.001, contrast=30, iterations=2):
    """Weickert's diffusion along the eigenvectors of the smallest eigenvalues, as docs/enhancement.md has it."""
    steps = spacing(inputs)
    for _ in range(iterations):
        values, vectors = numpy.linalg.eigh(structure_tensors(a, inputs))
        squares = sum((values[..., i] - values[..., j]) ** 2 for i, j in ((0, 1), (0, 2), (1, 2)))
        w = vectors[..., 0]
        more = (1 - alpha) * numpy.exp(-(contrast**4) / squares)
        tensors = more[..., None, None] * w[..., None] * w[..., None, :] + alpha * numpy.eye(3)
        central = [(moved(a, axis, 1) - moved(a, axis, -1)) / 2 / step for axis, step in enumerate(steps)]
        change = 0
        for axis, step in enumerate(steps):
            mixed = sum(tensors[..., axis, other] * each for other, each in enumerate(central) if other != axis)
            own = tensors[..., axis, axis]
            flux = ((own + moved(own, axis, 1)) * (moved(a, axis, 1) - a) / step + mixed + moved(mixed, axis, 1)) / 2
            flux[(slice(None),) * axis + (-1,)] = 0
            change = change + numpy.diff(flux, axis=axis, prepend=0) / step
        a = a + 0.25 / sum(1 / step**2 for step in steps) * change
    return a


def normalize(a, _):
    """Deviations in units of the standard deviation of the box of 3 voxels to each side, cut at the edge."""
    padded = numpy.pad(a, 1, constant_values=numpy.nan)
    windows = numpy.lib.stride_tricks.sliding_window_view(padded, (3, 3, 3)).reshape(*a.shape, -1)
    return (a - numpy.nanmean(windows, -1)) / numpy.nanstd(windows, -1)


def moved(a, axis, step):
    """The neighbors along an axis; beyond the edge the nearest voxel."""
    return numpy.take(a, numpy.clip(numpy.arange(a.shape[axis]) + step, 0, a.shape[axis] - 1), axis)


def diffusion(a, inputs, iterations=5):
    """Perona and Malik's diffusion, as ITK has it, with the contrast of the first image."""
    steps = spacing(inputs)
    contrast = None
    for _ in range(iterations):
        central = [(moved(a, axis, 1) - moved(a, axis, -1)) / 2 / step for axis, step in enumerate(steps)]
        contrast = contrast or 2 * sum((each**2).mean() for each in central)
        speed = 0
        for axis, step in enumerate(steps):
            forward = (moved(a, axis, 1) - a) / step
            square = forward**2 + sum(((each + moved(each, axis, 1)) / 2) ** 2 for other, each in enumerate(central) if other != axis)
            flux = forward * numpy.exp(-square / contrast)
            before = numpy.roll(flux, 1, axis)
            before[(slice(None),) * axis + (0,)] = 0
            speed = speed + flux - before
        a = a + min(steps) / 2**4 * speed
    return a


def total_variation(a, inputs, weight=30, iterations=5):
    """Algorithm 1 of Chambolle and Pock, with equal steps."""
    scales = [1 / step for step in spacing(inputs)]
    step = 0.5 / numpy.sqrt(sum(scale**2 for scale in scales))
    image, ahead, p = a, a, numpy.zeros((3, *a.shape))
    for _ in range(iterations):
        for axis, scale in enumerate(scales):
            p[axis] += step * scale * (moved(ahead, axis, 1) - ahead)
        p /= numpy.maximum(1, numpy.sqrt((p**2).sum(0)) / weight)
        divergence = sum(scale * numpy.diff(p[axis], axis=axis, prepend=0) for axis, scale in enumerate(scales))
        following = (a + step * (divergence + image)) / (1 + step)
        a, ahead = following, 2 * following - a
    return a


def equalized(a, _, size=3):
    """Tiles of 3 voxels along each axis, 256 bins of 65 levels, clipped at one voxel of 27."""
    levels = numpy.rint((a - a.min()) / (a.max() - a.min()) * 16383).astype(int)
    bins = numpy.pad(levels, [(0, -n % size) for n in a.shape], mode="reflect") // 65
    maps = numpy.empty([n // size for n in bins.shape] + [256])
    for tile in numpy.ndindex(maps.shape[:3]):
        counts = numpy.bincount(bins[tuple(slice(i * size, (i + 1) * size) for i in tile)].ravel(), minlength=256)
        excess = int((counts - 1).clip(0).sum())
        counts = counts.clip(0, 1)
        # Others get one at equal distances, from the first bin on, then from the second, and so on.
        for first in range(256):
            if excess <= 0:
                break
            chosen = numpy.arange(256)[first::max(1, int((counts < 1).sum()) // excess)]
            chosen = chosen[counts[chosen] < 1]
            counts[chosen] += 1
            excess -= len(chosen)
        maps[tile] = numpy.floor(numpy.minimum(counts.cumsum() * (16383 / size**3), 16383))
    found = numpy.zeros(a.shape)
    for p in numpy.ndindex(a.shape):
        for corner in itertools.product((0, 1), repeat=3):
            places = [(i + size // 2) for i in p]
            tile = tuple(min(max(i // size - 1 + c, 0), n - 1) for i, c, n in zip(places, corner, maps.shape))
            weight = numpy.prod([i % size / size if c else 1 - i % size / size for i, c in zip(places, corner)])
            found[p] += weight * maps[tile][levels[p] // 65]
    return a.min() + found * (a.max() - a.min()) / 16383


def rolling_ball(a, _, radius=2):
    squares = (numpy.indices((2 * radius + 1,) * 3) - radius)
    squares = (squares**2).sum(0)
    ball = {"footprint": squares <= radius**2, "structure": numpy.sqrt((radius**2 - squares).clip(0)) - radius, "mode": "constant"}
    return ndimage.grey_dilation(ndimage.grey_erosion(a, cval=numpy.inf, **ball), cval=-numpy.inf, **ball)


def bilateral(a, inputs, sigma=0.6, range_sigma=30):
    widths = [sigma / step for step in spacing(inputs)]
    radii = [int(numpy.ceil(3 * width)) for width in widths]
    padded = numpy.pad(a, [(radius, radius) for radius in radii], constant_values=numpy.nan)
    weights, sums = numpy.zeros(a.shape), numpy.zeros(a.shape)
    for shift in itertools.product(*(range(-radius, radius + 1) for radius in radii)):
        tap = padded[tuple(slice(radius + s, radius + s + n) for radius, s, n in zip(radii, shift, a.shape))]
        square = sum((s / width) ** 2 for s, width in zip(shift, widths)) + ((tap - a) / range_sigma) ** 2
        weight = numpy.where(numpy.isnan(tap), 0, numpy.exp(-square / 2))
        weights += weight
        sums += weight * numpy.nan_to_num(tap)
    return sums / weights


def frangi(a, inputs, sigma=0.6):
    values = numpy.linalg.eigvalsh(hessian(a, inputs)) * sigma**2
    first, second, third = numpy.moveaxis(numpy.take_along_axis(values, abs(values).argsort(-1), -1), -1, 0)
    squares = (values**2).sum(-1)
    contrast = numpy.sqrt(squares.max()) / 2
    measure = ((1 - numpy.exp(-2 * (second / third) ** 2)) * numpy.exp(-2 * first**2 / abs(second * third))
               * (1 - numpy.exp(-0.5 * squares / contrast**2)))
    return numpy.where((second < 0) & (third < 0), measure, 0)


def file_of(inputs, name):
    return array_of(read(inputs.files[name]))


def varying(a, inputs):
    """Two nodes along x, in the middles of both halves; linear between them."""
    kernels = file_of(inputs, "kernels")
    n = a.shape[2]
    weight = numpy.clip((numpy.arange(n) - (n / 2 - 1) / 2) / (n / 2), 0, 1)
    return (1 - weight) * convolve(a, kernels[0]) + weight * convolve(a, kernels[1])


def reconstruct(marker, mask):
    state = numpy.minimum(marker, mask)
    while True:
        grown = numpy.minimum(ndimage.grey_dilation(state, footprint=FACES, mode="nearest"), mask)
        if (grown == state).all():
            return state
        state = grown


def reconstruct_down(marker, mask):
    return -reconstruct(-marker, -mask)


def border(a, beyond):
    inner = numpy.zeros(a.shape, bool)
    inner[1:-1, 1:-1, 1:-1] = True
    return numpy.where(inner, beyond, a)


def opened(a):
    """The values of what the opening kept: where the erosion's reconstruction is the erosion, the image; grown again."""
    eroded = minimum(a)
    once = reconstruct(eroded, a)
    return reconstruct(numpy.where(eroded == once, a, 0), a)


def regional_maxima(a, _=None):
    return numpy.where(a > reconstruct(a - 1, a), 255.0, 0.0)


def network(a, _):
    """Layer by layer what adversary.networks.small_model says, on a grid of even extents."""
    def values(count, seed, *shape):
        return numpy.array(weights(count, seed)).reshape(shape)

    def convolved(maps, kernels):
        return [sum(ndimage.correlate(m, k, mode="constant") for m, k in zip(maps, kernel)) for kernel in kernels]

    even = numpy.pad(a, [(0, n % 2) for n in a.shape], mode="edge")
    fine = [numpy.maximum(m, 0) for m in convolved([even], values(54, 1, 2, 1, 3, 3, 3))]
    coarse = [m.reshape(m.shape[0] // 2, 2, m.shape[1] // 2, 2, m.shape[2] // 2, 2).max((1, 3, 5)) for m in fine]
    up = values(32, 3, 2, 2, 2, 2, 2)
    risen = [sum(numpy.kron(m, up[i, o]) for i, m in enumerate(coarse)) for o in range(2)]
    out = convolved(fine + risen, values(324, 2, 3, 4, 3, 3, 3))[0] + 0.1
    return out[tuple(slice(0, n) for n in a.shape)]


def otsu(a, _):
    """Above the first value for which the variance between both classes is largest."""
    values = numpy.unique(a)
    gains = [(a <= t).mean() * (a > t).mean() * (a[a <= t].mean() - a[a > t].mean()) ** 2 for t in values[:-1]]
    return (a > values[numpy.argmax(gains)]).astype(float)


def hysteresis(a, _):
    """The components above the low threshold that have a voxel above the high one."""
    labels, _ = ndimage.label(a > 100)
    return (numpy.isin(labels, labels[a > 230]) & (labels > 0)).astype(float)


def inner_boundaries(a, _):
    padded = numpy.pad(a, 1, mode="edge")
    faces = [numpy.roll(padded, step, axis)[1:-1, 1:-1, 1:-1] for axis in range(3) for step in (-1, 1)]
    return ((a != 0) & numpy.any([a != each for each in faces], axis=0)).astype(float)


def nearest(a, inputs):
    """The raster index of the nearest voxel that is not 0; of those at the same distance the lowest."""
    z, y, x = inputs.image.spacing[::-1]
    at = numpy.indices(a.shape).reshape(3, -1)
    features = at[:, a.ravel() != 0]
    found = []
    for voxel in at.T:
        apart = features - voxel[:, None]
        best = (((apart[0] * z) ** 2 + (apart[1] * y) ** 2) + (apart[2] * x) ** 2).argmin()
        found.append(numpy.ravel_multi_index(tuple(features[:, best]), a.shape))
    return numpy.array(found, float).reshape(a.shape)


def distance(of):
    """The distance of each voxel to the nearest one that is 0 in of(image)."""
    return lambda a, inputs: ndimage.distance_transform_edt(of(a), sampling=inputs.image.spacing[::-1])


def expand(a, inputs):
    near = distance(lambda voxels: voxels == 0)(a, inputs) <= 0.3
    return numpy.where(near, a.ravel()[nearest(a, inputs).astype(int)], 0)


def area_opening(a, inputs, size=9):
    least = numpy.ceil(size / numpy.prod(spacing(inputs)))
    found = numpy.full(a.shape, a.min())
    for level in numpy.unique(a):
        labels = ndimage.label(a >= level)[0]
        sizes = numpy.bincount(labels.ravel())
        found[(sizes >= least)[labels] & (labels > 0)] = level
    return found


def watershed(a, _):
    """Kruskal's algorithm over all edges between faces, from the minima."""
    lowest = ndimage.minimum_filter(a, footprint=ndimage.generate_binary_structure(3, 1), mode="nearest") == a
    # Those of the plateaus of equal values none of whose voxels has a lower neighbor.
    labels = numpy.zeros(a.shape, int)
    for value in numpy.unique(a[lowest]):
        plateaus, count = ndimage.label(a == value)
        for plateau in range(1, count + 1):
            if lowest[plateaus == plateau].all():
                labels[plateaus == plateau] = -1
    labels = ndimage.label(labels)[0].ravel()
    voxels, index, edges = a.ravel(), numpy.arange(a.size).reshape(a.shape), []
    for axis in range(3):
        n = a.shape[axis]
        first, second = index.take(range(n - 1), axis).ravel(), index.take(range(1, n), axis).ravel()
        edges.append(numpy.stack([numpy.maximum(voxels[first], voxels[second]), numpy.minimum(voxels[first], voxels[second]),
                                  first, second], 1))
    parents = list(range(a.size))

    def find(i):
        while parents[i] != i:
            parents[i] = i = parents[parents[i]]
        return i

    edges = numpy.concatenate(edges)
    for _, _, first, second in edges[numpy.lexsort(edges.T[::-1])].astype(int):
        first, second = find(first), find(second)
        if first != second and (labels[first] == 0 or labels[second] == 0):
            labels[first] = max(labels[first], labels[second])
            parents[second] = first
    return numpy.array([labels[find(i)] for i in range(a.size)], float).reshape(a.shape)


def deconvolved(a, kernels, weights, iterations=2):
    """Richardson-Lucy on the image's grid, grown by the kernels, each of whose voxels spreads by all kernels."""
    below, above = zip(*((n - 1 - n // 2, n // 2) for n in kernels[0].shape))
    grown = [numpy.pad(weight, list(zip(below, above)), mode="edge") for weight in weights]

    def forward(u):
        return sum(signal.convolve(weight * u, k / k.sum(), "valid", "direct") for weight, k in zip(grown, kernels))

    def backward(r):
        return sum(weight * signal.correlate(r, k / k.sum(), "full", "direct") for weight, k in zip(grown, kernels))

    norm = backward(numpy.ones(a.shape))
    u = numpy.where(norm > 0.01, a.mean(), 0)
    for _ in range(iterations):
        u = numpy.where(norm > 0.01, u * backward(a / forward(u)) / numpy.where(norm > 0.01, norm, 1), 0)
    return u[tuple(slice(b, b + n) for b, n in zip(below, a.shape))]


def deconvolved_by_two(a, inputs):
    n = a.shape[2]
    second = numpy.broadcast_to(numpy.clip((numpy.arange(n) - (n / 2 - 1) / 2) / (n / 2), 0, 1), a.shape)
    return deconvolved(a, file_of(inputs, "kernels"), (1 - second, second))


def resampled(a, _):
    """1.5 times as many voxels along each axis, by linear interpolation."""
    for axis in range(a.ndim):
        extent = a.shape[axis]
        points = (numpy.arange(int(numpy.floor(1.5 * extent + 0.5))) + 0.5) / 1.5 - 0.5
        a = numpy.apply_along_axis(lambda line: numpy.interp(points, numpy.arange(extent), line), axis, a)
    return a


def binned(reduce):
    """Blocks of two voxels along each axis; fewer where the image ends."""
    def apply(a, _):
        starts = [range(0, extent, 2) for extent in a.shape]
        return numpy.array([[[reduce(a[z:z + 2, y:y + 2, x:x + 2]) for x in starts[2]] for y in starts[1]] for z in starts[0]])
    return apply


DEFINITIONS = {
    "identity": lambda a, _: a,
    "mean": of_windows(numpy.mean), "sum": of_windows(numpy.sum), "variance": of_windows(numpy.var),
    "std": of_windows(numpy.std), "box": of_windows(numpy.mean), "maximum": maximum, "minimum": minimum,
    "white-tophat": lambda a, _: a - maximum(minimum(a)), "black-tophat": lambda a, _: minimum(maximum(a)) - a,
    "unsharp": lambda a, inputs: a + 0.5 * (a - gaussian(a, inputs)), "normalize": normalize, "diffusion": diffusion, "total-variation": total_variation, "coherence-diffusion": coherence_diffusion,
    "clahe": equalized, "rolling-ball": rolling_ball, "bilateral": bilateral,
    "opening": lambda a, _: maximum(minimum(a)), "closing": lambda a, _: minimum(maximum(a)),
    "range": of_windows(numpy.ptp), "median": percentile(0.5), "percentile": percentile(0.25), "wiener": wiener,
    "nlm": non_local_means, "entropy": of_windows(entropy),
    "convolve": lambda a, _: convolve(a, numpy.array([1.0, 2.0, 4.0]).reshape(1, 1, 3)),
    "convolve-image": lambda a, inputs: convolve(a, file_of(inputs, "kernel")),
    "convolve-varying": varying, "gaussian": gaussian, "highpass": lambda a, inputs: a - gaussian(a, inputs),
    "divergence": lambda a, inputs: numpy.trace(hessian(a, inputs), axis1=-2, axis2=-1), "curvature": level_set_curvature,
    "log": laplacian, "derivative": derivative, "gradient": gradient,
    "hessian": lambda a, inputs: numpy.linalg.eigvalsh(hessian(a, inputs))[..., 0], "structure-tensor": lambda a, inputs: numpy.linalg.eigvalsh(structure_tensors(a, inputs))[..., 0], "vesselness": frangi,
    "difference": lambda a, inputs: a - file_of(inputs, "second"),
    "sat": lambda a, _: a.cumsum(0).cumsum(1).cumsum(2),
    "reconstruct": lambda a, inputs: reconstruct(file_of(inputs, "marker"), a),
    "h-maxima": lambda a, _: reconstruct(a - 40, a), "h-minima": lambda a, _: reconstruct_down(a + 40, a),
    "h-convex": lambda a, _: a - reconstruct(a - 40, a), "h-concave": lambda a, _: reconstruct_down(a + 40, a) - a,
    "fill-holes": lambda a, _: reconstruct_down(border(a, 255), a),
    "grind-peaks": lambda a, _: reconstruct(border(a, 0), a),
    "clear-border": lambda a, _: a - reconstruct(border(a, 0), a),
    "opening-by-reconstruction": lambda a, _: reconstruct(minimum(a), a),
    "closing-by-reconstruction": lambda a, _: reconstruct_down(maximum(a), a),
    "regional-maxima": regional_maxima, "regional-minima": lambda a, _: regional_maxima(255 - a),
    "network": network,
    "label": lambda a, _: ndimage.label(a != 0)[0].astype(float),
    "hysteresis": hysteresis, "boundaries": inner_boundaries,
    "threshold": otsu, "local-threshold": lambda a, _: (a > of_windows(numpy.mean)(a, None)).astype(float),
    "area-opening": area_opening, "area-closing": lambda a, inputs: -area_opening(-a, inputs),
    "watershed": watershed, "resample": resampled,
    "bin": binned(numpy.mean), "bin-sum": binned(numpy.sum), "crop": lambda a, _: a[1:, 2:, 3:],
    "pad": lambda a, _: numpy.pad(a, ((1, 0), (2, 0), (3, 0))), "flip": lambda a, _: a[::-1, ::-1, ::-1],
    "permute-axes": lambda a, _: a.transpose(),
    "deconvolve": lambda a, inputs: deconvolved(a, [file_of(inputs, "kernel")], [numpy.ones(a.shape)]),
    "deconvolve-varying": deconvolved_by_two,
    "distance": distance(lambda a: a != 0), "nearest": nearest, "expand-labels": expand,
    "binary-morphology": lambda a, inputs: (distance(lambda voxels: voxels == 0)(a, inputs) <= 1).astype(float),
    "sequence": of_windows(numpy.mean),
}
# Their results have the type of the input, and no other.
VOXELS = ("crop", "pad", "flip", "permute-axes", "reconstruct", "h-maxima", "h-minima", "h-convex", "h-concave", "fill-holes", "grind-peaks", "clear-border",
          "opening-by-reconstruction", "closing-by-reconstruction", "regional-maxima", "regional-minima", "expand-labels")


# They need the whole image at once, so that --divisions is refused.
WHOLE = ("reconstruct", "h-maxima", "h-minima", "h-convex", "h-concave", "fill-holes", "grind-peaks", "clear-border",
         "regional-maxima", "regional-minima", "opening-by-reconstruction", "closing-by-reconstruction", "label", "hysteresis",
         "distance", "nearest", "expand-labels", "binary-morphology", "watershed", "area-opening", "area-closing",
         "deconvolve", "deconvolve-varying")


class Quantiles(ProgramTest):
    """The statistics that "chunkwise statistics" prints."""

    def test_as_numpy_has_them(self):
        fractions = [0.0, 0.01, 0.1, 1 / 3, 0.5, 0.77, 0.99, 1.0, 0.123456]
        for kind in KINDS:
            image = noise((23, 17, 11), kind, 9, *((0, 99) if kind.endswith("64") else ()))
            path = write(self.folder / "in.mha", image)
            printed = self.assert_runs("statistics", path, "--quantiles", ",".join(map(repr, fractions)),
                                       "--histogram", "16", "--json").stdout
            shown = json.loads(printed)
            expected = numpy.quantile(array_of(image), fractions)
            numpy.testing.assert_allclose([each["value"] for each in shown["quantiles"]], expected, rtol=1e-15, atol=0)
            counts, edges = numpy.histogram(array_of(image), 16)
            self.assertEqual(shown["histogram"]["counts"], counts.tolist())
            self.assertEqual((shown["histogram"]["lower"], shown["histogram"]["upper"]), (edges[0], edges[-1]))


class Definitions(ProgramTest):
    def test_every_subcommand(self):
        inputs = Inputs(self.folder, SIZE)
        a = array_of(inputs.image)
        for subcommand in all_subcommands(self):
            for more in ((), ("--divisions=4",)) if subcommand not in WHOLE else ((),):
                with self.subTest(subcommand=subcommand, more=more):
                    options = inputs.arguments(REQUIRED[subcommand])
                    kind = () if subcommand in VOXELS else ("--output-type=float64",)
                    self.assert_runs(subcommand, inputs.path, self.out, *options, *kind, *more)
                    found = array_of(read(self.out))
                    expected = DEFINITIONS[subcommand](a, inputs)
                    error = abs(found - expected)
                    worst = numpy.unravel_index(error.argmax(), error.shape)
                    # Statistics of 8 bits are kept in float.
                    self.assertLess(error.max(), 2e-6 * max(abs(expected).max(), 1),
                                    f"at z, y, x {worst}: {found[worst]} instead of {expected[worst]}")

    def test_boundaries(self):
        inputs = Inputs(self.folder, SIZE)
        a = array_of(inputs.image)
        for boundary, mode in (("zero-flux", "nearest"), ("mirror", "reflect"), ("periodic", "wrap"), ("constant", "constant"),
                               ("mirror-center", "mirror")):
            for subcommand, function in (
                ("mean", lambda: ndimage.uniform_filter(a, 3, mode=mode)),
                ("maximum", lambda: ndimage.maximum_filter(a, 3, mode=mode)),
                ("median", lambda: ndimage.median_filter(a, 3, mode=mode)),
            ):
                with self.subTest(boundary=boundary, subcommand=subcommand):
                    self.assert_runs(subcommand, inputs.path, self.out, "--radius=1", f"--boundary={boundary}",
                                     "--output-type=float64")
                    self.assertLess(abs(array_of(read(self.out)) - function()).max(), 1e-3)

    def test_a_boundary_for_each_axis(self):
        inputs = Inputs(self.folder, SIZE)
        a = array_of(inputs.image)
        modes = ("wrap", "mirror", "nearest")
        for subcommand, function in (("mean", ndimage.uniform_filter), ("maximum", ndimage.maximum_filter)):
            expected = function(a.astype(float), 5, mode=modes)
            for more in ((), ("--divisions=4",), ("--memory=64M",)):
                with self.subTest(subcommand=subcommand, more=more):
                    self.assert_runs(subcommand, inputs.path, self.out, "--radius=2", "--boundary=zero-flux,mirror-center,periodic",
                                     "--output-type=float64", *more)
                    self.assertLess(abs(array_of(read(self.out)) - expected).max(), 1e-9)

    def test_windows_that_reach_farther_to_one_side(self):
        inputs = Inputs(self.folder, SIZE)
        a = array_of(inputs.image).astype(float)
        # SciPy's windows of even sizes reach farther to the lower side.
        size = (4, 3, 6)
        window = ("--radius=3,1,2", "--upper-radius=2,1,1", "--boundary=mirror")
        for subcommand, expected in (
            ("mean", ndimage.uniform_filter(a, size)),
            ("sum", ndimage.uniform_filter(a, size) * 72),
            ("variance", ndimage.uniform_filter(a**2, size) - ndimage.uniform_filter(a, size)**2),
            ("maximum", ndimage.maximum_filter(a, size)), ("minimum", ndimage.minimum_filter(a, size)),
            ("median", ndimage.rank_filter(a, 35, size)), ("percentile", ndimage.rank_filter(a, 17, size)),
            ("opening", ndimage.grey_opening(a, size)), # The second window is the first one reflected, in both.
            ("closing", ndimage.minimum_filter(ndimage.maximum_filter(a, size), size, origin=(-1, 0, -1))),
        ):
            for more in ((), ("--divisions=4",)):
                with self.subTest(subcommand=subcommand, more=more):
                    self.assert_runs(subcommand, inputs.path, self.out, *window, "--output-type=float64", *more,
                                     *(("--percentile=25",) if subcommand == "percentile" else ()))
                    self.assertLess(abs(array_of(read(self.out)) - expected).max(), 1e-6)

    def test_ranks_over_other_elements(self):
        inputs = Inputs(self.folder, SIZE)
        a = array_of(inputs.image)
        for element, footprint in (("cross", ndimage.generate_binary_structure(3, 1)), ("ball", None)):
            if footprint is None:
                offsets = numpy.indices((5, 5, 5)) - 2
                footprint = (offsets**2).sum(axis=0) <= 2.5**2
            with self.subTest(element=element):
                self.assert_runs("median", inputs.path, self.out, f"--element={element}", f"--radius={len(footprint) // 2}",
                                 "--boundary=zero-flux")
                expected = ndimage.rank_filter(a, (int(footprint.sum()) - 1) // 2, footprint=footprint, mode="nearest")
                self.assertTrue((array_of(read(self.out)) == expected).all())

    def test_values_that_are_taken_from_the_whole_image(self):
        for kind in ("uint8", "int32", "float32", "float64"):
            image = noise(SIZE, kind, 12, 0, 100)
            path, a = write(self.folder / "in.mha", image), array_of(image)
            variance, mean = of_windows(numpy.var)(a, None), of_windows(numpy.mean)(a, None)
            level = variance.mean()
            expected = numpy.where(variance > level, mean + (variance - level) / numpy.maximum(variance, 1e-300) * (a - mean), mean)
            low, high = (0, 256) if kind == "uint8" else (float(a.min()), float(a.max()))
            for more in ((), ("--divisions=4",)):
                with self.subTest(kind=kind, more=more):
                    self.assert_runs("wiener", path, self.out, "--radius=1", "--noise=auto", "--output-type=float64", *more)
                    self.assertLess(abs(array_of(read(self.out)) - expected).max(), 2e-4)
                    self.assert_runs("entropy", path, self.out, "--radius=1", "--range=auto", "--bins=8", *more)
                    found = self.out.read_bytes()
                    self.assert_runs("entropy", path, self.out, "--radius=1", f"--range={low!r},{high!r}", "--bins=8")
                    self.assertEqual(found, self.out.read_bytes())

    def test_statistics(self):
        image = noise(SIZE, "int16", 8)
        printed = self.assert_runs("statistics", write(self.folder / "in.mha", image)).stdout
        a = array_of(image)
        for name, value in (("sum", a.sum()), ("mean", a.mean()), ("minimum", a.min()), ("maximum", a.max())):
            line = [words for words in (line.split(": ") for line in printed.splitlines()) if words[0] == name]
            self.assertAlmostEqual(float(line[0][1]), value, delta=1e-9 * abs(value), msg=printed)
        for name, value in (("variance", a.var()), ("standard deviation", a.std())):
            line = [words for words in (line.split(": ") for line in printed.splitlines()) if words[0] == name]
            if line:
                self.assertAlmostEqual(float(line[0][1]), value, delta=1e-9 * abs(value), msg=printed)

    def test_preserved_intensities(self):
        inputs = Inputs(self.folder, SIZE)
        a = array_of(inputs.image)
        self.assert_runs("opening-by-reconstruction", inputs.path, self.out, "--radius=1", "--preserve-intensities")
        self.assertTrue((array_of(read(self.out)) == opened(a)).all())
        self.assert_runs("closing-by-reconstruction", inputs.path, self.out, "--radius=1", "--preserve-intensities")
        self.assertTrue((array_of(read(self.out)) == 255 - opened(255 - a)).all())
