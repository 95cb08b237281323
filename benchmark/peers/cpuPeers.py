#!/usr/bin/env python3
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Times filters on the CPU beside DIPlib, ITK, SciPy, scikit-image and, in two dimensions, OpenCV.

    cpuPeers.py VOLUME [--threads 2] [--repeat 3] [--filters NAME,...] [--csv FILE]

Needs chunkwise, numpy and nibabel; of the peers what is installed: diplib, SimpleITK, scipy, scikit-image,
opencv-python-headless (all of PyPI). VOLUME is a NIfTI volume, such as ch2better.nii.gz of Debian's mricron-data. Slices beside
each other make the image of two dimensions. Results are the input's type and windows have the same size; what libraries do at
the edge and how they cut Gaussians differs, so that results are not compared here. Ours and the peers have --threads threads
where they have threads at all: SciPy and scikit-image have one. A time is the best of --repeat calls, one for what takes
seconds. The peer of a row is the fastest one; all are printed. The limit is a copy of the image by NumPy.
"""
import argparse
import importlib
import math
import sys
import time

from benchmarkRows import make_row, write_rows


def have(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


class Peers:
    """The libraries that are there, with their threads set."""

    def __init__(self, threads):
        self.dip, self.sitk, self.cv2 = have("diplib"), have("SimpleITK"), have("cv2")
        self.ndimage, self.signal = have("scipy.ndimage"), have("scipy.signal")
        self.morphology, self.restoration, self.rank, self.feature, self.filters = (
            have("skimage." + name) for name in ("morphology", "restoration", "filters.rank", "feature", "filters"))
        if self.dip:
            self.dip.SetNumberOfThreads(threads)
        if self.sitk:
            self.sitk.ProcessObject.SetGlobalDefaultNumberOfThreads(threads)
        if self.cv2:
            self.cv2.setNumThreads(threads)

    def calls(self, name, x):
        """Name and call of each peer that has the filter; images of other libraries are made before."""
        dip, sitk, cv2, nd = self.dip, self.sitk, self.cv2, self.ndimage
        d = dip.Image(x) if dip else None
        s = sitk.GetImageFromArray(x) if sitk else None
        n, flat = x.ndim, x.ndim == 2
        filter_name, number = name

        def kernel(radius):
            return dip.Kernel([2 * radius + 1] * n, "rectangular")

        def element(radius):
            return dip.SE([2 * radius + 1] * n, "rectangular")

        def std_by_means():
            mean = nd.uniform_filter(x, 5)
            return (nd.uniform_filter(x * x, 5) - mean * mean) ** 0.5

        radius = int(number) if number else 0
        width = 2 * radius + 1
        table = {
            "mean": (lambda: dip.Uniform(d, kernel(radius)), lambda: sitk.BoxMean(s, [radius] * n),
                     lambda: nd.uniform_filter(x, width), lambda: cv2.blur(x, (width, width))),
            "Gaussian": (lambda: dip.Gauss(d, [number]), lambda: sitk.SmoothingRecursiveGaussian(s, number),
                         lambda: nd.gaussian_filter(x, number), lambda: cv2.GaussianBlur(x, (0, 0), number)),
            "maximum": (lambda: dip.Dilation(d, element(radius)),
                        lambda: sitk.GrayscaleDilate(s, [radius] * n, sitk.sitkBox),
                        lambda: nd.maximum_filter(x, width),
                        lambda: cv2.dilate(x, cv2.getStructuringElement(cv2.MORPH_RECT, (width, width)))),
            "opening": (lambda: dip.Opening(d, element(radius)),
                        lambda: sitk.GrayscaleMorphologicalOpening(s, [radius] * n, sitk.sitkBox),
                        lambda: nd.grey_opening(x, (width,) * n),
                        lambda: cv2.morphologyEx(x, cv2.MORPH_OPEN,
                                                 cv2.getStructuringElement(cv2.MORPH_RECT, (width, width)))),
            "median": (lambda: dip.MedianFilter(d, kernel(radius)), lambda: sitk.Rank(s, 0.5, [radius] * n),
                       lambda: nd.median_filter(x, width), lambda: cv2.medianBlur(x, width)),
            "standard deviation": (lambda: dip.Sqrt(dip.VarianceFilter(d, kernel(radius))),
                                   lambda: sitk.BoxSigma(s, [radius] * n), std_by_means, None),
            "Laplacian of Gaussian": (lambda: dip.Laplace(d, [number]),
                                      lambda: sitk.LaplacianRecursiveGaussian(s, number),
                                      lambda: nd.gaussian_laplace(x, number), None),
            "Wiener": (None, None, lambda: self.signal.wiener(x, width), None),
            "h-maxima": (lambda: dip.MorphologicalReconstruction(d - number, d, 1, "dilation"),
                         lambda: sitk.HMaxima(s, number),
                         lambda: self.morphology.reconstruction(x.clip(number) - x.dtype.type(number), x), None),
            "fill holes": (None, lambda: sitk.GrayscaleFillhole(s), None, None),
            "gradient magnitude": (lambda: dip.GradientMagnitude(d, [number]),
                                   lambda: sitk.GradientMagnitudeRecursiveGaussian(s, number),
                                   lambda: nd.gaussian_gradient_magnitude(x, number), None),
            "derivative along x": (lambda: dip.Derivative(d, [1] + [0] * (n - 1), [number]),
                                   lambda: sitk.DiscreteGaussianDerivative(s, [number ** 2] * n, [1] + [0] * (n - 1)),
                                   lambda: nd.gaussian_filter(x, number, order=[0] * (n - 1) + [1]), None),
            "Hessian's eigenvalues": (lambda: dip.SymmetricEigenDecomposition(dip.Hessian(d, [number])), None,
                                      lambda: self.feature.hessian_matrix_eigvals(self.feature.hessian_matrix(
                                          x, number, use_gaussian_derivatives=True)), None),
            "Frangi": (lambda: dip.FrangiVesselness(d, [number]), None,
                       lambda: self.filters.frangi(x, [number]), None),
            "gradient diffusion": (lambda: dip.PeronaMalikDiffusion(d, radius, 10.0, 1 / 16),
                                   lambda: sitk.GradientAnisotropicDiffusion(s, 1 / 16, 1.0, 1, radius), None, None),
            "curvature diffusion": (None, lambda: sitk.CurvatureAnisotropicDiffusion(s, 1 / 16, 1.0, 1, radius), None, None),
            "total variation": (None, None,
                                lambda: self.restoration.denoise_tv_chambolle(x, 10.0, eps=0, max_num_iter=radius), None),
            "non-local means": (None, None, lambda: self.restoration.denoise_nl_means(
                x, patch_size=3, patch_distance=2, h=number, fast_mode=True), None),
            "entropy": (None, None, lambda: self.rank.entropy(x, self.morphology.footprint_rectangle((width,) * n)), None),
        }
        there = (dip, sitk, nd and self.morphology, cv2 if flat else None)
        names = ("DIPlib", "ITK", "SciPy or scikit-image", "OpenCV")
        return [(peer, call) for peer, is_there, call in zip(names, there, table[filter_name]) if is_there and call]


def ours(chunkwise, name, x, options):
    filter_name, number = name
    call = {
        "mean": lambda **o: chunkwise.mean(x, number, **o),
        "Gaussian": lambda **o: chunkwise.gaussian(x, number, **o),
        "maximum": lambda **o: chunkwise.maximum(x, number, **o),
        "opening": lambda **o: chunkwise.opening(x, number, **o),
        "median": lambda **o: chunkwise.median(x, number, **o),
        "standard deviation": lambda **o: chunkwise.std(x, number, **o),
        "Laplacian of Gaussian": lambda **o: chunkwise.log(x, number, **o),
        "Wiener": lambda **o: chunkwise.wiener(x, number, 100.0, **o),
        "h-maxima": lambda **o: chunkwise.h_maxima(x, number, **o),
        "fill holes": lambda **o: chunkwise.fill_holes(x, **o),
        "gradient magnitude": lambda **o: chunkwise.gradient(x, number, **o),
        "derivative along x": lambda **o: chunkwise.derivative(x, (0,) * (x.ndim - 1) + (1,), sigma=number, **o),
        "Hessian's eigenvalues": lambda **o: chunkwise.hessian(x, sigma=number, **{**o, "output": None}),
        "Frangi": lambda **o: chunkwise.vesselness(x, [number], **o),
        "gradient diffusion": lambda **o: chunkwise.diffusion(x, number, time_step=1 / 16, **o),
        "curvature diffusion": lambda **o: chunkwise.diffusion(x, number, method="curvature", time_step=1 / 16, **o),
        "total variation": lambda **o: chunkwise.total_variation(x, 10.0, number, **o),
        "non-local means": lambda **o: chunkwise.nlm(x, 2, number, patch_radius=1, **o),
        "entropy": lambda **o: chunkwise.entropy(x, number, **o),
    }[filter_name]
    return lambda: call(**options)


# Name, parameter, types, what the parameter is called.
FILTERS = [
    (("mean", 2), "radius 2"), (("Gaussian", 2.0), "sigma 2"), (("maximum", 2), "radius 2"), (("opening", 2), "radius 2"),
    (("median", 1), "radius 1"), (("median", 2), "radius 2"), (("standard deviation", 2), "radius 2"),
    (("Laplacian of Gaussian", 2.0), "sigma 2"), (("Wiener", 2), "radius 2"), (("h-maxima", 20), "20"), (("fill holes", 0), ""),
    (("gradient magnitude", 2.0), "sigma 2"), (("derivative along x", 1.0), "sigma 1"), (("derivative along x", 3.0), "sigma 3"),
    (("Hessian's eigenvalues", 2.0), "sigma 2"), (("Frangi", 2.0), "sigma 2"), (("gradient diffusion", 5), "5 iterations"),
    (("curvature diffusion", 5), "5 iterations"), (("total variation", 50), "50 iterations"),
    (("non-local means", 10.0), "search 5, patches of 3"), (("entropy", 2), "radius 2"),
]
# Floats only, or bytes only.
REAL = ("standard deviation", "Laplacian of Gaussian", "Wiener", "non-local means", "gradient magnitude", "derivative along x",
        "Hessian's eigenvalues", "Frangi", "gradient diffusion", "curvature diffusion", "total variation")
BYTES = ("entropy",)
FLAT = ("mean", "Gaussian", "maximum", "opening", "median")


def best(call, repeat):
    times = []
    for _ in range(repeat):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
        if times[-1] > 2:
            break
    return min(times)


def cases(volume):
    """Name, parameters' text, image and its name."""
    import numpy as np

    side = math.isqrt(volume.shape[0])
    rows = [np.concatenate(volume[i * side:(i + 1) * side], axis=1) for i in range(side)]
    flat = np.ascontiguousarray(np.concatenate(rows, axis=0))
    for kind in ("uint8", "float32"):
        for image, what in ((volume, "T1 volume"), (flat, "its slices in a plane")):
            x = np.ascontiguousarray(image, dtype=kind)
            size = " x ".join(str(each) for each in reversed(x.shape))
            for name, parameter in FILTERS:
                if (kind == "uint8" and name[0] in REAL) or (kind != "uint8" and name[0] in BYTES):
                    continue
                if x.ndim == 2 and (name[0] not in FLAT or name == ("median", 2) and kind == "float32"):
                    continue
                yield name, parameter, x, f"{size} {kind}, {what}"


def main():
    import nibabel
    import numpy as np

    import chunkwise

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("volume")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--filters")
    parser.add_argument("--csv")
    options = parser.parse_args()
    volume = np.asarray(nibabel.load(options.volume).dataobj).T.astype("float32")
    volume *= 255 / volume.max()
    peers = Peers(options.threads)
    rows = []
    for name, parameter, x, image in cases(volume):
        if options.filters and name[0] not in options.filters.split(","):
            continue
        run = {"backend": "cpu", "threads": options.threads}
        # std of bytes is of floats; all others have the input's type.
        call = ours(chunkwise, name, x, {**run, "output": np.empty_like(x)})
        # Threads of the peers before may still wait actively, which costs us one of two cores.
        time.sleep(1)
        call()
        seconds = best(call, 3 * options.repeat)
        copy = np.empty_like(x)
        limit = best(lambda: np.copyto(copy, x), 5)
        found = {}
        for peer, peer_call in peers.calls(name, x):
            try:
                found[peer] = best(peer_call, options.repeat)
            except Exception as error:  # a peer may not have this type
                print(f"  {peer}: {str(error).splitlines()[0][:100]}", file=sys.stderr)
        if not found:
            continue
        peer = min(found, key=found.get)
        title = ", ".join(each for each in (name[0], parameter) if each)
        print(f"{title:40} {image:44} {seconds * 1e3:8.1f} ms, {found[peer] / seconds:6.1f} times {peer}, "
              f"{seconds / limit:5.1f} copies; " + ", ".join(f"{key} {value * 1e3:.0f}" for key, value in found.items()),
              flush=True)
        rows.append(make_row("cpu", f"{title}, beside the best library; {image}", f"{seconds * 1e3:.4g}", "ms",
                             f"{found[peer] * 1e3:.4g}", peer, f"{limit * 1e3:.4g}", "NumPy copy", "peer/10"))
    write_rows(options.csv, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
