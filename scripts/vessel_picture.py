#!/usr/bin/env python3
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Makes docs/vessels.png: vessel_picture.py [TEMPLATES]. Vessels of a real retina, which scikit-image ships, and tubes of a real
volume, the head ch2 (Debian's mricron-data). Needs the packages chunkwise, scikit-image and Pillow."""
import gzip
import sys
from pathlib import Path

import chunkwise
import numpy as np
from PIL import Image
from skimage import data


def shade(values, most):
    return (255 * np.clip(values / most, 0, 1)).astype("uint8")


def main():
    templates = Path(sys.argv[1] if len(sys.argv) > 1 else "/usr/share/mricron/templates")
    retina = np.ascontiguousarray(data.retina()[..., 1])
    vessels = chunkwise.vesselness(retina.astype("float32"), (2, 4, 6), dark=True)
    # NIfTI: voxels of 8 bits after a header of 352 bytes.
    head = np.frombuffer(gzip.decompress((templates / "ch2.nii.gz").read_bytes()), "u1", offset=352).reshape(181, 217, 181)
    tubes = chunkwise.vesselness(head.astype("float32"), (1, 1.5, 2))
    part = np.s_[250:684, 260:694]
    # The largest value of slices below the brain's middle, front up.
    projection = shade(tubes[:60, ::-1].max(axis=0), 0.3)
    panels = [retina[part], shade(vessels[part], 0.6), projection.repeat(2, axis=0).repeat(2, axis=1)]
    picture = Image.fromarray(np.concatenate(panels, axis=1))
    picture.save(Path(__file__).resolve().parent.parent / "docs" / "vessels.png", optimize=True)


if __name__ == "__main__":
    main()
