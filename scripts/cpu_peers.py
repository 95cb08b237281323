#!/usr/bin/env python3
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Times scikit-image's non-local means beside chunkwise_cpu_benchmark: cpu_peers.py [--csv FILE] [DEVICE].

The image is noise, as the benchmark's, and the time the processor's: it has one thread. It needs scikit-image, and is
to run on the same machine right after `chunkwise_cpu_benchmark IMAGE 1 --small-windows`, whose device it names."""
import time

import numpy
import skimage
from skimage.restoration import denoise_nl_means

from peer_report import PeerReport, parse_arguments


def main():
    options = parse_arguments(__doc__, "device")
    report = PeerReport(options.csv, options.device[0] if options.device else "CPU, 1 thread")
    image = (numpy.random.default_rng(1).random((128, 128, 128)) * 100).astype(numpy.float32)
    best = float("inf")
    for _ in range(3):
        begin = time.process_time()
        denoise_nl_means(image, patch_size=3, patch_distance=2, h=20, fast_mode=True)
        best = min(best, time.process_time() - begin)
    report.add("cpu", "non-local means, search 5^3, patch 3^3; 128^3 float32", best * 1e3,
               f"scikit-image {skimage.__version__}, fast mode")


if __name__ == "__main__":
    main()
